//! Carriers for TCP segments: batched UDP sockets, their clock and a timer precise enough for
//! pacing.
//!
//! Nothing here decides anything about the protocol. A carrier moves batches of equally sized
//! datagrams, says what it can do ([`UdpSender::max_batch`], [`PacingTimer::GRANULARITY`]) and
//! loses nothing that the kernel did not lose: a batch the kernel takes only in part is reported
//! with what is left of it.
#![deny(unsafe_code)]

mod address;
mod clock;
pub mod realtime;
mod timer;
pub mod udp;

pub use clock::Clock;
pub use timer::PacingTimer;
pub use udp::{
    Datagrams, Received, Segmentation, SendCause, SendError, UdpOptions, UdpReceiver, UdpSender,
};
