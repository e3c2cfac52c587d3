//! How many connections each client of a gateway has.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Connections by client, of those that have any.
#[derive(Debug)]
pub(super) struct Clients {
    most: u32,
    counts: Mutex<BTreeMap<IpAddr, u32>>,
}

/// A connection of a client, for as long as it is held.
#[derive(Debug)]
pub(super) struct OfClient {
    clients: Arc<Clients>,
    client: IpAddr,
}

/// What counts as one client: a host picks the last 64 bits of an IPv6 address itself.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

impl Clients {
    pub(super) fn new(most: u32) -> Self {
        Self {
            most,
            counts: Mutex::default(),
        }
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, BTreeMap<IpAddr, u32>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection of `address`, unless it has its most.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<OfClient> {
        let client = client(address);
        let mut counts = self.counts();
        let count = counts.entry(client).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(OfClient {
            clients: Arc::clone(self),
            client,
        })
    }
}

impl Drop for OfClient {
    fn drop(&mut self) {
        let mut counts = self.clients.counts();
        if let Some(count) = counts.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_most_and_gives_places_back() {
        let clients = Arc::new(Clients::new(2));
        let enter = |text: &str| clients.enter(text.parse().unwrap());
        let first = enter("10.0.0.1").unwrap();
        let _second = enter("::ffff:10.0.0.1").unwrap();
        assert!(enter("10.0.0.1").is_none());
        let _other = enter("10.0.0.2").unwrap();
        drop(first);
        let _again = enter("10.0.0.1").unwrap();
        let one = enter("2001:db8::1");
        let two = enter("2001:db8::ffff:2");
        assert!(one.is_some() && two.is_some() && enter("2001:db8::3").is_none());
        assert!(enter("2001:db8:0:1::3").is_some());
        drop((one, two));
        assert_eq!(clients.counts().len(), 2);
    }
}
