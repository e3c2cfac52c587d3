//! Paths that the random search flagged although TACK does nothing wrong there: why, measured. Each
//! test fails where the reason no longer holds.

use rayon::prelude::*;

use crate::found_paths::{flows, report};
use crate::is_long;

/// Path 80303: a video, and bursts of losses on the way back in which `delayed:2` stands still for
/// most of the run, and so has few timeouts. TACK has more of them, delivers several times as much,
/// and has no more for each byte.
#[test]
fn who_stands_still_has_few_timeouts() {
    let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '19734kbps'\ndelay = '1583us'\nqueue = '1000p'\n\
             [wired.gilbert_elliott_reverse]\ngood_to_bad = 0.0111\nbad_to_good = 0.0580\n\
             loss_bad = 0.9192\n\
             [[flow]]\ncongestion = 'vegas'\nack = '{ack}'\nmss = 1000\ntimestamps = false\n\
             app = 'video:fps=30,rate=8024kbps,peak=12036kbps,buffer=300ms'\n"
        );
        let runs: Vec<_> = (1..5_u64)
            .map(|seed| flows(&text, seed).remove(0))
            .collect();
        let timeouts: u64 = runs.iter().map(|flow| flow.rto_count).sum();
        let bytes: u64 = runs.iter().map(|flow| flow.bytes_delivered).sum();
        println!("{ack}: {timeouts} timeouts, {bytes} bytes");
        (timeouts, bytes)
    });
    assert!(tack.1 > 2 * plain.1, "{tack:?}, {plain:?}");
    assert!(tack.0 * plain.1 <= plain.0 * tack.1, "{tack:?}, {plain:?}");
}

/// Path 81271: a receive buffer of four segments without timestamps. TACK's segments, like those of
/// `delayed:2` with timestamps, carry 12 bytes of options, and reading one does not quite double
/// the window, so no update leaves. With a large buffer both are alike.
#[test]
fn a_buffer_of_four_segments_favours_those_without_options() {
    let seconds = |ack: &str, keys: &str| {
        let text = format!(
            "duration = '60s'\n[wlan]\npreset = 'tack-g'\n[wired]\nrate = '1Gbps'\n\
             delay = '2294us'\nloss_reverse = 0.0112\n\
             [[flow]]\ncongestion = 'cubic'\nack = '{ack}'\nbytes = '1MB'\n{keys}\n"
        );
        let seconds = flows(&text, 1)[0].completion_s.expect("it ends");
        println!("{ack}, {keys:?}: {seconds:.2} s");
        seconds
    };
    let small = "receive_buffer = '5840B'\ntimestamps = ";
    let tack = seconds("tack", &format!("{small}false"));
    let [bare, stamped] =
        ["false", "true"].map(|stamps| seconds("delayed:2", &format!("{small}{stamps}")));
    assert!(tack < 1.1 * stamped, "{tack}, {stamped} with timestamps");
    assert!(bare < 0.8 * stamped, "{bare}, {stamped}: the limit is gone");
    let [tack, plain] = ["tack", "delayed:2"]
        .map(|ack| seconds(ack, "receive_buffer = '1MiB'\ntimestamps = false"));
    assert!(tack < 1.1 * plain, "{tack}, {plain} with a large buffer");
}

/// Path 81820: a thousand packets overflow a long queue, and a middlebox removes the SACK options.
/// `delayed:2` repeats one segment in each round trip of seconds, and has not begun when the run
/// ends. TACK lost as many, and repeats no more than that.
#[test]
fn what_is_not_repaired_when_the_run_ends_was_lost_all_the_same() {
    let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
        let keys = "congestion = 'new_reno'\ntimestamps = false";
        let text = format!(
            "duration = '12521452us'\n[wired]\nrate = '2623kbps'\ndelay = '13036us'\n\
             queue = '1000p'\nstrip_options_reverse = [5]\nstrip_options_from_reverse = 'rest'\n\
             duplicate_reverse = 0.0269\n\
             [[flow]]\n{keys}\nack = '{ack}'\nreceive_window = 'fixed'\n\
             [[flow]]\n{keys}\nack = 'delayed:2'\nstart = '1368698us'\nextra_delay = '20365us'\n"
        );
        let report = report(&text, 1);
        let (flow, lost) = (&report.flows[0], report.wired.forward.queue_drops);
        println!("{ack}: {lost} lost, {} again", flow.retransmitted_segments);
        (lost, flow.retransmitted_segments, flow.bytes_delivered)
    });
    assert!(10 * plain.0 > 9 * tack.0, "{plain:?}, {tack:?}");
    assert!(2 * plain.1 < plain.0, "{plain:?}: it repairs");
    assert!(
        tack.1 <= tack.0 && 20 * tack.2 >= 19 * plain.2,
        "{tack:?}, {plain:?}"
    );
}

