//! Paths that the random search (`../differential/`) flagged, each with its neighbours, and what
//! was repaired on them or was found not to be TACK's. As there, `delayed:2` on the same path is
//! the measure.

use rayon::prelude::*;
use tack_sim::{Checks, FlowReport, Observers, Report, Scenario, run};

use crate::{CONTROLLERS, controllers};

/// Runs a scenario, every invariant checked at every event.
pub(crate) fn report(text: &str, seed: u64) -> Report {
    let scenario = Scenario::from_toml("found.toml", text, &[]).expect("the scenario is sound");
    let mut observers = Observers::default().checking(Checks::EveryEvent);
    match run(&scenario, seed, &mut observers) {
        Ok(report) => report,
        Err(broken) => panic!("{broken}\n{text}"),
    }
}

pub(crate) fn flows(text: &str, seed: u64) -> Vec<FlowReport> {
    report(text, seed).flows
}

/// How long path 42785 takes when nothing comes back for `length` ms from `start` ms on.
fn seconds_with_blackout(congestion: &str, ack: &str, start: u32, length: u32) -> f64 {
    let text = format!(
        "duration = '60s'\n[wired]\nrate = '25Mbps'\ndelay = '36ms'\nqueue = '1.0bdp'\n\
         [[wired.blackout_reverse]]\nstart = '{start}ms'\nduration = '{length}ms'\n\
         [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nbytes = '571590B'\napp = 'duplex'\n"
    );
    flows(&text, 1)[0].completion_s.expect("it ends")
}

/// Path 42785: all acknowledgements get lost for some 400 ms, and both ends time out. The first
/// acknowledgement that comes is on the peer's own retransmission and carries no report. It left
/// before ours arrived, which time alone tells.
#[test]
fn an_acknowledgement_on_data_undoes_a_timeout() {
    let cases: Vec<_> = controllers()
        .iter()
        .flat_map(|congestion| [181, 210].map(|start| (congestion, start)))
        .flat_map(|(congestion, start)| [300, 447].map(|length| (congestion, start, length)))
        .collect();
    cases.par_iter().for_each(|(congestion, start, length)| {
        let [tack, plain] = ["tack", "delayed:2"]
            .map(|ack| seconds_with_blackout(congestion, ack, *start, *length));
        println!(
            "{congestion}, {length} ms from {start} ms: {tack:.2} s, {plain:.2} s with delayed:2"
        );
        assert!(
            tack < 1.3 * plain,
            "{congestion}, {length} ms from {start} ms: {tack} s, {plain} s with delayed:2"
        );
    });
}

/// The same, where the acknowledgement on data comes a little more than a round trip after the
/// retransmission, so that time tells nothing: the report that follows says that the retransmission
/// brought nothing new, and the timeout is undone though its flight is acknowledged.
#[test]
fn a_report_of_a_needless_retransmission_undoes_a_timeout() {
    let cases: Vec<_> = controllers()
        .iter()
        .flat_map(|congestion| [100, 120, 150, 175].map(|start| (congestion, start)))
        .flat_map(|(congestion, start)| [300, 447].map(|length| (congestion, start, length)))
        .collect();
    cases.par_iter().for_each(|(congestion, start, length)| {
        let [tack, plain] = ["tack", "delayed:2"]
            .map(|ack| seconds_with_blackout(congestion, ack, *start, *length));
        println!(
            "{congestion}, {length} ms from {start} ms: {tack:.2} s, {plain:.2} s with delayed:2"
        );
        assert!(
            tack < 1.3 * plain,
            "{congestion}, {length} ms from {start} ms: {tack} s, {plain} s with delayed:2"
        );
    });
}

