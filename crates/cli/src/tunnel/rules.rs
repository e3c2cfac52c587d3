//! Which targets a serving side connects to for its peers.
//!
//! A rule names hosts and ports. Private and loopback addresses have to be named, and so have those
//! of this machine and its networks: a rule for any host, or for all hosts of a domain, stands for
//! the public addresses behind a router alone, whatever a name resolves to.
//!
//! A rule for addresses is about those who ask for an address. A name leads there only if somebody
//! who has no say here cannot have made it: one of a single label, or one below a domain that
//! another rule names.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use ipnet::IpNet;

use super::target::Host;

/// One `HOST:PORTS` of `--target`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TargetRule {
    hosts: Hosts,
    ports: RangeInclusive<u16>,
    text: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Hosts {
    /// `*`: every public address that is not near.
    Public,
    /// `*.example.org`: such addresses of names below it, and those that other rules name.
    Below(String),
    /// A name, wherever it points.
    Name(String),
    /// An address or a network.
    Net(IpNet),
}

/// A text that is no rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is not a valid rule (for example nas:22, 192.168.1.0/24:80, [fd00::/8]:8000-8099, *.example.org:443 or *:*)"
)]
pub(crate) struct BadRule(String);

impl FromStr for TargetRule {
    type Err = BadRule;

    fn from_str(text: &str) -> Result<Self, BadRule> {
        let bad = || BadRule(text.to_owned());
        let (hosts, ports) = text.rsplit_once(':').ok_or_else(bad)?;
        let net = |text: &str| {
            let net = text.parse::<IpNet>().ok();
            net.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
        };
        let hosts = match hosts
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            Some(inner) => Hosts::Net(net(inner).ok_or_else(bad)?),
            // An IPv6 address without brackets would lose its last group to the port.
            None if hosts.contains(':') => return Err(bad()),
            None => match (hosts, net(hosts)) {
                ("*", _) => Hosts::Public,
                (_, Some(net)) => Hosts::Net(net),
                (name, None) => match name.strip_prefix("*.") {
                    Some(domain) => Hosts::Below(name_of(domain).ok_or_else(bad)?),
                    None => Hosts::Name(name_of(name).ok_or_else(bad)?),
                },
            },
        };
        let port = |text: &str| match text.parse() {
            Ok(0) | Err(_) => Err(bad()),
            Ok(port) => Ok(port),
        };
        let ports = match ports.split_once('-') {
            _ if ports == "*" => 1..=u16::MAX,
            Some((first, last)) => port(first)?..=port(last)?,
            None => port(ports)?..=port(ports)?,
        };
        if ports.is_empty() {
            return Err(bad());
        }
        Ok(Self {
            hosts,
            ports,
            text: text.to_owned(),
        })
    }
}

/// A host name in the form in which names are compared, if it is one.
fn name_of(text: &str) -> Option<String> {
    match text.parse().ok()? {
        Host::Name(name) => Some(name),
        Host::Address(_) => None,
    }
}

impl fmt::Display for TargetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Ports that a question is about.
type Ports = RangeInclusive<u16>;

/// Some port.
const ANY: Ports = 1..=u16::MAX;

impl TargetRule {
    fn is_at(&self, ports: &Ports) -> bool {
        !self.common(ports).is_empty()
    }

    /// The ports of both.
    fn common(&self, ports: &Ports) -> Ports {
        *self.ports.start().max(ports.start())..=*self.ports.end().min(ports.end())
    }

    /// True when some address of `host` could be permitted: else its name is not even looked up.
    fn concerns(&self, host: &Host, ports: &Ports) -> bool {
        self.is_at(ports)
            && match (&self.hosts, host) {
                (Hosts::Below(domain), Host::Name(name)) => is_below(name, domain),
                (Hosts::Name(own), Host::Name(name)) => own == name,
                (Hosts::Below(_) | Hosts::Name(_), Host::Address(_)) => false,
                (Hosts::Net(net), Host::Address(address)) => contains(net, *address),
                (Hosts::Net(_), Host::Name(name)) => is_local(name),
                (Hosts::Public, _) => true,
            }
    }

