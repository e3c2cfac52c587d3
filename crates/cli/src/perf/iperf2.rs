//! A test as `iperf -y C -e` prints it (iperf 2, `ReportOutputs.c`), for programs such as flent
//! that read that.
//!
//! A row has the time, the source's address and port, the destination's, the number of the stream
//! (-1: all together), the interval, bytes, and bits per second. The last rows are about the whole
//! test. For datagrams there is one row more with the receiver's view: jitter in milliseconds,
//! lost, all, the percentage of those lost, and those out of order.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Local};

use super::iperf3::Setting;
use super::report::{Interval, Role};
use super::request::TestRequest;
use super::results::FlowResult;
use crate::printer::bits_per_second;

/// What a row is about.
struct Row<'a> {
    setting: &'a Setting,
    /// This side sends.
    sends: bool,
    id: i64,
    /// Seconds from the beginning.
    start: f64,
    end: f64,
    bytes: u64,
}

impl Row<'_> {
    fn write(&self, to: &mut String, more: &str) {
        let at = self.setting.began + Duration::from_secs_f64(self.end.max(0.0));
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let (local, peer) = self.setting.addresses.unwrap_or((nowhere, nowhere));
        let (from, to_address) = match self.sends {
            true => (local, peer),
            false => (peer, local),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            to,
            "{},{},{},{},{},{},{:.1}-{:.1},{},{}{more}",
            time(at),
            from.ip().to_canonical(),
            from.port(),
            to_address.ip().to_canonical(),
            to_address.port(),
            self.id,
            self.start,
            self.end,
            self.bytes,
            bits_per_second(self.bytes, self.end - self.start) as u64,
        );
    }
}

/// As `20261124055956.123`, on the clock of the place.
fn time(at: SystemTime) -> String {
    DateTime::<Local>::from(at)
        .format("%Y%m%d%H%M%S%.3f")
        .to_string()
}

/// The rows of an interval.
pub(crate) fn interval_rows(
    setting: &Setting,
    request: &TestRequest,
    interval: &Interval,
) -> String {
    let mut text = String::new();
    if interval.omitted {
        return text;
    }
    let omitted = request.omit_millis as f64 / 1e3;
    for role in [Role::Sender, Role::Receiver] {
        let rows = interval.streams.iter().filter(|row| row.role == role);
        let row = |id, bytes| Row {
            setting,
            sends: role == Role::Sender,
            id,
            start: (interval.start - omitted).max(0.0),
            end: interval.end - omitted,
            bytes,
        };
        let (mut count, mut total) = (0, 0);
        for of_stream in rows {
            row(of_stream.stream as i64 + 1, of_stream.bytes).write(&mut text, "");
            count += 1;
            total += of_stream.bytes;
        }
        if count > 1 {
            row(-1, total).write(&mut text, "");
        }
    }
    text
}

/// The rows of the whole test.
pub(crate) fn summary_rows(
    setting: &Setting,
    request: &TestRequest,
    client: &[FlowResult],
    server: &[FlowResult],
) -> String {
    let mut text = String::new();
    let bulk = request.bulk_streams();
    let ways = [
        (request.direction.client_sends(), true, client, server),
        (request.direction.server_sends(), false, server, client),
    ];
    for (is_used, sends, senders, receivers) in ways {
        if !is_used {
            continue;
        }
        let row = |id, end, bytes| Row {
            setting,
            sends,
            id,
            start: 0.0,
            end,
            bytes,
        };
        let (mut count, mut total, mut longest) = (0, 0, 0.0f64);
        for (sender, receiver) in senders.iter().zip(receivers).take(bulk) {
            let id = sender.stream as i64 + 1;
            let (bytes, end) = (receiver.received, receiver.receive_seconds);
            match (sender.datagrams, receiver.datagrams) {
                (Some(sent), Some(there)) => {
                    row(id, sender.send_seconds, sender.sent).write(&mut text, "");
                    let lost = sent.sent.saturating_sub(there.received);
                    let more = format!(
                        ",{:.3},{lost},{},{:.3},{}",
                        there.jitter_us / 1e3,
                        sent.sent,
                        lost as f64 / sent.sent.max(1) as f64 * 100.0,
                        there.out_of_order
                    );
                    // The receiver's report, with its own address first.
                    Row {
                        sends: !sends,
                        ..row(id, end, bytes)
                    }
                    .write(&mut text, &more);
                }
                _ => row(id, end, bytes).write(&mut text, ""),
            }
            count += 1;
            total += bytes;
            longest = longest.max(end);
        }
        if count > 1 {
            row(-1, longest, total).write(&mut text, "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_as_iperf_has_it() {
        let setting = Setting {
            began: SystemTime::UNIX_EPOCH,
            addresses: Some((
                "[::ffff:192.0.2.1]:4000".parse().unwrap(),
                "192.0.2.2:7778".parse().unwrap(),
            )),
        };
        let mut text = String::new();
        let row = Row {
            setting: &setting,
            sends: true,
            id: 1,
            start: 1.0,
            end: 2.0,
            bytes: 125_000,
        };
        row.write(&mut text, "");
        let (at, rest) = text.split_once(',').unwrap();
        assert_eq!(
            rest,
            "192.0.2.1,4000,192.0.2.2,7778,1,1.0-2.0,125000,1000000\n"
        );
        // The zone is that of the machine, the form is not.
        assert_eq!(at.len(), "19700101000002.000".len());
        assert!(at.ends_with("02.000"), "{at}");
    }
}
