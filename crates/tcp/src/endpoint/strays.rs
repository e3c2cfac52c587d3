//! Segments that belong to no connection (RFC 9293 §3.10.7.1): at most one reset each, never more
//! than a trickle.

use alloc::collections::VecDeque;
use core::net::SocketAddr;
use core::time::Duration;

use tack_base::Instant;
use tack_wire::{Flags, Header, Segment, SeqNum};

use crate::transmit::{Batch, Transmit};

/// Resets a second, and in one burst. Enough for a peer whose connections all died at once to find
/// out soon; too few to make this endpoint a useful reflector.
const PER_SECOND: u32 = 200;
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
}

impl Strays {
    pub(super) const fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            tokens: PER_SECOND,
            refilled: Instant::ZERO,
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
        if self.tokens == 0 || self.queue.len() >= QUEUE {
            return false;
        }
        self.tokens -= 1;
        self.queue.push_back((peer, reset));
        true
    }

    /// A segment without payload is to leave. The caller limits their number.
    pub(super) fn send(&mut self, peer: SocketAddr, header: Header) {
        if self.queue.len() < LONGEST_QUEUE {
            self.queue.push_back((peer, header));
        }
    }

    /// The next segment to leave.
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
fn reset_for(segment: &Segment<'_>) -> Option<Header> {
    let header = &segment.header;
    if header.flags.rst() {
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
    }

    #[test]
    fn a_flood_is_answered_by_a_trickle() {
        let mut strays = Strays::new();
        let mut buf = Vec::new();
        let mut sent = 0;
        // 100,000 strays over 10 s.
        for tick in 0..100_000 {
            let now = Instant::from_micros(tick * 100);
            strays.answer(now, peer(), &segment(Flags::ACK, b""));
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
        for _ in 0..1_000 {
            strays.answer(
                Instant::from_millis(60_000),
                peer(),
                &segment(Flags::ACK, b""),
            );
        }
        assert_eq!(strays.queue.len(), QUEUE);
    }
}
