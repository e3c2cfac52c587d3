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
    let run = |congestion: &str, ack: &str, way_back: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '1432kbps'\ndelay = '29295us'\nqueue = '1.0bdp'\n\
             rate_reverse = '{way_back}'\n[[wired.blackout_reverse]]\nstart = '4764675us'\nduration = '420777us'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\napp = 'request:12803B,1377B,gap=4733us'\n"
        );
        let flow = flows(&text, 1).remove(0);
        let sent = (flow.ack_bytes + 20 * flow.acks) as f64 / flow.bytes_delivered as f64;
        (flow.requests.expect("it asks").completed as f64, sent)
    };
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, every, plain] =
            ["tack", "every", "delayed:2"].map(|ack| run(congestion, ack, "64kbps"));
        let [fast_tack, fast_plain] =
            ["tack", "delayed:2"].map(|ack| run(congestion, ack, "1Gbps"));
        println!(
            "{congestion}: {tack:?} answers and bytes back for each byte, every {every:?}, delayed:2 {plain:?}; on a fast way back \
             {fast_tack:?} and {fast_plain:?}"
        );
        // What the search flags, and its reason.
        assert!(tack.0 < 0.7 * plain.0 - 3.0, "{congestion}");
        assert!(every.0 <= tack.0 && every.1 <= 1.1 * tack.1, "{congestion}");
        assert!(fast_tack.0 >= 0.95 * fast_plain.0, "{congestion}");
    });
}
