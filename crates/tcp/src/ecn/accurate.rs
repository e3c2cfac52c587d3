//! Accurate feedback (RFC 9768): the receiver counts marked packets, and the three low bits of the
//! count travel on each segment (ACE). The option with counters of bytes is neither sent nor read.

use tack_wire::{Ecn, Flags};

use super::handshake::{ACE, reflection};

/// Where both counters begin, so that zeros of a middlebox show (§3.2.1).
const FIRST: u64 = 5;
/// Marks on data, and on other packets, that draw an acknowledgement at once (§3.2.2.5.1).
const ON_DATA: u8 = 2;
const ON_OTHERS: u8 = 3;
/// Marks after which the first counter may be zero by right.
const ZERO_AFTER: u8 = 8 - FIRST as u8;
/// Segments whose marks the counter tells apart.
const DISTINCT: u64 = 7;

/// State of both directions.
#[derive(Debug)]
pub(super) struct Accurate {
    /// Receiver: packets that arrived marked (r.cep).
    received: u64,
    /// Receiver: those since the last segment that told of them.
    untold: u8,
    /// Receiver: the last packet was marked.
    was_marked: bool,
    /// Client: as what the SYN-ACK arrived, until the acknowledgement of it has told.
    reflect: Option<Ecn>,
    /// Sender: marks that the peer counted (s.cep).
    reported: u64,
    /// Sender: capable segments that left, as far as that matters to the check of zeros.
    capable_sent: u8,
    /// Sender: what came of that check.
    check: Check,
    /// Sender: the next acknowledgement has no counter.
    skip: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Check {
    /// The next segment's counter is the first.
    Due,
    Passed,
    /// The counter means nothing.
    Failed,
}

impl Accurate {
    pub(super) fn new() -> Self {
        Self {
            received: FIRST,
            untold: 0,
            was_marked: false,
            reflect: None,
            reported: FIRST,
            capable_sent: 0,
            check: Check::Due,
            skip: false,
        }
    }

    pub(super) fn on_syn_ack(&mut self, ecn: Ecn) {
        self.received += u64::from(ecn == Ecn::Ce);
        self.reflect = Some(ecn);
    }

    /// The next acknowledgement carries no counter: it is the one of the handshake.
    pub(super) fn skip_one(&mut self) {
        self.skip = true;
    }

    pub(super) fn on_capable_sent(&mut self) {
        self.capable_sent = self.capable_sent.saturating_add(1);
    }

    /// A packet arrived. True when the peer should learn of it at once.
    pub(super) fn on_segment(&mut self, marked: bool, has_payload: bool) -> bool {
        let begins = marked && !self.was_marked;
        self.was_marked = marked;
        if !marked {
            return false;
        }
        self.received += 1;
        self.untold = self.untold.saturating_add(1);
        if has_payload {
            begins || self.untold >= ON_DATA
        } else {
            self.untold >= ON_OTHERS
        }
    }

    /// Marks that an acknowledgement reports which delivered `segments`; `None` where the counter
    /// is found to be useless.
    ///
    /// One that delivers nothing may be an old one, whose counter would seem to have gone around.
    /// The peer acknowledges seven marks at most at once. Only where acknowledgements get lost may
    /// one tell of more, and then the count is the most that it can mean (appendix A.2.1).
    pub(super) fn on_ack(&mut self, flags: Flags, segments: u64) -> Option<u64> {
        if core::mem::take(&mut self.skip) {
            return Some(0);
        }
        let field = count(flags);
        match self.check {
            Check::Failed => return Some(0),
            Check::Due if field == 0 && self.capable_sent < ZERO_AFTER => {
                self.check = Check::Failed;
                return None;
            }
            Check::Due | Check::Passed => self.check = Check::Passed,
        }
        if segments == 0 {
            return Some(0);
        }
        let least = field.wrapping_sub(self.reported) & 7;
        let marks = match least {
            0 => 0,
            _ if segments <= DISTINCT => least,
            _ => segments - (segments.wrapping_sub(least) & 7),
        };
        self.reported += marks;
        Some(marks)
    }

