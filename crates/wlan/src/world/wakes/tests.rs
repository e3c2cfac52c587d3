use proptest::prelude::*;
use tack_base::Instant;

use super::*;

/// The first from number `from` on that is due, found one by one.
fn due(wakes: &[Instant], from: usize, at: Instant) -> Option<usize> {
    (from..wakes.len()).find(|index| wakes[*index] <= at)
}

proptest! {
    /// Blocks say what asking each radio would, in networks of every size.
    #[test]
    fn the_first_and_those_due_are_found(
        radios in 1..3_000_usize,
        set in prop::collection::vec((any::<prop::sample::Index>(), 0..50_u64, any::<bool>()), 1..200),
    ) {
        let mut wakes = Wakes::new(radios);
        let mut each = std::vec![Instant::FAR_FUTURE; radios];
        for (index, nanos, asks) in set {
            let index = index.index(radios);
            let wake = if nanos < 5 { Instant::FAR_FUTURE } else { Instant::from_nanos(nanos) };
            wakes.set(index, wake);
            each[index] = wake;
            prop_assert_eq!(wakes.of(index), wake);
            if asks {
                prop_assert_eq!(Some(wakes.first()), each.iter().min().copied());
                let at = Instant::from_nanos(20);
                let mut from = 0;
                while let Some(found) = due(&each, from, at) {
                    prop_assert_eq!(wakes.due(from, at), Some(found));
                    from = found + 1;
                }
                prop_assert_eq!(wakes.due(from, at), None);
            }
        }
    }
}
