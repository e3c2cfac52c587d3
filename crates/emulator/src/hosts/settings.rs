//! What to emulate between hosts, and who they are.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tack_io::namespace::Namespace;
use tack_sim::{Network, Scenario};

use crate::content::SMALL;

/// Bits of the network that all hosts share, by family.
pub(super) const PREFIX_V4: u8 = 16;
pub(super) const PREFIX_V6: u8 = 112;

/// Largest frame body that 802.11 carries without aggregation, less the header of LLC, SNAP
/// (IEEE 802.11-2020 §9.2.4.7.1).
pub(super) const MAX_MTU: u16 = 2_304 - 8;

/// Smallest MTU of IPv6.
pub(super) const MIN_MTU: u16 = 1_280;

/// A network between hosts that the kernel runs.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// The links: wired path and wireless network, with the number of stations. Without a wireless
    /// network there is one station, behind the wired path. The flows and the duration of the
    /// scenario do not count here.
    pub scenario: Scenario,
    /// Seed of the model's random draws.
    pub seed: u64,
    /// MTU of all devices, bytes: 1280 to 2296. Default 1500.
    pub mtu: u16,
    /// How many connections and flows of UDP are counted apart at a time; when there are more, the
    /// one that was silent for longest is forgotten. Default 256.
    pub max_flows: usize,
    /// Longest payload of a datagram that counts as an acknowledgement in a flow of UDP whose
    /// content is unknown, bytes. Default [`SMALL`]. Acknowledgements of QUIC are longer when much
    /// was lost: they list what came.
    pub small_datagram: usize,
    /// Whether hosts have generic receive offload: the frames of a PPDU come to their host at its
    /// end, all at once, and its kernel sees segments of one connection among them as one packet.
    /// Otherwise each frame comes when it ends, alone. Default true.
    pub receive_offload: bool,
    /// Whether the emulator keeps to one processor, where the thread may use several and the kernel
    /// can leave the hosts' TCP to the others (Linux 6.3). Otherwise its thread does that work too,
    /// which makes deliveries late where each packet comes to a host alone. With receive offload
    /// there are fewer packets, and a thread that keeps to one processor was later than one that
    /// moves to whichever is free. Default false.
    pub own_processor: bool,
    /// Time between samples, at least a millisecond. Default 100 ms.
    pub sample_interval: Duration,
}

impl HostSettings {
    /// The links of `scenario`, drawn with its own seed.
    pub fn new(scenario: Scenario) -> Self {
        Self {
            seed: scenario.seed,
            scenario,
            mtu: 1_500,
            max_flows: 256,
            small_datagram: SMALL,
            receive_offload: true,
            own_processor: false,
            sample_interval: Duration::from_millis(100),
        }
    }
}

/// A host of the emulation: a network namespace with one device.
#[derive(Debug)]
pub struct Host {
    /// `server`, or `sta0`, `sta1`, …
    pub name: String,
    /// Its address of IPv4.
    pub ipv4: Ipv4Addr,
    /// Its address of IPv6.
    pub ipv6: Ipv6Addr,
    /// Name of its device: `eth0` at the server, `wlan0` at a station.
    pub device: &'static str,
    /// Its network namespace, which exists at least as long as this, the emulation or a process in
    /// it.
    pub namespace: Namespace,
}

/// Name of host `index` as scenario files have it.
pub(super) fn name(index: usize) -> String {
    match index {
        0 => "server".into(),
        station => format!("sta{}", station - 1),
    }
}

/// Name of the device of host `index`.
pub(super) fn device(index: usize) -> &'static str {
    if index == 0 { "eth0" } else { "wlan0" }
}

/// The address of host `index`: the one that the model has for it.
pub(super) fn ipv4(index: usize) -> Ipv4Addr {
    Network::address(index)
}

/// Unique local addresses (RFC 4193) with the last 16 bits of the address of IPv4.
pub(super) fn ipv6(index: usize) -> Ipv6Addr {
    let [.., high, low] = ipv4(index).octets();
    let number = u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0xfd74, 0x6163, 0x6b00, 0, 0, 0, 0, number)
}

/// The host among the first `hosts` with this address.
pub(super) fn host_v4(address: Ipv4Addr, hosts: usize) -> Option<usize> {
    let [.., high, low] = address.octets();
    let index = usize::from(u16::from_be_bytes([high, low])).checked_sub(1)?;
    (index < hosts && ipv4(index) == address).then_some(index)
}

/// The host among the first `hosts` with this address.
pub(super) fn host_v6(address: Ipv6Addr, hosts: usize) -> Option<usize> {
    let index = usize::from(*address.segments().last()?).checked_sub(1)?;
    (index < hosts && ipv6(index) == address).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_hosts() {
        for index in [0, 1, 254, 255, 256, 500] {
            assert_eq!(host_v4(ipv4(index), 501), Some(index));
            assert_eq!(host_v6(ipv6(index), 501), Some(index));
            assert_eq!(host_v4(ipv4(index), index), None);
        }
        assert_eq!(host_v4([10, 0, 0, 0].into(), 5), None);
        assert_eq!(host_v4([10, 1, 0, 1].into(), 5), None);
        assert_eq!(host_v6("fe80::1".parse().unwrap(), 5), None);
        assert_eq!((name(0), name(1)), ("server".into(), "sta0".into()));
    }
}
