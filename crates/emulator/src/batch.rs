//! Datagrams on their way out: those that leave together for one peer go to the kernel in one call.

use std::net::SocketAddr;

use tack_base::Instant;
use tack_io::udp::MAX_BATCH_BYTES;
use tack_io::{Clock, Datagrams, SendCause, SendError, UdpSender};
use tack_wire::Ecn;

use crate::figures::Totals;
use crate::lateness::Meter;

/// Most datagrams of one call: what the kernel's segmentation offload takes.
const MOST: usize = 64;

/// Datagrams for one peer, all of one length but the last, which may be shorter.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    contents: Vec<u8>,
    stride: usize,
    ecn: Ecn,
    /// When each was due.
    due: Vec<Instant>,
    /// A shorter one was added: nothing may follow it.
    is_closed: bool,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) datagrams: u64,
    pub(crate) bytes: u64,
    /// Datagrams that the kernel did not take.
    pub(crate) refused: u64,
}

impl Sent {
    /// Counts what was sent. Returns how many datagrams were not.
    pub(crate) fn add_to(self, totals: &mut Totals) -> u64 {
        totals.delivered += self.datagrams;
        totals.delivered_bytes += self.bytes;
        self.refused
    }
}

impl Batch {
    /// True when the datagram can be added; otherwise flush first.
    pub(crate) fn takes(&self, ecn: Ecn, datagram: &[u8]) -> bool {
        self.due.is_empty()
            || (!self.is_closed
                && self.ecn == ecn
                && datagram.len() <= self.stride
                && self.due.len() < MOST
                && self.contents.len() + datagram.len() <= MAX_BATCH_BYTES)
    }

    /// Adds a datagram that was due `at`.
    pub(crate) fn push(&mut self, at: Instant, ecn: Ecn, datagram: &[u8]) {
        if self.due.is_empty() {
            self.stride = datagram.len();
            self.ecn = ecn;
        }
        self.is_closed = datagram.len() < self.stride;
        self.contents.extend_from_slice(datagram);
        self.due.push(at);
    }

    /// Sends what there is. When the socket is full, the rest stays for the next try; what the
    /// kernel refuses for any other reason is lost, as on a real link.
    pub(crate) fn flush(
        &mut self,
        sender: &mut UdpSender,
        peer: SocketAddr,
        clock: &Clock,
        meter: &mut Meter,
    ) -> Sent {
        if self.is_empty() {
            return Sent::default();
        }
        let outcome = sender.send(&Datagrams {
            peer,
            ecn: self.ecn,
            contents: &self.contents,
            segment_size: self.stride,
        });
        let bytes = match &outcome {
            Ok(()) => self.contents.len(),
            Err(error) => error.sent,
        };
        let datagrams = bytes.div_ceil(self.stride.max(1)).min(self.due.len());
        let now = clock.now();
        for due in self.due.drain(..datagrams) {
            meter.record(now, due);
        }
        self.contents.drain(..bytes);
        let is_blocked = matches!(
            outcome,
            Err(SendError {
                cause: SendCause::Blocked,
                ..
            })
        );
        Sent {
            datagrams: datagrams as u64,
            bytes: bytes as u64,
            refused: if is_blocked { 0 } else { self.discard() },
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Gives up what there is. Returns how many datagrams that were.
    pub(crate) fn discard(&mut self) -> u64 {
        let discarded = self.due.len() as u64;
        self.contents.clear();
        self.due.clear();
        discarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_holds_equal_lengths_and_one_shorter_last() {
        let mut batch = Batch::default();
        let now = Instant::ZERO;
        assert!(batch.takes(Ecn::NotEct, &[0; 10]));
        batch.push(now, Ecn::NotEct, &[0; 10]);
        assert!(batch.takes(Ecn::NotEct, &[0; 10]));
        assert!(!batch.takes(Ecn::Ce, &[0; 10]), "another mark");
        assert!(!batch.takes(Ecn::NotEct, &[0; 11]), "longer");
        batch.push(now, Ecn::NotEct, &[0; 9]);
        assert!(!batch.takes(Ecn::NotEct, &[0; 9]), "after the short one");
        let mut batch = Batch::default();
        for _ in 0..MOST {
            assert!(batch.takes(Ecn::NotEct, &[0; 1_000]));
            batch.push(now, Ecn::NotEct, &[0; 1_000]);
        }
        assert!(!batch.takes(Ecn::NotEct, &[0; 1_000]), "full");
    }
}
