//! A sweep under way: which runs are left, which are out, and which rows are there. It has no
//! clock, no thread and no file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::expression::Expression;
use crate::plan::{Plan, Schema};
use crate::table::{Cell, Table};
use crate::task::{CODE_VERSION, Task, TaskError, TaskRun, TaskScenario, derive, hash, split};

/// A point, and a seed.
type Run = (u32, u64);

/// A sweep under way.
#[derive(Debug)]
pub struct Sweep {
    plan: Plan,
    about: String,
    expressions: Vec<Option<Expression>>,
    numbers: HashMap<String, u32>,
    /// The rows of this version of the code, in the order in which they came.
    rows: Table,
    at: HashMap<Run, usize>,
    /// Rows of files of this plan by other versions of the code.
    others: Table,
    failed: BTreeMap<Run, String>,
    /// Seeds wanted of each point, as far as known.
    wanted: Vec<usize>,
    /// By the number of the seed, then by the point: early rows are of all points.
    queue: BTreeSet<(usize, u32)>,
    under_way: BTreeMap<String, Vec<(usize, u32)>>,
    /// Where the column of the stopping rule is.
    column: Option<usize>,
    counts: Counts,
}

/// How far a sweep is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Counts {
    /// Points of the plan.
    pub points: usize,
    /// Runs that are wanted, as far as known: a stopping rule may want more.
    pub runs: usize,
    /// Runs of these that are done, also those that failed.
    pub done: usize,
    /// Rows that were there before: in the plan's part of the data set, or in another plan's.
    pub reused: usize,
    /// Rows that another plan's part of the data set had.
    pub copied: usize,
    /// Runs without a row.
    pub failed: usize,
}

/// A task, for [`crate::run_batch`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// Its name, by its contents.
    pub id: String,
    /// How many runs it has.
    pub runs: usize,
    /// What to give to [`crate::run_batch`].
    pub task: Vec<u8>,
}

/// A file to be kept: its name says its contents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataFile {
    /// `rows-HASH.parquet`.
    pub name: String,
    /// A Parquet file.
    pub content: Vec<u8>,
}

/// What came of a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Accepted {
    /// What is to be kept; `None` when there is nothing new.
    pub file: Option<DataFile>,
    /// Runs of the task that are done.
    pub runs: usize,
    /// Time that they took, seconds.
    pub seconds: f64,
    /// Runs that failed: how to see it again, and what happened.
    pub failures: Vec<String>,
}

/// Why a file does not count.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Damage {
    /// Its name is not one that a sweep gives.
    #[error("not a file of a sweep: expected the name rows-HASH.parquet")]
    Name,
    /// Its contents are not those that its name says.
    #[error("damaged: its contents are not those that its name says")]
    Contents,
    /// It cannot be read as Parquet.
    #[error("damaged: {0}")]
    Parquet(String),
}

/// Name of a file with this content.
fn file_name(content: &[u8]) -> String {
    format!("rows-{}.parquet", hash(content))
}

/// The rows of a file with this name, and what it says of itself.
///
/// # Errors
/// [`Damage`] when it is not as a sweep wrote it.
pub fn read_file(name: &str, content: Vec<u8>) -> Result<(Table, Option<String>), Damage> {
    if !(name.starts_with("rows-") && name.ends_with(".parquet")) {
        return Err(Damage::Name);
    }
    if file_name(&content) != name {
        return Err(Damage::Contents);
    }
    Table::from_parquet(content).map_err(|error| Damage::Parquet(error.to_string()))
}

impl Sweep {
    /// Nothing of `plan` is done yet.
    pub fn new(plan: Plan) -> Self {
        let columns = plan.columns();
        let numbers = plan.points().iter().zip(0..);
        let numbers = numbers
            .map(|(point, number)| (point.config.clone(), number))
            .collect();
        let rows = Table::new(columns.clone());
        let column = match &plan.seeds {
            crate::plan::Seeds::Until(rule) => rows.find(&rule.column),
            crate::plan::Seeds::Fixed(_) => None,
        };
        let mut sweep = Self {
            about: serde_json::to_string(plan.about()).unwrap_or_default(),
            expressions: plan.schema().expressions(),
            numbers,
            at: HashMap::new(),
            others: Table::new(columns),
            rows,
            failed: BTreeMap::new(),
            wanted: vec![0; plan.points().len()],
            queue: BTreeSet::new(),
            under_way: BTreeMap::new(),
            column,
            counts: Counts {
                points: plan.points().len(),
                ..Counts::default()
            },
            plan,
        };
        for point in 0..sweep.wanted.len() as u32 {
            sweep.extend(point);
        }
        sweep
    }