    fn permits(
        &self,
        host: &Host,
        ports: &Ports,
        address: IpAddr,
        is_near: &impl Fn(IpAddr) -> bool,
    ) -> bool {
        self.concerns(host, ports)
            && match &self.hosts {
                Hosts::Public | Hosts::Below(_) => is_beyond(address, is_near),
                Hosts::Name(_) => true,
                Hosts::Net(net) => contains(net, address),
            }
    }

    /// True for a rule for a domain that permits its names to lead into the network of `other`.
    fn leads_into(&self, other: &Self, host: &Host, ports: &Ports, address: IpAddr) -> bool {
        let Hosts::Net(net) = &other.hosts else {
            return false;
        };
        matches!(self.hosts, Hosts::Below(_))
            && self.concerns(host, ports)
            && other.is_at(&self.common(ports))
            && contains(net, address)
    }
}

fn is_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain)
        .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// True for names of one label. Those of the Internet have more; whoever owns such a name has it
/// lead wherever they like (DNS rebinding).
fn is_local(name: &str) -> bool {
    !name.contains('.')
}

fn contains(net: &IpNet, address: IpAddr) -> bool {
    net.contains(&address.to_canonical())
}

/// True for an address of the Internet that is not near this machine, by whatever gateway between
/// IPv4 and IPv6.
fn is_beyond(address: IpAddr, is_near: &impl Fn(IpAddr) -> bool) -> bool {
    let address = address.to_canonical();
    let embedded = match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => embedded_v4(address),
    };
    is_public(address)
        && !is_near(address)
        && embedded.is_none_or(|address| !is_near(address.into()))
}

fn any_concerns_at(rules: &[TargetRule], host: &Host, ports: &Ports) -> bool {
    rules.iter().any(|rule| rule.concerns(host, ports))
}

fn permit_at(
    rules: &[TargetRule],
    host: &Host,
    ports: &Ports,
    address: IpAddr,
    is_near: &impl Fn(IpAddr) -> bool,
) -> bool {
    let permits = |rule: &TargetRule| rule.permits(host, ports, address, is_near);
    let leads = |rule: &TargetRule| {
        let mut others = rules.iter();
        others.any(|other| rule.leads_into(other, host, ports, address))
    };
    rules.iter().any(|rule| permits(rule) || leads(rule))
}

/// True when one of `rules` may permit an address of `host`.
pub(crate) fn any_concerns(rules: &[TargetRule], host: &Host, port: u16) -> bool {
    any_concerns_at(rules, host, &(port..=port))
}

/// True when `rules` permit to connect to `address`, which `host` stands for. `is_near` says of
/// addresses whether they are of this machine or of its networks: rules for any host do not permit
/// these.
pub(crate) fn permit(
    rules: &[TargetRule],
    host: &Host,
    port: u16,
    address: IpAddr,
    is_near: &impl Fn(IpAddr) -> bool,
) -> bool {
    permit_at(rules, host, &(port..=port), address, is_near)
}

/// As [`any_concerns`], at some port.
pub(crate) fn any_concerns_name(rules: &[TargetRule], host: &Host) -> bool {
    any_concerns_at(rules, host, &ANY)
}

/// As [`permit`], at some port.
pub(crate) fn permit_name(
    rules: &[TargetRule],
    host: &Host,
    address: IpAddr,
    is_near: &impl Fn(IpAddr) -> bool,
) -> bool {
    permit_at(rules, host, &ANY, address, is_near)
}

/// True for addresses of the public Internet: those that the registries of special purpose
/// addresses (RFC 6890) do not set apart, and that name a single host.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        // This network, shared address space (RFC 6598), protocol assignments, benchmarks (RFC
        // 2544), reserved and broadcast; and where each machine of Azure finds its own host, which
        // has a public address behind the router ("What is IP address 168.63.129.16?").
        || a == 0
        || (a == 100 && b & 0xc0 == 64)
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && b & 0xfe == 18)
        || a >= 240
        || address == Ipv4Addr::new(168, 63, 129, 16))
}

