//! `tack sweep report`: a column of a data set, as a page, a plot and its points.

use std::fs;
use std::path::Path;

use tack_sweep::{About, Choice, Folder, Report, ReportError, Table};

use super::args::SweepReportArgs;
use crate::exit::{Exit, Failure};
use crate::lab::{cannot_write, today};
use crate::printer::write_stdout;

/// Writes the files, and prints their names.
pub(crate) fn write(args: &SweepReportArgs) -> Result<Exit, Failure> {
    let (table, about) = read(&args.folder)?;
    let choice = Choice {
        column: args.column.clone(),
        over: args.over.clone(),
        by: args.by.clone(),
    };
    let mut command = format!("tack sweep report {}", args.folder.display());
    for (option, value) in [
        ("--column", &args.column),
        ("--over", &args.over),
        ("--by", &args.by),
    ] {
        if let Some(value) = value {
            command += &format!(" {option} {value}");
        }
    }
    let report = Report::new(&table, &about, &choice, &command, &today())
        .map_err(|error| Failure::usage(format!("{}: {error}", args.folder.display())))?;
    let made = |error: ReportError| Failure::failed("cannot make the report", error);
    let width = args.width.into();
    let files = [
        ("report.html", report.page.clone().into_bytes()),
        ("plot.svg", report.plot.file(width).into_bytes()),
        (
            "plot.pdf",
            report.plot.pdf(width).map_err(|error| made(error.into()))?,
        ),
        ("points.csv", report.csv()),
        (
            "points.parquet",
            report
                .points
                .to_parquet("")
                .map_err(|error| made(error.into()))?,
        ),
    ];
    fs::create_dir_all(&args.out).map_err(|error| cannot_write(&args.out, &error))?;
    let mut text = String::new();
    for (name, content) in files {
        let path = args.out.join(name);
        fs::write(&path, content).map_err(|error| cannot_write(&path, &error))?;
        text += &format!("{}\n", path.display());
    }
    write_stdout(text.as_bytes())?;
    Ok(Exit::Done)
}

/// The rows of the one plan in a folder, each once.
fn read(path: &Path) -> Result<(Table, About), Failure> {
    let failed = |error| Failure::failed("cannot read the data set", error);
    let (root, part) = match path.file_name().and_then(|name| name.to_str()) {
        Some(name) if name.starts_with("plan=") => (path.with_file_name(""), name.to_owned()),
        _ => {
            let parts = Folder::new(path).parts().map_err(failed)?;
            match &parts[..] {
                [] => {
                    return Err(Failure::usage(format!(
                        "{}: there is no data set; `tack sweep PLAN` makes one",
                        path.display()
                    )));
                }
                [part] => (path.to_owned(), part.clone()),
                several => {
                    return Err(Failure::usage(format!(
                        "{} has several plans; name the folder of one: {}",
                        path.display(),
                        several.join(", ")
                    )));
                }
            }
        }
    };
    let read = Folder::new(&root).read(&part).map_err(failed)?;
    for (name, why) in &read.damaged {
        eprintln!(
            "tack: {}: {why}; it is left out",
            root.join(&part).join(name).display()
        );
    }
    let about = read.files.iter().find_map(|(_, _, about)| about.as_deref());
    let about = about.and_then(|about| serde_json::from_str(about).ok());
    match (
        Table::distinct(read.files.into_iter().map(|(_, table, _)| table)),
        about,
    ) {
        (Some(table), Some(about)) => Ok((table, about)),
        _ => Err(Failure::usage(format!(
            "{}: there are no rows; `tack sweep PLAN` makes them",
            root.join(part).display()
        ))),
    }
}