/// Path 30487: two flows in a queue of five packets, and a receiver whose host sleeps for a while
/// each second. Of the few segments in flight the last retransmission gets lost as well: reports
/// that leave later show it, without the timeout. (TACK has the smaller share there all the same:
/// docs/validation/hard-paths.md.)
#[test]
fn the_last_retransmission_of_a_small_window_needs_no_timeout() {
    if !crate::is_long() {
        return;
    }
    let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
        let text = format!(
            "duration = '12s'\n[wired]\nrate = '10798kbps'\ndelay = '2852us'\nqueue = '5p'\n\
             loss_reverse = 0.0193\nqueue_reverse = '10p'\n\
             [wired.suspension_reverse]\nstart = '4590us'\nperiod = '1060528us'\nduration = '97766us'\nduration_max = '350ms'\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\n[[flow]]\ncongestion = 'bbr'\nack = 'delayed:2'\n"
        );
        let seeds: Vec<u64> = (1..=24).collect();
        let runs: Vec<_> = seeds.par_iter().map(|seed| flows(&text, *seed)).collect();
        let mean = |figure: fn(&FlowReport) -> f64| {
            runs.iter().map(|flows| figure(&flows[0])).sum::<f64>() / runs.len() as f64
        };
        let (mbps, timeouts) = (mean(|flow| flow.goodput_bps / 1e6), mean(|flow| flow.rto_count as f64));
        println!("{ack}: {mbps:.2} Mbit/s, {timeouts:.1} timeouts");
        (mbps, timeouts)
    });
    assert!(tack.1 < 0.6 * plain.1, "{tack:?}, {plain:?}");
}

/// Path 60509: every segment arrives twice, and the receive buffer holds less than the path, so
/// that segments are counted. Copies do not count: they drew a report for each segment.
#[test]
fn copies_of_segments_draw_no_more_reports() {
    let acks = |congestion: &str, ack: &str, copies: &str| {
        let text = format!(
            "duration = '3s'\n[wired]\nrate = '48716kbps'\ndelay = '21678us'\nqueue = '0.5bdp'\n\
             duplicate = {copies}\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nreceive_buffer = '129619B'\n"
        );
        let flow = &flows(&text, 1)[0];
        flow.acks as f64 / flow.data_segments as f64
    };
    for congestion in controllers() {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| acks(congestion, ack, "1.0"));
        let without = acks(congestion, "tack", "0.0");
        println!(
            "{congestion}: {tack:.2} acknowledgements a segment, {plain:.2} with delayed:2, {without:.2} without copies"
        );
        assert!(
            tack <= plain,
            "{congestion}: {tack}, {plain} with delayed:2"
        );
    }
}

/// Path 61498: a receive buffer of less than three segments, and segments of 1,448 bytes. Each that
/// is read moves the edge of the window: as it did not, each report said that the window was
/// closed, and a window update followed at once.
#[test]
fn a_buffer_of_two_segments_needs_no_window_update_for_each() {
    for congestion in CONTROLLERS {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '10s'\n[wired]\nrate = '2084kbps'\ndelay = '39425us'\nqueue = '2.0bdp'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\napp = 'request:11326B,14300B,gap=95975us'\n\
                 timestamps = false\nreceive_buffer = '4096B'\n"
            );
            flows(&text, 1).remove(0)
        });
        let per_segment = tack.acks as f64 / tack.data_segments as f64;
        println!(
            "{congestion}: {} acknowledgements of {} segments, with delayed:2 {} of {}",
            tack.acks, tack.data_segments, plain.acks, plain.data_segments
        );
        assert!(per_segment < 0.9, "{congestion}: {per_segment:.2}");
        assert!(
            tack.bytes_delivered >= plain.bytes_delivered,
            "{congestion}"
        );
    }
}

/// Path 61169: data both ways, and the way back is a queue of many round trips. A report that is
/// the last of a flight is repeated because some get lost; its answer waits in that queue, and what
/// is repeated before it could come only makes the queue longer.
#[test]
fn reports_are_not_repeated_into_a_queue_that_holds_their_answer() {
    let acks = |congestion: &str, ack: &str| {
        let of = |seed| {
            let text = format!(
                "duration = '300s'\n[wired]\nrate = '1109kbps'\ndelay = '15151us'\nqueue = '5p'\nloss_reverse = 0.0377\n\
                 rate_reverse = '64kbps'\n[[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nbytes = '300000B'\n\
                 app = 'duplex'\nsend_buffer = '5838B'\n"
            );
            let flow = flows(&text, seed).remove(0);
            assert!(flow.completion_s.is_some(), "it ends");
            flow.acks as f64
        };
        (1..=4).map(of).sum::<f64>() / 4.0
    };
    for congestion in CONTROLLERS {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| acks(congestion, ack));
        println!("{congestion}: {tack:.0} acknowledgements, {plain:.0} with delayed:2");
        assert!(tack < 1.9 * plain, "{congestion}: {tack} and {plain}");
    }
}

