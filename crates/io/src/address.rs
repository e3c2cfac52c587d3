//! IPv4 peers behind an IPv6 socket, and addresses that need an interface beside them.

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

/// The canonical form of a peer's address above the carrier: IPv4 as IPv4, no flow label, and an
/// interface only beside a link-local address, which means nothing without it (RFC 4007).
///
/// The demultiplexer would take two forms of one address for two peers.
pub fn canonical(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V6(v6) => match v6.ip().to_canonical() {
            ip @ IpAddr::V4(_) => SocketAddr::new(ip, v6.port()),
            IpAddr::V6(ip) => {
                let scope = match ip.is_unicast_link_local() {
                    true => v6.scope_id(),
                    false => 0,
                };
                SocketAddrV6::new(ip, v6.port(), 0, scope).into()
            }
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

    #[test]
    fn an_interface_stays_beside_a_link_local_address_only() {
        let with = |ip: &str, flow, scope| -> SocketAddr {
            SocketAddrV6::new(ip.parse().unwrap(), 7, flow, scope).into()
        };
        assert_eq!(canonical(with("fe80::1", 9, 3)), with("fe80::1", 0, 3));
        assert_eq!(
            canonical(with("2001:db8::1", 9, 3)),
            with("2001:db8::1", 0, 0)
        );
    }
}
