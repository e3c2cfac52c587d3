//! Medium access: contention, queues, aggregation, Block ACK and the exchange of frames.
//!
//! [`station::Station`] owns the rooms of one radio and speaks in actions: what it wants to
//! transmit comes back as a [`crate::frame::Ppdu`], what it received as deliveries, when it wants
//! to be woken as a deadline. It knows no medium and no clock, so a test can play both.

pub mod access;
pub mod agreement;
pub mod config;
pub mod discipline;
pub mod duplicates;
pub mod hack;
pub mod originator;
pub mod queue;
pub mod recipient;
pub mod station;
pub mod stats;

pub use access::{Attempt, BusyEnd, ChannelAccess, Contention, CwAdaptation, Rules, SharedAccess};
pub use config::{Agreements, AmpduLimits, MacConfig, MissedBlockAck, Protection};
pub use station::Station;
pub use stats::StationStats;