/// Path 60762: the way there is dark for 96 ms. Reports of an open loss that the receiver repeats
/// do not know what was sent again into the dark: one segment asks then. They had shown that the
/// whole flight was lost, which left twice more in vain.
#[test]
fn what_is_sent_into_a_blackout_is_not_all_sent_again() {
    let repeated = |congestion: &str, ack: &str| {
        let one = |(seed, start): (u64, u32)| {
            let text = format!(
                "duration = '60s'\n[wired]\nrate = '252703kbps'\ndelay = '643us'\nqueue = '0.5bdp'\n\
                 ack_loss = 0.033\n[[wired.blackout]]\nstart = '{start}us'\nduration = '96047us'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nbytes = '176889B'\nmss = 1220\n"
            );
            let flow = &flows(&text, seed)[0];
            assert!(flow.completion_s.is_some(), "it ends");
            (flow.retransmitted_segments, flow.data_segments)
        };
        let starts = [7_000, 7_500, 8_162, 9_000];
        let runs = (1..=8).flat_map(|seed| starts.map(|start| (seed, start)));
        let runs: Vec<_> = runs.collect::<Vec<_>>().into_par_iter().map(one).collect();
        let sum = |figure: fn(&(u64, u64)) -> u64| runs.iter().map(figure).sum::<u64>() as f64;
        sum(|run| run.0) / sum(|run| run.1)
    };
    controllers().par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| 100.0 * repeated(congestion, ack));
        println!("{congestion}: {tack:.1} % again, {plain:.1} % with delayed:2");
        // What the search flags: six points more.
        assert!(
            tack <= plain + 6.0,
            "{congestion}: {tack} %, {plain} % with delayed:2"
        );
    });
}

/// Path 61022: requests over a round trip of 1.1 ms, and hosts that lose the end of what they send
/// at once. Only a remainder may be acknowledged as late as delayed acknowledgements would be. A
/// probe that grants 40 ms to whatever is in flight answers each loss that much too late.
#[test]
fn a_probe_waits_for_a_remainder_alone() {
    let answers = |congestion: &str, ack: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '98071kbps'\ndelay = '571us'\nqueue = '1.0bdp'\n\
             rate_reverse = '22327kbps'\nshort_sends_reverse = 0.2133\nbatch_reverse = 64\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\ntimestamps = false\n\
             app = 'request:17156B,9193B,gap=3354us'\n"
        );
        let done = |seed| flows(&text, seed)[0].requests.expect("it asks").completed;
        (1..=6).into_par_iter().map(done).sum::<u64>()
    };
    controllers().par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| answers(congestion, ack));
        println!("{congestion}: {tack} answers, {plain} with delayed:2");
        assert!(
            tack >= plain,
            "{congestion}: {tack}, {plain} with delayed:2"
        );
    });
}

/// Path 70441: requests, and a queue on the way back that holds no answer while an acknowledgement
/// leaves, so that most answers get lost at first. A probe may follow each of them, and the timer
/// does not stay backed off: 41 answers before that, and 78 with `delayed:2`.
#[test]
fn answers_that_get_lost_at_first_are_probed_each_time() {
    let answers = |congestion: &str, ack: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '29376kbps'\ndelay = '2195us'\nqueue = '1.0bdp'\n\
             rate_reverse = '454kbps'\n[wired.suspension]\nstart = '182ms'\nperiod = '1495ms'\n\
             duration = '19ms'\nduration_max = '350ms'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\napp = 'request:5050B,361B'\n"
        );
        let done = |seed| flows(&text, seed)[0].requests.expect("it asks").completed;
        (1..=8).into_par_iter().map(done).sum::<u64>()
    };
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| answers(congestion, ack));
        println!("{congestion}: {tack} answers, {plain} with delayed:2");
        assert!(
            tack >= plain,
            "{congestion}: {tack}, {plain} with delayed:2"
        );
    });
}

/// Path 80457: the last acknowledgement of each request waits in a queue with its answer, behind
/// reports that came at once, and comes a little later than a probe waits. An acknowledgement that
/// comes sooner after the probe than anything was ever answered is the original's, and says how
/// long such answers take: 7 probes for nothing instead of one for each of 18 requests.
#[test]
fn an_answer_that_waits_with_data_is_not_probed_for_each_time() {
    let again = |ack: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '7346kbps'\ndelay = '6100us'\nqueue = '1.0bdp'\n\
             rate_reverse = '76kbps'\nqueue_reverse = '72p'\n\
             [[wired.blackout_reverse]]\nstart = '1us'\nduration = '10968us'\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\napp = 'request:9118B,2994B,gap=103976us'\n"
        );
        let flow = flows(&text, 1).remove(0);
        (
            flow.retransmitted_segments,
            flow.requests.expect("it asks").completed,
        )
    };
    let [(tack, answers), (plain, plain_answers)] = ["tack", "delayed:2"].map(again);
    println!("{tack} again for {answers} answers; {plain} for {plain_answers} with delayed:2");
    assert!(2 * tack < answers && answers + 1 >= plain_answers);
}

