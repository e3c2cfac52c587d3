//! What the kernel of either host counts, and what its BBR holds, beside the emulator's samples.

use std::io;
use std::process::Command;
use std::thread::JoinHandle;

use tack_emulator::Sample;
use tack_io::namespace::Namespace;
use tokio::sync::mpsc;

/// Counters of both hosts since they were made, of all connections together (`/proc/net/snmp` and
/// `/proc/net/netstat`). What the kernel does not have, or could not be read, is not a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Counters {
    /// Segments that the sending host sent again.
    pub(super) again: f64,
    /// Packets that the receiving host's TCP got from below: several segments are one where receive
    /// offload joined them.
    pub(super) packets: f64,
    /// Those of them that were joined to another one while the program held the socket.
    pub(super) merged: f64,
    /// Packets that were queued because a segment before them was missing.
    pub(super) out_of_order: f64,
    /// Acknowledgements that a timer sent.
    pub(super) delayed: f64,
    /// Acknowledgements that compression of SACKs saved.
    pub(super) compressed: f64,
}

impl Counters {
    const UNKNOWN: Self = Self {
        again: f64::NAN,
        packets: f64::NAN,
        merged: f64::NAN,
        out_of_order: f64::NAN,
        delayed: f64::NAN,
        compressed: f64::NAN,
    };

    /// What was read, or nothing that is a number.
    fn or_unknown(read: io::Result<Self>) -> Self {
        read.unwrap_or(Self::UNKNOWN)
    }

    /// Of `sender` and `receiver`. Leaves the thread in one of them.
    fn of(sender: &Namespace, receiver: &Namespace) -> io::Result<Self> {
        sender.enter()?;
        let again = sent_again()?;
        receiver.enter()?;
        Ok(Self {
            again,
            ..Self::here()?
        })
    }

    /// What a receiver counts, of this thread's namespace.
    fn here() -> io::Result<Self> {
        let snmp = std::fs::read_to_string("/proc/thread-self/net/snmp")?;
        let netstat = std::fs::read_to_string("/proc/thread-self/net/netstat")?;
        Ok(Self {
            packets: value(&snmp, "Tcp:", "InSegs"),
            merged: value(&netstat, "TcpExt:", "TCPBacklogCoalesce"),
            out_of_order: value(&netstat, "TcpExt:", "TCPOFOQueue"),
            delayed: value(&netstat, "TcpExt:", "DelayedACKs"),
            compressed: value(&netstat, "TcpExt:", "TCPAckCompressed"),
            ..Self::UNKNOWN
        })
    }

    /// What was counted after `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            again: self.again - earlier.again,
            packets: self.packets - earlier.packets,
            merged: self.merged - earlier.merged,
            out_of_order: self.out_of_order - earlier.out_of_order,
            delayed: self.delayed - earlier.delayed,
            compressed: self.compressed - earlier.compressed,
        }
    }
}

fn sent_again() -> io::Result<f64> {
    let snmp = std::fs::read_to_string("/proc/thread-self/net/snmp")?;
    Ok(value(&snmp, "Tcp:", "RetransSegs"))
}

/// The number called `name` in a table of pairs of lines: names, then values, each line beginning
/// with `table`.
fn value(text: &str, table: &str, name: &str) -> f64 {
    let mut lines = text.lines().filter(|line| line.starts_with(table));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return f64::NAN;
    };
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let found = pairs.find(|(named, _)| *named == name);
    found
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(f64::NAN)
}

/// A sample of the emulator, and what the hosts had counted then, to a few milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) sample: Sample,
    pub(super) counters: Counters,
    /// RTTmin of the sending kernel's BBR, seconds; not a number where it was not asked for.
    pub(super) bbr_min_rtt: f64,
}

/// How many samples pass from one question for BBR's RTTmin to the next: asking takes a program
/// (`ss`).
const BBR_EVERY: usize = 10;

/// RTTmin of BBR, seconds, of that connection of this thread's namespace which sent most.
fn bbr_min_rtt() -> f64 {
    let output = Command::new("ss").args(["-tinHO"]).output();
    output.map_or(f64::NAN, |output| {
        bbr_min_rtt_in(&String::from_utf8_lossy(&output.stdout))
    })
}

