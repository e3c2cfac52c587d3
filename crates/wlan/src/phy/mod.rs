//! The physical layer: rates, airtime, slot and gap lengths, response rates, and what noise does to
//! frames.
//!
//! Section numbers are those of IEEE Std 802.11-2020, and of 802.11ax-2021 for HE.

pub mod dsss;
pub mod error;
pub mod find;
pub mod he;
pub mod ht;
pub mod mcs;
pub mod mode;
pub mod ofdm;
pub mod response;
pub mod timing;
pub mod vht;

pub use dsss::{DsssRate, Preamble};
pub use error::{Awgn, ErrorModel};
pub use find::ModeQuery;
pub use he::HeMode;
pub use ht::HtMode;
pub use mcs::{GuardInterval, ModeError, Width};
pub use mode::{Mode, Standard};
pub use ofdm::OfdmRate;
pub use timing::{Band, Timing};
pub use vht::{SigB, VhtMode};

#[cfg(test)]
mod tests;
