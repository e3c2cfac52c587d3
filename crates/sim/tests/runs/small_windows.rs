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
