//! Runs for workers on other machines: a task is bytes, and so is its result, as those of
//! `tack_sweep` are. A task has all that a worker needs, the files of the scenario included.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};
use tack_sim::Scenario;
use tack_sim::scenario::parse_tree;

use crate::measure::{Measure, Values};
use crate::point::{CODE_VERSION, Point};
use crate::run::{PointError, missing, prepare};
use crate::store::{Store, StoreError};

/// What the bytes of a task begin with: those of a sweep are JSON, and begin otherwise. The number
/// changes when the bytes of tasks or results do.
const MAGIC: &[u8] = b"tack-lab-1\n";

#[derive(Serialize, Deserialize)]
struct Task {
    code: String,
    /// Where the scenario lies below `scenarios`.
    scenario: String,
    text: String,
    /// Files that lie beside it, by name.
    files: BTreeMap<String, String>,
    runs: Vec<TaskRun>,
}

#[derive(Serialize, Deserialize)]
struct TaskRun {
    key: String,
    set: Vec<String>,
    seed: u64,
    measure: String,
}

#[derive(Serialize, Deserialize)]
struct TaskResult {
    /// BLAKE3 of the task.
    task: String,
    /// Time that the runs took, seconds.
    seconds: f64,
    /// By key.
    values: BTreeMap<String, BTreeMap<String, f64>>,
    /// By key: what happened.
    failures: BTreeMap<String, String>,
}

/// Why a task, or a result, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// It is not what this version writes.
    #[error("{0} was not made by this version of tack, or is damaged")]
    Format(&'static str),
    /// Program and worker are of different versions.
    #[error(
        "the lab is of code {wanted}, this worker of code {here}: install the same version of tack on both"
    )]
    Code {
        /// What the task needs.
        wanted: String,
        /// What is here.
        here: &'static str,
    },
    /// The journal cannot be written.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Whether bytes are a task of the lab, for [`run_batch`].
pub fn is_task(task: &[u8]) -> bool {
    task.starts_with(MAGIC)
}

/// Does the runs of a task of [`Batches::next`], and gives a result for [`Batches::accept`]. One
/// that fails does not keep the others from being done.
///
/// # Errors
/// [`BatchError`] when the task is not one of this version.
pub fn run_batch(task: &[u8]) -> Result<Vec<u8>, BatchError> {
    let parsed = task.strip_prefix(MAGIC);
    let parsed: Task = parsed
        .and_then(|json| serde_json::from_slice(json).ok())
        .ok_or(BatchError::Format("the task"))?;
    if parsed.code != CODE_VERSION {
        return Err(BatchError::Code {
            wanted: parsed.code,
            here: CODE_VERSION,
        });
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the time that a batch took decides how long the next ones are, never a result"
    )]
    let began = std::time::Instant::now();
    let (mut values, mut failures) = (BTreeMap::new(), BTreeMap::new());
    for run in &parsed.runs {
        let measure = Measure::named(&run.measure).ok_or(BatchError::Format("the task"))?;
        // As runs on this machine do: a panic is a failure of one run.
        let measured = catch_unwind(AssertUnwindSafe(|| take(&parsed, run, measure)))
            .unwrap_or_else(|_| Err("the simulator panicked".into()));
        match measured {
            Ok(measured) => {
                let measured = measured.iter().map(|(name, value)| (name.into(), value));
                values.insert(run.key.clone(), measured.collect());
            }
            Err(message) => {
                failures.insert(run.key.clone(), message);
            }
        }
    }
    let result = TaskResult {
        task: hash(task),
        seconds: began.elapsed().as_secs_f64(),
        values,
        failures,
    };
    Ok(serde_json::to_vec(&result).unwrap_or_default())
}

fn take(task: &Task, run: &TaskRun, measure: Measure) -> Result<Values, String> {
    let files = |name: &str| {
        let text = task.files.get(name).cloned();
        text.ok_or_else(|| format!("the task lacks the file {name}"))
    };
    let scenario = parse_tree(&task.scenario, &task.text, &run.set)
        .and_then(|tree| Scenario::from_tree(&task.scenario, tree, &files))
        .map_err(|error| error.to_string())?;
    let values = measure.take(&scenario, run.seed);
    values.map_err(|error| error.to_string())
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// A task for [`run_batch`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// Its name, by its contents.
    pub id: String,
    /// How many runs it has.
    pub runs: usize,
    /// What to give to [`run_batch`].
    pub task: Vec<u8>,
}

