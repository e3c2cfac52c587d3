//! The trace of one connection as a JSON text sequence (RFC 7464) of qlog
//! (draft-ietf-quic-qlog-main-schema and -quic-events, as of `qlog_version` 0.3, the newest that
//! qvis reads): a header, then an event a record.
//!
//! qlog was made for QUIC. A transmission of a segment is a packet here, with its number, and what
//! the peer acknowledged is said in those numbers. What qlog has no name for keeps one of ours,
//! `tack:…`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tack::trace::{AckReceived, Traced};
use tack::{LossSign, PacketNumber};
use tack_base::{Instant, Rate, StreamOffset};
use tack_sim::observe::ack_sent;

/// What precedes each record (RFC 7464 §2.2).
const RECORD: char = '\u{1e}';

/// What the first record says.
pub(super) struct Header<'a> {
    pub(super) title: &'a str,
    /// The peer opened the connection.
    pub(super) accepted: bool,
}

/// Writes the trace of one connection.
#[derive(Debug)]
pub(super) struct Sequence<W: Write> {
    out: W,
    error: Option<io::Error>,
    /// Segments that are not acknowledged, by where they begin: where they end, and the number of
    /// their last transmission.
    unacknowledged: BTreeMap<StreamOffset, (StreamOffset, PacketNumber)>,
    /// Time of the latest event, in nanoseconds.
    latest: u64,
    /// Acknowledgements that arrived.
    acks: u64,
    /// Of the congestion controller.
    phase: &'static str,
    recovering: bool,
    /// What was said last of the two.
    state: Option<&'static str>,
}

