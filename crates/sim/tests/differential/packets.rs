//! Reason: packets of the two policies differ in size.

use crate::figures::Figures;
use crate::judge::{Flag, gain, judge};
use crate::measure::{PLAIN, Variant};
use crate::paths::Path;
use crate::runs;

/// The key of a path whose MTU shrinks.
const NARROWING: &str = "mtu_black_hole_from";
/// Segments that each path of the search carries.
const SMALL_SEGMENTS: [&str; 2] = ["mss=1160", "base_mss=1160"];

/// The plain policy lost its probes for a larger path MTU, and so had small segments when the MTU
/// shrank. TACK had large ones, and found that out by timeouts. Its segments must have been at
/// least a tenth larger, and without probes the difference must be gone.
pub(crate) fn unfound_mtu(
    path: &Path,
    flag: Flag,
    tack: &Figures,
    plain: &Figures,
) -> Option<String> {
    let size = |figures: &Figures| figures.bytes / (figures.data - figures.repeated).max(1.0);
    let (large, small) = (size(tack), size(plain));
    if !path.toml.contains(NARROWING) || large < 1.1 * small {
        return None;
    }
    let [small_tack, small_plain] = Variant::both().map(|mut variant| {
        variant.flow_keys.extend(SMALL_SEGMENTS);
        runs::fresh(path, &variant)
    });
    let is_gone = !judge(path, &small_tack, &small_plain).contains(&flag);
    is_gone.then(|| {
        format!(
            "{PLAIN} had not found larger packets when the MTU shrank: {small:.0} bytes a segment, TACK {large:.0}; without probes TACK is \
             {:.2} times as fast, with {:.1} and {:.1} timeouts",
            gain(path, &small_tack, &small_plain),
            small_tack.timeouts,
            small_plain.timeouts,
        )
    })
}
