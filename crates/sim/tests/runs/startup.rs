//! How BBR leaves its startup and CUBIC its slow start: on paths where a random search found that
//! they did not.

use tack_sim::{Checks, FlowReport, Observers, Scenario};

use crate::run;

fn flow(text: &str, seed: u64) -> FlowReport {
    let scenario = Scenario::from_toml("startup.toml", text, &[]).expect("the scenario is sound");
    let mut observers = Observers::default().checking(Checks::EveryEvent);
    match run(&scenario, seed, &mut observers) {
        Ok(mut report) => report.flows.remove(0),
        Err(broken) => panic!("{broken}\n{text}"),
    }
}

/// Of the segments sent, the share that repeated bytes, 0 to 1.
fn repeated(flow: &FlowReport) -> f64 {
    flow.retransmitted_segments as f64 / flow.data_segments as f64
}

/// A send buffer of two products: each report frees so much of it that the connection has nothing
/// to send until the application wrote again. That counts as limited by the application, and
/// startup lasted forever: a tenth of the segments overflowed the queue.
#[test]
fn a_send_buffer_that_reports_free_by_quarters_does_not_keep_bbr_in_startup() {
    for ack in ["tack", "delayed:2"] {
        let text = format!(
            "duration = '8s'\n[wired]\nrate = '40Mbps'\ndelay = '9ms'\nqueue = '1.0bdp'\n\
             [[flow]]\nack = '{ack}'\ncongestion = 'bbr'\nsend_buffer = '210000B'\n"
        );
        let flow = flow(&text, 1);
        let (again, mbps) = (repeated(&flow), flow.goodput_bps / 1e6);
        println!("{ack}: {mbps:.1} Mbit/s, {:.1} % again", 100.0 * again);
        assert!(
            again < 0.02 && mbps > 36.0,
            "{ack}: {mbps:.1} Mbit/s, {again:.3} again"
        );
    }
}

/// Paths 50632 and 50332: startup overflows a queue, and TACK reports that a few times a round
/// trip. Until the next report BBR went on at a multiple of the rate of the path.
#[test]
fn startup_that_overflows_a_queue_repeats_about_as_much_with_tack() {
    for (rate, delay, queue, bytes) in [
        ("172Mbps", "620us", "2.0bdp", "1224kB"),
        ("40Mbps", "5ms", "2.0bdp", "1MB"),
        ("6Mbps", "20ms", "0.5bdp", "197kB"),
    ] {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '60s'\n[wired]\nrate = '{rate}'\ndelay = '{delay}'\nqueue = '{queue}'\n\
                 [[flow]]\nack = '{ack}'\ncongestion = 'bbr'\nreceive_window = 'fixed'\nbytes = '{bytes}'\n"
            );
            repeated(&flow(&text, 1))
        });
        println!(
            "{rate}: {:.1} % again, {:.1} % with delayed:2",
            100.0 * tack,
            100.0 * plain
        );
        assert!(
            tack < plain + 0.035,
            "{rate}: {tack:.3} again, {plain:.3} with delayed:2"
        );
    }
}

/// Paths 152967 and 188097, and others beside them: a path that holds a dozen segments, before a
/// queue of five. Half of a flight was lost before startup counted as overflowing the queue: 26.6 %
/// of the segments were repeated, with `delayed:2` 24.2 %.
#[test]
fn a_queue_of_five_packets_costs_no_more_with_tack() {
    let paths = [(1195, 54_673, 1460, 194_733), (2320, 21_510, 1000, 135_348)];
    let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
        let runs = paths.iter().flat_map(|(rate, delay, mss, bytes)| {
            (0..8).map(move |nth| {
                let text = format!(
                    "duration = '60s'\n[wired]\nrate = '{rate}kbps'\ndelay = '{}us'\nqueue = '5p'\n\
                     [[flow]]\nack = '{ack}'\ncongestion = 'bbr'\nmss = {mss}\nbytes = '{bytes}B'\n",
                    delay * (28 + 2 * nth) / 35
                );
                repeated(&flow(&text, 1))
            })
        });
        let runs: Vec<_> = runs.collect();
        runs.iter().sum::<f64>() / runs.len() as f64
    });
    println!(
        "{:.1} % again, {:.1} % with delayed:2",
        100.0 * tack,
        100.0 * plain
    );
    assert!(tack < plain, "{tack:.3} again, {plain:.3} with delayed:2");
}

