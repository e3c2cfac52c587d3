//! Sweeps: the state of one, batches for workers, and the runner on this machine.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tack_sweep::{
    CODE_VERSION, Counts, DataFile, Folder, FolderError, Pace, Plan, SweepError, TaskError, open,
    read_file, run_embedded,
};

use crate::columns::Columns;
use crate::keys;
use crate::lab::of_batch;
use crate::mismatch::TaskMismatch;
use crate::scenario::wrong;

fn of_task(error: TaskError) -> PyErr {
    TaskMismatch::new_err(error.to_string())
}

fn of_folder(error: FolderError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

fn of_sweep(error: SweepError) -> PyErr {
    match error {
        SweepError::Folder(error) => of_folder(error),
        SweepError::Task(error) => of_task(error),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

fn read_plan(py: Python<'_>, file: &str, text: &str, overrides: &[String]) -> PyResult<Plan> {
    let directory = Path::new(file).parent().unwrap_or(Path::new(""));
    let files = |name: &str| {
        let path = directory.join(name);
        std::fs::read_to_string(&path)
            .map_err(|error| format!("{} cannot be read: {error}", path.display()))
    };
    Plan::from_toml(file, text, overrides, &files).map_err(|error| wrong(py, error))
}

fn counted<'py>(py: Python<'py>, counts: Counts) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("points", counts.points)?;
    dict.set_item("runs", counts.runs)?;
    dict.set_item("done", counts.done)?;
    dict.set_item("reused", counts.reused)?;
    dict.set_item("copied", counts.copied)?;
    dict.set_item("failed", counts.failed)?;
    Ok(dict)
}

/// A file as Python has it: its name, and its contents.
type File<'py> = (String, Bound<'py, PyBytes>);

fn given(py: Python<'_>, file: DataFile) -> File<'_> {
    (file.name, PyBytes::new(py, &file.content))
}

/// A sweep under way; ``tack.sweep`` drives it.
#[pyclass(module = "tack._core")]
#[derive(Debug)]
pub(crate) struct SweepState {
    sweep: tack_sweep::Sweep,
    pace: Pace,
}

#[pymethods]
impl SweepState {
    #[new]
    fn new(
        py: Python<'_>,
        file: &str,
        text: &str,
        overrides: Vec<String>,
        task_s: f64,
    ) -> PyResult<Self> {
        Ok(Self {
            sweep: tack_sweep::Sweep::new(read_plan(py, file, text, &overrides)?),
            pace: Pace::new(task_s),
        })
    }

    #[getter]
    fn name(&self) -> &str {
        self.sweep.plan().name()
    }

    /// The plan's part of a data set.
    #[getter]
    fn part(&self) -> String {
        self.sweep.plan().partition()
    }

    #[getter]
    fn is_done(&self) -> bool {
        self.sweep.is_done()
    }

    /// Runs that are in no task.
    #[getter]
    fn waiting(&self) -> usize {
        self.sweep.waiting()
    }

    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counted(py, self.sweep.counts())
    }

    /// Takes a file of the data set, the plan's own or another's; says what is wrong with a damaged
    /// one.
    fn add_file(&mut self, name: &str, content: Vec<u8>, own: bool) -> Option<String> {
        match read_file(name, content) {
            Ok((table, _)) if own => self.sweep.add_own(&table),
            Ok((table, _)) => self.sweep.add_other(&table),
            Err(damage) => return Some(damage.to_string()),
        }
        None
    }

    /// Name, number of runs and bytes of a task for ``run_batch``; None if nothing is left.
    fn next_batch<'py>(
        &mut self,
        py: Python<'py>,
        workers: usize,
    ) -> Option<(String, usize, Bound<'py, PyBytes>)> {
        let most = self.pace.runs(self.sweep.waiting(), workers);
        let batch = self.sweep.next_batch(most)?;
        Some((batch.id, batch.runs, PyBytes::new(py, &batch.task)))
    }

    /// Takes a result, in any order, also twice: the file to keep, and the runs that failed.
    fn accept<'py>(
        &mut self,
        py: Python<'py>,
        result: &[u8],
    ) -> PyResult<(Option<File<'py>>, Vec<String>)> {
        let accepted = self.sweep.accept(result).map_err(of_task)?;
        self.pace.took(accepted.runs, accepted.seconds);
        Ok((accepted.file.map(|file| given(py, file)), accepted.failures))
    }

    /// The result of this task will not come: its runs are put into others.
    fn lost(&mut self, id: &str) {
        self.sweep.lost(id);
    }

    fn rows(&self) -> PyResult<Columns> {
        Columns::of_table(&self.sweep.rows())
    }

    /// One file of all rows.
    fn merged<'py>(&self, py: Python<'py>) -> PyResult<Option<File<'py>>> {
        let merged = self.sweep.merged();
        let merged = merged.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(merged.map(|file| given(py, file)))
    }
}

