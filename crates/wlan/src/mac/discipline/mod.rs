//! Queue disciplines: what becomes of a packet that comes to a transmit queue, given what waits for the same receiver.
//!
//! A discipline sees only packets that were never sent. What was sent once keeps its place until it is settled: the receiver
//! may have it, and would discard another packet under its sequence number as a duplicate.

mod ack_filter;
mod cake;
mod fifo;
mod paper;
mod safe;
mod segment;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::link::WaitingFrame;
use crate::frame::Msdu;

pub use ack_filter::AckFilter;
pub use cake::{CakeFilter, Thinning};
pub use fifo::Fifo;
pub use paper::PaperFilter;
pub use safe::SafeFilter;
pub use segment::{Block, Flags, OtherOptions, SackBlocks, Segment, SegmentReader, Timestamps};

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
    /// What becomes of `msdu`, when `waiting` is what waits for its receiver. Asked before the capacity is checked, since a
    /// replacement needs no room. A position outside of `waiting` counts as [`Admission::Append`].
    fn admit(&mut self, msdu: &Msdu<M>, waiting: Waiting<'_, M>) -> Admission;
}

/// The discipline of each queue of a radio.
pub type BoxedDiscipline<M> = Box<dyn Discipline<M>>;

/// Packets that wait for one receiver and were never sent, oldest first.
#[derive(Debug)]
pub struct Waiting<'a, M> {
    frames: &'a VecDeque<WaitingFrame<M>>,
}

impl<M> Clone for Waiting<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Waiting<'_, M> {}

impl<'a, M> Waiting<'a, M> {
    pub(super) fn new(frames: &'a VecDeque<WaitingFrame<M>>) -> Self {
        Self { frames }
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// True when none waits.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The packets.
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = &'a Msdu<M>> + ExactSizeIterator + use<'a, M> {
        self.frames.iter().map(|frame| &frame.msdu)
    }
}
