//! Reason: the other flow of the path is acknowledged more often.

use crate::figures::Figures;
use crate::judge::{Flag, shows};
use crate::measure::{PLAIN, Variant};
use crate::paths::Path;
use crate::runs;

/// TACK that acknowledges as often as its neighbour does, or more often.
const DENSE: &str = "tack:l=1,beta=64";

/// Of two flows, the one that is acknowledged more rarely gets less, or loses more of what it sends
/// into a full queue: its bandwidth estimate is smoother, or its segments leave in larger bursts.
/// That must be all. With dense acknowledgements of TACK the difference must be gone, and both
/// flows together must have about as much as with the plain policy, whether TACK is beside that or
/// beside TACK. Nor may TACK lose more beside TACK.
pub(crate) fn rarer_than_the_neighbour(
    path: &Path,
    flag: Flag,
    tack: &Figures,
    plain: &Figures,
) -> Option<String> {
    if !path.shared || path.judged > 1 || tack.acks_per_byte() >= plain.acks_per_byte() {
        return None;
    }
    let has_as_much = |figures: &Figures| figures.all >= 0.95 * plain.all;
    if !has_as_much(tack) {
        return None;
    }
    let dense = runs::fresh(path, &Variant::new(DENSE));
    if shows(flag, path, &dense, plain) {
        return None;
    }
    let mut variant = Variant::new("tack");
    variant.path_keys.push("flow.1.ack=tack".into());
    let alike = runs::fresh(path, &variant);
    if flag == Flag::Retx && shows(flag, path, &alike, plain) {
        return None;
    }
    has_as_much(&alike).then(|| {
        let line = |figures: &Figures| {
            let again = 100.0 * figures.repeated_share();
            format!("{:.2} Mbit/s, {again:.1} % again", figures.goodput / 1e6)
        };
        format!(
            "the neighbour is acknowledged more often: {DENSE} has {}, TACK {} and {PLAIN} {}; together they have {:.2}, with {PLAIN} {:.2} \
             and with TACK on both {:.2}",
            line(&dense),
            line(tack),
            line(plain),
            tack.all / 1e6,
            plain.all / 1e6,
            alike.all / 1e6,
        )
    })
}

/// One of two flows gets most of the path with the plain policy, and what it has beyond an even
/// share it takes from its neighbour. That is not speed: with TACK it must have an even share of
/// what both had, and both together no less than that.
pub(crate) fn even_share(path: &Path, tack: &Figures, plain: &Figures) -> Option<String> {
    if !path.shared || path.judged > 1 {
        return None;
    }
    let is_even = tack.goodput >= 0.5 * plain.all && tack.all >= plain.all;
    is_even.then(|| {
        format!(
            "{PLAIN} takes {:.1} of {:.1} Mbit/s from its neighbour's half; TACK has {:.1} of {:.1}",
            plain.goodput / 1e6,
            plain.all / 1e6,
            tack.goodput / 1e6,
            tack.all / 1e6,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::path;

    #[test]
    fn half_of_what_two_plain_flows_have_is_an_even_share() {
        let shared = Path {
            shared: true,
            judged: 1,
            ..path(60_435)
        };
        let figures = |goodput, all| Figures {
            goodput,
            all,
            ..Figures::default()
        };
        let plain = figures(100.0, 128.0);
        for (own, all, is_even) in [
            (68.0, 138.0, true),
            // Less than half, or at the neighbour's cost.
            (63.0, 138.0, false),
            (68.0, 127.0, false),
        ] {
            let reason = even_share(&shared, &figures(own, all), &plain);
            assert_eq!(reason.is_some(), is_even, "{own} of {all}");
        }
    }
}
