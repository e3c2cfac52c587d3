//! When reports are due.

use super::*;

/// While the sender finds more and more capacity a report leaves for L segments, but four in
/// RTTmin/beta at most.
#[test]
fn startup_is_told_sixteen_times_in_a_round_trip() {
    let at = Instant::from_micros;
    let params = TackParams::default();
    let gaps = Gaps::new(params.settle);
    for (startup, due) in [(true, 2_500), (false, 10_000)] {
        let mut schedule = Schedule::new(params);
        schedule.peer_mss = 1_000;
        schedule.set_rtt_min(Duration::from_millis(40));
        schedule.startup = startup;
        let rate = Some(Rate::from_bytes_per_sec(10_000_000));
        schedule.on_rate(at(1_000), rate, rate);
        schedule.on_data(at(1_000), Some(2_000), 1 << 24);
        // The first one leaves at once.
        let first = schedule.due(&gaps, false).expect("two segments arrived");
        assert!(first.at <= at(1_000) && first.reason == AckReason::Threshold);
        schedule.on_report(at(1_000), &gaps);
        // Two segments that come soon wait, and those that come late do not.
        for (arrives, leaves) in [(1_200, 1_000 + due), (12_000, 12_000)] {
            schedule.pending = 0;
            schedule.on_data(at(arrives), Some(2_000), 1 << 24);
            let next = schedule.due(&gaps, false).expect("two segments arrived");
            assert_eq!(next.at.max(at(arrives)), at(leaves), "{startup}, {arrives}");
        }
    }
}

/// A small window: the sender stands still until a report opens it. The last but one does so
/// too, for a full segment, and is as good as a copy of the last.
#[test]
fn a_report_that_lets_the_sender_go_on_is_a_copy_of_the_next() {
    let at = Instant::from_millis;
    // Room beyond the last segment, when that arrives, and whether its report is repeated.
    for (window_left, arrival, is_repeated) in [
        (1_500, 3, false),
        // Less than a full segment.
        (900, 3, true),
        // The report before it has been answered.
        (1_500, 60, true),
        // A large window: what limits the sender is not known.
        (1 << 24, 3, true),
    ] {
        let params = TackParams::default();
        let gaps = Gaps::new(params.settle);
        let mut schedule = Schedule::new(params);
        schedule.peer_mss = 1_000;
        schedule.set_rtt_min(Duration::from_millis(40));
        schedule.ack_loss_rate = 0.02;
        let rate = Some(Rate::from_bytes_per_sec(100_000));
        schedule.on_rate(at(0), rate, rate);
        schedule.on_data(at(0), Some(2_000), window_left);
        schedule.on_report(at(1), &gaps);
        schedule.on_data(at(arrival), Some(1_000), window_left);
        schedule.on_window(Some(window_left), &gaps);
        schedule.on_report(at(arrival), &gaps);
        let repeat = schedule.due(&gaps, false);
        assert_eq!(repeat.is_some(), is_repeated, "{window_left}, {arrival}");
    }
}

/// Reports get lost. What a path copies is answered, but the answer is a copy of the last report,
/// and needs none itself.
#[test]
fn a_copy_that_the_path_made_draws_one_report() {
    let at = Instant::from_millis;
    let gaps = Gaps::new(TackParams::default().settle);
    for (again, copies) in [(false, 0), (true, 3)] {
        let mut schedule = Schedule::new(TackParams::default());
        schedule.peer_mss = 1_000;
        schedule.set_rtt_min(Duration::from_millis(40));
        schedule.ack_loss_rate = 0.25;
        schedule.on_data(at(0), Some(500), 1 << 24);
        schedule.pushed = true;
        schedule.on_report(at(10), &gaps);
        // Each that is due leaves.
        while let Some(report) = schedule.due(&gaps, false) {
            schedule.on_report(report.at, &gaps);
        }
        schedule.on_data(at(1_000), None, 1 << 24);
        if again {
            schedule.on_news();
        }
        schedule.on_repetition(again);
        schedule.on_report(at(1_000), &gaps);
        let mut more = 0;
        while let Some(report) = schedule.due(&gaps, false) {
            schedule.on_report(report.at, &gaps);
            more += 1;
        }
        assert!(more >= copies && (again || more == 0), "{again}: {more}");
    }
}

/// An answer to a message is repeated until it arrives, so that no report need be: the sender has
/// nothing more to send before. Data within a stream is one copy.
#[test]
fn an_answer_ends_the_copies_of_a_report() {
    let at = Instant::from_millis;
    let gaps = Gaps::new(TackParams::default().settle);
    for (pushed, is_repeated) in [(true, false), (false, true)] {
        let mut schedule = Schedule::new(TackParams::default());
        schedule.peer_mss = 1_000;
        schedule.set_rtt_min(Duration::from_millis(40));
        schedule.ack_loss_rate = 0.25;
        schedule.on_data(at(0), Some(2_000), 1 << 24);
        schedule.on_report(at(0), &gaps);
        schedule.on_data(at(1), Some(500), 1 << 24);
        schedule.pushed = pushed;
        schedule.on_ack_sent(at(2), Carried::OnData, &gaps);
        let repeat = schedule.due(&gaps, false);
        assert_eq!(repeat.is_some(), is_repeated, "{pushed}");
    }
}

