//! Paths that the random search (`../differential/`) flagged, on which a middlebox takes TACK's
//! option off all segments but SYNs. As there, `delayed:2` on the same path is the measure.

use rayon::prelude::*;
use tack_sim::FlowReport;

use crate::found_paths::flows;
use crate::{CONTROLLERS, is_long};

/// A path that takes the option off acknowledgements, and a queue of `queue`.
fn stripped(rate: &str, delay: &str, queue: &str, congestion: &str, ack: &str) -> String {
    format!(
        "duration = '20s'\n[wired]\nrate = '{rate}'\ndelay = '{delay}'\nqueue = '{queue}'\n\
         strip_options_reverse = [253]\nstrip_options_from_reverse = 'rest'\n\
         [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n"
    )
}

/// Path 120995: after a fallback the sender tries TACK again. The receiver's reports are stripped,
/// and while it reports there are no SACK blocks. The trial lasted six smoothed round trips, which
/// grew meanwhile: 5.33 Mbit/s and 6.1 s without progress, `delayed:2` 9.51 and 2.5 s.
#[test]
fn a_trial_of_tack_on_a_long_queue_does_not_leave_the_sender_blind() {
    let found = ("10Mbps", "40ms", "2000p");
    let cases: Vec<_> = if is_long() {
        let paths = [
            found,
            ("10Mbps", "40ms", "300p"),
            ("10Mbps", "5ms", "1000p"),
            ("3Mbps", "40ms", "500p"),
            ("30Mbps", "20ms", "2000p"),
            ("50Mbps", "100ms", "1.0bdp"),
        ];
        let of = |path| CONTROLLERS.map(|congestion| (path, congestion));
        paths.into_iter().flat_map(of).collect()
    } else {
        vec![(found, "new_reno"), (("30Mbps", "20ms", "2000p"), "bbr")]
    };
    let seeds = if is_long() { 1..=3 } else { 1..=1 };
    cases
        .par_iter()
        .for_each(|((rate, delay, queue), congestion)| {
            let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
                let text = stripped(rate, delay, queue, congestion, ack);
                let runs: Vec<_> = seeds
                    .clone()
                    .map(|seed| flows(&text, seed).remove(0))
                    .collect();
                let mean = |figure: fn(&FlowReport) -> f64| {
                    runs.iter().map(figure).sum::<f64>() / runs.len() as f64
                };
                (
                    mean(|flow| flow.goodput_bps / 1e6),
                    mean(|flow| flow.no_progress_max_s),
                )
            });
            let case = format!("{rate}, {delay}, {queue}, {congestion}");
            println!(
                "{case}: {:.2} Mbit/s and {:.1} s without progress, {:.2} and {:.1} with delayed:2",
                tack.0, tack.1, plain.0, plain.1
            );
            assert!(tack.0 > 0.9 * plain.0, "{case}: {tack:?}, {plain:?}");
            assert!(tack.1 < plain.1 + 1.0, "{case}: {tack:?}, {plain:?}");
        });
}

/// Path 120386: requests, and a middlebox that takes the option off what their sender sends, its
/// reports of the answers among them. What is left of a report with lists looked like data that
/// came before, and each was answered: 87 acknowledgements, `delayed:2` 16.
#[test]
fn reports_that_lost_their_option_are_not_answered() {
    let acks = |congestion: &str, ack: &str| {
        let text = format!(
            "duration = '10s'\n[wired]\nrate = '1341kbps'\ndelay = '24136us'\nqueue = '5p'\nloss = 0.0029\n\
             strip_options = [253]\nstrip_options_from = 'rest'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\napp = 'request:11139B,177135B'\n"
        );
        let one = |seed| flows(&text, seed)[0].acks as f64;
        (1..=4).into_par_iter().map(one).sum::<f64>() / 4.0
    };
    CONTROLLERS.par_iter().for_each(|congestion| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| acks(congestion, ack));
        println!("{congestion}: {tack:.1} acknowledgements, {plain:.1} with delayed:2");
        assert!(
            tack < 1.3 * plain + 10.0,
            "{congestion}: {tack}, {plain} with delayed:2"
        );
    });
}
