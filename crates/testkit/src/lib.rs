//! What the tests of `tack-tcp` stand on, all of it in virtual time.
//!
//! * [`Peer`]: one connection and a peer driven by hand, segment by segment, at exact instants;
//!   packet [`script`]s.
//! * [`Hosts`]: two endpoints, and nothing between them; [`Wires`]: packets between them that a
//!   test delivers in the order that it likes.
//! * [`Pair`]: the same with a network between them that can misbehave in every way, stepped
//!   from event to event, with the invariants checked at each one.
//!
//! Both print the segments that led to a failure.
#![forbid(unsafe_code)]

pub mod adversary;
pub mod duel;
pub mod hosts;
pub mod model;
pub mod pair;
pub mod pattern;
pub mod peer;
pub mod script;
mod segment;
mod side;
pub mod trace;
mod watch;
pub mod wires;

pub use hosts::Hosts;
pub use model::{Fate, Model};
pub use pair::Pair;
pub use peer::Peer;
pub use side::Side;
pub use wires::Wires;
