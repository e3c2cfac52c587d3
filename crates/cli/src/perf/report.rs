//! What a test measured: intervals while it runs, a summary at its end; in JSON as they are, for
//! people see `lines`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::latency::{Latency, Times};
use super::request::TestRequest;
use super::results::{Datagrams, FlowResult, Snapshot};
use super::security::Protection;
use crate::net::AcksByKind;
use crate::printer::bits_per_second;

/// What this side does on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Sender,
    Receiver,
    /// Sends requests and waits for responses.
    Requester,
    /// Answers requests.
    Responder,
}

/// The counters of a connection in one role over an interval.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct IntervalRow {
    pub(crate) stream: usize,
    pub(crate) role: Role,
    /// Sender: bytes newly acknowledged. All others: bytes newly read.
    pub(crate) bytes: u64,
    pub(crate) bits_per_second: f64,
    pub(crate) retransmitted_segments: u64,
    pub(crate) acks_sent: u64,
    pub(crate) acks_received: u64,
    pub(crate) cwnd: u64,
    pub(crate) bytes_in_flight: u64,
    pub(crate) srtt_us: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rttvar_us: Option<f64>,
    /// The congestion controller's own RTTmin, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cc_min_rtt_us: Option<f64>,
    /// Bytes that the peer's window admits.
    #[serde(default)]
    pub(crate) snd_wnd: u64,
    /// How long the transactions of the interval took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Latency>,
    /// Counters of datagrams in a UDP test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) datagrams: Option<Datagrams>,
}

/// The counters of all connections over an interval.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Interval {
    pub(crate) start: f64,
    pub(crate) end: f64,
    /// Before the results begin.
    #[serde(default)]
    pub(crate) omitted: bool,
    pub(crate) streams: Vec<IntervalRow>,
    pub(crate) sent_bits_per_second: f64,
    pub(crate) received_bits_per_second: f64,
}

/// The server's intervals, as far as they fit; in the form that the request asks for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Output {
    Text(String),
    Json(Vec<Interval>),
}

/// Makes intervals from snapshots of the connections of one side.
#[derive(Debug)]
pub(crate) struct Intervals {
    sends: bool,
    receives: bool,
    /// Streams with bulk data; further ones exchange requests and responses.
    bulk: usize,
    /// This side sends the requests.
    asks: bool,
    last_time: f64,
    last: Vec<Snapshot>,
    counted: Vec<Counted>,
}

/// From which byte on a receiving connection has not been counted yet.
#[derive(Clone, Copy, Debug)]
struct Counted {
    next: u64,
    /// `next` where the omitted intervals ended, until the peer has said where its results begin.
    guess: Option<u64>,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            next: 0,
            guess: Some(0),
        }
    }
}

impl Counted {
    /// Bytes that a snapshot adds. Where the results begin later or earlier than this side thought,
    /// the interval in which it learns of that has the difference.
    fn advance(&mut self, snapshot: &Snapshot, omitted: bool) -> u64 {
        if omitted {
            self.guess = Some(self.next.max(snapshot.received));
        } else if let (Some(before), Some(guess)) = (snapshot.received_before, self.guess) {
            self.next = (self.next + before).saturating_sub(guess);
            self.guess = None;
        }
        let from = self.next;
        self.next = from.max(snapshot.received);
        self.next - from
    }
}

impl Intervals {
    /// The intervals of the client's side.
    pub(crate) fn of_client(request: &TestRequest) -> Self {
        let direction = request.direction;
        Self::new(
            direction.client_sends(),
            direction.server_sends(),
            true,
            request,
        )
    }

    /// The intervals of the server's side.
    pub(crate) fn of_server(request: &TestRequest) -> Self {
        let direction = request.direction;
        Self::new(
            direction.server_sends(),
            direction.client_sends(),
            false,
            request,
        )
    }

    fn new(sends: bool, receives: bool, asks: bool, request: &TestRequest) -> Self {
        let streams = usize::from(request.connections());
        let nothing = |stream| Snapshot {
            stream,
            received: 0,
            received_before: None,
            stats: tack::Stats::default(),
            datagrams: None,
            times: None,
        };
        Self {
            sends,
            receives,
            bulk: request.bulk_streams(),
            asks,
            last_time: 0.0,
            last: (0..streams).map(nothing).collect(),
            counted: vec![Counted::default(); streams],
        }
    }

