//! Runs a scenario file and prints what its connections did and why, as JSON lines: `qlog FILE
//! [KEY=VALUE]…`.

use std::error::Error;
use std::io::{BufWriter, stdout};
use std::path::Path;

use tack_sim::{Observers, Qlog, Scenario, run};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: qlog FILE [KEY=VALUE]…")?;
    let overrides: Vec<_> = arguments.collect();
    let scenario = Scenario::from_file(Path::new(&file), &overrides)?;
    let mut qlog = Qlog::new(BufWriter::new(stdout().lock()))?;
    run(
        &scenario,
        scenario.seed,
        &mut Observers::default().with(&mut qlog),
    )?;
    Ok(())
}
