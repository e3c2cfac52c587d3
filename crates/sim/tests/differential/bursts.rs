//! A reason that lies in the bursts which rare acknowledgements free.

use crate::figures::Figures;
use crate::judge::{Flag, gain, shows};
use crate::measure::{PLAIN, Variant};
use crate::paths::Path;
use crate::runs;
use crate::way_back::{SPARSE_PLAIN, SPARSEST_PLAIN};

/// How the line of a path begins that says from how many packets on its queue marks.
const THRESHOLD: &str = "ecn_threshold = ";
/// A queue that marks nothing.
const WITHOUT_MARKS: &str = "wired.ecn_threshold=1000000p";

/// A queue marks from some packets on. What a rare acknowledgement frees is a larger burst, and
/// meets with marks where the segments of many small ones do not. Without marks the difference must
/// be gone, and with them a plain policy that acknowledges no more often than TACK, but at least
/// half as often, must be no faster.
pub(crate) fn marked_bursts(path: &Path, tack: &Figures) -> Option<String> {
    if !path.toml.lines().any(|line| line.starts_with(THRESHOLD)) {
        return None;
    }
    let [free_tack, free_plain] = Variant::both().map(|mut variant| {
        variant.path_keys.push(WITHOUT_MARKS.to_owned());
        runs::fresh(path, &variant)
    });
    if shows(Flag::Slow, path, &free_tack, &free_plain) {
        return None;
    }
    let (policy, sparse) = SPARSE_PLAIN
        .iter()
        .chain(&[SPARSEST_PLAIN])
        .map(|policy| (policy, runs::fresh(path, &Variant::new(*policy))))
        .find(|(_, sparse)| sparse.acks_per_byte() <= tack.acks_per_byte())?;
    let is_alike = sparse.acks_per_byte() >= 0.5 * tack.acks_per_byte()
        && !shows(Flag::Slow, path, tack, &sparse);
    is_alike.then(|| {
        format!(
            "bursts meet with marks: without these TACK is {:.2} times as fast as {PLAIN}; with them it sends {:.0} per MB and is {:.2} \
             times as fast as {policy}, which sends {:.0}",
            gain(path, &free_tack, &free_plain),
            1e6 * tack.acks_per_byte(),
            gain(path, tack, &sparse),
            1e6 * sparse.acks_per_byte(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::path;
    use crate::runs::fresh;

    /// Path 186205 has this reason. A TACK that is slower than the plain policy that acknowledges
    /// as rarely has not, nor has a path whose difference stays without marks: path 177225, with a
    /// threshold that its queue does not reach.
    #[test]
    fn bursts_are_a_reason_where_a_threshold_marks_and_a_sparse_policy_is_as_slow() {
        let path = path(186_205);
        let tack = fresh(&path, &Variant::new("tack"));
        assert!(marked_bursts(&path, &tack).is_some());
        let slower = Figures {
            goodput: 0.5 * tack.goodput,
            ..tack.clone()
        };
        assert_eq!(marked_bursts(&path, &slower), None);
        let other = crate::paths::path(177_225);
        let other = Path {
            toml: other
                .toml
                .replacen("[wired]\n", "[wired]\necn_threshold = '900000p'\n", 1),
            ..other
        };
        assert!(other.toml.contains(THRESHOLD));
        let tack = fresh(&other, &Variant::new("tack"));
        assert_eq!(marked_bursts(&other, &tack), None);
    }
}