    /// The interval that ends with these snapshots, `now` seconds after the beginning.
    pub(crate) fn next(
        &mut self,
        now: f64,
        mut snapshots: Vec<Snapshot>,
        omitted: bool,
    ) -> Interval {
        snapshots.sort_by_key(|snapshot| snapshot.stream);
        let (start, seconds) = (self.last_time, now - self.last_time);
        let mut rows = Vec::new();
        for snapshot in snapshots {
            let last = &self.last[snapshot.stream];
            let (stats, before) = (&snapshot.stats, &last.stats);
            let datagrams = snapshot
                .datagrams
                .map(|now| now.since(&last.datagrams.unwrap_or_default()));
            let times = snapshot.times.as_ref();
            let latency = times.map(|times| times.since(last.times.as_ref()).latency());
            let is_bulk = snapshot.stream < self.bulk;
            let micros = |time: Option<Duration>| time.map(|time| time.as_nanos() as f64 / 1e3);
            let mut row = |role, bytes| {
                rows.push(IntervalRow {
                    stream: snapshot.stream,
                    role,
                    bytes,
                    bits_per_second: bits_per_second(bytes, seconds),
                    retransmitted_segments: stats
                        .retransmitted_segments
                        .saturating_sub(before.retransmitted_segments),
                    acks_sent: stats.acks.saturating_sub(before.acks),
                    acks_received: stats.acks_received.saturating_sub(before.acks_received),
                    cwnd: stats.cwnd,
                    bytes_in_flight: stats.bytes_in_flight,
                    srtt_us: micros(stats.srtt),
                    rttvar_us: micros(stats.rttvar),
                    cc_min_rtt_us: micros(stats.cc_min_rtt),
                    snd_wnd: stats.snd_wnd,
                    latency,
                    datagrams,
                });
            };
            if !is_bulk {
                let role = match self.asks {
                    true => Role::Requester,
                    false => Role::Responder,
                };
                row(role, snapshot.received.saturating_sub(last.received));
            }
            if is_bulk && self.sends {
                row(
                    Role::Sender,
                    stats.bytes_acked.saturating_sub(before.bytes_acked),
                );
            }
            if is_bulk && self.receives {
                let counted = &mut self.counted[snapshot.stream];
                row(Role::Receiver, counted.advance(&snapshot, omitted));
            }
            let stream = snapshot.stream;
            self.last[stream] = snapshot;
        }
        self.last_time = now;
        let total = |role| {
            rows.iter()
                .filter(|row: &&IntervalRow| row.role == role)
                .map(|row| row.bytes)
                .sum()
        };
        Interval {
            start,
            end: now,
            omitted,
            sent_bits_per_second: bits_per_second(total(Role::Sender), seconds),
            received_bits_per_second: bits_per_second(total(Role::Receiver), seconds),
            streams: rows,
        }
    }
}

/// Shares of the sender's time, 0 to 1, that each thing kept it from sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct LimitedBy {
    pub(crate) cwnd: f64,
    pub(crate) rwnd: f64,
    pub(crate) pacing: f64,
    pub(crate) app: f64,
    /// None of the others: processors and sockets.
    pub(crate) machine: f64,
}

/// One direction of a finished test.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DirectionSummary {
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    /// Time from the beginning to the end of the received data.
    pub(crate) seconds: f64,
    /// Bytes received over seconds.
    pub(crate) goodput_bps: f64,
    pub(crate) data_segments: u64,
    pub(crate) retransmitted_segments: u64,
    pub(crate) spurious_retransmissions: u64,
    pub(crate) rto_count: u64,
    /// Mean over the connections.
    pub(crate) srtt_us: Option<f64>,
    pub(crate) min_rtt_us: Option<f64>,
    /// Sum over the connections, bytes.
    pub(crate) cwnd: u64,
    /// Acknowledgements sent by the receiver of the data.
    pub(crate) acks_sent: u64,
    pub(crate) acks_by_kind: AcksByKind,
    /// Acknowledgements received by the sender of the data.
    pub(crate) acks_received: u64,
    pub(crate) acks_per_mib: f64,
    pub(crate) limited: LimitedBy,
    /// The largest of those shares, by name.
    pub(crate) limited_by: &'static str,
    /// Results of a UDP test; the counters of connections are then zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) datagrams: Option<Loss>,
}

/// Loss and jitter of the datagrams of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Loss {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// Datagrams sent and not received.
    pub(crate) lost: u64,
    /// Share of the datagrams sent that were lost, 0 to 1.
    pub(crate) lost_share: f64,
    pub(crate) out_of_order: u64,
    /// Mean over the streams (RFC 3550 §6.4.1), microseconds.
    pub(crate) jitter_us: f64,
}

