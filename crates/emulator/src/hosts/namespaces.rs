//! Network namespaces as hosts: each with a TUN device, whose other end is the emulator.

use std::io;

use tack_io::namespace::Namespace;
use tack_io::{TunNetwork, TunOptions, TunReceiver, TunSender};

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

/// Makes `count` hosts. This thread is back in its own namespace afterwards. Must be called within
/// a tokio runtime.
pub(super) fn connect(count: usize, mtu: u16) -> Result<Vec<Connected>, StartError> {
    let home = Namespace::current().map_err(StartError::Namespaces)?;
    let made = (0..count)
        .map(|index| make(index, mtu))
        .collect::<Result<Vec<_>, _>>();
    home.enter().map_err(StartError::Namespaces)?;
    made
}

fn make(index: usize, mtu: u16) -> Result<Connected, StartError> {
    let namespace = Namespace::enter_new().map_err(StartError::Namespaces)?;
    // No packets that nobody answers: link-local addresses, router solicitations. An old kernel, or
    // one without IPv6, does not know the setting, and says later what it lacks.
    let _unsupported = std::fs::write("/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1");
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

/// Packets that the kernel dropped at a host's device because the emulator did not read them in
/// time. Moves this thread into the host's namespace.
pub(super) fn drops(namespace: &Namespace, device: &str) -> io::Result<u64> {
    namespace.enter()?;
    let table = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    Ok(transmit_drops(&table, device).unwrap_or_default())
}

/// Field 12 of the device's line: `name: bytes packets errs drop fifo frame compressed multicast
/// bytes packets errs drop …`, received first.
fn transmit_drops(table: &str, device: &str) -> Option<u64> {
    table.lines().find_map(|line| {
        let (name, counters) = line.split_once(':')?;
        if name.trim() != device {
            return None;
        }
        counters.split_whitespace().nth(11)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_those_of_packets_that_leave() {
        let table = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       1       2    3    4    5     6          7         8        9      10   11   12   13    14      15         16
 wlan0:       1       2    3    4    5     6          7         8        9      10   11   42   13    14      15         16
";
        assert_eq!(transmit_drops(table, "wlan0"), Some(42));
        assert_eq!(transmit_drops(table, "eth0"), None);
    }
}
