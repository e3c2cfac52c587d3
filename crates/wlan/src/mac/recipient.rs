//! The receiving side of a Block ACK agreement: scoreboard and reordering (§10.25.6.3 to
//! 10.25.6.6).

use alloc::collections::VecDeque;

use tack_base::Instant;

use super::config::WINDOW;
use crate::frame::{Msdu, seq_add, seq_before, seq_distance};

/// A frame that waits for one before it.
#[derive(Clone, Debug)]
struct Held<M> {
    msdu: Msdu<M>,
    /// When it came.
    since: Instant,
}

/// Whether there is an agreement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Agreement {
    /// There is none: frames come one by one.
    Absent {
        /// Sequence number of the last one.
        last: Option<u16>,
        /// What the response on its way to the originator agrees to: the first sequence number.
        offered: Option<u16>,
    },
    Stands,
}

/// One transmitter and category.
#[derive(Clone, Debug)]
pub struct Recipient<M> {
    /// WinStartR and what was received from there on.
    score_start: u16,
    score: u64,
    /// WinStartB: the next sequence number to release.
    next: u16,
    /// From `next` on, what waits for something before it; the front is never there.
    waiting: VecDeque<Option<Held<M>>>,
    agreement: Agreement,
}

impl<M> Default for Recipient<M> {
    fn default() -> Self {
        Self {
            score_start: 0,
            score: 0,
            next: 0,
            waiting: VecDeque::new(),
            agreement: Agreement::Stands,
        }
    }
}

impl<M> Recipient<M> {
    /// A recipient without agreement.
    pub fn without_agreement() -> Self {
        Self {
            agreement: Agreement::Absent {
                last: None,
                offered: None,
            },
            ..Self::default()
        }
    }

    /// A response is about to be sent, to a request with this starting sequence number.
    pub fn offer(&mut self, start: u16) {
        if let Agreement::Absent { offered, .. } = &mut self.agreement {
            *offered = Some(start);
        }
    }

    /// The originator has the response: it acknowledged that, or uses the agreement. Frames that
    /// came one by one in the meantime are not waited for again.
    pub fn confirm(&mut self) {
        if let Agreement::Absent {
            offered: Some(start),
            last,
        } = self.agreement
        {
            self.agreement = Agreement::Stands;
            if last.is_none() || seq_before(self.next, start) {
                self.next = start;
                self.score_start = start;
                self.score = 0;
            }
        }
    }

    /// Whether the agreement stands.
    pub fn is_agreed(&self) -> bool {
        self.agreement == Agreement::Stands
    }

    /// As [`Recipient::receive`], of a frame that may come again: without agreement it is released
    /// at once, unless it is a retry of the last one (§10.3.2.14).
    #[inline]
    pub fn receive_mpdu(
        &mut self,
        now: Instant,
        (seq, retry): (u16, bool),
        msdu: Msdu<M>,
        mut release: impl FnMut(Msdu<M>),
    ) -> bool {
        let Agreement::Absent { last, offered } = &mut self.agreement else {
            return self.receive(now, seq, msdu, release);
        };
        let is_new = !(retry && *last == Some(seq));
        *last = Some(seq);
        self.next = seq_add(seq, 1);
        self.score_start = self.next;
        // However many frames come before the agreement stands, it does not begin before them.
        if let Some(start) = offered
            && seq_before(*start, self.next)
        {
            *start = self.next;
        }
        if is_new {
            release(msdu);
        }
        is_new
    }

    /// An MPDU came at `now`. Releases what is in order now. Says whether the MPDU was new, and not
    /// before the window.
    #[inline]
    pub fn receive(
        &mut self,
        now: Instant,
        seq: u16,
        msdu: Msdu<M>,
        mut release: impl FnMut(Msdu<M>),
    ) -> bool {
        self.mark(seq);
        if seq_before(seq, self.next) {
            return false;
        }
        let mut offset = seq_distance(self.next, seq);
        if offset >= WINDOW {
            // Beyond the window: it moves, and what falls out of it is released with gaps.
            self.advance(seq_add(seq, 4_096 - (WINDOW - 1)), &mut release);
            offset = seq_distance(self.next, seq);
        }
        if offset == 0 {
            release(msdu);
            self.next = seq_add(self.next, 1);
            // The place of this one, and behind it what waited for it.
            if self.waiting.pop_front().is_some() {
                self.release_ready(&mut release);
            }
            return true;
        }
        let offset = usize::from(offset);
        if self.waiting.len() <= offset {
            self.waiting.resize_with(offset + 1, || None);
        }
        let slot = &mut self.waiting[offset];
        if slot.is_some() {
            return false;
        }
        *slot = Some(Held { msdu, since: now });
        true
    }

