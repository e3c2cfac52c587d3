//! Queue disciplines: what becomes of a packet that comes to a transmit queue, given what waits for
//! the same receiver.
//!
//! A discipline sees only packets that were never sent. What was sent once keeps its place until it
//! is settled: the receiver may have it, and would discard another packet under its sequence number
//! as a duplicate.

mod ack_filter;
mod cake;
mod fifo;
mod paper;
mod safe;
mod segment;
#[cfg(test)]
mod tests;
mod waiting;

use alloc::boxed::Box;

use crate::frame::Msdu;

pub use ack_filter::AckFilter;
pub use cake::{CakeFilter, Thinning};
pub use fifo::Fifo;
pub use paper::PaperFilter;
pub use safe::SafeFilter;
pub use segment::{Block, Flags, OtherOptions, SackBlocks, Segment, SegmentReader, Timestamps};
pub use waiting::Waiting;
pub(super) use waiting::WaitingFrame;

/// What becomes of a packet that arrives. Positions are those of [`Waiting`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It goes to the tail, if the queue has room.
    Append,
    /// It takes the place of the packet at this position, which goes.
    Replace(usize),
    /// The packet at this position goes, and the new one goes to the tail.
    Supersede(usize),
}

/// Decides about packets that arrive at one queue.
pub trait Discipline<M>: core::fmt::Debug + Send {
    /// What becomes of `msdu`, when `waiting` is what waits for its receiver. Asked before the
    /// capacity is checked, since a replacement needs no room. A position outside of `waiting`
    /// counts as [`Admission::Append`].
    fn admit(&mut self, msdu: &Msdu<M>, waiting: Waiting<'_, M>) -> Admission;
}

/// The discipline of each queue of a radio.
pub type BoxedDiscipline<M> = Box<dyn Discipline<M>>;
