//! Wi-Fi between real programs: the simulator's 802.11 model driven by the wall clock, carrying
//! real UDP datagrams between real sockets.
//!
//! An [`Emulator`] is a relay. What programs send to its address crosses the links of a scenario (a
//! station, the air, an access point, the wired path) and goes on to one fixed address; the answers
//! come back the same way. Each client address is a flow with a station of its own, as long as
//! there are stations; all flows, both directions and whatever neighbours the scenario has contend
//! for the same air.
//!
//! ```text
//!  client ── UDP ──▶ listen ─┐  station ))) access point ── wired ──┐ upstream ── UDP ──▶ to
//!  client ◀── UDP ── listen ◀┘  station ((( access point ── wired ◀─┘ upstream ◀── UDP ── to
//! ```
//!
//! The timing of the model is exact: a datagram enters at the instant the kernel received it, and
//! everything after that happens in model time. Its delivery can be late, because the machine has
//! other things to do, and its entry, when it is read only after the model has passed that instant.
//! How late is measured, and a run that was too late too often says so: [`Summary::trust`].
//!
//! A flow that begins with a SYN of TCP in UDP is TCP to the model as well: the scenario's ACK
//! filter may drop its acknowledgements, and TCP/HACK may carry them inside ACKs of the link. Its
//! SYNs announce no larger segments than fit [`MAX_DATAGRAM`]. Nothing looks into other datagrams.
//!
//! ```
//! use std::net::UdpSocket;
//! use tack_emulator::{Emulator, Settings};
//! use tack_sim::Scenario;
//!
//! let (client, far) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
//! let text = "[wlan]\nstandard = '802.11ac'\n[[flow]]\n";
//! let wifi = Scenario::from_toml("example.toml", text, &[])?;
//! let emulator = Emulator::start(Settings::new(wifi, "127.0.0.1:0".parse()?, far.local_addr()?))?;
//!
//! client.send_to(b"over the air", emulator.local_addr())?;
//! let mut buffer = [0; 100];
//! let (len, _) = far.recv_from(&mut buffer)?;
//! assert_eq!(&buffer[..len], b"over the air");
//!
//! let summary = emulator.stop()?;
//! assert_eq!(summary.up.delivered, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod batch;
mod clamp;
mod content;
mod drops;
mod figures;
mod flows;
#[cfg(target_os = "linux")]
mod hosts;
mod lateness;
mod pace;
mod relay;
mod runner;
mod running;
mod settings;

pub use content::{Counting, SMALL};
pub use drops::kernel_drops;
pub use figures::{AirSeconds, Dropped, FlowFigures, Sample, Summary, Totals};
#[cfg(target_os = "linux")]
pub use hosts::{Host, HostSettings, Hosts};
pub use lateness::{LATE, LATE_SHARE, Lateness, Trust};
pub use runner::Emulator;
pub use running::StartError;
pub use settings::Settings;

/// Longest datagram payload that passes: that of an IP packet of 1500 bytes. Longer ones would
/// need fragments, which the links do not make; they are dropped and counted.
pub const MAX_DATAGRAM: usize = 1_500 - 20 - 8;
