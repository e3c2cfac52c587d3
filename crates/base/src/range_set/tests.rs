use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Operation {
    Insert(Range<u64>),
    Remove(Range<u64>),
    RemoveBelow(u64),
    Clear,
}

/// Few positions, so that ranges meet, touch and swallow each other; empty and reversed ones too.
fn range() -> impl Strategy<Value = Range<u64>> {
    prop_oneof![
        8 => (0..60_u64, 0..12_u64).prop_map(|(start, len)| start..start + len),
        1 => (0..60_u64, 0..60_u64).prop_map(|(start, end)| start..end),
        1 => (0..4_u64, 0..4_u64).prop_map(|(start, end)| u64::MAX - 8 + start..u64::MAX - 4 + end),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => range().prop_map(Operation::Insert),
        4 => range().prop_map(Operation::Remove),
        1 => (0..70_u64).prop_map(Operation::RemoveBelow),
        1 => Just(Operation::Clear),
    ]
}

#[test]
fn touching_ranges_become_one() {
    let mut set = RangeSet::<u64>::new();
    assert_eq!(set.insert(10..20), 10);
    assert_eq!(set.insert(20..30), 10);
    assert_eq!(set.insert(5..10), 5);
    assert_eq!((set.len(), set.first()), (1, Some(5..30)));
    assert_eq!(set.insert(12..18), 0);
}

#[test]
fn the_parts_that_were_new_are_named() {
    let mut set = RangeSet::<u64>::new();
    set.insert(10..20);
    set.insert(30..40);
    let mut parts = Vec::new();
    set.insert_with(5..45, |part| parts.push(part));
    assert_eq!(parts, [5..10, 20..30, 40..45]);
}

/// So many ranges that to walk all of them at each step would take minutes.
#[test]
fn ranges_without_number_are_counted_as_they_come() {
    const RANGES: u64 = 100_000;
    let mut set = RangeSet::new();
    for n in 0..RANGES {
        // From the middle outwards, so that neither end is near.
        let n = if n % 2 == 0 { RANGES + n } else { RANGES - n };
        set.insert(2 * n..2 * n + 1);
        assert!(set.contains(&(2 * n..2 * n + 1)) && !set.touches(&(0..1)));
    }
    assert_eq!((set.len() as u64, set.positions()), (RANGES, RANGES));
    for n in (0..2 * RANGES).rev() {
        set.remove(2 * n..2 * n + 1);
        assert!(set.positions() <= RANGES);
    }
    assert!(set.is_empty() && set.positions() == 0);
}

/// More ranges between two questions than are stepped over.
#[test]
fn positions_far_apart_are_looked_up() {
    let mut set = RangeSet::new();
    for n in 0..1_000_u64 {
        set.insert(10 * n..10 * n + 5);
    }
    let mut descending = set.descending();
    for position in [9_994, 9_993, 9_979, 5_004, 5_005, 4_912, 7, 3, 3, 9_000] {
        assert_eq!(descending.range_at(position), set.range_at(position));
        assert_eq!(
            descending.contains(&(position..position + 2)),
            set.contains(&(position..position + 2))
        );
    }
}

proptest! {
    #[test]
    fn behaves_like_rangemap(operations in proptest::collection::vec(operation(), 0..80), probe in range(), step in 1..40_usize) {
        let mut set = RangeSet::new();
        let mut model = rangemap::RangeSet::<u64>::new();
        for operation in operations {
            match operation {
                Operation::Insert(range) => {
                    let mut parts = Vec::new();
                    let mut expected = Vec::new();
                    if !range.is_empty() {
                        expected.extend(model.gaps(&range));
                        model.insert(range.clone());
                    }
                    set.insert_with(range, |part| parts.push(part));
                    prop_assert_eq!(parts, expected);
                }
                Operation::Remove(range) => {
                    if !range.is_empty() {
                        model.remove(range.clone());
                    }
                    set.remove(range);
                }
                Operation::RemoveBelow(bound) => {
                    if bound > 0 {
                        model.remove(0..bound);
                    }
                    set.remove_below(bound);
                }
                Operation::Clear => {
                    model.clear();
                    set.clear();
                }
            }
            let ranges: Vec<_> = set.iter().collect();
            prop_assert_eq!(&ranges, &model.iter().cloned().collect::<Vec<_>>());
            // Disjoint, not adjacent, ascending, none empty.
            prop_assert!(ranges.iter().all(|range| range.start < range.end));
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert_eq!(set.len(), ranges.len());
            prop_assert_eq!(set.is_empty(), ranges.is_empty());
            prop_assert_eq!((set.first(), set.last()), (ranges.first().cloned(), ranges.last().cloned()));
            prop_assert_eq!(set.positions(), ranges.iter().map(|range| range.end - range.start).sum::<u64>());
            prop_assert_eq!(set.range_at(probe.start), model.get(&probe.start).cloned());
            let covered = probe.is_empty() || model.gaps(&probe).next().is_none();
            prop_assert_eq!(set.contains(&probe), covered);
            // From high to low, and then up again.
            let mut descending = set.descending();
            for position in (0..80).rev().step_by(step).chain([probe.start, 40, 41, 39]) {
                prop_assert_eq!(descending.range_at(position), set.range_at(position));
            }
            if !probe.is_empty() {
                let common = model.overlapping(&probe).next();
                let common = common.map(|it| it.start.max(probe.start)..it.end.min(probe.end));
                prop_assert_eq!(set.first_common(&probe), common);
                let mut larger = set.clone();
                larger.insert(probe.clone());
                prop_assert_eq!(set.touches(&probe), larger.len() <= set.len());
            }
        }
    }
}
