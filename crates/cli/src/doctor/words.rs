//! A diagnosis for people.

use std::fmt::Write as _;

use super::diagnosis::{Diagnosis, Savings, rate};
use super::measure::Measured;

/// Figures and findings, as lines.
pub(super) fn text(measured: &Measured, diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    let way = match measured.reverse {
        true => "from the peer to this machine",
        false => "from this machine to the peer",
    };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "path with {}, data {way}\n", measured.peer);
    let _ = writeln!(
        text,
        "{:<26} {:>12} {:>12} {:>12} {:>10} {:>8}",
        "test", "goodput", "rtt p50", "rtt p99", "ACKs/MiB", "lost"
    );
    let idle = &measured.idle;
    let _ = writeln!(
        text,
        "{:<26} {:>12} {:>9.1} ms {:>9.1} ms {:>10} {:>8}",
        "at rest", "-", idle.p50_ms, idle.p99_ms, "-", "-"
    );
    let queues = ("queues filled (CUBIC)", &measured.filled);
    let policies = measured.policies.iter().map(|it| (it.policy, &it.mean));
    for (name, loaded) in std::iter::once(queues).chain(policies) {
        let _ = writeln!(
            text,
            "{name:<26} {:>12} {:>9.1} ms {:>9.1} ms {:>10.1} {:>6.2} %",
            rate(loaded.goodput_bps),
            loaded.round_trips.p50_ms,
            loaded.round_trips.p99_ms,
            loaded.acks_per_mib,
            loaded.loss_share * 100.0,
        );
    }
    text.push('\n');
    for (index, finding) in diagnosis.findings.iter().enumerate() {
        let head = match index {
            0 => "What limits it: ",
            _ => "Also: ",
        };
        let _ = writeln!(text, "{head}{}.", finding.words);
    }
    if !diagnosis.is_steady {
        text.push_str(
            "The rounds of one policy differ by more than a third: the path or a machine is not steady, and the comparison of policies is unreliable. Longer tests and more rounds (--time, --rounds) make it more reliable.\n",
        );
    }
    let tack = &diagnosis.tack;
    let percent = tack.goodput_gain * 100.0;
    let goodput = match tack {
        Savings {
            is_comparable: false,
            ..
        } => format!(
            "the goodput differs by {percent:.1} % in one round, which cannot be judged: more rounds (--rounds) tell whether that is chance"
        ),
        Savings { is_clear: true, .. } => format!("the data is {percent:.1} % faster"),
        Savings {
            is_slower: true, ..
        } => {
            format!("but the data is {:.1} % slower, in every round", -percent)
        }
        _ => format!(
            "the goodput differs by {percent:.1} %, which is within the variation of the tests"
        ),
    };
    let _ = writeln!(
        text,
        "What TACK saves here: {:.0} % of the ACKs of delayed:2; {goodput}. On Wi-Fi those ACKs would take up to {:.1} % of the airtime, as estimated.",
        tack.acks_saved_share.max(0.0) * 100.0,
        (tack.airtime_share * 100.0).min(100.0),
    );
    text
}
