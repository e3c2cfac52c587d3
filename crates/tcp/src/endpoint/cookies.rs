//! SYN cookies (RFC 4987 §3.6): what a SYN said, written into the initial sequence number of the
//! answer.
//!
//! They take no memory at all, and so have the last word when the backlog is full of half-open
//! connections. They say less than a record: the segment size rounded down, and of TACK only its
//! default parameters; nothing repeats the SYN-ACK when it gets lost, so that a peer whose last
//! acknowledgement of the handshake gets lost and that waits for this side to speak first
//! waits until its own keep-alive or its user ends that; and the round trip of the handshake is not
//! measured unless timestamps tell. Timestamps themselves need no place: an acknowledgement that
//! carries them says that they were agreed. Where TACK was, it has none, and this side does without
//! them for good. Of ECN a cookie knows the classic feedback.
//!
//! From the left, 21 bits of a keyed hash over the connection's name, the peer's initial sequence
//! number, the time and the rest; then, disguised by another hash, 11 bits: whether the time is
//! odd, segment size (3), window scale (4), SACK, ECN, TACK. Who guesses has one chance in 2^21 for
//! each acknowledgement, and only while cookies are in use; what it gains is a connection that an
//! honest handshake would give it too. A cookie is good for one to two periods of 64 s. Within that
//! time an acknowledgement that the network repeats may open a connection anew which has ended: its
//! peer resets it.

use core::time::Duration;

use tack_base::Instant;
use tack_wire::tack::TackSyn;
use tack_wire::{Header, SeqNum};

use super::isn::Secrets;
use super::table::Tuple;
use crate::ack::TackParams;
use crate::connection::offer::Offer;
use crate::ecn::handshake::Request;

/// Segment sizes that a cookie can tell apart: the least that makes sense, what every host takes
/// (RFC 9293 §3.7.1), IPv6's least, tunnels, UDP over Ethernet by IPv6 and IPv4, jumbo frames.
const SIZES: [u16; 8] = [216, 536, 1220, 1360, 1400, 1432, 1452, 8960];
/// Window scale 15 does not exist: none was offered.
const NO_SCALE: u32 = 15;
const DATA_BITS: u32 = 11;
const DATA_MASK: u32 = (1 << DATA_BITS) - 1;
const PERIOD: Duration = Duration::from_secs(64);

/// How long cookies may come back after the last one left.
pub(super) const LIFETIME: Duration = Duration::from_secs(2 * PERIOD.as_secs());

fn period(now: Instant) -> u32 {
    (now.as_nanos() / PERIOD.as_nanos() as u64) as u32
}

/// The initial sequence number that says what `offer` says; `None` for segments too small to be
/// served.
pub(super) fn make(secrets: &Secrets, now: Instant, name: &Tuple, offer: &Offer) -> Option<SeqNum> {
    let offered = offer.mss.unwrap_or(name.default_mss());
    let size = SIZES.iter().rposition(|size| *size <= offered)? as u32;
    let scale = offer
        .scale
        .map_or(NO_SCALE, |scale| u32::from(scale.min(14)));
    let tack = offer.tack.is_some_and(|tack| tack == default_tack());
    let period = period(now);
    let data = (period & 1)
        | size << 1
        | scale << 4
        | u32::from(offer.sack) << 8
        | u32::from(offer.ecn != Request::None) << 9
        | u32::from(tack) << 10;
    Some(seal(secrets, name, offer.irs, period, data))
}

/// What the SYN said that the acknowledgement in `header` completes, if that returns a cookie.
pub(super) fn read(
    secrets: &Secrets,
    now: Instant,
    name: &Tuple,
    header: &Header,
) -> Option<Offer> {
    let (iss, irs) = (header.ack - 1, header.seq - 1);
    let data = (iss.0 ^ secrets.cookie(name, irs, None) as u32) & DATA_MASK;
    let current = period(now);
    let made = current - ((current ^ data) & 1).min(current);
    if seal(secrets, name, irs, made, data) != iss {
        return None;
    }
    let scale = data >> 4 & 15;
    Some(Offer {
        irs,
        window: 0,
        mss: Some(SIZES[(data >> 1 & 7) as usize]),
        scale: (scale != NO_SCALE).then_some(scale as u8),
        sack: data >> 8 & 1 > 0,
        ecn: if data >> 9 & 1 > 0 {
            Request::Classic
        } else {
            Request::None
        },
        timestamp: header.options.timestamps.map(|timestamps| timestamps.value),
        tack: (data >> 10 & 1 > 0).then(default_tack),
    })
}

