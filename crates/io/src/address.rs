//! IPv4 peers behind an IPv6 socket.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

/// The address a socket of family IPv6 (`is_ipv6`) sends to in order to reach `peer`.
pub(crate) fn for_socket(peer: SocketAddr, is_ipv6: bool) -> SocketAddr {
    match peer {
        SocketAddr::V4(v4) if is_ipv6 => {
            SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into()
        }
        _ => peer,
    }
}

/// The canonical form of a peer's address above the carrier: IPv4 as IPv4, no flow label.
///
/// The demultiplexer would take two forms of one address for two peers.
pub(crate) fn canonical(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V6(v6) => match v6.ip().to_canonical() {
            ip @ IpAddr::V4(_) => SocketAddr::new(ip, v6.port()),
            IpAddr::V6(ip) => SocketAddrV6::new(ip, v6.port(), 0, v6.scope_id()).into(),
        },
        SocketAddr::V4(_) => peer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_peer_comes_back_as_it_went() {
        let peer: SocketAddr = "192.0.2.1:5000".parse().unwrap();
        let mapped = for_socket(peer, true);
        assert!(mapped.is_ipv6());
        assert_eq!(canonical(mapped), peer);
        assert_eq!(for_socket(peer, false), peer);
    }
}
