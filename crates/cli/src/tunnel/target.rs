//! A host and a port that a forwarded connection is for.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Longest name of a host (RFC 1035 §2.3.4), bytes.
pub(crate) const MAX_NAME: usize = 253;

/// A host by name or address.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Host {
    /// Lower case, without the dot at its end.
    Name(String),
    Address(IpAddr),
}

/// A text that is neither a name nor an address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not a valid host name or IP address")]
pub(crate) struct BadHost(String);

impl FromStr for Host {
    type Err = BadHost;

    fn from_str(text: &str) -> Result<Self, BadHost> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        // What a resolver would take for an address in another notation (127.1, 0x7f.1) is none
        // of a name.
        let last = name.rsplit('.').next().unwrap_or(name);
        let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
            || last.to_ascii_lowercase().starts_with("0x");
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        if name.len() > MAX_NAME || is_number || !name.split('.').all(is_label) {
            return Err(BadHost(text.chars().take(MAX_NAME).collect()));
        }
        Ok(Self::Name(name.to_ascii_lowercase()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// Where a forwarded connection goes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TunnelTarget {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

/// A text that is no target.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not a valid target (for example nas:22, 192.168.1.7:80 or [fd00::1]:443)")]
pub(crate) struct BadTarget(String);

impl FromStr for TunnelTarget {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, BadTarget> {
        let bad = || BadTarget(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let port = port.parse().map_err(|_| bad())?;
        let inner = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let host = match inner {
            Some(inner) => {
                let address = inner.parse::<Ipv6Addr>().map_err(|_| bad())?;
                Host::Address(IpAddr::from(address).to_canonical())
            }
            None if host.contains(':') => return Err(bad()),
            None => host.parse().map_err(|_| bad())?,
        };
        if port == 0 {
            return Err(bad());
        }
        Ok(Self { host, port })
    }
}

impl fmt::Display for TunnelTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            host => write!(f, "{host}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_hosts_with_ports() {
        for (text, shown) in [
            ("NAS:22", "nas:22"),
            ("www.example.org.:443", "www.example.org:443"),
            ("192.168.1.7:80", "192.168.1.7:80"),
            ("[fd00::1]:80", "[fd00::1]:80"),
            ("_srv.host-1:1", "_srv.host-1:1"),
        ] {
            let target: TunnelTarget = text.parse().unwrap();
            assert_eq!(target.to_string(), shown);
            assert_eq!(shown.parse(), Ok(target));
        }
        for wrong in [
            "",
            "nas",
            "nas:",
            ":22",
            "nas:0",
            "nas:65536",
            "fd00::1:80",
            "[nas]:80",
            "a b:1",
            "a..b:1",
            "127.1:80",
            "2130706433:80",
            "0x7f000001:80",
            "a/b:1",
            "ü:1",
        ] {
            assert!(wrong.parse::<TunnelTarget>().is_err(), "{wrong:?}");
        }
    }
}
