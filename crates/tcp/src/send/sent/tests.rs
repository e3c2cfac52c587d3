//! The log against a plain list of segments, and what reports cost.

use super::*;
use alloc::vec;
use proptest::prelude::*;
use tack_base::StreamOffset;
use tack_base::random::RandomStream;

const MSS: u64 = 1000;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// `segments` full segments, number `n` sent at millisecond `n`.
fn sent(segments: u64) -> SentLog {
    let mut log = SentLog::new();
    for n in 0..segments {
        let range = StreamOffset::range(1 + n * MSS..1 + (n + 1) * MSS);
        log.push(range, at(n), FlightStart::default(), SendToken::default());
    }
    log
}

#[test]
fn blocks_smaller_than_segments_leave_nothing_behind() {
    let mut log = sent(1000);
    for n in 0..500_000 {
        let delivered =
            log.acknowledge_selectively(StreamOffset::range(2 * n + 1..2 * n + 2), |_| {});
        assert_eq!(delivered, 0);
    }
    assert_eq!((log.sacked.len(), log.visits), (0, 0));
    // A block that holds whole segments and parts of others counts for the whole ones.
    let mut delivered = vec![];
    let bytes = log.acknowledge_selectively(StreamOffset::range(1500..4500), |segment| {
        delivered.push(segment.number)
    });
    assert_eq!(
        (bytes, delivered),
        (2 * MSS, vec![PacketNumber(2), PacketNumber(3)])
    );
    assert_eq!(
        (log.sacked.len(), log.sacked.first()),
        (1, Some(StreamOffset::range(2001..4001)))
    );
    log.check().expect("the sums agree");
}

/// A departure is found, or missed, wherever the search begins.
#[test]
fn what_left_when_does_not_depend_on_where_the_search_begins() {
    let mut log = sent(40);
    // Several that left at once, a pause, and records that are gone.
    for n in 40..44 {
        let range = StreamOffset::range(1 + n * MSS..1 + (n + 1) * MSS);
        log.push(range, at(60), FlightStart::default(), SendToken::default());
    }
    log.acknowledge(StreamOffset::range(0..1 + 10 * MSS).end, |_| {});
    assert_eq!(log.first_number, PacketNumber(10));
    for millis in 0..70 {
        let left = match millis {
            0..10 => None,
            10..40 | 60 => Some(true),
            _ => Some(false),
        };
        for near in (0..60)
            .map(|number| Some(PacketNumber(number)))
            .chain([None])
        {
            let departure = at(millis).as_micros() as u32;
            assert_eq!(
                log.left_at(at(80), departure, near),
                left,
                "{millis} {near:?}"
            );
        }
    }
}

/// A receiver tells the same blocks and the same gaps in every report.
#[test]
fn what_is_known_is_not_looked_at_again() {
    const SEGMENTS: u64 = 20_000;
    let mut log = sent(SEGMENTS);
    for _ in 0..100 {
        // Every second segment arrived, the others are lost.
        for n in (1..SEGMENTS).step_by(2) {
            log.acknowledge_selectively(
                StreamOffset::range(1 + n * MSS..1 + (n + 1) * MSS),
                |_| {},
            );
        }
        log.mark_numbers_lost(PacketNumber(0).run(SEGMENTS), at(SEGMENTS));
    }
    assert_eq!(log.visits, SEGMENTS);
    assert_eq!(log.lost_bytes(), SEGMENTS / 2 * MSS);
    // They leave again, and the old numbers stay in the lists.
    while let Some(range) = log.first_lost() {
        log.push_retransmission(
            range,
            at(SEGMENTS),
            FlightStart::default(),
            SendToken::default(),
        );
    }
    log.outstanding.looked_at.take();
    for _ in 0..100 {
        // As many gaps as fit into a report, all of them settled.
        for gap in 0..700 {
            let first = gap * (SEGMENTS / 700);
            log.mark_numbers_lost(PacketNumber(first).run(SEGMENTS / 700), at(SEGMENTS));
        }
    }
    let searched = log.outstanding.looked_at.take();
    assert_eq!(log.visits, SEGMENTS);
    assert!(searched <= 100 * (SEGMENTS / 64 + 700), "{searched} words");
    log.check().expect("the sums agree");
}

/// A block that joins thousands of others costs what it adds.
#[test]
fn a_block_that_grows_costs_what_it_adds() {
    const SEGMENTS: u64 = 10_000;
    let mut log = sent(SEGMENTS);
    for n in 2..SEGMENTS {
        log.acknowledge_selectively(StreamOffset::range(1 + MSS..1 + n * MSS), |_| {});
    }
    assert_eq!(log.visits, SEGMENTS - 2);
}

