//! A test as `iperf3 -J` prints it, for programs that read that: the fields of iperf 3.16
//! (`iperf_api.c`), with our own object under `tack`.
//!
//! What this program does not know is 0, as there. Addresses and ports are those of UDP. A socket
//! is a number that tells streams apart; in a test of both directions each stream has two.

use std::net::SocketAddr;
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::report::{Interval, IntervalRow, Role, TestJson};
use super::request::{Carrier, Direction, Limit, TestRequest};
use super::results::FlowResult;
use crate::printer::bits_per_second;

/// Where and when a test runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) began: SystemTime,
    /// The UDP addresses of this side and the other, once they are connected.
    pub(crate) addresses: Option<(SocketAddr, SocketAddr)>,
}

impl Setting {
    /// Nothing is connected yet.
    pub(crate) fn now() -> Self {
        Self {
            began: SystemTime::now(),
            addresses: None,
        }
    }

    pub(crate) fn connected(&mut self, local: SocketAddr, peer: SocketAddr) {
        self.addresses = Some((local, peer));
    }

    /// The data begins to flow.
    pub(crate) fn began(&mut self) {
        self.began = SystemTime::now();
    }
}

/// The whole test.
pub(crate) fn document(setting: &Setting, test: &TestJson<'_>) -> serde_json::Result<Value> {
    let mut document = Map::new();
    document.insert("start".into(), start(setting, test));
    let intervals = test.intervals.iter();
    document.insert(
        "intervals".into(),
        intervals.map(|it| interval(test.request, it)).collect(),
    );
    let end = match test.summary {
        Some(_) => end(test),
        None => json!({}),
    };
    document.insert("end".into(), end);
    if let Some(error) = test.error {
        document.insert("error".into(), error.into());
    }
    document.insert("tack".into(), serde_json::to_value(test)?);
    Ok(document.into())
}

fn start(setting: &Setting, test: &TestJson<'_>) -> Value {
    let request = test.request;
    let began = DateTime::<Utc>::from(setting.began);
    let version = concat!("tack ", env!("CARGO_PKG_VERSION"));
    let (duration, bytes) = match request.limit {
        Limit::Millis(millis) => (seconds(millis), 0),
        Limit::Bytes(bytes) => (0.into(), bytes),
    };
    let mut start = json!({
        "connected": [],
        "version": version,
        "system_info": format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        "timestamp": {
            "time": began.format("%a, %d %b %Y %H:%M:%S GMT").to_string(),
            "timesecs": began.timestamp(),
        },
        "target_bitrate": request.bitrate.unwrap_or(0),
        "test_start": {
            "protocol": protocol(request),
            "num_streams": request.connections(),
            "blksize": match request.carrier {
                Carrier::Tcp => super::flow::BLOCK as u64,
                Carrier::Udp { length } => length.into(),
            },
            "omit": seconds(request.omit_millis),
            "duration": duration,
            "bytes": bytes,
            "blocks": 0,
            "reverse": u8::from(request.direction == Direction::Down),
            "tos": 0,
            "target_bitrate": request.bitrate.unwrap_or(0),
            "bidir": u8::from(request.direction == Direction::Both),
            "fqrate": 0,
            "interval": seconds(request.interval_millis),
        },
    });
    if let Some((local, peer)) = setting.addresses {
        start["connecting_to"] = json!({ "host": peer.ip().to_string(), "port": peer.port() });
        let streams = 0..usize::from(request.connections());
        let connected = streams.flat_map(|stream| sockets(request, stream));
        start["connected"] = connected
            .map(|socket| {
                json!({
                    "socket": socket,
                    "local_host": local.ip().to_string(),
                    "local_port": local.port(),
                    "remote_host": peer.ip().to_string(),
                    "remote_port": peer.port(),
                })
            })
            .collect();
    }
    if let Some(mss) = test.client.first().map(|flow| flow.transport.mss) {
        start["tcp_mss_default"] = mss.into();
    }
    start
}

