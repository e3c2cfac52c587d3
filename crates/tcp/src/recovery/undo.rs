//! Undo of a spurious loss: a false episode is taken back, where there is proof.

use tack_base::Instant;

use super::Phase;
use super::episodes::{LossRecovery, Sending};

/// What may prove an episode false.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    /// A fresh timestamp echo was sent before the first retransmission (`true`), or with it or
    /// later (`false`).
    pub(crate) echoes_original: Option<bool>,
    /// The acknowledgement reports a duplicate (DSACK) of something that was retransmitted.
    pub(crate) duplicate: bool,
    /// A segment presumed lost by a timeout, and not retransmitted, arrived.
    pub(crate) late_original: bool,
    /// What was oldest is acknowledged sooner after it left again than any round trip took.
    pub(crate) too_soon: bool,
}

impl LossRecovery {
    /// When the first retransmission of the open episode left, to compare a timestamp echo with it
    /// (Eifel, RFC 3522 §3.2). `None` when there is nothing to undo.
    pub(crate) fn first_retransmission(&self) -> Option<Instant> {
        self.evidence
            .first_retransmission()
            .filter(|_| self.is_undoable())
    }

    /// When what was oldest as the open episode began left again for the first time. `None` when
    /// there is nothing to undo.
    pub(crate) fn oldest_retransmission(&self) -> Option<Instant> {
        self.evidence
            .oldest_retransmission()
            .filter(|_| self.is_undoable())
    }

    /// An episode is open, and evidence about it is collected.
    pub(crate) fn is_undoable(&self) -> bool {
        self.evidence.is_open() && self.phase != Phase::Open
    }

    /// Undoes a false episode where there is proof. True when it did.
    pub(crate) fn try_undo(&mut self, evidence: &Evidence, sending: &mut Sending<'_>) -> bool {
        if self.phase == Phase::Open && self.evidence.is_ended_timeout_false() {
            // Its flight is acknowledged: all that is left of it is the window.
            self.evidence.end();
            sending.cc.on_spurious(sending.now, self.cause);
            return true;
        }
        if !self.is_undoable() {
            return false;
        }
        if evidence.echoes_original == Some(false) {
            self.evidence.dismiss_originals();
        }
        let by_echo = evidence.echoes_original == Some(true);
        // RFC 5682 §2.1, §3.1 step 2: what the first acknowledgement after the timeout covers may
        // have arrived long before, and its acknowledgements got lost.
        let by_original = evidence.late_original
            && self.evidence.originals_count()
            && !self.frto.awaits_first_ack();
        // It is its original that is acknowledged.
        let by_time = evidence.too_soon && self.is_after_timeout();
        let by_duplicates = evidence.duplicate && self.evidence.is_every_retransmission_duplicate();
        // Everything deemed lost arrived before any of it left again: it was reordered.
        let by_arrival = matches!(self.phase, Phase::Recovery { .. })
            && self.evidence.is_untouched()
            && sending.log.lost_bytes() == 0;
        if !(by_original || by_time || by_duplicates || by_echo || by_arrival) {
            return false;
        }
        sending.log.unmark_lost();
        self.detector.on_undone();
        self.evidence.end();
        self.frto.end();
        self.prr = None;
        self.phase = Phase::Open;
        sending.cc.on_spurious(sending.now, self.cause);
        true
    }
}
