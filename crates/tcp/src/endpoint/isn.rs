//! Numbers that a peer must not guess: initial sequence numbers (RFC 6528) and ephemeral ports (RFC
//! 6056).

use core::hash::Hasher;
use core::net::SocketAddr;

use siphasher::sip::SipHasher24;
use tack_base::Instant;
use tack_wire::SeqNum;

use super::table::Tuple;

/// First port that is picked for an outgoing connection: the dynamic ports of RFC 6335 §6.
const FIRST_EPHEMERAL: u16 = 49_152;
/// How many there are, up to 65,535.
const EPHEMERAL_PORTS: u16 = u16::MAX - FIRST_EPHEMERAL + 1;
/// Size of the perturbation table (RFC 6056 §3.3.4 has 10 as an example).
const COUNTERS: usize = 16;

/// Separates the uses of the one secret, so that an output of one says nothing about another.
#[derive(Clone, Copy)]
enum Purpose {
    Isn,
    PortOffset,
    PortCounter,
    Seed,
    TimestampOffset,
    Cookie,
    CookieDisguise,
}

/// Keyed hashes over connection names.
#[derive(Clone, Debug)]
pub(super) struct Secrets {
    key: [u8; 16],
    /// Connections named so far towards the ports in each bucket (RFC 6056 §3.3.4).
    counters: [u16; COUNTERS],
}

impl Secrets {
    pub(super) const fn new(key: [u8; 16]) -> Self {
        Self {
            key,
            counters: [0; COUNTERS],
        }
    }

    /// RFC 6528 §3: ISN = M + F(connection, secret), where M is a clock that ticks every 4 µs. The
    /// local address does not take part: an endpoint has one carrier, and its secret is its
    /// own.
    pub(super) fn isn(&self, now: Instant, tuple: &Tuple) -> SeqNum {
        let offset = self.hash(Purpose::Isn, tuple, 0);
        SeqNum((offset as u32).wrapping_add((now.as_micros() / 4) as u32))
    }

    /// Seed for what a connection draws; `serial` tells apart connections of the same name. The
    /// upper half, where its timestamps start, is the same for all of them: to a peer that has
    /// the last one in TIME-WAIT, the timestamps of the next are later ones, and let it in (RFC
    /// 6191 §2) where sequence numbers do not, as after fast transfers.
    pub(super) fn seed(&self, tuple: &Tuple, serial: u64) -> u64 {
        let start = self.hash(Purpose::TimestampOffset, tuple, 0) as u32;
        let drawn = self.hash(Purpose::Seed, tuple, serial) as u32;
        u64::from(start) << 32 | u64::from(drawn)
    }

    /// The hash that a SYN cookie is made of, over the connection's name, the peer's initial
    /// sequence number, and time and contents of the cookie; without these the one that
    /// disguises the contents.
    pub(super) fn cookie(&self, tuple: &Tuple, irs: SeqNum, sealed: Option<(u32, u16)>) -> u64 {
        let irs = u64::from(irs.0);
        match sealed {
            Some((period, data)) => {
                let sealed = u64::from(period as u16) << 16 | u64::from(data);
                self.hash(Purpose::Cookie, tuple, sealed << 32 | irs)
            }
            None => self.hash(Purpose::CookieDisguise, tuple, irs),
        }
    }

    /// A local port towards (`peer`, `remote_port`) that `is_free`, by the double-hash algorithm of
    /// RFC 6056 §3.3.4: a peer sees its own ports count up, and cannot tell how many
    /// connections go elsewhere.
    pub(super) fn port(
        &mut self,
        peer: SocketAddr,
        remote_port: u16,
        mut is_free: impl FnMut(u16) -> bool,
    ) -> Option<u16> {
        let tuple = Tuple {
            peer,
            local_port: 0,
            remote_port,
        };
        let offset = self.hash(Purpose::PortOffset, &tuple, 0) as u16;
        let bucket = self.hash(Purpose::PortCounter, &tuple, 0) as usize % COUNTERS;
        (0..EPHEMERAL_PORTS).find_map(|_| {
            let step = offset.wrapping_add(self.counters[bucket]) % EPHEMERAL_PORTS;
            self.counters[bucket] = self.counters[bucket].wrapping_add(1);
            Some(FIRST_EPHEMERAL + step).filter(|port| is_free(*port))
        })
    }

    fn hash(&self, purpose: Purpose, tuple: &Tuple, serial: u64) -> u64 {
        // Bytes are laid out here, not by `Hash`, whose layout may differ between machines and
        // compilers.
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(&[purpose as u8]);
        match tuple.peer {
            SocketAddr::V4(addr) => hasher.write(&addr.ip().octets()),
            SocketAddr::V6(addr) => {
                hasher.write(&addr.ip().octets());
                hasher.write(&addr.scope_id().to_le_bytes());
            }
        }
        hasher.write(&tuple.peer.port().to_le_bytes());
        hasher.write(&tuple.local_port.to_le_bytes());
        hasher.write(&tuple.remote_port.to_le_bytes());
        hasher.write(&serial.to_le_bytes());
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn peer(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 4000))
    }

    #[test]
    fn sequence_numbers_follow_the_clock_and_differ_by_connection_and_secret() {
        let secrets = Secrets::new([7; 16]);
        let tuple = Tuple {
            peer: peer(1),
            local_port: 80,
            remote_port: 9,
        };
        let at = |micros| secrets.isn(Instant::from_micros(micros), &tuple);
        // RFC 6528 §3: the same connection sees a clock of 4 µs …
        assert_eq!(at(4_000_000).distance(at(0)), 1_000_000);
        assert_eq!(at(3), at(0));
        // … and another connection, or another secret, an unrelated offset.
        let other = Tuple {
            remote_port: 10,
            ..tuple
        };
        assert_ne!(secrets.isn(Instant::ZERO, &other), at(0));
        assert_ne!(Secrets::new([8; 16]).isn(Instant::ZERO, &tuple), at(0));
        let (one, two) = (secrets.seed(&tuple, 1), secrets.seed(&tuple, 2));
        assert_ne!(one as u32, two as u32);
        assert_eq!(one >> 32, two >> 32, "timestamps go on where they were");
    }

    #[test]
    fn ports_of_one_peer_never_repeat_until_all_were_used() {
        let mut secrets = Secrets::new([1; 16]);
        let mut used = BTreeSet::new();
        while let Some(port) = secrets.port(peer(1), 80, |port| !used.contains(&port)) {
            assert!(port >= FIRST_EPHEMERAL);
            used.insert(port);
        }
        assert_eq!(used.len(), usize::from(EPHEMERAL_PORTS));
    }

    #[test]
    fn the_starting_port_depends_on_peer_and_secret() {
        let first = |key, last| Secrets::new([key; 16]).port(peer(last), 80, |_| true);
        let starts: BTreeSet<_> = (1..=32)
            .map(|last| first(1, last))
            .chain((2..=32).map(|key| first(key, 1)))
            .collect();
        assert!(starts.len() > 55, "{starts:?}");
    }
}
