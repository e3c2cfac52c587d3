//! Paths with two faults at once on which TACK once hung or crawled while delayed acknowledgements
//! in the same stack did not: whole families of them, against those. Nothing here expects a figure;
//! what `delayed:2` makes of the same path is the measure.
//!
//! The ordinary form of the longest families takes the members that say most. `TACK_LONG=1` runs
//! all of them, as CI does.

use rayon::prelude::*;
use tack_sim::{Checks, FlowReport, Observers, Scenario};

use crate::run;

use crate::{CONTROLLERS, controllers, is_long};

/// Runs a scenario, every invariant checked at every event; a sender that does not get on is one
/// that breaks.
fn flow(text: &str, seed: u64) -> FlowReport {
    flows(text, seed).remove(0)
}

fn flows(text: &str, seed: u64) -> Vec<FlowReport> {
    let scenario = Scenario::from_toml("hard_path.toml", text, &[]).expect("the scenario is sound");
    let mut observers = Observers::default().checking(Checks::EveryEvent);
    match run(&scenario, seed, &mut observers) {
        Ok(report) => report.flows,
        Err(broken) => panic!("{broken}\n{text}"),
    }
}

fn mbps(flow: &FlowReport) -> f64 {
    flow.goodput_bps / 1e6
}

/// A path that drops large packets silently, under a transfer whose last segment is small
/// enough: its arrival lets the receiver report the others, again and again.
#[test]
fn an_mtu_black_hole_is_found_at_every_size() {
    let sizes = [1_500, 2_000, 2_921, 4_380, 5_900, 7_340, 10_001, 14_000];
    let cases: Vec<_> = CONTROLLERS
        .iter()
        .flat_map(|congestion| sizes.map(|bytes| (congestion, bytes)))
        .collect();
    cases.par_iter().for_each(|(congestion, bytes)| {
        let took = |ack| {
            let text = format!(
                "duration = '300s'\n[wired]\nrate = '10Mbps'\ndelay = '10ms'\nmtu_black_hole = 1400\n\
                 [[flow]]\nack = '{ack}'\ncongestion = '{congestion}'\nbytes = '{bytes}B'\n"
            );
            flow(&text, 1).completion_s.unwrap_or(f64::INFINITY)
        };
        let (tack, plain) = (took("tack"), took("delayed:2"));
        assert!(
            tack <= 2.0 * plain,
            "{congestion}, {bytes} bytes: {tack} s, {plain} s with delayed:2"
        );
    });
}

/// A number that is lost while others are late once fell through the receiver's books, and the
/// stream stood still forever.
#[test]
fn no_hole_outlives_loss_with_reordering() {
    // Five: one of each controller.
    let seeds: Vec<u64> = (570..if is_long() { 582 } else { 575 }).collect();
    let shortfalls: Vec<_> = seeds
        .par_iter()
        .flat_map(|&seed| {
            let congestion = CONTROLLERS[seed as usize % 5];
            ["6MiB", "32MiB"].map(|buffer| {
                let at = |ack| {
                    let text = format!(
                        "duration = '20s'\nwarmup = '5s'\n[wired]\nrate = '5Mbps'\ndelay = '10ms'\nqueue = '2.0bdp'\nloss = 0.03\n\
                         reorder = 0.1\nreorder_delay = '5ms'\nreorder_reverse = 0.1\nreorder_delay_reverse = '5ms'\n\
                         ecn_threshold = '2p'\n[[flow]]\nack = '{ack}'\ncongestion = '{congestion}'\n\
                         receive_buffer = '{buffer}'\nsend_buffer = '{buffer}'\n"
                    );
                    flow(&text, seed)
                };
                let (tack, plain) = (at("tack"), at("delayed:2"));
                println!(
                    "{seed}, {congestion}, {buffer}: {:.2} Mbit/s, {:.2} with delayed:2",
                    mbps(&tack),
                    mbps(&plain)
                );
                assert!(
                    tack.no_progress_max_s < plain.no_progress_max_s + 1.0,
                    "{seed}, {congestion}: {} s without progress, {} with delayed:2",
                    tack.no_progress_max_s,
                    plain.no_progress_max_s
                );
                mbps(&tack) / mbps(&plain)
            })
        })
        .collect();
    let mean = shortfalls.iter().sum::<f64>() / shortfalls.len() as f64;
    assert!(mean > 0.9, "{mean} of the goodput of delayed:2");
}