impl<W: Write> Sequence<W> {
    /// Begins a file with its header.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub(super) fn begin(mut out: W, header: &Header<'_>) -> io::Result<Self> {
        let host = if header.accepted { "server" } else { "client" };
        // qvis looks for the first two in the first kilobyte.
        let record = json!({
            "qlog_version": "0.3",
            "qlog_format": "JSON-SEQ",
            "title": header.title,
            "trace": {
                "title": header.title,
                "vantage_point": {"name": host, "type": host},
                "common_fields": {
                    "protocol_type": ["TCP"],
                    "time_format": "relative",
                    "reference_time": 0,
                },
            },
        });
        writeln!(out, "{RECORD}{record}")?;
        Ok(Self {
            out,
            error: None,
            unacknowledged: BTreeMap::new(),
            latest: 0,
            acks: 0,
            phase: "",
            recovering: false,
            state: None,
        })
    }

    /// Writes what an event of this instant comes to.
    pub(super) fn event(&mut self, at: Instant, what: &Traced) {
        // A thread reads the clock before it gets the lock of the endpoint, so another one's later
        // event may come first. Readers expect times that never go back.
        let at = at.as_nanos().max(self.latest);
        self.latest = at;
        match what {
            Traced::SegmentSent {
                number, start, end, ..
            } => {
                self.unacknowledged.insert(*start, (*end, *number));
                self.packet(at, "packet_sent", number.0, (*start, *end));
            }
            Traced::SegmentReceived { number, start, end } => {
                // A peer without TACK does not tell: then positions are as good, and as unique.
                let number = number.map_or(start.0, u64::from);
                self.packet(at, "packet_received", number, (*start, *end));
            }
            Traced::Lost {
                start,
                end,
                number,
                sign,
            } => {
                let mut data = json!({
                    "header": {"packet_type": "1RTT", "packet_number": number.0},
                    "frames": [frame(*start, *end)],
                    "tack": {"detector": sign.name()},
                });
                if let Some(trigger) = trigger(*sign) {
                    data["trigger"] = trigger.into();
                }
                self.write(at, "recovery:packet_lost", &data);
            }
            Traced::AckReceived(ack) => self.ack_received(at, ack),
            Traced::Recovery(state) => {
                self.recovering = *state == "begins";
                self.enter(at, Some(state));
            }
            Traced::Timeout(timer) => self.timeout(at, timer),
            Traced::AckSent(sent) => self.write(at, "tack:ack_sent", &ack_sent(sent)),
            Traced::SyncSent {
                min_rtt,
                ack_loss_rate,
                startup,
            } => {
                let data = json!({
                    "min_rtt": millis(*min_rtt),
                    "ack_loss_rate": ack_loss_rate,
                    "startup": startup,
                });
                self.write(at, "tack:sync_sent", &data);
            }
            // The stack may learn to trace more than is recorded here.
            _ => {}
        }
    }

    /// Hands over what is written.
    ///
    /// # Errors
    /// The first one since the last call.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn write(&mut self, at: u64, name: &str, data: &Value) {
        self.record(at, name, format_args!("{data}"));
    }

    fn record(&mut self, at: u64, name: &str, data: std::fmt::Arguments<'_>) {
        if self.error.is_some() {
            return;
        }
        let (millis, nanos) = (at / 1_000_000, at % 1_000_000);
        self.error = writeln!(
            self.out,
            r#"{RECORD}{{"time":{millis}.{nanos:06},"name":"{name}","data":{data}}}"#
        )
        .err();
    }

    /// There are very many of these.
    fn packet(&mut self, at: u64, name: &str, number: u64, bytes: (StreamOffset, StreamOffset)) {
        let ((start, end), length) = (bytes, bytes.1 - bytes.0);
        let offset = start.saturating_since(StreamOffset::FIRST_BYTE);
        debug_assert!(start <= end);
        self.record(
            at,
            &format!("transport:{name}"),
            format_args!(
                r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":{length}}},"frames":[{{"frame_type":"stream","stream_id":0,"offset":{offset},"length":{length}}}]}}"#
            ),
        );
    }

    fn ack_received(&mut self, at: u64, ack: &AckReceived) {
        let mut frame = json!({"frame_type": "ack"});
        let acked = self.acked(ack.ack);
        if !acked.is_empty() {
            frame["acked_ranges"] = acked.into();
        }
        let data = json!({
            "header": {"packet_type": "1RTT", "packet_number": self.acks},
            "frames": [frame],
            "tack": {"ack": ack.ack.0, "delivered": ack.delivered, "lost": ack.lost},
        });
        self.acks += 1;
        self.write(at, "transport:packet_received", &data);
        let mut metrics = Map::new();
        metrics.insert("congestion_window".into(), ack.cwnd.into());
        metrics.insert("bytes_in_flight".into(), ack.bytes_in_flight.into());
        put(&mut metrics, "latest_rtt", ack.rtt.map(millis));
        put(&mut metrics, "min_rtt", ack.min_rtt.map(millis));
        let pacing = ack.pacing.map(Rate::bits_per_sec);
        put(&mut metrics, "pacing_rate", pacing);
        let mut ours = Map::new();
        let bandwidth = ack.bandwidth.map(Rate::bits_per_sec);
        put(&mut ours, "bandwidth", bandwidth);
        let rate = ack.rate.map(Rate::bits_per_sec);
        put(&mut ours, "delivery_rate", rate);
        if !ours.is_empty() {
            metrics.insert("tack".into(), ours.into());
        }
        self.write(at, "recovery:metrics_updated", &metrics.into());
        self.phase = ack.phase;
        if !self.recovering {
            self.enter(at, None);
        }
    }

    /// Ranges of the numbers that an acknowledgement of all below a position newly covers.
    fn acked(&mut self, position: StreamOffset) -> Vec<[u64; 2]> {
        let mut numbers = Vec::new();
        while let Some(first) = self.unacknowledged.first_entry()
            && first.get().0 <= position
        {
            numbers.push(first.remove().1.0);
        }
        numbers.sort_unstable();
        let mut ranges: Vec<[u64; 2]> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some([_, last]) if *last + 1 == number => *last = number,
                _ => ranges.push([number, number]),
            }
        }
        ranges
    }

    /// The state of congestion control, if it is another one.
    fn enter(&mut self, at: u64, episode: Option<&str>) {
        let new = if self.recovering {
            "recovery"
        } else {
            self.phase
        };
        if self.state == Some(new) {
            return;
        }
        let mut data = json!({"new": new});
        if let Some(old) = self.state {
            data["old"] = old.into();
        }
        if let Some(episode) = episode {
            data["tack"] = json!({"episode": episode});
        }
        self.state = Some(new);
        self.write(at, "recovery:congestion_state_updated", &data);
    }

    fn timeout(&mut self, at: u64, timer: &str) {
        // qlog knows two: for probes (RFC 9002 §6.2) and for the reordering window (§6.1.2).
        let kind = match timer {
            "rto" | "tlp" => "pto",
            "reorder" => "ack",
            _ => return self.write(at, "tack:timer_expired", &json!({ "timer": timer })),
        };
        let data = json!({"event_type": "expired", "timer_type": kind, "tack": {"timer": timer}});
        self.write(at, "recovery:loss_timer_updated", &data);
    }
}

