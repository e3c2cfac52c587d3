//! Runs: one, or many side by side, without the global interpreter lock.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use tack_sim::{Capture, Checks, Observers, Qlog, Report, RunError, run, run_jobs};

use crate::columns::Columns;
use crate::reports::Reports;
use crate::running::Running;
use crate::scenario::{Foreign, Scenario};
use crate::{controller, policy};

create_exception!(
    _core,
    SimulationError,
    PyRuntimeError,
    "The simulated stack broke an invariant: a bug in it, not in the scenario."
);

/// How often a call that waits looks for Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(50);

/// A run to do: everything that it needs, without Python's lock.
struct Job {
    scenario: tack_sim::Scenario,
    controllers: Vec<Foreign>,
    policies: Vec<Foreign>,
    seed: u64,
    series: Option<Duration>,
    events: bool,
    segments: bool,
    pcap: Option<PathBuf>,
    checks: bool,
    running: Arc<Running>,
}

/// A receiver behind a lock that nobody else takes: without it it could not be used while Python's
/// lock is released.
type Messages<T> = Mutex<mpsc::Receiver<T>>;

/// The results of a run.
struct Done {
    report: Report,
    series: Vec<tack_sim::Sample>,
    /// Lines of JSON.
    events: Vec<u8>,
}

impl Job {
    fn new(py: Python<'_>, scenario: &Scenario, seed: Option<u64>) -> Self {
        Self {
            scenario: scenario.parsed.clone(),
            controllers: scenario
                .controllers
                .iter()
                .map(|one| one.clone_ref(py))
                .collect(),
            policies: scenario
                .policies
                .iter()
                .map(|one| one.clone_ref(py))
                .collect(),
            seed: seed.unwrap_or(scenario.parsed.seed),
            series: None,
            events: false,
            segments: false,
            pcap: None,
            checks: false,
            running: Arc::default(),
        }
    }

    fn run(mut self) -> PyResult<Done> {
        for foreign in self.controllers {
            let flow = foreign.flow;
            if let Some(config) = self.scenario.flows[flow].tcp_config_mut() {
                config.controller = Some(controller::factory(foreign, Arc::clone(&self.running)));
            }
        }
        for foreign in self.policies {
            let flow = foreign.flow;
            if let Some(config) = self.scenario.flows[flow].tcp_config_mut() {
                config.ack_policy = Some(policy::factory(foreign, Arc::clone(&self.running)));
            }
        }
        let mut samples = self.series.map(|interval| Samples {
            interval,
            taken: Vec::new(),
        });
        let mut events = Vec::new();
        let mut qlog = match self.events {
            true => Some(Qlog::new(&mut events)?),
            false => None,
        };
        if self.segments {
            qlog = qlog.map(Qlog::with_segments);
        }
        let mut capture = self.pcap.as_deref().map(capture).transpose()?;
        let mut observers = Observers::default().until(&self.running.stop);
        if self.checks {
            observers = observers.checking(Checks::EveryEvent);
        }
        if let Some(samples) = &mut samples {
            observers = observers.with(samples);
        }
        if let Some(qlog) = &mut qlog {
            observers = observers.with(qlog);
        }
        if let Some(capture) = &mut capture {
            observers = observers.with(capture);
        }
        let began = Instant::now();
        let outcome = run(&self.scenario, self.seed, &mut observers);
        drop(observers);
        drop(qlog);
        if let Some(error) = self.running.take_error() {
            return Err(error);
        }
        let mut report = outcome.map_err(|error| match error {
            RunError::Broken { .. } => SimulationError::new_err(error.to_string()),
            RunError::Observer(_) => PyOSError::new_err(error.to_string()),
            other => PyRuntimeError::new_err(other.to_string()),
        })?;
        report.wall_seconds = began.elapsed().as_secs_f64();
        Ok(Done {
            report,
            series: samples.map(|samples| samples.taken).unwrap_or_default(),
            events,
        })
    }
}

fn capture(path: &Path) -> PyResult<Capture<BufWriter<File>>> {
    let file = File::create(path).map_err(|error| {
        PyOSError::new_err((error.raw_os_error(), error.to_string(), path.to_owned()))
    })?;
    Ok(Capture::new(BufWriter::new(file))?)
}

/// Keeps the state of the flows at an interval.
struct Samples {
    interval: Duration,
    taken: Vec<tack_sim::Sample>,
}

impl tack_sim::Observer for Samples {
    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn on_sample(&mut self, sample: &tack_sim::Sample) {
        self.taken.push(*sample);
    }
}