fn seal(secrets: &Secrets, name: &Tuple, irs: SeqNum, period: u32, data: u32) -> SeqNum {
    let disguise = secrets.cookie(name, irs, None) as u32;
    let hash = secrets.cookie(name, irs, Some((period, data as u16))) as u32;
    SeqNum((hash & !DATA_MASK) | ((data ^ disguise) & DATA_MASK))
}

fn default_tack() -> TackSyn {
    let TackParams { segments, beta, .. } = TackParams::default();
    TackSyn { segments, beta }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::SocketAddr;
    use proptest::prelude::*;
    use tack_wire::Flags;
    use tack_wire::Timestamps;
    use tack_wire::options::TcpOptions;

    const NOW: Instant = Instant::from_millis(1_000_000);

    fn name() -> Tuple {
        Tuple {
            local_port: 80,
            remote_port: 9,
            peer: SocketAddr::from(([192, 0, 2, 1], 4000)),
        }
    }

    fn acknowledgement(irs: SeqNum, cookie: SeqNum, timestamp: Option<u32>) -> Header {
        Header {
            seq: irs + 1,
            ack: cookie + 1,
            flags: Flags::ACK,
            options: TcpOptions {
                timestamps: timestamp.map(|value| Timestamps { value, echo: 1 }),
                ..TcpOptions::default()
            },
            ..Header::default()
        }
    }

    proptest! {
        #[test]
        fn what_was_offered_comes_back(
            irs in any::<u32>(),
            mss in proptest::option::of(216_u16..),
            scale in proptest::option::of(0_u8..15),
            sack in any::<bool>(),
            ecn in prop_oneof![Just(Request::None), Just(Request::Classic)],
            timestamp in proptest::option::of(any::<u32>()),
            tack in any::<bool>(),
            later in 0_u64..64,
        ) {
            let secrets = Secrets::new([3; 16]);
            let offer = Offer {
                irs: SeqNum(irs), window: 0, mss, scale, sack, ecn, timestamp,
                tack: tack.then(default_tack),
            };
            let cookie = make(&secrets, NOW, &name(), &offer).expect("sizes are served");
            let then = NOW + Duration::from_secs(later);
            let answer = acknowledgement(offer.irs, cookie, timestamp);
            let read = read(&secrets, then, &name(), &answer).expect("it is ours");
            let size = read.mss.expect("a size");
            prop_assert!(size <= mss.unwrap_or(536) && (size >= 1220 || mss.is_none_or(|mss| mss < 1220)));
            prop_assert_eq!(Offer { mss, ..read }, offer);
        }
    }

    #[test]
    fn old_cookies_and_guesses_are_refused() {
        let secrets = Secrets::new([3; 16]);
        let offer = Offer {
            irs: SeqNum(7),
            window: 0,
            mss: None,
            scale: None,
            sack: true,
            ecn: Request::None,
            timestamp: None,
            tack: None,
        };
        let cookie = make(&secrets, NOW, &name(), &offer).expect("sizes are served");
        let answer = acknowledgement(offer.irs, cookie, None);
        let after = |seconds| NOW + Duration::from_secs(seconds);
        assert!(read(&secrets, after(64), &name(), &answer).is_some());
        assert!(read(&secrets, after(128), &name(), &answer).is_none());
        let other = Tuple {
            remote_port: 10,
            ..name()
        };
        assert!(read(&secrets, NOW, &other, &answer).is_none());
        let guessed = (0..10_000).filter(|guess| {
            let answer = acknowledgement(offer.irs, SeqNum(guess * 429_497), None);
            read(&secrets, NOW, &name(), &answer).is_some()
        });
        assert!(guessed.count() <= 1);
        let absurd = Offer {
            mss: Some(100),
            ..offer
        };
        assert_eq!(make(&secrets, NOW, &name(), &absurd), None);
    }
}
