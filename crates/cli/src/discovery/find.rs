//! Looks for a waiting program on the local network.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use mdns_sd::{IfKind, Receiver, ScopedIp, ServiceDaemon, ServiceEvent};
use tokio::time::Instant;

use super::{Mark, SERVICE};

/// Instances that are tried at most: anyone on the network can announce some.
const MAX_INSTANCES: usize = 16;

/// Addresses of one instance that are tried at most.
const MAX_ADDRESSES: usize = 4;

/// False for what no program on the local network can have: an announcement must not lead us to
/// ourselves, or to everybody.
fn is_of_a_neighbour(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    !(ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || is_broadcast)
}

/// An address as it was announced, with the interface where that was if it means nothing without.
fn on_interface(ip: &ScopedIp, port: u16) -> SocketAddr {
    match ip {
        ScopedIp::V6(v6) if v6.addr().is_unicast_link_local() => {
            SocketAddrV6::new(*v6.addr(), port, 0, v6.scope_id().index).into()
        }
        _ => SocketAddr::new(ip.to_ip_addr(), port),
    }
}

/// Looks for programs with one mark.
pub(crate) struct Finder {
    daemon: ServiceDaemon,
    events: Receiver<ServiceEvent>,
    mark: Mark,
    until: Instant,
    waited: Duration,
    /// Names that were looked at: each instance is tried once.
    seen: BTreeSet<String>,
    others: usize,
    tried: usize,
}

/// What was tried, for a person who has to find out why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NotFound {
    mark: Mark,
    waited: Duration,
    interfaces: Vec<IpAddr>,
    others: usize,
    tried: usize,
}

impl Finder {
    /// Looks for `patience`.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn new(mark: Mark, connect_timeout: Duration) -> Result<Self, String> {
        let start = || {
            let daemon = ServiceDaemon::new()?;
            // A program that waits there announces it elsewhere, too.
            daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6])?;
            let events = daemon.browse(SERVICE)?;
            Ok((daemon, events))
        };
        let (daemon, events) = start().map_err(|error: mdns_sd::Error| error.to_string())?;
        Ok(Self {
            daemon,
            events,
            mark,
            until: Instant::now() + connect_timeout,
            waited: connect_timeout,
            seen: BTreeSet::new(),
            others: 0,
            tried: 0,
        })
    }

    /// The addresses of the next instance with the mark.
    ///
    /// # Errors
    /// What was tried, once the time is over.
    pub(crate) async fn next(&mut self) -> Result<Vec<SocketAddr>, NotFound> {
        while self.tried < MAX_INSTANCES {
            let event = tokio::time::timeout_at(self.until, self.events.recv_async()).await;
            let Ok(Ok(event)) = event else { break };
            let ServiceEvent::ServiceResolved(service) = event else {
                continue;
            };
            // A bound on what strangers can make us remember.
            if self.seen.len() >= 1000 || !self.seen.insert(service.get_fullname().to_owned()) {
                continue;
            }
            if !self.mark.is_in(|name| service.get_property_val_str(name)) {
                self.others += 1;
                continue;
            }
            let port = service.get_port();
            let mut addresses: Vec<SocketAddr> = service
                .get_addresses()
                .iter()
                .map(|ip| on_interface(ip, port))
                .filter(|address| is_of_a_neighbour(address.ip()))
                .collect();
            addresses.sort();
            addresses.truncate(MAX_ADDRESSES);
            self.tried += 1;
            return Ok(addresses);
        }
        let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
        Err(NotFound {
            mark: self.mark,
            waited: self.waited,
            interfaces: interfaces
                .iter()
                .filter(|interface| !interface.is_loopback())
                .map(if_addrs::Interface::ip)
                .collect(),
            others: self.others,
            tried: self.tried,
        })
    }
}

impl Drop for Finder {
    fn drop(&mut self) {
        let _ = self.daemon.shutdown();
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interfaces: Vec<String> = self.interfaces.iter().map(IpAddr::to_string).collect();
        write!(
            f,
            "no program with {} was found by multicast DNS within {} s, on {}",
            match self.mark {
                Mark::Number(number) => format!("code number {number}"),
                Mark::Key(key) => format!("key {}", tack_pairing::short(&key)),
            },
            self.waited.as_secs(),
            if interfaces.is_empty() {
                "no interface beside loopback".to_owned()
            } else {
                interfaces.join(", ")
            }
        )?;
        match (self.tried, self.others) {
            (0, 0) => f.write_str(
                "; no tack answered at all: the network may filter multicast, as many guest networks and VPNs do",
            )?,
            (0, others) => write!(f, "; {others} with other numbers answered; check the code")?,
            (tried, _) => write!(f, "; {tried} announced it, but could not be reached")?,
        }
        f.write_str(
            ". The other side also prints an address: give it in place of the code, and the code with --code CODE",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_leads_to_neighbours_only() {
        let leads = |text: &str| is_of_a_neighbour(text.parse().unwrap());
        for ip in ["192.168.1.5", "203.0.113.9", "fd77::1", "fe80::1"] {
            assert!(leads(ip), "{ip}");
        }
        for ip in [
            "127.0.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.251",
            "::1",
            "::",
            "ff02::fb",
            "::ffff:127.0.0.1",
        ] {
            assert!(!leads(ip), "{ip}");
        }
    }

    #[test]
    fn a_failed_search_says_what_was_tried() {
        let mut tried = NotFound {
            mark: Mark::Number(7),
            waited: Duration::from_secs(60),
            interfaces: vec!["192.168.1.5".parse().unwrap()],
            others: 0,
            tried: 0,
        };
        let words = tried.to_string();
        for expected in ["number 7", "60 s", "192.168.1.5", "multicast", "--code"] {
            assert!(words.contains(expected), "{words}");
        }
        tried.others = 2;
        assert!(tried.to_string().contains("2 with other numbers"));
        tried.interfaces.clear();
        assert!(tried.to_string().contains("no interface beside loopback"));
    }
}