/// Paths 134647 and 135887: of two BBR flows, the one that is acknowledged more rarely gets less.
/// With as many acknowledgements TACK has no less than `delayed:2` in its place, and the two flows
/// have as much together whoever acknowledges how often. The long form alone runs it.
#[test]
fn bbr_gets_less_beside_a_flow_that_is_acknowledged_more_often() {
    if !is_long() {
        return;
    }
    let paths = [
        (
            "rate = '52667kbps'\ndelay = '6153us'\nqueue = '1.0bdp'\nmtu_black_hole = 1105\n\
             late_timers = '2891us'\nlate_processing = '1851us'",
            "",
            "start = '858398us'",
        ),
        (
            "rate = '21813kbps'\ndelay = '1954us'\nqueue = '1.0bdp'\nloss_reverse = 0.0128\n\
             late_timers_reverse = '2467us'\nlate_processing_reverse = '775us'",
            "mss = 536",
            "mss = 536\nstart = '519427us'\nextra_delay = '603us'",
        ),
    ];
    for (path, first, second) in paths {
        let run = |ack: &str, neighbour: &str| {
            let text = format!(
                "duration = '9s'\n[wired]\n{path}\n[[flow]]\ncongestion = 'bbr'\nack = '{ack}'\n{first}\n\
                 [[flow]]\ncongestion = 'bbr'\nack = '{neighbour}'\n{second}\n"
            );
            let runs: Vec<_> = (1..=8)
                .into_par_iter()
                .map(|seed| flows(&text, seed))
                .collect();
            let mean = |flow: usize| {
                runs.iter()
                    .map(|run| run[flow].goodput_bps / 1e6)
                    .sum::<f64>()
                    / runs.len() as f64
            };
            (mean(0), mean(0) + mean(1))
        };
        let [tack, dense, plain] =
            ["tack", "tack:l=1,beta=64", "delayed:2"].map(|ack| run(ack, "delayed:2"));
        let alike = run("tack", "tack");
        println!(
            "{tack:?} Mbit/s, dense {dense:?}, {plain:?} with delayed:2; {alike:?} beside TACK"
        );
        assert!(
            tack.0 < 0.8 * plain.0,
            "the limit is gone: {tack:?}, {plain:?}"
        );
        assert!(dense.0 > 0.9 * plain.0, "{dense:?}, {plain:?}");
        for both in [tack.1, alike.1] {
            assert!(both > 0.95 * plain.1, "{tack:?}, {alike:?}, {plain:?}");
        }
    }
}

/// Paths 11 and 280 of the family with an MTU that shrinks. TACK had found 9,000 bytes, and lost
/// flights when the MTU shrank: 0.65 times the speed of `delayed:2`, whose window opens by two
/// segments and never had room for a probe. Now a probe may exceed the window by the difference
/// between its length and a segment's, and both find larger packets. Without probes both are as
/// fast.
#[test]
fn a_window_that_opens_by_two_segments_does_not_keep_a_size_from_being_found() {
    for (head, path, keys) in [
        (
            "duration = '12461720us'",
            "rate = '4130kbps'\ndelay = '11543us'\nqueue = '5p'\nmtu_black_hole = 8506\n\
             mtu_black_hole_from = '3848070us'\n[[wired.blackout_reverse]]\nstart = '7238977us'\nduration = '245638us'",
            "congestion = 'cubic'",
        ),
        (
            "duration = '30s'",
            "rate = '86167kbps'\ndelay = '3615us'\nqueue = '0.5bdp'\nmtu_black_hole = 6938\n\
             mtu_black_hole_from = '48300us'",
            "congestion = 'new_reno'\nbytes = '576985B'\ntimestamps = false",
        ),
    ] {
        let run = |ack: &str, largest: u32| {
            let text = format!(
                "{head}\n[wired]\n{path}\n[[flow]]\nack = '{ack}'\n{keys}\nmss = {largest}\nbase_mss = 1160\n"
            );
            let flow = flows(&text, 1).remove(0);
            let arrived = flow.data_segments - flow.retransmitted_segments;
            let size = flow.bytes_delivered as f64 / arrived as f64;
            (flow.goodput_bps / 1e6, size)
        };
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| run(ack, 8_960));
        let [small_tack, small_plain] = ["tack", "delayed:2"].map(|ack| run(ack, 1_160));
        println!(
            "{tack:?} Mbit/s and bytes, {plain:?} with delayed:2; {small_tack:?} and {small_plain:?} without probes"
        );
        assert!(tack.0 > 0.8 * plain.0, "{tack:?}, {plain:?}");
        assert!(tack.1.min(plain.1) > 1500.0, "{tack:?}, {plain:?}");
        assert!(
            small_tack.0 > 0.9 * small_plain.0,
            "{small_tack:?}, {small_plain:?}"
        );
    }
}

