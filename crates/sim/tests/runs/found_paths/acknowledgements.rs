//! How many acknowledgements there are for what is delivered.

use rayon::prelude::*;
use tack_sim::FlowReport;

use super::flows;
use crate::{CONTROLLERS, controllers};

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

/// Path 121973, which differs from 61504 by a blackout: after three timeouts segments have the
/// smallest size. TACK sends no more acknowledgements than `delayed:2`, and for each segment about
/// as many as a plain policy that waits no longer than a period; those that go on while the sender
/// backs off come to that.
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
    assert!(own <= 1.2 * others, "{own}, {others}");
    assert!(one_way.0 <= plain.0, "{one_way:?}, {plain:?}");
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

/// Path 226986: requests, whose answers fill a slow way back. A tail loss probe then repeats each
/// request, and the report of that was repeated four times, although the answer in flight
/// acknowledged the request as well. The reports took the room of the answers in the queue.
#[test]
fn what_an_answer_acknowledges_is_not_reported_again_and_again() {
    for congestion in CONTROLLERS {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '10s'\n[wired]\nrate = '1193kbps'\ndelay = '7228us'\nqueue = '5p'\nloss_reverse = 0.0028\n\
                 rate_reverse = '64kbps'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\napp = 'request:237B,9984B,gap=72734us'\n"
            );
            flows(&text, 5_226_986).remove(0)
        });
        println!(
            "{congestion}: {} acknowledgements of {} segments, with delayed:2 {} of {}",
            tack.acks, tack.data_segments, plain.acks, plain.data_segments
        );
        assert!(tack.acks < 2 * tack.data_segments, "{congestion}");
        assert!(
            tack.bytes_delivered >= plain.bytes_delivered,
            "{congestion}"
        );
    }
}

/// Path 215583: a send buffer of three segments, and a tenth of the segments arrive twice. The
/// first of two segments was reported at once when its copy came, and the second alone after
/// RTTmin/beta; each report let one segment leave, which was reported alone as well, and so on:
/// 3,452 acknowledgements for 3,472 segments, `delayed:2` 1,573 for 3,301. Without copies there are
/// two reports for three segments. Now what is due for new data answers its copies.
#[test]
fn a_copy_is_answered_by_the_report_that_is_due() {
    let per_segment = |congestion: &str, copies: &str| {
        let text = format!(
            "duration = '5s'\n[wired]\nrate = '10593kbps'\ndelay = '1922us'\nqueue = '1000p'\n\
             rate_reverse = '281kbps'\nduplicate = {copies}\n\
             [[flow]]\ncongestion = '{congestion}'\nack = 'tack'\nsend_buffer = '4096B'\n"
        );
        let flow = flows(&text, 1).remove(0);
        flow.acks as f64 / flow.data_segments as f64
    };
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [some, none] = ["0.1132", "0.0"].map(|copies| per_segment(congestion, copies));
        println!("{congestion}: {some:.2} acknowledgements a segment, {none:.2} without copies");
        assert!(some < none + 0.1, "{congestion}: {some}, {none}");
    });
}

/// Path 228889: a send buffer of three segments, and a blackout that loses three of nine reports.
/// From then on each report had a copy RTTmin/beta later, for some seconds: 164 to 205
/// acknowledgements for 174 segments, `delayed:2` 103. But the report before it lets the sender go
/// on as well: a copy waits until what that brings about should be here.
#[test]
fn a_report_is_not_repeated_while_the_one_before_it_has_its_answer_to_come() {
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '60s'\n[wired]\nrate = '1293kbps'\ndelay = '71879us'\nrate_reverse = '206kbps'\n\
                 [[wired.blackout_reverse]]\nstart = '1200773us'\nduration = '284123us'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nbytes = '236363B'\n\
                 send_buffer = '4096B'\n"
            );
            let flow = flows(&text, 1).remove(0);
            (flow.acks, flow.completion_s.expect("it ends"))
        });
        println!("{congestion}: {tack:?} acknowledgements and seconds, {plain:?}");
        assert!(10 * tack.0 < 13 * plain.0, "{congestion}: {tack:?}, {plain:?}");
        assert!(tack.1 < 1.1 * plain.1, "{congestion}: {tack:?}, {plain:?}");
    });
}
