//! `tack lab`: the figures of the papers on TACK, TCP/HACK and ACK filtering.

mod args;
#[cfg(target_os = "linux")]
mod real_time;

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use tack_lab::{
    Depth, Entry, Extent, FIGURES, Figure, Format, Point, REAL_TIME, Recorded, Store, StoreError,
    Verdict, Width, real_time_paths,
};

use crate::dask;
use crate::exit::{Exit, Failure};
use crate::printer::write_stdout;
use crate::progress;
pub(crate) use args::LabCommand;
pub(crate) use args::PlotWidth;
use args::{LabExportArgs, LabReportArgs, LabRunArgs, LabStoreArgs, PlotFormat};

pub(crate) async fn run(command: LabCommand) -> Result<Exit, Failure> {
    match &command {
        LabCommand::List => list(),
        LabCommand::Run(args) | LabCommand::Check(args) => {
            let wanted = Wanted::of(args)?;
            let is_real_time = wanted.figures.iter().any(Figure::is_real_time);
            let on_workers = match &args.dask {
                Some(_) if is_real_time => {
                    return Err(Failure::usage(
                        "figure kernel is measured in real time on this machine; --dask does not apply to it",
                    ));
                }
                Some(address) => Some(wanted.run_on_workers(args, address).await?),
                None => None,
            };
            if let Some(exit) = on_workers
                && !matches!(exit, Exit::Done | Exit::Failed)
            {
                return Ok(exit);
            }
            let measured = measure(args, &wanted, on_workers.is_none())?;
            say(args, &measured)?;
            match &command {
                LabCommand::Check(_) => judge(&measured),
                _ => Ok(Exit::Done),
            }
        }
        LabCommand::Report(args) => report(args),
        LabCommand::Export(args) => export(args),
    }
}

fn list() -> Result<Exit, Failure> {
    let mut text = String::new();
    for figure in FIGURES.iter().chain(REAL_TIME) {
        let [quick, full] = [Depth::quick(), Depth::full()].map(|depth| figure.plan(&depth).len());
        let _ = writeln!(
            text,
            "{:<12} {} ({quick} runs, {full} in full)",
            figure.id, figure.title
        );
    }
    write_stdout(text.as_bytes())?;
    Ok(Exit::Done)
}

/// What is to be measured.
struct Wanted {
    figures: Vec<Figure>,
    depth: Depth,
    points: Vec<Point>,
}

impl Wanted {
    fn of(args: &LabRunArgs) -> Result<Self, Failure> {
        let figures = chosen(args)?;
        let depth = Depth {
            extent: if args.full {
                Extent::Full
            } else {
                Extent::Quick
            },
            seeds: args.store.seeds,
            recorded: recorded(&args.store)?,
            only: args.only.clone(),
            path: args.path.clone(),
        };
        let is_part = !depth.only.is_empty() || depth.path.is_some();
        if is_part && !figures.iter().any(Figure::is_real_time) {
            return Err(Failure::usage(
                "--only and --path apply to figure kernel, which was not requested",
            ));
        }
        let mut in_real_time = figures.iter().filter(|figure| figure.is_real_time());
        if let Some(path) = &depth.path
            && in_real_time.any(|figure| figure.plan(&depth).is_empty())
        {
            return Err(Failure::usage(format!(
                "--path {path:?}: no run of figure kernel that --only leaves is over a path with that in its name; paths are {}",
                real_time_paths().collect::<Vec<_>>().join("; ")
            )));
        }
        let points: Vec<_> = figures
            .iter()
            .flat_map(|figure| figure.plan(&depth))
            .collect();
        if depth.recorded.is_some() && !points.iter().any(Point::needs_recordings) {
            return Err(Failure::usage(
                "--traces applies to figure 14, which was not requested",
            ));
        }
        Ok(Self {
            figures,
            depth,
            points,
        })
    }

