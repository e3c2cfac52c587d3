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

    /// Gigabits for each second of processor time of the busier side: what one core would carry if
    /// nothing else ran.
    pub(crate) fn gbit_per_cpu_sec(&self) -> Option<f64> {
        let (sender, receiver) = self.cpu?;
        Some(self.bytes as f64 * 8.0 / sender.max(receiver).as_secs_f64() / 1e9)
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

fn median(outcomes: &[Outcome], figure: impl Fn(&Outcome) -> Option<f64>) -> Option<f64> {
    let mut figures: Vec<f64> = outcomes.iter().filter_map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

/// Prints medians, and each as a multiple of the others.
pub(crate) fn report(results: &[(&str, Vec<Outcome>)], skipped: &[(&str, String)]) {
    table("Gbit/s", results, |outcome| Some(outcome.gbit_per_sec()));
    table("Gbit/cpu-s", results, Outcome::gbit_per_cpu_sec);
    for (name, reason) in skipped {
        println!("{name}: SKIPPED: {reason}");
    }
}

fn table(
    unit: &str,
    results: &[(&str, Vec<Outcome>)],
    figure: impl Fn(&Outcome) -> Option<f64> + Copy,
) {
    let figures: Vec<_> = results
        .iter()
        .filter_map(|(name, outcomes)| Some((name, median(outcomes, figure)?)))
        .collect();
    println!("\nmedian {unit}, and as a multiple of the column's");
    print!("{:<15}{unit:>12}", "");
    figures.iter().for_each(|(name, _)| print!("{name:>15}"));
    println!();
    for (name, own) in &figures {
        print!("{name:<15}{own:>12.2}");
        figures
            .iter()
            .for_each(|(_, other)| print!("{:>15.2}", own / other));
        println!();
    }
}
