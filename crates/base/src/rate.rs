//! Data rates.

use core::fmt;
use core::time::Duration;

use crate::time::{Nanos, nanos};

/// A data rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// No data at all.
    pub const ZERO: Self = Self(0);
    /// Faster than anything that occurs.
    pub const MAX: Self = Self(u64::MAX);

    /// A rate of `bits` bits per second.
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits)
    }

    /// A rate of `bytes` bytes per second.
    pub const fn from_bytes_per_sec(bytes: u64) -> Self {
        Self(bytes.saturating_mul(8))
    }

    /// The rate at which `bytes` pass in `interval`; [`Rate::MAX`] when the interval is zero.
    #[inline]
    pub fn from_bytes_over(bytes: u64, interval: Duration) -> Self {
        let ns = nanos(interval);
        if ns == 0 {
            return Self::MAX;
        }
        match bytes.checked_mul(8_000_000_000) {
            Some(product) => Self(product / ns),
            None => Self(
                u64::try_from(u128::from(bytes) * 8_000_000_000 / u128::from(ns))
                    .unwrap_or(u64::MAX),
            ),
        }
    }

    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }

    /// Whole bytes per second.
    pub const fn bytes_per_sec(self) -> u64 {
        self.0 / 8
    }

    /// True for the rate of no data at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whole bytes that pass in `interval`, rounded down.
    #[inline]
    pub fn bytes_in(self, interval: Duration) -> u64 {
        let ns = nanos(interval);
        match self.0.checked_mul(ns) {
            Some(product) => product / 8_000_000_000,
            None => u64::try_from(u128::from(self.0) * u128::from(ns) / 8_000_000_000)
                .unwrap_or(u64::MAX),
        }
    }

    /// Time that `bytes` take at this rate, rounded down to a nanosecond; a very long time at rate
    /// zero.
    #[inline]
    pub fn time_for(self, bytes: u64) -> Duration {
        self.nanos_for(bytes).into()
    }

    /// As [`Rate::time_for`], for arithmetic on the per-segment path.
    #[inline]
    pub fn nanos_for(self, bytes: u64) -> Nanos {
        if self.0 == 0 {
            return Nanos(u64::MAX / 1_000_000_000 * 1_000_000_000);
        }
        Nanos(match bytes.checked_mul(8_000_000_000) {
            Some(product) => product / self.0,
            None => u64::try_from(u128::from(bytes) * 8_000_000_000 / u128::from(self.0))
                .unwrap_or(u64::MAX),
        })
    }

    /// True when `bytes` take `span` or longer at this rate: as a comparison with
    /// [`Rate::nanos_for`], without its division.
    #[inline]
    pub fn takes(self, bytes: u64, span: Nanos) -> bool {
        u128::from(bytes) * 8_000_000_000 >= u128::from(span.0) * u128::from(self.0)
    }

    /// This rate times `factor` (not negative), saturating.
    #[inline]
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Rate {
    /// Three significant digits in the largest decimal unit: `54.0 Mbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => (bits, "bit/s"),
            1_000..1_000_000 => (bits / 1e3, "kbit/s"),
            1_000_000..1_000_000_000 => (bits / 1e6, "Mbit/s"),
            _ => (bits / 1e9, "Gbit/s"),
        };
        let digits = if value >= 100.0 {
            0
        } else if value >= 10.0 {
            1
        } else {
            2
        };
        write!(f, "{value:.digits$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn conversions_agree() {
        let rate = Rate::from_bits_per_sec(100_000_000);
        assert_eq!(rate.time_for(1500), Duration::from_micros(120));
        assert_eq!(rate.bytes_in(Duration::from_millis(40)), 500_000);
        assert_eq!(
            Rate::from_bytes_over(500_000, Duration::from_millis(40)),
            rate
        );
    }

    #[test]
    fn what_bytes_take_is_compared_without_a_division() {
        for bits in [1, 7, 999_999_999, 54_000_000, u64::MAX] {
            let rate = Rate::from_bits_per_sec(bits);
            for bytes in [0, 1, 1_448, 1 << 40] {
                let Nanos(exact) = rate.nanos_for(bytes);
                for span in [0, exact.saturating_sub(1), exact, exact.saturating_add(1)] {
                    assert_eq!(
                        rate.takes(bytes, Nanos(span)),
                        exact >= span,
                        "{rate} {bytes}"
                    );
                }
            }
        }
    }

    #[test]
    fn large_products_do_not_overflow() {
        let rate = Rate::from_bits_per_sec(400_000_000_000);
        assert_eq!(rate.bytes_in(Duration::from_secs(1000)), 50_000_000_000_000);
        assert_eq!(rate.time_for(50_000_000_000_000), Duration::from_secs(1000));
        assert_eq!(
            Rate::from_bytes_over(50_000_000_000_000, Duration::from_secs(1000)),
            rate
        );
    }

    #[test]
    fn prints_for_people() {
        assert_eq!(
            Rate::from_bits_per_sec(54_000_000).to_string(),
            "54.0 Mbit/s"
        );
        assert_eq!(Rate::from_bits_per_sec(0).to_string(), "0.00 bit/s");
    }
}