    /// Has the Python package fill the folder of the results.
    async fn run_on_workers(&self, args: &LabRunArgs, address: &str) -> Result<Exit, Failure> {
        const RUNNER: dask::Runner = dask::Runner {
            module: "dask_lab",
            version: "lab_code_version",
            code: tack_lab::CODE_VERSION,
        };
        let mut arguments = vec![
            "--results".into(),
            args.store.results.clone().into_os_string(),
        ];
        if args.full {
            arguments.push("--full".into());
        }
        if let Some(seeds) = args.store.seeds {
            arguments.extend(["--seeds".into(), seeds.to_string().into()]);
        }
        if let Some(folder) = &args.store.traces {
            arguments.extend(["--traces".into(), folder.clone().into_os_string()]);
        }
        arguments.push("--".into());
        arguments.extend(self.figures.iter().map(|figure| figure.id.into()));
        dask::run(&RUNNER, address, arguments).await
    }
}

/// Does the runs that are missing, if they are for this machine, and reduces what is there.
fn measure(args: &LabRunArgs, wanted: &Wanted, is_embedded: bool) -> Result<Vec<Entry>, Failure> {
    let mut store = open(&args.store.results)?;
    say_damaged(&store, "their runs are repeated where needed");
    let done = if is_embedded {
        run_missing(args, &mut store, &wanted.points)
    } else {
        let is_missing = |point: &&Point| !store.results().has(point);
        // The reasons were printed by the one who heard them.
        match wanted.points.iter().filter(is_missing).count() {
            0 => Ok(()),
            missing => Err(missing),
        }
    };
    let Wanted {
        figures,
        depth,
        points,
    } = wanted;
    // What was measured is kept even when some of it failed.
    store
        .export(figures.iter().map(|figure| (figure, depth)))
        .map_err(store_failure)?;
    done.map_err(|count| Failure::plain(format!("{count} of {} runs failed", points.len())))?;
    Ok(figures
        .iter()
        .map(|figure| Entry {
            figure: *figure,
            outcome: Some(figure.reduce(depth, store.results())),
            depth: depth.clone(),
        })
        .collect())
}

/// Runs what `store` lacks of `wanted` on this machine; the error is the number that failed.
fn run_missing(args: &LabRunArgs, store: &mut Store, wanted: &[Point]) -> Result<(), usize> {
    let jobs = args.jobs.map_or_else(processors, usize::from);
    let bar = progress::runs(0);
    let mut lines = progress::Lines::new(bar.is_hidden(), args.lines);
    let mut progress = |done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
        if let Some(line) = lines.next(Instant::now(), done, total) {
            eprintln!("{line}");
        }
    };
    let (real_time, simulated): (Vec<_>, Vec<_>) = wanted
        .iter()
        .partition(|point| point.measure().is_real_time());
    let simulated: Vec<_> = simulated.into_iter().cloned().collect();
    let done = tack_lab::run(store, &simulated, jobs, &mut progress);
    let failed = done.err().unwrap_or_default();
    for error in &failed {
        eprintln!("tack: {error}");
    }
    // By themselves: what else computes would make them late.
    let unreal = match run_in_real_time(store, &real_time, &mut progress) {
        Ok(failed) => failed,
        Err(failure) => {
            eprintln!("tack: {failure}");
            real_time.len()
        }
    };
    bar.finish_and_clear();
    match failed.len() + unreal {
        0 => Ok(()),
        count => Err(count),
    }
}

/// Makes the missing runs in real time. Returns how many failed.
#[cfg(target_os = "linux")]
fn run_in_real_time(
    store: &mut Store,
    points: &[&Point],
    progress: impl FnMut(usize, usize),
) -> Result<usize, Failure> {
    if points.is_empty() {
        return Ok(0);
    }
    crate::trust::TrustArgs {
        realtime: true,
        ..Default::default()
    }
    .prepare();
    real_time::run(store, points, progress)
}

#[cfg(not(target_os = "linux"))]
fn run_in_real_time(
    _store: &mut Store,
    points: &[&Point],
    _progress: impl FnMut(usize, usize),
) -> Result<usize, Failure> {
    match points.len() {
        0 => Ok(0),
        _ => Err(Failure::usage("runs in real time need Linux")),
    }
}

/// Fails if a claim does not hold.
fn judge(entries: &[Entry]) -> Result<Exit, Failure> {
    let failed: usize = entries
        .iter()
        .filter_map(|entry| entry.outcome.as_ref())
        .map(|outcome| outcome.failures().count())
        .sum();
    match failed {
        0 => Ok(Exit::Done),
        1 => Err(Failure::plain("a claim does not hold")),
        count => Err(Failure::plain(format!("{count} claims do not hold"))),
    }
}

