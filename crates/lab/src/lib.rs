//! The lab: the figures of the TACK paper (SIGCOMM 2020) and of its sequel, measured again in the
//! simulator.
//!
//! A [`Figure`] is a module with a plan (scenarios, parameters, seeds), a reduction (means with 95
//! % confidence intervals), plots and machine-checked [`Claim`]s. [`run()`] does what a plan still
//! lacks and keeps it in a [`Store`], under a key made of the configuration and the version of the
//! code, so that a finished point is never run twice. [`page()`] makes one HTML page of all of it.
//!
//! Everything here is a pure function of configuration and seed. No clock is read.
//!
//! ```
//! use tack_lab::{Depth, FIGURES, Results};
//!
//! let figure = &FIGURES[0];
//! assert!(!figure.plan(&Depth::quick()).is_empty());
//! assert!(!figure.is_complete(&Depth::quick(), &Results::default()));
//! ```
#![forbid(unsafe_code)]

mod batches;
mod claim;
mod entry;
mod export;
mod figure;
mod figures;
mod measure;
mod page;
mod point;
mod recorded;
mod results;
mod run;
mod scenarios;
mod store;
mod summary;

pub use batches::{Accepted, Batch, BatchError, Batches, is_task, run_batch};
pub use claim::{Claim, Verdict};
pub use entry::Entry;
pub use export::{ExportError, Format, export};
pub use figure::{Depth, Extent, Figure, Only, Outcome, Paper, Plot, Table};
pub use figures::{FIGURES, REAL_TIME, real_time_paths};
pub use measure::{Measure, Receiver, Stack, Taking, Tuning, Values};
pub use page::page;
pub use point::{CODE_VERSION, Cell, Point};
pub use recorded::{Recorded, RecordedError};
pub use results::Results;
pub use run::{PointError, run};
pub use scenarios::Source;
pub use store::{Store, StoreError};
pub use summary::{claims_csv, claims_json, counts, markdown};
pub use tack_plot::Width;
pub use tack_stats::{Estimate, Finding};
