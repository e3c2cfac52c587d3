//! Seeded random streams.
//!
//! Every component draws from a stream of its own, derived from (seed, component name, index), so
//! that adding a component or a draw in one place never shifts the numbers of another.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A deterministic random stream: same seed and name, same numbers, on every machine.
#[derive(Clone, Debug)]
pub struct RandomStream(Xoshiro256PlusPlus);

impl RandomStream {
    /// The stream of `component` number `index` in the run with this `seed`.
    pub fn new(seed: u64, component: &str, index: u64) -> Self {
        // FNV-1a over the name spreads the streams; SplitMix (inside seed_from_u64) does the
        // mixing.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in component
            .bytes()
            .chain(index.to_le_bytes())
            .chain(seed.to_le_bytes())
        {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self(Xoshiro256PlusPlus::seed_from_u64(hash))
    }

    /// A uniformly distributed 64-bit number.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniformly distributed number in `0..bound` (zero when `bound` is zero).
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiply-shift: bias below 2^-32 for every bound that occurs, and no rejection loop.
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A uniformly distributed number in `0.0..1.0`, with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// True with this `probability` (0 to 1). Draws nothing when the probability is zero.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_stable_and_independent() {
        let mut a = RandomStream::new(1, "loss", 0);
        let mut b = RandomStream::new(1, "loss", 0);
        let mut c = RandomStream::new(1, "loss", 1);
        assert_eq!(a.next_u64(), b.next_u64());
        assert_ne!(a.next_u64(), c.next_u64());
    }

    /// Recorded once: a changed number here means that every recorded run changes.
    #[test]
    fn numbers_stay_the_same_for_ever() {
        let mut stream = RandomStream::new(42, "golden", 3);
        let numbers = [
            stream.next_u64(),
            stream.below(1_000),
            stream.below(1_000),
            stream.next_u64(),
        ];
        assert_eq!(
            numbers,
            [
                13_147_618_092_990_622_975,
                413,
                671,
                5_245_111_464_582_655_889
            ]
        );
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let mut stream = RandomStream::new(7, "spread", 0);
        let mut counts = [0_u32; 10];
        let mut hits = 0;
        for _ in 0..100_000 {
            counts[stream.below(10) as usize] += 1;
            hits += u32::from(stream.chance(0.01));
        }
        // Six standard deviations: 6 * sqrt(100_000 * 0.1 * 0.9) = 570, 6 * sqrt(1_000 * 0.99) =
        // 190.
        assert!(
            counts.iter().all(|count| count.abs_diff(10_000) < 570),
            "{counts:?}"
        );
        assert!(hits.abs_diff(1_000) < 190, "{hits}");
    }

    #[test]
    fn bounds_hold() {
        let mut stream = RandomStream::new(7, "bounds", 0);
        for _ in 0..10_000 {
            assert!(stream.below(10) < 10);
            assert!((0.0..1.0).contains(&stream.unit()));
        }
        assert_eq!(stream.below(0), 0);
        assert!(!stream.chance(0.0));
        assert!(stream.chance(1.0));
    }
}
