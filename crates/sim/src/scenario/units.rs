//! Quantities as scenario files write them: always with a unit, also where a bare number would do
//! elsewhere.

use std::time::Duration;

use tack_base::{Rate, units};

/// Bound of a queue as written in a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum QueueText {
    Packets(u64),
    Bytes(u64),
    /// Thousandths of the path's bandwidth-delay product.
    MilliBdp(u64),
}

/// `200ms`
pub(crate) fn duration(text: &str) -> Option<Duration> {
    units::parse_duration(text).ok()
}

/// `54Mbps`
pub(crate) fn rate(text: &str) -> Option<Rate> {
    units::parse_rate(text).ok()
}

/// `64KiB`
pub(crate) fn size(text: &str) -> Option<u64> {
    if text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return None;
    }
    units::parse_size(text).ok()
}

/// `1000p`, `64KiB` or `1.0bdp`
pub(crate) fn queue(text: &str) -> Option<QueueText> {
    if let Some(number) = text.strip_suffix("bdp") {
        return thousandths(number.trim_end()).map(QueueText::MilliBdp);
    }
    if let Some(number) = text.strip_suffix('p') {
        return number.trim_end().parse().ok().map(QueueText::Packets);
    }
    size(text).map(QueueText::Bytes)
}

/// A decimal number with at most three digits behind the point, in thousandths.
fn thousandths(number: &str) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 3 {
        return None;
    }
    let digits = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse::<u64>().ok())?
    };
    let fraction = digits(&format!("{fraction:0<3}"))?;
    digits(whole)?.checked_mul(1_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_come_in_three_units() {
        assert_eq!(queue("1000p"), Some(QueueText::Packets(1_000)));
        assert_eq!(queue("64KiB"), Some(QueueText::Bytes(65_536)));
        assert_eq!(queue("1bdp"), Some(QueueText::MilliBdp(1_000)));
        assert_eq!(queue("1.5 bdp"), Some(QueueText::MilliBdp(1_500)));
        assert_eq!(queue("0.125bdp"), Some(QueueText::MilliBdp(125)));
        for wrong in [
            "",
            "p",
            "bdp",
            "5",
            "0.5p",
            "-1p",
            "+1bdp",
            "1.bdp",
            ".5bdp",
            "0.0001bdp",
            "1.2.3bdp",
            "64K",
        ] {
            assert_eq!(queue(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_bare_number_is_no_size() {
        assert_eq!(size("1500B"), Some(1_500));
        assert_eq!(size("1500"), None);
    }
}