/// One run; :func:`tack.simulate` calls it.
#[pyfunction]
#[pyo3(signature = (scenario, seed=None, series_s=None, events=false, checks=false, segments=false, pcap=None))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are the keyword arguments of Python"
)]
pub(crate) fn simulate(
    py: Python<'_>,
    scenario: PyRef<'_, Scenario>,
    seed: Option<u64>,
    series_s: Option<f64>,
    events: bool,
    checks: bool,
    segments: bool,
    pcap: Option<PathBuf>,
) -> PyResult<(Reports, Option<Columns>, Option<Columns>)> {
    let mut job = Job::new(py, &scenario, seed);
    drop(scenario);
    job.series = series_s.map(interval).transpose()?;
    job.events = events;
    job.segments = segments;
    job.pcap = pcap;
    job.checks = checks;
    let running = Arc::clone(&job.running);
    let has_series = job.series.is_some();
    let (done_in, done) = mpsc::channel();
    let done = Mutex::new(done);
    let worker = std::thread::spawn(move || {
        // Nobody listens if the caller was interrupted.
        let _ = done_in.send(job.run());
    });
    let outcome = wait(py, &done, || running.stop.store(true, Ordering::Relaxed));
    // It ends soon: it has given its result, or was told to stop.
    py.detach(|| worker.join()).map_err(|_| panicked())?;
    let done = outcome?.ok_or_else(panicked)??;
    let series = has_series
        .then(|| Columns::of_samples(&done.series))
        .transpose()?;
    let events = events
        .then(|| Columns::of_events(&done.events))
        .transpose()?;
    Ok((Reports::new(vec![done.report]), series, events))
}

/// Many runs side by side, in the order of ``scenarios``; :func:`tack.simulate_many` calls it.
#[pyfunction]
#[pyo3(signature = (scenarios, seeds, jobs=None, progress=None))]
pub(crate) fn simulate_many(
    py: Python<'_>,
    scenarios: Vec<Bound<'_, Scenario>>,
    seeds: Vec<Option<u64>>,
    jobs: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Reports> {
    if scenarios.len() != seeds.len() {
        return Err(PyValueError::new_err(
            "as many scenarios as seeds are needed",
        ));
    }
    if jobs == Some(0) {
        return Err(PyValueError::new_err("expected jobs of 1 or more, got 0"));
    }
    let total = scenarios.len();
    let mut work = Vec::with_capacity(total);
    for (scenario, seed) in scenarios.iter().zip(seeds) {
        let scenario = scenario
            .try_borrow()
            .map_err(|_| PyTypeError::new_err("a scenario is being changed by another thread"))?;
        work.push(Job::new(py, &scenario, seed));
    }
    // What runs now, by its number, so that it can be stopped.
    let under_way = Arc::new(Mutex::new(HashMap::new()));
    let stopped = Arc::new(AtomicBool::new(false));
    let (done_in, done) = mpsc::channel();
    let done = Mutex::new(done);
    let worker = {
        let (under_way, stopped) = (Arc::clone(&under_way), Arc::clone(&stopped));
        let numbered: Vec<_> = work.into_iter().enumerate().collect();
        std::thread::spawn(move || {
            let begin = move |(number, job): (usize, Job)| {
                let running = Arc::clone(&job.running);
                if let Ok(mut under_way) = under_way.lock() {
                    under_way.insert(number, Arc::clone(&running));
                }
                // Whoever stops all sets this first, and then looks at what is under way.
                if stopped.load(Ordering::SeqCst) {
                    running.stop.store(true, Ordering::Relaxed);
                }
                let result = job.run();
                if let Ok(mut under_way) = under_way.lock() {
                    under_way.remove(&number);
                }
                result.map(|done| done.report)
            };
            run_jobs(numbered, jobs, begin, |number, result| {
                match done_in.send((number, result)) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            })
        })
    };
    let stop = || {
        stopped.store(true, Ordering::SeqCst);
        if let Ok(under_way) = under_way.lock() {
            for running in under_way.values() {
                running.stop.store(true, Ordering::Relaxed);
            }
        }
    };
    let mut reports: Vec<Option<Report>> = std::iter::repeat_with(|| None).take(total).collect();
    let outcome = (|| {
        for count in 1..=total {
            let Some((number, result)) = wait(py, &done, stop)? else {
                return Err(panicked());
            };
            reports[number] = Some(result.ok_or_else(panicked)??);
            if let Some(progress) = &progress {
                progress.call1(py, (count, total))?;
            }
        }
        Ok(())
    })();
    if outcome.is_err() {
        stop();
    }
    drop(done);
    let threads = py.detach(|| worker.join()).map_err(|_| panicked())?;
    outcome?;
    threads.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    Ok(Reports::new(reports.into_iter().flatten().collect()))
}

/// The next message, or `None` when nobody can send one. Ctrl-C calls `stop` and is raised.
fn wait<T: Send>(py: Python<'_>, messages: &Messages<T>, stop: impl Fn()) -> PyResult<Option<T>> {
    loop {
        let next = py.detach(|| match messages.lock() {
            Ok(messages) => messages.recv_timeout(SIGNALS),
            Err(_) => Err(mpsc::RecvTimeoutError::Disconnected),
        });
        match next {
            Ok(message) => return Ok(Some(message)),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(None),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        if let Err(interrupt) = py.check_signals() {
            stop();
            return Err(interrupt);
        }
    }
}

fn interval(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|interval| !interval.is_zero())
        .ok_or_else(|| {
            PyValueError::new_err(format!("expected an interval above 0 s, got {seconds}"))
        })
}

fn panicked() -> PyErr {
    SimulationError::new_err("the simulator panicked: standard error says where")
}
