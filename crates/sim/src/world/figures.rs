//! The figures of flows, as reports and samples have them.

use tack_base::time::nanos;
use tack_base::{Duration, Instant};
use tack_tcp::{CloseReason, Connection, Stats};

use super::flows::{FlowState, Flows, Kind, Stream};
use super::host::Host;
use super::meter::Percentiles;
use super::progress::Progress;
use crate::observe::Sample;
use crate::report::{AcksByKind, FlowReport, LimitedBy, RequestReport};
use crate::scenario::{Flow, Scenario};

impl Flows {
    /// The warm-up is over.
    pub(super) fn end_warmup(&mut self, hosts: &[Host], now: Instant) {
        for state in &mut self.list {
            let stats = [0, 1].map(|side| state.stats(side, hosts, now));
            state.meter.end_warmup(stats);
            match &mut state.kind {
                Kind::Tcp(stream) => {
                    if let Some((source, player)) = &mut stream.video {
                        source.end_warmup();
                        player.end_warmup(now);
                    }
                }
                Kind::Udp(datagrams) => {
                    if let Some(video) = &mut datagrams.video {
                        video.end_warmup(now);
                    }
                }
            }
        }
    }

    pub(super) fn sample(
        &mut self,
        flow: usize,
        hosts: &[Host],
        now: Instant,
        interval: Duration,
    ) -> Sample {
        let state = &mut self.list[flow];
        let bytes = state.meter.since_sample();
        let stats = state.stats(0, hosts, now);
        let pacing = match &state.kind {
            Kind::Tcp(stream) => stream.ids[0]
                .and_then(|id| hosts[state.parties[0].index()].endpoint.get(id))
                .and_then(Connection::pacing_rate),
            Kind::Udp(_) => None,
        };
        Sample {
            at: now,
            flow,
            goodput_bps: bytes as f64 * 8.0 / interval.as_secs_f64(),
            cwnd: stats.cwnd,
            bytes_in_flight: stats.bytes_in_flight,
            srtt: stats.srtt,
            pacing_bps: pacing.map(tack_base::Rate::bits_per_sec),
            queue_packets: 0,
        }
    }

    pub(super) fn report(
        &self,
        scenario: &Scenario,
        hosts: &[Host],
        warmup: Instant,
        end: Instant,
    ) -> Vec<FlowReport> {
        self.list
            .iter()
            .zip(&scenario.flows)
            .enumerate()
            .map(|(id, (state, flow))| state.report(id, flow, hosts, warmup, end))
            .collect()
    }

    /// 95th percentile of the one-way delay of all flows' data packets together, microseconds;
    /// `None` without packets.
    pub(super) fn one_way_p95(&self) -> Option<u64> {
        let mut all = Percentiles::new();
        for state in &self.list {
            all.add(&state.meter.one_way);
        }
        all.quantile(0.95)
    }
}

impl FlowState {
    /// The figures of flow `id`, from the later of its start and `warmup` to the earlier of its
    /// completion and `end`.
    pub(super) fn report(
        &self,
        id: usize,
        flow: &Flow,
        hosts: &[Host],
        warmup: Instant,
        end: Instant,
    ) -> FlowReport {
        let meter = &self.meter;
        let begin = self.start.max(warmup);
        let until = meter.completed.unwrap_or(end);
        let measured = until.saturating_since(begin).as_secs_f64();
        let bytes = meter.measured();
        let common = FlowReport {
            id,
            from: flow.from.name().into_owned(),
            to: flow.to.name().into_owned(),
            goodput_bps: if measured > 0.0 {
                bytes as f64 * 8.0 / measured
            } else {
                0.0
            },
            bytes_delivered: bytes,
            owd_p50_us: meter.one_way.quantile(0.5),
            owd_p95_us: meter.one_way.quantile(0.95),
            blocked_bytes_p50: meter.blocked.quantile(0.5).unwrap_or(0),
            blocked_bytes_p99: meter.blocked.quantile(0.99).unwrap_or(0),
            completion_s: meter
                .completed
                .filter(|_| self.bytes.is_some() || self.stop.is_some())
                .map(|at| at.saturating_since(self.start).as_secs_f64()),
            ..FlowReport::default()
        };
        match &self.kind {
            Kind::Tcp(stream) => self.report_tcp(stream, common, hosts, end),
            Kind::Udp(datagrams) => FlowReport {
                transport: "udp",
                ack: datagrams.ack_name(),
                data_segments: meter.datagrams,
                acks: meter.datagram_acks.0,
                ack_bytes: meter.datagram_acks.1,
                video: datagrams.video.as_ref().map(|video| video.report(end)),
                ..common
            },
        }
    }

