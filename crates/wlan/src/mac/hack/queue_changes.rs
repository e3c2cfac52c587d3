//! Changes that the driver makes to the transmit queue.

use alloc::vec::Vec;

use super::codec::FlowId;
use crate::frame::{Msdu, NodeId};

/// An acknowledgement for the transmit queue.
#[derive(Debug)]
pub(in crate::mac) struct Native<M> {
    pub(in crate::mac) msdu: Msdu<M>,
    pub(in crate::mac) to: NodeId,
    /// It is held compressed as well, so it may stay out of a queue that is full.
    pub(in crate::mac) is_twin: bool,
}

/// Changes to the transmit queue.
#[derive(Debug)]
pub(in crate::mac) struct QueueChanges<M> {
    pub(in crate::mac) to: NodeId,
    /// These leave it, in order: they are held compressed, and data is promised.
    pub(in crate::mac) recalled: Vec<Msdu<M>>,
    /// These join it, in order.
    pub(in crate::mac) natives: Vec<Native<M>>,
    /// Native acknowledgements of this flow that were never sent can be compressed where they
    /// wait.
    pub(in crate::mac) lacks_twins: Option<FlowId>,
}

impl<M> QueueChanges<M> {
    pub(super) fn none(to: NodeId) -> Self {
        Self {
            to,
            recalled: Vec::new(),
            natives: Vec::new(),
            lacks_twins: None,
        }
    }

    pub(super) fn queue_twins(&mut self, msdus: Vec<Msdu<M>>) {
        let to = self.to;
        let twin = |msdu| Native {
            msdu,
            to,
            is_twin: true,
        };
        self.natives.extend(msdus.into_iter().map(twin));
    }
}