/// A handshake whose segments get lost or come twice gives no round trip, and is an ordinary case
/// all the same.
#[test]
fn a_handshake_without_a_round_trip_costs_nothing_later() {
    const FAULTS: [&str; 3] = [
        "[[wired.blackout_reverse]]\nstart = '0s'\nduration = '300ms'",
        "[[wired.blackout]]\nstart = '0s'\nduration = '300ms'",
        "duplicate = 1.0",
    ];
    controllers().par_iter().for_each(|congestion| {
        let with = |fault: &str| {
            let text = format!(
                "duration = '14s'\nwarmup = '9s'\n[wired]\nrate = '40Mbps'\ndelay = '100ms'\nqueue = '1.0bdp'\n{fault}\n\
                 [[flow]]\nack = 'tack'\ncongestion = '{congestion}'\nreceive_buffer = '32MiB'\nsend_buffer = '32MiB'\n"
            );
            mbps(&flows(&text, 1)[0])
        };
        let plain = with("");
        for fault in FAULTS {
            let hurt = with(fault);
            assert!(
                hurt > 0.9 * plain,
                "{congestion}, {fault:?}: {hurt:.1} Mbit/s, {plain:.1} without"
            );
        }
    });
}

/// A flow alone on an empty path, a second one two seconds later, and a queue that makes many round
/// trips out of one: the receive window must follow. Who is first, and who loses when the queue
/// overflows, differs from path to path, with two flows of `delayed:2` too; so it is both orders
/// and two delays together that must be within 20 %. (Long form: four runs of a minute for each
/// controller.)
#[test]
fn a_round_trip_that_grows_leaves_tack_its_share() {
    if !is_long() {
        return;
    }
    let orders = [("tack", "delayed:2"), ("delayed:2", "tack")];
    let delays = [5, 10];
    let controllers = &CONTROLLERS;
    let cases: Vec<_> = controllers
        .iter()
        .flat_map(|controller| delays.map(|delay| (*controller, delay)))
        .flat_map(|(controller, delay)| orders.map(|order| (controller, delay, order)))
        .collect();
    let shares: Vec<_> = cases
        .par_iter()
        .map(|(controller, delay, (first, second))| {
            let flow = |ack: &str, start| {
                format!(
                    "[[flow]]\nack = '{ack}'\ncongestion = '{controller}'\nstart = '{start}s'\n\
                     receive_buffer = '32MiB'\nsend_buffer = '32MiB'\n"
                )
            };
            let text = format!(
                "duration = '60s'\nwarmup = '20s'\n[wired]\nrate = '100Mbps'\ndelay = '{delay}ms'\nqueue = '2500p'\n{}{}",
                flow(first, 0),
                flow(second, 2)
            );
            let flows = flows(&text, 1);
            let tack = &flows[usize::from(*first != "tack")];
            // The first round trips, from 64 KiB on, are seen in the whole and not after the
            // warm-up.
            let [start, later] = [tack.limited_by_overall.rwnd, tack.limited_by.rwnd];
            assert!(
                start < 0.05 && later < 0.002,
                "{controller}, {delay} ms: the receive window limited for {start} of the time, {later} of it later"
            );
            let [a, b] = [mbps(&flows[0]), mbps(&flows[1])];
            println!("{controller}, {delay} ms: {first} {a:.1}, {second} {b:.1} Mbit/s");
            if *first == "tack" { a / b } else { b / a }
        })
        .collect();
    for (controller, shares) in controllers.iter().zip(shares.chunks(delays.len() * 2)) {
        let mean =
            (shares.iter().map(|share: &f64| share.ln()).sum::<f64>() / shares.len() as f64).exp();
        println!("{controller}: {mean:.2} of the neighbour's");
        assert!(
            (0.8..1.25).contains(&mean),
            "{controller}: {mean} of the neighbour's"
        );
    }
}

