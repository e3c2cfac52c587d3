//! The sending side towards one receiver in one category: frames that wait, frames that are not acknowledged yet, and the
//! originator's part of a Block ACK agreement (§10.25.6.7, §10.25.6.8).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tack_base::time::nanos;

use super::config::{MacConfig, WINDOW};
use crate::frame::{Mpdu, Msdu, len, seq_add, seq_before, seq_distance};

/// Not numbered yet.
#[derive(Clone, Debug)]
struct Waiting<M> {
    msdu: Msdu<M>,
    arrival: u64,
}

/// Numbered, sent at least once or about to be, not acknowledged.
#[derive(Clone, Debug)]
struct Outstanding<M> {
    seq: u16,
    msdu: Msdu<M>,
    arrival: u64,
    attempts: u8,
}

/// What became of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settled {
    /// Acknowledged.
    pub acked: usize,
    /// Given up after the last attempt.
    pub dropped: usize,
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
pub struct Link<M> {
    waiting: VecDeque<Waiting<M>>,
    /// In order of sequence numbers.
    outstanding: VecDeque<Outstanding<M>>,
    next_seq: u16,
    /// How many of the first outstanding frames are in the PPDU sent last.
    sent: usize,
    /// A Block ACK request is due; how often it was sent.
    request: Option<u8>,
}

impl<M> Default for Link<M> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            outstanding: VecDeque::new(),
            next_seq: 0,
            sent: 0,
            request: None,
        }
    }
}

impl<M: Clone> Link<M> {
    /// Adds a packet; `arrival` only grows.
    pub fn push(&mut self, msdu: Msdu<M>, arrival: u64) {
        self.waiting.push_back(Waiting { msdu, arrival });
    }

    /// Nothing to send.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.outstanding.is_empty() && self.request.is_none()
    }

    /// The arrival number that decides whose turn it is: a request goes first, then the oldest packet.
    #[inline]
    pub fn turn(&self) -> Option<u64> {
        if self.request.is_some() {
            return Some(0);
        }
        let outstanding = self.outstanding.front().map(|frame| frame.arrival);
        outstanding.or_else(|| self.waiting.front().map(|frame| frame.arrival))
    }

    /// True when a Block ACK request goes before data.
    pub fn request_is_due(&self) -> bool {
        self.request.is_some()
    }

    /// WinStartO: the first sequence number that is not settled.
    pub fn window_start(&self) -> u16 {
        self.outstanding
            .front()
            .map_or(self.next_seq, |frame| frame.seq)
    }

    /// Puts together the next PSDU, as long as `airtime` nanoseconds allow; outstanding frames go first. At least one frame
    /// goes in any case.
    ///
    /// Returns `None` when there is no frame.
    pub fn prepare(
        &mut self,
        config: &MacConfig,
        airtime: u64,
        mut mpdus: Vec<Mpdu<M>>,
    ) -> Option<Prepared<M>> {
        let limits = &config.ampdu;
        let most = if config.aggregates() {
            usize::from(limits.frames.clamp(1, WINDOW))
        } else {
            1
        };
        let fits = |psdu: u32| {
            psdu <= limits.bytes
                && nanos(config.timing.airtime(config.data_mode, psdu as usize)) <= airtime
        };
        let mut psdu = 0;
        mpdus.clear();
        while mpdus.len() < most {
            let at = mpdus.len();
            if at == self.outstanding.len() {
                // The window: no frame goes beyond what the receiver's bitmap reaches.
                let used = seq_distance(self.window_start(), self.next_seq);
                if used >= WINDOW && config.aggregates() {
                    break;
                }
                let Some(next) = self.waiting.front() else {
                    break;
                };
                let grown = len::ampdu(psdu, len::mpdu(next.msdu.len, config.is_qos));
                if at > 0 && !fits(grown) {
                    break;
                }
                if let Some(Waiting { msdu, arrival }) = self.waiting.pop_front() {
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
        self.sent = mpdus.len();
        let only = mpdus.first()?;
        if mpdus.len() == 1 && !config.data_mode.is_always_aggregate() {
            // HT sends a single frame without delimiter.
            psdu = len::mpdu(only.msdu.len, config.is_qos);
        }
        Some(Prepared { mpdus, psdu })
    }

    /// The single frame sent last was acknowledged.
    pub fn on_ack(&mut self) -> Settled {
        self.sent = 0;
        let acked = usize::from(self.outstanding.pop_front().is_some());
        Settled { acked, dropped: 0 }
    }

    /// A Block ACK came, after data or after a request.
    pub fn on_block_ack(&mut self, start: u16, bitmap: u64, retry_limit: u8) -> Settled {
        self.request = None;
        let before = self.outstanding.len();
        self.outstanding.retain(|frame| {
            let offset = seq_distance(start, frame.seq);
            let acked =
                seq_before(frame.seq, start) || (offset < WINDOW && bitmap >> offset & 1 == 1);
            !acked
        });
        let acked = before - self.outstanding.len();
        let dropped = self.give_up(retry_limit);
        Settled { acked, dropped }
    }

    /// The single frame sent last was not acknowledged, or what was sent last was not cleared to be sent.
    pub fn on_missed_ack(&mut self, config: &MacConfig) -> Settled {
        let dropped = self.give_up(config.retry_limit);
        if dropped > 0 && !config.aggregates() {
            self.request = None;
        }
        Settled { acked: 0, dropped }
    }

    /// The A-MPDU sent last was not answered: ask what of it came through.
    pub fn on_missed_block_ack(&mut self) {
        self.sent = 0;
        self.request = Some(0);
    }

    /// The request was not answered. After `retry_limit` of them it gives way to data again.
    pub fn on_missed_request(&mut self, retry_limit: u8) -> Settled {
        let attempts = self.request.unwrap_or(0).saturating_add(1);
        if attempts < retry_limit {
            self.request = Some(attempts);
            return Settled::default();
        }
        self.request = None;
        self.sent = self.outstanding.len();
        let dropped = self.give_up(retry_limit);
        Settled { acked: 0, dropped }
    }

    /// Drops the frames that had their last attempt; the receiver has to be told to expect them no more.
    fn give_up(&mut self, retry_limit: u8) -> usize {
        self.sent = 0;
        let before = self.outstanding.len();
        self.outstanding
            .retain(|frame| frame.attempts < retry_limit);
        let dropped = before - self.outstanding.len();
        if dropped > 0 {
            self.request = Some(0);
        }
        dropped
    }

    /// Length of the PSDU that the next frame makes alone; zero when there is none.
    pub fn next_len(&self, config: &MacConfig) -> u32 {
        if self.request.is_some() {
            return len::BLOCK_ACK_REQ;
        }
        let outstanding = self.outstanding.front().map(|frame| &frame.msdu);
        let next = outstanding.or_else(|| self.waiting.front().map(|frame| &frame.msdu));
        next.map_or(0, |msdu| len::ampdu(0, len::mpdu(msdu.len, config.is_qos)))
    }

    /// Frames in the PPDU sent last.
    pub fn sent(&self) -> usize {
        self.sent
    }
}

#[cfg(test)]
mod tests;
