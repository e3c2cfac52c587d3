//! Sweeps: a plan says which scenarios are run with which seeds; the rows become a Parquet data
//! set.
//!
//! A [`Plan`] is expanded to points; a [`Sweep`] makes batches of their runs; [`run_batch`] does a
//! batch, bytes in and bytes out, on any thread, process or machine; [`Sweep::accept`] takes
//! results in any order, also twice; a [`Folder`] keeps them. [`run_embedded`] does all of it on
//! the processors of this machine. The rows are a pure function of the plan: the clock only decides
//! how many runs a batch has.
//!
//! ```
//! use tack_sweep::{Plan, Sweep, run_batch};
//!
//! let text = "
//!     seeds = 2
//!     [scenario]
//!     duration = '200ms'
//!     flow = [{ ack = 'tack' }]
//!     [[axis]]
//!     key = 'wired.delay'
//!     values = ['5ms', '20ms']
//!     [columns]
//!     acks_per_segment = 'acks / data_segments'
//! ";
//! let no_files = |name: &str| Err(format!("{name} is not here"));
//! let plan = Plan::from_toml("delays.toml", text, &[], &no_files)?;
//! let mut sweep = Sweep::new(plan);
//! while let Some(batch) = sweep.next_batch(3) {
//!     let result = run_batch(&batch.task, &false.into())?;
//!     sweep.accept(&result)?;
//! }
//! assert_eq!(sweep.rows().len(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod embedded;
mod expression;
mod folder;
pub mod parquet_file;
mod plan;
mod quantity;
mod report;
mod run_columns;
mod sweep;
mod table;
mod task;

pub use embedded::{
    Opened, Outcome, Pace, SweepError, TASK_RUNS, TASK_SECONDS, open, run_embedded,
};
pub use expression::{Expression, ExpressionError, FUNCTIONS};
pub use folder::{Folder, FolderError, Read};
pub use plan::{About, Plan, Point};
pub use report::{Choice, Report, ReportError};
pub use run_columns::MOST_FLOWS;
pub use sweep::{Accepted, Batch, Counts, Damage, DataFile, Sweep, read_file};
pub use table::{Cell, ReadError, Table};
pub use tack_stats::Estimate;
pub use task::{CODE_VERSION, TaskError, run_batch};