    /// A Block ACK request came: nothing before `start` will come any more.
    pub fn request(&mut self, start: u16, mut release: impl FnMut(Msdu<M>)) {
        if seq_before(self.score_start, start) {
            self.move_score(start);
        }
        if seq_before(self.next, start) {
            self.advance(start, &mut release);
        }
    }

    /// Since when the first frame waits that waits at all.
    #[inline]
    pub fn held_since(&self) -> Option<Instant> {
        let first = self.waiting.iter().flatten().next();
        first.map(|held| held.since)
    }

    /// Releases the frames that have waited since `latest` or longer, and what is in order after
    /// them: what they waited for will not come. Its originator gave it up, and the request
    /// that was to say so was lost.
    pub fn release_overdue(&mut self, latest: Instant, mut release: impl FnMut(Msdu<M>)) {
        while self.held_since().is_some_and(|since| since <= latest) {
            let hole = self.waiting.iter().take_while(|slot| slot.is_none());
            let start = seq_add(self.next, hole.count() as u16);
            self.advance(start, &mut release);
        }
    }

    /// Start and bitmap of a Block ACK.
    pub fn block_ack(&self) -> (u16, u64) {
        (self.score_start, self.score)
    }

    /// How many MSDUs wait for something before them.
    pub fn held(&self) -> usize {
        self.waiting.iter().flatten().count()
    }

    fn mark(&mut self, seq: u16) {
        let offset = seq_distance(self.score_start, seq);
        if offset >= 2_048 {
            return;
        }
        if offset >= WINDOW {
            self.move_score(seq_add(seq, 4_096 - (WINDOW - 1)));
        }
        self.score |= 1 << seq_distance(self.score_start, seq);
    }

    fn move_score(&mut self, start: u16) {
        let by = seq_distance(self.score_start, start);
        self.score = self.score.checked_shr(u32::from(by)).unwrap_or(0);
        self.score_start = start;
    }

    /// Moves the reordering window to `start`, releasing what was before it, and what is in order
    /// from there.
    fn advance(&mut self, start: u16, release: &mut impl FnMut(Msdu<M>)) {
        for _ in 0..seq_distance(self.next, start) {
            match self.waiting.pop_front() {
                Some(Some(held)) => release(held.msdu),
                Some(None) => {}
                None => break,
            }
        }
        self.next = start;
        self.release_ready(release);
    }

