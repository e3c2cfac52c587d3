//! Paths that the random search (`../differential/`) flagged, on which a middlebox takes TACK's
//! option off all segments but SYNs. As there, `delayed:2` on the same path is the measure.

use rayon::prelude::*;
use tack_sim::FlowReport;

use crate::found_paths::flows;
use crate::{CONTROLLERS, is_long};

/// A path that takes the option off acknowledgements, and a queue of `queue`.
fn stripped(rate: &str, delay: &str, queue: &str, congestion: &str, ack: &str) -> String {
    format!(
        "duration = '20s'\n[wired]\nrate = '{rate}'\ndelay = '{delay}'\nqueue = '{queue}'\n\
         strip_options_reverse = [253]\nstrip_options_from_reverse = 'rest'\n\
         [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n"
    )
}

/// Path 120995: after a fallback the sender tries TACK again. The receiver's reports are stripped,
/// and while it reports there are no SACK blocks. The trial lasted six smoothed round trips, which
/// grew meanwhile: 5.33 Mbit/s and 6.1 s without progress, `delayed:2` 9.51 and 2.5 s.
#[test]
fn a_trial_of_tack_on_a_long_queue_does_not_leave_the_sender_blind() {
    let found = ("10Mbps", "40ms", "2000p");
    let cases: Vec<_> = if is_long() {
        let paths = [
            found,
            ("10Mbps", "40ms", "300p"),
            ("10Mbps", "5ms", "1000p"),
            ("3Mbps", "40ms", "500p"),
            ("30Mbps", "20ms", "2000p"),
            ("50Mbps", "100ms", "1.0bdp"),
        ];
        let of = |path| CONTROLLERS.map(|congestion| (path, congestion));
        paths.into_iter().flat_map(of).collect()
    } else {
        vec![(found, "new_reno"), (("30Mbps", "20ms", "2000p"), "bbr")]
    };
    let seeds = if is_long() { 1..=3 } else { 1..=1 };
    cases
        .par_iter()
        .for_each(|((rate, delay, queue), congestion)| {
            let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
                let text = stripped(rate, delay, queue, congestion, ack);
                let runs: Vec<_> = seeds
                    .clone()
                    .map(|seed| flows(&text, seed).remove(0))
                    .collect();
                let mean = |figure: fn(&FlowReport) -> f64| {
                    runs.iter().map(figure).sum::<f64>() / runs.len() as f64
                };
                (
                    mean(|flow| flow.goodput_bps / 1e6),
                    mean(|flow| flow.no_progress_max_s),
                )
            });
            let case = format!("{rate}, {delay}, {queue}, {congestion}");
            println!(
                "{case}: {:.2} Mbit/s and {:.1} s without progress, {:.2} and {:.1} with delayed:2",
                tack.0, tack.1, plain.0, plain.1
            );
            assert!(tack.0 > 0.9 * plain.0, "{case}: {tack:?}, {plain:?}");
            assert!(tack.1 < plain.1 + 1.0, "{case}: {tack:?}, {plain:?}");
        });
}

/// Path 120386: requests, and a middlebox that takes the option off what their sender sends, its
/// reports of the answers among them. What is left of a report with lists looked like data that
/// came before, and each was answered: 87 acknowledgements, `delayed:2` 16.
#[test]
fn reports_that_lost_their_option_are_not_answered() {
    let acks = |congestion: &str, ack: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '1341kbps'\ndelay = '24136us'\nqueue = '5p'\nloss = 0.0029\n\
             strip_options = [253]\nstrip_options_from = 'rest'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\napp = 'request:11139B,177135B'\n"
        );
        let one = |seed| flows(&text, seed)[0].acks as f64;
        (1..=4).into_par_iter().map(one).sum::<f64>() / 4.0
    };
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| acks(congestion, ack));
        println!("{congestion}: {tack:.1} acknowledgements, {plain:.1} with delayed:2");
        assert!(
            tack < 1.3 * plain + 10.0,
            "{congestion}: {tack}, {plain} with delayed:2"
        );
    });
}

