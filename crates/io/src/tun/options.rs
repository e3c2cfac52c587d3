//! What a device is set up with.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// One network of a TUN device: two hosts, the kernel and the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TunNetwork {
    /// The kernel's address on the device.
    pub kernel: IpAddr,
    /// Length of the network's prefix, bits: what the kernel routes into the device.
    pub prefix: u8,
    /// The stack's address.
    pub stack: IpAddr,
}

/// Options for opening a TUN device: [`TunOptions::new`], and then fields that are set.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TunOptions {
    /// Name of the device, 1 to 15 bytes without `/`, `:` and white space. Default: the kernel
    /// picks one (`tun0`).
    pub name: Option<String>,
    /// Networks, at most one of each family, and at least one.
    pub networks: Vec<TunNetwork>,
    /// More destinations (address and length of the prefix) that the kernel routes into the device.
    pub routes: Vec<(IpAddr, u8)>,
    /// MTU of the device, bytes; 576 to 65535 with IPv4, 1280 to 65535 with IPv6. Default 1500.
    pub mtu: u16,
    /// Whether kernel and stack pass many segments at once, with checksums left out between them,
    /// where the segments allow it. Default true.
    pub offload: bool,
    /// Length of the kernel's queue to the stack, packets. Default 1000. Zero keeps the kernel's
    /// default, 500. Any other value needs `CAP_NET_ADMIN` in the initial user namespace.
    pub queue: u32,
    /// Whether the stack stands for every host: it answers from whatever address a packet was sent
    /// to, and its only peer is the kernel. Default false.
    pub everywhere: bool,
}

impl TunOptions {
    /// The default options with one network.
    pub fn new(network: TunNetwork) -> Self {
        Self {
            name: None,
            networks: vec![network],
            routes: Vec::new(),
            mtu: 1500,
            offload: true,
            queue: 1000,
            everywhere: false,
        }
    }

    /// The stack's address of the family of `peer`, if it has one.
    pub fn stack_towards(&self, peer: IpAddr) -> Option<IpAddr> {
        let mut stacks = self.networks.iter().map(|network| network.stack);
        stacks.find(|stack| stack.is_ipv4() == peer.is_ipv4())
    }

    /// # Errors
    /// `InvalidInput` with what is wrong and what would be right.
    pub(super) fn check(&self) -> io::Result<()> {
        let wrong = |text: String| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        let unusable = |address: IpAddr| {
            wrong(format!(
                "{address} cannot be the address of a TUN device; expected one such as 10.77.0.1"
            ))
        };
        if let Some(name) = &self.name
            && !is_name(name)
        {
            return wrong(format!(
                "{name:?} cannot be the name of a TUN device; expected 1 to 15 bytes without '/', ':' and white \
                 space, such as tack0"
            ));
        }
        if self.networks.is_empty() {
            return wrong(
                "a TUN device needs a network, such as 10.77.0.1/24 and 10.77.0.2".into(),
            );
        }
        for network in &self.networks {
            let TunNetwork {
                kernel,
                prefix,
                stack,
            } = *network;
            if kernel.is_ipv4() != stack.is_ipv4() {
                return wrong(format!(
                    "the kernel's address {kernel} and the stack's address {stack} must be of one family"
                ));
            }
            if kernel == stack {
                return wrong(format!(
                    "the kernel and the stack cannot both be {kernel}: they are two hosts"
                ));
            }
            for address in [kernel, stack] {
                if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
                    return unusable(address);
                }
            }
            check_prefix(kernel, prefix)?;
            if let IpAddr::V4(address) = kernel
                && prefix < 31
            {
                // The broadcast address, which no host has (RFC 1122 §3.2.1.3).
                let last = Ipv4Addr::from_bits(address.to_bits() | u32::MAX >> prefix);
                if [kernel, stack].contains(&last.into()) {
                    return unusable(last.into());
                }
            }
        }
        for (destination, prefix) in &self.routes {
            check_prefix(*destination, *prefix)?;
        }
        for family in [true, false] {
            let count = self
                .networks
                .iter()
                .filter(|network| network.stack.is_ipv4() == family)
                .count();
            if count > 1 {
                return wrong("a TUN device takes one IPv4 and one IPv6 network at most".into());
            }
        }
        let least = if self.networks.iter().any(|network| network.stack.is_ipv6()) {
            1280
        } else {
            576
        };
        if self.mtu < least {
            return wrong(format!(
                "expected an MTU of at least {least} bytes, got {}",
                self.mtu
            ));
        }
        Ok(())
    }
}

