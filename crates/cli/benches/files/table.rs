//! The results: medians, and ratios to `tack`.

use std::fmt;
use std::time::Duration;

use serde_json::json;

use crate::tools::TACK;

/// Times by workload and tool, both in the order in which they were first added.
#[derive(Default)]
pub(crate) struct Table {
    rows: Named<Named<Vec<Duration>>>,
    /// Copies that were given up after a time: of what, by which tool, after which time.
    given_up: Vec<(String, String, Duration)>,
    failures: Vec<String>,
}

/// Values by name, in the order in which they were first added.
type Named<T> = Vec<(String, T)>;

impl Table {
    pub(crate) fn add(&mut self, workload: &str, tool: &str, taken: Duration) {
        let cells = entry(&mut self.rows, workload);
        entry(cells, tool).push(taken);
    }

    /// A copy took longer than `limit`.
    pub(crate) fn give_up(&mut self, workload: &str, tool: &str, limit: Duration) {
        // The row is there even if nobody ended in time.
        entry(&mut self.rows, workload);
        let what = (workload.to_owned(), tool.to_owned(), limit);
        self.given_up.push(what);
    }

    /// Whether a copy is not worth another attempt.
    pub(crate) fn is_given_up(&self, workload: &str, tool: &str) -> bool {
        let is_this = |(row, cell, _): &(String, String, Duration)| row == workload && cell == tool;
        self.given_up.iter().any(is_this)
    }

    /// Something could not be measured.
    pub(crate) fn failed(&mut self, what: String) {
        self.failures.push(what);
    }

    pub(crate) fn has_failures(&self) -> bool {
        !self.failures.is_empty()
    }

    /// An object for each cell, one a line.
    pub(crate) fn json(&self) -> String {
        let mut lines = String::new();
        for (workload, cells) in &self.rows {
            for (tool, times) in cells {
                let seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
                let line = json!({ "workload": workload, "tool": tool, "seconds": seconds, "median": median(times) });
                lines.push_str(&format!("{line}\n"));
            }
        }
        lines
    }
}

/// The value of `name`, added at the end if it is not there.
fn entry<'a, T: Default>(entries: &'a mut Named<T>, name: &str) -> &'a mut T {
    let index = match entries.iter().position(|(other, _)| other == name) {
        Some(index) => index,
        None => {
            entries.push((name.to_owned(), T::default()));
            entries.len() - 1
        }
    };
    &mut entries[index].1
}

/// In seconds; of an even number, the lower of the two in the middle.
fn median(times: &[Duration]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() - 1) / 2].as_secs_f64()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| what | tool | seconds, median | rounds | times tack |\n| --- | --- | --- | --- | --- |"
        )?;
        for (workload, cells) in &self.rows {
            let ours = cells.iter().find(|(tool, _)| tool == TACK);
            for (tool, times) in cells {
                let seconds = median(times);
                let rounds = times.len();
                write!(f, "| {workload} | {tool} | {seconds:.2} | {rounds} |")?;
                match ours {
                    Some((_, ours)) => writeln!(f, " {:.2} |", seconds / median(ours))?,
                    None => writeln!(f, " – |")?,
                }
            }
            for (_, tool, limit) in self.given_up.iter().filter(|(row, ..)| row == workload) {
                let limit = limit.as_secs_f64();
                write!(f, "| {workload} | {tool} | more than {limit:.0} | 1 |")?;
                match ours {
                    Some((_, ours)) => {
                        writeln!(f, " more than {:.2} |", limit / median(ours))?;
                    }
                    None => writeln!(f, " – |")?,
                }
            }
        }
        for failure in &self.failures {
            writeln!(f, "\nNot measured: {failure}")?;
        }
        Ok(())
    }
}
