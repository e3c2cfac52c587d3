//! The distribution of the bytes above a hole, as periodic acknowledgements report them.

use tack_sim::Blocked;

use super::values::Values;

/// Adds the share of reports with no more than so many bytes, for each of the limits.
pub(super) fn add_blocked(blocked: Blocked, values: &mut Values) {
    // From nothing in the buffer to 64 MiB in steps of two.
    for limit in std::iter::once(0).chain((10..=26).map(|power| 1_u64 << power)) {
        let below = blocked
            .bytes
            .iter()
            .filter(|bytes| **bytes <= limit)
            .count();
        values.insert(
            format!("blocked.le.{limit}"),
            below as f64 / blocked.bytes.len() as f64,
        );
    }
    values.insert("blocked.reports", blocked.bytes.len() as f64);
}