/// One segment of the model.
#[derive(Clone, Debug)]
struct Plain {
    range: Range<u64>,
    latest: u64,
    fate: Fate,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn behaves_like_a_list_of_segments(seed in any::<u64>(), steps in 10_usize..400) {
        let mut random = RandomStream::new(seed, "log", 0);
        let mut log = SentLog::new();
        let mut model: Vec<Plain> = Vec::new();
        let mut left_at: Vec<u64> = Vec::new();
        let (mut end, mut una) = (1, 1);
        for now in 0..steps as u64 {
            let (flight, token) = (FlightStart::default(), SendToken::default());
            match random.below(8) {
                0..3 => {
                    let len = 1 + random.below(3);
                    log.push(StreamOffset::range(end..end + len), at(now), flight, token);
                    let latest = left_at.len() as u64;
                    model.push(Plain { range: end..end + len, latest, fate: Fate::InFlight });
                    left_at.push(now);
                    end += len;
                }
                3 => {
                    let start = una + random.below(end - una + 1);
                    let block = start..end.min(start + random.below(8));
                    let mut expected = 0;
                    for segment in &mut model {
                        let inside = block.start <= segment.range.start && segment.range.end <= block.end;
                        if inside && segment.fate != Fate::Sacked {
                            segment.fate = Fate::Sacked;
                            expected += segment.range.end - segment.range.start;
                        }
                    }
                    prop_assert_eq!(log.acknowledge_selectively(StreamOffset::range(block), |_| {}), expected);
                }
                4 => {
                    let first = random.below(left_at.len() as u64 + 1);
                    let named = first..first + random.below(10);
                    let youngest = now.saturating_sub(random.below(20));
                    let mut expected = 0;
                    for segment in &mut model {
                        let left = left_at[segment.latest as usize];
                        if segment.fate == Fate::InFlight && named.contains(&segment.latest) && left <= youngest {
                            segment.fate = Fate::Lost;
                            expected += segment.range.end - segment.range.start;
                        }
                    }
                    prop_assert_eq!(log.mark_numbers_lost(PacketNumber(named.start)..PacketNumber(named.end), at(youngest)), expected);
                }
                5 => {
                    // The lowest one that is lost, or now and then the oldest of all.
                    let first = match random.below(4) {
                        0 => model.first().is_some_and(|segment| segment.fate != Fate::Sacked).then_some(0),
                        _ => {
                            let first = model.iter().position(|segment| segment.fate == Fate::Lost);
                            let range = first.map(|first| StreamOffset::range(model[first].range.clone()));
                            prop_assert_eq!(log.first_lost(), range);
                            first
                        }
                    };
                    if let Some(first) = first {
                        // All of it, or as much of it as the path takes now.
                        let whole = model[first].range.clone();
                        let end = whole.start + 1 + random.below(whole.end - whole.start);
                        log.push_retransmission(StreamOffset::range(whole.start..end), at(now), flight, token);
                        if end < whole.end {
                            let rest = Plain { range: end..whole.end, ..model[first].clone() };
                            model.insert(first + 1, rest);
                            model[first].range.end = end;
                        }
                        model[first].fate = Fate::InFlight;
                        model[first].latest = left_at.len() as u64;
                        left_at.push(now);
                        // Nothing has a number that did not leave.
                        prop_assert_eq!(log.next_number().0, left_at.len() as u64);
                    }
                }
                6 => {
                    una += random.below(end - una + 1).min(5);
                    model.retain(|segment| segment.range.end > una);
                    if let Some(first) = model.first_mut() {
                        first.range.start = first.range.start.max(una);
                    }
                    log.acknowledge(StreamOffset(una), |_| {});
                }
                _ if random.below(10) == 0 => {
                    for segment in &mut model {
                        if segment.fate == Fate::Lost {
                            segment.fate = Fate::InFlight;
                        }
                    }
                    log.unmark_lost();
                }
                _ => {}
            }
            prop_assert_eq!(log.check(), Ok(()));
            let sum = |fate| -> u64 {
                let those = model.iter().filter(|segment| segment.fate == fate);
                those.map(|segment| segment.range.end - segment.range.start).sum()
            };
            prop_assert_eq!(log.in_flight(), sum(Fate::InFlight));
            prop_assert_eq!(log.lost_bytes(), sum(Fate::Lost));
            prop_assert_eq!(log.sacked_bytes(), sum(Fate::Sacked));
            let flying = model.iter().filter(|segment| segment.fate == Fate::InFlight);
            let oldest = flying.map(|segment| segment.latest).min();
            prop_assert_eq!(log.oldest_outstanding().map(|(number, _)| number.0), oldest);
        }
    }
}
