//! TCP/HACK with 802.11ax, whose Block ACKs carry as those of 802.11n do.

use super::figures::{N150, figures};

const AX: [&str; 3] = [
    "duration=5s",
    "wlan.standard=802.11ax",
    "wlan.rate=286.8Mbps",
];

#[test]
fn ax_gains_as_n_does() {
    if !crate::is_long() {
        return;
    }
    let run = |variant: &str| {
        figures(
            N150,
            &[&AX[..], &[&format!("wlan.hack={variant}")]].concat(),
        )
    };
    let plain = run("off");
    for variant in ["more-data", "timestamp-echo", "timer"] {
        let with = run(variant);
        let gain = with.mbps / plain.mbps - 1.0;
        assert!((0.10..0.20).contains(&gain), "{variant}: {gain}");
        assert!(with.native_share() < 0.01, "{variant}");
        assert_eq!(with.timeouts, 0, "{variant}");
    }
}

#[test]
fn ax_survives_noise() {
    if !crate::is_long() {
        return;
    }
    let noisy = [&AX[..], &["wlan.frame_error_rate=0.02"]].concat();
    let plain = figures(N150, &noisy);
    for variant in ["more-data", "timestamp-echo"] {
        let key = format!("wlan.hack={variant}");
        let with = figures(N150, &[&noisy[..], &[&key]].concat());
        let gain = with.mbps / plain.mbps - 1.0;
        assert!((0.10..0.30).contains(&gain), "{variant}: {gain}");
        assert!(with.native_share() < 0.01, "{variant}");
        assert!(
            with.hack.duplicates > 0,
            "{variant}: responses were repeated"
        );
        assert!(with.timeouts <= plain.timeouts, "{variant}");
    }
}
