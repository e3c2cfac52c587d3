//! Reading and printing quantities with units: `200ms`, `54Mbps`, `64KiB`.
//!
//! Scenario files, the command line and reports all go through here, so a quantity means the same
//! everywhere. Reading is exact: a decimal that does not name a whole number of nanoseconds, bits
//! per second or bytes is an error, never rounded. Printing is exact too and reads back.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::rate::Rate;
use crate::time::nanos;

/// What kind of quantity a text was meant to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// A length of time.
    Duration,
    /// A data rate.
    Rate,
    /// A number of bytes.
    Size,
}

impl Quantity {
    /// Units that are read, largest first, each with its value in nanoseconds, bits per second or
    /// bytes.
    const fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            Self::Duration => &[
                ("h", 3_600_000_000_000),
                ("min", 60_000_000_000),
                ("s", 1_000_000_000),
                ("ms", 1_000_000),
                ("us", 1_000),
                ("\u{b5}s", 1_000),  // micro sign
                ("\u{3bc}s", 1_000), // Greek mu, which many keyboards give instead
                ("ns", 1),
            ],
            Self::Rate => &[
                ("Tbps", 1_000_000_000_000),
                ("Gbps", 1_000_000_000),
                ("Mbps", 1_000_000),
                ("kbps", 1_000),
                ("bps", 1),
                ("Tbit/s", 1_000_000_000_000),
                ("Gbit/s", 1_000_000_000),
                ("Mbit/s", 1_000_000),
                ("kbit/s", 1_000),
                ("bit/s", 1),
            ],
            Self::Size => &[
                ("TiB", 1 << 40),
                ("GiB", 1 << 30),
                ("MiB", 1 << 20),
                ("KiB", 1 << 10),
                ("TB", 1_000_000_000_000),
                ("GB", 1_000_000_000),
                ("MB", 1_000_000),
                ("kB", 1_000),
                ("B", 1),
            ],
        }
    }

    /// What a right text looks like, for errors.
    const fn example(self) -> &'static str {
        match self {
            Self::Duration => "a duration looks like 200ms or 1.5s (ns, us, ms, s, min, h)",
            Self::Rate => "a rate looks like 54Mbps or 9.6kbps (bps, kbps, Mbps, Gbps, Tbps)",
            Self::Size => {
                "a size looks like 64KiB, 10MB or 1500B (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)"
            }
        }
    }

    const fn smallest(self) -> &'static str {
        match self {
            Self::Duration => "nanoseconds",
            Self::Rate => "bits per second",
            Self::Size => "bytes",
        }
    }
}

/// What is wrong with a text.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// It does not start with a decimal number such as `12` or `1.5`.
    NoNumber,
    /// It starts with a minus sign.
    Negative,
    /// The number stands alone.
    NoUnit,
    /// The unit, given here, is not one of this quantity.
    UnknownUnit(String),
    /// It is not a whole number of the smallest unit, or has more than 18 decimals.
    TooFine,
    /// It is more than 64 bits of the smallest unit hold.
    TooLarge,
}

/// Why a text is not a quantity; prints what is wrong and what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitError {
    /// The text as it was given.
    pub text: String,
    /// What it was meant to be.
    pub quantity: Quantity,
    /// What is wrong.
    pub problem: Problem,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" ", self.text)?;
        match &self.problem {
            Problem::NoNumber => f.write_str("does not start with a number such as 12 or 1.5")?,
            Problem::Negative => f.write_str("is negative")?,
            Problem::NoUnit => f.write_str("has no unit")?,
            Problem::UnknownUnit(unit) => write!(f, "has the unknown unit \"{unit}\"")?,
            Problem::TooFine => write!(f, "is not a whole number of {}", self.quantity.smallest())?,
            Problem::TooLarge => {
                write!(
                    f,
                    "is too large: at most {} {} can be had",
                    u64::MAX,
                    self.quantity.smallest()
                )?;
            }
        }
        write!(f, "; {}", self.quantity.example())
    }
}

impl core::error::Error for UnitError {}

/// Reads a duration such as `200ms`, `1.5s`, `400ns`, `10us` or `2min`; at most 584 years.
///
/// # Errors
/// [`UnitError`] when the number or the unit is missing or not understood, or the value does not
/// fit 64 bits of nanoseconds exactly.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    parse(text, Quantity::Duration, None).map(Duration::from_nanos)
}

/// Reads a rate such as `54Mbps`, `9.6kbps` or `1 Gbit/s`. Prefixes are decimal.
///
/// # Errors
/// As [`parse_duration`], for bits per second.
pub fn parse_rate(text: &str) -> Result<Rate, UnitError> {
    parse(text, Quantity::Rate, None).map(Rate::from_bits_per_sec)
}

/// Reads a size in bytes such as `64KiB` (binary), `10MB` (decimal), `1500B` or plain `65535`.
///
/// # Errors
/// As [`parse_duration`], for bytes.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    parse(text, Quantity::Size, Some(1))
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_rate(text)
    }
}

/// `text` in the smallest unit of `quantity`; a number alone counts `bare` of them, if that is
/// allowed.
fn parse(text: &str, quantity: Quantity, bare: Option<u64>) -> Result<u64, UnitError> {
    let problem = match value(text.trim(), quantity, bare) {
        Ok(value) => return Ok(value),
        Err(problem) => problem,
    };
    Err(UnitError {
        text: text.into(),
        quantity,
        problem,
    })
}