/// Paths 61072 and 30807: requests whose answers overflow a queue shorter than the path. BBR is
/// limited by the application and stays in its startup, so that each answer overflows the queue
/// again: 49 answers instead of 149, and 48 instead of 87. Losses out of a queue that stands,
/// answer by answer, end the startup. With queues a little longer and shorter `delayed:2` did the
/// same.
#[test]
fn answers_that_overflow_a_queue_each_time_end_the_startup_of_bbr() {
    let answers = |rate: &str, delay: &str, queue: &str, flow: &str, ack: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '{rate}'\ndelay = '{delay}'\nqueue = '{queue}'\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\n{flow}\n"
        );
        flows(&text, 1)[0].requests.expect("it asks").completed
    };
    // The most answers that any queue allows are 149 and 87.
    let paths = [
        (
            "4610kbps",
            "12009us",
            ["8p", "9p", "10p", "12p", "14p"],
            "app = 'request:21174B,2170B'\nmss = 1000",
            149,
        ),
        (
            "2048kbps",
            "27095us",
            ["4p", "5p", "6p", "8p", "10p"],
            "app = 'request:189B,10078B,gap=14682us'\nmss = 536",
            87,
        ),
    ];
    for (rate, delay, queues, flow, most) in paths {
        for queue in queues {
            for ack in ["tack", "delayed:2"] {
                let answers = answers(rate, delay, queue, flow, ack);
                println!("{rate}, {queue}, {ack}: {answers} answers");
                assert!(
                    3 * answers >= 2 * most,
                    "{rate}, {queue}, {ack}: {answers} of {most}"
                );
            }
        }
    }
}

/// Losses at random keep BBR's startup where the application limits it: its rate samples say what
/// the application sends, and pacing at no more than that delays each answer by up to a round trip.
#[test]
fn random_losses_do_not_end_the_startup_of_an_application_limited_bbr() {
    let answers = |loss: f64, ack: &str| {
        let text = format!(
            "duration = '20s'\n[wired]\nrate = '50Mbps'\ndelay = '40ms'\nqueue = '1.0bdp'\nloss = {loss}\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\napp = 'request:30000B,500B'\n"
        );
        let done = |seed| flows(&text, seed)[0].requests.expect("it asks").completed;
        (1..=6).into_par_iter().map(done).sum::<u64>() as f64
    };
    for ack in ["tack", "delayed:2"] {
        // A round trip of 80 ms more for each answer would be 20 % fewer of them.
        let (few, many) = (answers(0.01, ack), answers(0.04, ack));
        println!("{ack}: {few} answers with 1 % lost, {many} with 4 %");
        assert!(many > 0.7 * few, "{ack}: {many}, {few}");
    }
}

/// Path 60415: timers of the sender's host are up to 4.3 ms late, and the queue of ten packets
/// drains in 0.6 ms. What a report frees leaves in bursts as long as the timers are late. A plain
/// policy that acknowledges as seldom is no faster, and with timers on time TACK is as fast as
/// `delayed:2`.
#[test]
fn with_late_timers_a_plain_policy_that_acknowledges_as_seldom_is_no_faster() {
    if !crate::is_long() {
        return;
    }
    let run = |ack: &str, late: &str| {
        let text = format!(
            "duration = '6s'\n[wired]\nrate = '194185kbps'\ndelay = '8724us'\nqueue = '10p'\n\
             isn_rewrite = 'without_sack'\nlate_timers = '{late}'\nlate_processing = '315us'\n\
             [[flow]]\ncongestion = 'new_reno'\nack = '{ack}'\nsend_buffer = '410103B'\n"
        );
        let runs: Vec<_> = (1..=4)
            .into_par_iter()
            .map(|seed| flows(&text, seed).remove(0))
            .collect();
        let sum = |figure: fn(&FlowReport) -> f64| runs.iter().map(figure).sum::<f64>();
        let mbps = sum(|flow| flow.goodput_bps) / 4e6;
        let acks = sum(|flow| flow.acks as f64) / sum(|flow| flow.bytes_delivered as f64) * 1e6;
        println!("{ack}, late by {late}: {mbps:.1} Mbit/s, {acks:.0} acknowledgements a MB");
        (mbps, acks)
    };
    let [tack, sparse, plain] = ["tack", "delayed:16", "delayed:2"].map(|ack| run(ack, "4315us"));
    // What the search flags, and its reason.
    assert!(tack.0 < 0.7 * plain.0, "{tack:?}, {plain:?}");
    assert!(
        sparse.1 <= tack.1 && sparse.0 <= tack.0,
        "{tack:?}, {sparse:?}"
    );
    let [tack, plain] = ["tack", "delayed:2"].map(|ack| run(ack, "0us"));
    assert!(tack.0 >= 0.95 * plain.0, "{tack:?}, {plain:?}");
}

