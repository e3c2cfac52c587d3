//! Looking at the connections of an endpoint from beside it, without keeping it open.
//!
//! Nothing of this costs anything on an endpoint that nobody watches, and on a watched one nothing
//! for a segment: counters are read when they are asked for. Traces, where they are wanted, are
//! kept by each connection, a few thousand events of it between two looks.

use std::sync::{Arc, Mutex, Weak};

use tack_base::Instant;
use tack_tcp::trace::TraceDetail;
use tack_tcp::{ConnectionId, State as TcpState};

use crate::endpoint::Endpoint;
use crate::journal::{ConnectionView, Journal, Phase, Watched, locked};
use crate::shared::Shared;
use crate::state::State;

/// What a monitor wants to know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Watching {
    /// Counters.
    Counters,
    /// Counters, and what each connection that begins from now on does and why.
    Traces,
    /// The same, and each data segment that leaves or arrives.
    Segments,
}

/// Looks at the connections of an endpoint. It does not keep the endpoint open.
#[derive(Clone, Debug)]
pub struct Monitor {
    shared: Weak<Shared>,
    journal: Arc<Mutex<Journal>>,
}

impl Endpoint {
    /// A monitor of this endpoint. There is one list of connections that ended: of several monitors
    /// the first one that looks gets it.
    pub fn monitor(&self, watching: Watching) -> Monitor {
        let detail = match watching {
            Watching::Counters => None,
            Watching::Traces => Some(TraceDetail::Decisions),
            Watching::Segments => Some(TraceDetail::Segments),
        };
        let journal = self.handle.change(|state| {
            let watched = state.watched.get_or_insert_with(|| Watched {
                journal: Arc::default(),
                traces: detail,
            });
            watched.traces = watched.traces.max(detail);
            Arc::clone(&watched.journal)
        });
        Monitor {
            shared: Arc::downgrade(&self.handle.0.0),
            journal,
        }
    }
}

impl Monitor {
    /// All connections that the program holds or that have something to deliver, and before them
    /// those that ended since the last look, each in the order of their beginning. `None` once the
    /// endpoint is gone and all that ended has been told.
    pub fn look(&self) -> Option<Vec<ConnectionView>> {
        let shared = self.shared.upgrade();
        let living = shared.as_ref().map(|shared| {
            let now = shared.clock.now();
            shared.change(|state| state.views(now))
        });
        let mut views = std::mem::take(&mut locked(&self.journal).departed);
        if living.is_none() && views.is_empty() {
            return None;
        }
        views.extend(living.unwrap_or_default());
        Some(views)
    }

    /// Connections of which [`Monitor::look`] could not tell that they ended, because too many did.
    pub fn missed(&self) -> u64 {
        locked(&self.journal).missed
    }
}

impl State {
    /// To be called for a connection that the application holds from now on.
    pub(crate) fn watch(&mut self, id: ConnectionId) {
        if let Some(watched) = &self.watched
            && let Some(detail) = watched.traces
            && let Some(connection) = self.core.get_mut(id)
        {
            connection.enable_trace(detail);
        }
    }

    /// The application lets go of a connection, or the endpoint ends.
    pub(crate) fn depart(&mut self, now: Instant, id: ConnectionId) {
        let Some(journal) = self.watched.as_ref().map(|it| Arc::clone(&it.journal)) else {
            return;
        };
        if let Some(mut view) = self.view(now, id) {
            view.phase = Phase::Departed;
            locked(&journal).add(view);
        }
    }

    fn views(&mut self, now: Instant) -> Vec<ConnectionView> {
        let mut ids = self.held();
        ids.sort_unstable();
        ids.into_iter()
            .filter_map(|id| self.view(now, id))
            .collect()
    }

    /// Connections of the application, and those that it let go of, in no order.
    pub(crate) fn held(&self) -> Vec<ConnectionId> {
        self.slots.keys().chain(&self.released).copied().collect()
    }

    fn view(&mut self, now: Instant, id: ConnectionId) -> Option<ConnectionView> {
        let tuple = self.core.tuple(id)?;
        let traces = (self.watched.as_ref()).is_some_and(|watched| watched.traces.is_some());
        let mut events = Vec::new();
        if traces && let Some(connection) = self.core.get_mut(id) {
            while let Some(event) = connection.poll_trace() {
                events.push(event);
            }
        }
        let connection = self.core.get(id)?;
        Some(ConnectionView {
            id,
            peer: tuple.peer,
            local_port: tuple.local_port,
            remote_port: tuple.remote_port,
            accepted: self.slots.get(&id).is_some_and(|slot| slot.accepted),
            phase: match connection.state() {
                TcpState::SynSent | TcpState::SynReceived => Phase::Opening,
                TcpState::Established => Phase::Open,
                TcpState::Closed => Phase::Departed,
                _ => Phase::Closing,
            },
            stats: connection.stats(now),
            events,
            events_forgotten: connection.trace_forgotten(),
        })
    }
}
