//! Paths that the random search (`../differential/`) flagged, whose way back is narrow: reports are
//! larger than plain acknowledgements. As there, `delayed:2` on the same path is the measure.

use rayon::prelude::*;

use crate::CONTROLLERS;
use crate::found_paths::flows;

/// Path 120239: a video, a receive buffer that holds less than the path, so that segments are
/// counted, and a way back of 65 kbit/s, which reports for two segments each fill: the player stood
/// still for 0.36 of the time, 0.18 with `delayed:2`. Where acknowledgements wait in a queue the
/// receiver sends half of them.
#[test]
fn reports_that_queue_on_their_way_leave_half_as_often() {
    let run = |congestion: &str, ack: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '5475kbps'\ndelay = '56452us'\nqueue = '1.0bdp'\nrate_reverse = '65kbps'\n\
             [[wired.blackout_reverse]]\nstart = '1us'\nduration = '68259us'\n\
             [[wired.blackout]]\nstart = '4491455us'\nduration = '621526us'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nreceive_buffer = '64371B'\n\
             app = 'video:fps=30,rate=3228kbps,peak=4842kbps,buffer=300ms'\n"
        );
        let runs: Vec<_> = (1..=4).map(|seed| flows(&text, seed).remove(0)).collect();
        let mean = |figure: fn(&tack_sim::FlowReport) -> f64| {
            runs.iter().map(figure).sum::<f64>() / runs.len() as f64
        };
        let still = mean(|flow| {
            let video = flow.video.as_ref().expect("it is a video");
            video.rebuffering_share.expect("it plays")
        });
        let sent =
            mean(|flow| (flow.ack_bytes + 20 * flow.acks) as f64 / flow.bytes_delivered as f64);
        (still, sent)
    };
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| run(congestion, ack));
        println!(
            "{congestion}: still {:.2}, {:.4} bytes back for each byte; {:.2} and {:.4} with delayed:2",
            tack.0, tack.1, plain.0, plain.1
        );
        // What the search flags.
        assert!(
            tack.0 < plain.0 + 0.1,
            "{congestion}: {tack:?}, {plain:?} with delayed:2"
        );
        assert!(tack.1 < plain.1, "{congestion}: {tack:?}, {plain:?}");
    });
}

/// Path 121216: requests, a way back of 64 kbit/s, and a queue there of 470 bytes: an answer gets
/// lost if the link is busy when it leaves. A report keeps it busy for longer than the time between
/// two segments. So does a plain policy whose acknowledgements take as much room, and on a fast way
/// back TACK is as fast as `delayed:2`.
#[test]
fn answers_that_find_the_link_busy_get_lost_with_plain_acknowledgements_as_large() {
    let run = |congestion: &str, (ack, timestamps): (&str, bool), way_back: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '1432kbps'\ndelay = '29295us'\nqueue = '1.0bdp'\n\
             rate_reverse = '{way_back}'\n[[wired.blackout_reverse]]\nstart = '4764675us'\nduration = '420777us'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\ntimestamps = {timestamps}\n\
             app = 'request:12803B,1377B,gap=4733us'\n"
        );
        let flow = flows(&text, 1).remove(0);
        let sent = (flow.ack_bytes + 20 * flow.acks) as f64 / flow.bytes_delivered as f64;
        (flow.requests.expect("it asks").completed as f64, sent)
    };
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, every, plain] = [("tack", true), ("every", false), ("delayed:2", true)]
            .map(|policy| run(congestion, policy, "64kbps"));
        let [fast_tack, fast_plain] = [("tack", true), ("delayed:2", true)]
            .map(|policy| run(congestion, policy, "1Gbps"));
        println!(
            "{congestion}: {tack:?} answers and bytes back for each byte, every {every:?}, delayed:2 {plain:?}; on a fast way back \
             {fast_tack:?} and {fast_plain:?}"
        );
        // What is to be explained, and its reason. CUBIC has 0.71 of the answers, the most.
        assert!(tack.0 < 0.75 * plain.0, "{congestion}");
        // Since few reports are repeated, `every` takes up to 1.16 times as much for each byte
        // (BBR).
        assert!(every.0 <= tack.0 && every.1 <= 1.2 * tack.1, "{congestion}");
        assert!(fast_tack.0 >= 0.95 * fast_plain.0, "{congestion}");
    });
}

