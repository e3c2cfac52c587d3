//! What other interfaces of this machine have: a device in one of their networks would take
//! addresses away from hosts there, since the kernel answers for all of its addresses (ARP) on each
//! interface.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteType,
};

use super::route::network;
use crate::netlink;

/// A network, or one address, that an interface has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Taken {
    address: IpAddr,
    prefix: u8,
    /// The number of the interface.
    interface: u32,
    /// Whether it may be a way to other machines, of which a part can be taken.
    is_way: bool,
}

/// What interfaces have now: addresses, their networks, and the routes of the main table that lead
/// to an interface without a gateway.
///
/// # Errors
/// What the system says.
pub(super) fn taken() -> io::Result<Vec<Taken>> {
    let mut found = Vec::new();
    let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    netlink::list(request, |entry| {
        if let RouteNetlinkMessage::NewAddress(entry) = entry {
            let whole = if entry.header.family == AddressFamily::Inet {
                32
            } else {
                128
            };
            for attribute in &entry.attributes {
                let (address, prefix) = match attribute {
                    AddressAttribute::Address(address) => (*address, entry.header.prefix_len),
                    AddressAttribute::Local(address) => (*address, whole),
                    _ => continue,
                };
                found.push(Taken {
                    address,
                    prefix,
                    interface: entry.header.index,
                    is_way: false,
                });
            }
        }
    })?;
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut request = RouteMessage::default();
        request.header.address_family = family;
        netlink::list(RouteNetlinkMessage::GetRoute(request), |entry| {
            if let RouteNetlinkMessage::NewRoute(entry) = entry {
                found.extend(direct(&entry));
            }
        })?;
    }
    Ok(found)
}

/// The route, if it leads to an interface without a gateway.
fn direct(route: &RouteMessage) -> Option<Taken> {
    let header = &route.header;
    if header.table != RouteHeader::RT_TABLE_MAIN || header.kind != RouteType::Unicast {
        return None;
    }
    let (mut address, mut interface) = (None, None);
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(to)) => address = Some((*to).into()),
            RouteAttribute::Destination(RouteAddress::Inet6(to)) => address = Some((*to).into()),
            RouteAttribute::Oif(number) => interface = Some(*number),
            RouteAttribute::Gateway(_) | RouteAttribute::Via(_) => return None,
            _ => {}
        }
    }
    Some(Taken {
        address: address?,
        prefix: header.destination_prefix_length,
        interface: interface?,
        is_way: !matches!(header.protocol, RouteProtocol::Kernel | RouteProtocol::Ra),
    })
}

impl Taken {
    /// Whether a device with the network of `prefix` bits around `address` would take something
    /// away. Of a way to other machines, such as a tunnel's, it may have a part.
    fn is_hit(&self, address: IpAddr, prefix: u8) -> bool {
        let shorter = prefix.min(self.prefix);
        address.is_ipv4() == self.address.is_ipv4()
            && !(self.is_way && self.prefix < prefix)
            && network(address, shorter) == network(self.address, shorter)
    }

    /// In words: the network, and the interface that has it.
    fn words(&self) -> String {
        let (address, prefix) = (network(self.address, self.prefix), self.prefix);
        let name = std::net::UdpSocket::bind(("127.0.0.1", 0))
            .and_then(|any| Ok(rustix::net::netdevice::index_to_name(any, self.interface)?))
            .unwrap_or_else(|_| format!("number {}", self.interface));
        format!("{address}/{prefix} of the interface {name}")
    }
}

/// Checks that the network of `prefix` bits around `address` is one of its own.
///
/// # Errors
/// `AddrInUse` with what it overlaps.
pub(super) fn check(taken: &[Taken], address: IpAddr, prefix: u8) -> io::Result<()> {
    match taken.iter().find(|it| it.is_hit(address, prefix)) {
        None => Ok(()),
        Some(hit) => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            format!(
                "the network {}/{prefix} of the TUN device overlaps {}; it must be a network of its own, \
                 which no other interface has a part of",
                network(address, prefix),
                hit.words()
            ),
        )),
    }
}

/// Who has the route to exactly this destination, in words.
pub(super) fn owner(destination: IpAddr, prefix: u8) -> Option<String> {
    let taken = taken().ok()?;
    let destination = network(destination, prefix);
    let is_same =
        |it: &&Taken| (network(it.address, it.prefix), it.prefix) == (destination, prefix);
    taken.iter().find(is_same).map(Taken::words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_way_may_be_taken_and_a_part_of_a_network_may_not() {
        let hit = |is_way, taken: (&str, u8), ours: (&str, u8)| {
            let taken = Taken {
                address: taken.0.parse().unwrap(),
                prefix: taken.1,
                interface: 1,
                is_way,
            };
            taken.is_hit(ours.0.parse().unwrap(), ours.1)
        };
        for is_way in [false, true] {
            assert!(hit(is_way, ("192.168.1.20", 24), ("192.168.1.50", 24)));
            assert!(hit(is_way, ("192.168.1.20", 24), ("192.168.0.1", 16)));
            assert!(!hit(is_way, ("192.168.1.20", 24), ("192.168.2.1", 24)));
            assert!(!hit(is_way, ("fd77::1", 64), ("192.168.2.1", 0)));
            assert!(hit(is_way, ("fd77::1", 64), ("fd77::2", 64)));
        }
        assert!(hit(false, ("10.0.0.0", 8), ("10.77.0.2", 24)));
        assert!(!hit(true, ("10.0.0.0", 8), ("10.77.0.2", 24)));
        assert!(!hit(true, ("0.0.0.0", 0), ("10.77.0.2", 24)));
    }
}
