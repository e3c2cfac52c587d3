//! Gaps that settle, come late, and are resolved.

use super::*;
use alloc::vec::Vec;
use tack_base::random::RandomStream;

const RTT: Duration = Duration::from_millis(40);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn without_reordering_a_gap_is_lost_at_once() {
    let mut gaps = Gaps::new(Settle::Adaptive);
    gaps.on_number(at(0), 0, 1..1 + 1000, 1000);
    gaps.on_number(at(1), 3, 4001..4001 + 1000, 1000);
    assert!(gaps.settle(at(1), RTT));
    assert_eq!(gaps.lost_mut()[0].numbers, 1..3);
    assert_eq!(gaps.newest_lost(), Some((0, 3)));
}

#[test]
fn late_numbers_raise_the_settling_time_and_quiet_lowers_it() {
    let mut gaps = Gaps::new(Settle::Adaptive);
    gaps.on_number(at(0), 0, 1..1 + 1000, 1000);
    gaps.on_number(at(1), 2, 2001..2001 + 1000, 1000);
    gaps.settle(at(1), RTT);
    assert_eq!(
        gaps.on_number(at(21), 1, 1001..1001 + 1000, 1000),
        Arrival::Late
    );
    assert!(gaps.lost_mut().is_empty());
    assert_eq!(gaps.settling_time(at(21), RTT), Duration::from_millis(25));
    gaps.on_number(at(22), 4, 4001..4001 + 1000, 1000);
    assert!(!gaps.settle(at(46), RTT));
    assert_eq!(gaps.deadline(at(46), RTT), Some(at(47)));
    assert!(gaps.settle(at(47), RTT));
    assert_eq!(gaps.settling_time(at(3_000), RTT), Duration::ZERO);
}

#[test]
fn a_gap_matters_until_its_bytes_are_here() {
    let mut gaps = Gaps::new(Settle::Fixed(0));
    gaps.on_number(at(0), 0, 1..1 + 1000, 1000);
    // Number 1 was new data; number 2 is a retransmission, and says nothing about where 1 ended.
    gaps.on_number(at(1), 2, 1..1 + 1000, 1000);
    gaps.settle(at(1), RTT);
    gaps.resolve(1001);
    assert_eq!(gaps.lost_mut().len(), 1);
    gaps.on_number(at(2), 3, 2001..2001 + 1000, 1000);
    gaps.resolve(1001);
    assert_eq!(gaps.lost_mut().len(), 1);
    gaps.resolve(2001);
    assert!(gaps.lost_mut().is_empty());
}

#[test]
fn new_data_is_known_to_have_come_above_a_hole() {
    let mut gaps = Gaps::new(Settle::Fixed(0));
    gaps.on_number(at(0), 0, 1..1001, 1000);
    // 1 carried 1001..2001; 3 the next thousand; 5 was a retransmission, as no new data is missing around it.
    gaps.on_number(at(1), 2, 2001..3001, 1000);
    gaps.on_number(at(2), 4, 4001..5001, 1000);
    gaps.on_number(at(3), 6, 5001..6001, 1000);
    gaps.settle(at(3), RTT);
    let mut ahead = RangeSet::new();
    ahead.insert(2001..6001);
    gaps.resolve_ahead(1001, &ahead);
    let open: Vec<_> = gaps
        .lost_mut()
        .iter()
        .map(|gap| gap.numbers.start)
        .collect();
    assert_eq!(open, [1, 5]);
}

