//! Carriers for TCP segments: batched UDP sockets and TUN devices, their clock and a timer precise
//! enough for pacing.
//!
//! Nothing here decides anything about the protocol. A carrier moves batches of equally sized
//! datagrams or packets, says what it can do ([`UdpSender::max_batch`],
//! [`PacingTimer::GRANULARITY`]) and loses nothing that the kernel did not lose: a batch the kernel
//! takes only in part is reported with what is left of it.
#![deny(unsafe_code)]

mod address;
mod clock;
#[cfg(target_os = "linux")]
mod distance;
#[cfg(target_os = "linux")]
pub mod namespace;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(target_os = "linux")]
pub mod private;
pub mod realtime;
#[cfg(target_os = "linux")]
pub mod socket_options;
mod timer;
#[cfg(target_os = "linux")]
pub mod transparent;
pub mod tun;
pub mod udp;
#[cfg(target_os = "linux")]
pub mod within;

pub use address::canonical;
pub use clock::Clock;
#[cfg(target_os = "linux")]
pub use distance::{Distance, distance};
pub use timer::PacingTimer;
pub use tun::{TunNetwork, TunOptions, TunReceiver, TunSender};
pub use udp::{
    Datagrams, QuotedSegment, Received, Refused, Segmentation, SendCause, SendError, UdpOptions,
    UdpReceiver, UdpSender,
};
