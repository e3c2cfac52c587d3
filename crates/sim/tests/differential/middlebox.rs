//! Reason: a middlebox disables a mechanism of the plain policy.

use crate::figures::Figures;
use crate::judge::{Flag, gain, shows};
use crate::measure::Variant;
use crate::paths::Path;
use crate::runs;

/// The key of a path whose firewall hides initial sequence numbers, and what it has where that
/// leaves SACK blocks as they are.
const BLIND: &str = "isn_rewrite = \"without_sack\"";
/// The same firewall, which translates the blocks too.
const TRANSLATED: &str = "wired.isn_rewrite=with_sack";

/// SACK blocks that name other sequence numbers tell a plain sender nothing: it repairs a segment
/// in a round trip and hardly takes part in filling the queue. TACK's reports name stream offsets.
/// Where the firewall translates the blocks the difference must be gone, as TACK is here and as it
/// is there: the plain policy must be what changed. And here TACK must be no slower.
pub(crate) fn useless_blocks(
    path: &Path,
    flag: Flag,
    tack: &Figures,
    plain: &Figures,
) -> Option<String> {
    if !path.toml.contains(BLIND) || gain(path, tack, plain) < 0.95 {
        return None;
    }
    let [other_tack, other_plain] = Variant::both().map(|mut variant| {
        variant.path_keys.push(TRANSLATED.into());
        runs::fresh(path, &variant)
    });
    let is_gone = [tack, &other_tack]
        .iter()
        .all(|tack| !shows(flag, path, tack, &other_plain));
    is_gone.then(|| {
        format!(
            "SACK blocks are of no use to the plain policy: {:.1} and {:.1} % again, TACK {:.2} times as fast; with blocks that are \
             translated {:.1} and {:.1} %, and {:.2} times as fast",
            100.0 * tack.repeated_share(),
            100.0 * plain.repeated_share(),
            gain(path, tack, plain),
            100.0 * other_tack.repeated_share(),
            100.0 * other_plain.repeated_share(),
            gain(path, &other_tack, &other_plain),
        )
    })
}
