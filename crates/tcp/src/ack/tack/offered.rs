//! How often to report so that a small window does not make its sender stand still.

use tack_base::Rate;
use tack_base::time::Nanos;

/// What the window offered last holds beyond L segments, and how fast the sender could use it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    pub(super) bytes: u64,
    pub(super) rate: Rate,
    /// RTTmin at that time.
    pub(super) rtt_min: Nanos,
}

impl Offered {
    /// The longest period with which it does not make the sender stand still, `most` at most.
    #[inline]
    pub(super) fn period(&self, most: Nanos) -> Nanos {
        // A window that is large enough, as most are, costs no division.
        if self.rate.takes(self.bytes, most + self.rtt_min) {
            return most;
        }
        let lasts = self.rate.nanos_for(self.bytes);
        lasts.saturating_sub(self.rtt_min).min(most)
    }
}
