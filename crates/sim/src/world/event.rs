//! Events of a run, and errors that end it.

use crate::scenario::Party;

/// An invariant that does not hold.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) flow: usize,
    pub(super) host: Party,
    pub(super) what: String,
}

/// An event of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The path of this direction has a packet for its far end.
    Arrival(usize),
    /// The path that this host sends into has room for saturating flows.
    Fill(usize),
    /// The wireless network has something to do.
    Wireless,
    /// A host gets round to a packet that arrived.
    Process(usize),
    /// A timer of a host.
    Wake(usize),
    /// A flow begins.
    Start(usize),
    /// A flow's sender stops.
    Stop(usize),
    /// An application does the next thing.
    App(usize),
    /// The receiver of a flow stops reading, or reads again.
    Pause(usize),
    Resume(usize),
    /// The warm-up is over.
    Warm,
    /// An observer wants samples.
    Sample(usize),
}