/// Path 50266: one flow's acknowledgements fill the queue of a slow reverse link, and those of the
/// other hardly get in. That does not come from TACK: the flow that acknowledges less often
/// starves, and two that do it alike share, or chance decides. So it is with plain policies, too.
#[test]
fn who_acknowledges_more_often_starves_the_other_on_a_full_reverse_link() {
    if !crate::is_long() {
        return;
    }
    let shares = |first: &str, second: &str| {
        let text = format!(
            "duration = '6s'\n[wired]\nrate = '66821kbps'\ndelay = '785us'\nqueue = '2.0bdp'\n\
             loss_reverse = 0.0367\nrate_reverse = '599kbps'\n\
             [[flow]]\ncongestion = 'cubic'\nack = '{first}'\n[[flow]]\ncongestion = 'cubic'\nack = '{second}'\n"
        );
        let seeds: Vec<u64> = (1..=8).collect();
        let runs: Vec<_> = seeds.par_iter().map(|seed| flows(&text, *seed)).collect();
        let mbps = |nth: usize| {
            runs.iter().map(|flows| flows[nth].goodput_bps).sum::<f64>() / 1e6 / runs.len() as f64
        };
        let slower = |flows: &Vec<FlowReport>| flows[0].goodput_bps.min(flows[1].goodput_bps) / 1e6;
        let slower = runs.iter().map(slower).fold(f64::INFINITY, f64::min);
        println!(
            "{first} {:.2}, {second} {:.2} Mbit/s; {slower:.2} at least",
            mbps(0),
            mbps(1)
        );
        (mbps(0), mbps(1), slower)
    };
    let (tack, dense, _) = shares("tack", "delayed:2");
    assert!(tack < 0.1 * dense, "{tack}, {dense}");
    let (first, second, _) = shares("tack", "tack");
    assert!((0.5..2.0).contains(&(first / second)), "{first}, {second}");
    let (plain, denser, _) = shares("delayed:2", "every");
    assert!(plain < 0.1 * denser, "{plain}, {denser}");
    // Two plain flows: of some seeds one has next to nothing.
    let (_, _, slower) = shares("delayed:2", "delayed:2");
    assert!(slower < 5.0, "{slower}");
}

/// Path 61432, which differs from 50266 by reordering: with most segments out of order `delayed:2`
/// acknowledges each of them, and fills the way back. TACK beside TACK has there what `delayed:2`
/// has beside its like, and on a fast way back they are alike beside each other as well.
#[test]
fn beside_its_like_tack_is_as_fast_on_a_full_reverse_link() {
    if !crate::is_long() {
        return;
    }
    let first = |acks: [&str; 2], way_back: &str| {
        let [first, second] = acks;
        let text = format!(
            "duration = '12276352us'\n[wired]\nrate = '7723kbps'\ndelay = '6908us'\nqueue = '1.0bdp'\n\
             reorder = 0.2211\nreorder_delay = '8514us'\nrate_reverse = '{way_back}'\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{first}'\ntimestamps = false\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{second}'\ntimestamps = false\n"
        );
        let goodput = |seed| flows(&text, seed)[0].goodput_bps / 1e6;
        (1..=16).into_par_iter().map(goodput).sum::<f64>() / 16.0
    };
    let plain = first(["delayed:2", "delayed:2"], "161kbps");
    let beside_plain = first(["tack", "delayed:2"], "161kbps");
    let beside_tack = first(["tack", "tack"], "161kbps");
    let fast = first(["tack", "delayed:2"], "1Gbps");
    println!(
        "delayed:2 {plain:.2} Mbit/s, TACK beside it {beside_plain:.2}, beside TACK {beside_tack:.2}, on a fast way back {fast:.2}"
    );
    // What the search flags.
    assert!(beside_plain < 0.7 * plain, "{beside_plain}, {plain}");
    assert!(beside_tack > 0.7 * plain, "{beside_tack}, {plain}");
    assert!(fast > 0.7 * plain, "{fast}, {plain}");
}

