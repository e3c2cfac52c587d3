//! Packets on their way, in the order in which they arrive: by time, then as they were sent.

use tack_base::Instant;
use tack_wire::Ecn;

use crate::side::Side;

/// A packet that will be handed to a host.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) at: Instant,
    pub(super) serial: u64,
    pub(super) to: Side,
    pub(super) arrived: Instant,
    pub(super) bytes: Vec<u8>,
    pub(super) ecn: Ecn,
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.serial) == (other.at, other.serial)
    }
}
impl Eq for Arrival {}
impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}
