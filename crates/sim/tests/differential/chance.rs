//! When a difference between the two policies may be chance.

/// How probable it must be that chance alone makes such a difference, by an exact test.
const CHANCE: f64 = 0.1;

/// Of `all` other figures, `lower` are no better than this one. The exact rank test does not reject
/// that this one is drawn from them.
pub(crate) fn is_chance(lower: usize, all: usize) -> bool {
    (lower + 1) as f64 >= CHANCE * (all + 1) as f64
}

/// `own` of `all` runs of TACK and `others` of as many plain runs are bad. Chance alone would give
/// TACK that many of the bad runs, or more, with a probability of at least [`CHANCE`].
pub(crate) fn is_as_often_bad(own: usize, others: usize, all: usize) -> bool {
    let choose =
        |n: usize, k: usize| -> f64 { (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product() };
    let bad = own + others;
    let ways = |first: usize| choose(all, first) * choose(all, bad - first);
    let as_many: f64 = (own..=bad.min(all))
        .filter(|first| bad - first <= all)
        .map(ways)
        .sum();
    as_many >= CHANCE * choose(2 * all, bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_sixteen_is_chance_and_none_is_not() {
        assert!(!is_chance(0, 16));
        assert!(is_chance(1, 16));
        // More runs know more.
        assert!(!is_chance(1, 31));
    }

    #[test]
    fn as_many_bad_ones_are_chance_and_many_more_are_not() {
        for (own, others, chance) in [(4, 0, false), (7, 1, false), (3, 1, true), (4, 4, true)] {
            assert_eq!(
                is_as_often_bad(own, others, 16),
                chance,
                "{own} and {others}"
            );
        }
    }
}
