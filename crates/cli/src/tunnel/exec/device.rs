//! The device inside of the namespaces: its addresses, on which both sides agree.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tack::{TunNetwork, TunOptions};

/// Addresses that no other network should have: benchmarks (RFC 2544), and unique local ones
/// (RFC 4193) that begin with "Tack" in ASCII.
const NETWORKS: [TunNetwork; 2] = [
    TunNetwork {
        kernel: IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)),
        prefix: 30,
        stack: IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2)),
    },
    TunNetwork {
        kernel: IpAddr::V6(Ipv6Addr::new(0xfd54, 0x6163, 0x6b00, 0, 0, 0, 0, 1)),
        prefix: 126,
        stack: IpAddr::V6(Ipv6Addr::new(0xfd54, 0x6163, 0x6b00, 0, 0, 0, 0, 2)),
    },
];

/// The address of the name server, to which nothing else is.
pub(super) const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// True for the addresses that the other end of the device has itself.
pub(super) fn is_own(address: IpAddr) -> bool {
    NETWORKS.iter().any(|network| network.stack == address)
}

/// Which families there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Families {
    /// The system has no IPv6.
    V4,
    Both,
}

/// The options of the device.
pub(super) fn options(families: Families) -> TunOptions {
    let mut options = TunOptions::new(NETWORKS[0]);
    options.name = Some("tack0".into());
    options.everywhere = true;
    // Nothing is cut into fragments: it is no real link.
    options.mtu = u16::MAX;
    options.queue = 0;
    options.routes = vec![(Ipv4Addr::UNSPECIFIED.into(), 0)];
    if families == Families::Both {
        options.networks.push(NETWORKS[1]);
        options.routes.push((Ipv6Addr::UNSPECIFIED.into(), 0));
    }
    options
}
