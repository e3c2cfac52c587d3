//! Traces of connections, as JSON lines in the manner of qlog
//! (draft-ietf-quic-qlog-main-schema).
//!
//! The first line names the format; each further one is an event: `time` (milliseconds on the
//! host's clock), `name` (category:event), `flow`, `host` and `data`. What an event does not know
//! is left out.

mod segments;

use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tack_base::{Rate, time::nanos};
use tack_tcp::trace::{AckReceived, AckSent, TraceEvent, Traced};

use super::{Observer, PacketEvent, Passing};
use crate::scenario::{Party, Scenario};
use segments::{Passed, Segments};

/// Writes the trace of every connection.
#[derive(Debug)]
pub struct Qlog<W: Write> {
    out: W,
    error: Option<io::Error>,
    segments: Option<Segments>,
    /// How much faster the client's clock runs, parts per million.
    skew_ppm: i64,
}

impl<W: Write> Qlog<W> {
    /// Writes to `out`, which should be buffered.
    ///
    /// # Errors
    /// Whatever `out` says to the first line.
    pub fn new(mut out: W) -> io::Result<Self> {
        let head = json!({
            "qlog_format": "NDJSON",
            "title": "tack sim",
            "time_unit": "ms",
            "categories": ["tack", "transport", "recovery"],
        });
        writeln!(out, "{head}")?;
        Ok(Self {
            out,
            error: None,
            segments: None,
            skew_ppm: 0,
        })
    }

    /// With an event for each data segment of TCP that leaves or arrives. They are many.
    #[must_use]
    pub fn with_segments(mut self) -> Self {
        self.segments = Some(Segments::default());
        self
    }

    fn write(&mut self, time_ms: f64, name: &str, flow: usize, host: Party, data: &Value) {
        if self.error.is_some() {
            return;
        }
        let line = json!({
            "time": time_ms,
            "name": name,
            "flow": flow,
            "host": host.name(),
            "data": data,
        });
        self.error = writeln!(self.out, "{line}").err();
    }
}

impl<W: Write> Observer for Qlog<W> {
    fn on_start(&mut self, scenario: &Scenario) {
        self.skew_ppm = scenario.wired.client.clock_skew_ppm;
    }

    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let Some(segments) = &mut self.segments else {
            return;
        };
        // Other events have the time of their host's clock.
        let skew = match event.host {
            Party::Client => self.skew_ppm,
            _ => 0,
        };
        let nanos = i128::from(event.at.as_nanos());
        let shown = (nanos + nanos * i128::from(skew) / 1_000_000) as u64;
        let Some(passed) = segments.on_packet(event, shown) else {
            return;
        };
        let (name, data) = describe_segment(event.passing, &passed);
        self.write(shown as f64 / 1e6, name, passed.flow, event.host, &data);
    }

    fn wants_traces(&self) -> bool {
        true
    }

    fn on_trace(&mut self, flow: usize, host: Party, event: &TraceEvent) {
        let Some((name, mut data)) = describe(&event.what) else {
            return;
        };
        if let (Traced::Lost { start, .. }, Some(segments)) = (&event.what, &self.segments) {
            data["number"] = segments
                .lost(flow, host, *start, event.at.as_nanos())
                .into();
        }
        self.write(event.at.as_nanos() as f64 / 1e6, name, flow, host, &data);
    }

    fn finish(&mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

/// Name and data of an event's record; none for what the stack may learn to trace besides.
fn describe(what: &Traced) -> Option<(&'static str, Value)> {
    Some(match what {
        Traced::AckSent(sent) => ("tack:ack_sent", ack_sent(sent)),
        Traced::AckReceived(received) => ("transport:ack_received", ack_received(received)),
        Traced::SyncSent {
            min_rtt,
            ack_loss_rate,
            startup,
        } => (
            "tack:sync_sent",
            json!({"min_rtt_us": micros(*min_rtt), "ack_loss_rate": ack_loss_rate, "startup": startup}),
        ),
        Traced::Lost {
            start, end, sign, ..
        } => (
            "recovery:packet_lost",
            json!({"offset": start.0, "length": *end - *start, "sign": sign.name()}),
        ),
        // Where they are asked for; here segments are seen on the path instead.
        Traced::SegmentSent {
            number,
            start,
            end,
            again,
        } => (
            "transport:packet_sent",
            json!({"number": number.0, "offset": start.0, "length": *end - *start, "retransmission": again}),
        ),
        Traced::SegmentReceived { start, end, .. } => (
            "transport:packet_received",
            json!({"offset": start.0, "length": *end - *start}),
        ),
        Traced::Recovery(state) => ("recovery:episode", json!({ "state": state })),
        Traced::Timeout(timer) => ("recovery:timer_expired", json!({ "timer": timer })),
        _ => return None,
    })
}

fn describe_segment(passing: Passing, passed: &Passed) -> (&'static str, Value) {
    let mut data = json!({
        "number": passed.number,
        "offset": passed.offset,
        "length": passed.length,
    });
    match passing {
        Passing::Out => {
            data["retransmission"] = passed.is_retransmission.into();
            ("transport:packet_sent", data)
        }
        Passing::In => ("transport:packet_received", data),
    }
}

/// The data of an event `tack:ack_sent`, the same in traces of simulated and of real connections.
pub fn ack_sent(sent: &AckSent) -> Value {
    let mut data = Map::new();
    data.insert("reason".into(), sent.reason.into());
    data.insert("form".into(), sent.form.into());
    data.insert("ack".into(), sent.ack.0.into());
    data.insert("above".into(), sent.above.into());
    data.insert("blocks".into(), sent.blocks.into());
    data.insert("gaps".into(), sent.gaps.into());
    data.insert("window".into(), sent.window.into());
    put(&mut data, "number", sent.number.map(u64::from));
    put(&mut data, "rate_bps", sent.rate.map(Rate::bits_per_sec));
    put(&mut data, "period_us", sent.period.map(micros));
    data.into()
}

fn ack_received(received: &AckReceived) -> Value {
    let mut data = Map::new();
    data.insert("ack".into(), received.ack.0.into());
    data.insert("delivered".into(), received.delivered.into());
    data.insert("lost".into(), received.lost.into());
    data.insert("bytes_in_flight".into(), received.bytes_in_flight.into());
    data.insert("cwnd".into(), received.cwnd.into());
    data.insert("phase".into(), received.phase.into());
    put(&mut data, "rtt_us", received.rtt.map(micros));
    put(&mut data, "min_rtt_us", received.min_rtt.map(micros));
    put(&mut data, "rate_bps", received.rate.map(Rate::bits_per_sec));
    put(
        &mut data,
        "pacing_bps",
        received.pacing.map(Rate::bits_per_sec),
    );
    put(
        &mut data,
        "bandwidth_bps",
        received.bandwidth.map(Rate::bits_per_sec),
    );
    data.into()
}

fn put(data: &mut Map<String, Value>, key: &str, value: Option<u64>) {
    if let Some(value) = value {
        data.insert(key.into(), value.into());
    }
}

fn micros(duration: Duration) -> u64 {
    nanos(duration) / 1_000
}
