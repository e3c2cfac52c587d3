//! Reports of runs: one JSON object, one CSV line a flow, or a table for people.

mod hack;
mod wlan;

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;

use crate::path::PathCounters;

pub use hack::HackReport;
pub use wlan::{AirtimeReport, StationReport, WlanReport};

/// The result of one run, as `docs/scenario.md` describes it. Figures leave the warm-up out.
///
/// A pure function of scenario, overrides and seed, but for `wall_seconds`, which the caller fills
/// in: this crate reads no clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub name: String,
    /// Seed of the run.
    pub seed: u64,
    /// Virtual time the run lasted.
    pub virtual_seconds: f64,
    /// Time the run took on a wall clock; zero until the caller measures it.
    pub wall_seconds: f64,
    /// Events handled.
    pub events: u64,
    /// One entry a flow, in the scenario's order.
    pub flows: Vec<FlowReport>,
    /// 95th percentile of the one-way delay of all flows' data packets together: one that starves
    /// weighs little in it.
    pub owd_p95_us: Option<u64>,
    /// Figures of the 802.11 part; `None` on a wired path.
    pub wlan: Option<WlanReport>,
    /// What happened on the wired path, warm-up included.
    pub wired: WiredReport,
    /// Hash of everything that was sent and received: equal for equal runs.
    pub trace_hash: String,
}

/// Counters of both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WiredReport {
    /// Server to client.
    pub forward: PathCounters,
    /// Client to server.
    pub reverse: PathCounters,
    /// Damaged packets that the hosts' checksums caught.
    pub checksum_drops: u64,
}

/// Figures of one flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowReport {
    /// Position in the scenario, from 0.
    pub id: usize,
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// `tcp` or `udp`.
    pub transport: &'static str,
    /// Congestion control of the sender; `None` for UDP.
    pub congestion: Option<String>,
    /// Acknowledgement policy, for UDP as `ack_every=2,ack_size=64`; `None` for UDP without
    /// acknowledgements.
    pub ack: Option<String>,
    /// Payload delivered to the receiving application, bits per second of the measured time.
    pub goodput_bps: f64,
    /// Payload bytes delivered to the receiving application.
    pub bytes_delivered: u64,
    /// Segments with payload that the sender sent, retransmissions included.
    pub data_segments: u64,
    /// Segments that carried bytes sent before.
    pub retransmitted_segments: u64,
    /// Retransmissions that turned out to be unnecessary.
    pub spurious_retransmissions: u64,
    /// Pure acknowledgements that the receiver sent.
    pub acks: u64,
    /// Those that have a kind, by kind.
    pub acks_by_kind: AcksByKind,
    /// Of `tack` and `delayed`, those that a timer released: the others waited for a count of
    /// segments.
    pub acks_by_timer: u64,
    /// Reports of the receiver that the sender refused, because they say what cannot be.
    pub invalid_reports: u64,
    /// Bytes of the acknowledgements, transport header included.
    pub ack_bytes: u64,
    /// Messages to a receiver that schedules acknowledgements (TACK): RTTmin,
    /// losses of acknowledgements.
    pub syncs: u64,
    /// Tail loss probes that the sender sent.
    pub tlp_count: u64,
    /// Retransmission timeouts.
    pub rto_count: u64,
    /// Smallest round-trip time of the connection, microseconds.
    pub min_rtt_us: Option<u64>,
    /// Smoothed round-trip time at the end, microseconds.
    pub srtt_us: Option<u64>,
    /// Median one-way delay of data packets, host to host, microseconds.
    pub owd_p50_us: Option<u64>,
    /// 95th percentile of it.
    pub owd_p95_us: Option<u64>,
    /// Median of bytes held back at the receiver because something before them is missing, looked
    /// at whenever data comes.
    pub blocked_bytes_p50: u64,
    /// 99th percentile of it.
    pub blocked_bytes_p99: u64,
    /// Time from the flow's start to the delivery of its last byte; `None` for a flow without an
    /// end, or not finished.
    pub completion_s: Option<f64>,
    /// Shares of the measured time that something kept the sender from sending.
    pub limited_by: LimitedBy,
    /// The same of the whole connection, warm-up included: a window that was scarce while the flow
    /// began shows here.
    pub limited_by_overall: LimitedBy,
    /// How often a sender of the connection, at either end, did not get on although the path
    /// delivered, or did not send its oldest unacknowledged byte again in time. Of the whole
    /// run: none is ever right.
    pub stalls: u64,
    /// Longest time that the oldest unacknowledged byte of either end stayed the same while the
    /// receiver read, whatever the reason, seconds of the whole run.
    pub no_progress_max_s: f64,
    /// How the connection ended at `from` and at `to`: `graceful`, `reset`, `refused`,
    /// `timed_out`, `aborted`; `None` while it lasts, and for UDP.
    pub closed: [Option<&'static str>; 2],
    /// Figures of a request app; left out for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestReport>,
    /// Figures of a video; left out for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoReport>,
}