/// Path 131090: slow start overflows a queue of 911 packets, and every second segment is lost. A
/// report at once of each, with lists, filled the queue of a way back of 242 kbit/s for seconds:
/// 12.7 Mbit/s, 13.7 with `delayed:2`, and on one of 120 kbit/s 4.5 and 13.4. Where
/// acknowledgements wait in a queue longer than RTTmin, beta reports of losses leave at once, and
/// then one in each period, and all reports list few blocks. Until that queue is known, reports of
/// losses leave a quarter of a period apart.
#[test]
fn reports_of_losses_do_not_fill_the_way_back() {
    let goodput = |delay: &str, back: &str, ack: &str| {
        let flow = |more: &str| format!("[[flow]]\ncongestion = 'new_reno'\nack = '{ack}'\n{more}");
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '21946kbps'\ndelay = '{delay}'\nqueue = '911p'\nrate_reverse = '{back}'\n{}{}",
            flow(""),
            flow("start = '503378us'\nextra_delay = '100293us'\n")
        );
        let of_all = flows(&text, 1);
        of_all.iter().map(|flow| flow.goodput_bps).sum::<f64>() / 1e6
    };
    let paths: Vec<_> = ["39ms", "42933us", "47ms"]
        .iter()
        .flat_map(|delay| ["120kbps", "242kbps"].map(|back| (*delay, back)))
        .collect();
    paths.par_iter().for_each(|(delay, back)| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| goodput(delay, back, ack));
        println!("{delay}, {back}: {tack:.2} Mbit/s, {plain:.2} with delayed:2");
        let least = if *back == "120kbps" { 1.0 } else { 1.15 };
        assert!(tack > least * plain, "{delay}, {back}: {tack}, {plain}");
    });
}

/// Path 134466, and the same with other controllers: each report takes 10 ms on a way back of
/// 64 kbit/s, and one for two segments of a flow of 8 Mbit/s was due each 2.5 ms. They filled the
/// queue with 1.6 s of them: 2.4 Mbit/s, 3.5 with `delayed:2`. Now a few wait.
#[test]
fn reports_leave_as_often_as_the_way_back_has_room() {
    let run = |congestion: &str, ack: &str| {
        let text = format!(
            "duration = '12s'\n[wired]\nrate = '7875kbps'\ndelay = '1565us'\nqueue = '1000p'\nrate_reverse = '64kbps'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nmss = 1220\n"
        );
        let flow = flows(&text, 1).remove(0);
        (flow.goodput_bps / 1e6, flow.acks)
    };
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| run(congestion, ack));
        println!("{congestion}: {tack:?} Mbit/s and ACKs, {plain:?} with delayed:2");
        // Vegas keeps its window so small that reports queue for no more than 20 ms, each of them
        // half as large again as a plain acknowledgement.
        let least = if *congestion == "vegas" { 0.6 } else { 1.1 };
        assert!(
            tack.0 > least * plain.0 && tack.1 < plain.1,
            "{congestion}: {tack:?}, {plain:?}"
        );
    });
}

/// Path 260299 and others whose way back has a hundredth of the rate, and round trips of some
/// milliseconds: reports for two segments fill it. Eight of them were to wait in its queue, and
/// three where acknowledgements got lost. A queue of ten packets was full with eight, dropped some,
/// drained and filled again, and round trips went up and down between 25 and 55 ms: TACK had 0.6 to
/// 0.8 of the goodput of `delayed:2`. Now two wait.
#[test]
fn two_reports_wait_in_the_queue_of_a_narrow_way_back() {
    let paths = [
        ("13316kbps", 2_600, "4.0bdp", "138kbps"),
        ("66821kbps", 785, "2.0bdp", "599kbps"),
        ("7875kbps", 1_565, "100p", "64kbps"),
        ("50Mbps", 3_000, "1.0bdp", "500kbps"),
    ];
    let controllers = ["new_reno", "cubic", "bbr", "compound"];
    let cells: Vec<_> = paths
        .iter()
        .flat_map(|path| controllers.map(|congestion| (path, congestion)))
        .collect();
    cells.par_iter().for_each(|(path, congestion)| {
        let (rate, delay, queue, back) = path;
        let mean = |ack: &str| {
            let goodput = |nth: u64| {
                let text = format!(
                    "duration = '12s'\nwarmup = '2s'\n[wired]\nrate = '{rate}'\ndelay = '{}us'\nqueue = '{queue}'\n\
                     rate_reverse = '{back}'\nqueue_reverse = '10p'\n\
                     [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n",
                    delay * (9 + nth) / 10
                );
                flows(&text, 1)[0].goodput_bps / 1e6
            };
            (0..3).map(goodput).sum::<f64>() / 3.0
        };
        let [tack, plain] = ["tack", "delayed:2"].map(mean);
        println!("{path:?}, {congestion}: {tack:.2} Mbit/s, {plain:.2} with delayed:2");
        assert!(tack > 0.97 * plain, "{path:?}, {congestion}: {tack}, {plain}");
    });
}

