//! Values of options, as people write them.

use std::time::Duration;

use tack_base::Rate;

use crate::address::Address;

/// Where to listen; a number alone is a port of 127.0.0.1.
pub(crate) fn listen(text: &str) -> Result<Address, String> {
    match text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        Ok(port) => Ok(Address::local(port)),
        Err(_) => text.parse::<Address>().map_err(|error| error.to_string()),
    }
}

/// A duration; bare numbers are seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    // iperf3 users write bare seconds.
    let is_number = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.'));
    let parsed = match is_number(text) {
        true => tack_base::units::parse_duration(&format!("{text}s")),
        false => tack_base::units::parse_duration(text),
    };
    parsed.map_err(|error| error.to_string())
}

/// A duration above zero.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("expected a duration above zero".into()),
        interval => Ok(interval),
    }
}

/// Both sides say once a second that they are alive; less patience than three of those is a
/// mistake.
pub(crate) fn silence(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        duration if duration >= Duration::from_secs(3) => Ok(duration),
        _ => {
            Err("expected at least 3s, because an idle peer sends a keep-alive every second".into())
        }
    }
}

/// A size above zero, bytes. `10M` is 10 MiB, as for iperf3.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let binary = expand(
        text,
        [("K", "KiB"), ("M", "MiB"), ("G", "GiB"), ("T", "TiB")],
    );
    match tack_base::units::parse_size(binary.as_deref().unwrap_or(text)) {
        Ok(0) => Err("expected at least one byte".into()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

/// A rate. `10M` is 10 Mbit/s and a bare number counts bits, as for iperf3.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    let units = [("K", "kbps"), ("M", "Mbps"), ("G", "Gbps"), ("T", "Tbps")];
    let with_unit = match text.parse::<u64>() {
        Ok(bits) => return Ok(Rate::from_bits_per_sec(bits)),
        Err(_) => expand(text, units),
    };
    tack_base::units::parse_rate(with_unit.as_deref().unwrap_or(text))
        .map_err(|error| error.to_string())
}

/// A rate above zero, as [`rate`] reads it.
pub(crate) fn rate_above_zero(text: &str) -> Result<Rate, String> {
    match rate(text)? {
        Rate::ZERO => Err("expected a rate above zero".into()),
        rate => Ok(rate),
    }
}

/// The text with its last letter, as iperf3 has them, replaced by a unit.
fn expand(text: &str, units: [(&str, &str); 4]) -> Option<String> {
    units.into_iter().find_map(|(letter, unit)| {
        let number = text
            .strip_suffix(letter)
            .or_else(|| text.strip_suffix(&letter.to_lowercase()))?;
        number
            .ends_with(|last: char| last.is_ascii_digit())
            .then(|| format!("{number}{unit}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_may_be_bare_seconds() {
        assert_eq!(duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert!(duration("").is_err() && duration("1.2.3").is_err());
        assert!(duration("fast").is_err());
        assert!(silence("1s").is_err());
    }

    #[test]
    fn a_number_to_listen_on_is_a_port() {
        for text in ["7831", ":7831", "127.0.0.1:7831"] {
            assert_eq!(listen(text).unwrap().to_string(), "127.0.0.1:7831");
        }
        assert_eq!(listen("::1").unwrap().to_string(), "::1");
        assert!(listen("70000").is_err(), "neither a port nor a host");
    }

    #[test]
    fn sizes_and_rates_may_be_written_as_for_iperf3() {
        assert_eq!(size("10M"), Ok(10 << 20));
        assert_eq!(size("10m"), Ok(10 << 20));
        assert_eq!(size("10MB"), Ok(10_000_000));
        assert_eq!(size("7"), Ok(7));
        assert!(size("0").is_err() && size("M").is_err());
        assert_eq!(rate("10M"), Ok(Rate::from_bits_per_sec(10_000_000)));
        assert_eq!(rate("1.5g"), Ok(Rate::from_bits_per_sec(1_500_000_000)));
        assert_eq!(rate("54Mbps"), Ok(Rate::from_bits_per_sec(54_000_000)));
        assert_eq!(rate("0"), Ok(Rate::ZERO));
        assert!(rate_above_zero("0").is_err() && rate_above_zero("1K").is_ok());
        assert!(rate("fast").is_err());
    }
}
