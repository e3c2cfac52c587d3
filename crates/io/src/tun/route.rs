//! Routes into the device, and its IPv6 address.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::{Clock, netlink};

/// Gives device number `device` the IPv6 address `address`, in a network of `prefix` bits, at once:
/// without asking on the device whether somebody else has it (RFC 4862 §5.4), as tun-rs would have
/// the kernel do, after which packets to it are lost for a while.
///
/// # Errors
/// What the kernel answers, such as that IPv6 is turned off.
pub(super) fn add_address(device: u32, address: Ipv6Addr, prefix: u8) -> io::Result<()> {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet6;
    message.header.prefix_len = prefix;
    message.header.flags = AddressHeaderFlags::Nodad;
    message.header.index = device;
    message
        .attributes
        .push(AddressAttribute::Address(address.into()));
    netlink::request(
        RouteNetlinkMessage::NewAddress(message),
        NLM_F_CREATE | NLM_F_EXCL,
    )
}

/// Waits until the kernel takes packets to `address`, which it has just been given, for a second at
/// most. It makes the route to itself in a work queue, even where it asks nobody for the address:
/// on a loaded machine the answers to what left from it at once are lost.
pub(super) fn await_local(address: Ipv6Addr) {
    let clock = Clock::new();
    let end = clock.now() + Duration::from_secs(1);
    while clock.now() < end {
        // Where it cannot be read, there is nothing to wait for.
        let Ok(table) = std::fs::read_to_string("/proc/thread-self/net/ipv6_route") else {
            return;
        };
        if is_local(&table, address) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether this table of the kernel, one route a line, has packets to `address` stay here.
fn is_local(table: &str, address: Ipv6Addr) -> bool {
    /// RTF_LOCAL of `linux/ipv6_route.h`.
    const LOCAL: u32 = 0x8000_0000;
    let destination = format!("{:032x} 80 ", address.to_bits());
    table.lines().any(|line| {
        let flags = line.split_whitespace().nth(8);
        let flags = flags.and_then(|flags| u32::from_str_radix(flags, 16).ok());
        line.starts_with(&destination) && flags.is_some_and(|flags| flags & LOCAL != 0)
    })
}

/// Has the kernel send what goes to `destination`, a network of `prefix` bits, into device number
/// `device`. The route disappears with the device.
///
/// # Errors
/// What the kernel answers, such as that there is such a route.
pub(super) fn add(device: u32, destination: IpAddr, prefix: u8) -> io::Result<()> {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: match destination {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        },
        destination_prefix_length: prefix,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: RouteScope::Link,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes.push(RouteAttribute::Destination(
        network(destination, prefix).into(),
    ));
    message.attributes.push(RouteAttribute::Oif(device));
    netlink::request(
        RouteNetlinkMessage::NewRoute(message),
        NLM_F_CREATE | NLM_F_EXCL,
    )
}

/// The address with the bits behind the prefix cleared: the kernel refuses others.
pub(super) fn network(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX
                .checked_shl(32 - u32::from(prefix))
                .unwrap_or_default();
            std::net::Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX
                .checked_shl(128 - u32::from(prefix))
                .unwrap_or_default();
            std::net::Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_route_is_told_from_others() {
        let line = |to: &str, flags: &str| {
            let zero = "0".repeat(32);
            format!("{to} 80 {zero} 00 {zero} 00000000 00000001 00000000 {flags}     tun0\n")
        };
        let ours = "fd770000000000000000000000000001";
        let other = "fd770000000000000000000000000002";
        let address = "fd77::1".parse().unwrap();
        assert!(is_local(&line(ours, "80200001"), address));
        assert!(!is_local(&line(ours, "00000001"), address));
        assert!(!is_local(&line(other, "80200001"), address));
    }

    #[test]
    fn host_bits_are_cleared() {
        let cut = |address: &str, prefix| network(address.parse().unwrap(), prefix).to_string();
        assert_eq!(cut("10.77.3.9", 24), "10.77.3.0");
        assert_eq!(cut("10.77.3.9", 32), "10.77.3.9");
        assert_eq!(cut("10.77.3.9", 0), "0.0.0.0");
        assert_eq!(cut("fd77::9", 64), "fd77::");
        assert_eq!(cut("fd77::9", 128), "fd77::9");
    }
}