fn protocol(request: &TestRequest) -> &'static str {
    match request.carrier {
        Carrier::Tcp => "TCP",
        Carrier::Udp { .. } => "UDP",
    }
}

/// Whole seconds as an integer, as iperf3 has them; others as they are.
fn seconds(millis: u64) -> Value {
    match millis % 1000 {
        0 => (millis / 1000).into(),
        _ => (millis as f64 / 1e3).into(),
    }
}

/// The number of a stream where this side sends, or where it receives.
fn socket(request: &TestRequest, stream: usize, sends: bool) -> usize {
    match (request.direction, sends) {
        (Direction::Both, false) => stream + usize::from(request.connections()) + 1,
        _ => stream + 1,
    }
}

fn sockets(request: &TestRequest, stream: usize) -> impl Iterator<Item = usize> {
    let both = request.direction == Direction::Both && stream < request.bulk_streams();
    let first = socket(request, stream, true);
    [Some(first), both.then(|| socket(request, stream, false))]
        .into_iter()
        .flatten()
}

fn interval(request: &TestRequest, interval: &Interval) -> Value {
    let streams = interval.streams.iter().filter(|row| is_bulk(row));
    let streams: Value = streams
        .map(|row| {
            let sends = row.role == Role::Sender;
            let mut stream = span(interval.start, interval.end, row.bytes, sends);
            stream["socket"] = socket(request, row.stream, sends).into();
            stream["omitted"] = interval.omitted.into();
            if let Some(datagrams) = &row.datagrams {
                stream["packets"] = match sends {
                    true => datagrams.sent,
                    false => datagrams.received + datagrams.lost,
                }
                .into();
                if !sends {
                    lost(
                        &mut stream,
                        datagrams.lost,
                        datagrams.received + datagrams.lost,
                        datagrams.jitter_us,
                    );
                }
            } else if sends {
                stream["retransmits"] = row.retransmitted_segments.into();
                stream["snd_cwnd"] = row.cwnd.into();
                stream["snd_wnd"] = row.snd_wnd.into();
                stream["rtt"] = (row.srtt_us.unwrap_or(0.0) as u64).into();
                stream["rttvar"] = (row.rttvar_us.unwrap_or(0.0) as u64).into();
                stream["pmtu"] = 0.into();
                // Beyond what iperf3 has.
                if let Some(floor) = row.cc_min_rtt_us {
                    stream["cc_min_rtt"] = (floor as u64).into();
                }
            }
            stream
        })
        .collect();
    let sum = |role: Role| {
        let rows: Vec<_> = interval
            .streams
            .iter()
            .filter(|row| row.role == role)
            .collect();
        let bytes = rows.iter().map(|row| row.bytes).sum();
        let sends = role == Role::Sender;
        let mut sum = span(interval.start, interval.end, bytes, sends);
        sum["omitted"] = interval.omitted.into();
        if request.carrier == Carrier::Tcp && sends {
            let retransmits = rows.iter().map(|row| row.retransmitted_segments);
            sum["retransmits"] = retransmits.sum::<u64>().into();
        }
        let datagrams: Vec<_> = rows.iter().filter_map(|row| row.datagrams).collect();
        if !datagrams.is_empty() {
            let of_all = |value: fn(&super::results::Datagrams) -> u64| -> u64 {
                datagrams.iter().map(value).sum()
            };
            if sends {
                sum["packets"] = of_all(|it| it.sent).into();
            } else {
                let jitter = datagrams.iter().map(|it| it.jitter_us).sum::<f64>();
                let jitter = jitter / datagrams.len() as f64;
                let (gone, all) = (of_all(|it| it.lost), of_all(|it| it.received + it.lost));
                sum["packets"] = all.into();
                lost(&mut sum, gone, all, jitter);
            }
        }
        sum
    };
    match request.direction {
        Direction::Up => json!({ "streams": streams, "sum": sum(Role::Sender) }),
        Direction::Down => json!({ "streams": streams, "sum": sum(Role::Receiver) }),
        Direction::Both => json!({
            "streams": streams,
            "sum": sum(Role::Sender),
            "sum_bidir_reverse": sum(Role::Receiver),
        }),
    }
}

