//! Paths that the random search flagged on which nothing passes for a while: how soon a flow goes
//! on afterwards.

use rayon::prelude::*;

use crate::CONTROLLERS;
use crate::found_paths::flows;

/// Path 135373: a blackout of the way back catches the last but one report of a transfer. The
/// sender repeats a segment after 0.24, 0.70 and 1.6 s; each time the receiver repeated its report
/// for 0.18 s, and the blackout ends at 1.15 s, in the longest gap. Now it goes on for as long as
/// the sender backs off, a quarter of that apart: 1.27 s instead of 1.69. A transfer of `delayed:2`
/// that the blackout catches waits for the sender's timer.
#[test]
fn reports_go_on_while_a_sender_backs_off() {
    let seconds = |ack: &str, start: u64| {
        let text = format!(
            "duration = '60s'\n[wired]\nrate = '6130kbps'\ndelay = '1679us'\nqueue = '5p'\n\
             short_sends_reverse = 0.0184\nbatch_reverse = 4\n\
             [wired.gilbert_elliott]\ngood_to_bad = 0.0007\nbad_to_good = 0.6980\nloss_bad = 0.9467\n\
             [[wired.blackout_reverse]]\nstart = '{start}us'\nduration = '1064963us'\n\
             [[flow]]\ncongestion = 'vegas'\nack = '{ack}'\nbytes = '63129B'\ntimestamps = false\n"
        );
        flows(&text, 5_135_373)[0].completion_s.expect("it ends")
    };
    let caught = seconds("delayed:2", 70_000);
    for start in [65_000, 70_000, 74_000, 78_238, 83_612] {
        let tack = seconds("tack", start);
        println!("{start} us: {tack:.2} s, {caught:.2} s with delayed:2");
        assert!(
            tack < 1.3 && tack < 0.8 * caught,
            "{start} us: {tack}, {caught}"
        );
    }
}

/// Path 135732: two BBR flows, and a blackout that takes all of their first flights. The first
/// reports of TACK carry no rate, and BBR went on to send one segment for each that was delivered
/// until one did: a round trip later than its neighbour, which then had the larger share for the
/// rest of the run. 20.9 Mbit/s, now 24.2; `delayed:2` has 32.4 in its place.
#[test]
fn bbr_leaves_packet_conservation_without_a_rate() {
    let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
        let text = format!(
            "duration = '6318516us'\n[wired]\nrate = '71123kbps'\ndelay = '7962us'\nqueue = '837p'\n\
             duplicate_reverse = 0.0257\n\
             [[wired.blackout]]\nstart = '374313us'\nduration = '655546us'\n\
             [[wired.blackout]]\nstart = '1us'\nduration = '47857us'\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\n\
             [[flow]]\ncongestion = 'bbr'\nack = 'delayed:2'\nextra_delay = '2510us'\n"
        );
        let mbps = flows(&text, 5_135_732)[0].goodput_bps / 1e6;
        println!("{ack}: {mbps:.1} Mbit/s");
        mbps
    });
    assert!(tack > 0.7 * plain, "{tack}, {plain}");
}

/// Path 135662: two BBR flows on 802.11n, and bursts on the way back that lose 17 acknowledgements
/// in a row on average; with this seed one of them loses more than fifty. The receiver sends seven
/// reports for each segment that a timer repeats, and was silent for the rest of the backoff: 4.6
/// of 154.7 Mbit/s. Now reports go on, and the burst is over sooner.
#[test]
fn a_burst_of_lost_acknowledgements_does_not_last_as_long_as_the_run() {
    let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
        let text = format!(
            "duration = '6156112us'\n[wlan]\npreset = 'tack-n'\n[wired]\nrate = '1Gbps'\ndelay = '2902us'\n\
             [[wired.blackout_reverse]]\nstart = '1942949us'\nduration = '434665us'\n\
             [wired.gilbert_elliott_reverse]\ngood_to_bad = 0.0145\nbad_to_good = 0.0594\nloss_bad = 1.0\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\nstart = '429668us'\n"
        );
        let mbps: f64 = flows(&text, 4_135_662)
            .iter()
            .map(|flow| flow.goodput_bps / 1e6)
            .sum();
        println!("{ack}: {mbps:.1} Mbit/s");
        mbps
    });
    assert!(tack > 0.1 * plain, "{tack}, {plain}");
}

