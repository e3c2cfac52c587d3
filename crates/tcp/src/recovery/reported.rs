//! Loss detected by the receiver (TACK §4.1): it names packet numbers, and what left under them last is lost.
//!
//! A retransmission has a new number, so a report can never be taken for an older transmission, and one
//! that comes again finds nothing left to do.

use alloc::vec::Vec;
use core::ops::Range;

use super::{Detection, DetectionContext, LossDetector};
use crate::send::sent::{Delivered, SentLog};

/// The detector.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    named: Vec<Range<u64>>,
}

impl LossDetector for Reported {
    fn on_delivered(&mut self, _context: &DetectionContext, _delivered: &Delivered) {}

    fn on_duplicate_report(&mut self, _snd_una: u64, _snd_nxt: u64) {}

    fn on_report(&mut self, lost: &[Range<u64>]) {
        self.named.clear();
        self.named.extend_from_slice(lost);
    }

    fn detect(&mut self, context: &DetectionContext, log: &mut SentLog) -> Detection {
        // Sooner than half the shortest round trip nobody can know: a lie, which could make a segment leave again and
        // again.
        let youngest = context.now - context.min_rtt.unwrap_or_default() / 2;
        let lost = self
            .named
            .drain(..)
            .map(|numbers| log.mark_numbers_lost(numbers, youngest))
            .sum();
        Detection {
            lost,
            look_again: None,
        }
    }

    fn on_timeout(&mut self, context: &DetectionContext, log: &mut SentLog) -> u64 {
        // Without reports nothing is known: all that left more than a round trip ago is presumed lost.
        let mut lost = log.mark_front_lost();
        let rtt = context.smoothed_rtt.unwrap_or_default();
        while let Some((number, sent_at)) = log.oldest_outstanding() {
            if sent_at + rtt > context.now {
                break;
            }
            match log.mark_lost(number) {
                0 => break,
                len => lost += len,
            }
        }
        lost
    }

    fn on_recovered(&mut self) {}

    fn on_undone(&mut self) {}
}