    /// The plan.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How far it is.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether every wanted run is done.
    pub fn is_done(&self) -> bool {
        self.queue.is_empty() && self.under_way.is_empty()
    }

    /// Takes the rows of a file of this plan's part of the data set.
    pub fn add_own(&mut self, table: &Table) {
        self.add(table, true);
    }

    /// Takes what fits of another plan's rows: those of the same scenarios, seeds and version of
    /// the code.
    pub fn add_other(&mut self, table: &Table) {
        self.add(table, false);
    }

    fn add(&mut self, table: &Table, is_own: bool) {
        let find = |name| table.find(name);
        let (Some(code), Some(config), Some(seed), Some(flows)) =
            (find("code"), find("config"), find("seed"), find("flows"))
        else {
            return;
        };
        let columns: Vec<_> = self.rows.columns().to_vec();
        let sources: Vec<_> = columns
            .iter()
            .map(|column| {
                table
                    .find(&column.name)
                    .filter(|at| table.columns()[*at].kind == column.kind)
            })
            .collect();
        // Flows that have columns there.
        let groups = (0..)
            .take_while(|flow| table.find(&format!("flows.{flow}.goodput_bps")).is_some())
            .count();
        let most = self.plan.schema().extent.flows;
        let mut touched = BTreeSet::new();
        for row in 0..table.len() {
            let of_this_code = table.cell(row, code).text() == Some(CODE_VERSION);
            let point = match table.cell(row, config) {
                Cell::Text(config) => self.numbers.get(&config).copied(),
                _ => None,
            };
            let seed = match table.cell(row, seed) {
                Cell::Integer(seed) => seed.cast_unsigned(),
                _ => continue,
            };
            let Some(point) = point.filter(|_| of_this_code) else {
                if is_own {
                    let cells: Vec<_> = sources
                        .iter()
                        .map(|at| at.map_or(Cell::Null, |at| table.cell(row, at)))
                        .collect();
                    self.others.push(cells);
                }
                continue;
            };
            let is_wanted = is_own || self.index_of(seed).is_some();
            let flows = match table.cell(row, flows) {
                Cell::Integer(flows) => usize::try_from(flows).unwrap_or(0),
                _ => continue,
            };
            if !is_wanted || self.at.contains_key(&(point, seed)) || flows.min(most) > groups {
                continue;
            }
            let cells = self.adopt(table, row, &sources, point, seed);
            self.keep((point, seed), cells);
            self.counts.reused += 1;
            self.counts.copied += usize::from(!is_own);
            touched.insert(point);
        }
        for point in touched {
            self.extend(point);
        }
    }

    /// The row of another file with the cells that this plan gives it.
    fn adopt(
        &self,
        table: &Table,
        row: usize,
        sources: &[Option<usize>],
        point: u32,
        seed: u64,
    ) -> Vec<Cell> {
        let schema = self.plan.schema();
        let axes = Schema::AXES..Schema::AXES + schema.axes();
        let end = self.rows.columns().len() - self.expressions.len();
        let its = &self.plan.points()[point as usize];
        let mut cells: Vec<Cell> = (0..end)
            .map(|column| match column {
                2 => Cell::Integer(point.into()),
                3 => Cell::Integer(seed.cast_signed()),
                column if axes.contains(&column) => its.cells[column - axes.start].clone(),
                column => sources[column].map_or(Cell::Null, |at| table.cell(row, at)),
            })
            .collect();
        derive(schema, &self.expressions, &mut cells);
        cells
    }

    /// The number of a seed among those of a point.
    fn index_of(&self, seed: u64) -> Option<usize> {
        match &self.plan.seeds {
            crate::plan::Seeds::Fixed(seeds) => seeds.iter().position(|one| *one == seed),
            crate::plan::Seeds::Until(rule) => {
                (1..=rule.max).contains(&seed).then(|| seed as usize - 1)
            }
        }
    }

