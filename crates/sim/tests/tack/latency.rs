//! Traffic that is not bulk must not pay for sparse acknowledgements.

use tack_sim::Report;

use super::{cells, is_long, mean, set};

/// Median and 99th percentile of the latency of requests, milliseconds.
fn requests(report: &Report) -> (f64, f64) {
    let requests = report.flows[0].requests.expect("a request app");
    (
        requests.latency_p50_us as f64 / 1e3,
        requests.latency_p99_us as f64 / 1e3,
    )
}

#[test]
fn requests_are_answered_as_soon_as_with_delayed_acks() {
    for (rate, delay) in [("100Mbps", "10ms"), ("10Mbps", "1ms"), ("10Mbps", "50ms")] {
        for app in ["request:1KiB,1KiB", "request:1KiB,1KiB,gap=5ms"] {
            for loss in [0.0, 0.02] {
                let [tack, delayed] = ["tack", "delayed:2"].map(|ack| {
                    let settings = set![
                        format_args!("wired.rate={rate}"),
                        format_args!("wired.delay={delay}"),
                        format_args!("wired.loss={loss}"),
                        format_args!("flow.0.app={app}"),
                        format_args!("flow.0.ack={ack}"),
                        "duration=60s",
                    ];
                    [
                        mean("requests", &settings, |report| requests(report).0),
                        mean("requests", &settings, |report| requests(report).1),
                    ]
                });
                println!(
                    "{app} at {rate}, {delay} one way, loss {loss}: median and p99 {tack:.2?} ms, {delayed:.2?} ms as delayed:2"
                );
                assert!(tack[0] <= delayed[0], "{app}, {loss}");
                // With losses the 99th percentile is made of a few timeouts.
                let tolerance = if loss == 0.0 { 1.0 } else { 1.05 };
                assert!(tack[1] <= tolerance * delayed[1], "{app}, {loss}");
            }
        }
    }
}

#[test]
fn both_directions_of_one_connection_keep_their_rates() {
    // With random losses CUBIC's time depends on when in slow start the first one hits: chance, not
    // acknowledgements. Without them it depends on how many segments the full queue drops of
    // either direction, by up to 9 % from one half of a millisecond of delay to the next with
    // either policy: several delays decide.
    let delays = ["18", "18.5", "19", "19.5", "20", "20.5", "21", "21.5", "22"];
    let all = [
        ("bbr", cells(&["0"], &["0", "0.001", "0.01"]), &["20"][..]),
        ("cubic", vec!["0"], &delays),
    ];
    for (controller, losses, delays) in &all[..if is_long() { 2 } else { 1 }] {
        for loss in losses {
            let seconds = ["tack", "delayed:2"].map(|ack| {
                let completion = |delay| {
                    mean(
                        "duplex",
                        &set![
                            format_args!("flow.0.ack={ack}"),
                            format_args!("flow.0.congestion={controller}"),
                            format_args!("wired.loss={loss}"),
                            format_args!("wired.delay={delay}ms"),
                        ],
                        |report| report.flows[0].completion_s.expect("it ends"),
                    )
                };
                delays.iter().map(completion).sum::<f64>() / delays.len() as f64
            });
            println!(
                "{controller}, loss {loss}, 20 MiB each way: {:.2} s, {:.2} s as delayed:2, {:+.1} %",
                seconds[0],
                seconds[1],
                100.0 * (seconds[0] / seconds[1] - 1.0)
            );
            assert!(seconds[0] <= 1.02 * seconds[1], "{seconds:?}");
        }
    }
}

#[test]
fn short_flows_complete_as_soon_as_with_delayed_acks() {
    for bytes in cells(
        &["10KiB", "100KiB", "1MiB"],
        &["10KiB", "30KiB", "100KiB", "300KiB", "1MiB"],
    ) {
        for delay in cells(&["5ms", "100ms"], &["5ms", "20ms", "100ms"]) {
            for controller in ["bbr", "cubic"] {
                let seconds = ["tack", "delayed:2"].map(|ack| {
                    mean(
                        "short-flow",
                        &set![
                            format_args!("flow.0.bytes={bytes}"),
                            format_args!("wired.delay={delay}"),
                            format_args!("flow.0.congestion={controller}"),
                            format_args!("flow.0.ack={ack}"),
                        ],
                        |report| report.flows[0].completion_s.expect("it ends"),
                    )
                });
                let ratio = seconds[0] / seconds[1];
                println!(
                    "{bytes}, {delay} one way, {controller}: {:.1} ms, {:+.1} %",
                    seconds[0] * 1e3,
                    100.0 * (ratio - 1.0)
                );
                assert!(ratio <= 1.02, "{bytes}, {delay}, {controller}: {ratio}");
            }
        }
    }
}
