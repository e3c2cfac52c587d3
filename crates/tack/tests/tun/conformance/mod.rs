//! Packet scripts in the form of the testkit, played over TUN against the kernel's TCP and against
//! ours by the same player: the kernel validates the script, and the script validates us.
//!
//! Time is real here. What leaves is waited for, however long it takes; a copy of what has left
//! before does not count where something else is expected, because a slow machine makes timers run
//! out. A silence is measured by the subject's own clock, its timestamps: a player that gets its
//! turn late also sees what left after the silence. Where a script has bounds for a timeout, the
//! least time is that of the RFC, which a slow machine does not shorten, and the most is seconds
//! more.

mod departure;
mod ecn;
mod loss;
mod play;
mod player;
mod scripts;
mod subject;
mod timeouts;
mod windows;

/// The kernel's shortest retransmission timeout, microseconds: a setting since Linux 6.11.
const MIN_RTO: &str = "ipv4/tcp_rto_min_us";
