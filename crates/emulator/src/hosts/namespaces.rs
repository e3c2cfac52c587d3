//! Network namespaces as hosts: each with a TUN device, whose other end is the emulator.

use std::io;

use tack_io::namespace::Namespace;
use tack_io::{TunNetwork, TunOptions, TunReceiver, TunSender};

use super::processor::OwnProcessor;
use super::settings::{Host, PREFIX_V4, PREFIX_V6, device, ipv4, ipv6, name};
use crate::running::StartError;

/// Packets that the kernel queues for the emulator: 100 ms of a gigabit per second.
const QUEUE: u32 = 10_000;

/// A host, and the other end of its device.
pub(super) struct Connected {
    pub(super) host: Host,
    pub(super) sender: TunSender,
    pub(super) receiver: TunReceiver,
}

/// Makes `count` hosts. With `own` their TCP runs on other processors than that one, from
/// [`OwnProcessor::steer`]. This thread is back in its own namespace afterwards. Must be called
/// within a tokio runtime.
pub(super) fn connect(
    count: usize,
    mtu: u16,
    mut own: Option<&mut OwnProcessor>,
) -> Result<Vec<Connected>, StartError> {
    let home = Namespace::current().map_err(StartError::Namespaces)?;
    let made = (0..count)
        .map(|index| make(index, mtu, own.as_deref_mut()))
        .collect::<Result<Vec<_>, _>>();
    home.enter().map_err(StartError::Namespaces)?;
    made
}

fn make(index: usize, mtu: u16, own: Option<&mut OwnProcessor>) -> Result<Connected, StartError> {
    let namespace = Namespace::enter_new().map_err(StartError::Namespaces)?;
    // No packets that nobody answers: link-local addresses, router solicitations. An old kernel, or
    // one without IPv6, does not know the setting, and says later what it lacks.
    let _unsupported = std::fs::write("/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1");
    if let Some(own) = own {
        own.steer();
    }
    // Any host but this one: the device needs a far end, and all are behind it.
    let other = usize::from(index == 0);
    let mut options = TunOptions::new(TunNetwork {
        kernel: ipv4(index).into(),
        prefix: PREFIX_V4,
        stack: ipv4(other).into(),
    });
    options.networks.push(TunNetwork {
        kernel: ipv6(index).into(),
        prefix: PREFIX_V6,
        stack: ipv6(other).into(),
    });
    options.name = Some(device(index).into());
    options.mtu = mtu;
    options.queue = QUEUE;
    let opened = options.open().and_then(|(sender, receiver)| {
        // Each packet of the kernel is a packet on the air.
        sender.refuse_trains()?;
        Ok((sender, receiver))
    });
    let (sender, receiver) = opened.map_err(|error| StartError::Device {
        host: name(index),
        error,
    })?;
    Ok(Connected {
        host: Host {
            name: name(index),
            ipv4: ipv4(index),
            ipv6: ipv6(index),
            device: device(index),
            namespace,
        },
        sender,
        receiver,
    })
}

/// Packets that the kernel dropped at a host's device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drops {
    /// On their way out, because the emulator did not read them in time.
    pub(super) sent: u64,
    /// On their way in, because the processor that was to receive them did not in time.
    pub(super) received: u64,
}

/// What was dropped so far. Moves this thread into the host's namespace.
pub(super) fn drops(namespace: &Namespace, device: &str) -> io::Result<Drops> {
    namespace.enter()?;
    let table = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    let none = Drops {
        sent: 0,
        received: 0,
    };
    Ok(drops_in(&table, device).unwrap_or(none))
}

/// Fields 4 and 12 of the device's line: `name: bytes packets errs drop fifo frame compressed
/// multicast bytes packets errs drop …`, received first.
fn drops_in(table: &str, device: &str) -> Option<Drops> {
    table.lines().find_map(|line| {
        let (name, counters) = line.split_once(':')?;
        if name.trim() != device {
            return None;
        }
        let mut counters = counters.split_whitespace();
        let received = counters.nth(3)?.parse().ok()?;
        let sent = counters.nth(7)?.parse().ok()?;
        Some(Drops { sent, received })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_counted_each_way() {
        let table = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       1       2    3    4    5     6          7         8        9      10   11   12   13    14      15         16
 wlan0:       1       2    3   17    5     6          7         8        9      10   11   42   13    14      15         16
";
        let (sent, received) = (42, 17);
        assert_eq!(drops_in(table, "wlan0"), Some(Drops { sent, received }));
        assert_eq!(drops_in(table, "eth0"), None);
    }
}