/// Path 150528: acknowledgements are lost for 0.6 s of slow start. The first report after it shows
/// that all of the flight had arrived, so that the timeout was false. The window came back, and the
/// same report doubled it at once: it left as a burst into a queue of ten packets. 10.4 % of all
/// segments were sent again, 2.9 % with `delayed:2`, whose timeout is not undone.
#[test]
fn what_shows_a_timeout_to_be_false_does_not_double_the_window() {
    for congestion in CONTROLLERS {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '60s'\n[wired]\nrate = '4866kbps'\ndelay = '27334us'\nqueue = '10p'\n\
                 ack_loss_reverse = 0.0479\ncorrupt = 0.0053\n\
                 [[wired.blackout_reverse]]\nstart = '294322us'\nduration = '622414us'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nbytes = '499941B'\n"
            );
            let runs: Vec<_> = (1..=16).map(|seed| flows(&text, seed).remove(0)).collect();
            let sum = |figure: fn(&tack_sim::FlowReport) -> u64| {
                runs.iter().map(figure).sum::<u64>() as f64
            };
            sum(|flow| flow.retransmitted_segments) / sum(|flow| flow.data_segments)
        });
        println!("{congestion}: {tack:.3} again, {plain:.3} with delayed:2");
        assert!(tack < plain + 0.06, "{congestion}: {tack}, {plain}");
    }
}

/// Path 155660: the acknowledgements of the first flight get lost, and the one that comes after two
/// timeouts echoes the time of the first transmission, six seconds ago. As the first sample it made
/// a timeout of 17 s, with either policy, on a path of 28 ms: a transfer of 216 kB did not end in
/// 300 s. The next sample takes its place: 112 s, because each of seven timeouts draws one packet
/// out of a burst of losses.
#[test]
fn a_first_round_trip_that_holds_timeouts_does_not_last() {
    for ack in ["tack", "delayed:2"] {
        let text = format!(
            "duration = '300s'\n[wired]\nrate = '67867kbps'\ndelay = '14161us'\nqueue = '1.0bdp'\n\
             isn_rewrite = 'with_sack'\nloss_reverse = 0.0028\n\
             [wired.gilbert_elliott_reverse]\ngood_to_bad = 0.0141\nbad_to_good = 0.1668\nloss_bad = 0.6744\n\
             [[flow]]\ncongestion = 'new_reno'\nack = '{ack}'\nbytes = '216440B'\nsack = false\n"
        );
        // A stall fails there as well.
        let flow = flows(&text, 155_660).remove(0);
        assert!(
            flow.completion_s.is_some_and(|end| end < 200.0),
            "{ack}: {:?}",
            flow.completion_s
        );
    }
}

/// A host sleeps for 0.3 s of each second, as in the power save of Wi-Fi. It then answers at once
/// what waited for it, and SRTT includes the time of the sleep. The window was spread over SRTT: a
/// few segments left in a round trip, few reports answered them, and SRTT stayed long. TACK had
/// 0.73 to 0.74 of the speed of `delayed:2`, and has 0.81 to 0.87.
#[test]
fn a_window_is_not_spread_over_the_sleep_of_a_host() {
    for congestion in ["cubic", "new_reno", "vegas"] {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '10s'\n[wired]\nrate = '100Mbps'\ndelay = '6ms'\nqueue = '1.0bdp'\n\
                 [wired.suspension_reverse]\nstart = '400ms'\nperiod = '1s'\nduration = '300ms'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n"
            );
            flows(&text, 1).remove(0).goodput_bps
        });
        assert!(tack > 0.78 * plain, "{congestion}: {tack}, {plain}");
    }
}