/// A data set in a folder of this machine.
#[pyclass(frozen, module = "tack._core")]
#[derive(Debug)]
pub(crate) struct SweepFolder(Folder);

#[pymethods]
impl SweepFolder {
    #[new]
    fn new(root: PathBuf) -> Self {
        Self(Folder::new(&root))
    }

    fn parts(&self) -> PyResult<Vec<String>> {
        self.0.parts().map_err(of_folder)
    }

    fn put(&self, part: &str, name: String, content: Vec<u8>) -> PyResult<()> {
        self.0
            .put(part, &DataFile { name, content })
            .map_err(of_folder)
    }

    fn set_aside(&self, part: &str, damaged: Vec<String>) -> PyResult<()> {
        self.0.set_aside(part, &damaged).map_err(of_folder)
    }

    fn merge(
        &self,
        part: &str,
        name: String,
        content: Vec<u8>,
        obsolete: Vec<String>,
    ) -> PyResult<()> {
        let merged = DataFile { name, content };
        self.0.merge(part, &merged, &obsolete).map_err(of_folder)?;
        self.0.clean(part).map_err(of_folder)
    }
}

/// Does the runs of a task of a sweep or of the lab; gives its result. It holds no lock of Python
/// meanwhile.
///
/// :raises TaskMismatch: where the task is damaged or of another version.
#[pyfunction]
pub(crate) fn run_batch<'py>(py: Python<'py>, task: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let task = task.to_vec();
    let result = match tack_lab::is_task(&task) {
        true => py.detach(|| tack_lab::run_batch(&task)).map_err(of_batch),
        false => py
            .detach(|| tack_sweep::run_batch(&task, &AtomicBool::new(false)))
            .map_err(of_task),
    };
    Ok(PyBytes::new(py, &result?))
}

/// Keys of a plan as TOML.
#[pyfunction]
pub(crate) fn plan_text(keys: &Bound<'_, PyDict>) -> PyResult<String> {
    keys::document(keys)
}

/// The version of the code that rows of sweeps depend on.
#[pyfunction]
pub(crate) const fn code_version() -> &'static str {
    CODE_VERSION
}

type Ended<'py> = (
    PathBuf,
    Bound<'py, PyDict>,
    Columns,
    Vec<String>,
    Vec<(PathBuf, String)>,
);

/// A sweep on the processors of this machine; :func:`tack.sweep` calls it.
#[pyfunction]
#[pyo3(signature = (file, text, overrides, out, jobs=None, progress=None))]
pub(crate) fn sweep_embedded<'py>(
    py: Python<'py>,
    file: &str,
    text: &str,
    overrides: Vec<String>,
    out: PathBuf,
    jobs: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Ended<'py>> {
    if jobs == Some(0) {
        return Err(PyValueError::new_err("expected jobs of 1 or more, got 0"));
    }
    let jobs = jobs.unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
    });
    let plan = read_plan(py, file, text, &overrides)?;
    let mut raised = None;
    let (outcome, damaged) = py
        .detach(|| {
            let folder = Folder::new(&out);
            let opened = open(plan, &folder)?;
            let damaged = opened.damaged.clone();
            let stop = Arc::new(AtomicBool::new(false));
            let mut told = None;
            let outcome = run_embedded(opened, &folder, jobs, &stop, |counts| {
                let heard = Python::attach(|py| {
                    py.check_signals()?;
                    if let Some(progress) = &progress
                        && told != Some((counts.done, counts.runs))
                    {
                        told = Some((counts.done, counts.runs));
                        progress.call1(py, (counts.done, counts.runs))?;
                    }
                    PyResult::Ok(())
                });
                match heard {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => {
                        raised.get_or_insert(error);
                        ControlFlow::Break(())
                    }
                }
            })?;
            Ok((outcome, damaged))
        })
        .map_err(of_sweep)?;
    if let Some(error) = raised {
        return Err(error);
    }
    Ok((
        outcome.part,
        counted(py, outcome.counts)?,
        Columns::of_table(&outcome.rows)?,
        outcome.failures,
        damaged,
    ))
}
