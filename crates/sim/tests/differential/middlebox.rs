//! Reason: a middlebox disables mechanisms of the plain policy.

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
/// The keys of a path that removes options, one for each direction, and the kinds that only the
/// plain policy needs: SACK blocks (5) and timestamps (8).
const STRIPS: [&str; 2] = ["strip_options", "strip_options_reverse"];
const PLAIN_KINDS: [&str; 3] = ["[5]", "[8]", "[5, 8]"];
/// An option that nobody sends (RFC 2385).
const UNUSED_KIND: &str = "[19]";

/// The same path, with a middlebox that leaves the options of the plain policy alone.
pub(crate) fn gentle(path: &Path) -> Vec<String> {
    let is_blind = path.toml.contains(BLIND);
    let blocks = is_blind.then(|| TRANSLATED.to_owned());
    let strips = |key: &&str| {
        PLAIN_KINDS
            .iter()
            .any(|kinds| path.toml.contains(&format!("{key} = {kinds}\n")))
    };
    let options = STRIPS.into_iter().filter(strips);
    let kept = options.map(|key| format!("wired.{key}={UNUSED_KIND}"));
    blocks.into_iter().chain(kept).collect()
}

/// SACK blocks that name other sequence numbers, or that do not arrive, tell a plain sender
/// nothing: it repairs a segment in a round trip and hardly takes part in filling the queue.
/// Without timestamps its receiver does not widen the window. TACK's reports name stream offsets
/// and need neither. With a gentle middlebox the difference must be gone, as TACK is here and as it
/// is there: the plain policy must be what changed. And here TACK must be no slower.
pub(crate) fn useless_options(
    path: &Path,
    flag: Flag,
    tack: &Figures,
    plain: &Figures,
) -> Option<String> {
    let gentle = gentle(path);
    if gentle.is_empty() || gain(path, tack, plain) < 0.95 {
        return None;
    }
    let [other_tack, other_plain] = Variant::both().map(|mut variant| {
        variant.path_keys.extend(gentle.iter().cloned());
        runs::fresh(path, &variant)
    });
    let is_gone = [tack, &other_tack]
        .iter()
        .all(|tack| !shows(flag, path, tack, &other_plain));
    is_gone.then(|| {
        format!(
            "the plain policy lacks SACK blocks or timestamps: {:.1} and {:.1} % again, TACK {:.2} times as fast; with {} {:.1} and \
             {:.1} %, and {:.2} times as fast",
            100.0 * tack.repeated_share(),
            100.0 * plain.repeated_share(),
            gain(path, tack, plain),
            gentle.join(" "),
            100.0 * other_tack.repeated_share(),
            100.0 * other_plain.repeated_share(),
            gain(path, &other_tack, &other_plain),
        )
    })
}