/// What was measured of every figure: the full form where all of it is there, else the quick one.
fn measured(args: &LabStoreArgs) -> Result<(Store, Vec<Entry>), Failure> {
    let results = &args.results;
    if !results.is_dir() {
        return Err(Failure::usage(format!(
            "{}: no such folder; `tack lab run` creates it, --results chooses another",
            results.display()
        )));
    }
    let store = open(results)?;
    say_damaged(&store, "`tack lab run` repeats their runs");
    let recorded = recorded(args)?;
    let depths = [Extent::Full, Extent::Quick].map(|extent| Depth {
        extent,
        seeds: args.seeds,
        recorded: recorded.clone(),
        only: Vec::new(),
        path: None,
    });
    let entries = FIGURES
        .iter()
        .chain(REAL_TIME)
        .map(|figure| {
            let depth = depths
                .iter()
                .find(|depth| figure.is_complete(depth, store.results()))
                .or_else(|| {
                    let mut shortest = depths.iter().rev();
                    shortest.find(|depth| figure.is_reported(depth, store.results()))
                });
            Entry {
                figure: *figure,
                depth: depth.unwrap_or(&depths[1]).clone(),
                outcome: depth.map(|depth| figure.reduce(depth, store.results())),
            }
        })
        .collect();
    Ok((store, entries))
}

/// Writes plots as files, and prints their names.
fn export(args: &LabExportArgs) -> Result<Exit, Failure> {
    let wanted = named(&args.figures)?;
    let (store, entries) = measured(&args.store)?;
    let is_wanted = |entry: &&Entry| {
        wanted.is_empty() || wanted.iter().any(|figure| figure.id == entry.figure.id)
    };
    let entries: Vec<_> = entries.iter().filter(is_wanted).collect();
    let is_missing = |entry: &&&Entry| entry.outcome.is_none();
    let missing: Vec<_> = entries
        .iter()
        .filter(is_missing)
        .map(|entry| entry.figure.id)
        .collect();
    if !wanted.is_empty() && !missing.is_empty() || missing.len() == entries.len() {
        return Err(Failure::usage(format!(
            "not measured yet: {0} (tack lab run {0})",
            missing.join(" ")
        )));
    }
    let formats: Vec<_> = match args.format.is_empty() {
        true => Format::ALL.to_vec(),
        false => args.format.iter().map(|format| (*format).into()).collect(),
    };
    let folder = args
        .out
        .clone()
        .unwrap_or_else(|| store.folder().join("plots"));
    std::fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, &error))?;
    let mut text = String::new();
    for entry in entries {
        for format in &formats {
            let files = tack_lab::export(entry, *format, args.width.into())
                .map_err(|error| Failure::failed(format!("figure {}", entry.figure.id), error))?;
            for (name, content) in files {
                let path = folder.join(name);
                std::fs::write(&path, content).map_err(|error| cannot_write(&path, &error))?;
                let _ = writeln!(text, "{}", path.display());
            }
        }
    }
    write_stdout(text.as_bytes())?;
    Ok(Exit::Done)
}

pub(crate) fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write {}: {error}", path.display()))
}

impl From<PlotFormat> for Format {
    fn from(format: PlotFormat) -> Self {
        match format {
            PlotFormat::Svg => Self::Svg,
            PlotFormat::Pdf => Self::Pdf,
            PlotFormat::Csv => Self::Csv,
            PlotFormat::Parquet => Self::Parquet,
        }
    }
}

impl From<PlotWidth> for Width {
    fn from(width: PlotWidth) -> Self {
        match width {
            PlotWidth::Page => Self::Page,
            PlotWidth::Column => Self::Column,
        }
    }
}