    fn release_ready(&mut self, release: &mut impl FnMut(Msdu<M>)) {
        while let Some(Some(_)) = self.waiting.front() {
            if let Some(Some(held)) = self.waiting.pop_front() {
                release(held.msdu);
            }
            self.next = seq_add(self.next, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::frame::{AccessCategory, Class, NodeId};
    use proptest::prelude::*;

    fn msdu(number: u32) -> Msdu<u32> {
        Msdu {
            src: NodeId::AP,
            dst: NodeId(1),
            len: 100,
            class: Class::Data,
            category: AccessCategory::BestEffort,
            payload: Some(number),
        }
    }

    fn receive(recipient: &mut Recipient<u32>, numbers: &[u32]) -> Vec<u32> {
        let mut released = Vec::new();
        for number in numbers {
            recipient.receive(Instant::ZERO, (number % 4_096) as u16, msdu(*number), |m| {
                released.extend(m.payload)
            });
        }
        released
    }

    #[test]
    fn gaps_hold_back_what_follows() {
        let mut recipient = Recipient::default();
        assert_eq!(receive(&mut recipient, &[0, 2, 3, 5]), [0]);
        assert_eq!(recipient.block_ack(), (0, 0b10_1101));
        assert_eq!(recipient.held(), 3);
        assert_eq!(receive(&mut recipient, &[3, 1]), [1, 2, 3]);
        assert_eq!(receive(&mut recipient, &[1, 4, 4]), [4, 5]);
        assert_eq!(recipient.held(), 0);
    }

    #[test]
    fn a_request_releases_across_gaps() {
        let mut recipient = Recipient::default();
        receive(&mut recipient, &[0, 2, 5, 6]);
        let mut released = Vec::new();
        recipient.request(4, |m| released.extend(m.payload));
        assert_eq!(released, [2]);
        assert_eq!(recipient.block_ack(), (4, 0b110));
        assert_eq!(receive(&mut recipient, &[4]), [4, 5, 6]);
        // An old request changes nothing.
        recipient.request(1, |_| panic!("nothing to release"));
        assert_eq!(recipient.block_ack().0, 4);
    }

    #[test]
    fn what_waits_too_long_is_released_across_its_hole() {
        let mut recipient = Recipient::default();
        for (at, number) in [(0, 0), (10, 2), (11, 3), (25, 6), (5, 1)] {
            recipient.receive(
                Instant::from_micros(at),
                number,
                msdu(u32::from(number)),
                |_| {},
            );
        }
        // 1 came late but in time: 6 alone waits, for 4 and 5.
        assert_eq!(
            (recipient.held(), recipient.held_since()),
            (1, Some(Instant::from_micros(25)))
        );
        let mut released = Vec::new();
        recipient.release_overdue(Instant::from_micros(24), |_| panic!("it is not overdue"));
        recipient.release_overdue(Instant::from_micros(25), |m| released.extend(m.payload));
        assert_eq!((released, recipient.held_since()), (Vec::from([6]), None));
        // What was given up is not delivered behind what followed it.
        assert_eq!(receive(&mut recipient, &[5, 8, 7]), [7, 8]);
    }

    /// Single frames go while a response is late, more of them than there are numbers to tell what
    /// is before from what is after.
    #[test]
    fn an_old_offer_does_not_move_the_window_back() {
        let mut recipient = Recipient::without_agreement();
        recipient.offer(1);
        for number in 0..3_000_u32 {
            let frame = (number as u16, false);
            assert!(recipient.receive_mpdu(Instant::ZERO, frame, msdu(number), |_| {}));
        }
        recipient.confirm();
        assert!(recipient.is_agreed());
        assert_eq!(
            receive(&mut recipient, &[2_999, 3_000, 3_001]),
            [3_000, 3_001]
        );
        assert_eq!(recipient.block_ack(), (3_000, 0b11));
    }

    #[test]
    fn the_window_moves_with_what_comes_beyond_it() {
        let mut recipient = Recipient::default();
        assert_eq!(receive(&mut recipient, &[0, 5, 70]), [0, 5]);
        assert_eq!(recipient.block_ack(), (7, 1 << 63));
        // 6 is before the window now.
        assert_eq!(receive(&mut recipient, &[6, 7]), [7]);
    }

    proptest! {
        /// A sender that respects the window, over a channel that loses and repeats: everything
        /// comes once, in order.
        #[test]
        fn everything_is_released_once_and_in_order(losses in proptest::collection::vec(any::<bool>(), 1..400)) {
            let mut recipient = Recipient::default();
            let mut acked = [false; 10_000];
            let (mut start, mut released) = (0_usize, Vec::new());
            let mut losses = losses.into_iter();
            while start < 5_000 {
                for (number, acked) in acked.iter().enumerate().skip(start).take(64) {
                    if !acked && !losses.next().unwrap_or(false) {
                        released.extend(receive(&mut recipient, &[number as u32]));
                    }
                }
                let (first, bitmap) = recipient.block_ack();
                for (number, acked) in acked.iter_mut().enumerate().skip(start).take(64) {
                    let offset = seq_distance(first, (number % 4_096) as u16);
                    *acked |= offset < 64 && bitmap >> offset & 1 == 1;
                }
                while acked[start] {
                    start += 1;
                }
            }
            prop_assert!(released.len() >= 5_000);
            prop_assert!(released.iter().enumerate().all(|(n, number)| n == *number as usize));
        }
    }
}