/// As the kernel has it.
fn is_name(name: &str) -> bool {
    let is_wrong = |it: char| it.is_whitespace() || ['/', ':', '\0'].contains(&it);
    (1..=15).contains(&name.len()) && ![".", ".."].contains(&name) && !name.contains(is_wrong)
}

fn check_prefix(address: IpAddr, prefix: u8) -> io::Result<()> {
    let longest = if address.is_ipv4() { 32 } else { 128 };
    if prefix <= longest {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("a prefix of {address} has at most {longest} bits, got {prefix}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(kernel: &str, prefix: u8, stack: &str) -> TunNetwork {
        TunNetwork {
            kernel: kernel.parse().unwrap(),
            prefix,
            stack: stack.parse().unwrap(),
        }
    }

    #[test]
    fn what_cannot_be_set_up_is_named() {
        let refused = |options: &TunOptions| options.check().unwrap_err().to_string();
        let good = TunOptions::new(network("10.77.0.1", 24, "10.77.0.2"));
        good.check().unwrap();
        let with = |network| TunOptions::new(network);
        assert!(refused(&with(network("10.77.0.1", 24, "fd77::2"))).contains("one family"));
        assert!(refused(&with(network("10.77.0.1", 24, "10.77.0.1"))).contains("two hosts"));
        assert!(refused(&with(network("10.77.0.1", 33, "10.77.0.2"))).contains("32 bits"));
        assert!(refused(&with(network("127.0.0.1", 8, "127.0.0.2"))).contains("127.0.0.1"));
        for (kernel, prefix, stack) in [
            ("10.77.1.1", 24, "10.77.1.255"),
            ("10.77.1.255", 24, "10.77.1.1"),
            ("10.77.1.1", 30, "10.77.1.3"),
        ] {
            let why = refused(&with(network(kernel, prefix, stack)));
            assert!(why.contains("cannot be the address"), "{why}");
        }
        for (kernel, prefix, stack) in [
            ("10.77.1.254", 31, "10.77.1.255"),
            ("10.77.0.1", 16, "10.77.1.255"),
            ("fd77::1", 112, "fd77::ffff"),
        ] {
            with(network(kernel, prefix, stack)).check().unwrap();
        }
        let mut named = good.clone();
        for name in ["", "a/b", "a:b", "a b", ".", "..", "sixteen-letters-"] {
            named.name = Some(name.into());
            let why = refused(&named);
            assert!(why.contains("15 bytes") && why.contains(name), "{why}");
        }
        for name in ["t", "tack0", "a.b", "fifteen-letters"] {
            named.name = Some(name.into());
            named.check().unwrap();
        }
        let mut six = with(network("fd77::1", 64, "fd77::2"));
        six.mtu = 1279;
        assert!(refused(&six).contains("1280"));
        let mut two = good.clone();
        two.networks.push(network("10.78.0.1", 24, "10.78.0.2"));
        assert!(refused(&two).contains("one IPv4"));
        let mut none = good.clone();
        none.networks.clear();
        assert!(refused(&none).contains("needs a network"));
        assert_eq!(
            good.stack_towards("192.0.2.1".parse().unwrap()),
            Some("10.77.0.2".parse().unwrap())
        );
        assert_eq!(good.stack_towards("fd77::1".parse().unwrap()), None);
    }
}