/// What came of a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Accepted {
    /// Runs of the task that are done, also those that failed.
    pub runs: usize,
    /// Time that they took, seconds.
    pub seconds: f64,
    /// Runs that failed: what happened, and how to see it again.
    pub failures: Vec<String>,
}

/// The runs that a store lacks, in batches. It has no clock and no thread.
#[derive(Debug)]
pub struct Batches {
    store: Store,
    waiting: VecDeque<Point>,
    under_way: BTreeMap<String, Vec<Point>>,
    total: usize,
    done: usize,
    failed: usize,
}

impl Batches {
    /// Of what `store` lacks of `wanted`, each run once.
    ///
    /// # Errors
    /// When a scenario is wrong, or the folder cannot be written.
    pub fn new(store: Store, wanted: &[Point]) -> Result<Self, PointError> {
        let missing = missing(wanted, store.results());
        prepare(&missing, &store.folder().join("scenarios"))?;
        Ok(Self {
            store,
            total: missing.len(),
            waiting: missing.into(),
            under_way: BTreeMap::new(),
            done: 0,
            failed: 0,
        })
    }

    /// Runs that were missing.
    pub const fn total(&self) -> usize {
        self.total
    }

    /// Runs of these that are done, also those that failed.
    pub const fn done(&self) -> usize {
        self.done
    }

    /// Runs that failed.
    pub const fn failed(&self) -> usize {
        self.failed
    }

    /// Runs that are in no task.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether each run has ended.
    pub fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// The next task, of at most `most` runs of one scenario; `None` when all are out.
    pub fn next(&mut self, most: usize) -> Option<Batch> {
        let first = self.waiting.pop_front()?;
        let mut points = vec![first];
        while points.len() < most
            && let Some(next) = self.waiting.front()
            && next.scenario_name() == points[0].scenario_name()
        {
            points.extend(self.waiting.pop_front());
        }
        let (name, text) = points[0].scenario_text();
        let task = Task {
            code: CODE_VERSION.into(),
            scenario: name.into(),
            text: text.into(),
            files: points
                .iter()
                .flat_map(Point::files)
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
                .collect(),
            runs: points.iter().map(run_of).collect(),
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(serde_json::to_vec(&task).unwrap_or_default());
        let batch = Batch {
            id: hash(&bytes),
            runs: points.len(),
            task: bytes,
        };
        self.under_way.insert(batch.id.clone(), points);
        Some(batch)
    }

    /// Takes a result, and keeps it in the journal. One that came before, or of a task that is not
    /// out, changes nothing. Runs of the task that the result lacks are left to be done again.
    ///
    /// # Errors
    /// [`BatchError`] when it is not a result, then its task is still out; or when it cannot be
    /// kept.
    pub fn accept(&mut self, result: &[u8]) -> Result<Accepted, BatchError> {
        let mut result: TaskResult =
            serde_json::from_slice(result).map_err(|_| BatchError::Format("the result"))?;
        let points = self.under_way.remove(&result.task).unwrap_or_default();
        let mut accepted = Accepted {
            runs: 0,
            seconds: result.seconds,
            failures: Vec::new(),
        };
        for point in points {
            let key = point.key();
            if let Some(values) = result.values.remove(&key) {
                self.store.keep(&point, values.into_iter().collect())?;
            } else if let Some(message) = result.failures.remove(&key) {
                accepted
                    .failures
                    .push(format!("{message}: {}", point.command()));
                self.failed += 1;
            } else {
                self.waiting.push_back(point);
                continue;
            }
            accepted.runs += 1;
            self.done += 1;
        }
        Ok(accepted)
    }
}

fn run_of(point: &Point) -> TaskRun {
    TaskRun {
        key: point.key(),
        set: point.settings().to_vec(),
        seed: point.seed,
        measure: point.measure().name().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::Cell;
    use crate::scenarios::{FREQUENCY, RATE_STEP};

    fn short(source: &'static crate::Source) -> Cell {
        Cell::new(source).set("warmup=0s").set("duration=300ms")
    }

    fn wanted() -> Vec<Point> {
        let plain = short(&FREQUENCY).set("wired.rate=10Mbps");
        let blocked = plain.clone().measuring(Measure::Blocked);
        // Its trace is a file that the worker does not have.
        let traced = short(&RATE_STEP);
        vec![plain.at(1), plain.at(2), blocked.at(1), traced.at(1)]
    }

    fn finish(batches: &mut Batches, most: usize) {
        while let Some(batch) = batches.next(most) {
            assert!(is_task(&batch.task));
            let result = run_batch(&batch.task).unwrap();
            batches.accept(&result).unwrap();
        }
    }

    fn opened(folder: &tempfile::TempDir) -> Store {
        Store::open(folder.path()).unwrap()
    }

    #[test]
    fn results_of_workers_are_those_of_this_machine_to_the_bit() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        crate::run(&mut opened(&here), &wanted(), 1, |_, _| {}).unwrap();
        let mut batches = Batches::new(opened(&there), &wanted()).unwrap();
        assert_eq!((batches.total(), batches.waiting()), (4, 4));
        finish(&mut batches, 2);
        assert!(batches.is_done());
        assert_eq!((batches.done(), batches.failed()), (4, 0));
        let journal =
            |folder: &tempfile::TempDir| std::fs::read_to_string(opened(folder).journal()).unwrap();
        assert_eq!(journal(&there), journal(&here));
        let again = Batches::new(opened(&there), &wanted()).unwrap();
        assert_eq!(again.total(), 0);
    }

    #[test]
    fn a_result_counts_once_and_a_damaged_one_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let mut batches = Batches::new(opened(&folder), &wanted()[..2]).unwrap();
        let batch = batches.next(2).unwrap();
        assert_eq!((batch.runs, batches.next(2)), (2, None));
        let result = run_batch(&batch.task).unwrap();
        assert!(batches.accept(&result[..result.len() / 2]).is_err());
        assert!(!batches.is_done(), "the task is still out");
        assert_eq!(batches.accept(&result).unwrap().runs, 2);
        assert_eq!(batches.accept(&result).unwrap().runs, 0);
        let journal = std::fs::read_to_string(batches.store.journal()).unwrap();
        assert_eq!(journal.lines().count(), 2);
    }

