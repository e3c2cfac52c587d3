//! Whether what this side sends answers what it receives, soon enough to carry the acknowledgement.
//!
//! A remainder that the peer pushed is reported after a period, as its sender may wait for that.
//! Where each message is answered within the time that a remainder may wait at most, the report
//! would be one for each message that the answer makes needless. So it waits for the answer, until
//! one does not come in time (as Linux' "pingpong" mode does).

use core::time::Duration;

use tack_base::Instant;

/// What the last remainders met with.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Since when the remainder waited that was reported last, while an answer could still have
    /// carried it.
    reported: Option<Instant>,
    answers: bool,
}

impl Conversation {
    /// An answer is likely to come within `longest` of a remainder's arrival.
    pub(super) fn is_answered(&self) -> bool {
        self.answers
    }

    /// A remainder that waits since `since` is reported, as no answer carried it by `now`; none
    /// does so for longer than `longest`.
    pub(super) fn on_remainder(&mut self, now: Instant, since: Instant, longest: Duration) {
        if now.saturating_since(since) >= longest {
            self.answers = false;
        }
        self.reported = Some(since);
    }

    /// Data left at `now`. `waiting` tells whether it carried a remainder's acknowledgement.
    pub(super) fn on_data(&mut self, now: Instant, waiting: bool, longest: Duration) {
        let reported = self.reported.take();
        self.answers |=
            waiting || reported.is_some_and(|since| now.saturating_since(since) < longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_millis(40);

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn answers_are_waited_for_until_one_is_late() {
        let mut conversation = Conversation::default();
        // Reported after 10 ms, answered after 30: it could have waited.
        conversation.on_remainder(at(10), at(0), LONGEST);
        assert!(!conversation.is_answered());
        conversation.on_data(at(30), false, LONGEST);
        assert!(conversation.is_answered());
        conversation.on_data(at(130), true, LONGEST);
        assert!(conversation.is_answered());
        conversation.on_remainder(at(240), at(200), LONGEST);
        assert!(!conversation.is_answered());
        // This answer came too late, and data that answers nothing does not count.
        conversation.on_data(at(250), false, LONGEST);
        conversation.on_data(at(251), false, LONGEST);
        assert!(!conversation.is_answered());
        conversation.on_data(at(300), true, LONGEST);
        assert!(conversation.is_answered());
    }
}