/// Where the bytes are in the stream, from 0: a frame of QUIC's, because TCP has none.
fn frame(start: StreamOffset, end: StreamOffset) -> Value {
    json!({
        "frame_type": "stream",
        "stream_id": 0,
        "offset": start.saturating_since(StreamOffset::FIRST_BYTE),
        "length": end - start,
    })
}

/// What qlog calls a sign of loss.
fn trigger(sign: LossSign) -> Option<&'static str> {
    match sign {
        LossSign::Rack | LossSign::Overdue => Some("time_threshold"),
        LossSign::DuplicateAcks => Some("reordering_threshold"),
        LossSign::Timeout | LossSign::Probe => Some("pto_expired"),
        _ => None,
    }
}

fn put(data: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        data.insert(key.into(), value.into());
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(events: &[Traced]) -> Vec<Value> {
        let mut bytes = Vec::new();
        let header = Header {
            title: "a \"test\"",
            accepted: false,
        };
        let mut sequence = Sequence::begin(&mut bytes, &header).unwrap();
        for (millis, what) in (1..).zip(events) {
            let at = Instant::from_millis(millis);
            sequence.event(at, what);
        }
        sequence.flush().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let mut records = text.split(RECORD);
        // RFC 7464: the separator comes first.
        assert_eq!(records.next(), Some(""));
        records
            .map(|record| serde_json::from_str(record).unwrap())
            .collect()
    }

    fn sent(number: u64, start: u64) -> Traced {
        Traced::SegmentSent {
            number: PacketNumber(number),
            start: StreamOffset(start),
            end: StreamOffset(start + 100),
            again: false,
        }
    }

    fn ack(position: u64) -> Traced {
        let mut ack = AckReceived::default();
        ack.ack = StreamOffset(position);
        ack.delivered = 100;
        ack.rtt = Some(Duration::from_micros(1_500));
        ack.cwnd = 14_400;
        ack.phase = "slow_start";
        Traced::AckReceived(ack)
    }

    #[test]
    fn transmissions_are_packets_and_are_acknowledged_by_their_last_numbers() {
        let lost = Traced::Lost {
            start: StreamOffset(1),
            end: StreamOffset(101),
            number: PacketNumber(0),
            sign: LossSign::Rack,
        };
        let records = records(&[
            sent(0, 1),
            sent(1, 101),
            lost,
            Traced::Recovery("begins"),
            sent(2, 1),
            ack(201),
        ]);
        assert_eq!(records[0]["qlog_format"], "JSON-SEQ");
        assert_eq!(records[0]["trace"]["vantage_point"]["type"], "client");
        let named = |name: &str| -> Vec<&Value> {
            let all = records.iter();
            all.filter(|record| record["name"] == name).collect()
        };
        let packets = named("transport:packet_sent");
        assert_eq!(packets.len(), 3);
        assert_eq!(packets[1]["time"], 2.0);
        assert_eq!(packets[1]["data"]["header"]["packet_number"], 1);
        assert_eq!(packets[1]["data"]["frames"][0]["offset"], 100);
        let lost = &named("recovery:packet_lost")[0]["data"];
        assert_eq!(lost["trigger"], "time_threshold");
        assert_eq!(lost["tack"]["detector"], "rack");
        let acked = &named("transport:packet_received")[0]["data"]["frames"][0];
        assert_eq!(acked["acked_ranges"], json!([[1, 2]]));
        let metrics = &named("recovery:metrics_updated")[0]["data"];
        assert_eq!(
            (&metrics["latest_rtt"], &metrics["congestion_window"]),
            (&json!(1.5), &json!(14_400))
        );
        let states = named("recovery:congestion_state_updated");
        assert_eq!(states[0]["data"]["new"], "recovery");
    }

    #[test]
    fn what_the_peer_numbers_has_the_same_number_here() {
        let received = |number| Traced::SegmentReceived {
            number,
            start: StreamOffset(11),
            end: StreamOffset(21),
        };
        let records = records(&[received(Some(7)), received(None)]);
        let numbers = records[1..]
            .iter()
            .map(|record| record["data"]["header"]["packet_number"].as_u64());
        assert_eq!(numbers.collect::<Vec<_>>(), [Some(7), Some(11)]);
    }
}