    fn report_tcp(
        &self,
        stream: &Stream,
        common: FlowReport,
        hosts: &[Host],
        end: Instant,
    ) -> FlowReport {
        let [sender, receiver] = [0, 1].map(|side| self.stats(side, hosts, end));
        let [sender_before, receiver_before] = &self.meter.at_warmup;
        let micros = |duration: Option<Duration>| duration.map(|duration| nanos(duration) / 1_000);
        let latency = &self.meter.latency;
        FlowReport {
            transport: "tcp",
            congestion: Some(stream.flow.config.congestion_name()),
            ack: Some(stream.flow.config.ack_name()),
            data_segments: sender.data_segments - sender_before.data_segments,
            retransmitted_segments: sender.retransmitted_segments
                - sender_before.retransmitted_segments,
            spurious_retransmissions: sender.spurious_retransmissions
                - sender_before.spurious_retransmissions,
            acks: receiver.acks - receiver_before.acks,
            acks_by_kind: AcksByKind {
                tack: receiver.acks_tack - receiver_before.acks_tack,
                iack_loss: receiver.acks_loss - receiver_before.acks_loss,
                iack_window: receiver.acks_window - receiver_before.acks_window,
                iack_sync: receiver.acks_sync - receiver_before.acks_sync,
                iack_event: receiver.acks_event - receiver_before.acks_event,
                delayed: receiver.acks_delayed - receiver_before.acks_delayed,
            },
            acks_by_timer: receiver.acks_by_timer - receiver_before.acks_by_timer,
            invalid_reports: sender.invalid_reports - sender_before.invalid_reports,
            ack_bytes: receiver.ack_bytes - receiver_before.ack_bytes,
            syncs: sender.syncs - sender_before.syncs,
            tlp_count: sender.tlp_count - sender_before.tlp_count,
            rto_count: sender.rto_count - sender_before.rto_count,
            min_rtt_us: micros(sender.min_rtt),
            srtt_us: micros(sender.srtt),
            limited_by: limits(&sender, sender_before),
            limited_by_overall: limits(&sender, &Stats::default()),
            stalls: stream.progress.iter().map(Progress::stalls).sum(),
            no_progress_max_s: stream
                .progress
                .iter()
                .map(Progress::longest)
                .max()
                .unwrap_or_default()
                .as_secs_f64(),
            requests: stream.exchanges.as_ref().map(|_| RequestReport {
                completed: latency.count(),
                latency_p50_us: latency.quantile(0.5).unwrap_or(0),
                latency_p95_us: latency.quantile(0.95).unwrap_or(0),
                latency_p99_us: latency.quantile(0.99).unwrap_or(0),
                latency_max_us: latency.max(),
            }),
            video: stream
                .video
                .as_ref()
                .map(|(source, player)| player.report(source, end)),
            closed: [0, 1].map(|side| {
                stream.closed[side]
                    .as_ref()
                    .map(|(reason, _)| close_name(*reason))
            }),
            ..common
        }
    }
}

/// Shares of the time from `before` to `after`.
fn limits(after: &Stats, before: &Stats) -> LimitedBy {
    let spent = [
        (after.limited_by_cwnd, before.limited_by_cwnd),
        (after.limited_by_rwnd, before.limited_by_rwnd),
        (after.limited_by_pacing, before.limited_by_pacing),
        (after.limited_by_app, before.limited_by_app),
    ]
    .map(|(after, before)| after.saturating_sub(before).as_secs_f64());
    let total: f64 = spent.iter().sum();
    let [cwnd, rwnd, pacing, app] = spent.map(|part| if total > 0.0 { part / total } else { 0.0 });
    LimitedBy {
        cwnd,
        rwnd,
        pacing,
        app,
    }
}

const fn close_name(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Graceful => "graceful",
        CloseReason::Reset => "reset",
        CloseReason::Refused => "refused",
        CloseReason::Unreachable => "unreachable",
        CloseReason::TimedOut => "timed_out",
        CloseReason::NoRoute => "no_route",
        CloseReason::Aborted => "aborted",
        CloseReason::Dishonest => "dishonest",
        CloseReason::NoMemory => "no_memory",
        _ => "other",
    }
}
