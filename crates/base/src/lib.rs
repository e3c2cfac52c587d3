//! The small pure pieces every other crate stands on: time, rates, random streams, stream
//! positions, filters, timers.
//!
//! Nothing here reads a clock, opens a socket or starts a thread; `no_std` makes that a compile
//! error.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod filter;
pub mod random;
pub mod range_set;
pub mod rate;
pub mod stream_offset;
pub mod time;
pub mod timers;
pub mod units;

pub use core::time::Duration;
pub use rate::Rate;
pub use stream_offset::StreamOffset;
pub use time::Instant;
