//! What a test measured, as lines for people.

use std::fmt::Write as _;

use indicatif::HumanBytes;
use tack_base::Rate;

use super::report::{Interval, IntervalRow, Role, Summary};
use crate::printer::bits_per_second;

/// The column heads of [`interval_lines`].
pub(crate) fn heads(is_udp: bool) -> String {
    let tail = if is_udp {
        format!("{:>10} {:>16}", "jitter", "lost")
    } else {
        format!("{:>6} {:>8} {:>11} {:>10}", "retr", "acks", "cwnd", "srtt")
    };
    format!(
        "[{:>4}] {:<8} {:>15} {:>11} {:>13} {tail}\n",
        "ID", "role", "interval", "bytes", "bitrate"
    )
}

/// The last columns of a row.
fn tail(row: &IntervalRow) -> String {
    if let Some(latency) = &row.latency {
        return format!(
            "{} transactions, p50 {}, p99 {}",
            latency.transactions,
            millis(Some(latency.p50_us)),
            millis(Some(latency.p99_us))
        );
    }
    match (&row.datagrams, row.role) {
        (Some(_), Role::Sender) => format!("{:>10} {:>16}", "-", "-"),
        (Some(datagrams), Role::Receiver) => format!(
            "{:>10} {:>16}",
            millis(Some(datagrams.jitter_us)),
            format!("{}/{}", datagrams.lost, datagrams.received + datagrams.lost)
        ),
        (None, Role::Sender) => format!(
            "{:>6} {:>8} {:>11} {:>10}",
            row.retransmitted_segments,
            row.acks_received,
            bytes(row.cwnd),
            millis(row.srtt_us)
        ),
        (_, Role::Requester | Role::Responder) => String::new(),
        (None, Role::Receiver) => {
            format!("{:>6} {:>8} {:>11} {:>10}", "-", row.acks_sent, "-", "-")
        }
    }
}

/// An interval for people, a line for each connection and role, and sums when there are several.
pub(crate) fn interval_lines(interval: &Interval) -> String {
    let mut text = String::new();
    for row in &interval.streams {
        line(
            &mut text,
            &row.stream.to_string(),
            row.role,
            interval,
            row.bytes,
            row.bits_per_second,
            &tail(row),
        );
    }
    for role in [Role::Sender, Role::Receiver] {
        let rows: Vec<&IntervalRow> = interval
            .streams
            .iter()
            .filter(|row| row.role == role)
            .collect();
        if rows.len() > 1 {
            let total = rows.iter().map(|row| row.bytes).sum();
            line(
                &mut text,
                "SUM",
                role,
                interval,
                total,
                bits_per_second(total, interval.end - interval.start),
                "",
            );
        }
    }
    text
}

fn line(
    text: &mut String,
    id: &str,
    role: Role,
    interval: &Interval,
    amount: u64,
    rate: f64,
    tail: &str,
) {
    let role = match role {
        Role::Sender => "send",
        Role::Receiver => "receive",
        Role::Requester => "request",
        Role::Responder => "respond",
    };
    let span = format!("{:.2}-{:.2} s", interval.start, interval.end);
    let rate = Rate::from_bits_per_sec(rate as u64).to_string();
    let whole = format!(
        "[{id:>4}] {role:<8} {span:>15} {:>11} {rate:>13} {tail}",
        bytes(amount)
    );
    let omitted = if interval.omitted { " (omitted)" } else { "" };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}{omitted}", whole.trim_end());
}

