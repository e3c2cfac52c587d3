//! Paths that the random search (`../differential/`) flagged, which drop packets above a length
//! silently, in one direction or in both. As there, `delayed:2` on the same path is the measure.

use rayon::prelude::*;
use tack_sim::FlowReport;

use crate::CONTROLLERS;
use crate::found_paths::{flows, report};

/// Goodput of the first flow, bit/s, mean of `seeds` runs.
fn goodput(text: &str, seeds: u64) -> f64 {
    let runs = (1..=seeds).map(|seed| flows(text, seed).remove(0).goodput_bps);
    runs.sum::<f64>() / seeds as f64
}

/// Paths 195067 and 199447: two BBR flows, whose first flights vanish. TACK's timeout was 40 ms
/// longer than that of `delayed:2`, three times in a row, and whoever is out of the black hole
/// first keeps most of the rate for the rest of the run: 25.7 and 72.3 Mbit/s. The least timeout is
/// there for acknowledgements that are held back, so TACK needs no more before data is
/// acknowledged.
#[test]
fn tack_leaves_a_black_hole_as_soon_as_delayed_acknowledgements() {
    let path = "duration = '6s'\n[wired]\nrate = '150Mbps'\ndelay = '9ms'\nqueue = '1.0bdp'\nmtu_black_hole = 951\n";
    CONTROLLERS.par_iter().for_each(|congestion| {
        let run = |ack: &str| {
            let text = format!("{path}[[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n");
            flows(&text, 1).remove(0)
        };
        let [tack, plain] = ["tack", "delayed:2"].map(run);
        let still = |flow: &FlowReport| flow.no_progress_max_s;
        println!(
            "{congestion}: {:.3} and {:.3} s without progress",
            still(&tack),
            still(&plain)
        );
        // The probe waits for 40 ms longer before the first timeout.
        assert!(still(&tack) < still(&plain) + 0.05, "{congestion}");
    });
}

/// Path 198540: the segment size had been given up in a black hole. Five seconds later the whole
/// window left with the former size, as a trial, and vanished: two more timeouts, and a window of
/// one segment. 3.9 Mbit/s, `delayed:2` 5.8, whose trial fell into a blackout. Now a single segment
/// probes, and what it finds is used.
#[test]
fn the_former_size_is_not_tried_with_a_whole_window() {
    CONTROLLERS.par_iter().for_each(|congestion| {
        for ack in ["tack", "delayed:2"] {
            let text = format!(
                "duration = '12s'\n[wired]\nrate = '41621kbps'\ndelay = '20ms'\nqueue = '0.5bdp'\nmtu_black_hole = 1481\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n"
            );
            let run = report(&text, 1);
            let too_large = run.wired.forward.too_large;
            let timeouts = run.flows[0].rto_count;
            println!("{congestion}, {ack}: {too_large} too large, {timeouts} timeouts");
            // The first flight and its repetitions, then three probes of each size.
            assert!(timeouts <= 3, "{congestion}, {ack}: {timeouts} timeouts");
            assert!(too_large < 50, "{congestion}, {ack}: {too_large}");
            // Segments of 1,012 bytes before the search, 1,429 at most after it.
            let flow = &run.flows[0];
            let size = flow.bytes_delivered / (flow.data_segments - flow.retransmitted_segments);
            assert!(size > 1100, "{congestion}, {ack}: {size} bytes");
        }
    });
}

/// Path 198470: slow start overflows a queue of 1,000 packets, and the way back drops packets above
/// 609 bytes, as reports of so many losses are. Each was sent again as long as it was: 12.6 to
/// 157 Mbit/s by the seed, `delayed:2` 176. Now what brings nothing about is sent in shorter ones.
#[test]
fn reports_that_are_too_long_for_the_way_back_get_shorter() {
    let path = |mtu: &str| {
        format!(
            "duration = '8s'\n[wired]\nrate = '219196kbps'\ndelay = '51894us'\nqueue = '1000p'\n{mtu}\
             ack_loss_reverse = 0.1752\n"
        )
    };
    let run = |congestion: &str, ack: &str, mtu: &str| {
        let flow = format!("[[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nmss = 1220\n");
        goodput(&(path(mtu) + &flow), 4)
    };
    CONTROLLERS.par_iter().for_each(|congestion| {
        let hole = "mtu_black_hole_reverse = 609\n";
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| run(congestion, ack, hole));
        let free = run(congestion, "tack", "");
        println!(
            "{congestion}: {:.1} Mbit/s, {:.1} without a black hole, {:.1} with delayed:2",
            tack / 1e6,
            free / 1e6,
            plain / 1e6
        );
        assert!(tack > 0.9 * free.min(plain), "{congestion}");
    });
}

/// Path 2606 of the third search and its neighbours: a path of jumbo frames gets narrower, and
/// segments are 1,012 bytes long instead of 8,948. A receiver that went on to wait for two of the
/// old ones reported after the 40 ms of a remainder, and what that freed overflowed a short queue:
/// CUBIC repeated 14.8 %, 5.7 % with `delayed:2`.
#[test]
fn a_receiver_notices_that_jumbo_frames_no_longer_come() {
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let runs = [1_300, 1_651, 2_000, 5_000].map(|delay| {
                let text = format!(
                    "duration = '12s'\n[wired]\nrate = '9270kbps'\ndelay = '{delay}us'\nqueue = '5p'\n\
                     mtu_black_hole = 8883\nmtu_black_hole_from = '4595ms'\n\
                     [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nmss = 8960\nbase_mss = 1160\n"
                );
                let flow = &flows(&text, 1)[0];
                let again = flow.retransmitted_segments as f64 / flow.data_segments as f64;
                (again, flow.goodput_bps / 1e6)
            });
            let mean = |figure: fn(&(f64, f64)) -> f64| runs.iter().map(figure).sum::<f64>() / 4.0;
            (mean(|run| run.0), mean(|run| run.1))
        });
        println!("{congestion}: {tack:.3?} again and Mbit/s, {plain:.3?} with delayed:2");
        assert!(tack.0 < plain.0 + 0.02, "{congestion}: {tack:?}, {plain:?}");
        assert!(tack.1 > 0.9 * plain.1, "{congestion}: {tack:?}, {plain:?}");
    });
}

/// Path 236428: the SYN-ACK gets lost, so that the side that answers has no round trip, and its
/// first answer vanishes. What the peer states of the round trip shortens the timeout of what is in
/// flight by then too: that waited for three seconds.
#[test]
fn a_stated_round_trip_shortens_the_timeout_that_runs() {
    CONTROLLERS.par_iter().for_each(|congestion| {
        let run = |ack: &str| {
            let text = format!(
                "duration = '10s'\n[wired]\nrate = '5395kbps'\ndelay = '16ms'\nqueue = '1.0bdp'\nmtu_black_hole_reverse = 656\n\
                 blackout_reverse = [{{ start = '1us', duration = '27ms' }}]\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\napp = 'request:325B,21024B,gap=2ms'\n"
            );
            flows(&text, 1).remove(0).no_progress_max_s
        };
        let [tack, plain] = ["tack", "delayed:2"].map(run);
        println!("{congestion}: {tack:.3} and {plain:.3} s without progress");
        assert!(tack < plain + 0.1, "{congestion}: {tack} and {plain} s");
    });
}
