//! How far away the host with an address is, as the kernel's routes have it.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::netlink;

/// Shortest prefixes, in bits, that a network on a link can have. A route without a gateway that
/// covers more, such as 0.0.0.0/0 or 0.0.0.0/1 of a VPN, leads to other networks.
const SHORTEST_V4: u8 = 8;
const SHORTEST_V6: u8 = 16;

/// How far away a host is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distance {
    /// The address is one of this machine, or one of all hosts on a link.
    Own,
    /// No router is in between.
    OnLink,
    /// Behind a router, or nowhere.
    Beyond,
}

/// The distance of `address`: one request to the kernel, which answers at once.
///
/// # Errors
/// When the kernel cannot be asked. That it has no route is no error.
pub fn distance(address: IpAddr) -> io::Result<Distance> {
    match netlink::ask(RouteNetlinkMessage::GetRoute(question(address))) {
        Ok(RouteNetlinkMessage::NewRoute(route)) => Ok(of(&route)),
        Ok(_) => Err(io::ErrorKind::InvalidData.into()),
        Err(error) => match error.kind() {
            io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            // Routes of the types prohibit and blackhole.
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::InvalidInput => Ok(Distance::Beyond),
            _ => Err(error),
        },
    }
}

/// Asks for the route itself (`ip route get fibmatch`), whose prefix says what it covers.
fn question(address: IpAddr) -> RouteMessage {
    let (family, length) = match address {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    message.header.destination_prefix_length = length;
    message.header.flags = RouteFlags::FibMatch;
    message
        .attributes
        .push(RouteAttribute::Destination(address.into()));
    message
}

fn of(route: &RouteMessage) -> Distance {
    let RouteHeader {
        address_family,
        destination_prefix_length,
        kind,
        ..
    } = route.header;
    let shortest = match address_family {
        AddressFamily::Inet => SHORTEST_V4,
        _ => SHORTEST_V6,
    };
    match kind {
        RouteType::Local | RouteType::Broadcast | RouteType::Anycast | RouteType::Multicast => {
            Distance::Own
        }
        RouteType::Unicast
            if destination_prefix_length >= shortest && !has_gateway(&route.attributes) =>
        {
            Distance::OnLink
        }
        _ => Distance::Beyond,
    }
}

fn has_gateway(attributes: &[RouteAttribute]) -> bool {
    attributes.iter().any(|attribute| match attribute {
        RouteAttribute::Gateway(_) | RouteAttribute::Via(_) => true,
        RouteAttribute::MultiPath(hops) => hops.iter().any(|hop| has_gateway(&hop.attributes)),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::route::RouteNextHop;

    use super::*;

    #[test]
    fn loopback_is_this_machine() {
        for address in ["127.0.0.1", "127.3.2.1", "::1"] {
            match distance(address.parse().unwrap()) {
                Ok(distance) => assert_eq!(distance, Distance::Own, "{address}"),
                Err(error) => tack_skip::skipped(format_args!("{address}: {error}")),
            }
        }
    }

    #[test]
    fn a_router_makes_the_difference() {
        let route = |kind, length, attributes: &[RouteAttribute]| {
            let mut route = question("8.8.8.8".parse().unwrap());
            route.header.kind = kind;
            route.header.destination_prefix_length = length;
            route.attributes.extend_from_slice(attributes);
            of(&route)
        };
        let gateway = RouteAttribute::Gateway("8.8.8.1".parse::<IpAddr>().unwrap().into());
        let mut hop = RouteNextHop::default();
        hop.attributes.push(gateway.clone());
        for (kind, length, attributes, expected) in [
            (RouteType::Local, 32, &[][..], Distance::Own),
            (RouteType::Broadcast, 32, &[], Distance::Own),
            (RouteType::Unicast, 24, &[], Distance::OnLink),
            (RouteType::Unicast, 32, &[], Distance::OnLink),
            (RouteType::Unicast, 24, &[gateway], Distance::Beyond),
            (
                RouteType::Unicast,
                24,
                &[RouteAttribute::MultiPath(vec![hop])],
                Distance::Beyond,
            ),
            // The default route of a line of its own, and half of it.
            (RouteType::Unicast, 0, &[], Distance::Beyond),
            (RouteType::Unicast, 1, &[], Distance::Beyond),
            (RouteType::BlackHole, 24, &[], Distance::Beyond),
        ] {
            assert_eq!(
                route(kind, length, attributes),
                expected,
                "{kind:?}/{length}"
            );
        }
    }
}