/// Path 194722: as with the send buffer above, but the queue holds half a product, so that it
/// overflows before as much is in flight as shows a standing queue with TACK. It overflowed again
/// and again, 17.3 % of the segments, and the transfer took a quarter longer than with `delayed:2`.
#[test]
fn rounds_that_overflow_a_queue_end_startup_whatever_the_application_limits() {
    for send_buffer in [40_000, 43_544, 47_000] {
        let text = format!(
            "duration = '60s'\n[wired]\nrate = '4916kbps'\ndelay = '17856us'\nqueue = '0.5bdp'\n\
             [[flow]]\nack = 'tack'\ncongestion = 'bbr'\nbytes = '706202B'\nsend_buffer = '{send_buffer}B'\n"
        );
        let flow = flow(&text, 1);
        let (again, mbps) = (repeated(&flow), flow.goodput_bps / 1e6);
        println!(
            "{send_buffer}: {mbps:.2} Mbit/s, {:.1} % again",
            100.0 * again
        );
        assert!(
            again < 0.09 && mbps > 3.7,
            "{send_buffer}: {mbps:.2} Mbit/s, {again:.3} again"
        );
    }
}

/// Path 185312: acknowledgements are lost for a while in startup, and one report then delivers
/// most of a window. It let the window grow far beyond what BBR asks for, and the queue overflowed:
/// 11.0 % of the segments were repeated, with `delayed:2` 4.5 %.
#[test]
fn a_report_of_many_segments_lets_startup_ask_for_no_larger_window() {
    let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
        let text = format!(
            "duration = '60s'\n[wired]\nrate = '1382kbps'\ndelay = '57157us'\nqueue = '2.0bdp'\nmtu_black_hole = 1310\n\
             [[wired.blackout_reverse]]\nstart = '2288819us'\nduration = '207626us'\n\
             [[flow]]\nack = '{ack}'\ncongestion = 'bbr'\nbytes = '665056B'\n"
        );
        repeated(&flow(&text, 1))
    });
    println!(
        "{:.1} % again, {:.1} % with delayed:2",
        100.0 * tack,
        100.0 * plain
    );
    assert!(
        tack < plain + 0.035,
        "{tack:.3} again, {plain:.3} with delayed:2"
    );
}

/// Path 141616: a packet that comes late is taken for lost, and TACK's report of it soon undoes
/// that. HyStart++ did not come back with the window, so that slow start went on until a queue of
/// 1,000 packets overflowed: 12.1 % of the segments were sent again, now none. `delayed:2` takes
/// no packet for lost here.
#[test]
fn hystart_watches_on_after_a_loss_that_was_none() {
    for reorder in [0.002, 0.01, 0.03, 0.1233] {
        let text = format!(
            "duration = '13273045us'\n[wired]\nrate = '4987kbps'\ndelay = '31826us'\nqueue = '1000p'\n\
             mtu_black_hole_reverse = 697\nreorder = {reorder}\nreorder_delay = '5784us'\n\
             [[flow]]\ncongestion = 'cubic'\nack = 'tack'\napp = 'bulk:pause=4620595us,resume=7791678us'\n"
        );
        let flow = flow(&text, 5_141_616);
        println!(
            "{reorder}: {:.2} Mbit/s, {} again",
            flow.goodput_bps / 1e6,
            flow.retransmitted_segments
        );
        assert!(
            repeated(&flow) < 0.005 && flow.goodput_bps > 3.7e6,
            "{reorder}: {} of {} again, {} bit/s",
            flow.retransmitted_segments,
            flow.data_segments,
            flow.goodput_bps
        );
    }
}

/// A report for two segments each while a sender probes for capacity is more than ten times as many
/// as TACK sends afterwards: 1,036 for 3 MB over 802.11n, 2,072 segments. Now one leaves in a
/// sixteenth of a round trip. There are less than a quarter as many, and the transfer takes no
/// longer.
#[test]
fn startup_takes_few_reports() {
    for congestion in crate::CONTROLLERS {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '60s'\n[wlan]\npreset = 'tack-n'\n[wired]\nrate = '1Gbps'\ndelay = '10ms'\n\
                 [[flow]]\nack = '{ack}'\ncongestion = '{congestion}'\nbytes = '3MB'\n"
            );
            let flow = flow(&text, 1);
            (flow.acks, flow.completion_s.expect("it ends"))
        });
        println!("{congestion}: {tack:?} reports and seconds, {plain:?} with delayed:2");
        assert!(
            4 * tack.0 < plain.0 && tack.1 < 1.1 * plain.1,
            "{congestion}: {tack:?}, {plain:?}"
        );
    }
}