/// Path 61504: data both ways and a small send buffer. Data carries most acknowledgements of
/// `delayed:2`, and fewer of TACK, whose reports travel alone. With data in one direction TACK
/// sends about as many as a plain policy that waits no longer than a period.
#[test]
fn acknowledgements_that_data_carries_are_those_that_reports_cost() {
    let acks = |app: &str, ack: &str| {
        let text = format!(
            "duration = '60s'\n[wired]\nrate = '31960kbps'\ndelay = '2443us'\nqueue = '1000p'\n\
             [[flow]]\ncongestion = 'compound'\nack = '{ack}'\nbytes = '1157756B'\napp = '{app}'\n\
             send_buffer = '4096B'\n"
        );
        flows(&text, 1)[0].acks as f64
    };
    let both_ways = acks("duplex", "tack");
    let one_way = acks("bulk", "tack");
    // RTTmin/4 of a path of 4.9 ms.
    let prompt = acks("bulk", "delayed:2,timer=1222us");
    println!("both ways {both_ways}, one way {one_way}, {prompt} with delayed:2 that soon");
    assert!(both_ways <= one_way, "{both_ways}, {one_way}");
    assert!(one_way <= 1.3 * prompt, "{one_way}, {prompt}");
}

/// Path 120440: a transfer is nearly done when a blackout of the way back begins, and what is left
/// has to wait for its end: 1.51 s, 0.59 s with `delayed:2`. A few milliseconds decide about that
/// with either policy, and without the blackout both take as long.
#[test]
fn which_transfer_a_blackout_catches_is_a_matter_of_milliseconds() {
    let seconds = |ack: &str, blackout: Option<u64>| {
        let blackout = blackout.map_or_else(String::new, |start| {
            format!("[[wired.blackout_reverse]]\nstart = '{start}us'\nduration = '842914us'\n")
        });
        let text = format!(
            "duration = '60s'\n[wired]\nrate = '2364kbps'\ndelay = '27033us'\nqueue = '1.0bdp'\n\
             strip_options_reverse = [253]\nstrip_options_from_reverse = 'rest'\nack_loss_reverse = 0.0112\n{blackout}\
             [[flow]]\ncongestion = 'new_reno'\nack = '{ack}'\nbytes = '127484B'\napp = 'duplex'\n"
        );
        flows(&text, 1)[0].completion_s.expect("it ends")
    };
    let found = ["tack", "delayed:2"].map(|ack| seconds(ack, Some(480_577)));
    let clear = ["tack", "delayed:2"].map(|ack| seconds(ack, None));
    // Two round trips sooner to two later.
    let moments = (0..16).map(|nth| 480_577 - 108_132 + nth * 216_264 / 15);
    let [tack, plain]: [Vec<f64>; 2] = ["tack", "delayed:2"].map(|ack| {
        let all: Vec<u64> = moments.clone().collect();
        all.par_iter().map(|at| seconds(ack, Some(*at))).collect()
    });
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    println!(
        "{found:.2?} s, {clear:.2?} without the blackout, {:.2} and {:.2} on the mean of other moments",
        mean(&tack),
        mean(&plain)
    );
    assert!(
        found[0] > 2.0 * found[1],
        "what the search flags: {found:?}"
    );
    assert!(clear[0] < 1.1 * clear[1], "{clear:?}");
    assert!(mean(&tack) < 1.3 * mean(&plain), "{tack:?}, {plain:?}");
    let as_long = plain.iter().filter(|plain| **plain > 0.95 * found[0]);
    assert!(as_long.count() >= 2, "{plain:?}");
}

