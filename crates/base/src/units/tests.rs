use super::*;
use alloc::string::ToString;
use proptest::prelude::*;

#[test]
fn durations() {
    for (text, nanos) in [
        ("200ms", 200_000_000),
        ("1.5s", 1_500_000_000),
        ("400ns", 400),
        ("10us", 10_000),
        ("10\u{b5}s", 10_000),
        ("10\u{3bc}s", 10_000),
        ("2min", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("0s", 0),
        ("0.000000001s", 1),
        ("0.50000000000000000000000000s", 500_000_000),
        (" 12 s ", 12_000_000_000),
        ("18446744073709551615ns", u64::MAX),
        ("18446744073.709551615s", u64::MAX),
    ] {
        assert_eq!(
            parse_duration(text),
            Ok(Duration::from_nanos(nanos)),
            "{text}"
        );
    }
}

#[test]
fn rates() {
    for (text, bits) in [
        ("54Mbps", 54_000_000),
        ("1Gbps", 1_000_000_000),
        ("9.6kbps", 9_600),
        ("300 Mbit/s", 300_000_000),
        ("2.5Gbit/s", 2_500_000_000),
        ("1Tbps", 1_000_000_000_000),
        ("7bps", 7),
        ("0bit/s", 0),
    ] {
        assert_eq!(
            parse_rate(text),
            Ok(Rate::from_bits_per_sec(bits)),
            "{text}"
        );
        assert_eq!(text.parse(), Ok(Rate::from_bits_per_sec(bits)));
    }
}

#[test]
fn sizes() {
    for (text, bytes) in [
        ("64KiB", 65_536),
        ("6MiB", 6 << 20),
        ("1500B", 1_500),
        ("65535", 65_535),
        ("10MB", 10_000_000),
        ("1kB", 1_000),
        ("1.5KiB", 1_536),
        ("0.001TB", 1_000_000_000),
        ("2GiB", 2 << 30),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(parse_size(text), Ok(bytes), "{text}");
    }
}

#[test]
fn errors_say_what_is_wrong_and_what_is_right() {
    let duration = |text| parse_duration(text).unwrap_err().to_string();
    let rate = |text| parse_rate(text).unwrap_err().to_string();
    let size = |text| parse_size(text).unwrap_err().to_string();
    let durations = "; a duration looks like 200ms or 1.5s (ns, us, ms, s, min, h)";
    let rates = "; a rate looks like 54Mbps or 9.6kbps (bps, kbps, Mbps, Gbps, Tbps)";
    let sizes = "; a size looks like 64KiB, 10MB or 1500B (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)";

    assert_eq!(duration("200"), ["\"200\" has no unit", durations].concat());
    assert_eq!(
        duration("5 parsecs"),
        ["\"5 parsecs\" has the unknown unit \"parsecs\"", durations].concat()
    );
    assert_eq!(
        duration("soon"),
        [
            "\"soon\" does not start with a number such as 12 or 1.5",
            durations
        ]
        .concat()
    );
    assert_eq!(
        duration(""),
        [
            "\"\" does not start with a number such as 12 or 1.5",
            durations
        ]
        .concat()
    );
    assert_eq!(duration("-1s"), ["\"-1s\" is negative", durations].concat());
    assert_eq!(
        duration("0.5ns"),
        ["\"0.5ns\" is not a whole number of nanoseconds", durations].concat()
    );
    assert_eq!(
        duration("1000000000000h"),
        [
            "\"1000000000000h\" is too large: at most 18446744073709551615 nanoseconds can be had",
            durations
        ]
        .concat()
    );
    // The wrong case or the wrong quantity is not guessed at.
    assert_eq!(
        rate("54mbps"),
        ["\"54mbps\" has the unknown unit \"mbps\"", rates].concat()
    );
    assert_eq!(
        rate("54MB"),
        ["\"54MB\" has the unknown unit \"MB\"", rates].concat()
    );
    assert_eq!(
        size("64KB"),
        ["\"64KB\" has the unknown unit \"KB\"", sizes].concat()
    );
    assert_eq!(
        size("0.3KiB"),
        ["\"0.3KiB\" is not a whole number of bytes", sizes].concat()
    );
}

#[test]
fn odd_numbers_are_refused() {
    for text in [
        ".5s", "5.s", "1.2.3s", "1..2s", ".s", "1e3s", "0x10s", "1_000s", "+1s", "1,5s", "\u{661}s",
    ] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
}

#[test]
fn prints_short_and_exact() {
    let duration = |nanos| show_duration(Duration::from_nanos(nanos)).to_string();
    assert_eq!(duration(0), "0s");
    assert_eq!(duration(400), "400ns");
    assert_eq!(duration(200_000_000), "200ms");
    assert_eq!(duration(1_500_000_000), "1.5s");
    assert_eq!(duration(1_005_000), "1.005ms");
    assert_eq!(duration(1_234_567_891), "1234567891ns");
    assert_eq!(duration(1_234_567_000), "1234567us");
    assert_eq!(duration(90_000_000_000), "90s");
    assert_eq!(duration(120_000_000_000), "2min");
    assert_eq!(duration(7_200_000_000_000), "2h");
    let rate = |bits| show_rate(Rate::from_bits_per_sec(bits)).to_string();
    assert_eq!(rate(0), "0bps");
    assert_eq!(rate(54_000_000), "54Mbps");
    assert_eq!(rate(9_600), "9.6kbps");
    assert_eq!(rate(1_000_000_001), "1000000001bps");
    let size = |bytes| show_size(bytes).to_string();
    assert_eq!(size(0), "0B");
    assert_eq!(size(65_536), "64KiB");
    assert_eq!(size(10_000_000), "10MB");
    assert_eq!(size(1_500), "1500B");
}

/// Values of every magnitude, round ones among them.
fn magnitude() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (any::<u64>(), 0..64_u32).prop_map(|(value, shift)| value >> shift),
        (0..10_000_u64, 0..16_u32)
            .prop_map(|(value, power)| value * 10_u64.pow(power).min(u64::MAX / 10_000)),
        (0..1_024_u64, 0..50_u32).prop_map(|(value, power)| value << power),
    ]
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(value in magnitude()) {
        let duration = Duration::from_nanos(value);
        prop_assert_eq!(parse_duration(&show_duration(duration).to_string()), Ok(duration));
        let rate = Rate::from_bits_per_sec(value);
        prop_assert_eq!(parse_rate(&show_rate(rate).to_string()), Ok(rate));
        prop_assert_eq!(parse_size(&show_size(value).to_string()), Ok(value));
    }

    #[test]
    fn decimals_are_exact(whole in 0..1_000_000_u64, fraction in 0..1_000_000_000_u64) {
        let expected = Duration::new(whole, fraction as u32);
        let text = alloc::format!("{whole}.{fraction:09}s");
        prop_assert_eq!(parse_duration(&text), Ok(expected));
        let padded = alloc::format!("{whole}.{fraction:09}0000000000000s");
        prop_assert_eq!(parse_duration(&padded), Ok(expected));
        let finer = alloc::format!("{whole}.{fraction:09}1s");
        prop_assert_eq!(parse_duration(&finer).unwrap_err().problem, Problem::TooFine);
    }

    #[test]
    fn any_text_is_survived(text in any::<alloc::string::String>(), number in "[0-9.]{0,60}", unit in "[a-zA-Z/]{0,5}") {
        let almost = alloc::format!("{number}{unit}");
        for text in [&text, &almost] {
            for error in [parse_duration(text).err(), parse_rate(text).err(), parse_size(text).err()].into_iter().flatten() {
                prop_assert_eq!(&error.text, text);
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
