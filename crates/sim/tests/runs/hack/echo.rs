//! The variant that waits for the echo of a timestamp, as the paper's section 5 sketches it.

use super::figures::{N150, figures};

const ECHO: &str = "wlan.hack=timestamp-echo";
const MORE_DATA: &str = "wlan.hack=more-data";

/// The access point's queue runs dry now and then, so batches promise nothing, and the sender's
/// answer to the last response sometimes takes longer than is waited for. Echoes are still
/// missing then: this is where the variant differs from MORE DATA.
#[test]
fn echoes_are_relied_on_where_more_data_promises_nothing() {
    let run = |keys: &[&str]| {
        figures(
            N150,
            &[&["duration=5s", "wlan.ap_queue=126p"], keys].concat(),
        )
    };
    let (plain, more_data, echo) = (run(&[]), run(&[MORE_DATA]), run(&[ECHO]));
    assert!(
        more_data.native_share() > 0.005,
        "{}",
        more_data.native_share()
    );
    assert!(echo.native_share() < 0.001, "{}", echo.native_share());
    assert!(echo.mbps > 1.005 * more_data.mbps, "{}", echo.mbps);
    let gain = echo.mbps / plain.mbps - 1.0;
    assert!((0.13..0.20).contains(&gain), "{gain}");
    assert_eq!(echo.timeouts, 0);
}

/// Frames get lost: the gain stays, and nothing waits for a timeout.
#[test]
fn noise_does_not_spoil_it() {
    if !crate::is_long() {
        return;
    }
    for snr in ["25.0", "24.0"] {
        let noise = ["duration=5s", &format!("wlan.error_model.snr_db={snr}")];
        let run = |keys: &[&str]| figures(N150, &[&noise, keys].concat());
        let (plain, echo) = (run(&[]), run(&[ECHO]));
        let gain = echo.mbps / plain.mbps - 1.0;
        assert!((0.10..0.20).contains(&gain), "{snr} dB: {gain}");
        assert!(echo.native_share() < 0.01, "{snr} dB");
        assert!(echo.timeouts <= plain.timeouts, "{snr} dB");
    }
}

/// Without timestamps there are no echoes, so the MORE DATA bit decides.
#[test]
fn without_timestamps_it_gains_as_much() {
    let run = |key: &str| figures(N150, &["duration=5s", "flow.0.timestamps=false", key]);
    let (plain, echo) = (run("wlan.hack=off"), run(ECHO));
    let gain = echo.mbps / plain.mbps - 1.0;
    assert!((0.10..0.20).contains(&gain), "{gain}");
    assert_eq!(echo.timeouts, 0);
}
