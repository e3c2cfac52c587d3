//! Reason: packets of the two policies differ in size.

use crate::figures::Figures;
use crate::judge::{Flag, exceeds, gain, shows};
use crate::measure::{PLAIN, Variant};
use crate::paths::Path;
use crate::runs;

/// The key of a path whose MTU shrinks.
const NARROWING: &str = "mtu_black_hole_from";
/// Segments that each path of the search carries.
const SMALL_SEGMENTS: [&str; 2] = ["mss=1160", "base_mss=1160"];

/// The plain policy lost its probes for a larger path MTU, or had not sent them, and so had small
/// segments when the MTU shrank. TACK had large ones, and found that out by timeouts. The path must
/// have dropped more of TACK's packets because they were too large, and without probes the
/// difference must be gone.
pub(crate) fn unfound_mtu(
    path: &Path,
    flag: Flag,
    tack: &Figures,
    plain: &Figures,
) -> Option<String> {
    let size = |figures: &Figures| figures.bytes / (figures.data - figures.repeated).max(1.0);
    let (large, small) = (size(tack), size(plain));
    if !path.toml.contains(NARROWING) || tack.too_large <= plain.too_large {
        return None;
    }
    let [small_tack, small_plain] = Variant::both().map(|mut variant| {
        variant.flow_keys.extend(SMALL_SEGMENTS);
        runs::fresh(path, &variant)
    });
    let is_gone = !shows(flag, path, &small_tack, &small_plain);
    is_gone.then(|| {
        format!(
            "{PLAIN} had not found larger packets when the MTU shrank: {small:.0} bytes a segment, and {:.1} packets too large for the \
             path; TACK {large:.0}, and {:.1}; without probes TACK is {:.2} times as fast, with {:.1} and {:.1} timeouts",
            plain.too_large,
            tack.too_large,
            gain(path, &small_tack, &small_plain),
            small_tack.timeouts,
            small_plain.timeouts,
        )
    })
}

/// TACK's option takes 12 bytes of a packet, and so do timestamps, which the path's plain policy
/// goes without. Messages that just fit through a black hole without them do not with them. The
/// path must have dropped more of TACK's packets because they were too large, and about as many of
/// the plain policy with timestamps, whose packets are as large. Beside that the difference must be
/// gone.
pub(crate) fn room_for_options(
    path: &Path,
    flag: Flag,
    tack: &Figures,
    plain: &Figures,
) -> Option<String> {
    if !path.toml.contains("timestamps = false") || tack.too_large <= plain.too_large {
        return None;
    }
    let mut variant = Variant::new(PLAIN);
    variant.flow_keys.push("timestamps=true");
    let stamped = runs::fresh(path, &variant);
    let as_many = stamped.too_large >= 0.9 * tack.too_large;
    let is_gone = !shows(flag, path, tack, &stamped);
    (as_many && is_gone).then(|| {
        format!(
            "12 bytes of options make messages too large for the path: {:.1} packets of TACK, {:.1} of {PLAIN} and {:.1} of {PLAIN} with \
             timestamps; TACK is {:.2} times as fast as that, with {:.1} and {:.1} timeouts",
            tack.too_large,
            plain.too_large,
            stamped.too_large,
            gain(path, tack, &stamped),
            tack.timeouts,
            stamped.timeouts,
        )
    })
}

/// TACK's option takes 12 bytes of a packet, and so do timestamps, which the path's plain policy
/// goes without: a message that just fits into so many packets takes another one, and with that
/// another acknowledgement. The plain policy with timestamps must send as many segments for each
/// byte, and TACK no more acknowledgements for each byte than that policy.
pub(crate) fn segments_for_options(path: &Path, tack: &Figures, plain: &Figures) -> Option<String> {
    let segments = |figures: &Figures| figures.data / figures.bytes.max(1.0);
    if !path.toml.contains("timestamps = false") || segments(tack) <= segments(plain) {
        return None;
    }
    let mut variant = Variant::new(PLAIN);
    variant.flow_keys.push("timestamps=true");
    let stamped = runs::fresh(path, &variant);
    let as_many = segments(&stamped) >= 0.98 * segments(tack);
    let is_gone = !exceeds(tack, stamped.acks_per_byte());
    (as_many && is_gone).then(|| {
        format!(
            "12 bytes of options: TACK sends {:.0} segments for a MB, {PLAIN} {:.0} and {PLAIN} with timestamps {:.0}, and {:.0}, {:.0} \
             and {:.0} acknowledgements",
            1e6 * segments(tack),
            1e6 * segments(plain),
            1e6 * segments(&stamped),
            1e6 * tack.acks_per_byte(),
            1e6 * plain.acks_per_byte(),
            1e6 * stamped.acks_per_byte(),
        )
    })
}