/// Requests and responses have no place in iperf3's object; they are under `tack`.
fn is_bulk(row: &IntervalRow) -> bool {
    matches!(row.role, Role::Sender | Role::Receiver)
}

fn span(start: f64, end: f64, bytes: u64, is_sender: bool) -> Value {
    json!({
        "start": start,
        "end": end,
        "seconds": end - start,
        "bytes": bytes,
        "bits_per_second": bits_per_second(bytes, end - start),
        "sender": is_sender,
    })
}

fn lost(of: &mut Value, lost: u64, packets: u64, jitter_us: f64) {
    of["jitter_ms"] = (jitter_us / 1e3).into();
    of["lost_packets"] = lost.into();
    of["lost_percent"] = (lost as f64 / packets.max(1) as f64 * 100.0).into();
}

/// One direction of a finished test, from this side's view.
struct Way<'a> {
    /// This side sends.
    sends: bool,
    senders: &'a [FlowResult],
    receivers: &'a [FlowResult],
}

fn end(test: &TestJson<'_>) -> Value {
    let request = test.request;
    let bulk = request.bulk_streams();
    let client = &test.client[..bulk.min(test.client.len())];
    let server = &test.server[..bulk.min(test.server.len())];
    let mut ways = Vec::new();
    if request.direction.client_sends() {
        ways.push(Way {
            sends: true,
            senders: client,
            receivers: server,
        });
    }
    if request.direction.server_sends() {
        ways.push(Way {
            sends: false,
            senders: server,
            receivers: client,
        });
    }
    let is_udp = request.carrier != Carrier::Tcp;
    let mut end = Map::new();
    let streams: Value = ways
        .iter()
        .flat_map(|way| {
            way.senders
                .iter()
                .zip(way.receivers)
                .map(move |pair| (way, pair))
        })
        .map(|(way, (sender, receiver))| match is_udp {
            true => json!({ "udp": datagram_stream(request, way, sender, receiver) }),
            false => json!({
                "sender": sender_stream(test, way, sender),
                "receiver": receiver_stream(request, way, receiver),
            }),
        })
        .collect();
    end.insert("streams".into(), streams);
    for (index, way) in ways.iter().enumerate() {
        let name = |base: &str| match index {
            0 => base.to_owned(),
            _ => format!("{base}_bidir_reverse"),
        };
        let (sent, received) = sums(way, is_udp);
        if is_udp {
            end.insert(name("sum"), received.clone());
        }
        end.insert(name("sum_sent"), sent);
        end.insert(name("sum_received"), received);
    }
    if let Some(cpu) = test.summary.map(|summary| summary.cpu) {
        let server_user = cpu.server_user.unwrap_or(cpu.server);
        end.insert(
            "cpu_utilization_percent".into(),
            json!({
                "host_total": cpu.client * 100.0,
                "host_user": cpu.client_user * 100.0,
                "host_system": (cpu.client - cpu.client_user) * 100.0,
                "remote_total": cpu.server * 100.0,
                "remote_user": server_user * 100.0,
                "remote_system": (cpu.server - server_user) * 100.0,
            }),
        );
    }
    if !is_udp {
        end.insert(
            "sender_tcp_congestion".into(),
            request.congestion.clone().into(),
        );
        end.insert(
            "receiver_tcp_congestion".into(),
            request.congestion.clone().into(),
        );
    }
    end.into()
}