/// The same in what `ss -tinHO` prints: a line for each connection.
fn bbr_min_rtt_in(text: &str) -> f64 {
    let number = |line: &str, name: &str| -> Option<f64> {
        let (_, rest) = line.split_once(name)?;
        let end = rest.find([',', ' ', ')']);
        rest[..end.unwrap_or(rest.len())].parse().ok()
    };
    let connections = text
        .lines()
        .filter_map(|line| Some((number(line, " bytes_sent:")?, number(line, ",mrtt:")?)));
    let most = connections.max_by(|a, b| a.0.total_cmp(&b.0));
    // Before the first one it is the largest number that there is.
    let known = most.filter(|(_, millis)| *millis < 1e6);
    known.map_or(f64::NAN, |(_, millis)| millis / 1e3)
}

/// Reads the counters of both hosts at each sample, until the samples end. If `is_asked`, also the
/// RTTmin of the sender's BBR, now and then.
pub(super) fn watch(
    sender: Namespace,
    receiver: Namespace,
    is_asked: bool,
    mut samples: mpsc::Receiver<Sample>,
) -> JoinHandle<Vec<Reading>> {
    std::thread::spawn(move || {
        // The emulator must not wait for it.
        tack_io::realtime::leave();
        let mut readings = Vec::new();
        while let Some(sample) = samples.blocking_recv() {
            let counters = Counters::or_unknown(Counters::of(&sender, &receiver));
            let is_turn = is_asked && readings.len() % BBR_EVERY == 0;
            let bbr_min_rtt = match is_turn && sender.enter().is_ok() {
                true => bbr_min_rtt(),
                false => f64::NAN,
            };
            readings.push(Reading {
                sample,
                counters,
                bbr_min_rtt,
            });
        }
        readings
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_name() {
        let text = "\
TcpExt: SyncookiesSent DelayedACKs TCPBacklogCoalesce
TcpExt: 1 22 333
IpExt: InNoRoutes
IpExt: 4
";
        assert_eq!(value(text, "TcpExt:", "TCPBacklogCoalesce"), 333.0);
        assert_eq!(value(text, "IpExt:", "InNoRoutes"), 4.0);
        assert!(value(text, "TcpExt:", "InNoRoutes").is_nan());
        assert!(value(text, "Udp:", "InDatagrams").is_nan());
    }

    #[test]
    fn the_round_trip_of_the_largest_connection_is_read() {
        let text = "\
ESTAB 0 0 10.0.0.1:5 10.0.0.2:6\t bbr wscale:7,7 rto:201 bytes_sent:90 bytes_acked:90 bbr:(bw:1bps,mrtt:9.5,pacing_gain:2)
ESTAB 0 0 10.0.0.1:7 10.0.0.2:6\t bbr rto:201 bytes_sent:1000 bytes_acked:900 bbr:(bw:1bps,mrtt:25.125,pacing_gain:2)
ESTAB 0 0 10.0.0.1:8 10.0.0.2:6\t cubic rto:201 bytes_sent:2000 bytes_acked:900
";
        assert_eq!(bbr_min_rtt_in(text), 0.025125);
        let unknown = text.replace("25.125", "4.29497e+06");
        assert!(bbr_min_rtt_in(&unknown).is_nan());
        assert!(bbr_min_rtt_in("").is_nan());
    }

    /// Zeros would say that nothing was sent again, and that nothing was out of order.
    #[test]
    fn what_cannot_be_read_is_not_a_number() {
        let unknown = Counters::or_unknown(Err(io::ErrorKind::PermissionDenied.into()));
        let Counters {
            again,
            packets,
            merged,
            out_of_order,
            delayed,
            compressed,
        } = unknown.since(&unknown);
        for count in [again, packets, merged, out_of_order, delayed, compressed] {
            assert!(count.is_nan(), "{unknown:?}");
        }
    }

    #[test]
    fn this_kernel_has_them() {
        match Counters::here() {
            Ok(counters) => assert!(counters.packets >= 0.0, "{counters:?}"),
            Err(error) => {
                tack_skip::skipped(format_args!("no counters of the kernel here: {error}"));
            }
        }
    }
}
