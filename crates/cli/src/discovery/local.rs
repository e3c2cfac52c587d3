//! Addresses of this machine that a peer can type.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

/// What a peer can type to reach a socket that is bound to `bound`, the likeliest first; never an
/// unspecified address. A machine without other addresses, such as one of two on a cable, gives its
/// link-local ones; those of IPv6 have this machine's interface. A machine without any gives
/// loopback.
pub(crate) fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let (with_v6, port) = (bound.is_ipv6(), bound.port());
    let mut interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    interfaces.retain(if_addrs::Interface::is_oper_up);
    let others = interfaces.iter().map(if_addrs::Interface::ip);
    let found = order(primary(with_v6), others, with_v6);
    let mut found: Vec<SocketAddr> = found
        .into_iter()
        .map(|ip| SocketAddr::new(ip, port))
        .collect();
    if found.is_empty() {
        let on_links = interfaces
            .iter()
            .map(|interface| (interface.ip(), interface.index));
        found = link_local(on_links, with_v6, port);
    }
    if found.is_empty() {
        let ip: IpAddr = match bound {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        found.push(SocketAddr::new(ip, port));
    }
    found
}

/// The addresses that hold within one network only, IPv4 first: a peer types those of IPv6 with its
/// own interface to that network.
fn link_local(
    interfaces: impl Iterator<Item = (IpAddr, Option<u32>)>,
    with_v6: bool,
    port: u16,
) -> Vec<SocketAddr> {
    let mut found: Vec<SocketAddr> = interfaces
        .filter_map(|(ip, index)| match ip {
            IpAddr::V4(v4) => v4.is_link_local().then(|| SocketAddr::new(ip, port)),
            IpAddr::V6(v6) if with_v6 && v6.is_unicast_link_local() => {
                Some(SocketAddrV6::new(v6, port, 0, index?).into())
            }
            IpAddr::V6(_) => None,
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The primary address, then the others: neither loopback nor link-local.
fn order(
    primary: Option<IpAddr>,
    others: impl Iterator<Item = IpAddr>,
    with_v6: bool,
) -> Vec<IpAddr> {
    let mut others: Vec<IpAddr> = others.collect();
    others.sort_by_key(|ip| (ip.is_ipv6(), *ip));
    let mut found: Vec<IpAddr> = Vec::new();
    for ip in primary.into_iter().chain(others) {
        let is_typed = match ip {
            IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local() && !v4.is_unspecified(),
            IpAddr::V6(v6) => {
                with_v6 && !v6.is_loopback() && !v6.is_unicast_link_local() && !v6.is_unspecified()
            }
        };
        if is_typed && !found.contains(&ip) {
            found.push(ip);
        }
    }
    found
}

/// The address from which the system would send to the Internet. Nothing is sent.
fn primary(v6: bool) -> Option<IpAddr> {
    let ask = |from: &str, to: &str| {
        let socket = UdpSocket::bind(from).ok()?;
        // Documentation addresses (RFC 5737, RFC 3849): routed as any other, and nobody's.
        socket.connect(to).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    ask("0.0.0.0:0", "192.0.2.1:9")
        .or_else(|| v6.then(|| ask("[::]:0", "[2001:db8::1]:9")).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unspecified_address_is_never_shown() {
        for bound in ["0.0.0.0:7777", "[::]:7777"] {
            let shown = reachable(bound.parse().unwrap());
            assert!(!shown.is_empty());
            for address in shown {
                assert!(
                    !address.ip().is_unspecified() && address.port() == 7777,
                    "{address}"
                );
            }
        }
        let bound = "192.0.2.9:1".parse().unwrap();
        assert_eq!(reachable(bound), [bound]);
    }

    #[test]
    fn the_primary_address_comes_first_and_none_that_cannot_be_typed() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let others = [
            "fe80::1",
            "2001:db8::5",
            "127.0.0.1",
            "10.0.0.2",
            "192.168.1.5",
            "169.254.1.1",
        ]
        .map(ip);
        let found = order(Some(ip("192.168.1.5")), others.into_iter(), true);
        assert_eq!(found, ["192.168.1.5", "10.0.0.2", "2001:db8::5"].map(ip));
        let on_links = others.map(|ip| (ip, Some(3)));
        let found = link_local(on_links.into_iter(), true, 7);
        assert_eq!(
            found,
            ["169.254.1.1:7", "[fe80::1%3]:7"].map(|text| text.parse().unwrap())
        );
        assert_eq!(link_local(on_links.into_iter(), false, 7), found[..1]);
        let found = order(None, others.into_iter(), false);
        assert_eq!(found, ["10.0.0.2", "192.168.1.5"].map(ip));
    }
}