#[test]
fn the_newest_data_received_may_have_left_before() {
    let mut gaps = Gaps::new(Settle::Fixed(0));
    gaps.on_number(at(0), 0, 1..1001, 1000);
    // 1 carried 1001..2001, 2 the next thousand. Both got lost; 3 repairs 1.
    gaps.on_number(at(1), 3, 1001..2001, 1000);
    assert!(gaps.settle(at(1), RTT));
    gaps.resolve(2001);
    assert_eq!(gaps.lost_mut().len(), 1, "2 is not repaired");
    gaps.on_number(at(2), 4, 3001..4001, 1000);
    gaps.resolve(2001);
    assert_eq!(gaps.lost_mut().len(), 1);
    gaps.on_number(at(3), 5, 2001..3001, 1000);
    gaps.resolve(4001);
    assert!(gaps.lost_mut().is_empty());
    // Nothing is left that could make new data doubtful.
    gaps.on_number(at(4), 6, 4001..5001, 1000);
    gaps.on_number(at(4), 8, 6001..7001, 1000);
    assert_eq!(gaps.waiting[0].carried, Some(5001..6001));
}

/// A sender of segments of random sizes that repairs, in random order, what a path drops in bursts.
#[test]
fn a_gap_is_not_taken_for_less_than_it_carried() {
    let (mut known, mut resolved) = (0, 0);
    for seed in 0..200 {
        let mut random = RandomStream::new(seed, "gaps", 0);
        let mut gaps = Gaps::new(Settle::Fixed(0));
        let mut carried: Vec<Range<u64>> = Vec::new();
        let mut dropped: Vec<Range<u64>> = Vec::new();
        let mut received = RangeSet::new();
        let (mut sent_to, mut received_to, mut burst) = (1, 1, 0);
        for number in 0..1_000_u32 {
            let data = if !dropped.is_empty() && random.below(4) == 0 {
                dropped.swap_remove(random.below(dropped.len() as u64) as usize)
            } else {
                let len = if random.below(4) == 0 {
                    1 + random.below(1_000)
                } else {
                    1_000
                };
                sent_to += len;
                sent_to - len..sent_to
            };
            carried.push(data.clone());
            if burst == 0 && random.below(20) == 0 {
                let longest = 1 << random.below(5);
                burst = 1 + random.below(longest);
            }
            if burst > 0 {
                burst -= 1;
                dropped.push(data);
                continue;
            }
            received.insert(data.clone());
            received_to = received
                .range_at(received_to)
                .map_or(received_to, |run| run.end);
            gaps.on_number(at(u64::from(number)), number, data, 1_000);
            gaps.settle(at(u64::from(number)), RTT);
            for gap in gaps.lost_mut() {
                for number in gap.numbers.clone() {
                    let truth = &carried[number as usize];
                    assert!(truth.end <= gap.limit, "seed {seed}, {gap:?}, {truth:?}");
                    if let Some(carried) = &gap.carried {
                        known += 1;
                        assert!(carried.start <= truth.start && truth.end <= carried.end);
                    }
                }
            }
            let before = gaps.lost_mut().len();
            gaps.resolve(received_to);
            resolved += before - gaps.lost_mut().len();
        }
    }
    assert!(known > 100_000 && resolved > 3_000, "{known} {resolved}");
}

#[test]
fn numbers_wrap_and_floods_are_bounded() {
    let mut gaps = Gaps::new(Settle::Fixed(1000));
    for number in (0..10_000_u32).map(|n| n * 2) {
        gaps.on_number(
            at(1),
            number,
            u64::from(number)..u64::from(number) + 1000,
            1000,
        );
    }
    assert!(gaps.waiting.len() + gaps.lost.len() <= MAX_GAPS);
    // Nor do numbers that come late cut one long gap into as many as they like.
    gaps.on_number(at(1), 1_000_000, 1 << 30..(1 << 30) + 1000, 1000);
    for number in (30_000..900_000_u32).step_by(2) {
        gaps.on_number(at(2), number, 5..5 + 1000, 1000);
    }
    assert!(gaps.waiting.len() + gaps.lost.len() <= MAX_GAPS);
    gaps.next = u64::from(u32::MAX) + 1;
    assert_eq!(gaps.on_number(at(2), 0, 5..5 + 1000, 1000), Arrival::Ahead);
    assert_eq!(gaps.largest(), Some(1 << 32));
}
