//! What mass loss costs: processor time of TACK and of `delayed:2` where slow start overshoots a
//! path of 1 Gbit/s and 200 ms and leaves thousands of holes at once.
//!
//! `cargo bench -p tack-sim --bench mass_loss` prints the processor time of both for each megabyte
//! delivered, and fails where TACK takes more than 1.5 times that of `delayed:2`. It is no timed
//! test: both take turns in one process, the shortest of several runs counts, which nothing else on
//! the machine makes shorter, and runs are added as long as the bound does not hold.

#[path = "../../testkit/benches/processor/time.rs"]
mod processor;

use std::process::ExitCode;

use tack_sim::{Observers, Scenario, run};

use processor::processor_time;

/// Most that TACK may take, as a multiple of `delayed:2`.
const BOUND: f64 = 1.5;
/// Runs of each policy: at least, and at most.
const RUNS: [usize; 2] = [2, 8];

fn main() -> ExitCode {
    let mut is_fine = true;
    for congestion in ["cubic", "bbr"] {
        let scenarios = ["tack", "delayed:2"].map(|ack| scenario(congestion, ack));
        let mut least = [f64::INFINITY; 2];
        let mut runs = 0;
        let ratio = |least: [f64; 2]| least[0] / least[1];
        while runs < RUNS[0] || runs < RUNS[1] && ratio(least) > BOUND {
            for (least, scenario) in least.iter_mut().zip(&scenarios) {
                *least = least.min(milliseconds_per_megabyte(scenario));
            }
            runs += 1;
        }
        let ratio = ratio(least);
        println!(
            "{congestion}: tack {:.3} ms of processor time per MB, delayed:2 {:.3}: {ratio:.2} times (at most {BOUND}; {runs} runs)",
            least[0], least[1],
        );
        is_fine &= ratio <= BOUND;
    }
    if is_fine {
        ExitCode::SUCCESS
    } else {
        eprintln!("error: mass loss costs TACK too much");
        ExitCode::FAILURE
    }
}

fn scenario(congestion: &str, ack: &str) -> Scenario {
    let text = format!(
        "duration = '6s'\nseed = 1\n[wired]\nrate = '1Gbps'\ndelay = '100ms'\nqueue = '0.1bdp'\n\
         [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\nreceive_buffer = '128MiB'\nsend_buffer = '128MiB'\n"
    );
    Scenario::from_toml("mass_loss.toml", &text, &[]).expect("the scenario is sound")
}

/// Processor time of a run, by what it delivers.
fn milliseconds_per_megabyte(scenario: &Scenario) -> f64 {
    let begin = processor_time();
    let report = run(scenario, 1, &mut Observers::default()).expect("it runs");
    let spent = processor_time() - begin;
    1e9 * spent.as_secs_f64() / report.flows[0].bytes_delivered as f64
}
