//! Accurate feedback (RFC 9768): the receiver counts marked packets, and each segment carries the
//! three low bits of the count (ACE). The option with counters of bytes is neither sent nor read.

use tack_wire::{Ecn, Flags};

use super::handshake::{ACE, reflection};

/// Initial value of both counters, not zero, so that a middlebox that clears them is detected
/// (§3.2.1).
const FIRST: u64 = 5;
/// Unreported marks that cause an immediate acknowledgement (n of §3.2.2.5.1): where data waits for
/// one, where none does, and the most that the RFC permits.
const ON_DATA: u8 = 2;
const ON_OTHERS: u8 = 3;
const AT_MOST: u8 = 7;
/// Round trips in which each segment was reported as marked, after which marks no longer count as
/// congestion (§3.2.2.3: three or four).
const ROUNDS: u8 = 4;
/// Most segments for which the counter is unambiguous.
const DISTINCT: u64 = 7;

/// State of both directions.
#[derive(Debug)]
pub(super) struct Accurate {
    /// Receiver: packets that arrived marked (r.cep).
    received: u64,
    /// Receiver: those since the last segment that reported the count.
    unreported: u8,
    /// Receiver: the last packet was marked.
    was_marked: bool,
    /// Receiver: the path marks whatever it carries.
    is_overwritten: bool,
    /// Receiver: data arrived since the last segment that left.
    data_waits: bool,
    /// Receiver: data left since the last acknowledgement that packets without payload caused.
    has_sent: bool,
    /// Client: codepoint of the SYN-ACK as it arrived, until the acknowledgement of it has left.
    reflect: Option<Ecn>,
    /// Sender: marks that the peer counted (s.cep).
    reported: u64,
    /// Sender: whether the counter can be believed.
    check: Check,
    /// Sender: reductions so far; `None` once a segment was reported as not marked.
    continuous: Option<u8>,
    /// Sender: the next acknowledgement carries no counter.
    skip: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Check {
    /// The next segment carries the first counter.
    Due,
    /// It was not zero, and no acknowledgement delivered anything.
    Begun,
    Passed,
    /// The counter is not used any more.
    Failed,
}

impl Accurate {
    pub(super) fn new() -> Self {
        Self {
            received: FIRST,
            unreported: 0,
            was_marked: false,
            is_overwritten: false,
            data_waits: false,
            has_sent: false,
            reflect: None,
            reported: FIRST,
            check: Check::Due,
            continuous: Some(0),
            skip: false,
        }
    }

    pub(super) fn on_syn_ack(&mut self, ecn: Ecn) {
        if ecn == Ecn::Ce {
            self.received += 1;
            self.on_overwritten();
        }
        self.reflect = Some(ecn);
    }

    /// A packet of the handshake arrived marked.
    pub(super) fn on_overwritten(&mut self) {
        self.is_overwritten = true;
    }

    /// The next acknowledgement is the one of the handshake and carries no counter.
    pub(super) fn skip_one(&mut self) {
        self.skip = true;
    }

    /// The peer's counter is not used any more.
    pub(super) fn distrust(&mut self) {
        self.check = Check::Failed;
    }

    /// Called at most once in a round trip, when marks ask for a reduction. False once all segments
    /// have been marked for so long that marks do not indicate congestion.
    pub(super) fn means_congestion(&mut self) -> bool {
        if let Some(rounds) = &mut self.continuous {
            *rounds += 1;
            if *rounds >= ROUNDS {
                self.distrust();
            }
        }
        self.check != Check::Failed
    }

    /// A packet arrived. True when the peer should be informed at once.
    ///
    /// While no data leaves, marked acknowledgements cause one for each third mark, and then one
    /// for each seventh: §3.2.2.5.1 wants each third, and permits seven.
    ///
    /// Deviation: where the handshake shows that the path marks packets that are not capable,
    /// marked acknowledgements cause none. §3.2.2.5.1 demands one for at most seven, so that the
    /// peer hears of congestion; these marks show none, and what answers them is marked as well.
    pub(super) fn on_segment(&mut self, marked: bool, has_payload: bool) -> bool {
        let begins = marked && !self.was_marked && has_payload;
        self.was_marked = marked;
        self.data_waits |= has_payload;
        if !marked {
            return false;
        }
        self.received += 1;
        if !has_payload && self.is_overwritten {
            return false;
        }
        self.unreported = self.unreported.saturating_add(1);
        if self.data_waits {
            return begins || self.unreported >= ON_DATA;
        }
        let enough = if self.has_sent { ON_OTHERS } else { AT_MOST };
        let is_due = self.unreported >= enough;
        self.has_sent &= !is_due;
        is_due
    }

    /// Marks reported by an acknowledgement that delivered `segments`; `None` if its counter is the
    /// first one and zero, as a middlebox makes it (§3.2.2.4). Three marks make it zero as well.
    /// That is rare, and the sender then does without ECN.
    ///
    /// A middlebox that clears some of the flags makes 1 or 4 of the first counter: the first
    /// acknowledgement that delivers something then reports more marks than segments, and is taken
    /// for the same fault. The packet of the handshake before them may be marked besides.
    ///
    /// An acknowledgement that delivers nothing may be an old one, whose counter would seem to have
    /// wrapped. The peer reports at most seven marks at once. Only where acknowledgements were lost
    /// can one report more; the result is then the largest possible number (appendix A.2.1).
    pub(super) fn on_ack(&mut self, flags: Flags, segments: u64) -> Option<u64> {
        if core::mem::take(&mut self.skip) {
            return Some(0);
        }
        let field = count(flags);
        match self.check {
            Check::Failed => return Some(0),
            Check::Due if field == 0 => {
                self.distrust();
                return None;
            }
            Check::Due => self.check = Check::Begun,
            Check::Begun | Check::Passed => {}
        }
        if segments == 0 {
            return Some(0);
        }
        let least = field.wrapping_sub(self.reported) & 7;
        if self.check == Check::Begun {
            if least > segments + 1 {
                self.distrust();
                return None;
            }
            self.check = Check::Passed;
        }
        if least < segments && (least == 0 || segments <= DISTINCT) {
            self.continuous = None;
        }
        let marks = match least {
            0 => 0,
            _ if segments <= DISTINCT => least,
            _ => segments - (segments.wrapping_sub(least) & 7),
        };
        self.reported += marks;
        Some(marks)
    }