/// Paths 151773 and 166713: reports of startup filled a narrow way back, and Vegas took the round
/// trips that this made longer for a queue: it left slow start with 0.6 and 0.8 of the window, and
/// had 7.9 of 11.5 and 110 of 165 Mbit/s.
#[test]
fn reports_of_startup_do_not_fill_a_narrow_way_back() {
    for (path, keys) in [
        (
            "duration = '8s'\n[wired]\nrate = '204132kbps'\ndelay = '48154us'\nqueue = '1.0bdp'\n\
             rate_reverse = '3569kbps'\n",
            "send_buffer = '6333992B'",
        ),
        (
            "duration = '14s'\n[wired]\nrate = '15057kbps'\ndelay = '56438us'\nqueue = '1.0bdp'\n\
             rate_reverse = '205kbps'\n",
            "timestamps = false",
        ),
    ] {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!("{path}[[flow]]\nack = '{ack}'\ncongestion = 'vegas'\n{keys}\n");
            flow(&text, 1).goodput_bps / 1e6
        });
        println!("{tack:.1} Mbit/s, {plain:.1} with delayed:2");
        assert!(tack > 0.85 * plain, "{tack}, {plain}: {path}");
    }
}

/// Path 169508: Vegas left slow start in a queue of three packets when half of the path was in use.
/// A round that doubles ended at twice the pace that it needs, and what a report of a sixteenth of
/// a round trip freed overflowed the queue: 51 and 29 of 75 and 60 Mbit/s.
#[test]
fn vegas_doubles_into_a_short_queue() {
    for (rate, delay) in [
        ("105Mbps", "22521us"),
        ("105Mbps", "50ms"),
        ("47Mbps", "50ms"),
        ("230Mbps", "22500us"),
    ] {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '7s'\n[wired]\nrate = '{rate}'\ndelay = '{delay}'\nqueue = '3p'\n\
                 [[flow]]\nack = '{ack}'\ncongestion = 'vegas'\n"
            );
            flow(&text, 1).goodput_bps / 1e6
        });
        println!("{rate}, {delay}: {tack:.1} Mbit/s, {plain:.1} with delayed:2");
        assert!(tack > 0.8 * plain, "{rate}, {delay}: {tack}, {plain}");
    }
}

/// Path 172655: answers of 100 kB use half of the window that slow start has made. A report of 16
/// segments widened it by all of them, beyond the half that is in use, and the pace with it beyond
/// the rate of the path: answers overflowed a queue of five packets, 41 of 75 were left.
#[test]
fn slow_start_widens_no_unused_window_by_a_whole_report() {
    for congestion in ["cubic", "new_reno", "compound"] {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '10s'\n[wired]\nrate = '43143kbps'\ndelay = '37313us'\nqueue = '1.0bdp'\n\
                 queue_reverse = '5p'\n[[flow]]\nack = '{ack}'\ncongestion = '{congestion}'\n\
                 app = 'request:366B,101511B,gap=33701us'\n"
            );
            let answers = flow(&text, 1).requests.expect("it asks").completed;
            answers as f64
        });
        println!("{congestion}: {tack} answers, {plain} with delayed:2");
        assert!(tack > 0.9 * plain, "{congestion}: {tack}, {plain}");
    }
}

/// Slow start leaves thousands of holes in a path of 1 Gbit/s and 200 ms. Reports of losses are as
/// few as those of data, and each named four holes: they were named one after the other for
/// seconds. BBR had 152 of 291 Mbit/s of `delayed:2` after six seconds. Above a hole the receive
/// window was not opened either, and each two segments drew a report: 6,115 with CUBIC.
#[test]
fn thousands_of_losses_at_once_are_reported_soon_and_together() {
    for (congestion, queue) in [("bbr", 0.05), ("bbr", 0.33), ("cubic", 0.1)] {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '6s'\n[wired]\nrate = '1Gbps'\ndelay = '100ms'\nqueue = '{queue}bdp'\n\
                 [[flow]]\nack = '{ack}'\ncongestion = '{congestion}'\n\
                 receive_buffer = '128MiB'\nsend_buffer = '128MiB'\n"
            );
            let flow = flow(&text, 1);
            (
                flow.acks,
                flow.goodput_bps / 1e6,
                flow.retransmitted_segments,
            )
        });
        println!("{congestion} {queue}: reports, Mbit/s, again {tack:?}; delayed:2 {plain:?}");
        assert!(
            tack.2 > 2000,
            "{congestion} {queue}: losses are few: {tack:?}"
        );
        let most = if congestion == "bbr" { 4_000 } else { 1_000 };
        assert!(
            tack.0 < most && tack.1 > 0.9 * plain.1,
            "{congestion} {queue}: {tack:?}, {plain:?}"
        );
    }
}
