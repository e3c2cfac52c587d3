//! `tack doctor`: what limits a path to a peer, and what TACK saves there.
//!
//! It runs tests of `tack perf` one after the other with the peer's `tack perf --server`: requests
//! and responses alone, the same beside bulk data that fills queues (CUBIC), and beside bulk data
//! with each acknowledgement policy in turn. `diagnosis` says what the figures mean.

mod args;
mod diagnosis;
mod measure;
mod words;

pub(crate) use args::DoctorArgs;

use crate::exit::{Exit, Failure};
use crate::printer::with_stdout;

/// Measures, and says what limits the path.
pub(crate) async fn run(args: DoctorArgs) -> Result<Exit, Failure> {
    let is_json = args.json;
    let plan = args.plan()?;
    let mut signals = crate::signals::Signals::new()?;
    let measured = tokio::select! {
        measured = measure::measure(plan, !is_json) => measured?,
        exit = signals.next() => return Ok(exit),
    };
    let diagnosis = diagnosis::diagnose(&measured);
    with_stdout(|out| {
        if is_json {
            let object = serde_json::json!({
                "event": "doctor",
                "measured": measured,
                "diagnosis": diagnosis,
            });
            writeln!(out, "{object}")
        } else {
            out.write_all(words::text(&measured, &diagnosis).as_bytes())
        }
    })?;
    Ok(Exit::Done)
}
