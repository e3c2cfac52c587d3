//! Quantities with units: `200ms`, `54Mbps`, `64KiB`, `1000p`, `1.0bdp`. Exact: no floating point on the way.

use std::time::Duration;

use tack_base::Rate;

/// Nanoseconds per unit.
const DURATIONS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// Bits per second per unit.
const RATES: &[(&str, u64)] = &[
    ("bps", 1),
    ("kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
];
/// Bytes per unit.
const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

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
    scaled(text, DURATIONS).map(Duration::from_nanos)
}

/// `54Mbps`
pub(crate) fn rate(text: &str) -> Option<Rate> {
    scaled(text, RATES).map(Rate::from_bits_per_sec)
}

/// `64KiB`
pub(crate) fn size(text: &str) -> Option<u64> {
    scaled(text, SIZES)
}

/// `1000p`, `64KiB` or `1.0bdp`
pub(crate) fn queue(text: &str) -> Option<QueueText> {
    let packets = scaled(text, &[("p", 1)]).map(QueueText::Packets);
    let bdp = || scaled(text, &[("bdp", 1_000)]).map(QueueText::MilliBdp);
    packets
        .or_else(bdp)
        .or_else(|| size(text).map(QueueText::Bytes))
}

/// A decimal number followed by one of `units`, as a whole number of the base unit; `None` when it is not that or would
/// have to be rounded.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = (&text[..split], text[split..].trim_start());
    let &(_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.ends_with('.') || fraction.len() > 18 {
        return None;
    }
    let denominator = 10_u128.pow(fraction.len() as u32);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let total = digits.checked_mul(u128::from(factor))?;
    if total % denominator != 0 {
        return None;
    }
    u64::try_from(total / denominator).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact() {
        assert_eq!(duration("200ms"), Some(Duration::from_millis(200)));
        assert_eq!(duration("0.1s"), Some(Duration::from_millis(100)));
        assert_eq!(duration("1.5 us"), Some(Duration::from_nanos(1_500)));
        assert_eq!(duration("2min"), Some(Duration::from_secs(120)));
        assert_eq!(rate("54Mbps"), Some(Rate::from_bits_per_sec(54_000_000)));
        assert_eq!(rate("6.5Mbps"), Some(Rate::from_bits_per_sec(6_500_000)));
        assert_eq!(size("64KiB"), Some(65_536));
        assert_eq!(queue("1000p"), Some(QueueText::Packets(1_000)));
        assert_eq!(queue("1.5bdp"), Some(QueueText::MilliBdp(1_500)));
        assert_eq!(queue("64KiB"), Some(QueueText::Bytes(65_536)));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "ms",
            "5",
            "-5ms",
            "5mss",
            "1.2.3s",
            "5 m s",
            ".5s",
            "5.s",
            "0.5ns",
            "1e3s",
            "99999999999999999999s",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!(rate("54mbps"), None);
        assert_eq!(rate("54Mb/s"), None);
        assert_eq!(size("64K"), None);
        assert_eq!(queue("0.5p"), None);
    }
}
