//! A rate over time, as delivery opportunities.
//!
//! A line has a time in seconds and the rate in Mbit/s that was measured until then, since the line
//! before it (the first one since zero). The rate adds up, in whole bits and microseconds, to
//! opportunities of 1,500 bytes, each at the first whole millisecond by which its bytes have all
//! been there. What the last line leaves of one is lost.

use std::fmt::Write as _;

/// Bits of an opportunity.
const BITS: u128 = 1_500 * 8;
const LONGEST_SECONDS: f64 = 3_600.0;
const FASTEST_MBPS: f64 = 10_000.0;
/// The most opportunities: an hour at 7 Mbit/s, or five minutes at 80.
const MOST: u128 = 2_000_000;

/// Why a text is not a rate over time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// A line that is not a pair of numbers in their bounds.
    #[error(
        "line {line}: {text:?} should be a time in seconds, at most {LONGEST_SECONDS}, and a rate in Mbit/s from 0 to {FASTEST_MBPS}, as in \"0.2 30.75\""
    )]
    Line {
        /// Line, from 1.
        line: usize,
        /// What stands there, or its beginning.
        text: String,
    },
    /// A line that is not later than the one before it.
    #[error("line {line}: its time is not later than that of the line before it")]
    Order {
        /// Line, from 1.
        line: usize,
    },
    /// More than fits.
    #[error(
        "line {line}: by then {MOST} packets of 1,500 bytes have passed, which is as long as a recording may be"
    )]
    Long {
        /// Line, from 1.
        line: usize,
    },
}

/// The opportunities of a rate over time, a line of milliseconds each.
pub(super) fn opportunities(text: &str) -> Result<String, RateError> {
    let mut out = String::new();
    // Instants in microseconds; what has added up in bits times microseconds per second.
    const SECOND: u128 = 1_000_000;
    let (mut before_us, mut saved, mut count) = (0_u128, 0_u128, 0_u128);
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.trim().is_empty() {
            continue;
        }
        let (at_us, bits_per_second) = read(line).ok_or_else(|| RateError::Line {
            line: number,
            text: line.chars().take(40).collect(),
        })?;
        if at_us <= before_us {
            return Err(RateError::Order { line: number });
        }
        let total = saved + bits_per_second * (at_us - before_us);
        let ready = total / (BITS * SECOND);
        count += ready;
        if count > MOST {
            return Err(RateError::Long { line: number });
        }
        for nth in 1..=ready {
            // `ready` is zero unless the rate is above.
            let wanted = nth * BITS * SECOND - saved;
            let full_us = before_us + wanted.div_ceil(bits_per_second);
            let _ = writeln!(out, "{}", full_us.div_ceil(1_000));
        }
        saved = total - ready * BITS * SECOND;
        before_us = at_us;
    }
    Ok(out)
}

/// A line's time in microseconds and rate in bits per second.
fn read(line: &str) -> Option<(u128, u128)> {
    let mut words = line.split_ascii_whitespace();
    let mut number = |most: f64| -> Option<u128> {
        let number: f64 = words.next()?.parse().ok()?;
        // A value that is not a number is in no range.
        (0.0..=most)
            .contains(&number)
            .then(|| (number * 1e6).round() as u128)
    };
    let pair = (number(LONGEST_SECONDS)?, number(FASTEST_MBPS)?);
    words.next().is_none().then_some(pair)
}
