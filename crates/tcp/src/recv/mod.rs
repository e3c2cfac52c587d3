//! The receiving half: reassembly, the window offered, and what to report about holes and
//! duplicates.

pub(crate) mod duplicates;
pub(crate) mod reassembly;
pub(crate) mod round_trip;
pub(crate) mod window;
