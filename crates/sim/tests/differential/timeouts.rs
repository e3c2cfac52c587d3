//! Reason: timeouts make CUBIC grow sooner.

use crate::figures::Figures;
use crate::judge::{Flag, gain, shows};
use crate::measure::{PLAIN, Variant};
use crate::paths::{Path, Work};
use crate::runs;

/// What the scenario of a path says whose flow has CUBIC.
const CUBIC: &str = "congestion = \"cubic\"";
/// Another controller, whose growth does not depend on what reduced the window.
const OTHER: &str = "congestion=new_reno";

/// After a timeout CUBIC begins congestion avoidance with K = 0, after losses that were repaired
/// with the K of the window before (RFC 9438 §4.8 and §4.6): the lower its window fell, the sooner
/// it grows fast. Where a blackout costs the plain policy timeouts and TACK none, the plain one is
/// behind at first and overtakes later. It must have more timeouts, TACK must be ahead when half
/// of the time is over, and with NewReno the difference must be gone.
pub(crate) fn sooner_after_timeouts(
    path: &Path,
    tack: &Figures,
    plain: &Figures,
) -> Option<String> {
    let has_more = plain.timeouts > tack.timeouts;
    let takes_time = matches!(path.work, Work::Bulk | Work::Video);
    if !takes_time || path.shared || !path.toml.contains(CUBIC) || !has_more {
        return None;
    }
    let [half_tack, half_plain] = Variant::both().map(|mut variant| {
        let micros = (0.5e6 * path.duration) as u64;
        variant.path_keys.push(format!("duration={micros}us"));
        runs::fresh(path, &variant)
    });
    let ahead = half_tack.bytes / half_plain.bytes.max(1.0);
    if ahead < 1.0 {
        return None;
    }
    let [other_tack, other_plain] = Variant::both().map(|mut variant| {
        variant.flow_keys.push(OTHER);
        runs::fresh(path, &variant)
    });
    let is_gone = !shows(Flag::Slow, path, &other_tack, &other_plain);
    is_gone.then(|| {
        format!(
            "CUBIC grows sooner after {:.1} timeouts of {PLAIN} than after {:.1} of TACK: TACK has {ahead:.2} times as much in half of the \
             time, and is {:.2} times as fast with NewReno",
            plain.timeouts,
            tack.timeouts,
            gain(path, &other_tack, &other_plain),
        )
    })
}
