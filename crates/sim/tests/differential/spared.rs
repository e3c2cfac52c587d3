//! A reason for a difference: with the plain policy, slow start does not fill the queue.

use crate::figures::Figures;
use crate::judge::{Flag, gain, judge};
use crate::measure::{PLAIN, Variant};
use crate::middlebox::gentle;
use crate::paths::Path;
use crate::runs;
use crate::way_back::{FAST_WAY_BACK, RATE};

/// How the key of a path begins that says how late reordered packets are.
const REORDERED: &str = "reorder_delay";

/// Several things at once keep the plain sender's slow start from overflowing the queue: a receive
/// window that follows late, acknowledgements that fill a narrow way back, reordered packets taken
/// for lost, options that a middlebox removes. Taking away one of them leaves the others. Without
/// all of them the difference must be gone, the plain policy must repeat about as much there as
/// TACK does here, and TACK must be no slower here for what it repeats, or in a run of twice the
/// time: a queue of seconds that has overflowed takes seconds to repair.
pub(crate) fn spared(path: &Path, tack: &Figures, plain: &Figures) -> Option<String> {
    let mut speed = gain(path, tack, plain);
    let mut when = "here";
    if speed < 0.95 {
        let [longer_tack, longer_plain] =
            Variant::both().map(|variant| runs::longer(path, variant));
        speed = gain(path, &longer_tack, &longer_plain);
        when = "in twice the time";
    }
    if speed < 0.95 {
        return None;
    }
    let key = |line: &str| Some(line.split_once('=')?.0.trim().to_owned());
    let keys: Vec<_> = path.toml.lines().filter_map(key).collect();
    let mut names = vec!["open windows"];
    let mut path_keys = Vec::new();
    if keys.iter().any(|key| key == RATE) {
        names.push("a fast way back");
        path_keys.push(FAST_WAY_BACK.to_owned());
    }
    let late = keys.iter().filter(|key| key.starts_with(REORDERED));
    let in_order: Vec<_> = late.map(|key| format!("wired.{key}=1us")).collect();
    if !in_order.is_empty() {
        names.push("packets in order");
        path_keys.extend(in_order);
    }
    let gentle = gentle(path);
    if !gentle.is_empty() {
        names.push("options left alone");
        path_keys.extend(gentle);
    }
    let [free_tack, free_plain] = Variant::both().map(|mut variant| {
        variant.flow_keys.push("receive_window=fixed");
        variant.path_keys.extend(path_keys.clone());
        runs::fresh(path, &variant)
    });
    let is_gone = !judge(path, &free_tack, &free_plain).contains(&Flag::Retx);
    let is_as_much = !judge(path, tack, &free_plain).contains(&Flag::Retx);
    (is_gone && is_as_much).then(|| {
        format!(
            "{PLAIN} is kept from filling the queue; with {} it repeats {:.1} % and TACK {:.1} %, here TACK {:.1} %; {when} it is {speed:.2} times as fast",
            names.join(", "),
            100.0 * free_plain.repeated_share(),
            100.0 * free_tack.repeated_share(),
            100.0 * tack.repeated_share(),
        )
    })
}