impl Loss {
    fn new(senders: &[FlowResult], receivers: &[FlowResult]) -> Option<Self> {
        let of = |flows: &[FlowResult]| -> Vec<Datagrams> {
            flows.iter().filter_map(|flow| flow.datagrams).collect()
        };
        let (there, here) = (of(senders), of(receivers));
        if there.is_empty() || here.is_empty() {
            return None;
        }
        let sent: u64 = there.iter().map(|flow| flow.sent).sum();
        let received: u64 = here.iter().map(|flow| flow.received).sum();
        let lost = sent.saturating_sub(received);
        Some(Self {
            sent,
            received,
            lost,
            lost_share: lost as f64 / sent.max(1) as f64,
            out_of_order: here.iter().map(|flow| flow.out_of_order).sum(),
            jitter_us: here.iter().map(|flow| flow.jitter_us).sum::<f64>() / here.len() as f64,
        })
    }
}

impl DirectionSummary {
    fn new(senders: &[FlowResult], receivers: &[FlowResult]) -> Self {
        let bytes_received = receivers.iter().map(|flow| flow.received).sum();
        let seconds = receivers
            .iter()
            .map(|flow| flow.receive_seconds)
            .fold(0.0, f64::max);
        let sum = |value: fn(&FlowResult) -> u64| senders.iter().map(value).sum::<u64>();
        let acks_sent = receivers.iter().map(|flow| flow.transport.acks_sent).sum();
        let srtts: Vec<f64> = senders
            .iter()
            .filter_map(|flow| flow.transport.srtt_us)
            .collect();
        let limited = limited(senders, seconds);
        Self {
            bytes_sent: sum(|flow| flow.sent),
            bytes_received,
            seconds,
            goodput_bps: bits_per_second(bytes_received, seconds),
            data_segments: sum(|flow| flow.transport.data_segments),
            retransmitted_segments: sum(|flow| flow.transport.retransmitted_segments),
            spurious_retransmissions: sum(|flow| flow.transport.spurious_retransmissions),
            rto_count: sum(|flow| flow.transport.rto_count),
            srtt_us: (!srtts.is_empty()).then(|| srtts.iter().sum::<f64>() / srtts.len() as f64),
            min_rtt_us: senders
                .iter()
                .filter_map(|flow| flow.transport.min_rtt_us)
                .reduce(f64::min),
            cwnd: sum(|flow| flow.transport.cwnd),
            acks_sent,
            acks_by_kind: receivers
                .iter()
                .map(|flow| flow.transport.acks_by_kind)
                .fold(AcksByKind::default(), |sum, kinds| sum + kinds),
            acks_received: sum(|flow| flow.transport.acks_received),
            acks_per_mib: if bytes_received == 0 {
                0.0
            } else {
                acks_sent as f64 / (bytes_received as f64 / 1_048_576.0)
            },
            limited,
            limited_by: limited.most(),
            datagrams: Loss::new(senders, receivers),
        }
    }
}

fn limited(senders: &[FlowResult], seconds: f64) -> LimitedBy {
    let time = seconds * senders.len() as f64;
    if time <= 0.0 {
        return LimitedBy::default();
    }
    let share = |value: fn(&FlowResult) -> f64| {
        (senders.iter().map(value).sum::<f64>() / time).clamp(0.0, 1.0)
    };
    let mut limited = LimitedBy {
        cwnd: share(|flow| flow.transport.limited_seconds.cwnd),
        rwnd: share(|flow| flow.transport.limited_seconds.rwnd),
        pacing: share(|flow| flow.transport.limited_seconds.pacing),
        app: share(|flow| flow.transport.limited_seconds.app),
        machine: 0.0,
    };
    limited.machine = (1.0 - limited.cwnd - limited.rwnd - limited.pacing - limited.app).max(0.0);
    limited
}

impl LimitedBy {
    pub(crate) fn shares(&self) -> [(&'static str, f64); 5] {
        [
            ("cwnd", self.cwnd),
            ("rwnd", self.rwnd),
            ("pacing", self.pacing),
            ("app", self.app),
            ("machine", self.machine),
        ]
    }

    fn most(&self) -> &'static str {
        let [first, rest @ ..] = self.shares();
        rest.into_iter()
            .fold(
                first,
                |most, share| if share.1 > most.1 { share } else { most },
            )
            .0
    }
}

/// Processors used, 1.0 for one of them all the time.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Cpu {
    pub(crate) client: f64,
    pub(crate) server: f64,
    /// The part of `client` in user mode.
    pub(crate) client_user: f64,
    /// The part of `server` in user mode, where the server tells it.
    pub(crate) server_user: Option<f64>,
}

/// The results of a test.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    /// Results from client to server.
    pub(crate) up: Option<DirectionSummary>,
    /// Results from server to client.
    pub(crate) down: Option<DirectionSummary>,
    /// Requests and responses, of all connections that exchanged any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rr: Option<RrSummary>,
    pub(crate) cpu: Cpu,
}

