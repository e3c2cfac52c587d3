//! The metrics of the connections, in the text format of OpenMetrics, which Prometheus reads.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tack::LossSign;

use super::airtime;
use super::collector::{Connections, Update};
use super::tunnels::tunnels;

/// What a scraper gets.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Commands that carry connections of other programs.
const TUNNEL_PROGRAMS: [&str; 5] = ["serve", "forward", "proxy", "exec", "gateway"];

type Labels = Vec<(&'static str, &'static str)>;
type Seconds = Counter<f64, AtomicU64>;

/// The metrics.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    opened: Counter,
    open: Gauge,
    acks_sent: Family<Labels, Counter>,
    acks_received: Counter,
    ack_bytes: Counter,
    syncs: Counter,
    avoided: Counter,
    airtime: Seconds,
    rtt: Histogram,
    data_segments: Counter,
    data_bytes: Counter,
    retransmitted_segments: Counter,
    retransmitted_bytes: Counter,
    spurious: Counter,
    lost_segments: Family<Labels, Counter>,
    loss_episodes: Family<Labels, Counter>,
    undone: Counter,
    probes: Counter,
    acknowledged_bytes: Counter,
    read_bytes: Counter,
    segments_received: Family<Labels, Counter>,
    marks: Counter,
    limited: Family<Labels, Seconds>,
}