    fn keep(&mut self, run: Run, cells: Vec<Cell>) {
        self.at.insert(run, self.rows.len());
        self.rows.push(cells);
        if let Some(index) = self.index_of(run.1) {
            self.queue.remove(&(index, run.0));
            self.counts.done += usize::from(index < self.wanted[run.0 as usize]);
        }
    }

    /// Wants as many seeds of a point as its rows call for.
    fn extend(&mut self, point: u32) {
        let is_done = |sweep: &Self, index: usize| {
            let run = sweep.plan.seeds.at(index).map(|seed| (point, seed))?;
            match sweep.at.get(&run) {
                Some(row) => Some(Some(*row)),
                None => sweep.failed.contains_key(&run).then_some(None),
            }
        };
        let needed = self.plan.seeds.needed(|index| {
            let row = is_done(self, index)?;
            let cell = self.rows.cell(row.unwrap_or(usize::MAX), self.column?);
            Some(cell.number().unwrap_or(f64::NAN))
        });
        let before = self.wanted[point as usize];
        for index in before..needed {
            self.counts.runs += 1;
            match is_done(self, index) {
                Some(_) => self.counts.done += 1,
                None => {
                    self.queue.insert((index, point));
                }
            }
        }
        self.wanted[point as usize] = before.max(needed);
    }

    /// The next task, of at most `most` runs; `None` when nothing is left, or when what is left
    /// depends on tasks that are out.
    pub fn next_batch(&mut self, most: usize) -> Option<Batch> {
        let mut taken = Vec::new();
        while taken.len() < most.max(1)
            && let Some(run) = self.queue.pop_first()
        {
            taken.push(run);
        }
        if taken.is_empty() {
            return None;
        }
        let mut task = Task::new(self.plan.schema().clone(), self.about.clone());
        task.files.clone_from(self.plan.files());
        let mut by_point: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (index, point) in &taken {
            by_point
                .entry(*point)
                .or_default()
                .extend(self.plan.seeds.at(*index));
        }
        for (scenario, (point, seeds)) in by_point.into_iter().enumerate() {
            let its = &self.plan.points()[point as usize];
            task.scenarios.push(TaskScenario {
                point,
                config: its.config.clone(),
                cells: its.cells.clone(),
                text: its.scenario.to_string(),
            });
            let runs = seeds.into_iter().map(|seed| TaskRun { scenario, seed });
            task.runs.extend(runs);
        }
        let task = task.to_bytes();
        let id = hash(&task);
        let runs = taken.len();
        self.under_way.insert(id.clone(), taken);
        Some(Batch { id, runs, task })
    }

    /// Takes the result of a task. A result that came before, or of a task that is not out, changes
    /// nothing. Runs of the task without row or failure are left to be done again.
    ///
    /// # Errors
    /// [`TaskError`] when it is not a result; then its task is still out.
    pub fn accept(&mut self, result: &[u8]) -> Result<Accepted, TaskError> {
        let (head, content) = split(result)?;
        let mut accepted = Accepted {
            file: None,
            runs: 0,
            seconds: head.seconds,
            failures: Vec::new(),
        };
        if !self.under_way.contains_key(&head.task) {
            return Ok(accepted);
        }
        let table = match content.is_empty() {
            true => Table::new(self.rows.columns().to_vec()),
            false => Table::from_parquet(content.to_vec())?.0,
        };
        if table.columns() != self.rows.columns() {
            return Err(TaskError::Format("the result"));
        }
        let taken = self.under_way.remove(&head.task).unwrap_or_default();
        let out: BTreeSet<Run> = taken
            .iter()
            .filter_map(|(index, point)| Some((*point, self.plan.seeds.at(*index)?)))
            .collect();
        let mut is_new = false;
        for row in 0..table.len() {
            let (Cell::Integer(point), Cell::Integer(seed)) =
                (table.cell(row, 2), table.cell(row, 3))
            else {
                continue;
            };
            let Ok(point) = u32::try_from(point) else {
                continue;
            };
            let run = (point, seed.cast_unsigned());
            if out.contains(&run) {
                accepted.runs += 1;
                if !self.at.contains_key(&run) {
                    is_new = true;
                    self.keep(run, table.row(row).collect());
                }
            }
        }
        for failure in head.failures {
            let run = (failure.point, failure.seed);
            if out.contains(&run) && !self.failed.contains_key(&run) {
                accepted.runs += 1;
                let settings = self.plan.points()[failure.point as usize]
                    .settings
                    .join(" ");
                accepted.failures.push(format!(
                    "{settings} seed {}: {}",
                    failure.seed, failure.message
                ));
                self.failed.insert(run, failure.message);
                self.counts.failed += 1;
                self.counts.done += 1;
            }
        }
        let left = taken.into_iter().filter(|(index, point)| {
            self.plan.seeds.at(*index).is_some_and(|seed| {
                !self.at.contains_key(&(*point, seed)) && !self.failed.contains_key(&(*point, seed))
            })
        });
        self.queue.extend(left.collect::<Vec<_>>());
        let touched: BTreeSet<u32> = out.iter().map(|(point, _)| *point).collect();
        for point in touched {
            self.extend(point);
        }
        accepted.file = is_new.then(|| DataFile {
            name: file_name(content),
            content: content.to_vec(),
        });
        Ok(accepted)
    }

