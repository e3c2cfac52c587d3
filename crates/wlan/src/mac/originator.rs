//! The originator of frames to one recipient in one category: frames that wait, frames that are not
//! acknowledged yet, and the originator's part of a Block ACK agreement (§10.25.6.7, §10.25.6.8).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tack_base::{Duration, Instant};

use super::agreement::{OriginatorAgreement, Requests};
use super::config::{MacConfig, MissedBlockAck, WINDOW};
use super::discipline::{Waiting, WaitingFrame};
use crate::frame::{Class, Mpdu, Msdu, len, seq_add, seq_before, seq_distance};

/// Numbered, sent at least once or about to be, not acknowledged.
#[derive(Clone, Debug)]
struct Outstanding<M> {
    seq: u16,
    msdu: Msdu<M>,
    arrival: u64,
    attempts: u8,
}

/// How the transmission of MPDUs ended: what Linux reports as tx status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TxStatus {
    /// Acknowledged.
    pub acked: usize,
    /// Given up after the last attempt.
    pub dropped: usize,
}

/// A Block ACK request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Request {
    /// None is needed.
    #[default]
    Needless,
    /// It goes before data; it was sent so often without answer.
    Due(u8),
    /// Frames were given up, and the receiver, which has answered no request so far, may not know.
    /// Data goes on, and the request is due again when the receiver answers that, as in Linux
    /// (net/mac80211/status.c). One that never answers thus costs other receivers nothing.
    Postponed,
}

/// Requests that tell of frames given up are sent at least so often in a row, however few attempts
/// a frame has: dot11ShortRetryLimit by default (Annex C.3).
const REQUEST_ATTEMPTS: u8 = 7;

/// What became of an acknowledgement of the transport that was sent.
#[derive(Clone, Debug)]
pub struct Settlement<M> {
    /// Its sequence number.
    pub seq: u16,
    /// The packet.
    pub msdu: Msdu<M>,
    /// It was acknowledged; else it was given up, and may have been received.
    pub is_acked: bool,
}

/// What solicited a Block ACK (§10.25.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SolicitingFrame {
    /// An A-MPDU, by its implicit request.
    Data,
    /// A BlockAckReq frame.
    BlockAckReq,
}

/// A PSDU of data frames.
#[derive(Clone, Debug)]
pub struct Prepared<M> {
    /// The frames.
    pub mpdus: Vec<Mpdu<M>>,
    /// Length of the PSDU, bytes.
    pub psdu: u32,
}

/// One receiver in one category.
#[derive(Clone, Debug)]
pub struct Originator<M> {
    waiting: VecDeque<WaitingFrame<M>>,
    /// In order of sequence numbers.
    outstanding: VecDeque<Outstanding<M>>,
    next_seq: u16,
    request: Request,
    agreement: OriginatorAgreement,
    requests: Requests,
    /// Frames were given up, and no request was answered since: the receiver may wait for them.
    has_moved: bool,
    /// What became of acknowledgements of the transport, where somebody wants to know.
    settled: Option<Vec<Settlement<M>>>,
}

impl<M> Default for Originator<M> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            outstanding: VecDeque::new(),
            next_seq: 0,
            request: Request::Needless,
            agreement: OriginatorAgreement::Stands,
            requests: Requests::default(),
            has_moved: false,
            settled: None,
        }
    }
}

impl<M: Clone> Originator<M> {
    /// An originator that has to ask for an agreement.
    pub fn without_agreement() -> Self {
        Self {
            agreement: OriginatorAgreement::default(),
            ..Self::default()
        }
    }

    /// Whether it asks for an agreement before it sends data at `now`; with which starting sequence
    /// number.
    pub fn asks(&self, now: Instant, config: &MacConfig) -> Option<u16> {
        let has_use = self.len() > 1 || config.data_mode.is_always_aggregate();
        (has_use && self.agreement.may_ask(now)).then(|| self.window_start())
    }

    /// A request for an agreement is about to be sent. Returns its dialog token.
    pub fn on_asked(&mut self) -> u8 {
        self.agreement.on_asked();
        self.requests.ask()
    }