/// The IPv4 address that an address of IPv6 leads to: 6to4 (RFC 3056), NAT64 (RFC 6052).
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        [0x2002, high, low, ..] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(address) = embedded_v4(address) {
        return is_public_v4(address);
    }
    match address.segments() {
        // Protocol assignments with Teredo (RFC 4380), documentation (RFC 3849, RFC 9637).
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        [0x3fff, second, ..] => second >= 0x1000,
        // Global unicast (RFC 4291 §2.4).
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(rule: &str, host: &str, port: u16, address: &str) -> bool {
        let rules = [rule.parse().unwrap()];
        let host = host.parse().unwrap();
        let address = address.parse().unwrap();
        permit_with(&rules, &host, port, address)
    }

    /// What is near in these tests.
    const NEAR: [&str; 3] = ["203.100.1.0/24", "2600:1:2:3::/64", "9.9.9.9/32"];

    fn permit_with(rules: &[TargetRule], host: &Host, port: u16, address: IpAddr) -> bool {
        let is_near = |address: IpAddr| {
            let mut nets = NEAR.iter().map(|net| net.parse::<IpNet>().unwrap());
            nets.any(|net| net.contains(&address))
        };
        let permitted = permit(rules, host, port, address, &is_near);
        assert!(!permitted || any_concerns(rules, host, port));
        // What is permitted at one port is so at some port.
        assert!(!permitted || permit_name(rules, host, address, &is_near));
        permitted
    }

    fn permit_all(rules: &[&str], host: &str, port: u16, address: &str) -> bool {
        let rules: Vec<TargetRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let host = host.parse().unwrap();
        permit_with(&rules, &host, port, address.parse().unwrap())
    }

    #[test]
    fn any_host_is_none_of_this_machine_or_its_networks() {
        for address in [
            "203.100.1.7",
            "::ffff:203.100.1.7",
            "9.9.9.9",
            "2600:1:2:3::1",
            // By way of a gateway.
            "2002:909:909::1",
            "64:ff9b::909:909",
        ] {
            assert!(!permits("*:*", "example.org", 80, address), "{address}");
            assert!(!permits("*:*", address, 80, address), "{address}");
            let below = permits("*.example.org:*", "a.example.org", 80, address);
            assert!(!below, "{address}");
            // Named it is permitted.
            assert!(permits("nas:*", "nas", 80, address), "{address}");
        }
        for address in ["203.100.2.7", "2600:1:2:4::1", "2002:808:808::1"] {
            assert!(permits("*:*", address, 80, address), "{address}");
        }
        let rule = "203.100.1.0/24:80";
        assert!(permits(rule, "203.100.1.7", 80, "203.100.1.7"));
    }

    #[test]
    fn a_name_that_others_can_make_does_not_lead_to_a_named_address() {
        let rule = "192.168.1.0/24:80";
        for name in ["evil.example", "evil.example.", "a.b.c", "printer.local"] {
            assert!(!permits(rule, name, 80, "192.168.1.77"), "{name}");
            assert!(!permit_all(&[rule, "*:*"], name, 80, "192.168.1.77"));
        }
        // One label is of this network.
        assert!(permits(rule, "printer", 80, "192.168.1.77"));
        // A domain and a network, both named, at ports of both.
        let rules = ["*.corp.example:80-443", "192.168.1.0/24:443"];
        assert!(permit_all(&rules, "nas.corp.example", 443, "192.168.1.77"));
        assert!(!permit_all(&rules, "nas.corp.example", 80, "192.168.1.77"));
        assert!(!permit_all(&rules, "nas.corp.example", 443, "192.168.2.77"));
        assert!(!permit_all(&rules, "nas.evil.example", 443, "192.168.1.77"));
        let apart = ["*.corp.example:80", "192.168.1.0/24:443"].map(|it| it.parse().unwrap());
        let host = "nas.corp.example".parse().unwrap();
        let address = "192.168.1.77".parse().unwrap();
        assert!(!permit_name(&apart, &host, address, &|_| false));
        let rules = rules.map(|it| it.parse().unwrap());
        assert!(permit_name(&rules, &host, address, &|_| false));
    }

    #[test]
    fn any_host_is_any_public_one() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "2606:4700::1",
            "172.32.0.1",
            "100.128.0.1",
        ] {
            assert!(permits("*:*", "example.org", 80, address), "{address}");
            assert!(permits("*:*", address, 80, address), "{address}");
        }
        let apart = [
            "127.0.0.1",
            "127.8.9.1",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.1.1",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "168.63.129.16",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::",
            "2002:e000:1::",
            "64:ff9b::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b::",
            "64:ff9b:1::7f00:1",
            "2001::1",
            "2001:0:a00:1::f5ff:fffe",
            "fec0::1",
            "ff0e::1",
            "::ffff:0.0.0.0",
            "::7f00:1",
        ];
        for address in apart {
            assert!(!permits("*:*", "example.org", 80, address), "{address}");
            assert!(!permits("*:*", address, 80, address), "{address}");
            assert!(
                !permits("*.example.org:*", "a.example.org", 80, address),
                "{address}"
            );
        }
    }

    #[test]
    fn what_is_named_may_be_private() {
        assert!(permits("nas:22", "NAS.", 22, "192.168.1.2"));
        assert!(permits("localhost:22", "localhost", 22, "::1"));
        assert!(!permits("nas:22", "nas", 23, "192.168.1.2"));
        assert!(!permits("nas:22", "nas2", 22, "192.168.1.2"));
        assert!(!permits("nas:22", "192.168.1.2", 22, "192.168.1.2"));
        assert!(permits(
            "127.0.0.1:8000-8099",
            "127.0.0.1",
            8099,
            "127.0.0.1"
        ));
        assert!(permits("127.0.0.1:*", "::ffff:127.0.0.1", 1, "127.0.0.1"));
        assert!(!permits(
            "127.0.0.1:8000-8099",
            "127.0.0.1",
            8100,
            "127.0.0.1"
        ));
        assert!(!permits("127.0.0.1:80", "127.0.0.2", 80, "127.0.0.2"));
        assert!(permits(
            "192.168.1.0/24:80",
            "192.168.1.77",
            80,
            "192.168.1.77"
        ));
        assert!(!permits("192.168.1.0/24:80", "printer", 80, "192.168.2.77"));
        assert!(permits("[fd00::/8]:80", "fd00::1", 80, "fd00::1"));
        assert!(permits("[::1]:80", "::1", 80, "::1"));
    }

    #[test]
    fn a_domain_is_what_is_below_it() {
        assert!(permits(
            "*.example.org:443",
            "www.Example.ORG",
            443,
            "1.1.1.1"
        ));
        assert!(permits(
            "*.example.org:443",
            "a.b.example.org",
            443,
            "1.1.1.1"
        ));
        for host in [
            "example.org",
            "notexample.org",
            ".example.org",
            "example.org.evil.net",
        ] {
            let Ok(host) = host.parse() else { continue };
            let rules = ["*.example.org:443".parse().unwrap()];
            assert!(!any_concerns(&rules, &host, 443), "{host:?}");
        }
    }

    #[test]
    fn a_wrong_rule_is_refused() {
        for text in [
            "",
            "nas",
            "nas:",
            "nas:0",
            "nas:70000",
            "nas:9-8",
            ":22",
            "fd00::1:22",
            "[nas]:22",
            "a b:22",
            "*nas:22",
            "10.0.0.0/33:1",
            "*.:1",
            "nas:22:23",
        ] {
            assert!(text.parse::<TargetRule>().is_err(), "{text:?}");
        }
    }
}
