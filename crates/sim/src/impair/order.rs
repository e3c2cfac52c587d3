//! Packets that come late, and packets that come twice.

use std::time::Duration;

use tack_base::random::RandomStream;

/// Settings of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderConfig {
    /// Probability that a packet takes longer than those around it.
    pub reorder: f64,
    /// How much longer: uniformly drawn, above zero and at most this.
    pub reorder_delay: Duration,
    /// Probability that a packet arrives twice, the copy right behind it.
    pub duplicate: f64,
}

impl Default for OrderConfig {
    fn default() -> Self {
        Self {
            reorder: 0.0,
            reorder_delay: Duration::from_millis(5),
            duplicate: 0.0,
        }
    }
}

/// Reordering and duplication in one direction.
#[derive(Clone, Debug)]
pub struct Order {
    config: OrderConfig,
    reorder: RandomStream,
    duplicate: RandomStream,
}

impl Order {
    /// Of direction `direction`.
    pub fn new(config: OrderConfig, seed: u64, direction: u64) -> Self {
        Self {
            config,
            reorder: RandomStream::new(seed, "reorder", direction),
            duplicate: RandomStream::new(seed, "duplicate", direction),
        }
    }

    /// How much later than the others a packet comes, if it does.
    #[inline]
    pub fn extra_delay(&mut self) -> Option<Duration> {
        if !self.reorder.chance(self.config.reorder) {
            return None;
        }
        let most = tack_base::time::nanos(self.config.reorder_delay);
        Some(Duration::from_nanos(1 + self.reorder.below(most)))
    }

    /// True when a packet comes twice.
    #[inline]
    pub fn duplicates(&mut self) -> bool {
        self.duplicate.chance(self.config.duplicate)
    }
}