    /// The request for an agreement was given up, or no response came in time.
    pub fn on_no_response(&mut self, now: Instant) {
        self.agreement.on_no_response(now);
    }

    /// A response with this dialog token came. When frames were given up since its request was
    /// sent, the receiver has to be told. Says whether there was such a request.
    pub fn on_response(&mut self, token: u8) -> bool {
        let Some(lacks_frames) = self.requests.lacks_frames(token) else {
            return false;
        };
        if self.agreement != OriginatorAgreement::Stands {
            self.agreement.on_response();
            if lacks_frames {
                self.request = Request::Due(0);
                self.has_moved = true;
            }
        }
        true
    }

    /// The Block ACK agreement.
    pub fn agreement(&self) -> OriginatorAgreement {
        self.agreement
    }

    fn aggregates(&self, config: &MacConfig) -> bool {
        self.agreement == OriginatorAgreement::Stands && config.aggregates()
    }

    /// Keeps what becomes of acknowledgements of the transport, for [`Originator::take_settled`].
    pub fn watch_acks(&mut self) {
        self.settled.get_or_insert_default();
    }

    /// What has become of acknowledgements of the transport since this was last asked.
    pub fn take_settled(&mut self) -> Vec<Settlement<M>> {
        let settled = self.settled.as_mut();
        settled.map(core::mem::take).unwrap_or_default()
    }

    /// The receiver has released, or will never get, all frames before this one. `None` while it
    /// may wait for frames that were given up.
    pub fn settled_before(&self) -> Option<u16> {
        (!self.has_moved).then(|| self.window_start())
    }

    /// Adds a packet; `arrival` only grows.
    pub fn push(&mut self, msdu: Msdu<M>, arrival: u64) {
        self.waiting.push_back(WaitingFrame { msdu, arrival });
    }