    #[test]
    fn a_run_without_an_answer_is_given_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut batches = Batches::new(opened(&folder), &wanted()[..1]).unwrap();
        let batch = batches.next(1).unwrap();
        let text = String::from_utf8(run_batch(&batch.task).unwrap()).unwrap();
        let mut result: serde_json::Value = serde_json::from_str(&text).unwrap();
        result["values"] = serde_json::json!({});
        let empty = serde_json::to_vec(&result).unwrap();
        assert_eq!(batches.accept(&empty).unwrap().runs, 0);
        assert_eq!(batches.next(1).as_ref(), Some(&batch));
    }

    #[test]
    fn failures_have_the_command_that_repeats_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut batches = Batches::new(opened(&folder), &wanted()[..1]).unwrap();
        let batch = batches.next(1).unwrap();
        let broken = TaskResult {
            task: batch.id,
            seconds: 0.1,
            values: BTreeMap::new(),
            failures: [(wanted()[0].key(), "the simulator panicked".into())].into(),
        };
        let accepted = batches.accept(&serde_json::to_vec(&broken).unwrap());
        let failures = accepted.unwrap().failures;
        assert!(failures[0].starts_with("the simulator panicked: tack sim scenarios/tack/"));
        assert_eq!((batches.done(), batches.failed()), (1, 1));
    }

    #[test]
    fn a_worker_of_another_version_refuses() {
        let folder = tempfile::tempdir().unwrap();
        let mut batches = Batches::new(opened(&folder), &wanted()[..1]).unwrap();
        let task = String::from_utf8(batches.next(1).unwrap().task).unwrap();
        let other = task.replace(CODE_VERSION, "0123456789abcdef");
        let refused = run_batch(other.as_bytes());
        assert!(matches!(refused, Err(BatchError::Code { .. })));
        assert!(matches!(run_batch(b"{}"), Err(BatchError::Format(_))));
    }
}