impl Summary {
    pub(crate) fn new(
        request: &TestRequest,
        client: &[FlowResult],
        server: &[FlowResult],
        cpu: Cpu,
    ) -> Self {
        let bulk = request.bulk_streams();
        let (client, asking) = client.split_at(bulk.min(client.len()));
        let (server, _) = server.split_at(bulk.min(server.len()));
        let has = |sends: bool| sends && bulk > 0;
        Self {
            up: has(request.direction.client_sends())
                .then(|| DirectionSummary::new(client, server)),
            down: has(request.direction.server_sends())
                .then(|| DirectionSummary::new(server, client)),
            rr: request
                .exchange
                .map(|exchange| RrSummary::new(exchange.bytes, asking)),
            cpu,
        }
    }
}

/// Requests and responses of a finished test.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RrSummary {
    /// Of a request, and of a response.
    pub(crate) message_bytes: u32,
    pub(crate) connections: usize,
    pub(crate) seconds: f64,
    pub(crate) transactions_per_second: f64,
    /// Of all connections together.
    #[serde(flatten)]
    pub(crate) latency: Latency,
    /// Smallest round trip that the transport measured.
    pub(crate) min_rtt_us: Option<f64>,
}

impl RrSummary {
    fn new(message_bytes: u32, asking: &[FlowResult]) -> Self {
        let mut all = Times::new();
        for times in asking.iter().filter_map(|flow| flow.times.as_ref()) {
            all.merge(times);
        }
        let latency = all.latency();
        let seconds = asking
            .iter()
            .map(|flow| flow.send_seconds)
            .fold(0.0, f64::max);
        let rtts = asking.iter().filter_map(|flow| flow.transport.min_rtt_us);
        Self {
            message_bytes,
            connections: asking.len(),
            seconds,
            transactions_per_second: match seconds > 0.0 {
                true => latency.transactions as f64 / seconds,
                false => 0.0,
            },
            latency,
            min_rtt_us: rtts.reduce(f64::min),
        }
    }
}

/// The whole test as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct TestJson<'a> {
    pub(crate) event: &'static str,
    pub(crate) peer: String,
    #[serde(flatten)]
    pub(crate) protection: &'a Protection,
    pub(crate) request: &'a TestRequest,
    pub(crate) intervals: &'a [Interval],
    pub(crate) summary: Option<&'a Summary>,
    pub(crate) client: &'a [FlowResult],
    pub(crate) server: &'a [FlowResult],
    /// What `--get-server-output` asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_output: Option<&'a Output>,
    pub(crate) error: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::request::Direction;

    fn snapshot(acked: u64, received: u64, acks: u64) -> Snapshot {
        let mut stats = tack::Stats::default();
        stats.bytes_acked = acked;
        stats.acks = acks;
        Snapshot {
            stream: 0,
            received,
            received_before: None,
            stats,
            datagrams: None,
            times: None,
        }
    }

    fn request(direction: Direction) -> TestRequest {
        serde_json::from_value(serde_json::json!({
            "direction": direction, "streams": 1, "limit": {"millis": 1000},
            "congestion": "bbr", "ack": "tack",
        }))
        .unwrap()
    }

    #[test]
    fn intervals_are_differences() {
        let mut intervals = Intervals::of_client(&request(Direction::Both));
        let first = intervals.next(1.0, vec![snapshot(1_000_000, 500_000, 7)], false);
        assert_eq!((first.start, first.end), (0.0, 1.0));
        assert_eq!(first.sent_bits_per_second, 8e6);
        assert_eq!(first.received_bits_per_second, 4e6);
        let second = intervals.next(1.5, vec![snapshot(1_250_000, 500_000, 9)], false);
        assert_eq!(second.streams[0].bytes, 250_000);
        assert_eq!(second.sent_bits_per_second, 4e6);
        assert_eq!(second.streams[1].acks_sent, 2);
        assert_eq!(second.received_bits_per_second, 0.0);
    }

    #[test]
    fn counted_intervals_begin_where_the_peer_says() {
        // Where this side's clock puts it, the peer's position, and when that is known.
        for (begin, before, known) in [(500, 480, 1), (500, 540, 1), (500, 500, 2), (500, 900, 2)] {
            let mut intervals = Intervals::of_client(&request(Direction::Down));
            let mut bytes = |received, is_known: bool, omitted| {
                let mut snapshot = snapshot(0, received, 0);
                snapshot.received_before = is_known.then_some(before);
                intervals
                    .next(received as f64, vec![snapshot], omitted)
                    .streams[0]
                    .bytes
            };
            assert_eq!(bytes(200, false, true), 200);
            assert_eq!(bytes(begin, false, true), 300);
            let counted: u64 = [600, 850, 1_000]
                .into_iter()
                .zip(1..)
                .map(|(received, interval)| bytes(received, interval >= known, false))
                .sum();
            assert_eq!(counted, 1_000 - before, "{before}");
        }
    }
}
