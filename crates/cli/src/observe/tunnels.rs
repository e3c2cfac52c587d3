//! What the tunnels of this program carried and refused. Tunnels count it where it happens, and the
//! metrics show it.

use std::sync::LazyLock;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

type Labels = [(&'static str, &'static str); 1];

/// Counters of all tunnels of the program.
#[derive(Debug, Default)]
pub(crate) struct Tunnels {
    open: Gauge,
    opened: Counter,
    refused: Family<Labels, Counter>,
    /// Bytes of carried connections.
    pub(crate) bytes: BothWays,
    /// UDP datagrams.
    pub(crate) datagrams: BothWays,
    dropped: Family<Labels, Counter>,
}

/// A count for each direction.
#[derive(Debug)]
pub(crate) struct BothWays {
    shown: Family<Labels, Counter>,
    /// From this side to the peer.
    pub(crate) to_peer: Counter,
    /// From the peer to this side.
    pub(crate) from_peer: Counter,
}

impl Default for BothWays {
    fn default() -> Self {
        let shown: Family<Labels, Counter> = Family::default();
        let counter = |direction| shown.get_or_create_owned(&[("direction", direction)]);
        Self {
            to_peer: counter("to_peer"),
            from_peer: counter("from_peer"),
            shown,
        }
    }
}

/// Those of this program.
pub(crate) fn tunnels() -> &'static Tunnels {
    static TUNNELS: LazyLock<Tunnels> = LazyLock::new(Tunnels::default);
    &TUNNELS
}

/// A carried connection, for as long as it is open.
#[derive(Debug)]
pub(crate) struct OpenTunnel(Gauge);

impl Drop for OpenTunnel {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Tunnels {
    /// Counts a connection that is carried from now on until what is returned is dropped.
    pub(crate) fn opened(&self) -> OpenTunnel {
        self.opened.inc();
        self.open.inc();
        OpenTunnel(self.open.clone())
    }

    /// Counts a request that was refused, here or by the peer.
    pub(crate) fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&[("reason", reason)]).inc();
    }

    /// Counts a datagram that was not sent on.
    pub(crate) fn dropped(&self, reason: &'static str) {
        self.dropped.get_or_create(&[("reason", reason)]).inc();
    }

    /// Shows the counters in `registry`.
    pub(super) fn register(&self, registry: &mut Registry) {
        let it = registry.sub_registry_with_prefix("tunnel");
        it.register(
            "connections",
            "Carried connections that are open now",
            self.open.clone(),
        );
        it.register(
            "connections_opened",
            "Connections that were carried since the start",
            self.opened.clone(),
        );
        it.register(
            "refused",
            "Requests that were refused or not answered, by the reason",
            self.refused.clone(),
        );
        it.register_with_unit(
            "carried",
            "Bytes of carried connections",
            Unit::Bytes,
            self.bytes.shown.clone(),
        );
        it.register(
            "datagrams",
            "UDP datagrams from and to the peer",
            self.datagrams.shown.clone(),
        );
        it.register(
            "datagrams_dropped",
            "UDP datagrams that were not sent on, by the reason",
            self.dropped.clone(),
        );
    }
}