impl Metrics {
    /// Of the command `program`.
    pub(super) fn new(program: &'static str) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("tack"),
            opened: Counter::default(),
            open: Gauge::default(),
            acks_sent: Family::default(),
            acks_received: Counter::default(),
            ack_bytes: Counter::default(),
            syncs: Counter::default(),
            avoided: Counter::default(),
            airtime: Seconds::default(),
            // From 50 microseconds to 13 seconds.
            rtt: Histogram::new(exponential_buckets(50e-6, 2.0, 19)),
            data_segments: Counter::default(),
            data_bytes: Counter::default(),
            retransmitted_segments: Counter::default(),
            retransmitted_bytes: Counter::default(),
            spurious: Counter::default(),
            lost_segments: Family::default(),
            loss_episodes: Family::default(),
            undone: Counter::default(),
            probes: Counter::default(),
            acknowledged_bytes: Counter::default(),
            read_bytes: Counter::default(),
            segments_received: Family::default(),
            marks: Counter::default(),
            limited: Family::default(),
        };
        metrics.register(program);
        metrics
    }

    fn register(&mut self, program: &'static str) {
        let it = &mut self.registry;
        let version = env!("CARGO_PKG_VERSION");
        it.register(
            "build",
            "The program",
            Info::new(vec![("version", version), ("command", program)]),
        );
        it.register(
            "connections_opened",
            "Connections that were established or attempted",
            self.opened.clone(),
        );
        it.register(
            "connections",
            "Connections that exist now",
            self.open.clone(),
        );
        it.register(
            "acks_sent",
            "Pure acknowledgements sent: of which kind, and why",
            self.acks_sent.clone(),
        );
        it.register(
            "acks_received",
            "Pure acknowledgements received",
            self.acks_received.clone(),
        );
        it.register_with_unit(
            "ack",
            "Bytes of the acknowledgements sent, TCP header and options",
            Unit::Bytes,
            self.ack_bytes.clone(),
        );
        it.register(
            "syncs_sent",
            "Segments that reported RTTmin and the loss rate of acknowledgements to a peer",
            self.syncs.clone(),
        );
        it.register(
            "acks_avoided",
            "Acknowledgements not sent, of those that every second segment would have caused",
            self.avoided.clone(),
        );
        it.register_with_unit("ack_airtime_saved", "Estimated airtime of the avoided acknowledgements on 802.11n at 65 Mbit/s, each with a channel access of its own", Unit::Seconds, self.airtime.clone());
        it.register_with_unit(
            "rtt",
            "Smoothed round-trip time of each connection, once a second",
            Unit::Seconds,
            self.rtt.clone(),
        );
        it.register(
            "data_segments_sent",
            "Segments with payload sent, retransmissions included",
            self.data_segments.clone(),
        );
        it.register_with_unit(
            "data_sent",
            "Payload sent, retransmissions included",
            Unit::Bytes,
            self.data_bytes.clone(),
        );
        it.register(
            "retransmitted_segments",
            "Segments that carried bytes sent before",
            self.retransmitted_segments.clone(),
        );
        it.register_with_unit(
            "retransmitted",
            "Payload of those",
            Unit::Bytes,
            self.retransmitted_bytes.clone(),
        );
        it.register(
            "spurious_retransmissions",
            "Retransmissions of what the peer had",
            self.spurious.clone(),
        );
        it.register(
            "lost_segments",
            "Segments declared lost, by the mechanism that detected the loss; spurious ones count",
            self.lost_segments.clone(),
        );
        it.register("loss_episodes", "Episodes of loss recovery, by what found the loss: acknowledgements and their timing, or the retransmission timeout", self.loss_episodes.clone());
        it.register(
            "loss_episodes_undone",
            "Episodes that turned out to be false",
            self.undone.clone(),
        );
        it.register(
            "tail_loss_probes",
            "Tail loss probes sent",
            self.probes.clone(),
        );
        it.register_with_unit(
            "acknowledged",
            "Payload that peers acknowledged",
            Unit::Bytes,
            self.acknowledged_bytes.clone(),
        );
        it.register_with_unit(
            "read",
            "Payload received and read by the program",
            Unit::Bytes,
            self.read_bytes.clone(),
        );
        it.register(
            "segments_received",
            "Segments received, by what became of them",
            self.segments_received.clone(),
        );
        it.register(
            "congestion_marks_received",
            "Congestion-experienced marks received",
            self.marks.clone(),
        );
        it.register_with_unit(
            "sender_limited",
            "Time that sending waited for each thing",
            Unit::Seconds,
            self.limited.clone(),
        );
        if TUNNEL_PROGRAMS.contains(&program) {
            tunnels().register(it);
        }
    }

    /// Adds what is new of a connection.
    /// `samples` round-trip times, too.
    pub(super) fn add(&self, update: &Update<'_>, samples: bool) {
        let delta = &update.delta.0;
        // The policy of a connection is one of the two, so its timer's acknowledgements are, too.
        let tack_by_timer = delta.acks_by_timer.min(delta.acks_tack);
        let delayed_by_timer = (delta.acks_by_timer - tack_by_timer).min(delta.acks_delayed);
        for (kind, reason, count) in [
            ("tack", "timer", tack_by_timer),
            ("tack", "count", delta.acks_tack - tack_by_timer),
            ("delayed", "timer", delayed_by_timer),
            ("delayed", "count", delta.acks_delayed - delayed_by_timer),
            ("immediate", "loss", delta.acks_loss),
            ("immediate", "window", delta.acks_window),
            ("immediate", "sync", delta.acks_sync),
            ("immediate", "event", delta.acks_event),
        ] {
            let labels = vec![("kind", kind), ("reason", reason)];
            self.acks_sent.get_or_create(&labels).inc_by(count);
        }
        self.acks_received.inc_by(delta.acks_received);
        self.ack_bytes.inc_by(delta.ack_bytes);
        self.syncs.inc_by(delta.syncs);
        // Of the whole life of the connection: between two looks halves would be lost.
        let stats = &update.view.stats;
        let before = (
            stats.segments_received - delta.segments_received.min(stats.segments_received),
            stats.acks - delta.acks.min(stats.acks),
        );
        let avoided = airtime::acks_avoided(stats.segments_received, stats.acks)
            .saturating_sub(airtime::acks_avoided(before.0, before.1));
        self.avoided.inc_by(avoided);
        let saved = airtime::of_one_ack().as_secs_f64() * avoided as f64;
        self.airtime.inc_by(saved);
        if samples
            && stats.acks_received > 0
            && let Some(srtt) = stats.srtt
        {
            self.rtt.observe(srtt.as_secs_f64());
        }
        self.data_segments.inc_by(delta.data_segments);
        self.data_bytes.inc_by(delta.data_bytes);
        self.retransmitted_segments
            .inc_by(delta.retransmitted_segments);
        self.retransmitted_bytes.inc_by(delta.retransmitted_bytes);
        self.spurious.inc_by(delta.spurious_retransmissions);
        for sign in LossSign::ALL {
            self.lost_segments
                .get_or_create(&vec![("detector", sign.name())])
                .inc_by(delta.losses.of(sign));
        }
        for (cause, count) in [
            ("acknowledgements", delta.fast_recoveries),
            ("timeout", delta.rto_count),
        ] {
            self.loss_episodes
                .get_or_create(&vec![("cause", cause)])
                .inc_by(count);
        }
        self.undone.inc_by(delta.undone_episodes);
        self.probes.inc_by(delta.tlp_count);
        self.acknowledged_bytes.inc_by(delta.bytes_acked);
        self.read_bytes.inc_by(delta.bytes_read);
        for (outcome, count) in [
            (
                "data",
                delta
                    .segments_received
                    .saturating_sub(delta.duplicate_segments),
            ),
            ("duplicate", delta.duplicate_segments),
            (
                "dropped",
                delta.dropped_segments.saturating_sub(delta.invalid_reports),
            ),
            ("invalid_report", delta.invalid_reports),
        ] {
            self.segments_received
                .get_or_create(&vec![("outcome", outcome)])
                .inc_by(count);
        }
        self.marks.inc_by(delta.ce_received);
        for (by, time) in [
            ("cwnd", delta.limited_by_cwnd),
            ("rwnd", delta.limited_by_rwnd),
            ("pacing", delta.limited_by_pacing),
            ("app", delta.limited_by_app),
        ] {
            self.limited
                .get_or_create(&vec![("by", by)])
                .inc_by(time.as_secs_f64());
        }
    }

    /// How many connections there are.
    pub(super) fn count(&self, connections: Connections) {
        self.open.set(connections.open as i64);
        self.opened
            .inc_by(connections.opened - self.opened.get().min(connections.opened));
    }

    /// The text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
