//! Means with confidence intervals, and what they decide.
//!
//! ```
//! use tack_stats::Estimate;
//!
//! let goodput = Estimate::of(&[9.0, 10.0, 11.0]);
//! assert_eq!(goodput.to_string(), "10 ± 2.48");
//! assert!(goodput.is_above(5.0).is_sure());
//! ```
#![forbid(unsafe_code)]

mod estimate;
mod finding;

pub use estimate::Estimate;
pub use finding::Finding;