/// Path 121973, which differs from 61504 by a blackout: after three timeouts segments have the
/// smallest size. For each segment TACK sends as many acknowledgements as a plain policy that waits
/// no longer than a period.
#[test]
fn after_timeouts_small_segments_draw_as_many_reports_as_prompt_acknowledgements() {
    let run = |app: &str, ack: &str| {
        let text = format!(
            "duration = '60s'\n[wired]\nrate = '28809kbps'\ndelay = '1705us'\nqueue = '1.0bdp'\n\
             [[wired.blackout_reverse]]\nstart = '59718us'\nduration = '1401847us'\n\
             [[wired.blackout]]\nstart = '2046us'\nduration = '3031us'\n\
             [[flow]]\ncongestion = 'vegas'\nack = '{ack}'\nbytes = '306809B'\napp = '{app}'\n\
             send_buffer = '4096B'\nmss = 1000\n"
        );
        let flow = flows(&text, 1).remove(0);
        (flow.acks as f64, flow.data_segments as f64)
    };
    let (both_ways, one_way) = (run("duplex", "tack"), run("bulk", "tack"));
    let plain = run("bulk", "delayed:2");
    // RTTmin/4 of a path of 3.4 ms.
    let prompt = run("bulk", "delayed:2,timer=862us");
    println!("{both_ways:?}, one way {one_way:?}, {plain:?} with delayed:2, {prompt:?} that soon");
    assert!(
        both_ways.0 <= 1.02 * one_way.0,
        "{both_ways:?}, {one_way:?}"
    );
    assert!(one_way.1 <= 1.1 * plain.1, "{one_way:?}, {plain:?}");
    let [own, others] = [one_way, prompt].map(|(acks, segments)| acks / segments);
    assert!(own <= 1.1 * others, "{own}, {others}");
}

/// Path 130648: a small send buffer, and bursts that lose the acknowledgements of whole flights.
/// TACK sends twice as many for each byte, and delivers several times as much of the video; with
/// `delayed:2` the sender waits for its timer nearly all the time.
#[test]
fn where_acknowledgements_get_lost_in_bursts_more_of_them_deliver_more() {
    let run = |ack: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '31162kbps'\ndelay = '876us'\nqueue = '5p'\nack_loss = 0.0317\n\
             [wired.gilbert_elliott_reverse]\ngood_to_bad = 0.0072\nbad_to_good = 0.0630\nloss_bad = 0.9185\n\
             [[flow]]\ncongestion = 'vegas'\nack = '{ack}'\nsend_buffer = '4994B'\n\
             app = 'video:fps=30,rate=17780kbps,peak=26670kbps,buffer=300ms'\n"
        );
        let runs: Vec<_> = (1..=16)
            .into_par_iter()
            .map(|seed| flows(&text, seed).remove(0))
            .collect();
        let sum = |figure: fn(&FlowReport) -> u64| runs.iter().map(figure).sum::<u64>() as f64;
        let bytes = sum(|flow| flow.bytes_delivered);
        (
            bytes,
            sum(|flow| flow.acks) / bytes,
            sum(|flow| flow.rto_count) / bytes,
        )
    };
    let [tack, plain] = ["tack", "delayed:2"].map(run);
    let gain = tack.0 / plain.0;
    println!("{gain:.1} times the bytes; {tack:?}, {plain:?} with delayed:2");
    assert!(
        gain > 3.0 && tack.1 < gain * plain.1 && tack.2 < plain.2,
        "{tack:?}, {plain:?}"
    );
}

/// Path 132040 and its neighbours: an application stops reading for 1.6 s, and the queue drains
/// meanwhile. The sender said that its round trip was 1.7 s, and the next time in a segment that
/// waited in a new queue for two seconds; until then the receiver took that for the measure of its
/// window: 2.5 Mbit/s, 3.7 with `delayed:2`. Now it sees by itself that the queue has drained.
#[test]
fn the_window_follows_the_round_trip_after_a_pause() {
    let mbps = |delay: &str, ack: &str| {
        let text = format!(
            "duration = '14019224us'\n[wired]\nrate = '4070kbps'\ndelay = '{delay}'\nqueue = '1000p'\n\
             [[flow]]\ncongestion = 'new_reno'\nack = '{ack}'\napp = 'bulk:pause=2637605us,resume=4227906us'\n"
        );
        flows(&text, 1)[0].goodput_bps / 1e6
    };
    let delays = ["46ms", "48ms", "50480us", "52ms", "55ms"];
    delays.par_iter().for_each(|delay| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| mbps(delay, ack));
        println!("{delay}: {tack:.2} Mbit/s, {plain:.2} with delayed:2");
        assert!(tack > 0.95 * plain, "{delay}: {tack}, {plain}");
    });
}

