//! Reasons that lie in the moment at which something happens: chance.

use crate::chance::is_chance;
use crate::figures::Figures;
use crate::judge::{Flag, shows};
use crate::measure::{PLAIN, Variant};
use crate::paths::{Path, Work};
use crate::runs;

/// How the tables of a path begin that say when nothing passes.
const BLACKOUT: &str = "[[wired.blackout";
/// A blackout that begins no later, in round trips, is there for the handshake.
pub(crate) const HANDSHAKE: f64 = 3.0;
/// Blackouts begin up to so many round trips sooner and later.
const SHIFT: f64 = 2.0;

/// A blackout of a path: the key of its beginning, its seconds, and the key of its length.
pub(crate) type Blackout = (String, f64, String);

/// The blackouts of a path after its handshake.
fn blackouts(path: &Path) -> Vec<Blackout> {
    let mut found = all_blackouts(path);
    found.retain(|(_, start, _)| *start > HANDSHAKE * path.rtt);
    found
}

/// The blackouts of a path.
pub(crate) fn all_blackouts(path: &Path) -> Vec<Blackout> {
    let mut found = Vec::new();
    let mut seen = [0_usize; 2];
    let mut lines = path.toml.lines();
    while let Some(line) = lines.next() {
        let Some(end) = line.trim().strip_prefix(BLACKOUT) else {
            continue;
        };
        let side = end.trim_end_matches(']');
        let nth = &mut seen[usize::from(!side.is_empty())];
        let key = format!("wired.blackout{side}.{nth}");
        *nth += 1;
        let start = lines.next().and_then(|line| {
            let value = line.trim().strip_prefix("start = \"")?;
            value.strip_suffix("us\"")?.parse::<f64>().ok()
        });
        let start = start.expect("a blackout begins with its start, in microseconds") / 1e6;
        found.push((format!("{key}.start"), start, format!("{key}.duration")));
    }
    found
}

/// A transfer is nearly done when a blackout begins, and what is left has to wait for its end: a
/// few milliseconds decide. Without the blackout the difference must be gone, so must it on the
/// mean of sixteen other moments, and with the plain policy so many of those transfers must take as
/// long as TACK's does here that this one could be one of them.
pub(crate) fn moment_of_blackout(path: &Path, tack: &Figures) -> Option<String> {
    let blackouts = blackouts(path);
    if blackouts.is_empty() || path.work != Work::Transfer {
        return None;
    }
    let [clear_tack, clear_plain] = Variant::both().map(|mut variant| {
        let clear = blackouts.iter().map(|(_, _, key)| format!("{key}=1us"));
        variant.path_keys.extend(clear);
        runs::fresh(path, &variant)
    });
    if shows(Flag::Slow, path, &clear_tack, &clear_plain) {
        return None;
    }
    let [tacks, plains] = Variant::both().map(|variant| {
        runs::at_moments(path, &variant, |share| {
            let shift = SHIFT * path.rtt * (2.0 * share - 1.0);
            let begins = |(key, start, _): &(String, f64, String)| {
                format!("{key}={:.0}us", 1e6 * (start + shift))
            };
            blackouts.iter().map(begins).collect()
        })
    });
    let [tack_mean, plain_mean] = [&tacks, &plains].map(|runs| Figures::on_average(runs));
    if shows(Flag::Slow, path, &tack_mean, &plain_mean) {
        return None;
    }
    let as_long = plains
        .iter()
        .filter(|plain| plain.completion >= 0.95 * tack.completion)
        .count();
    is_chance(as_long, plains.len()).then(|| {
        format!(
            "the moment of a blackout: without it {:.2} s and {:.2}; at other moments {:.2} and {:.2} on the mean, and {as_long} of {} with \
             {PLAIN} as long as here",
            clear_tack.completion,
            clear_plain.completion,
            tack_mean.completion,
            plain_mean.completion,
            plains.len(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::path;

    #[test]
    fn blackouts_are_found_but_for_those_of_the_handshake() {
        let found = |number| {
            let found = blackouts(&path(number)).into_iter();
            found.map(|(start, ..)| start).collect::<Vec<_>>()
        };
        assert_eq!(found(120_440), ["wired.blackout_reverse.0.start"]);
        // The other one begins with the first packet.
        assert_eq!(found(120_239), ["wired.blackout.0.start"]);
        assert!(found(61_432).is_empty());
    }
}