fn sender_stream(test: &TestJson<'_>, way: &Way<'_>, sender: &FlowResult) -> Value {
    let mut it = span(0.0, sender.send_seconds, sender.sent, way.sends);
    it["socket"] = socket(test.request, sender.stream, way.sends).into();
    it["retransmits"] = sender.transport.retransmitted_segments.into();
    // What iperf3 has from looking at each interval.
    let rows = test.intervals.iter().flat_map(|interval| &interval.streams);
    let rows: Vec<_> = rows
        .filter(|row| way.sends && row.stream == sender.stream && row.role == Role::Sender)
        .collect();
    let most = |value: fn(&IntervalRow) -> u64| rows.iter().map(|row| value(row)).max();
    it["max_snd_cwnd"] = most(|row| row.cwnd).unwrap_or(sender.transport.cwnd).into();
    it["max_snd_wnd"] = most(|row| row.snd_wnd).unwrap_or(0).into();
    let last = sender.transport.srtt_us.unwrap_or(0.0);
    let rtts: Vec<f64> = rows.iter().filter_map(|row| row.srtt_us).collect();
    let (min, max, mean) = match rtts.len() {
        0 => (last, last, last),
        count => (
            rtts.iter().copied().fold(f64::INFINITY, f64::min),
            rtts.iter().copied().fold(0.0, f64::max),
            rtts.iter().sum::<f64>() / count as f64,
        ),
    };
    it["max_rtt"] = (max as u64).into();
    it["min_rtt"] = (min as u64).into();
    it["mean_rtt"] = (mean as u64).into();
    it
}

fn receiver_stream(request: &TestRequest, way: &Way<'_>, receiver: &FlowResult) -> Value {
    let mut it = span(0.0, receiver.receive_seconds, receiver.received, way.sends);
    it["socket"] = socket(request, receiver.stream, way.sends).into();
    it
}

fn datagram_stream(
    request: &TestRequest,
    way: &Way<'_>,
    sender: &FlowResult,
    receiver: &FlowResult,
) -> Value {
    let (sent, received) = (
        sender.datagrams.unwrap_or_default(),
        receiver.datagrams.unwrap_or_default(),
    );
    let mut it = span(0.0, sender.send_seconds, sender.sent, way.sends);
    it["socket"] = socket(request, sender.stream, way.sends).into();
    it["packets"] = sent.sent.into();
    it["out_of_order"] = received.out_of_order.into();
    let gone = sent.sent.saturating_sub(received.received);
    lost(&mut it, gone, sent.sent, received.jitter_us);
    it
}

fn sums(way: &Way<'_>, is_udp: bool) -> (Value, Value) {
    let longest = |flows: &[FlowResult], time: fn(&FlowResult) -> f64| {
        flows.iter().map(time).fold(0.0, f64::max)
    };
    let bytes = |flows: &[FlowResult], of: fn(&FlowResult) -> u64| flows.iter().map(of).sum();
    let mut sent = span(
        0.0,
        longest(way.senders, |flow| flow.send_seconds),
        bytes(way.senders, |flow| flow.sent),
        way.sends,
    );
    let mut received = span(
        0.0,
        longest(way.receivers, |flow| flow.receive_seconds),
        bytes(way.receivers, |flow| flow.received),
        way.sends,
    );
    if !is_udp {
        let again = way
            .senders
            .iter()
            .map(|flow| flow.transport.retransmitted_segments);
        sent["retransmits"] = again.sum::<u64>().into();
        return (sent, received);
    }
    let of =
        |flows: &[FlowResult]| -> Vec<_> { flows.iter().filter_map(|it| it.datagrams).collect() };
    let (there, here) = (of(way.senders), of(way.receivers));
    let packets: u64 = there.iter().map(|it| it.sent).sum();
    let arrived: u64 = here.iter().map(|it| it.received).sum();
    let jitter = here.iter().map(|it| it.jitter_us).sum::<f64>() / here.len().max(1) as f64;
    sent["packets"] = packets.into();
    lost(&mut sent, 0, packets, 0.0);
    received["packets"] = packets.into();
    lost(
        &mut received,
        packets.saturating_sub(arrived),
        packets,
        jitter,
    );
    (sent, received)
}