    pub(super) fn flags(&mut self, has_payload: bool) -> Flags {
        self.unreported = 0;
        self.data_waits = false;
        self.has_sent |= has_payload;
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
    use alloc::vec::Vec;

    /// The flags that a receiver sends after so many marks.
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

    /// Old acknowledgements, and those that deliver nothing, change no count.
    #[test]
    fn acknowledgements_that_deliver_nothing_count_nothing() {
        let mut sender = Accurate::new();
        assert_eq!(sender.on_ack(after(2), 4), Some(2));
        assert_eq!(sender.on_ack(after(1), 0), Some(0));
        assert_eq!(sender.on_ack(after(3), 2), Some(1));
    }

    /// If one acknowledgement replaces many that were lost, the count may be too high, but not too
    /// low.
    #[test]
    fn lost_acknowledgements_do_not_hide_marks() {
        let mut sender = Accurate::new();
        assert_eq!(sender.on_ack(after(9), 20), Some(17));
        let mut sender = Accurate::new();
        assert_eq!(sender.on_ack(after(0), 20), Some(0));
    }

    /// What a middlebox makes of the first counter that clears AE or ECE; §3.2.2.4 has only one
    /// that clears all flags.
    #[test]
    fn a_first_counter_of_more_marks_than_segments_is_a_middlebox() {
        for flag in [Flags::AE, Flags::ECE] {
            let cleared = |marks| Flags(after(marks).0 & !flag.0);
            let mut sender = Accurate::new();
            // An acknowledgement that delivers nothing says nothing.
            assert_eq!(sender.on_ack(cleared(0), 0), Some(0));
            assert_eq!(sender.on_ack(cleared(0), 2), None);
            assert_eq!(sender.on_ack(cleared(5), 5), Some(0), "not used any more");
        }
        // The packet of the handshake was marked, too. Later acknowledgements may be lost.
        let mut sender = Accurate::new();
        assert_eq!(sender.on_ack(after(2), 1), Some(2));
        assert_eq!(sender.on_ack(after(7), 2), Some(5));
    }

    #[test]
    fn zeros_in_the_first_counter_are_a_middlebox() {
        for segments in [0, 1, 10] {
            let mut sender = Accurate::new();
            assert_eq!(sender.on_ack(Flags::ACK, segments), None);
            let later = sender.on_ack(after(3), 1);
            assert_eq!(later, Some(0), "the counter is not used any more");
        }
        // A later zero is a count like any other.
        let mut sender = Accurate::new();
        assert_eq!(sender.on_ack(after(0), 1), Some(0));
        assert_eq!(sender.on_ack(after(3), 3), Some(3));
    }

    /// §3.2.2.3: marks on all packets are not a sign of congestion.
    #[test]
    fn continuous_marks_are_not_congestion() {
        let mut sender = Accurate::new();
        // A pure acknowledgement was marked, too.
        for (marks, means_something) in [(2, true), (5, true), (7, true), (9, false)] {
            assert!(sender.on_ack(after(marks), 2).unwrap() >= 2);
            assert_eq!(sender.means_congestion(), means_something);
        }
        assert_eq!(sender.on_ack(after(11), 2), Some(0));
        // One segment that was not marked is enough.
        let mut sender = Accurate::new();
        sender.on_ack(after(2), 3);
        for marks in [4, 6, 8, 10, 12] {
            assert_eq!(sender.on_ack(after(marks), 2), Some(2));
            assert!(sender.means_congestion());
        }
    }

    #[test]
    fn marks_are_reported_in_time() {
        let mut receiver = Accurate::new();
        assert!(receiver.on_segment(true, true), "the first of a run");
        assert!(receiver.on_segment(true, true), "the second unreported one");
        receiver.flags(false);
        assert!(!receiver.on_segment(true, true));
        assert!(receiver.on_segment(true, true));
        receiver.flags(false);
        // Marked acknowledgements, and how many of them are answered.
        let answered = |receiver: &mut Accurate, marks: u64| -> Vec<u64> {
            let is_due = |_: &u64| {
                let is_due = receiver.on_segment(true, false);
                if is_due {
                    receiver.flags(false);
                }
                assert!(receiver.unreported < 7, "the counter is unambiguous");
                is_due
            };
            (1..=marks).filter(is_due).collect()
        };
        assert_eq!(answered(&mut receiver, 14), [7, 14], "it sends nothing");
        for _ in 0..2 {
            receiver.flags(true);
            assert_eq!(answered(&mut receiver, 17), [3, 10, 17]);
        }
        assert!(!receiver.on_segment(false, true));
        assert_eq!(answered(&mut receiver, 3), [2], "data waits");
        receiver.on_overwritten();
        receiver.flags(true);
        assert_eq!(answered(&mut receiver, 20), [0; 0]);
        assert!(!receiver.on_segment(true, true), "one");
        assert!(receiver.on_segment(true, true), "the second one with data");
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