/// Path 10975 of the family with faults of ECN: two NewReno flows on a path without chance, of
/// which the one that is acknowledged more often than its neighbour gets more: 1.17 Mbit/s beside a
/// flow that is acknowledged as often, 1.55 with dense acknowledgements of TACK. Together the two
/// have as much in each case. TACK has 1.51, since a queue is left in peace after slow start.
#[test]
fn of_two_flows_that_fill_a_queue_the_more_often_acknowledged_gets_more() {
    let goodput = |acks: [&str; 2]| {
        let text = format!(
            "duration = '14525279us'\n[wired]\nrate = '3143kbps'\ndelay = '63131us'\nqueue = '1.0bdp'\n\
             [[wired.blackout_reverse]]\nstart = '3200652us'\nduration = '284605us'\n\
             [[flow]]\ncongestion = 'new_reno'\nack = '{}'\naccurate_ecn = 'offer'\n\
             [[flow]]\ncongestion = 'new_reno'\nack = '{}'\naccurate_ecn = 'offer'\n",
            acks[0], acks[1]
        );
        let both = flows(&text, 1);
        let all: f64 = both.iter().map(|flow| flow.goodput_bps).sum();
        (both[0].goodput_bps / 1e6, all / 1e6)
    };
    let plain = goodput(["delayed:2", "delayed:2"]);
    let tack = goodput(["tack", "delayed:2"]);
    let alike = goodput(["tack", "tack"]);
    let dense = goodput(["tack:l=1,beta=64", "delayed:2"]);
    println!("{tack:?} Mbit/s, {plain:?} with delayed:2, {alike:?} with TACK on both, {dense:?}");
    assert!(plain.0 < 0.9 * dense.0, "{plain:?}, {dense:?}");
    assert!(tack.0 < dense.0, "{tack:?}, {dense:?}");
    for all in [tack.1, alike.1, dense.1] {
        assert!(all > 0.95 * plain.1, "{all}, {plain:?}");
    }
}

/// Paths 140040 and 141800: slow start of NewReno overflows a queue with TACK, and not with
/// `delayed:2`, which two things keep from it at once: a receive window that follows late without
/// timestamps, and reordered packets taken for lost or a way back of 64 kbit/s. Without both it
/// repeats as much.
#[test]
fn two_things_at_once_keep_a_plain_slow_start_from_filling_the_queue() {
    for (kept, free, flow) in [
        (
            "[wired]\nrate = '108149kbps'\ndelay = '547us'\nqueue = '1000p'\n\
             reorder = 0.0114\nreorder_delay = '645us'\n",
            "[wired]\nrate = '108149kbps'\ndelay = '547us'\nqueue = '1000p'\n",
            "bytes = '3841326B'\n",
        ),
        (
            "[wlan]\npreset = 'tack-b'\n[wired]\nrate = '1Gbps'\ndelay = '28958us'\n\
             rate_reverse = '64kbps'\n",
            "[wlan]\npreset = 'tack-b'\n[wired]\nrate = '1Gbps'\ndelay = '28958us'\n",
            "",
        ),
    ] {
        let again = |ack: &str, path: &str, keys: &str| {
            let text = format!(
                "duration = '13198326us'\n{path}[[flow]]\ncongestion = 'new_reno'\nack = '{ack}'\n\
                 timestamps = false\n{keys}{flow}"
            );
            let flow = flows(&text, 1).remove(0);
            let again = flow.retransmitted_segments as f64 / flow.data_segments as f64;
            println!("{ack} {keys:?}: {again:.3} again\n{path}");
            again
        };
        let open = "receive_window = 'fixed'\n";
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| again(ack, kept, ""));
        assert!(tack > plain + 0.06, "{tack}, {plain}: the limit is gone");
        let [free_tack, free_plain] = ["tack", "delayed:2"].map(|ack| again(ack, free, open));
        assert!(free_plain > tack - 0.06, "{free_plain}, {tack}");
        assert!(free_tack < free_plain + 0.06, "{free_tack}, {free_plain}");
    }
}

/// Path 144736: the SYN-ACK is sent twice, so its answer gives no round-trip time, and an MTU black
/// hole drops the responses until a timer expires. A connection with TACK has no timestamps, which
/// tell which SYN-ACK was answered. It waited for three seconds, as `delayed:2` does without them,
/// until the SYN-ACK that came again told a round trip and was passed on.
#[test]
fn a_handshake_that_was_repeated_is_measured_without_timestamps() {
    let bytes = |ack: &str, timestamps: bool| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '90553kbps'\ndelay = '11297us'\nqueue = '2.0bdp'\n\
             mtu_black_hole_reverse = 1402\n\
             [[wired.blackout_reverse]]\nstart = '1us'\nduration = '18683us'\n\
             [[flow]]\ncongestion = 'cubic'\nack = '{ack}'\ntimestamps = {timestamps}\n\
             app = 'request:177B,176628B,gap=77971us'\n"
        );
        let bytes = flows(&text, 1)[0].bytes_delivered;
        println!("{ack}, timestamps {timestamps}: {bytes} bytes");
        bytes
    };
    let tack = bytes("tack", true);
    assert!(tack >= bytes("delayed:2", true), "{tack}");
    assert!(tack > bytes("delayed:2", false), "{tack}");
}

