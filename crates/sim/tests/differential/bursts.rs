//! A reason: a rare acknowledgement frees a burst of segments.

use crate::figures::Figures;
use crate::judge::Flag;
use crate::paths::Path;
use crate::way_back::as_with_sparse;

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
    let without = WITHOUT_MARKS.to_owned();
    as_with_sparse(path, Flag::Slow, tack, without, "bursts meet with marks")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Variant;
    use crate::paths::path;
    use crate::runs::fresh;

    /// Path 186205 has this reason. A TACK that is slower than the plain policy that acknowledges
    /// as rarely has not, nor has a path whose difference stays without marks: path 164355, with a
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
        let other = crate::paths::path(164_355);
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
