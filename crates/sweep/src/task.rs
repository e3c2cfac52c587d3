//! A batch of runs: bytes in, bytes out. Whoever can call a function on bytes, here or on another
//! machine, can work for a sweep.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tack_sim::scenario::parse_tree;
use tack_sim::{Observers, Report, RunError, Scenario, ScenarioError, run};

use crate::expression::Expression;
use crate::plan::Schema;
use crate::table::{Cell, ReadError, Table};

/// The version of the code that rows depend on: a hash over the sources of the simulator, all
/// below it, and what makes a row of a run.
pub const CODE_VERSION: &str = env!("TACK_SWEEP_CODE");

/// Changes when the bytes of tasks or results do.
const FORMAT: u32 = 1;

/// What is to be done.
#[derive(Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) format: u32,
    pub(crate) code: String,
    pub(crate) schema: Schema,
    /// What the file is to say of itself.
    pub(crate) about: String,
    /// Files that scenarios name.
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) scenarios: Vec<TaskScenario>,
    pub(crate) runs: Vec<TaskRun>,
}

/// A point in a task.
#[derive(Serialize, Deserialize)]
pub(crate) struct TaskScenario {
    pub(crate) point: u32,
    pub(crate) config: String,
    pub(crate) cells: Vec<Cell>,
    pub(crate) text: String,
}

/// A run of one of the scenarios of a task.
#[derive(Serialize, Deserialize)]
pub(crate) struct TaskRun {
    pub(crate) scenario: usize,
    pub(crate) seed: u64,
}

/// What has become of a task; rows follow as Parquet.
#[derive(Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) format: u32,
    /// BLAKE3 of the task.
    pub(crate) task: String,
    /// BLAKE3 of the rows, which are nothing when every run failed.
    pub(crate) rows: String,
    /// Time that the runs took, seconds.
    pub(crate) seconds: f64,
    pub(crate) failures: Vec<TaskFailure>,
}

/// A run without a row.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct TaskFailure {
    pub(crate) point: u32,
    pub(crate) seed: u64,
    pub(crate) message: String,
}

/// Why a task, or a result, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// It is not what this version writes.
    #[error("{0} was not made by this version of tack, or is damaged")]
    Format(&'static str),
    /// Program and worker are of different versions.
    #[error(
        "the sweep is of code {wanted}, this worker of code {here}: install the same version of tack on both"
    )]
    Code {
        /// What the task asks for.
        wanted: String,
        /// What is here.
        here: &'static str,
    },
    /// A scenario of the task.
    #[error("{0}")]
    Scenario(#[from] ScenarioError),
    /// The rows.
    #[error("{0}")]
    Rows(#[from] ReadError),
}

impl Task {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// With the format and the code of this version.
    pub(crate) fn new(schema: Schema, about: String) -> Self {
        Self {
            format: FORMAT,
            code: CODE_VERSION.into(),
            schema,
            about,
            files: BTreeMap::new(),
            scenarios: Vec::new(),
            runs: Vec::new(),
        }
    }
}

/// The name of bytes by their contents.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let mut hash = blake3::hash(bytes).to_hex().to_string();
    hash.truncate(32);
    hash
}