/// Path 216745: messages of 5,793 bytes, four segments without options. With the 12 bytes of TACK's
/// option, or of timestamps, they take five, and two acknowledgements in place of one.
#[test]
fn options_that_take_another_segment_take_another_acknowledgement() {
    let run = |ack: &str, timestamps: bool| {
        let text = format!(
            "duration = '5s'\n[wired]\nrate = '42745kbps'\ndelay = '1452us'\n[[flow]]\n\
             congestion = 'new_reno'\nack = '{ack}'\napp = 'request:5793B,17725B'\n\
             timestamps = {timestamps}\n"
        );
        let flow = flows(&text, 1).remove(0);
        let answers = flow.requests.expect("it asks").completed as f64;
        let each = [flow.data_segments, flow.acks].map(|figure| (figure as f64 / answers).round());
        println!(
            "{ack}, timestamps {timestamps}: {each:?} segments and acknowledgements an answer"
        );
        each
    };
    assert_eq!(run("delayed:2", false), [4.0, 1.0]);
    assert_eq!(run("delayed:2", true), [5.0, 2.0]);
    assert_eq!(run("tack", false), [5.0, 2.0]);
}

/// Path 204814: requests to a host that sleeps for 120 to 350 ms. A probe and a timeout of TACK's
/// sender take 280 ms together, those of `delayed:2` 400, as its probe allows for an
/// acknowledgement that is held back for 200 ms. With a shortest timeout of 140 ms, which its probe
/// does not outwait, it has as many timeouts, and here TACK has as many answers.
#[test]
fn a_sender_with_as_little_patience_has_as_many_timeouts() {
    let run = |ack: &str, min_rto: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '46987kbps'\ndelay = '539us'\nqueue = '50p'\n\
             [wired.suspension_reverse]\nstart = '567683us'\nperiod = '749498us'\n\
             duration = '119679us'\nduration_max = '350ms'\n\
             [[flow]]\ncongestion = 'compound'\nack = '{ack}'\napp = 'request:700B,163B'\n\
             min_rto = '{min_rto}'\n"
        );
        let runs: Vec<_> = (1..=8).map(|seed| flows(&text, seed).remove(0)).collect();
        let timeouts: u64 = runs.iter().map(|flow| flow.rto_count).sum();
        let answers = runs.iter().filter_map(|flow| flow.requests);
        let answers: u64 = answers.map(|done| done.completed).sum();
        println!("{ack}, {min_rto}: {timeouts} timeouts, {answers} answers");
        (timeouts as f64, answers as f64)
    };
    let (tack, plain) = (run("tack", "200ms"), run("delayed:2", "200ms"));
    let impatient = run("delayed:2", "140ms");
    assert!(tack.0 > 3.0 * plain.0 + 8.0, "{tack:?}, {plain:?}");
    assert!(tack.0 < 1.5 * impatient.0, "{tack:?}, {impatient:?}");
    assert!(tack.1 > 0.95 * plain.1, "{tack:?}, {plain:?}");
}

/// Path 222317: two BBR flows, and a way back of 588 kbit/s that the acknowledgements of a
/// neighbour of `delayed:2` fill: those of TACK hardly get in, so that its sender has timeouts.
/// Beside another of TACK, and on a fast way back, it has none.
#[test]
fn a_neighbour_that_fills_the_way_back_draws_timeouts() {
    let timeouts = |neighbour: &str, way_back: &str| {
        let flow = |ack: &str, keys: &str| {
            format!("[[flow]]\ncongestion = 'bbr'\nack = '{ack}'\nmss = 536\n{keys}")
        };
        let text = format!(
            "duration = '5s'\n[wired]\nrate = '46197kbps'\ndelay = '18134us'\nqueue = '1.0bdp'\n\
             rate_reverse = '{way_back}'\n{}{}",
            flow("tack", ""),
            flow(neighbour, "start = '826975us'\n")
        );
        let timeouts = flows(&text, 1)[0].rto_count;
        println!("beside {neighbour}, {way_back}: {timeouts} timeouts");
        timeouts
    };
    assert!(timeouts("delayed:2", "588kbps") >= 2);
    assert_eq!(timeouts("tack", "588kbps"), 0);
    assert_eq!(timeouts("delayed:2", "1Gbps"), 0);
}
