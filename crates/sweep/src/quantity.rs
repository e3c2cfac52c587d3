//! Values of scenario keys as numbers: `10ms` is 0.01 seconds.

use tack_base::units;

use crate::table::Cell;

/// What a value counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Quantity {
    /// Nanoseconds, shown in seconds.
    Duration,
    /// Bits per second.
    Rate,
    /// Bytes.
    Size,
    /// Packets of a queue.
    Packets,
    /// Thousandths of a bandwidth-delay product.
    Bdp,
    /// A number without fraction.
    Whole,
    /// A number.
    Real,
}

impl Quantity {
    /// What `text` counts, and how many of the least unit.
    pub(crate) fn read(text: &str) -> Option<(Self, f64)> {
        let text = text.trim();
        if let Ok(duration) = units::parse_duration(text) {
            return Some((Self::Duration, duration.as_nanos() as f64));
        }
        if let Ok(rate) = units::parse_rate(text) {
            return Some((Self::Rate, rate.bits_per_sec() as f64));
        }
        if let Some(number) = text.strip_suffix("bdp") {
            let number: f64 = number.trim_end().parse().ok()?;
            return Some((Self::Bdp, number * 1_000.0)).filter(|_| number >= 0.0);
        }
        if let Some(number) = text.strip_suffix('p')
            && let Ok(number) = number.trim_end().parse::<u32>()
        {
            return Some((Self::Packets, number.into()));
        }
        let is_bare = text.bytes().all(|byte| byte.is_ascii_digit());
        match units::parse_size(text) {
            Ok(bytes) if !is_bare => Some((Self::Size, bytes as f64)),
            _ => None,
        }
    }

    /// What the column of these numbers is called, after the key.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Duration => "_s",
            Self::Rate => "_bps",
            Self::Size => "_bytes",
            Self::Packets => "_packets",
            Self::Bdp => "_bdp",
            Self::Whole | Self::Real => "",
        }
    }

    /// So many of the least unit in the unit of the column.
    pub(crate) fn shown(self, amount: f64) -> f64 {
        match self {
            Self::Duration => amount / 1e9,
            Self::Bdp => amount / 1e3,
            _ => amount,
        }
    }

    /// Whether there is nothing between two neighbouring amounts.
    const fn is_whole(self) -> bool {
        !matches!(self, Self::Real)
    }

    /// An amount as a value that can be set, in six digits.
    pub(crate) fn rounded(self, amount: f64) -> f64 {
        let six: f64 = format!("{amount:.5e}").parse().unwrap_or(amount);
        match self.is_whole() {
            true => six.round(),
            false => six,
        }
    }

    /// The text of an amount, as an override has it.
    pub(crate) fn text(self, amount: f64) -> String {
        let whole = amount as u64;
        match self {
            Self::Duration => decimal(
                whole,
                &[
                    (1_000_000_000, "s"),
                    (1_000_000, "ms"),
                    (1_000, "us"),
                    (1, "ns"),
                ],
            ),
            Self::Rate => decimal(
                whole,
                &[
                    (1_000_000_000, "Gbps"),
                    (1_000_000, "Mbps"),
                    (1_000, "kbps"),
                    (1, "bps"),
                ],
            ),
            Self::Size => units::show_size(whole).to_string(),
            Self::Packets => format!("{whole}p"),
            Self::Bdp => format!("{}bdp", amount / 1e3),
            Self::Whole => format!("{}", amount as i64),
            Self::Real => format!("{amount:?}"),
        }
    }

    /// The cell of a column of these numbers.
    pub(crate) fn cell(self, amount: f64) -> Cell {
        match self {
            Self::Whole => Cell::Integer(amount as i64),
            _ => Cell::finite(self.shown(amount)),
        }
    }
}

/// An amount in the largest unit of which there is one, with as many digits after the point as it
/// takes: samples have more than `units::show_duration` gives people.
fn decimal(amount: u64, scales: &[(u64, &str)]) -> String {
    let fitting = scales.iter().find(|(scale, _)| amount >= *scale);
    let (scale, name) = fitting.or(scales.last()).copied().unwrap_or((1, ""));
    let (whole, rest) = (amount / scale, amount % scale);
    if rest == 0 {
        return format!("{whole}{name}");
    }
    let width = scale.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}{name}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written() {
        for (text, quantity, amount) in [
            ("10ms", Quantity::Duration, 1e7),
            ("1.5s", Quantity::Duration, 1.5e9),
            ("5.84804ms", Quantity::Duration, 5_848_040.0),
            ("17.5us", Quantity::Duration, 17_500.0),
            ("0ns", Quantity::Duration, 0.0),
            ("54Mbps", Quantity::Rate, 54e6),
            ("1.00001Gbps", Quantity::Rate, 1_000_010_000.0),
            ("64KiB", Quantity::Size, 65_536.0),
            ("100p", Quantity::Packets, 100.0),
            ("1.5bdp", Quantity::Bdp, 1_500.0),
        ] {
            assert_eq!(Quantity::read(text), Some((quantity, amount)), "{text}");
            assert_eq!(quantity.text(amount), text);
        }
        for text in ["tack", "off", "10", "p", "bdp", "-5ms", ""] {
            assert_eq!(Quantity::read(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_have_six_digits() {
        assert_eq!(Quantity::Duration.rounded(12_345_678.9), 12_345_700.0);
        assert_eq!(Quantity::Real.rounded(0.123_456_789), 0.123_457);
        assert_eq!(Quantity::Whole.rounded(2.6), 3.0);
        assert_eq!(Quantity::Real.text(1.0), "1.0", "a number with a fraction");
    }
}