/// Does the runs of a task that [`crate::Sweep::next_batch`] made, and gives a result for
/// [`crate::Sweep::accept`]. The rows depend on nothing but the task. After `stop` the run under
/// way ends without a row and the others are not begun: the result has what was finished.
///
/// # Errors
/// [`TaskError`] when the task is not one of this version.
pub fn run_batch(task: &[u8], stop: &AtomicBool) -> Result<Vec<u8>, TaskError> {
    let parsed: Task = serde_json::from_slice(task).map_err(|_| TaskError::Format("the task"))?;
    if parsed.format != FORMAT {
        return Err(TaskError::Format("the task"));
    }
    if parsed.code != CODE_VERSION {
        return Err(TaskError::Code {
            wanted: parsed.code,
            here: CODE_VERSION,
        });
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the time that a batch took decides how long the next ones are, never a row"
    )]
    let began = std::time::Instant::now();
    let columns = parsed.schema.columns();
    let expressions = parsed.schema.expressions();
    let mut rows = Table::new(columns);
    let mut failures = Vec::new();
    let mut read: Option<(usize, Scenario)> = None;
    let files = |name: &str| {
        let text = parsed.files.get(name);
        text.cloned()
            .ok_or_else(|| format!("the task lacks the file {name}"))
    };
    for &TaskRun { scenario, seed } in &parsed.runs {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let Some(point) = parsed.scenarios.get(scenario) else {
            return Err(TaskError::Format("the task"));
        };
        // Runs of one scenario stand together.
        if read.as_ref().is_none_or(|(number, _)| *number != scenario) {
            let tree = parse_tree("point.toml", &point.text, &[])?;
            let parsed = Scenario::from_tree("point.toml", tree, &files)?;
            read = Some((scenario, parsed));
        }
        let Some((_, parsed_scenario)) = &read else {
            continue;
        };
        let mut observers = Observers::default().until(stop);
        let report = catch_unwind(AssertUnwindSafe(|| {
            run(parsed_scenario, seed, &mut observers)
        }));
        let failed = match report {
            Ok(Ok(report)) => {
                rows.push(row(&parsed.schema, point, seed, &report, &expressions));
                continue;
            }
            Ok(Err(RunError::Stopped)) => break,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the simulator panicked".into(),
        };
        failures.push(TaskFailure {
            point: point.point,
            seed,
            message: failed,
        });
    }
    let content = match rows.is_empty() {
        true => Vec::new(),
        false => rows
            .to_parquet(&parsed.about)
            .map_err(|error| TaskError::Rows(error.into()))?,
    };
    let head = Head {
        format: FORMAT,
        task: hash(task),
        rows: hash(&content),
        seconds: began.elapsed().as_secs_f64(),
        failures,
    };
    let mut result = serde_json::to_vec(&head).unwrap_or_default();
    result.push(b'\n');
    result.extend(content);
    Ok(result)
}

fn row(
    schema: &Schema,
    point: &TaskScenario,
    seed: u64,
    report: &Report,
    expressions: &[Option<Expression>],
) -> Vec<Cell> {
    let mut row = vec![
        Cell::Text(CODE_VERSION.into()),
        Cell::Text(point.config.clone()),
        Cell::Integer(point.point.into()),
        Cell::Integer(seed.cast_signed()),
    ];
    row.extend(point.cells.iter().cloned());
    row.extend(schema.extent.cells(report));
    derive(schema, expressions, &mut row);
    row
}

/// Adds the derived columns to a row.
pub(crate) fn derive(schema: &Schema, expressions: &[Option<Expression>], row: &mut Vec<Cell>) {
    if expressions.is_empty() {
        return;
    }
    let columns = schema.columns();
    let own = row.len();
    for expression in expressions {
        let value = |name: &str| {
            let at = columns[..own].iter().position(|column| column.name == name);
            row[..own].get(at?)?.number()
        };
        let value = expression.as_ref().and_then(|one| one.value(&value));
        row.push(value.map_or(Cell::Null, Cell::finite));
    }
}

/// Takes a result apart: its head, and the rows as they are kept.
pub(crate) fn split(result: &[u8]) -> Result<(Head, &[u8]), TaskError> {
    const WHAT: TaskError = TaskError::Format("the result");
    let end = result.iter().position(|byte| *byte == b'\n').ok_or(WHAT)?;
    let head: Head = serde_json::from_slice(&result[..end]).map_err(|_| WHAT)?;
    let rows = &result[end + 1..];
    match head.format == FORMAT && head.rows == hash(rows) {
        true => Ok((head, rows)),
        false => Err(WHAT),
    }
}