/// Path 137399: the SYN-ACK and the first data are lost, and the option is taken off data. The
/// probe is acknowledged with a SACK block, without a report, and the sender left the loss that
/// this shows to the receiver: the timer of three seconds repaired it, after 5.1 s (`delayed:2`
/// 2.0). What a plain acknowledgement shows to be missing is lost after the receiver's time to
/// report it.
#[test]
fn a_plain_acknowledgement_shows_a_loss_that_nobody_reports() {
    for congestion in CONTROLLERS {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '60s'\n[wired]\nrate = '254166kbps'\ndelay = '987us'\nqueue = '2.0bdp'\n\
                 strip_options = [253]\nstrip_options_from = 'rest'\n\
                 [[wired.blackout_reverse]]\nstart = '1us'\nduration = '7269us'\n\
                 [[wired.blackout]]\nstart = '7919us'\nduration = '1309157us'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nbytes = '95044B'\n"
            );
            let flow = flows(&text, 1).remove(0);
            flow.completion_s.expect("it ends")
        });
        assert!(tack < 1.2 * plain, "{congestion}: {tack} s, {plain}");
    }
}

/// Paths 183528 and 194269: the same for a first flight that a blackout takes whole. The probe
/// repeats the last segment, and its acknowledgement comes no sooner than a round trip after that:
/// the probe arrived, and what left before it is missing, all of it, as one block is all that was
/// received. 0.29 s before, when the timer repaired it, now 0.09; `delayed:2` 0.010.
#[test]
fn the_answer_to_a_probe_shows_what_the_probe_overtook() {
    for congestion in CONTROLLERS {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '60s'\n[wired]\nrate = '176669kbps'\ndelay = '757us'\nqueue = '225p'\n\
                 strip_options = [253]\nstrip_options_from = 'rest'\n\
                 [[wired.blackout]]\nstart = '908us'\nduration = '1583us'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nbytes = '5871B'\n"
            );
            flows(&text, 1).remove(0)
        });
        let seconds = [&tack, &plain].map(|flow| flow.completion_s.expect("it ends"));
        println!("{congestion}: {seconds:?} s, {} timeouts", tack.rto_count);
        assert_eq!(tack.rto_count, 0, "{congestion}");
        // A receiver may take two periods of 40 ms to name a loss.
        assert!(seconds[0] < seconds[1] + 0.1, "{congestion}: {seconds:?}");
    }
}

/// Paths 203941 and 203951: the option is taken off acknowledgements, and the path drops packets
/// above 679 bytes. Segments have no stamps when the size is searched for, so the packets of the
/// search were 12 bytes shorter than it took them for. When a trial of TACK brought the stamps back
/// no segment got through: two timeouts more, and 0.5 of 0.9 Mbit/s.
#[test]
fn stamps_fit_into_the_packets_that_a_search_found() {
    for congestion in CONTROLLERS {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '15s'\n[wired]\nrate = '3249kbps'\ndelay = '76127us'\nqueue = '1.0bdp'\nmtu_black_hole = 679\n\
                 strip_options_reverse = [253]\nstrip_options_from_reverse = 'rest'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n"
            );
            flows(&text, 1).remove(0)
        });
        println!(
            "{congestion}: {:.2} Mbit/s, {} timeouts; {:.2} and {} with delayed:2",
            tack.goodput_bps / 1e6,
            tack.rto_count,
            plain.goodput_bps / 1e6,
            plain.rto_count
        );
        assert_eq!(tack.rto_count, plain.rto_count, "{congestion}");
    }
}

