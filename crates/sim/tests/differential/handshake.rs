//! A reason for a difference: the handshake gave no round-trip time.

use crate::figures::Figures;
use crate::judge::{Flag, gain, shows};
use crate::measure::{PLAIN, Variant};
use crate::moments::{HANDSHAKE, all_blackouts};
use crate::paths::Path;
use crate::runs;

/// A segment of the handshake was sent twice, so its answer gives no round-trip time (Karn's
/// algorithm), and the next loss waits for a timer of seconds. Timestamps tell which of the two was
/// answered, but a connection with TACK has none. The plain policy without them must be no faster
/// than TACK, and without the blackouts in the handshake the difference must be gone.
pub(crate) fn unmeasured_handshake(path: &Path, tack: &Figures) -> Option<String> {
    let mut early = all_blackouts(path);
    early.retain(|(_, start, _)| *start <= HANDSHAKE * path.rtt);
    if early.is_empty() || path.toml.contains("timestamps = false") {
        return None;
    }
    let mut variant = Variant::new(PLAIN);
    variant.flow_keys.push("timestamps=false");
    let unstamped = runs::fresh(path, &variant);
    if shows(Flag::Slow, path, tack, &unstamped) {
        return None;
    }
    let [clear_tack, clear_plain] = Variant::both().map(|mut variant| {
        let clear = early.iter().map(|(_, _, key)| format!("{key}=1us"));
        variant.path_keys.extend(clear);
        runs::fresh(path, &variant)
    });
    let is_gone = !shows(Flag::Slow, path, &clear_tack, &clear_plain);
    is_gone.then(|| {
        format!(
            "the handshake gives no round trip without timestamps: TACK is {:.2} times as fast as {PLAIN} without them, and {:.2} times as \
             fast as {PLAIN} after a handshake without a blackout",
            gain(path, tack, &unstamped),
            gain(path, &clear_tack, &clear_plain),
        )
    })
}