/// Path 135158: data in both directions. Acknowledgements on data give no sample where reports do,
/// and the first report came once a queue had grown: Vegas took 41 ms for the path's round trip of
/// 24, and overflowed the queue before it left slow start. 23 of 224 segments were retransmitted,
/// none with `delayed:2`.
#[test]
fn vegas_knows_the_path_before_the_first_report() {
    let run = |delay: &u32, ack: &str| {
        let text = format!(
            "duration = '60s'\n[wired]\nrate = '4370kbps'\ndelay = '{delay}us'\nqueue = '1.0bdp'\nqueue_reverse = '50p'\n\
             [[flow]]\ncongestion = 'vegas'\nack = '{ack}'\nbytes = '289631B'\napp = 'duplex'\n"
        );
        let flow = flows(&text, 1).remove(0);
        let seconds = flow.completion_s.expect("it ends");
        (flow.retransmitted_segments, seconds)
    };
    let delays: Vec<u32> = (0..16).map(|step| 10_665 + 158 * step).collect();
    let judged = delays.par_iter().map(|delay| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| run(delay, ack));
        println!("{delay} us: {tack:?} again and seconds, {plain:?} with delayed:2");
        assert!(tack.0 <= plain.0 + 4, "{delay}: {tack:?}, {plain:?}");
        [tack.1, plain.1]
    });
    // A single packet more in the queue, and one loss costs a fifth of a run: the mean decides.
    let all: Vec<_> = judged.collect();
    let [tack, plain] = [0, 1].map(|which| all.iter().map(|run| run[which]).sum::<f64>());
    assert!(tack < 1.1 * plain, "{tack}, {plain}: {all:?}");
}

/// MTU paths 542 and 197, and 12250 of the family with faults of ECN: the path's MTU shrinks, and
/// lost segments leave again in pieces. Each piece left behind took a number with which nothing
/// left, and the receiver reported each of these lost at once: 157 such reports for 180 pieces, and
/// a loss rate that was half invented.
#[test]
fn a_segment_that_is_cut_takes_no_number_that_does_not_leave() {
    for congestion in crate::CONTROLLERS {
        let text = format!(
            "duration = '30s'\n[wired]\nrate = '2281kbps'\ndelay = '9736us'\nqueue = '1000p'\n\
             mtu_black_hole = 1907\nmtu_black_hole_from = '2465789us'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = 'tack'\nmss = 8960\n"
        );
        let flow = flows(&text, 1).remove(0);
        let at_once = flow.acks_by_kind.iack_loss;
        println!(
            "{congestion}: {at_once} reports of losses at once, {} segments again",
            flow.retransmitted_segments
        );
        assert!(
            flow.retransmitted_segments > 20,
            "{congestion}: the path is another one"
        );
        assert!(
            at_once < flow.retransmitted_segments / 4,
            "{congestion}: {at_once}"
        );
    }
}

/// Path 80617: a fifth of the packets is late by more than RTTmin, and BBR keeps a queue. TACK
/// waited for RTTmin at most, repeated a tenth of all segments in vain, and was slower for it. A
/// repetition takes as long as a round trip does now, and for so long it waits.
#[test]
fn packets_that_are_later_than_the_shortest_round_trip_are_waited_for() {
    let measured = |ack: &str, lateness: &str| {
        let text = format!(
            "duration = '3s'\n[wlan]\npreset = 'tack-g'\nframe_error_rate = 0.0106\n\
             [wired]\nrate = '1Gbps'\ndelay = '573us'\nduplicate = 0.0071\nreorder = 0.2165\n\
             reorder_delay = '{lateness}'\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\nmss = 536\n"
        );
        let flow = flows(&text, 1).remove(0);
        let again = flow.retransmitted_segments as f64 / flow.data_segments as f64;
        println!(
            "{ack}, {lateness}: {again:.4} again, {:.2} Mbit/s",
            flow.goodput_bps / 1e6
        );
        (again, flow.goodput_bps)
    };
    for lateness in ["800us", "3954us", "8ms"] {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| measured(ack, lateness));
        assert!(tack.0 < plain.0 + 0.01, "{tack:?}, {plain:?}");
        assert!(tack.1 > 0.95 * plain.1, "{tack:?}, {plain:?}");
    }
}
