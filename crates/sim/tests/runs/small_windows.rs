//! Paths that the random search flagged, whose receive buffer holds a few segments.

use rayon::prelude::*;

use crate::CONTROLLERS;
use crate::found_paths::flows;

/// Path 132280: receive buffers of three segments, and two of a hundred acknowledgements get lost.
/// The report of each flight's end was repeated, although the one before it, two milliseconds
/// older, lets the sender go on as well: 1,863 acknowledgements of 1,892 segments, 1,220 of 1,839
/// with `delayed:2`.
#[test]
fn a_report_before_that_lets_the_sender_go_on_is_a_copy() {
    let run = |congestion: &str, ack: &str| {
        let flow = format!(
            "[[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nreceive_buffer = '5290B'\n"
        );
        let text = format!(
            "duration = '12s'\n[wired]\nrate = '5738kbps'\ndelay = '7418us'\nqueue = '5p'\n\
             corrupt_reverse = 0.0019\nack_loss_reverse = 0.0186\n{flow}{flow}start = '1385594us'\n"
        );
        let flows = flows(&text, 1);
        let sum = |figure: fn(&tack_sim::FlowReport) -> u64| flows.iter().map(figure).sum::<u64>();
        let bytes = sum(|flow| flow.bytes_delivered) as f64;
        let per_segment = sum(|flow| flow.acks) as f64 / sum(|flow| flow.data_segments) as f64;
        (per_segment, bytes / 1e6)
    };
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| run(congestion, ack));
        println!(
            "{congestion}: {tack:.3?} acknowledgements a segment and MB, {plain:.3?} with delayed:2"
        );
        assert!(tack.0 < 1.1 * plain.0, "{congestion}: {tack:?}, {plain:?}");
        assert!(tack.1 > 0.95 * plain.1, "{congestion}: {tack:?}, {plain:?}");
    });
}

/// MTU path 538: a receive buffer of one segment of 4,096 bytes, and an application that reads at
/// once. The report that said that the window is used up left before the application had read, and
/// a window update followed it: 4,507 acknowledgements for 2,099 segments, 2,581 for 2,251 with
/// `delayed:2`. Now the report leaves after what happens at the same instant, and says both.
#[test]
fn a_report_of_a_used_up_window_says_what_was_read_as_well() {
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '5s'\n[wired]\nrate = '20Mbps'\ndelay = '1968us'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nmss = 8960\nreceive_buffer = '4096B'\n"
            );
            let flow = flows(&text, 1).remove(0);
            (flow.acks, flow.data_segments, flow.goodput_bps)
        });
        println!("{congestion}: {tack:?} acknowledgements, segments, bit/s; {plain:?}");
        assert!(tack.0 <= tack.1 + 20, "{congestion}: {tack:?}, {plain:?}");
        assert!(tack.2 >= 0.95 * plain.2, "{congestion}: {tack:?}, {plain:?}");
    });
}

/// Paths 165043, 176067, 179775, 182501 and 186970: requests of two segments use up most of a
/// receive buffer of 4,096 bytes, and the application answers each as soon as it came. A window
/// update left by itself beside each answer, which has the same window: 381 acknowledgements for
/// 381 requests, `delayed:2` 45. Where an update left between two segments of a request, the answer
/// moved the window by less than a segment and so not at all, and the next request met with the
/// same.
#[test]
fn an_answer_carries_the_window_that_a_request_used_up() {
    let sizes = [2_471, 2_601, 2_729, 2_790];
    let cases: Vec<_> = CONTROLLERS
        .iter()
        .flat_map(|congestion| sizes.map(|size| (congestion, size)))
        .collect();
    cases.par_iter().for_each(|(congestion, size)| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '10s'\n[wired]\nrate = '6Mbps'\ndelay = '5ms'\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\napp = 'request:{size}B,617B'\n\
                 receive_buffer = '4096B'\n"
            );
            let flow = flows(&text, 1).remove(0);
            let answers = flow.requests.expect("it sends requests").completed;
            (flow.acks, answers)
        });
        println!("{congestion}, {size}: {tack:?} acknowledgements and answers; {plain:?}");
        let least = tack.1 / 4 + 20;
        assert!(tack.0 <= least, "{congestion}, {size}: {tack:?}, {plain:?}");
        assert!(
            100 * tack.1 >= 97 * plain.1,
            "{congestion}, {size}: {tack:?}, {plain:?}"
        );
    });
}

/// Path 182501: the same, with losses. A report between the two segments of a request moves the
/// window by the first one, and the answer could then move it by no less than a full segment: the
/// next request did not fit by 36 bytes, and so on for dozens of requests. 377 acknowledgements for
/// 380 answers, `delayed:2` 14 for 434. Now the window of a buffer that is empty moves by less.
#[test]
fn a_short_segment_that_is_read_moves_the_window_of_an_empty_buffer() {
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '10s'\n[wired]\nrate = '6Mbps'\ndelay = '5ms'\nloss = 0.01\n\
                 [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\napp = 'request:2790B,1155B'\n\
                 receive_buffer = '4096B'\n"
            );
            let runs: Vec<_> = (1..=3).map(|seed| flows(&text, seed).remove(0)).collect();
            let answers = |flow: &tack_sim::FlowReport| flow.requests.map_or(0, |done| done.completed);
            let acks: u64 = runs.iter().map(|flow| flow.acks).sum();
            (acks, runs.iter().map(answers).sum::<u64>())
        });
        println!("{congestion}: {tack:?} acknowledgements and answers; {plain:?}");
        assert!(3 * tack.0 <= tack.1, "{congestion}: {tack:?}, {plain:?}");
        assert!(10 * tack.1 >= 9 * plain.1, "{congestion}: {tack:?}, {plain:?}");
    });
}