    /// What was never sent.
    pub fn waiting(&self) -> Waiting<'_, M> {
        Waiting::new(&self.waiting)
    }

    /// Puts `msdu` in the place of the packet at `position` of those that were never sent, with its
    /// turn.
    ///
    /// # Errors
    /// `msdu`, when there is no such position.
    pub fn replace(&mut self, position: usize, msdu: Msdu<M>) -> Result<Msdu<M>, Msdu<M>> {
        match self.waiting.get_mut(position) {
            Some(frame) => Ok(core::mem::replace(&mut frame.msdu, msdu)),
            None => Err(msdu),
        }
    }

    /// Takes out the packet at `position` of those that were never sent.
    pub fn remove(&mut self, position: usize) -> Option<Msdu<M>> {
        self.waiting.remove(position).map(|frame| frame.msdu)
    }

    /// Packets that wait or are not settled.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.outstanding.len()
    }

    /// Nothing to send.
    pub fn is_empty(&self) -> bool {
        self.turn().is_none()
    }

    /// The arrival number that decides whose turn it is: a request goes first, then the oldest
    /// packet. It has none while it waits for an ADDBA response.
    #[inline]
    pub fn turn(&self) -> Option<u64> {
        if self.request_is_due() {
            return Some(0);
        }
        if self.agreement.is_pending() {
            return None;
        }
        let outstanding = self.outstanding.front().map(|frame| frame.arrival);
        outstanding.or_else(|| self.waiting.front().map(|frame| frame.arrival))
    }

    /// True when a Block ACK request goes before data.
    pub fn request_is_due(&self) -> bool {
        matches!(self.request, Request::Due(_))
    }

    /// WinStartO: the first sequence number that is not settled.
    pub fn window_start(&self) -> u16 {
        self.outstanding
            .front()
            .map_or(self.next_seq, |frame| frame.seq)
    }

    /// Puts together the next PSDU, as long as `airtime` allows; outstanding frames go first. At
    /// least one frame goes in any case.
    ///
    /// `mpdus` is a list to use. If it is what was sent last, with the same `airtime`, that is sent
    /// again, and more if there is more.
    ///
    /// Returns `None` when there is no frame.
    pub fn prepare(
        &mut self,
        config: &MacConfig,
        airtime: Duration,
        mut mpdus: Vec<Mpdu<M>>,
    ) -> Option<Prepared<M>> {
        let limits = &config.ampdu;
        let aggregates = self.aggregates(config);
        let most = if aggregates {
            usize::from(limits.frames.clamp(1, WINDOW))
        } else {
            1
        };
        let is_short =
            |psdu: u32| config.timing.airtime(config.data_mode, psdu as usize) <= airtime;
        // At most rates the limit in bytes is the narrower one.
        let all_are_short = most > 1 && is_short(limits.bytes);
        let fits = |psdu: u32| psdu <= limits.bytes && (all_are_short || is_short(psdu));
        let mut psdu = 0;
        if !self.is_front(&mpdus) {
            mpdus.clear();
        }
        for (frame, mpdu) in self.outstanding.iter_mut().zip(&mut mpdus) {
            psdu = len::ampdu(psdu, len::mpdu(mpdu.msdu.len, config.is_qos));
            mpdu.retry = true;
            frame.attempts = frame.attempts.saturating_add(1);
        }
        while mpdus.len() < most {
            let at = mpdus.len();
            if at == self.outstanding.len() {
                // The window: no frame goes beyond what the receiver's bitmap reaches.
                let used = seq_distance(self.window_start(), self.next_seq);
                if used >= WINDOW && aggregates {
                    break;
                }
                let Some(next) = self.waiting.front() else {
                    break;
                };
                let grown = len::ampdu(psdu, len::mpdu(next.msdu.len, config.is_qos));
                if at > 0 && !fits(grown) {
                    break;
                }
                if let Some(WaitingFrame { msdu, arrival }) = self.waiting.pop_front() {
                    self.outstanding.push_back(Outstanding {
                        seq: self.next_seq,
                        msdu,
                        arrival,
                        attempts: 0,
                    });
                    self.next_seq = seq_add(self.next_seq, 1);
                }
            }
            let frame = &mut self.outstanding[at];
            let mpdu = len::mpdu(frame.msdu.len, config.is_qos);
            let grown = len::ampdu(psdu, mpdu);
            if at > 0 && !fits(grown) {
                break;
            }
            psdu = grown;
            mpdus.push(Mpdu {
                seq: frame.seq,
                retry: frame.attempts > 0,
                msdu: frame.msdu.clone(),
            });
            frame.attempts = frame.attempts.saturating_add(1);
        }
        let only = mpdus.first()?;
        if mpdus.len() == 1 && !config.data_mode.is_always_aggregate() {
            // HT sends a single frame without delimiter.
            psdu = len::mpdu(only.msdu.len, config.is_qos);
        }
        Some(Prepared { mpdus, psdu })
    }

    /// Whether outstanding frames begin with these, a list that they began with once.
    fn is_front(&self, mpdus: &[Mpdu<M>]) -> bool {
        let (Some(first), Some(last)) = (mpdus.first(), mpdus.last()) else {
            return false;
        };
        // Frames only leave, so those between two that kept their places did, too.
        let is_at = |at: usize, mpdu: &Mpdu<M>| {
            let frame = self.outstanding.get(at);
            frame.is_some_and(|frame| frame.seq == mpdu.seq)
        };
        is_at(0, first) && is_at(mpdus.len() - 1, last)
    }

    /// The single frame sent last was acknowledged.
    pub fn on_ack(&mut self) -> TxStatus {
        let acked = self.outstanding.pop_front();
        if let Some(frame) = &acked {
            note(&mut self.settled, frame, true);
        }
        let acked = usize::from(acked.is_some());
        self.on_receiver_heard();
        TxStatus { acked, dropped: 0 }
    }

    /// A Block ACK came.
    pub fn on_block_ack(
        &mut self,
        soliciting: SolicitingFrame,
        (start, bitmap): (u16, u64),
        config: &MacConfig,
    ) -> TxStatus {
        match soliciting {
            SolicitingFrame::Data => self.on_receiver_heard(),
            SolicitingFrame::BlockAckReq => {
                self.request = Request::Needless;
                self.has_moved = false;
            }
        }
        let before = self.outstanding.len();
        // Nothing was received, if the receiver wants what is missing first and has nothing after
        // it.
        if bitmap != 0 || start != self.window_start() {
            let settled = &mut self.settled;
            self.outstanding.retain(|frame| {
                let offset = seq_distance(start, frame.seq);
                let acked =
                    seq_before(frame.seq, start) || (offset < WINDOW && bitmap >> offset & 1 == 1);
                if acked {
                    note(settled, frame, true);
                }
                !acked
            });
        }
        let acked = before - self.outstanding.len();
        let dropped = self.give_up(config);
        TxStatus { acked, dropped }
    }

    /// The single frame sent last was not acknowledged, or what was sent last was not cleared to be
    /// sent.
    pub fn on_missed_ack(&mut self, config: &MacConfig) -> TxStatus {
        let dropped = self.give_up(config);
        TxStatus { acked: 0, dropped }
    }

    /// The A-MPDU sent last was not answered: ask what of it came through, or send it again.
    pub fn on_missed_block_ack(&mut self, config: &MacConfig) -> TxStatus {
        match config.missed_block_ack {
            MissedBlockAck::Request => {
                self.request = Request::Due(0);
                TxStatus::default()
            }
            MissedBlockAck::Resend => self.on_missed_ack(config),
        }
    }

    /// The request was not answered. After `retry_limit` of them it gives way to data again. If the
    /// receiver has to be told of frames given up, it does so later, and not for good.
    pub fn on_missed_request(&mut self, config: &MacConfig) -> TxStatus {
        let attempts = match self.request {
            Request::Due(attempts) => attempts.saturating_add(1),
            Request::Needless | Request::Postponed => 1,
        };
        let most = if self.has_moved {
            config.retry_limit.max(REQUEST_ATTEMPTS)
        } else {
            config.retry_limit
        };
        if attempts < most {
            self.request = Request::Due(attempts);
            return TxStatus::default();
        }
        self.request = if self.has_moved {
            Request::Postponed
        } else {
            Request::Needless
        };
        let dropped = self.give_up(config);
        TxStatus { acked: 0, dropped }
    }

    /// The receiver answered data, so it may answer a request as well.
    fn on_receiver_heard(&mut self) {
        if self.request == Request::Postponed {
            self.request = Request::Due(0);
        }
    }

    /// Drops the frames that had their last attempt. In a Block ACK agreement the receiver has to
    /// be told to expect them no more.
    fn give_up(&mut self, config: &MacConfig) -> usize {
        // A PPDU takes them from the front, so no frame had more attempts than the first.
        let first = self.outstanding.front();
        if first.is_none_or(|frame| frame.attempts < config.retry_limit) {
            debug_assert!(
                self.outstanding
                    .iter()
                    .all(|frame| frame.attempts < config.retry_limit),
                "the first was sent most often"
            );
            return 0;
        }
        let before = self.outstanding.len();
        let settled = &mut self.settled;
        self.outstanding.retain(|frame| {
            let is_kept = frame.attempts < config.retry_limit;
            if !is_kept {
                note(settled, frame, false);
            }
            is_kept
        });
        let dropped = before - self.outstanding.len();
        if dropped > 0 && self.aggregates(config) {
            self.request = Request::Due(0);
            self.has_moved = true;
        } else if dropped > 0 {
            self.requests.on_dropped();
        }
        dropped
    }

    /// Length of the PSDU that the next frame makes alone; zero when there is none.
    pub fn next_len(&self, config: &MacConfig) -> u32 {
        if self.request_is_due() {
            return len::BLOCK_ACK_REQ;
        }
        let outstanding = self.outstanding.front().map(|frame| &frame.msdu);
        let next = outstanding.or_else(|| self.waiting.front().map(|frame| &frame.msdu));
        next.map_or(0, |msdu| len::ampdu(0, len::mpdu(msdu.len, config.is_qos)))
    }
}

/// Keeps what became of a frame, if it is an acknowledgement of the transport and somebody wants to
/// know.
#[inline]
fn note<M: Clone>(
    settled: &mut Option<Vec<Settlement<M>>>,
    frame: &Outstanding<M>,
    is_acked: bool,
) {
    if let Some(settled) = settled
        && frame.msdu.class == Class::TransportAck
    {
        settled.push(Settlement {
            seq: frame.seq,
            msdu: frame.msdu.clone(),
            is_acked,
        });
    }
}

#[cfg(test)]
pub(super) mod tests;
