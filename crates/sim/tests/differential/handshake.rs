//! Reasons for a difference that lie in the handshake: it gave no round-trip time, or took long.

use crate::figures::Figures;
use crate::judge::{Flag, gain, shows};
use crate::measure::{PLAIN, Variant};
use crate::moments::{Blackout, HANDSHAKE, all_blackouts};
use crate::paths::Path;
use crate::runs;

/// A segment of the handshake was sent twice, so its answer gives no round-trip time (Karn's
/// algorithm), and the next loss waits for a timer of seconds. Timestamps tell which of the two was
/// answered, but a connection with TACK has none. The plain policy without them must be no faster
/// than TACK, and without the blackouts in the handshake the difference must be gone.
pub(crate) fn unmeasured_handshake(path: &Path, tack: &Figures) -> Option<String> {
    let early = early_blackouts(path);
    if early.is_empty() || path.toml.contains("timestamps = false") {
        return None;
    }
    let mut variant = Variant::new(PLAIN);
    variant.flow_keys.push("timestamps=false");
    let unstamped = runs::fresh(path, &variant);
    if shows(Flag::Slow, path, tack, &unstamped) {
        return None;
    }
    let [clear_tack, clear_plain] = without(path, &early);
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

/// A blackout in the handshake, or in the first round trips, makes the plain policy wait for
/// timers, or ends its startup, so that it fills no queue before the run ends, and repeats nothing.
/// Without the blackout the difference must be gone, the plain policy must repeat about as much
/// there as TACK does here, and TACK must be no slower here. What the blackout swallowed is apart:
/// that must be no more with TACK.
pub(crate) fn late_start(path: &Path, tack: &Figures, plain: &Figures) -> Option<String> {
    let gain = gain(path, tack, plain);
    let early = early_blackouts(path);
    if early.is_empty() || gain < 0.95 {
        return None;
    }
    let [clear_tack, clear_plain] = without(path, &early);
    let is_gone = !shows(Flag::Retx, path, &clear_tack, &clear_plain);
    let swallowed = if tack.blacked_out <= plain.blacked_out {
        tack.blacked_out.min(tack.repeated)
    } else {
        0.0
    };
    let overflowed = Figures {
        data: tack.data - swallowed,
        repeated: tack.repeated - swallowed,
        ..tack.clone()
    };
    let is_as_much = !shows(Flag::Retx, path, &overflowed, &clear_plain);
    (is_gone && is_as_much).then(|| {
        format!(
            "{PLAIN} fills no queue after the first round trips, and TACK is {gain:.2} times as fast; without a blackout there {PLAIN} \
             repeats {:.1} % and TACK {:.1} %, here TACK {:.1} % without the {swallowed:.0} packets that the blackout swallowed",
            100.0 * clear_plain.repeated_share(),
            100.0 * clear_tack.repeated_share(),
            100.0 * overflowed.repeated_share(),
        )
    })
}

/// After a lost segment of the handshake the first window is one segment, and the plain policy of
/// the neighbour holds its acknowledgement back: the flow of TACK begins before its neighbour. A
/// flow that begins sooner may end with less (BBR's estimate of the bandwidth adapts to what the
/// later one takes in its startup). On the mean of paths beside this one, the difference must be
/// gone beside a neighbour that acknowledges at once; a plain flow that acknowledges at once must
/// do no better beside this neighbour; and both flows together must have about as much as with the
/// plain policy.
pub(crate) fn sooner_than_the_neighbour(path: &Path) -> Option<String> {
    if !path.shared || path.judged > 1 || early_blackouts(path).is_empty() {
        return None;
    }
    let beside = |variant: &Variant| Figures::on_average(&runs::beside(path, variant));
    let [tack, plain] = Variant::both().map(|variant| beside(&variant));
    let every = beside(&Variant::new("every"));
    let is_alike = tack.goodput >= 0.9 * every.goodput && tack.all >= 0.95 * plain.all;
    if !is_alike {
        return None;
    }
    let mut variant = Variant::new("tack");
    variant.path_keys.push("flow.1.ack=every".into());
    let prompt = beside(&variant);
    let is_gone = !shows(Flag::Slow, path, &prompt, &plain);
    is_gone.then(|| {
        format!(
            "the neighbour acknowledges a window of one segment later, and begins later: on paths beside this one TACK has {:.1} Mbit/s, {PLAIN} \
             {:.1}, every {:.1}, and TACK {:.1} beside a neighbour that acknowledges at once",
            tack.goodput / 1e6,
            plain.goodput / 1e6,
            every.goodput / 1e6,
            prompt.goodput / 1e6,
        )
    })
}

/// The blackouts that begin in the handshake.
fn early_blackouts(path: &Path) -> Vec<Blackout> {
    let mut early = all_blackouts(path);
    early.retain(|(_, start, _)| *start <= HANDSHAKE * path.rtt);
    early
}

/// TACK and the plain policy on the path without these blackouts.
fn without(path: &Path, blackouts: &[Blackout]) -> [Figures; 2] {
    Variant::both().map(|mut variant| {
        let clear = blackouts.iter().map(|(_, _, key)| format!("{key}=1us"));
        variant.path_keys.extend(clear);
        runs::fresh(path, &variant)
    })
}
