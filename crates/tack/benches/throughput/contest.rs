//! What a contestant is, what a run yields, and how runs compare.

use std::fmt;
use std::time::Duration;

/// One way to move bytes.
pub(crate) trait Contestant {
    /// Its name in the report.
    fn name(&self) -> &'static str;
    /// Makes ready, or says why it cannot run here.
    fn prepare(&self) -> Result<(), String>;
    /// Moves bytes for about `time`.
    fn run(&self, time: Duration) -> Result<Outcome, String>;
}

/// What one run yielded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Bytes that arrived.
    pub(crate) bytes: u64,
    /// From the first to the last of them.
    pub(crate) time: Duration,
    /// Processor time of the sending and the receiving process, where it is known.
    pub(crate) cpu: Option<(Duration, Duration)>,
    /// Largest resident memory of either, bytes, where it is known.
    pub(crate) memory: Option<u64>,
}

impl Outcome {
    pub(crate) fn gbit_per_sec(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.time.as_secs_f64() / 1e9
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:6.2} Gbit/s", self.gbit_per_sec())?;
        if let Some((sender, receiver)) = self.cpu {
            let share = |cpu: Duration| 100.0 * cpu.as_secs_f64() / self.time.as_secs_f64();
            write!(
                f,
                "   cpu: sender {:3.0} %, receiver {:3.0} %",
                share(sender),
                share(receiver)
            )?;
        }
        if let Some(memory) = self.memory {
            write!(f, "   memory {:.0} MiB", memory as f64 / f64::from(1 << 20))?;
        }
        Ok(())
    }
}

fn median(outcomes: &[Outcome]) -> f64 {
    let mut rates: Vec<f64> = outcomes.iter().map(Outcome::gbit_per_sec).collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Prints medians, and each as a multiple of the others.
pub(crate) fn report(results: &[(&str, Vec<Outcome>)], skipped: &[(&str, String)]) {
    let results: Vec<_> = results
        .iter()
        .filter(|(_, outcomes)| !outcomes.is_empty())
        .collect();
    println!("\nmedian Gbit/s, and as a multiple of the column's");
    print!("{:<14}{:>8}", "", "Gbit/s");
    results.iter().for_each(|(name, _)| print!("{name:>14}"));
    println!();
    for (name, outcomes) in &results {
        print!("{name:<14}{:>8.2}", median(outcomes));
        results
            .iter()
            .for_each(|(_, other)| print!("{:>14.2}", median(outcomes) / median(other)));
        println!();
    }
    for (name, reason) in skipped {
        println!("{name}: SKIPPED: {reason}");
    }
}