/// The summary for people.
pub(crate) fn summary_lines(summary: &Summary) -> String {
    let mut text = String::new();
    for (name, direction) in [("up", &summary.up), ("down", &summary.down)] {
        let Some(direction) = direction else { continue };
        let rate = Rate::from_bits_per_sec(direction.goodput_bps as u64);
        if let Some(loss) = &direction.datagrams {
            let _ = writeln!(
                text,
                "{name}: {} received in {:.2} s, {rate}; {} of {} datagrams lost ({:.2} %), {} out of order, jitter {}",
                bytes(direction.bytes_received),
                direction.seconds,
                loss.lost,
                loss.sent,
                loss.lost_share * 100.0,
                loss.out_of_order,
                millis(Some(loss.jitter_us)),
            );
            continue;
        }
        let _ = writeln!(
            text,
            "{name}: {} received in {:.2} s, {rate}; {} of {} segments retransmitted ({} spurious), {} timeouts",
            bytes(direction.bytes_received),
            direction.seconds,
            direction.retransmitted_segments,
            direction.data_segments,
            direction.spurious_retransmissions,
            direction.rto_count,
        );
        let _ = writeln!(
            text,
            "{name}: srtt {}, min rtt {}, cwnd {}; {} acks sent, {} arrived, {:.1} per MiB",
            millis(direction.srtt_us),
            millis(direction.min_rtt_us),
            bytes(direction.cwnd),
            direction.acks_sent,
            direction.acks_received,
            direction.acks_per_mib,
        );
        let shares: Vec<String> = direction
            .limited
            .shares()
            .into_iter()
            .filter(|(_, share)| *share >= 0.005)
            .map(|(what, share)| format!("{what} {:.0} %", share * 100.0))
            .collect();
        let _ = writeln!(
            text,
            "{name}: limited by {} ({})",
            direction.limited_by,
            shares.join(", ")
        );
    }
    if let Some(rr) = &summary.rr {
        let latency = &rr.latency;
        let _ = writeln!(
            text,
            "rr: {} transactions of {} and {} bytes in {:.2} s, {:.1} per second",
            latency.transactions,
            rr.message_bytes,
            rr.message_bytes,
            rr.seconds,
            rr.transactions_per_second,
        );
        let _ = writeln!(
            text,
            "rr: mean {}, min {}, p50 {}, p90 {}, p99 {}, p99.9 {}, max {}",
            millis(Some(latency.mean_us)),
            millis(Some(latency.min_us)),
            millis(Some(latency.p50_us)),
            millis(Some(latency.p90_us)),
            millis(Some(latency.p99_us)),
            millis(Some(latency.p999_us)),
            millis(Some(latency.max_us)),
        );
    }
    let _ = writeln!(
        text,
        "processors: client {:.0} %, server {:.0} %",
        summary.cpu.client * 100.0,
        summary.cpu.server * 100.0
    );
    text
}

fn bytes(amount: u64) -> String {
    HumanBytes(amount).to_string()
}

fn millis(micros: Option<f64>) -> String {
    micros.map_or_else(|| "-".into(), |micros| format!("{:.3} ms", micros / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{LimitedSeconds, TransportFigures};
    use crate::perf::report::Cpu;
    use crate::perf::results::FlowResult;

    #[test]
    fn the_summary_names_what_limited_the_run() {
        let sender = FlowResult {
            sent: 2 << 20,
            send_seconds: 2.0,
            transport: TransportFigures {
                limited_seconds: LimitedSeconds {
                    cwnd: 0.2,
                    rwnd: 0.0,
                    pacing: 1.2,
                    app: 0.0,
                },
                ..TransportFigures::default()
            },
            ..FlowResult::default()
        };
        let receiver = FlowResult {
            received: 2 << 20,
            receive_seconds: 2.0,
            transport: TransportFigures {
                acks_sent: 100,
                ..TransportFigures::default()
            },
            ..FlowResult::default()
        };
        let request = serde_json::from_value(serde_json::json!({
            "direction": "up", "streams": 1, "limit": {"millis": 2000},
            "congestion": "bbr", "ack": "tack",
        }))
        .unwrap();
        let summary = Summary::new(
            &request,
            &[sender],
            &[receiver],
            Cpu {
                client: 0.5,
                server: 0.25,
                client_user: 0.4,
                server_user: None,
            },
        );
        let up = summary.up.as_ref().unwrap();
        assert!(summary.down.is_none());
        assert_eq!((up.limited_by, up.acks_per_mib), ("pacing", 50.0));
        assert!((up.limited.machine - 0.3).abs() < 1e-9);
        let text = summary_lines(&summary);
        assert!(
            text.contains("limited by pacing (cwnd 10 %, pacing 60 %, machine 30 %)"),
            "{text}"
        );
    }
}
