//! What reports say: which gaps they list, and whether a segment brought nothing new.

use super::super::schedule::BASE_GAPS;
use super::*;

#[test]
fn reports_say_whether_the_largest_number_brought_nothing_new() {
    let mut receiver = Receiver::new("tack");
    // Number, segment, and what the report says. Copies that the network makes, of a repetition or
    // of an original, change nothing: they have the number of the other.
    let arrivals = [
        (0, 0, false),
        (1, 1, false),
        (2, 0, true),
        (2, 0, true),
        (3, 2, false),
        (3, 2, false),
        (5, 4, false),
        (6, 3, false),
    ];
    for (turn, (number, segment, repeated)) in arrivals.into_iter().enumerate() {
        let now = at(100 + 20 * turn as u64);
        receiver.receive(now, number, segment);
        let (option, _) = receiver.report(now, AckReason::Threshold);
        let TackOption::Report(report) = option else {
            panic!("{option:?}");
        };
        assert_eq!(report.repeated, repeated, "{number} with segment {segment}");
    }
}

#[test]
fn with_one_gap_a_report_each_gap_has_its_turn_before_one_is_repeated() {
    let mut receiver = Receiver::new("tack:rich=off");
    for number in 0..4 {
        receiver.receive(at(0), 2 * number, (2 * number).into());
    }
    // The largest is 6; 1, 3 and 5 are missing.
    let mut told = Vec::new();
    for turn in 0..5 {
        let (_, gaps) = receiver.report(at(1 + turn), AckReason::Timer);
        assert_eq!(gaps.len(), 1);
        told.push(6 - gaps[0].0);
    }
    assert_eq!(told, [1, 3, 5, 1, 3]);
    // A round trip later none has been told lately: the one told longest ago comes first.
    let (_, gaps) = receiver.report(at(100), AckReason::Timer);
    assert_eq!(6 - gaps[0].0, 5);
    // The repair of 3 is known to have come, although a hole below it is still open.
    receiver.receive(at(101), 7, 3);
    receiver.receive(at(101), 8, 1_000);
    let (_, gaps) = receiver.report(at(102), AckReason::Timer);
    assert_eq!(8 - gaps[0].0, 1);
    // Nothing had arrived for a round trip before. So both remaining gaps are new again, and
    // reports name them in turn.
    for (turn, told) in [5, 1, 5].into_iter().enumerate() {
        let (_, gaps) = receiver.report(at(103 + turn as u64), AckReason::Timer);
        assert_eq!(8 - gaps[0].0, told, "{turn}");
    }
    // A round trip later they were reported a moment ago, and often before: there is nothing to say
    // for another one.
    for turn in 0..6 {
        let (_, gaps) = receiver.report(at(160 + turn), AckReason::Timer);
        assert_eq!(gaps.is_empty(), turn >= 2, "{turn}: {gaps:?}");
    }
    let (_, gaps) = receiver.report(at(230), AckReason::Timer);
    assert_eq!(gaps.len(), 1);
}

/// A lost retransmission whose report was lost too held a stream up for five seconds: reports had
/// turned to the oldest gaps again, all of them filled long ago, before they came to it.
#[test]
fn every_lost_gap_is_told_again_in_turn_however_many_there_are() {
    for count in [300, 2_000] {
        every_one_of(count);
    }
}

/// Every one of `count` lost gaps is reported again, below a hole that keeps them all.
fn every_one_of(count: u32) {
    let mut receiver = Receiver::new("tack");
    for index in 0..count {
        receiver.receive(at(1), 2 * index, 2 * u64::from(index));
    }
    // All have been told once; ten milliseconds are a period, and five of those a round trip until
    // word is outdated.
    let mut told_again = RangeSet::new();
    // A segment pays for one gap that is told again.
    let reports = 3 * u64::from(count);
    for number in 0..reports {
        let now = at(1_000 + 10 * number);
        let newest = 2 * count + number as u32;
        receiver.receive(now, newest, u64::from(newest));
        let (_, gaps) = receiver.report(now, AckReason::Threshold);
        // The first round tells what was never told.
        if number >= 2 * reports / 4 {
            assert!(gaps.len() as u64 <= BASE_GAPS + 1, "{}", gaps.len());
            for (distance, len) in gaps {
                let start = u64::from(newest) - distance;
                told_again.insert(start..start + len);
            }
        }
    }
    let missing: Vec<_> = (0..u64::from(count) - 1)
        .map(|index| 2 * index + 1)
        .filter(|number| !told_again.contains(&(*number..number + 1)))
        .collect();
    assert!(missing.is_empty(), "never told again: {missing:?}");
}

/// A hostile sender leaves holes, and lets each of its segments draw a report. Lists of all that is
/// due would be over a hundred times the work of a segment in order.
#[test]
fn where_each_segment_draws_a_report_it_pays_for_what_that_repeats() {
    let mut receiver = Receiver::new("tack");
    let (mut told, segments) = (0, 2_000);
    for index in 0..segments {
        // Far enough apart that what was reported before is due again.
        let now = at(100 * (1 + u64::from(index)));
        receiver.receive(now, 2 * index, 2 * u64::from(index));
        let (_, gaps) = receiver.report(now, AckReason::Threshold);
        told += gaps.len();
    }
    // Each gap once as a new one, one for each segment that is repeated, and one that is named anew
    // after a silence.
    assert!(told > segments as usize, "{told}");
    assert!(told <= 3 * segments as usize + 200, "{told}");
}