fn value(text: &str, quantity: Quantity, bare: Option<u64>) -> Result<u64, Problem> {
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    if number.is_empty() && unit.starts_with(['-', '\u{2212}']) {
        return Err(Problem::Negative);
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err(Problem::NoNumber);
    }
    let unit = unit.trim_start();
    let scale = if unit.is_empty() {
        bare.ok_or(Problem::NoUnit)?
    } else {
        let known = quantity.units().iter().find(|(name, _)| *name == unit);
        known.ok_or_else(|| Problem::UnknownUnit(unit.into()))?.1
    };
    // Exact arithmetic in 128 bits: the digits without the point, and ten to the power of how many
    // stood behind it.
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return Err(Problem::TooFine);
    }
    let divisor = 10_u128.pow(fraction.len() as u32);
    let digits = |text: &str| {
        text.bytes().try_fold(0_u128, |sum, digit| {
            sum.checked_mul(10)?.checked_add(u128::from(digit - b'0'))
        })
    };
    // Overflowing 128 bits here means more than 64 bits of the result: the divisor is at most
    // 10^18.
    let scaled = digits(whole)
        .and_then(|whole| whole.checked_mul(divisor))
        .zip(digits(fraction))
        .and_then(|(whole, fraction)| whole.checked_add(fraction)?.checked_mul(u128::from(scale)))
        .ok_or(Problem::TooLarge)?;
    if !scaled.is_multiple_of(divisor) {
        return Err(Problem::TooFine);
    }
    u64::try_from(scaled / divisor).map_err(|_| Problem::TooLarge)
}

/// Prints a duration in the largest unit that stays short and exact: `200ms`, `1.5s`, `2min`.
pub fn show_duration(duration: Duration) -> impl fmt::Display {
    const UNITS: &[Unit] = &[
        unit(3_600_000_000_000, "h", 0),
        unit(60_000_000_000, "min", 0),
        unit(1_000_000_000, "s", 3),
        unit(1_000_000, "ms", 3),
        unit(1_000, "us", 3),
        unit(1, "ns", 0),
    ];
    Shown {
        value: nanos(duration),
        units: UNITS,
        zero: "0s",
    }
}

/// Prints a rate in the largest unit that stays short and exact: `54Mbps`, `9.6kbps`.
///
/// [`Rate`]'s own `Display` rounds to three digits, for people; this reads back as the same rate.
pub fn show_rate(rate: Rate) -> impl fmt::Display {
    const UNITS: &[Unit] = &[
        unit(1_000_000_000_000, "Tbps", 3),
        unit(1_000_000_000, "Gbps", 3),
        unit(1_000_000, "Mbps", 3),
        unit(1_000, "kbps", 3),
        unit(1, "bps", 0),
    ];
    Shown {
        value: rate.bits_per_sec(),
        units: UNITS,
        zero: "0bps",
    }
}

/// Prints a size in the largest unit of which it is a whole number, binary ones first: `64KiB`,
/// `10MB`, `1500B`.
pub fn show_size(bytes: u64) -> impl fmt::Display {
    const UNITS: &[Unit] = &[
        unit(1 << 40, "TiB", 0),
        unit(1 << 30, "GiB", 0),
        unit(1 << 20, "MiB", 0),
        unit(1 << 10, "KiB", 0),
        unit(1_000_000_000_000, "TB", 0),
        unit(1_000_000_000, "GB", 0),
        unit(1_000_000, "MB", 0),
        unit(1_000, "kB", 0),
        unit(1, "B", 0),
    ];
    Shown {
        value: bytes,
        units: UNITS,
        zero: "0B",
    }
}

/// A unit to print a value in.
#[derive(Clone, Copy)]
struct Unit {
    /// How much one of it is.
    scale: u64,
    name: &'static str,
    /// Most digits after the point.
    decimals: u32,
}

const fn unit(scale: u64, name: &'static str, decimals: u32) -> Unit {
    Unit {
        scale,
        name,
        decimals,
    }
}

/// A value, and the units it may be printed in, best first.
struct Shown {
    value: u64,
    units: &'static [Unit],
    zero: &'static str,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value == 0 {
            return f.write_str(self.zero);
        }
        for &Unit {
            scale,
            name,
            decimals,
        } in self.units
        {
            let (whole, rest) = (self.value / scale, self.value % scale);
            let step = scale / 10_u64.pow(decimals);
            let long = whole >= 1_000 && rest != 0;
            if scale > 1 && (whole == 0 || long || !rest.is_multiple_of(step)) {
                continue;
            }
            write!(f, "{whole}")?;
            if rest != 0 {
                // Thousandths without the zeros at their end.
                let (mut fraction, mut width) = (rest / step, decimals as usize);
                while fraction % 10 == 0 {
                    fraction /= 10;
                    width -= 1;
                }
                write!(f, ".{fraction:0width$}")?;
            }
            return f.write_str(name);
        }
        unreachable!("every table ends with a unit of one")
    }
}

#[cfg(test)]
mod tests;
