//! A reason for a difference: the sender of the plain policy has more patience.

use crate::figures::Figures;
use crate::judge::{Flag, gain, shows};
use crate::measure::{PLAIN, Variant};
use crate::paths::Path;
use crate::runs;

/// The shortest timeout with which a plain sender is out of patience with a lone segment as soon as
/// TACK's, after 280 ms. TACK's tail loss probe allows for a report that is held back for 40 ms,
/// and so does its timeout of 200 ms after that. The probe of the plain one allows for 200 ms, but
/// waits no longer than its timeout (RFC 8985 §7.2): 140 ms for each of them.
const AS_IMPATIENT: &str = "min_rto=140ms";

/// Hosts that sleep answer late. A plain sender with a lone segment in flight probes, and its timer
/// runs out, later than TACK's; who answers meanwhile draws a timeout of the one alone. With as
/// little patience the plain policy must have about as many, and TACK must not be slower for them.
pub(crate) fn longer_patience(path: &Path, tack: &Figures, plain: &Figures) -> Option<String> {
    let gain = gain(path, tack, plain);
    if gain < 0.95 {
        return None;
    }
    let mut variant = Variant::new(PLAIN);
    variant.flow_keys.push(AS_IMPATIENT);
    let impatient = runs::fresh(path, &variant);
    let is_gone = !shows(Flag::Rto, path, tack, &impatient);
    is_gone.then(|| {
        format!(
            "{PLAIN} has more patience with a lone segment: {:.1} timeouts, with {AS_IMPATIENT} {:.1}, TACK {:.1}, which is {gain:.2} times \
             as fast",
            plain.timeouts, impatient.timeouts, tack.timeouts,
        )
    })
}