/// Path 131687: bursts of losses on the way back are counted in packets, so that who acknowledges
/// more often is through with each of them sooner. A plain policy that acknowledges as rarely as
/// TACK is no faster, and without bursts TACK is as fast as `delayed:2`.
#[test]
fn a_plain_policy_that_acknowledges_as_rarely_suffers_as_much_from_bursts() {
    if !crate::is_long() {
        return;
    }
    let run = |ack: &str, bursts: &str| {
        let text = format!(
            "duration = '12s'\n[wired]\nrate = '24937kbps'\ndelay = '12186us'\nqueue = '1000p'\n\
             [wired.gilbert_elliott_reverse]\ngood_to_bad = {bursts}\nbad_to_good = 0.0569\nloss_bad = 1.0\n\
             [[wired.blackout_reverse]]\nstart = '1us'\nduration = '96322us'\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\n"
        );
        let runs: Vec<_> = (1..=16)
            .into_par_iter()
            .map(|seed| flows(&text, seed).remove(0))
            .collect();
        let acks = runs.iter().map(|flow| flow.acks).sum::<u64>() as f64;
        let bytes = runs.iter().map(|flow| flow.bytes_delivered).sum::<u64>() as f64;
        (bytes / 1e6, acks / bytes * 1e6)
    };
    let tack = run("tack", "0.0138");
    // As the search looks for it: how rarely a policy acknowledges, counted for each byte, depends
    // on what timeouts repeat.
    let (name, sparse) = [4, 8, 12, 16, 32, 64]
        .map(|count| format!("delayed:{count}"))
        .into_iter()
        .map(|name| (name.clone(), run(&name, "0.0138")))
        .find(|(_, sparse)| sparse.1 <= tack.1)
        .expect("one acknowledges as rarely");
    let [even_tack, even_plain] = ["tack", "delayed:2"].map(|ack| run(ack, "0.0"));
    println!(
        "{tack:?} MB and ACKs per MB, {sparse:?} with {name}; {even_tack:?} and {even_plain:?} without bursts"
    );
    assert!(sparse.0 <= tack.0, "{tack:?}, {sparse:?}");
    assert!(
        even_tack.0 > 0.9 * even_plain.0,
        "{even_tack:?}, {even_plain:?}"
    );
}

/// Path 10655 of the family with faults of ECN: answers of 16 segments over a way back whose queue
/// holds none behind the one that leaves, so that each second one is lost. A window of two segments
/// then leaves one in flight. A sender that repairs a loss pushes it, and the receiver took it for
/// the end of a message, which its own next request acknowledges; and the tail loss probe waited 40
/// ms longer than two round trips, as no report had ever been due: 28, 26 and 32 answers.
#[test]
fn a_small_window_that_loses_each_second_segment_does_not_wait_for_timers() {
    let answers = |congestion: &str, ack: &str, queue: &str, keys: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '79121kbps'\ndelay = '2358us'\nqueue = '{queue}'\n\
             rate_reverse = '1918kbps'\nclear_ecn_flags_reverse = 'ae'\n\
             clear_ecn_flags_from_reverse = 'all'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n{keys}\n\
             app = 'request:1360B,22215B,gap=12522us'\naccurate_ecn = 'offer'\nsend_buffer = '10661B'\n"
        );
        let flow = flows(&text, 1).remove(0);
        flow.requests.expect("it asks").completed as f64
    };
    // The sender of `delayed:2` measures longer round trips, as acknowledgements wait, and so paces
    // more slowly than this queue needs: 63 answers with NewReno, TACK 40. That is gone where
    // windows are not paced, and with a queue of five packets.
    for (congestion, queue, keys) in [
        ("cubic", "0.5bdp", ""),
        ("vegas", "0.5bdp", ""),
        ("new_reno", "0.5bdp", "window_pacing = 'off'"),
        ("new_reno", "5p", ""),
    ] {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| answers(congestion, ack, queue, keys));
        println!("{congestion}, {queue}, {keys:?}: {tack} answers, {plain} with delayed:2");
        assert!(tack > 0.8 * plain, "{congestion}, {queue}: {tack}, {plain}");
    }
}

