//! What the system knows of the way to a peer.

use std::net::SocketAddr;

/// The longest IP packet that the route to `peer` takes, bytes, as far as the system knows: the MTU
/// of the device, or what the routing table or ICMP says of the path; at most 65,535. `None` where
/// the system does not tell, or there is no route.
#[cfg(target_os = "linux")]
pub fn route_mtu(peer: SocketAddr) -> Option<u16> {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

    use rustix::net::sockopt::{ip_mtu, ipv6_mtu};

    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Nothing is sent by this.
    socket.connect(peer).ok()?;
    let mtu = match peer {
        SocketAddr::V4(_) => ip_mtu(&socket),
        SocketAddr::V6(_) => ipv6_mtu(&socket),
    };
    mtu.ok().map(|mtu| u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// As on Linux; elsewhere the system does not tell.
#[cfg(not(target_os = "linux"))]
pub fn route_mtu(_peer: SocketAddr) -> Option<u16> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn loopback_takes_long_packets_and_nobody_is_behind_no_address() {
        for peer in ["127.0.0.1:9", "[::1]:9"] {
            let mtu = route_mtu(peer.parse().unwrap());
            assert!(mtu.is_some_and(|mtu| mtu >= 9_000), "{peer}: {mtu:?}");
        }
        // Not without the right to broadcast.
        assert_eq!(route_mtu("255.255.255.255:9".parse().unwrap()), None);
    }
}
