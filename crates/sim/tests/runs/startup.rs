//! How BBR leaves its startup: on a path where a random search found that it did not.

use tack_sim::{Checks, FlowReport, Observers, Scenario, run};

fn flow(text: &str, seed: u64) -> FlowReport {
    let scenario = Scenario::from_toml("startup.toml", text, &[]).expect("the scenario is sound");
    let mut observers = Observers::default().checking(Checks::EveryEvent);
    match run(&scenario, seed, &mut observers) {
        Ok(mut report) => report.flows.remove(0),
        Err(broken) => panic!("{broken}\n{text}"),
    }
}

/// Of the segments sent, the share that repeated bytes, 0 to 1.
fn repeated(flow: &FlowReport) -> f64 {
    flow.retransmitted_segments as f64 / flow.data_segments as f64
}

/// A send buffer of two products: each report frees so much of it that the connection has nothing
/// to send until the application wrote again. That counts as limited by the application, and
/// startup lasted forever: a tenth of the segments overflowed the queue.
#[test]
fn a_send_buffer_that_reports_free_by_quarters_does_not_keep_bbr_in_startup() {
    for ack in ["tack", "delayed:2"] {
        let text = format!(
            "duration = '8s'\n[wired]\nrate = '40Mbps'\ndelay = '9ms'\nqueue = '1.0bdp'\n\
             [[flow]]\nack = '{ack}'\ncongestion = 'bbr'\nsend_buffer = '210000B'\n"
        );
        let flow = flow(&text, 1);
        let (again, mbps) = (repeated(&flow), flow.goodput_bps / 1e6);
        println!("{ack}: {mbps:.1} Mbit/s, {:.1} % again", 100.0 * again);
        assert!(
            again < 0.02 && mbps > 36.0,
            "{ack}: {mbps:.1} Mbit/s, {again:.3} again"
        );
    }
}

/// Paths 50632 and 50332: startup overflows a queue, and TACK reports that a few times a round
/// trip. Until the next report BBR went on at a multiple of the rate of the path.
#[test]
fn startup_that_overflows_a_queue_repeats_about_as_much_with_tack() {
    for (rate, delay, queue, bytes) in [
        ("172Mbps", "620us", "2.0bdp", "1224kB"),
        ("40Mbps", "5ms", "2.0bdp", "1MB"),
        ("6Mbps", "20ms", "0.5bdp", "197kB"),
    ] {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '60s'\n[wired]\nrate = '{rate}'\ndelay = '{delay}'\nqueue = '{queue}'\n\
                 [[flow]]\nack = '{ack}'\ncongestion = 'bbr'\nreceive_window = 'fixed'\nbytes = '{bytes}'\n"
            );
            repeated(&flow(&text, 1))
        });
        println!(
            "{rate}: {:.1} % again, {:.1} % with delayed:2",
            100.0 * tack,
            100.0 * plain
        );
        assert!(
            tack < plain + 0.035,
            "{rate}: {tack:.3} again, {plain:.3} with delayed:2"
        );
    }
}
