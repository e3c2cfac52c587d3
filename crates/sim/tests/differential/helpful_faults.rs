//! Reason: a fault of the path makes the plain policy faster.

use crate::figures::Figures;
use crate::judge::{Flag, gain, shows};
use crate::measure::{PLAIN, Variant};
use crate::moments::all_blackouts;
use crate::paths::Path;
use crate::runs;

/// How the line of a path begins that says how many packets come twice.
const DUPLICATES: &str = "duplicate = ";

/// The plain policy is faster with a fault than without it. One cause is known: segments that came
/// twice, as duplicates or after a timeout that a blackout made, widen its reordering window
/// (RFC 8985 §6.2, step 4). The sender then declares losses later. So its flight is larger when
/// slow start ends, and it repeats a segment after a burst of losses, not within it. Without the
/// fault the plain policy must be slower than with it and no faster than TACK is with it, and the
/// difference must be gone; and TACK itself must not suffer from the fault.
pub(crate) fn helpful_fault(path: &Path, tack: &Figures, plain: &Figures) -> Option<String> {
    let duplicates = path.toml.lines().any(|line| line.starts_with(DUPLICATES));
    let duplicates = duplicates.then(|| "wired.duplicate=0".to_owned());
    let blackouts = all_blackouts(path).into_iter();
    let blackouts = blackouts.map(|(_, _, key)| format!("{key}=1us"));
    duplicates.into_iter().chain(blackouts).find_map(|key| {
        let [clear_tack, clear_plain] = Variant::both().map(|mut variant| {
            variant.path_keys.push(key.clone());
            runs::fresh(path, &variant)
        });
        let helps = gain(path, plain, &clear_plain) > 1.0;
        let slow = |tack, plain| shows(Flag::Slow, path, tack, plain);
        let is_gone = !slow(tack, &clear_plain) && !slow(&clear_tack, &clear_plain);
        (helps && is_gone && !slow(tack, &clear_tack)).then(|| {
            format!(
                "{PLAIN} is {:.2} times as fast as with {key}, TACK {:.2} times; with it TACK is {:.2} times as fast as {PLAIN}",
                gain(path, plain, &clear_plain),
                gain(path, tack, &clear_tack),
                gain(path, &clear_tack, &clear_plain),
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::path;

    /// Path 258397 has this reason. A TACK that is slower than the plain policy without the fault
    /// has not, nor has a plain policy that the fault makes slower.
    #[test]
    fn a_fault_is_a_reason_where_the_plain_policy_gains_by_it() {
        let path = path(258_397);
        let [tack, plain] = Variant::both().map(|variant| runs::fresh(&path, &variant));
        assert!(helpful_fault(&path, &tack, &plain).is_some());
        let scaled = |figures: &Figures, factor: f64| Figures {
            goodput: factor * figures.goodput,
            ..figures.clone()
        };
        assert_eq!(helpful_fault(&path, &scaled(&tack, 0.05), &plain), None);
        assert_eq!(helpful_fault(&path, &tack, &scaled(&plain, 0.05)), None);
    }
}
