//! Segments that belong to no connection (RFC 9293 §3.10.7.1): at most one reset each, never more
//! than a trickle, and no second one to what answers the first.

use alloc::collections::VecDeque;
use core::net::SocketAddr;
use core::time::Duration;

use tack_base::Instant;
use tack_wire::{Flags, Header, Segment, SeqNum};

use crate::transmit::{Batch, Transmit};

/// Resets a second, and in one burst. Enough for a peer whose connections all died at once to find
/// out soon; too few to make this endpoint a useful reflector.
const PER_SECOND: u32 = 200;
/// A peer ends its connection at a reset, and its next try comes from another port. What comes
/// again within this time was under way, or answers the reset: so does a service that is not TCP
/// and answers every datagram. Shorter than the initial RTO (RFC 6298 §2.1: 1 s), because the reset
/// may have been lost.
const SILENCE: Duration = Duration::from_millis(500);
/// Resets that are remembered for that.
const REMEMBERED: usize = 64;
/// Resets that wait to leave.
const QUEUE: usize = 64;
/// The same, with answers that have a limit of their own.
const LONGEST_QUEUE: usize = 256;

/// Segments that are due without a connection to send them: resets with a budget for more, and
/// answers of records.
#[derive(Debug)]
pub(super) struct Strays {
    queue: VecDeque<(SocketAddr, Header)>,
    tokens: u32,
    refilled: Instant,
    /// The latest resets, the oldest first.
    recent: VecDeque<Recent>,
}

/// A reset that left, by what names a connection that there is not.
#[derive(Clone, Copy, Debug)]
struct Recent {
    peer: SocketAddr,
    src_port: u16,
    dst_port: u16,
    at: Instant,
}

impl Strays {
    pub(super) const fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            tokens: PER_SECOND,
            refilled: Instant::ZERO,
            recent: VecDeque::new(),
        }
    }

    /// Answers a segment for which there is no connection. Returns whether a reset will leave.
    pub(super) fn answer(&mut self, now: Instant, peer: SocketAddr, segment: &Segment<'_>) -> bool {
        let Some(reset) = reset_for(segment) else {
            return false;
        };
        let earned = now.saturating_since(self.refilled).as_nanos() / interval().as_nanos();
        if earned > 0 {
            let earned = u32::try_from(earned).unwrap_or(u32::MAX);
            self.tokens = self.tokens.saturating_add(earned).min(PER_SECOND);
            // The fraction of a token stays earned, unless the bucket is full anyway.
            self.refilled = if self.tokens == PER_SECOND {
                now
            } else {
                self.refilled + interval() * earned
            };
        }
        if self.tokens == 0 || self.queue.len() >= QUEUE || self.is_answered(now, peer, &reset) {
            return false;
        }
        self.tokens -= 1;
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent {
            peer,
            src_port: reset.src_port,
            dst_port: reset.dst_port,
            at: now,
        });
        self.queue.push_back((peer, reset));
        true
    }

    /// Whether such a reset has just left.
    fn is_answered(&self, now: Instant, peer: SocketAddr, reset: &Header) -> bool {
        self.recent.iter().any(|recent| {
            recent.peer == peer
                && (recent.src_port, recent.dst_port) == (reset.src_port, reset.dst_port)
                && now.saturating_since(recent.at) < SILENCE
        })
    }

    /// A segment without payload is to leave. The caller limits their number.
    pub(super) fn send(&mut self, peer: SocketAddr, header: Header) {
        if self.queue.len() < LONGEST_QUEUE {
            self.queue.push_back((peer, header));
        }
    }

    /// The next segment to leave.
    #[inline]
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        batch: &mut Batch<'_>,
    ) -> Option<(SocketAddr, Transmit)> {
        let (peer, header) = self.queue.pop_front()?;
        Some((peer, batch.single(now, &header)))
    }
}

const fn interval() -> Duration {
    Duration::from_nanos(1_000_000_000 / PER_SECOND as u64)
}

