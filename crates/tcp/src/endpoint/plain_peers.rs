//! Peers behind a path that drops SYNs with an option it does not know: the next connections to
//! them do not offer it.

use alloc::collections::BTreeMap;
use core::net::IpAddr;
use core::time::Duration;

use tack_base::Instant;

/// How long such a path is remembered. A SYN or two may also be lost by chance, and then
/// connections do without for this time; a path that really drops them costs the next connection
/// after it three seconds.
const MEMORY: Duration = Duration::from_secs(600);
/// How many peers are remembered; the oldest gives way.
const MOST: usize = 256;

/// Peers whose handshake went through only once nothing unknown was offered, and until when.
#[derive(Debug, Default)]
pub(super) struct PlainPeers {
    until: BTreeMap<IpAddr, Instant>,
}

impl PlainPeers {
    pub(super) fn remember(&mut self, now: Instant, peer: IpAddr) {
        if self.until.len() >= MOST && !self.until.contains_key(&peer) {
            self.until.retain(|_, until| *until > now);
            let oldest = self.until.iter().min_by_key(|(_, until)| **until);
            if self.until.len() >= MOST
                && let Some(oldest) = oldest.map(|(peer, _)| *peer)
            {
                self.until.remove(&oldest);
            }
        }
        self.until.insert(peer, now + MEMORY);
    }

    pub(super) fn contains(&self, now: Instant, peer: IpAddr) -> bool {
        self.until.get(&peer).is_some_and(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn peers_are_forgotten_after_a_while_and_never_too_many() {
        let mut peers = PlainPeers::default();
        let peer = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(number));
        let begin = Instant::from_millis(1_000);
        peers.remember(begin, peer(0));
        assert!(peers.contains(begin + Duration::from_secs(599), peer(0)));
        assert!(!peers.contains(begin + Duration::from_secs(600), peer(0)));
        assert!(!peers.contains(begin, peer(1)));
        for number in 1..1_000_u32 {
            peers.remember(
                begin + Duration::from_millis(u64::from(number)),
                peer(number),
            );
        }
        assert_eq!(peers.until.len(), MOST);
        assert!(peers.contains(begin + Duration::from_secs(1), peer(999)));
    }
}