/// Reports get lost. What the report before the last brings about comes a round trip after it, and
/// is reported in its turn: until then the last one needs no copy.
#[test]
fn a_copy_waits_for_the_answer_to_the_report_before() {
    let at = Instant::from_millis;
    let gaps = Gaps::new(TackParams::default().settle);
    for (before, copy) in [
        // A period after the last report, or after the answer to the one before.
        (None, 1_010),
        (Some(900), 1_010),
        (Some(980), 1_030),
        (Some(990), 1_040),
    ] {
        let mut schedule = Schedule::new(TackParams::default());
        schedule.peer_mss = 1_000;
        schedule.set_rtt_min(Duration::from_millis(40));
        schedule.ack_loss_rate = 0.25;
        if let Some(before) = before {
            schedule.on_data(at(before), Some(2_000), 1 << 24);
            schedule.on_report(at(before), &gaps);
        }
        schedule.on_data(at(1_000), Some(2_000), 1 << 24);
        schedule.on_report(at(1_000), &gaps);
        let due = schedule.due(&gaps, false).expect("reports get lost");
        assert_eq!(due.at, at(copy), "{before:?}");
    }
}

/// A loss that was reported for four round trips, and whose repair came under a number that does
/// not show it: what arrives then is reported once.
#[test]
fn an_old_loss_draws_no_copies() {
    let at = Instant::from_millis;
    for (arrives, is_repeated) in [(1_005, true), (1_400, false)] {
        let mut gaps = Gaps::new(TackParams::default().settle);
        let mut schedule = Schedule::new(TackParams::default());
        schedule.peer_mss = 1_000;
        schedule.set_rtt_min(Duration::from_millis(40));
        let data = tack_base::StreamOffset::range(1..170);
        gaps.on_number(at(1_000), 1, data, 1_000, 1 << 24);
        assert!(gaps.settle(at(1_000), Duration::from_millis(40)));
        let wanted = crate::ack::tack::report_order::Wanted {
            due: 4,
            all_new: true,
            room: 1 << 20,
        };
        gaps.report(wanted, at(1_000), Duration::from_millis(50), |_| true);
        schedule.on_data(at(arrives), Some(169), 1 << 24);
        schedule.on_report(at(arrives), &gaps);
        assert_eq!(
            schedule.due(&gaps, false).is_some(),
            is_repeated,
            "{arrives}"
        );
    }
}

/// A message that came again, and data that answered it before: that is repeated until it arrives.
#[test]
fn what_an_answer_tells_has_no_copies() {
    let at = Instant::from_millis;
    let gaps = Gaps::new(TackParams::default().settle);
    for (answers, copies) in [(true, false), (false, true)] {
        let mut schedule = Schedule::new(TackParams::default());
        schedule.peer_mss = 1_000;
        schedule.set_rtt_min(Duration::from_millis(40));
        schedule.ack_loss_rate = 0.25;
        schedule.on_data(at(0), Some(500), 1 << 24);
        if answers {
            schedule.on_ack_sent(at(1), Carried::OnData, &gaps);
        } else {
            schedule.on_report(at(1), &gaps);
        }
        schedule.on_data(at(60), None, 1 << 24);
        schedule.on_news();
        schedule.on_repetition(true);
        schedule.on_report(at(60), &gaps);
        assert_eq!(schedule.due(&gaps, false).is_some(), copies, "{answers}");
    }
}

/// A period of 25 ms for two segments, on a path of 40 ms: the answer to a report of a loss comes
/// before the report is repeated, unless reports get lost.
#[test]
fn where_segments_are_counted_a_repeat_waits_for_the_answer() {
    let at = Instant::from_millis;
    for (ack_loss_rate, wait) in [(0.0, 50), (0.02, 25)] {
        let gaps = Gaps::new(TackParams::default().settle);
        let mut schedule = Schedule::new(TackParams::default());
        schedule.peer_mss = 1_000;
        schedule.set_rtt_min(Duration::from_millis(40));
        schedule.ack_loss_rate = ack_loss_rate;
        let rate = Some(Rate::from_bytes_per_sec(80_000));
        schedule.on_rate(at(0), rate, rate);
        schedule.on_data(at(0), Some(1_000), 1 << 24);
        // What came again shows that the sender heard nothing: it is repeated for that as well.
        schedule.on_repetition(true);
        schedule.on_report(at(1), &gaps);
        let due = schedule.due(&gaps, false).expect("it is repeated");
        assert_eq!(due.at, at(1 + wait), "{ack_loss_rate}");
    }
}