    pub(super) fn flags(&mut self, has_payload: bool) -> Flags {
        self.untold = 0;
        match self.reflect.take() {
            Some(ecn) if !has_payload => reflection(ecn),
            _ => {
                let mut flags = Flags::default();
                for (bit, flag) in [(4, Flags::AE), (2, Flags::CWR), (1, Flags::ECE)] {
                    if self.received & bit > 0 {
                        flags = flags.with(flag);
                    }
                }
                flags
            }
        }
    }
}

/// The counter in the flags.
fn count(flags: Flags) -> u64 {
    let bits = Flags(flags.0 & ACE.0);
    [(4, Flags::AE), (2, Flags::CWR), (1, Flags::ECE)]
        .into_iter()
        .filter(|(_, flag)| bits.contains(*flag))
        .map(|(bit, _)| bit)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a receiver with so many marks sends.
    fn after(marks: u64) -> Flags {
        let mut receiver = Accurate::new();
        receiver.received += marks;
        receiver.flags(true)
    }

    #[test]
    fn counters_begin_at_five_and_go_around() {
        assert_eq!(count(after(0)), 5);
        assert_eq!(count(after(3)), 0);
        let mut sender = Accurate::new();
        assert_eq!(sender.on_ack(after(0), 2), Some(0));
        let mut reported = 0;
        for marks in [1, 1, 4, 9, 9, 16, 20] {
            reported += sender.on_ack(after(marks), 7).unwrap();
            assert_eq!(reported, marks);
        }
    }

    /// Old acknowledgements, and those that deliver nothing, do not count backwards.
    #[test]
    fn what_delivers_nothing_counts_nothing() {
        let mut sender = Accurate::new();
        assert_eq!(sender.on_ack(after(2), 4), Some(2));
        assert_eq!(sender.on_ack(after(1), 0), Some(0));
        assert_eq!(sender.on_ack(after(3), 2), Some(1));
    }

    /// Where one acknowledgement stands for many that got lost, the count may be ahead of the
    /// truth, and not behind.
    #[test]
    fn lost_acknowledgements_do_not_hide_marks() {
        let mut sender = Accurate::new();
        assert_eq!(sender.on_ack(after(9), 20), Some(17));
        let mut sender = Accurate::new();
        assert_eq!(sender.on_ack(after(0), 20), Some(0));
    }

    #[test]
    fn zeros_in_the_first_counter_are_a_middlebox() {
        let mut sender = Accurate::new();
        sender.on_capable_sent();
        assert_eq!(sender.on_ack(Flags::ACK, 1), None);
        assert_eq!(
            sender.on_ack(after(3), 1),
            Some(0),
            "it means nothing from now on"
        );
        // Three marks make it zero by right.
        let mut sender = Accurate::new();
        for _ in 0..3 {
            sender.on_capable_sent();
        }
        assert_eq!(sender.on_ack(after(3), 3), Some(3));
        // Later zeros are counters as any.
        let mut sender = Accurate::new();
        assert_eq!(sender.on_ack(after(0), 1), Some(0));
        assert_eq!(sender.on_ack(after(3), 3), Some(3));
    }

    #[test]
    fn marks_are_told_of_in_time() {
        let mut receiver = Accurate::new();
        assert!(receiver.on_segment(true, true), "the first of a row");
        assert!(
            receiver.on_segment(true, true),
            "the second one not told of"
        );
        receiver.flags(false);
        assert!(!receiver.on_segment(true, true));
        assert!(receiver.on_segment(true, true));
        receiver.flags(false);
        let others = [true; 4].map(|marked| receiver.on_segment(marked, false));
        assert_eq!(others, [false, false, true, true]);
    }

    #[test]
    fn the_first_acknowledgement_of_a_client_reflects() {
        let mut client = Accurate::new();
        client.on_syn_ack(Ecn::Ce);
        assert_eq!(client.flags(false), Flags::AE.with(Flags::CWR));
        assert_eq!(count(client.flags(false)), 6);
        let mut client = Accurate::new();
        client.on_syn_ack(Ecn::NotEct);
        assert_eq!(count(client.flags(true)), 5, "data carries the counter");
        assert_eq!(count(client.flags(false)), 5);
    }
}
