//! The originator's side of the set-up of a Block ACK agreement with one recipient in one category
//! (§10.25.2, §11.5.2), as ns-3 3.37 has it.
//!
//! ```text
//!  Absent --request--> Pending --response--> Stands
//!                         | no response
//!                         v
//!                       Failed --later--> Pending
//! ```
//!
//! A response that comes late is as good as one in time. Linux ignores one to an earlier request
//! (net/mac80211/agg-tx.c); ns-3 takes any.

use alloc::vec::Vec;

use tack_base::Instant;

use super::config::ADDBA_RETRY_INTERVAL;
use super::duplicates::DuplicateCache;
use crate::frame::{Addba, NodeId, seq_add};

/// How far the set-up has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OriginatorAgreement {
    /// There is none, and none was asked for.
    #[default]
    Absent,
    /// It was asked for. No data is sent meanwhile.
    Pending,
    /// The request or its response was missed. Single frames are sent.
    Failed {
        /// It may be asked for again.
        until: Instant,
    },
    /// A-MPDUs are sent.
    Stands,
}

impl OriginatorAgreement {
    /// Data waits for the response.
    #[inline]
    pub fn is_pending(self) -> bool {
        self == Self::Pending
    }

    /// Whether a request may go at `now`.
    pub fn may_ask(self, now: Instant) -> bool {
        match self {
            Self::Absent => true,
            Self::Failed { until, .. } => until <= now,
            Self::Pending | Self::Stands => false,
        }
    }

    /// A request is about to be sent.
    pub fn on_asked(&mut self) {
        *self = Self::Pending;
    }

    /// The request was given up, or no response came in time.
    pub fn on_no_response(&mut self, now: Instant) {
        if *self == Self::Pending {
            *self = Self::Failed {
                until: now + ADDBA_RETRY_INTERVAL,
            };
        }
    }

    /// A response came. One that nobody asked for changes nothing.
    pub fn on_response(&mut self) {
        if *self != Self::Absent {
            *self = Self::Stands;
        }
    }
}

/// The requests that one recipient was sent in one category.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requests {
    /// Dialog token of the next one.
    next: u8,
    /// How many there were, but no more than can be told apart.
    asked: u8,
    /// How many there were since frames were last given up.
    since_dropped: u8,
}

/// Responses to earlier requests than so many are not known any more.
const MOST_TOKENS: u8 = 128;

impl Requests {
    /// The dialog token of one that is about to be sent.
    pub fn ask(&mut self) -> u8 {
        let token = self.next;
        self.next = token.wrapping_add(1);
        self.asked = self.asked.saturating_add(1).min(MOST_TOKENS);
        self.since_dropped = self.since_dropped.saturating_add(1);
        token
    }

    /// Frames were given up.
    pub fn on_dropped(&mut self) {
        self.since_dropped = 0;
    }

    /// Whether frames were given up after the request with this token: the recipient may wait for
    /// them. `None` when there was no such request.
    pub fn lacks_frames(&self, token: u8) -> Option<bool> {
        let age = self.next.wrapping_sub(1).wrapping_sub(token);
        (age < self.asked).then_some(age >= self.since_dropped)
    }
}

/// What a radio has to remember to set up agreements.
#[derive(Debug, Default)]
pub struct Agreements {
    next_seq: u16,
    /// ADDBA frames that came.
    pub duplicates: DuplicateCache,
    /// What is to be done, and when.
    pub due: Vec<(Instant, Due)>,
    /// The response that is due answers an ADDBA frame.
    pub is_answer: bool,
}

/// What a radio has to do for an agreement.
#[derive(Clone, Copy, Debug)]
pub enum Due {
    /// A frame came. Its station deals with it when the medium is idle again.
    Frame {
        /// Its transmitter.
        from: NodeId,
        /// The frame.
        addba: Addba,
    },
    /// No response came in time.
    NoResponse {
        /// The function that asked.
        function: usize,
        /// Whom it asked.
        to: NodeId,
    },
}

impl Agreements {
    /// Sequence number of the next ADDBA frame.
    pub fn number(&mut self) -> u16 {
        let seq = self.next_seq;
        self.next_seq = seq_add(seq, 1);
        seq
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_response_counts_and_one_that_is_missing_is_asked_for_again() {
        let at = Instant::from_millis;
        let mut agreement = OriginatorAgreement::default();
        agreement.on_response();
        assert!(agreement.may_ask(at(0)), "nobody asked for that one");
        agreement.on_asked();
        assert!(agreement.is_pending() && !agreement.may_ask(at(5)));
        agreement.on_no_response(at(1));
        assert!(!agreement.is_pending() && !agreement.may_ask(at(200)));
        assert!(agreement.may_ask(at(201)));
        let mut late = agreement;
        late.on_response();
        assert_eq!(late, OriginatorAgreement::Stands);
        late.on_no_response(at(300));
        assert_eq!(
            late,
            OriginatorAgreement::Stands,
            "that was another request"
        );
    }

    #[test]
    fn a_response_is_known_by_its_token_and_misses_what_was_given_up_after_its_request() {
        let mut requests = Requests::default();
        requests.on_dropped();
        assert_eq!(requests.lacks_frames(0), None, "nobody asked");
        assert_eq!(requests.ask(), 0);
        let lacks = |requests: &Requests| [255, 0, 1, 2].map(|token| requests.lacks_frames(token));
        assert_eq!(lacks(&requests), [None, Some(false), None, None]);
        requests.on_dropped();
        assert_eq!(requests.lacks_frames(0), Some(true));
        assert_eq!(requests.ask(), 1);
        assert_eq!(lacks(&requests), [None, Some(true), Some(false), None]);
        for token in 2..=255 {
            assert_eq!(requests.ask(), token);
        }
        assert_eq!(requests.ask(), 0);
        assert_eq!(requests.lacks_frames(0), Some(false));
        assert_eq!(requests.lacks_frames(1), None, "too long ago");
        for _ in 0..1_000 {
            requests.ask();
        }
        assert!((0..=255).all(|token| requests.lacks_frames(token) != Some(true)));
    }
}