fn report(args: &LabReportArgs) -> Result<Exit, Failure> {
    let (store, entries) = measured(&args.store)?;
    store
        .export(entries.iter().map(|entry| (&entry.figure, &entry.depth)))
        .map_err(store_failure)?;
    let path = args
        .out
        .clone()
        .unwrap_or_else(|| store.folder().join("report.html"));
    let folder = store.folder();
    for (path, content) in [
        (&path, tack_lab::page(&entries, &today()).into_bytes()),
        (
            &folder.join("report.md"),
            tack_lab::markdown(&entries).into_bytes(),
        ),
        (&folder.join("claims.csv"), tack_lab::claims_csv(&entries)),
    ] {
        std::fs::write(path, content).map_err(|error| cannot_write(path, &error))?;
    }
    let missing = entries.iter().filter(|entry| entry.outcome.is_none());
    let missing: Vec<_> = missing.map(|entry| entry.figure.id).collect();
    if !missing.is_empty() {
        eprintln!(
            "tack: not measured yet: {0} (tack lab run {0})",
            missing.join(" ")
        );
    }
    write_stdout(format!("{}\n", path.display()).as_bytes())?;
    Ok(Exit::Done)
}

/// Prints the claims, and how many there are of each verdict.
fn say(args: &LabRunArgs, entries: &[Entry]) -> Result<(), Failure> {
    if args.json {
        return write_stdout(format!("{}\n", tack_lab::claims_json(entries)).as_bytes());
    }
    let mut text = entries.iter().map(claims).collect::<String>();
    let _ = writeln!(text, "{}", tack_lab::counts(entries));
    write_stdout(text.as_bytes())
}

/// A figure's claims, a line each.
fn claims(entry: &Entry) -> String {
    let mut text = format!("Figure {}: {}\n", entry.figure.id, entry.figure.title);
    for claim in entry.outcome.iter().flat_map(|outcome| &outcome.claims) {
        let verdict = claim.verdict();
        let word = match verdict {
            Verdict::Pass | Verdict::Calibrated => verdict.name(),
            Verdict::Deviation(_) => "DEVIATION",
            Verdict::Unexplained(_) => "UNEXPLAINED",
            Verdict::Inconclusive(_) => "undecided",
            Verdict::Fail => "FAILS",
        };
        let _ = writeln!(
            text,
            "  {word:<11} {}: {} (paper: {})",
            claim.words, claim.ours, claim.paper
        );
        if !verdict.reason().is_empty() {
            let _ = writeln!(text, "              {}", verdict.reason());
        }
    }
    for note in entry.outcome.iter().flat_map(|outcome| &outcome.notes) {
        let _ = writeln!(text, "  note        {note}");
    }
    text
}

fn chosen(args: &LabRunArgs) -> Result<Vec<Figure>, Failure> {
    match args.all {
        true => Ok(FIGURES.to_vec()),
        false => named(&args.figures),
    }
}

fn named(names: &[String]) -> Result<Vec<Figure>, Failure> {
    names
        .iter()
        .map(|id| {
            let mut all = FIGURES.iter().chain(REAL_TIME);
            all.find(|figure| figure.is_called(id))
                .copied()
                .ok_or_else(|| {
                    let all = FIGURES.iter().chain(REAL_TIME);
                    let ids: Vec<_> = all.map(|figure| figure.id).collect();
                    Failure::usage(format!(
                        "{id:?} is not a figure; expected one of {}",
                        ids.join(", ")
                    ))
                })
        })
        .collect()
}

/// The recordings that the user brought.
fn recorded(args: &LabStoreArgs) -> Result<Option<Arc<Recorded>>, Failure> {
    let read = |folder: &PathBuf| {
        let recorded = Recorded::read(folder).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Arc::new(recorded))
    };
    args.traces.as_ref().map(read).transpose()
}

fn open(folder: &Path) -> Result<Store, Failure> {
    Store::open(folder).map_err(|error| Failure::usage(error.to_string()))
}

/// Damaged lines must not look like runs that nobody made.
fn say_damaged(store: &Store, consequence: &str) {
    let (journal, damaged) = (store.journal(), store.damaged());
    let Some(first) = damaged.first() else {
        return;
    };
    eprintln!(
        "tack: {}: cannot read {}, the first is line {first}; {consequence}",
        journal.display(),
        match damaged.len() {
            1 => "1 line".into(),
            count => format!("{count} lines"),
        }
    );
}

fn store_failure(error: StoreError) -> Failure {
    Failure::failed("cannot store the results", error)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// `2026-11-22 10:07 UTC`.
pub(crate) fn today() -> String {
    chrono::DateTime::<chrono::Utc>::from(SystemTime::now())
        .format("%Y-%m-%d %H:%M UTC")
        .to_string()
}
