//! `tack man`: the manual pages, generated from the definition of the command line.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::{Exit, Failure};

/// Writes a page for the program and one for each of its commands to `folder`.
pub(crate) fn write(folder: &Path) -> Result<Exit, Failure> {
    let failed = |error| Failure::failed(format!("cannot write to {}", folder.display()), error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(failed)?;
    println!("{}", folder.display());
    Ok(Exit::Done)
}
