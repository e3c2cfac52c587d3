//! What all connections of the program counted, those that have ended included.
//!
//! Endpoints register when they are made ([`register`]). A look asks each of them for the counters
//! of its connections, and adds what is new since the last look.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tack::{ConnectionId, ConnectionView, Endpoint, LossSign, Monitor, Phase, Stats, Watching};

/// What is to be known of endpoints; `None` while nobody watches.
static WATCHED: Mutex<Option<Registered>> = Mutex::new(None);

#[derive(Debug)]
struct Registered {
    watching: Watching,
    /// Made since the last look.
    new: Vec<Monitor>,
}

fn watched() -> MutexGuard<'static, Option<Registered>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on new endpoints are watched.
pub(super) fn begin(watching: Watching) {
    *watched() = Some(Registered {
        watching,
        new: Vec::new(),
    });
}

/// To be called for each new endpoint of a command that can be watched.
pub(crate) fn register(endpoint: &Endpoint) {
    if let Some(registered) = &mut *watched() {
        let monitor = endpoint.monitor(registered.watching);
        registered.new.push(monitor);
    }
}

/// Names a connection among all of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    endpoint: u64,
    id: ConnectionId,
}

/// Something new about a connection.
#[derive(Debug)]
pub(super) struct Update<'a> {
    pub(super) key: Key,
    pub(super) view: &'a ConnectionView,
    /// It was not there at the last look.
    pub(super) is_new: bool,
    /// Counted since the last look.
    pub(super) delta: &'a Delta,
}

/// Counters of connections over some time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delta(pub(crate) Stats);

/// Looks at all endpoints.
#[derive(Debug, Default)]
pub(super) struct Collector {
    endpoints: BTreeMap<u64, Watched>,
    next: u64,
    opened: u64,
}

#[derive(Debug)]
struct Watched {
    monitor: Monitor,
    /// Counters of each connection at the last look.
    last: HashMap<ConnectionId, Stats>,
}

/// How many connections there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Connections {
    pub(super) opened: u64,
    pub(super) open: u64,
}

impl Collector {
    /// Looks, and tells `each` what is new of every connection, in the order of their beginning.
    pub(super) fn look(&mut self, mut each: impl FnMut(&Update<'_>)) -> Connections {
        let new = watched().as_mut().map(|it| std::mem::take(&mut it.new));
        for monitor in new.into_iter().flatten() {
            let last = HashMap::new();
            self.endpoints.insert(self.next, Watched { monitor, last });
            self.next += 1;
        }
        let mut open = 0;
        let opened = &mut self.opened;
        self.endpoints.retain(|number, watched| {
            let Some(views) = watched.monitor.look() else {
                return false;
            };
            let mut seen = HashMap::with_capacity(views.len());
            for view in &views {
                let before = seen.get(&view.id).or_else(|| watched.last.get(&view.id));
                let is_new = before.is_none();
                let delta = Delta::between(before.unwrap_or(&Stats::default()), &view.stats);
                *opened += u64::from(is_new);
                open += u64::from(view.phase != Phase::Departed);
                each(&Update {
                    key: Key {
                        endpoint: *number,
                        id: view.id,
                    },
                    view,
                    is_new,
                    delta: &delta,
                });
                seen.insert(view.id, view.stats.clone());
            }
            watched.last = seen;
            true
        });
        Connections {
            opened: self.opened,
            open,
        }
    }
}

impl Delta {
    /// Counters of `now` less those of `before`; estimates are those of `now`.
    pub(crate) fn between(before: &Stats, now: &Stats) -> Self {
        let mut delta = now.clone();
        for counter in COUNTERS {
            *counter(&mut delta) -= (*counter(&mut before.clone())).min(*counter(&mut delta));
        }
        delta.limited_by_cwnd = now.limited_by_cwnd.saturating_sub(before.limited_by_cwnd);
        delta.limited_by_rwnd = now.limited_by_rwnd.saturating_sub(before.limited_by_rwnd);
        delta.limited_by_pacing = now
            .limited_by_pacing
            .saturating_sub(before.limited_by_pacing);
        delta.limited_by_app = now.limited_by_app.saturating_sub(before.limited_by_app);
        Self(delta)
    }
}

/// The counters among the fields.
pub(super) const COUNTERS: [fn(&mut Stats) -> &mut u64; 28 + LossSign::ALL.len()] = [
    |it| &mut it.data_segments,
    |it| &mut it.data_bytes,
    |it| &mut it.retransmitted_segments,
    |it| &mut it.retransmitted_bytes,
    |it| &mut it.spurious_retransmissions,
    |it| &mut it.acks,
    |it| &mut it.ack_bytes,
    |it| &mut it.acks_delayed,
    |it| &mut it.acks_by_timer,
    |it| &mut it.acks_loss,
    |it| &mut it.acks_window,
    |it| &mut it.acks_tack,
    |it| &mut it.acks_sync,
    |it| &mut it.syncs,
    |it| &mut it.acks_event,
    |it| &mut it.acks_received,
    |it| &mut it.segments_received,
    |it| &mut it.bytes_acked,
    |it| &mut it.bytes_read,
    |it| &mut it.duplicate_segments,
    |it| &mut it.rto_count,
    |it| &mut it.tlp_count,
    |it| &mut it.fast_recoveries,
    |it| &mut it.undone_episodes,
    |it| &mut it.ce_received,
    |it| &mut it.dropped_segments,
    |it| &mut it.invalid_reports,
    |it| &mut it.pruned,
    |it| it.losses.of_mut(LossSign::Report),
    |it| it.losses.of_mut(LossSign::Overdue),
    |it| it.losses.of_mut(LossSign::Rack),
    |it| it.losses.of_mut(LossSign::DuplicateAcks),
    |it| it.losses.of_mut(LossSign::PartialAck),
    |it| it.losses.of_mut(LossSign::Probe),
    |it| it.losses.of_mut(LossSign::Timeout),
    |it| it.losses.of_mut(LossSign::PathMtu),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_subtracted_and_estimates_are_not() {
        let (mut before, mut now) = (Stats::default(), Stats::default());
        before.acks = 3;
        now.acks = 10;
        now.cwnd = 7;
        let delta = Delta::between(&before, &now).0;
        assert_eq!((delta.acks, delta.cwnd), (7, 7));
        // A counter that went back is one that begins anew.
        assert_eq!(Delta::between(&now, &before).0.acks, 0);
    }
}
