//! Packets that wait and were never sent.

use alloc::collections::VecDeque;

use crate::frame::Msdu;

/// Not numbered yet, so never sent.
#[derive(Clone, Debug)]
pub(in crate::mac) struct WaitingFrame<M> {
    pub(in crate::mac) msdu: Msdu<M>,
    pub(in crate::mac) arrival: u64,
}

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
    pub(in crate::mac) fn new(frames: &'a VecDeque<WaitingFrame<M>>) -> Self {
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