/// The reset that RFC 9293 §3.10.7.1 answers a segment with; none for a reset. Twenty bytes without
/// options: never longer than what it answers.
///
/// Deviation: none for a segment that has neither SYN nor ACK, because no TCP sends one
/// (RFC 9293 §3.10.7.4 drops it in a connection), and the datagrams of other services look like it.
fn reset_for(segment: &Segment<'_>) -> Option<Header> {
    let header = &segment.header;
    if header.flags.rst() || !(header.flags.syn() || header.flags.ack()) {
        return None;
    }
    let (seq, ack, flags) = if header.flags.ack() {
        (header.ack, SeqNum(0), Flags::RST)
    } else {
        (
            SeqNum(0),
            header.seq + segment.sequence_len(),
            Flags::RST.with(Flags::ACK),
        )
    };
    Some(Header {
        src_port: header.dst_port,
        dst_port: header.src_port,
        seq,
        ack,
        flags,
        ..Header::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn segment(flags: Flags, payload: &[u8]) -> Segment<'_> {
        let header = Header {
            src_port: 9,
            dst_port: 80,
            seq: SeqNum(1000),
            ack: SeqNum(5000),
            flags,
            ..Header::default()
        };
        Segment { header, payload }
    }

    /// Of a connection with this number.
    fn numbered(number: u64) -> Segment<'static> {
        let mut segment = segment(Flags::ACK, b"");
        segment.header.src_port = number as u16;
        segment
    }

    fn peer() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 4000))
    }

    #[test]
    fn resets_are_acceptable_to_whoever_sent_the_segment() {
        let syn = reset_for(&segment(Flags::SYN, b"xyz")).unwrap();
        assert_eq!(
            (syn.seq, syn.ack, syn.flags),
            (SeqNum(0), SeqNum(1004), Flags::RST.with(Flags::ACK))
        );
        assert_eq!((syn.src_port, syn.dst_port), (80, 9));
        let data = reset_for(&segment(Flags::ACK, b"xyz")).unwrap();
        assert_eq!((data.seq, data.flags), (SeqNum(5000), Flags::RST));
        assert_eq!(reset_for(&segment(Flags::RST, b"")), None);
        assert_eq!(reset_for(&segment(Flags::RST.with(Flags::ACK), b"")), None);
        assert_eq!(reset_for(&segment(Flags::FIN, b"text")), None, "no TCP's");
    }

    /// A service that is not TCP answers every reset with what draws another.
    #[test]
    fn what_answers_a_reset_draws_no_other_for_a_while() {
        let mut strays = Strays::new();
        let other = SocketAddr::from(([192, 0, 2, 1], 4001));
        let mut answered = |peer, port, ms| {
            let mut segment = segment(Flags::ACK, b"not TCP");
            segment.header.src_port = port;
            strays.answer(Instant::from_millis(ms), peer, &segment)
        };
        let second = (1_000..1_500).map(|ms| answered(peer(), 9, ms));
        assert_eq!(second.filter(|answered| *answered).count(), 1);
        assert!(answered(peer(), 10, 1_499), "another connection");
        assert!(answered(other, 9, 1_499), "another peer");
        assert!(answered(peer(), 9, 1_500), "the reset may have been lost");
        for port in 100..1_000 {
            answered(peer(), port, 9_000);
        }
        assert_eq!(strays.recent.len(), REMEMBERED);
    }

    #[test]
    fn a_flood_is_answered_by_a_trickle() {
        let mut strays = Strays::new();
        let mut buf = Vec::new();
        let mut sent = 0;
        // 100,000 strays over 10 s.
        for tick in 0..100_000 {
            let now = Instant::from_micros(tick * 100);
            strays.answer(now, peer(), &numbered(tick));
            while strays
                .poll_transmit(now, &mut Batch::new(&mut buf, 0, 1))
                .is_some()
            {
                sent += 1;
                assert_eq!(buf.len(), 20);
                buf.clear();
            }
        }
        assert!((2_100..=2_200).contains(&sent), "{sent}");
        // Undrained, the queue is bounded as well.
        for number in 0..1_000 {
            strays.answer(Instant::from_millis(60_000), peer(), &numbered(number));
        }
        assert_eq!(strays.queue.len(), QUEUE);
    }
}
