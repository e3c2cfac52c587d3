//! Checks of this workspace that no compiler makes.
#![forbid(unsafe_code)]

mod circles;
mod comments;
mod deps;
mod dist;
mod doctests;
mod output;
mod places;
mod promises;
mod sources;
mod spec;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND

  deps    check which crate may use which, that no files of a crate need each other in a circle,
          that the pure crates are no_std, that only io is unsafe, that the files named in ARCHITECTURE.md exist,
          that comments are at most 100 columns wide, and that crates whose examples are not run have none
  dist    build the program as one static binary (Linux, musl) of at most 15 MiB, and write it with its manual pages
          and completion scripts to target/dist
  promises  check that each promise of docs/security.md names tests that exist
  spec    list the standards cited in the sources, and every deviation from them";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["deps"] => deps::check(),
        ["dist"] => dist::make(),
        ["promises"] => promises::check(),
        ["spec"] => spec::list(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
