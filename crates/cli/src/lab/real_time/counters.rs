//! What the kernel of either host counts, beside the emulator's samples.

use std::io;
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
}

/// Reads the counters of both hosts at each sample, until the samples end.
pub(super) fn watch(
    sender: Namespace,
    receiver: Namespace,
    mut samples: mpsc::Receiver<Sample>,
) -> JoinHandle<Vec<Reading>> {
    std::thread::spawn(move || {
        // The emulator must not wait for it.
        tack_io::realtime::leave();
        let mut readings = Vec::new();
        while let Some(sample) = samples.blocking_recv() {
            let counters = Counters::or_unknown(Counters::of(&sender, &receiver));
            readings.push(Reading { sample, counters });
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
