//! Gaps that settle, come late, and are resolved.

use super::*;
use alloc::vec;
use alloc::vec::Vec;
use tack_base::StreamOffset;
use tack_base::random::RandomStream;

const RTT: Duration = Duration::from_millis(40);

/// What may be in flight where nothing depends on it, bytes.
const WINDOW: u64 = 1 << 30;

/// The lost gaps, each as its first number and the one after its last.
fn lost(gaps: &Gaps) -> Vec<(u64, u64)> {
    let below = gaps.gaps.range(..gaps.settled);
    below.map(|(start, gap)| (start.0, gap.end.0)).collect()
}

fn few(due: u64) -> Wanted {
    Wanted {
        due,
        all_new: false,
        room: 1 << 20,
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn without_reordering_a_gap_is_lost_at_once() {
    let mut gaps = Gaps::new(Settle::Adaptive);
    gaps.on_number(at(0), 0, StreamOffset::range(1..1 + 1000), 1000, WINDOW);
    gaps.on_number(
        at(1),
        3,
        StreamOffset::range(4001..4001 + 1000),
        1000,
        WINDOW,
    );
    assert!(gaps.settle(at(1), RTT));
    assert_eq!(lost(&gaps), [(1, 3)]);
    assert_eq!(gaps.newest_lost(), Some((PacketNumber(0), PacketNumber(3))));
}

#[test]
fn late_numbers_raise_the_settling_time_and_quiet_lowers_it() {
    let mut gaps = Gaps::new(Settle::Adaptive);
    gaps.on_number(at(0), 0, StreamOffset::range(1..1 + 1000), 1000, WINDOW);
    gaps.on_number(
        at(1),
        2,
        StreamOffset::range(2001..2001 + 1000),
        1000,
        WINDOW,
    );
    gaps.settle(at(1), RTT);
    assert_eq!(
        gaps.on_number(
            at(21),
            1,
            StreamOffset::range(1001..1001 + 1000),
            1000,
            WINDOW
        ),
        Arrival::Late
    );
    assert!(lost(&gaps).is_empty());
    assert_eq!(gaps.settling_time(at(21), RTT), Duration::from_millis(25));
    gaps.on_number(
        at(22),
        4,
        StreamOffset::range(4001..4001 + 1000),
        1000,
        WINDOW,
    );
    assert!(!gaps.settle(at(46), RTT));
    assert_eq!(gaps.deadline(at(46), RTT), Some(at(47)));
    assert!(gaps.settle(at(47), RTT));
    assert_eq!(gaps.settling_time(at(3_000), RTT), Duration::ZERO);
}

/// Skipped numbers that come late by more than RTTmin, as where a queue stands.
#[test]
fn stragglers_are_waited_for_as_long_as_a_round_trip_takes_now() {
    let mut gaps = Gaps::new(Settle::Adaptive);
    for (millis, number) in [(0, 0), (1, 2), (201, 1)] {
        let start = 1 + 1000 * u64::from(number);
        let data = StreamOffset::range(start..start + 1000);
        gaps.on_number(at(millis), number, data, 1000, WINDOW);
    }
    let mut time_of = |round_trip| {
        gaps.set_round_trip(round_trip);
        gaps.settling_time(at(201), RTT)
    };
    // No statement yet, or one that is below RTTmin.
    assert_eq!(time_of(Duration::ZERO), RTT);
    assert_eq!(time_of(RTT / 2), RTT);
    assert_eq!(time_of(RTT * 2), RTT * 2);
    // No longer than what was late asks for.
    assert_eq!(time_of(RTT * 9), Duration::from_millis(250));
    // Other numbers, the same path.
    gaps.set_round_trip(RTT * 2);
    gaps.restart(100, StreamOffset(3001));
    assert_eq!(gaps.round_trip, RTT * 2);
}

#[test]
fn a_gap_matters_until_its_bytes_are_here() {
    let mut gaps = Gaps::new(Settle::Fixed(0));
    gaps.on_number(at(0), 0, StreamOffset::range(1..1 + 1000), 1000, WINDOW);
    // Number 1 was new data; number 2 is a retransmission, and says nothing about where 1 ended.
    gaps.on_number(at(1), 2, StreamOffset::range(1..1 + 1000), 1000, WINDOW);
    gaps.settle(at(1), RTT);
    gaps.resolve(StreamOffset(1001));
    assert_eq!(lost(&gaps).len(), 1);
    gaps.on_number(
        at(2),
        3,
        StreamOffset::range(2001..2001 + 1000),
        1000,
        WINDOW,
    );
    gaps.resolve(StreamOffset(1001));
    assert_eq!(lost(&gaps).len(), 1);
    gaps.resolve(StreamOffset(2001));
    assert!(lost(&gaps).is_empty());
}

#[test]
fn new_data_is_known_to_have_come_above_a_hole() {
    let mut gaps = Gaps::new(Settle::Fixed(0));
    gaps.on_number(at(0), 0, StreamOffset::range(1..1001), 1000, WINDOW);
    // 1 carried 1001..2001; 3 the next thousand; 5 was a retransmission, as no new data is missing
    // around it.
    gaps.on_number(at(1), 2, StreamOffset::range(2001..3001), 1000, WINDOW);
    gaps.on_number(at(2), 4, StreamOffset::range(4001..5001), 1000, WINDOW);
    gaps.on_number(at(3), 6, StreamOffset::range(5001..6001), 1000, WINDOW);
    gaps.settle(at(3), RTT);
    let mut ahead = RangeSet::new();
    ahead.insert(StreamOffset::range(2001..6001));
    gaps.resolve_ahead(StreamOffset(1001), &ahead);
    assert_eq!(lost(&gaps), [(1, 2), (5, 6)]);
}

#[test]
fn the_newest_data_received_may_have_left_before() {
    let mut gaps = Gaps::new(Settle::Fixed(0));
    gaps.on_number(at(0), 0, StreamOffset::range(1..1001), 1000, WINDOW);
    // 1 carried 1001..2001, 2 the next thousand. Both got lost; 3 repairs 1.
    gaps.on_number(at(1), 3, StreamOffset::range(1001..2001), 1000, WINDOW);
    assert!(gaps.settle(at(1), RTT));
    gaps.resolve(StreamOffset(2001));
    assert_eq!(lost(&gaps).len(), 1, "2 is not repaired");
    gaps.on_number(at(2), 4, StreamOffset::range(3001..4001), 1000, WINDOW);
    gaps.resolve(StreamOffset(2001));
    assert_eq!(lost(&gaps).len(), 1);
    gaps.on_number(at(3), 5, StreamOffset::range(2001..3001), 1000, WINDOW);
    gaps.resolve(StreamOffset(4001));
    assert!(lost(&gaps).is_empty());
    // Nothing is left that could make new data doubtful.
    gaps.on_number(at(4), 6, StreamOffset::range(4001..5001), 1000, WINDOW);
    gaps.on_number(at(4), 8, StreamOffset::range(6001..7001), 1000, WINDOW);
    assert_eq!(
        gaps.carried.of(PacketNumber(7)),
        Some(StreamOffset::range(5001..6001))
    );
}

/// A sender of segments of random sizes that repairs, in random order, what a path drops in bursts,
/// delays or reorders.
#[test]
fn a_gap_is_not_taken_for_less_than_it_carried() {
    let (mut known, mut resolved) = (0, 0);
    for seed in 0..200 {
        let mut random = RandomStream::new(seed, "gaps", 0);
        let mut gaps = Gaps::new(Settle::Fixed(0));
        let mut carried: Vec<Range<StreamOffset>> = Vec::new();
        let mut dropped: Vec<Range<StreamOffset>> = Vec::new();
        let mut late: Vec<(u32, Range<StreamOffset>)> = Vec::new();
        let mut received = RangeSet::new();
        let (mut sent_to, mut received_to) = (StreamOffset(1), StreamOffset(1));
        let mut burst = 0;
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
            // Some come late, after others that left later.
            if random.below(20) == 0 {
                late.push((number, data));
                continue;
            }
            let mut arrivals = vec![(number, data)];
            if random.below(4) == 0 && !late.is_empty() {
                arrivals.push(late.swap_remove(random.below(late.len() as u64) as usize));
            }
            for (arriving, data) in arrivals {
                received.insert(data.clone());
                received_to = received
                    .range_at(received_to)
                    .map_or(received_to, |run| run.end);
                gaps.on_number(at(u64::from(number)), arriving, data, 1_000, WINDOW);
            }
            gaps.settle(at(u64::from(number)), RTT);
            for (start, gap) in gaps.gaps.range(..gaps.settled) {
                for number in start.0..gap.end.0 {
                    let truth = &carried[number as usize];
                    assert!(truth.end <= gap.limit, "seed {seed}, {gap:?}, {truth:?}");
                    if let Some(carried) = gaps.carried.of(PacketNumber(number)) {
                        known += 1;
                        assert!(carried.start <= truth.start && truth.end <= carried.end);
                    }
                }
            }
            let before = lost(&gaps).len();
            gaps.resolve(received_to);
            resolved += before - lost(&gaps).len();
        }
    }
    assert!(known > 100_000 && resolved > 3_000, "{known} {resolved}");
}

#[test]
fn numbers_wrap_and_floods_are_bounded() {
    let mut gaps = Gaps::new(Settle::Fixed(1000));
    let window = 64 << 10;
    for number in (0..10_000_u32).map(|n| n * 2) {
        let data = StreamOffset::range(u64::from(number)..u64::from(number) + 1000);
        gaps.on_number(at(1), number, data, 1000, window);
    }
    assert_eq!(gaps.gaps.len() as u64, FEW_GAPS);
    // A larger window has room for more, of segments of the usual size.
    for number in (20_000..60_000_u32).step_by(2) {
        let data = StreamOffset::range(u64::from(number)..u64::from(number) + 1000);
        gaps.on_number(at(1), number, data, 1, 1 << 20);
    }
    assert_eq!(gaps.gaps.len() as u64, (1 << 20) / BYTES_PER_GAP);
    // Nor do numbers that come late cut one long gap into as many as they like.
    gaps.on_number(
        at(1),
        1_000_000,
        StreamOffset::range(1 << 30..(1 << 30) + 1000),
        1000,
        WINDOW,
    );
    for number in (100_000..900_000_u32).step_by(2) {
        gaps.on_number(
            at(2),
            number,
            StreamOffset::range(5..5 + 1000),
            1000,
            1 << 20,
        );
    }
    assert_eq!(gaps.gaps.len() as u64, (1 << 20) / BYTES_PER_GAP + 1);
    let beyond = PacketNumber(1 << 32);
    gaps.next = beyond;
    let next = gaps.on_number(at(2), 0, StreamOffset::range(5..5 + 1000), 1000, window);
    assert_eq!((next, gaps.largest()), (Arrival::Ahead, Some(beyond)));
}

/// A number that comes late may be the newest data so far.
#[test]
fn late_data_moves_what_later_gaps_can_have_carried() {
    let mut gaps = Gaps::new(Settle::Fixed(0));
    gaps.on_number(at(0), 0, StreamOffset::range(1..1001), 1000, WINDOW);
    // 2 is a retransmission; 1 carried the next thousand, and comes late.
    gaps.on_number(at(1), 2, StreamOffset::range(1..1001), 1000, WINDOW);
    gaps.on_number(at(2), 1, StreamOffset::range(1001..2001), 1000, WINDOW);
    // 3 carried the thousand after that, and is lost. So are the next ones but for one
    // retransmission.
    gaps.on_number(at(3), 4, StreamOffset::range(1..1001), 1000, WINDOW);
    gaps.settle(at(3), RTT);
    gaps.resolve(StreamOffset(2001));
    assert_eq!(lost(&gaps), [(3, 4)], "its data is not here");
    gaps.resolve(StreamOffset(3001));
    assert!(lost(&gaps).is_empty());
}

/// Tens of thousands of gaps, each from its beginning to its end: what is done for a segment and
/// for a report does not grow with how many there are.
#[test]
fn no_step_walks_all_gaps() {
    const GAPS: u64 = 50_000;
    let mut gaps = Gaps::new(Settle::Fixed(0));
    let mut received = RangeSet::new();
    let (mut reported, mut reports) = (0, 0_u64);
    // Every second segment is lost, and reported with the next one.
    let data = |segment: u64| StreamOffset::range(1 + 1000 * segment..1001 + 1000 * segment);
    for number in (0..2 * GAPS).step_by(2) {
        received.insert(data(number));
        gaps.on_number(at(number), number as u32, data(number), 1000, WINDOW);
        gaps.on_data(&data(number));
        gaps.settle(at(number), RTT);
        gaps.resolve(StreamOffset(1001));
        gaps.resolve_ahead(StreamOffset(1001), &received);
        gaps.report(few(4), at(number), RTT, |_| {
            reported += 1;
            true
        });
        reports += 1;
    }
    assert_eq!(lost(&gaps).len() as u64, GAPS - 1);
    // They are repaired from the top, which shows in what is received above the first hole alone.
    for (number, segment) in (2 * GAPS - 1..).zip((0..GAPS - 1).rev().map(|n| 2 * n + 1)) {
        received.insert(data(segment));
        gaps.on_number(at(number), number as u32, data(segment), 1000, WINDOW);
        gaps.on_data(&data(segment));
        gaps.resolve(StreamOffset(1001));
        gaps.resolve_ahead(StreamOffset(1001), &received);
    }
    assert!(lost(&gaps).is_empty() && gaps.gaps.is_empty());
    assert!(
        reported <= 4 * reports,
        "{reported} reported in {reports} reports"
    );
    assert!(gaps.visits <= 2 * GAPS, "{} visits", gaps.visits);
}

/// What the gaps are, with a list of missing numbers as the model: every number that was skipped
/// and has not come is in a gap until its limit is here, and every lost one has its turn.
#[test]
fn behaves_like_a_list_of_missing_numbers() {
    for seed in 0..300 {
        let mut random = RandomStream::new(seed, "gaps", 1);
        let mut gaps = Gaps::new(Settle::Fixed(500));
        let mut missing: Vec<u64> = Vec::new();
        let (mut next, mut now, mut position) = (0_u64, 1_000, 1_u64);
        for _ in 0..300 {
            now += random.below(8);
            match random.below(10) {
                0..5 => {
                    let skip = if random.below(3) == 0 {
                        random.below(6)
                    } else {
                        0
                    };
                    missing.extend(next..next + skip);
                    next += skip + 1;
                    let number = next - 1;
                    let data = StreamOffset::range(1 + 1000 * number..1001 + 1000 * number);
                    let arrival = gaps.on_number(at(now), number as u32, data, 1000, WINDOW);
                    assert_eq!(arrival, Arrival::Ahead);
                }
                5..8 if !missing.is_empty() => {
                    let index = random.below(missing.len() as u64) as usize;
                    let number = missing.swap_remove(index);
                    let data = StreamOffset::range(1 + 1000 * number..1001 + 1000 * number);
                    gaps.on_number(at(now), number as u32, data.clone(), 1000, WINDOW);
                    let again = gaps.on_number(at(now), number as u32, data, 1000, WINDOW);
                    assert_eq!(again, Arrival::Seen);
                }
                8 => {
                    // All that was sent up to some number is here.
                    position = position.max(1 + 1000 * random.below(next + 1));
                    gaps.resolve(StreamOffset(position));
                }
                _ => {
                    let mut last = 0;
                    gaps.report(few(3), at(now), RTT, |numbers| {
                        assert!(numbers.start.0 >= last && numbers.end.0 <= next);
                        last = numbers.end.0;
                        true
                    });
                }
            }
            gaps.settle(at(now), RTT);
            missing.retain(|number| 1 + 1000 * number >= position);
            let mut open: Vec<u64> = gaps
                .gaps
                .iter()
                .flat_map(|(start, gap)| start.0..gap.end.0)
                .collect();
            // A gap that lies on both sides of the position is still whole.
            open.retain(|number| 1 + 1000 * number >= position);
            missing.sort_unstable();
            assert_eq!(open, missing, "seed {seed}");
            let limits: Vec<_> = gaps.gaps.values().map(|gap| gap.limit).collect();
            assert!(limits.is_sorted(), "seed {seed}: {limits:?}");
            let mut order = Vec::new();
            for (start, gap) in gaps.gaps.range(..gaps.settled) {
                order.push(*start);
                gaps.order.remove(*start, gap.reported);
            }
            assert_eq!(gaps.lost(), 0, "seed {seed}");
            for start in order {
                gaps.order.add(start, gaps.gaps[&start].reported);
            }
            let since = gaps.frontier.next();
            let counted: u64 = gaps
                .gaps
                .range(since..)
                .map(|(start, gap)| gap.end - *start)
                .sum();
            assert_eq!(gaps.missing, counted, "seed {seed}");
        }
    }
}