/// Path 141247: the option is taken off data, so timestamps take the place of reports, and segments
/// have 12 bytes less room. What had left before then left again in one segment of the new size and
/// one of 12 bytes, each of which takes a place in a queue of five packets: 48 % of all segments,
/// 29 % with `delayed:2`. Now it leaves in one piece, without a stamp, which nobody would read.
#[test]
fn what_left_before_timestamps_leaves_again_in_one_piece() {
    for congestion in CONTROLLERS {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '60s'\n[wired]\nrate = '2200kbps'\ndelay = '7300us'\nqueue = '5p'\n\
                 strip_options = [253]\nstrip_options_from = 'rest'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nbytes = '42606B'\n"
            );
            flows(&text, 1).remove(0)
        });
        println!(
            "{congestion}: {} of {} segments again, {} of {} with delayed:2",
            tack.retransmitted_segments,
            tack.data_segments,
            plain.retransmitted_segments,
            plain.data_segments
        );
        let share = |flow: &tack_sim::FlowReport| {
            flow.retransmitted_segments as f64 / flow.data_segments as f64
        };
        assert!(
            share(&tack) < share(&plain) + 0.06,
            "{congestion}: {} of {}, {} of {}",
            tack.retransmitted_segments,
            tack.data_segments,
            plain.retransmitted_segments,
            plain.data_segments
        );
    }
}

/// Path 140927: the handshake gets lost and the option is taken off acknowledgements, so that
/// segments seem to be reordered, and a timer finds the losses between two acknowledgements. BBR
/// looked for losses at acknowledgements alone: a phase that probes for bandwidth did not end, but
/// took 2.8 of 3 s, and 17 % of all segments left again, 6 % with `delayed:2`.
#[test]
fn losses_that_a_timer_finds_end_the_probing_of_bbr() {
    let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
        let text = format!(
            "duration = '4s'\n[wired]\nrate = '128064kbps'\ndelay = '560us'\nqueue = '1.0bdp'\n\
             strip_options_reverse = [253]\nstrip_options_from_reverse = 'rest'\n\
             [[wired.blackout]]\nstart = '1us'\nduration = '4852us'\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\n"
        );
        let flow = flows(&text, 1).remove(0);
        (
            flow.retransmitted_segments as f64 / flow.data_segments as f64,
            flow.goodput_bps,
        )
    });
    println!("{tack:?} again and bit/s, {plain:?} with delayed:2");
    assert!(tack.0 < plain.0 + 0.03, "{tack:?}, {plain:?}");
    assert!(tack.1 > 0.85 * plain.1, "{tack:?}, {plain:?}");
}

/// Path 257542: something takes the SACK permission off the SYN-ACK, so that the side that asked
/// does without TACK, and the one that answered believed in it. It sent stamps for a second, and
/// measured neither round trips nor the bandwidth meanwhile. The segment that completes the
/// handshake tells now, as it has timestamps: 14.8 s for 587 kB, `delayed:2` 2.9. 4 is the kind of
/// the permission, 253 that of TACK.
#[test]
fn who_asked_and_was_not_understood_tells_with_the_first_segment() {
    for kind in [4, 253] {
        CONTROLLERS.par_iter().for_each(|congestion| {
            let time = |ack: &str| {
                let times = (0..16).map(|nth| {
                    let delay = 32_000 + 1_000 * nth;
                    let text = format!(
                        "duration = '300s'\n[wired]\nrate = '1909kbps'\ndelay = '{delay}us'\nqueue = '2.0bdp'\n\
                         strip_options_reverse = [{kind}]\nstrip_options_from_reverse = 'all'\n\
                         [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nbytes = '586844B'\napp = 'duplex'\n"
                    );
                    flows(&text, 1)[0].completion_s.expect("it ends")
                });
                times.sum::<f64>() / 16.0
            };
            let [tack, plain] = ["tack", "delayed:2"].map(time);
            println!("{congestion}, without {kind}: {tack:.2} s, {plain:.2} with delayed:2");
            assert!(tack < 1.1 * plain, "{congestion}, {kind}: {tack}, {plain}");
        });
    }
}