/// What is left of that difference does not come from acknowledgements. Without chance, packets of
/// two flows take turns in a full drop-tail queue, and an overflow may hit one of them alone. Where
/// hosts take up to 0.1 ms to process a packet, it hits both, and the first of two flows of
/// `delayed:2` has no larger share than TACK in its place. (Long form: three runs of a minute for
/// each controller.)
#[test]
fn a_round_trip_that_grows_leaves_tack_what_it_leaves_delayed_acknowledgements() {
    if !is_long() {
        return;
    }
    let controllers = &CONTROLLERS;
    // Between two flows of delayed:2 there is one order only.
    let orders = [
        ["tack", "delayed:2"],
        ["delayed:2", "tack"],
        ["delayed:2", "delayed:2"],
    ];
    let cases: Vec<_> = controllers
        .iter()
        .flat_map(|controller| orders.map(|order| (*controller, order)))
        .collect();
    let shares: Vec<f64> = cases
        .par_iter()
        .map(|(controller, order)| {
            let mut text = "duration = '60s'\nwarmup = '20s'\n[wired]\nrate = '100Mbps'\ndelay = '5ms'\nqueue = '2500p'\n\
                 late_processing = '0.1ms'\nlate_processing_reverse = '0.1ms'\n"
                .to_owned();
            for (ack, start) in order.iter().zip([0, 2]) {
                text += &format!(
                    "[[flow]]\nack = '{ack}'\ncongestion = '{controller}'\nstart = '{start}s'\n\
                     receive_buffer = '32MiB'\nsend_buffer = '32MiB'\n"
                );
            }
            let flows = flows(&text, 1);
            let [a, b] = [mbps(&flows[0]), mbps(&flows[1])];
            println!("{controller}: {} {a:.1}, {} {b:.1} Mbit/s", order[0], order[1]);
            a / (a + b)
        })
        .collect();
    for (controller, shares) in controllers.iter().zip(shares.chunks(orders.len())) {
        // Of the first flow each.
        let [tack_first, before_tack, plain] = shares else {
            unreachable!("a share for each order")
        };
        let tack_second = 1.0 - before_tack;
        assert!(
            *tack_first > plain - 0.07 && tack_second > 1.0 - plain - 0.07,
            "{controller}: {tack_first} of the rate as the first one and {tack_second} as the second one, {plain} and {} with delayed:2",
            1.0 - plain
        );
        if *controller == "cubic" {
            // Within 20 % of each other is more than two flows of delayed:2 come to.
            assert!(plain / (1.0 - plain) < 0.8, "{plain}");
        }
    }
}

/// With BBR the first flow has less with TACK than with `delayed:2` there, because its RTTmin is
/// exact: a window is two products of that. Where TACK samples round trips as `delayed:2` does, it
/// has more. (Long form: four runs of a minute.)
#[test]
fn an_exact_rtt_min_is_what_costs_bbr_its_share_where_the_round_trip_grows() {
    if !is_long() {
        return;
    }
    let ways = ["tack", "tack:timing=sampled"];
    let [exact, sampled] = ways.map(|ack| {
        let rates: Vec<f64> = [1, 2]
            .par_iter()
            .map(|seed| {
                let mut text = "duration = '60s'\nwarmup = '20s'\n[wired]\nrate = '100Mbps'\ndelay = '5ms'\nqueue = '2500p'\n\
                     late_processing = '0.1ms'\nlate_processing_reverse = '0.1ms'\n"
                    .to_owned();
                for (ack, start) in [(ack, 0), ("delayed:2", 2)] {
                    text += &format!(
                        "[[flow]]\nack = '{ack}'\ncongestion = 'bbr'\nstart = '{start}s'\n\
                         receive_buffer = '32MiB'\nsend_buffer = '32MiB'\n"
                    );
                }
                mbps(&flows(&text, *seed)[0])
            })
            .collect();
        rates.iter().sum::<f64>() / rates.len() as f64
    });
    println!("{exact:.1} Mbit/s, {sampled:.1} with sampled round trips");
    assert!(sampled > exact + 4.0, "{exact} Mbit/s, {sampled} sampled");
}

