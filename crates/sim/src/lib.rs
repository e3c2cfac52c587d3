//! A discrete-event simulator that drives the real TCP in virtual time.
//!
//! A [`Scenario`] comes from a TOML file; [`run`] turns it and a seed into a [`Report`], always the
//! same one. Two hosts, `server` and `client`, each own a [`tack_tcp::Endpoint`]; packets between
//! them are real header bytes and a shared payload and pass, in each direction, a [`path::Path`]
//! with its queue, its rate and its faults.
//!
//! ```
//! use tack_sim::{Observers, Scenario, run};
//!
//! let text = "
//!     duration = '1s'
//!     [wired]
//!     rate = '10Mbps'
//!     [[flow]]
//!     transport = 'udp'
//!     rate = '5Mbps'
//! ";
//! let scenario = Scenario::from_toml("example.toml", text, &[])?;
//! let report = run(&scenario, 1, &mut Observers::default())?;
//! assert!((4.9e6..5.1e6).contains(&report.flows[0].goodput_bps));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod hack;
pub mod impair;
mod jobs;
pub mod kernel;
pub mod link;
pub mod observe;
pub mod packet;
pub mod path;
pub mod report;
pub mod scenario;
mod world;

pub use jobs::{JobsError, run_jobs};
pub use observe::{Blocked, Capture, Observer, PacketEvent, Passing, Qlog, Sample, Series};
pub use report::{FlowReport, Report, table, write_csv};
pub use scenario::{Scenario, ScenarioError, parse_seeds};
pub use world::{Arrival, Checks, Network, Observers, RunError, run};