    /// Takes a task back whose result will not come.
    pub fn lost(&mut self, id: &str) {
        self.queue
            .extend(self.under_way.remove(id).unwrap_or_default());
    }

    /// Tasks of one run each, spread evenly over what is left, to learn how long runs take.
    pub fn spread(&mut self, count: usize) -> Vec<Batch> {
        let all: Vec<_> = self.queue.iter().copied().collect();
        let count = count.min(all.len());
        let mut batches = Vec::new();
        for number in 0..count {
            // One after the other becomes all that is left.
            self.queue = BTreeSet::from([all[number * all.len() / count]]);
            batches.extend(self.next_batch(1));
        }
        let out: BTreeSet<_> = self.under_way.values().flatten().copied().collect();
        self.queue = all.into_iter().filter(|run| !out.contains(run)).collect();
        batches
    }

    /// How many runs are in no task.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The rows that the plan wants, in its order: points, and in each its seeds.
    pub fn rows(&self) -> Table {
        self.rows.select(&self.ordered())
    }

    fn ordered(&self) -> Vec<usize> {
        let mut order = Vec::new();
        for (point, wanted) in self.wanted.iter().enumerate() {
            for index in 0..*wanted {
                if let Some(seed) = self.plan.seeds.at(index)
                    && let Some(row) = self.at.get(&(point as u32, seed))
                {
                    order.push(*row);
                }
            }
        }
        order
    }

    /// One file of all rows, in the plan's order, then those that the plan no longer wants. The
    /// same rows are the same bytes, whoever measured them and in which order. `None` when there
    /// are none.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn merged(&self) -> Result<Option<DataFile>, crate::parquet_file::ParquetError> {
        let mut order = self.ordered();
        let used: BTreeSet<usize> = order.iter().copied().collect();
        let mut rest: Vec<(i64, i64, usize)> = (0..self.rows.len())
            .filter(|row| !used.contains(row))
            .filter_map(
                |row| match (self.rows.cell(row, 2), self.rows.cell(row, 3)) {
                    (Cell::Integer(point), Cell::Integer(seed)) => Some((point, seed, row)),
                    _ => None,
                },
            )
            .collect();
        rest.sort_unstable();
        order.extend(rest.into_iter().map(|(.., row)| row));
        let mut table = self.rows.select(&order);
        let key = |row: usize| {
            let texts = [0, 1].map(|column| match self.others.cell(row, column) {
                Cell::Text(text) => text,
                _ => String::new(),
            });
            let seed = match self.others.cell(row, 3) {
                Cell::Integer(seed) => seed,
                _ => 0,
            };
            (texts, seed)
        };
        let others: BTreeMap<_, usize> =
            (0..self.others.len()).map(|row| (key(row), row)).collect();
        for row in others.into_values() {
            table.push(self.others.row(row).collect::<Vec<_>>());
        }
        if table.is_empty() {
            return Ok(None);
        }
        let content = table.to_parquet(&self.about)?;
        Ok(Some(DataFile {
            name: file_name(&content),
            content,
        }))
    }
}