/// A receive buffer from less than a bdp to twice that: never slower than delayed acknowledgements,
/// and the saving shrinks with the buffer, not all at once.
#[test]
fn a_scarce_window_costs_acknowledgements_smoothly() {
    if !is_long() {
        return;
    }
    // 100 Mbit/s and 40 ms: 500,000 bytes.
    let runs: Vec<_> = [0.75, 1.0, 1.1, 1.25, 1.4, 2.0]
        .par_iter()
        .map(|share| {
            let bytes = (share * 500_000.0) as u64;
            let at = |ack| {
                let text = format!(
                    "duration = '12s'\nwarmup = '4s'\n[wired]\nrate = '100Mbps'\ndelay = '20ms'\nqueue = '1.0bdp'\n\
                     [[flow]]\nack = '{ack}'\ncongestion = 'bbr'\nreceive_buffer = '{bytes}B'\n"
                );
                flows(&text, 1).remove(0)
            };
            let (tack, plain) = (at("tack"), at("delayed:2"));
            println!(
                "{share} bdp: {:.2} Mbit/s with {} ACKs, {:.2} with {}",
                mbps(&tack),
                tack.acks,
                mbps(&plain),
                plain.acks
            );
            assert!(
                mbps(&tack) > 0.99 * mbps(&plain),
                "{share} bdp: {} Mbit/s, {} with delayed:2",
                mbps(&tack),
                mbps(&plain)
            );
            tack.acks as f64 / plain.acks as f64
        })
        .collect();
    assert!(runs[0] <= 1.05 && runs[5] < 0.05, "{runs:?}");
    assert!(
        runs.windows(2).all(|pair| pair[1] <= pair[0] * 1.1),
        "{runs:?}"
    );
    // Somewhere between all and nothing.
    assert!(
        runs[1..4].iter().any(|share| (0.02..0.5).contains(share)),
        "{runs:?}"
    );
}

/// The same on 802.11ac at 80 ms (a bdp of 6 MB), with BBR and with CUBIC behind a queue that makes
/// the round trip twice as long. (Long form: each run delivers half a gigabyte.)
#[test]
fn a_scarce_window_on_wifi_leaves_the_goodput_and_most_of_the_saving() {
    if !is_long() {
        return;
    }
    let all = [("bbr", 1000), ("cubic", 4000)]
        .map(|(controller, queue)| [3, 5, 6].map(|mib| (controller, queue, mib)));
    // Five is about the product of rate and round trip: there the window limits at times, and the
    // air at others.
    let cases: Vec<_> = all.into_iter().flatten().collect();
    cases.par_iter().for_each(|(controller, queue, mib)| {
        let seeds = if *mib == 5 { 1..=3 } else { 1..=1 };
        let at = |ack, seed| {
            let text = format!(
                "duration = '10s'\nwarmup = '4s'\n[wlan]\npreset = 'tack-ac'\nap_queue = '{queue}p'\n\
                 [wired]\nrate = '10Gbps'\ndelay = '40ms'\n\
                 [[flow]]\nack = '{ack}'\ncongestion = '{controller}'\nreceive_buffer = '{mib}MiB'\nsend_buffer = '64MiB'\n"
            );
            flows(&text, seed).remove(0)
        };
        let runs: Vec<[FlowReport; 2]> = seeds
            .map(|seed| [at("tack", seed), at("delayed:2", seed)])
            .collect();
        for [tack, plain] in &runs {
            println!(
                "{controller}, {mib} MiB: {:.0} Mbit/s with {} ACKs, {:.0} with {}",
                mbps(tack),
                tack.acks,
                mbps(plain),
                plain.acks
            );
        }
        let goodput = |ack: usize| runs.iter().map(|run| mbps(&run[ack])).sum::<f64>();
        // A per cent for where the run begins and ends within a round trip. At the product a seed
        // alone decides nothing: with either mechanism goodput differs by three per cent from seed
        // to seed.
        assert!(
            goodput(0) > 0.99 * goodput(1),
            "{controller}, {mib} MiB: {} and {} Mbit/s in {} runs",
            goodput(0),
            goodput(1),
            runs.len()
        );
        let shares = runs.iter().map(|[tack, plain]| tack.acks as f64 / plain.acks as f64);
        let share = shares.sum::<f64>() / runs.len() as f64;
        // Below the product the window is what limits, and each second segment says so; above it
        // the clock decides. At it, most of the saving stays.
        let most = match mib {
            3 => 1.02,
            5 => 0.5,
            _ => 0.1,
        };
        assert!(share < most, "{controller}, {mib} MiB: {share} of the ACKs");
    });
}

