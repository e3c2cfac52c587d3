//! Addresses on the command line, and which of them are allowed.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use clap::Args;

use crate::exit::Failure;

/// `host`, `host:port`, `[v6]:port` or a bare IPv6 address, link-local ones with their interface
/// (`fe80::1%eth0`); not yet resolved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    host: String,
    port: Option<u16>,
}

/// A text that is not a valid address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is not a valid address (for example host, host:port, 192.0.2.1:port or [2001:db8::1]:port)"
)]
pub(crate) struct BadAddress(String);

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(text.to_owned());
        // A resolver would take it for an IPv4 address in one number.
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        let port = |text: &str| text.parse::<u16>().map_err(|_| bad());
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or_else(bad)?;
            if !is_v6(host) {
                return Err(bad());
            }
            match rest.strip_prefix(':') {
                Some(rest) => (host, Some(port(rest)?)),
                None if rest.is_empty() => (host, None),
                None => return Err(bad()),
            }
        } else if is_v6(text) {
            (text, None)
        } else {
            match text.rsplit_once(':') {
                Some((host, rest)) => (host, Some(port(rest)?)),
                None => (text, None),
            }
        };
        // Whatever else is wrong with a name, the resolver says.
        if host.is_empty()
            || host.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/')
        {
            return Err(bad());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

/// Whether this is an IPv6 address, with an interface beside it or not (RFC 4007 §11).
fn is_v6(text: &str) -> bool {
    let (ip, interface) = match text.split_once('%') {
        Some((ip, interface)) => (ip, Some(interface)),
        None => (text, None),
    };
    interface != Some("") && ip.parse::<Ipv6Addr>().is_ok()
}

/// The name of an interface of this machine, or its number where it has none.
fn interface(index: u32) -> String {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    let found = all
        .into_iter()
        .find(|interface| interface.index == Some(index));
    found.map_or_else(|| index.to_string(), |interface| interface.name)
}

/// Whether the address is one of a link, and it is not known of which.
fn lacks_interface(address: &SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

/// Which addresses of a name are meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Family {
    #[default]
    Any,
    V4,
    V6,
}

impl Family {
    fn has(self, address: &SocketAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

/// Whether an address beyond this machine is acceptable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    LoopbackOnly,
    Anywhere,
}

/// Which addresses may be used.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ReachArgs {
    /// Clear text, without encryption and without knowing who the other side is: anyone on the
    /// path can read and change the data. For measurements; both sides have to say so
    #[arg(long)]
    insecure: bool,
}

impl ReachArgs {
    pub(crate) fn reach(self) -> Reach {
        if self.insecure {
            Reach::Anywhere
        } else {
            Reach::LoopbackOnly
        }
    }
}

impl Address {
    /// A port of this machine's IPv4 loopback address.
    pub(crate) fn local(port: u16) -> Self {
        Self {
            host: "127.0.0.1".into(),
            port: Some(port),
        }
    }

    /// A port of all of this machine's addresses: those of IPv4 as well.
    pub(crate) fn everywhere(port: u16) -> Self {
        Self {
            host: "::".into(),
            port: Some(port),
        }
    }

    /// Where a peer is; without the port if that is `default_port`, so that its other services are
    /// found there as well.
    pub(crate) fn of(peer: SocketAddr, default_port: u16) -> Self {
        let mut address = Self::from(peer);
        address.port = address.port.filter(|port| *port != default_port);
        address
    }

    /// The port that it names.
    pub(crate) fn port(&self) -> Option<u16> {
        self.port
    }

    /// With this port.
    pub(crate) fn at(self, port: u16) -> Self {
        Self {
            port: Some(port),
            ..self
        }
    }

    /// With this host.
    pub(crate) fn on(self, ip: IpAddr) -> Self {
        Self {
            host: ip.to_string(),
            ..self
        }
    }

    /// All addresses of the name, IPv4 first: that is what servers listen on by default.
    pub(crate) async fn resolve(
        &self,
        default_port: u16,
        reach: Reach,
        family: Family,
    ) -> Result<Vec<SocketAddr>, Failure> {
        let port = self.port.unwrap_or(default_port);
        let mut addresses: Vec<SocketAddr> = match self.host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, port)],
            Err(_) => tokio::net::lookup_host((self.host.as_str(), port))
                .await
                .map_err(|error| match self.host.split_once('%') {
                    Some((_, interface)) => Failure::usage(format!(
                        "{}: this machine has no interface {interface}",
                        self.host
                    )),
                    None => Failure::network(format!("{} has no address: {error}", self.host)),
                })?
                .collect(),
        };
        let all = addresses.len();
        addresses.retain(|address| family.has(address));
        if addresses.is_empty() && all > 0 {
            let version = if family == Family::V4 { 4 } else { 6 };
            return Err(Failure::usage(format!(
                "{} has no IPv{version} address",
                self.host
            )));
        }
        if addresses.iter().all(lacks_interface) {
            return Err(Failure::usage(format!(
                "{} is an address within one network: expected this machine's interface to it, too, such as {0}%eth0",
                addresses[0].ip()
            )));
        }
        addresses.retain(|address| !lacks_interface(address));
        addresses.sort_by_key(SocketAddr::is_ipv6);
        addresses.dedup();
        if addresses.is_empty() {
            return Err(Failure::network(format!("{} has no address", self.host)));
        }
        if reach == Reach::LoopbackOnly
            && let Some(beyond) = addresses
                .iter()
                .find(|address| !address.ip().to_canonical().is_loopback())
        {
            return Err(Failure::usage(format!(
                "{beyond} is not on this machine; expected a loopback address, because nothing proves here who the other side is"
            )));
        }
        Ok(addresses)
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        Self {
            host: ip.to_string(),
            port: None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        let host = match address {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => {
                format!("{}%{}", v6.ip(), interface(v6.scope_id()))
            }
            _ => address.ip().to_string(),
        };
        Self {
            host,
            port: Some(address.port()),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            Some(port) if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (text, host, port) in [
            ("example.org", "example.org", None),
            ("example.org:9", "example.org", Some(9)),
            ("127.0.0.1", "127.0.0.1", None),
            ("127.0.0.1:7777", "127.0.0.1", Some(7777)),
            ("::1", "::1", None),
            ("[::1]", "::1", None),
            ("[::1]:80", "::1", Some(80)),
            ("fe80::1%eth0", "fe80::1%eth0", None),
            ("[fe80::1%eth0]", "fe80::1%eth0", None),
            ("[fe80::1%eth0]:7777", "fe80::1%eth0", Some(7777)),
        ] {
            assert_eq!(
                text.parse(),
                Ok(Address {
                    host: host.into(),
                    port
                }),
                "{text}"
            );
        }
        for text in [
            "",
            ":7777",
            "host:",
            "host:99999",
            "[::1",
            "[::1]80",
            "[no]:1",
            "fe80::1%",
            "[fe80::1%]:7777",
            "a b",
            "dir/file",
            "7831",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn an_address_within_a_network_needs_the_interface() {
        let resolve = async |text: &str| {
            let address: Address = text.parse().unwrap();
            address.resolve(7, Reach::Anywhere, Family::Any).await
        };
        let words = resolve("fe80::1").await.unwrap_err().to_string();
        assert!(words.contains("fe80::1%eth0"), "{words}");
        let words = resolve("[fe80::1%nosuch]:5").await.unwrap_err().to_string();
        assert!(words.contains("no interface nosuch"), "{words}");
        let found = resolve("fe80::1%lo").await.unwrap();
        let [SocketAddr::V6(found)] = found[..] else {
            panic!("{found:?}");
        };
        assert!(found.scope_id() != 0 && found.port() == 7);
        let again = Address::of(found.into(), 7);
        assert_eq!(again.to_string(), "fe80::1%lo");
        assert_eq!(again.to_string().parse(), Ok(again));
    }

    #[tokio::test]
    async fn beyond_loopback_needs_the_word() {
        let address: Address = "192.0.2.1:5".parse().unwrap();
        let refused = address
            .resolve(1, Reach::LoopbackOnly, Family::Any)
            .await
            .unwrap_err();
        assert_eq!(refused.exit, crate::exit::Exit::Usage);
        let said = refused.to_string();
        assert!(
            said.contains("loopback") && !said.contains("--insecure"),
            "{said}"
        );
        assert_eq!(
            address
                .resolve(1, Reach::Anywhere, Family::Any)
                .await
                .unwrap(),
            ["192.0.2.1:5".parse().unwrap()]
        );
        let wildcard: Address = "0.0.0.0".parse().unwrap();
        assert!(
            wildcard
                .resolve(1, Reach::LoopbackOnly, Family::Any)
                .await
                .is_err()
        );
        let loopback: Address = "::1".parse().unwrap();
        assert_eq!(
            loopback
                .resolve(7, Reach::LoopbackOnly, Family::Any)
                .await
                .unwrap(),
            ["[::1]:7".parse().unwrap()]
        );
    }
}