/// Acknowledgements by what made them leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AcksByKind {
    /// The periodic kind of TACK.
    pub tack: u64,
    /// At once, on a sign of loss or disorder.
    pub iack_loss: u64,
    /// At once, because of the window.
    pub iack_window: u64,
    /// At once, to agree on the frequency.
    pub iack_sync: u64,
    /// At once, on an event of the connection: handshake, FIN, duplicate, mark, challenge.
    pub iack_event: u64,
    /// By count or timer of a per-packet or delayed policy.
    pub delayed: u64,
}

/// Shares of time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LimitedBy {
    /// The congestion window.
    pub cwnd: f64,
    /// The receiver's window.
    pub rwnd: f64,
    /// The pacer.
    pub pacing: f64,
    /// Nothing to send.
    pub app: f64,
}

/// Exchanges of a request app, from the first byte of the request written to the last byte of the
/// response read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestReport {
    /// Exchanges completed.
    pub completed: u64,
    /// Median latency, microseconds.
    pub latency_p50_us: u64,
    /// 95th percentile.
    pub latency_p95_us: u64,
    /// 99th percentile.
    pub latency_p99_us: u64,
    /// The longest.
    pub latency_max_us: u64,
}

/// The quality of a video for its viewer. Over TCP the player waits for late bytes; over UDP it
/// shows what has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct VideoReport {
    /// Frames made by the source.
    pub frames: u64,
    /// Frames that were not complete when a player that never stops would have shown them.
    pub frames_late: u64,
    /// From the first frame made to the first frame shown, seconds of the whole flow; `None` when
    /// none was shown.
    pub startup_s: Option<f64>,
    /// How often the player stopped; `None` for UDP.
    pub rebufferings: Option<u64>,
    /// Share of the time since the first frame shown in which the player stood still, 1 when none
    /// was shown; `None` for UDP.
    pub rebuffering_share: Option<f64>,
    /// Share of the frames shown of which something was missing; `None` for TCP.
    pub macroblocking_share: Option<f64>,
}

impl Report {
    /// The run as one line of JSON, without the line's end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a report has no map with odd keys")
    }

    /// Jain's fairness index over the goodputs of all flows: 1 when all are equal, 1/n when one has
    /// everything.
    pub fn fairness(&self) -> f64 {
        let sum: f64 = self.flows.iter().map(|flow| flow.goodput_bps).sum();
        let squares: f64 = self.flows.iter().map(|flow| flow.goodput_bps.powi(2)).sum();
        if squares == 0.0 {
            1.0
        } else {
            sum * sum / (squares * self.flows.len() as f64)
        }
    }
}

const CSV_COLUMNS: &str = "name,seed,virtual_seconds,wall_seconds,events,flow,from,to,transport,congestion,ack,goodput_bps,\
bytes_delivered,data_segments,retransmitted_segments,spurious_retransmissions,acks,acks_tack,acks_iack_loss,acks_iack_window,\
acks_iack_sync,acks_iack_event,acks_delayed,ack_bytes,syncs,tlp_count,rto_count,min_rtt_us,srtt_us,owd_p50_us,owd_p95_us,blocked_bytes_p50,blocked_bytes_p99,\
completion_s,limited_by_cwnd,limited_by_rwnd,limited_by_pacing,limited_by_app";