/// The first SYN-ACK is lost, and of the second a middlebox takes off TACK's option, or the
/// permission of SACK: neither side has a round trip from the handshake, and timeouts begin at
/// three seconds (RFC 6298 §5.7). The timestamps of both SYNs must bring one, or losses, an outage
/// or a narrow path make each step take seconds.
#[test]
fn a_handshake_that_lost_its_round_trip_and_its_options_recovers() {
    if !crate::is_long() {
        return;
    }
    let faults = [
        ("[253]", "loss = 0.02\nmtu_black_hole_reverse = 694\n"),
        (
            "[4]",
            "loss = 0.045\n[[wired.blackout]]\nstart = '124ms'\nduration = '329ms'\n",
        ),
        (
            "[4]",
            "queue_reverse = '5p'\nack_loss_reverse = 0.05\n[[wired.blackout]]\nstart = '3s'\nduration = '600ms'\n",
        ),
    ];
    let cases: Vec<_> = CONTROLLERS
        .iter()
        .flat_map(|controller| faults.map(|(stripped, fault)| (controller, stripped, fault)))
        .collect();
    cases.par_iter().for_each(|(controller, stripped, fault)| {
        let sum = |ack| {
            (1..=4)
                .map(|seed| {
                    let text = format!(
                        "duration = '10s'\n[wired]\nrate = '20Mbps'\ndelay = '3ms'\nqueue = '1.0bdp'\n\
                         strip_options_reverse = {stripped}\nstrip_options_from_reverse = 'syn'\n{fault}\
                         [[wired.blackout_reverse]]\nstart = '1us'\nduration = '11ms'\n\
                         [[flow]]\nack = '{ack}'\ncongestion = '{controller}'\n"
                    );
                    mbps(&flow(&text, seed))
                })
                .sum::<f64>()
        };
        let [tack, plain] = ["tack", "delayed:2"].map(sum);
        println!("{controller}, {stripped}, {fault:?}: {tack:.2}, {plain:.2} Mbit/s in four runs");
        assert!(
            tack > 0.7 * plain,
            "{controller}, {stripped}, {fault:?}: {tack:.2}, {plain:.2} with delayed:2"
        );
    });
}

/// The SYN-ACK is lost and the second SYN answered: the round trip is that of the second, not a
/// timeout more, and a short transfer takes a second more than without.
#[test]
fn a_repeated_syn_is_not_timed_from_the_first() {
    let cases: Vec<_> = CONTROLLERS
        .iter()
        .flat_map(|controller| [3, 40].map(|delay| (controller, delay)))
        .collect();
    cases.par_iter().for_each(|(controller, delay)| {
        let completion = |ack: &str, lost: &str| {
            let text = format!(
                "duration = '60s'\n[wired]\nrate = '40Mbps'\ndelay = '{delay}ms'\n{lost}\
                 [[flow]]\nack = '{ack}'\ncongestion = '{controller}'\nbytes = '1MB'\n"
            );
            flow(&text, 1).completion_s.expect("it ends")
        };
        let lost = "[[wired.blackout_reverse]]\nstart = '1us'\nduration = '300ms'\n";
        for ack in ["tack", "delayed:2"] {
            let [plain, repeated] = ["", lost].map(|lost| completion(ack, lost));
            println!(
                "{controller}, {delay} ms, {ack}: {plain:.2} s, {repeated:.2} s with a SYN-ACK lost"
            );
            // The window begins at one segment then (RFC 6298 §5.7 and RFC 5681 §3.1): some round
            // trips.
            let slower = 1.0 + f64::from(*delay) * 2e-3 * 8.0 + 0.2;
            assert!(
                repeated < plain + slower,
                "{controller}, {delay} ms, {ack}: {repeated:.2} s after {plain:.2} s"
            );
        }
    });
}