/// Path 159677: data goes both ways. A black hole lets the last segment through, which carries the
/// FIN, and no other. The receiver's block ended before the FIN, so it did not cover that segment,
/// and the sender never counted it as received. The acknowledgement of its SYN-ACK came after a
/// blackout and was taken for a round trip. The timeouts were 3, 6 and 12 s long on a path of
/// 160 ms: no progress for 23 s, with either policy. Now the FIN is part of the block, and the next
/// sample takes the place of one that came with data. The first repair alone did not end the stall.
/// Their own tests are in `reassembly.rs` and `estimator.rs`.
#[test]
fn a_last_segment_with_a_fin_above_a_hole_is_soon_followed() {
    for ack in ["tack", "delayed:2"] {
        let text = format!(
            "duration = '300s'\n[wired]\nrate = '6343kbps'\ndelay = '79708us'\nqueue = '1.0bdp'\n\
             mtu_black_hole_reverse = 1029\nlate_timers = '499us'\nlate_processing = '2107us'\n\
             [[wired.blackout]]\nstart = '153432us'\nduration = '507869us'\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\nbytes = '9332B'\napp = 'duplex'\n\
             timestamps = false\n"
        );
        // A stall fails there.
        let flows = flows(&text, 159_677);
        assert!(flows[0].completion_s.is_some(), "{ack}");
    }
}

/// Paths 185239, 179806, 161815 and 156698: the way back sleeps in each second, and
/// acknowledgements get lost. The round trip that the sender stated then held the sleep, and the
/// receiver took it for a queue of reports: it sent one in 100 ms. Each is a sample, so SRTT was
/// long for half a second after each sleep: 34 to 43 Mbit/s here, but for BBR, and 66 to 81 with
/// `delayed:2`. Now 40 to 52.
#[test]
fn a_sleep_of_the_way_back_is_not_a_queue_of_reports() {
    let seeds = 8;
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let rate = |seed| {
                let text = format!(
                    "duration = '6s'\n[wired]\nrate = '138Mbps'\ndelay = '5305us'\n\
                     queue = '5p'\nack_loss_reverse = 0.1141\n\
                     [wired.suspension_reverse]\nstart = '310ms'\nperiod = '969ms'\n\
                     duration = '73ms'\nduration_max = '350ms'\n\
                     [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n"
                );
                flows(&text, seed)[0].goodput_bps / 1e6
            };
            (1..=seeds).map(rate).sum::<f64>() / seeds as f64
        });
        println!("{congestion}: {tack:.1} Mbit/s, {plain:.1} with delayed:2");
        assert!(tack > 0.6 * plain, "{congestion}: {tack}, {plain}");
    });
}

/// Path 203111: a blackout takes a flight of 2,500 segments. With nothing in flight recovery
/// rebuilt it by a segment for each acknowledgement beyond what that delivered, which is as slow
/// start does where each segment is acknowledged; reports of many took 3.1 s. Bytes count now: 155
/// Mbit/s on the path, 92 before, `delayed:2` 153.
#[test]
fn a_flight_that_is_lost_is_rebuilt_as_fast_whatever_is_acknowledged() {
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '7s'\n[wired]\nrate = '222Mbps'\ndelay = '37ms'\nqueue = '1000p'\n\
                 [[wired.blackout]]\nstart = '2576ms'\nduration = '236ms'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n"
            );
            flows(&text, 1)[0].goodput_bps / 1e6
        });
        println!("{congestion}: {tack:.1} Mbit/s, {plain:.1} with delayed:2");
        assert!(tack > 0.85 * plain, "{congestion}: {tack}, {plain}");
    });
}