/// Writes the reports as CSV: a header, then a line for each flow of each run.
///
/// # Errors
/// Whatever `out` says.
pub fn write_csv(reports: &[Report], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{CSV_COLUMNS}")?;
    for report in reports {
        for flow in &report.flows {
            let kinds = flow.acks_by_kind;
            let limits = flow.limited_by;
            write!(out, "{},{},", csv_text(&report.name), report.seed)?;
            write!(
                out,
                "{},{},{},",
                report.virtual_seconds, report.wall_seconds, report.events
            )?;
            write!(
                out,
                "{},{},{},{},",
                flow.id, flow.from, flow.to, flow.transport
            )?;
            write!(
                out,
                "{},",
                csv_text(flow.congestion.as_deref().unwrap_or(""))
            )?;
            write!(out, "{},", csv_text(flow.ack.as_deref().unwrap_or("")))?;
            write!(out, "{},{},", flow.goodput_bps, flow.bytes_delivered)?;
            write!(
                out,
                "{},{},",
                flow.data_segments, flow.retransmitted_segments
            )?;
            write!(out, "{},{},", flow.spurious_retransmissions, flow.acks)?;
            write!(
                out,
                "{},{},{},",
                kinds.tack, kinds.iack_loss, kinds.iack_window
            )?;
            write!(
                out,
                "{},{},{},{},",
                kinds.iack_sync, kinds.iack_event, kinds.delayed, flow.ack_bytes
            )?;
            write!(out, "{},{},{},", flow.syncs, flow.tlp_count, flow.rto_count)?;
            write!(
                out,
                "{},{},",
                optional(flow.min_rtt_us),
                optional(flow.srtt_us)
            )?;
            write!(
                out,
                "{},{},",
                optional(flow.owd_p50_us),
                optional(flow.owd_p95_us)
            )?;
            write!(
                out,
                "{},{},",
                flow.blocked_bytes_p50, flow.blocked_bytes_p99
            )?;
            write!(out, "{},", optional(flow.completion_s))?;
            writeln!(
                out,
                "{},{},{},{}",
                limits.cwnd, limits.rwnd, limits.pacing, limits.app
            )?;
        }
    }
    Ok(())
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Text as a CSV field (RFC 4180 §2).
fn csv_text(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

/// The reports as a table for people, with a line for each flow of each run.
pub fn table(reports: &[Report]) -> String {
    let head = [
        "name",
        "seed",
        "flow",
        "transport",
        "goodput",
        "data",
        "retrans",
        "acks",
        "rto",
        "srtt",
        "owd p95",
        "done",
    ];
    let mut rows = vec![head.map(String::from)];
    for report in reports {
        for flow in &report.flows {
            let transport = match (&flow.congestion, &flow.ack) {
                (Some(congestion), Some(ack)) => format!("{} {congestion} {ack}", flow.transport),
                (_, Some(ack)) => format!("{} {ack}", flow.transport),
                _ => flow.transport.into(),
            };
            let ms = |us: Option<u64>| {
                us.map_or_else(|| "-".into(), |us| format!("{:.1} ms", us as f64 / 1e3))
            };
            rows.push([
                report.name.clone(),
                report.seed.to_string(),
                format!("{} {}>{}", flow.id, flow.from, flow.to),
                transport,
                tack_base::Rate::from_bits_per_sec(flow.goodput_bps as u64).to_string(),
                flow.data_segments.to_string(),
                flow.retransmitted_segments.to_string(),
                flow.acks.to_string(),
                flow.rto_count.to_string(),
                ms(flow.srtt_us),
                ms(flow.owd_p95_us),
                flow.completion_s
                    .map_or_else(|| "-".into(), |seconds| format!("{seconds:.3} s")),
            ]);
        }
    }
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Names read from the left, numbers from the right.
            let padded = if matches!(column, 0 | 2 | 3) {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            };
            let _ = write!(line, "{}{padded}", if column == 0 { "" } else { "  " });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