/// Path 133544: slow start overflows a queue, and a report takes 5.6 ms on a way back of 114
/// kbit/s, an acknowledgement of `delayed:2` 3.7 ms: TACK's sender hears of it later, and repeats
/// 11.3 % of its segments, `delayed:2` 2.9 %. Both are as fast, and with a fast way back repeat
/// about as much.
#[test]
fn who_hears_later_of_an_overflow_repeats_more() {
    let run = |ack: &str, rate: &str| {
        let text = format!(
            "duration = '60s'\n[wired]\nrate = '9433kbps'\ndelay = '3928us'\nqueue = '2.0bdp'\nrate_reverse = '{rate}'\n\
             reorder = 0.2296\nreorder_delay = '1762us'\nstrip_options = [8]\nstrip_options_from = 'rest'\n\
             [[flow]]\ncongestion = 'compound'\nack = '{ack}'\nbytes = '432592B'\n"
        );
        let runs: Vec<_> = (1..=16)
            .into_par_iter()
            .map(|seed| flows(&text, seed).remove(0))
            .collect();
        let again = runs
            .iter()
            .map(|flow| flow.retransmitted_segments)
            .sum::<u64>() as f64;
        let segments = runs.iter().map(|flow| flow.data_segments).sum::<u64>() as f64;
        let seconds: f64 = runs.iter().filter_map(|flow| flow.completion_s).sum();
        println!(
            "{ack}, {rate}: {:.1} % again, {:.3} s",
            100.0 * again / segments,
            seconds / 16.0
        );
        (again / segments, seconds)
    };
    let [tack, plain] = ["tack", "delayed:2"].map(|ack| run(ack, "114kbps"));
    let [fast_tack, fast_plain] = ["tack", "delayed:2"].map(|ack| run(ack, "1Gbps"));
    assert!(
        tack.0 > plain.0 + 0.06,
        "what the search flags: {tack:?}, {plain:?}"
    );
    assert!(tack.1 < 1.05 * plain.1, "{tack:?}, {plain:?}");
    assert!(
        fast_tack.0 < fast_plain.0 + 0.03,
        "{fast_tack:?}, {fast_plain:?}"
    );
}

/// Path 137837: a way back of 246 kbit/s with a queue of five packets. Reports left so often that
/// eight of them would wait there, which is more than the queue holds: it was always full, each
/// report came 13 ms later, and BBR, whose window follows the shortest round trip, had 4.3 Mbit/s,
/// 12.7 with `delayed:2`. Where acknowledgements get lost, now about three wait.
#[test]
fn reports_do_not_fill_a_short_queue() {
    let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
        let text = format!(
            "duration = '12s'\n[wired]\nrate = '20847kbps'\ndelay = '929us'\nqueue = '5p'\nrate_reverse = '246kbps'\n\
             isn_rewrite = 'with_sack'\necn_threshold_reverse = '35p'\nmtu_black_hole = 747\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\n"
        );
        flows(&text, 1).remove(0).goodput_bps / 1e6
    });
    println!("{tack:.2} Mbit/s, {plain:.2} with delayed:2");
    assert!(tack > 0.7 * plain, "{tack} Mbit/s, {plain}");
}

/// Path 199875: a way back of 221 kbit/s, whose queue grows and empties within 50 ms, so that round
/// trips change between 4 and 18 ms. A window was spread over SRTT until the newest sample fell
/// below half of that, and then over the sample: the pace doubled at once, and the burst overflowed
/// a queue of five packets. 6.4 Mbit/s before, now 7.5. `delayed:2` has 11.6: its acknowledgements
/// keep the queue of the way back full, so that its round trips stay the same.
#[test]
fn a_round_trip_that_falls_makes_no_burst() {
    let goodput = |ack: &str| {
        let text = format!(
            "duration = '12s'\n[wired]\nrate = '15905kbps'\ndelay = '628us'\nqueue = '5p'\nrate_reverse = '221kbps'\n\
             [[flow]]\ncongestion = 'new_reno'\nack = '{ack}'\nmss = 536\n"
        );
        flows(&text, 1).remove(0).goodput_bps / 1e6
    };
    let [tack, plain] = ["tack", "delayed:2"].map(goodput);
    println!("{tack:.2} Mbit/s, {plain:.2} with delayed:2");
    assert!(tack > 0.6 * plain, "{tack}, {plain}");
}

/// Path 173414: requests whose answers take longer on a way back of 125 kbit/s than a tail loss
/// probe waits. The first segment of the connection gets lost, and nothing shows later what it
/// carried: its loss seemed not to be repaired for the whole run, and each report of a probe was
/// repeated four to seven times, 21 to 25 acknowledgements for three answers. The queue of five
/// packets dropped segments of the answers for them.
#[test]
fn a_probe_that_an_answer_acknowledges_draws_one_report() {
    CONTROLLERS.par_iter().for_each(|congestion| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '12957kbps'\ndelay = '2936us'\nqueue = '5p'\n\
             rate_reverse = '125kbps'\n[[wired.blackout]]\nstart = '1us'\nduration = '28020us'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = 'tack'\napp = 'request:169B,42091B'\n\
             send_buffer = '4096B'\n"
        );
        let flow = flows(&text, 1).remove(0);
        let answers = flow.requests.expect("it asks").completed;
        println!(
            "{congestion}: {} acknowledgements, {answers} answers",
            flow.acks
        );
        assert!(flow.acks <= 12 && answers == 3, "{congestion}: {flow:?}");
    });
}