/// Path 226170: the way back sleeps, and the first three copies of a report come together, 0.28 s
/// late. Each of them was a sample for SRTT and RTTVAR, so that the third timeout in a black hole
/// came after 2.7 s. A repeated report is no sample now. The transfer takes 2.3 s (mean of sixteen
/// seeds), before 3.5 s, with `delayed:2` 1.6 s.
#[test]
fn copies_of_a_report_that_wait_together_are_one_round_trip() {
    let seconds = |seed| {
        let text = "duration = '300s'\n[wired]\nrate = '35731kbps'\ndelay = '4617us'\n\
                    queue = '0.5bdp'\nqueue_reverse = '7p'\nmtu_black_hole = 985\n\
                    [wired.suspension_reverse]\nstart = '13917us'\nperiod = '1302525us'\n\
                    duration = '51658us'\nduration_max = '350ms'\n\
                    [[wired.blackout_reverse]]\nstart = '30786us'\nduration = '169620us'\n\
                    [[flow]]\ncongestion = 'new_reno'\nack = 'tack'\nbytes = '9272B'\n";
        flows(text, seed)[0].completion_s.expect("it ends")
    };
    let mean = (1..=16).map(seconds).sum::<f64>() / 16.0;
    println!("{mean:.2} s");
    assert!(mean < 2.7, "{mean}");
}

/// Path 137613: slow start begins with one segment after a lost handshake, and the path sleeps. The
/// two segments of the second round were late by 0.3 s, and Vegas took that for their queue: 6.4 s
/// for 1.6 MB on the mean of sixteen seeds, now 3.7, as `delayed:2`.
#[test]
fn vegas_does_not_take_the_sleep_of_a_path_for_a_queue_of_two_segments() {
    let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
        let seconds = |seed| {
            let text = format!(
                "duration = '300s'\n[wired]\nrate = '22281kbps'\ndelay = '52639us'\n\
                 queue = '1.0bdp'\nack_loss = 0.0150\nqueue_reverse = '4p'\n\
                 [[wired.blackout_reverse]]\nstart = '74389us'\nduration = '319073us'\n\
                 [wired.suspension]\nstart = '27076us'\nperiod = '1404070us'\n\
                 duration = '34918us'\nduration_max = '350ms'\n\
                 [[flow]]\ncongestion = 'vegas'\nack = '{ack}'\nbytes = '1606773B'\n"
            );
            flows(&text, seed)[0].completion_s.expect("it ends")
        };
        (1..=16).map(seconds).sum::<f64>() / 16.0
    });
    println!("{tack:.2} s, {plain:.2} s with delayed:2");
    assert!(tack < 1.2 * plain, "{tack}, {plain}");
}

/// Path 195432: the last segment of a transfer gets lost, its repetition falls into a blackout, and
/// the probe after it. The probe and the timeout granted 40 ms each for a report that is held back,
/// but the one of a FIN never is: 0.35 s, now 0.27.
#[test]
fn a_fin_is_probed_for_as_soon_as_its_report_could_be_there() {
    let text = "duration = '300s'\n[wired]\nrate = '11116kbps'\ndelay = '2521us'\nqueue = '5p'\n\
                [[wired.blackout]]\nstart = '34395us'\nduration = '100426us'\n\
                [[flow]]\ncongestion = 'bbr'\nack = 'tack'\nbytes = '38714B'\n";
    let seconds = flows(text, 1)[0].completion_s.expect("it ends");
    assert!(seconds < 0.3, "{seconds}");
}

/// Path 233457: nothing comes back for 0.3 s while slow start overflows a queue of 1,000 packets.
/// The lost reports had named a thousand gaps, which later ones repeated by fourteen, each beside
/// 64 blocks: 19 Mbit/s, now 110, `delayed:2` 108. What was named before a silence is named anew.
#[test]
fn what_was_named_while_nothing_came_back_is_named_again_at_once() {
    for congestion in CONTROLLERS {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '8s'\n[wired]\nrate = '140Mbps'\ndelay = '50ms'\nqueue = '1000p'\n\
                 ack_loss = 0.03\n[[wired.blackout_reverse]]\nstart = '1626ms'\nduration = '331ms'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n"
            );
            flows(&text, 1)[0].goodput_bps / 1e6
        });
        println!("{congestion}: {tack:.1} Mbit/s, {plain:.1} with delayed:2");
        assert!(tack > 0.9 * plain, "{congestion}: {tack}, {plain}");
    }
}
