//! The frames that set up Block ACK agreements (§11.5.2): requests of an originator, and the
//! answers of a recipient, which contend as data of their category does and go before it.

use tack_base::{Duration, Instant};

use super::{Job, Station};
use crate::frame::{Addba, AddbaKind, Frame, NodeId, Ppdu, len};
use crate::mac::agreement::Due;
use crate::mac::config::ADDBA_RESPONSE_TIMEOUT;
use crate::mac::originator::{Originator, TxStatus};
use crate::mac::recipient::Recipient;
use crate::phy::response::response_mode;

impl<M: Clone> Station<M> {
    /// When something is to be done for agreements.
    #[inline]
    pub(super) fn next_agreement(&self) -> Instant {
        let Some(agreements) = &self.agreements else {
            return Instant::FAR_FUTURE;
        };
        let due = agreements.due.iter().map(|(at, _)| *at);
        due.fold(Instant::FAR_FUTURE, Instant::min)
    }

    /// Whether the response that is due answers an ADDBA frame. Acknowledgements of the transport
    /// ride on answers to data only.
    #[inline]
    pub(super) fn answers_addba(&self) -> bool {
        let agreements = self.agreements.as_ref();
        agreements.is_some_and(|agreements| agreements.is_answer)
    }

    #[inline]
    pub(super) fn note_addba_answer(&mut self, is_answer: bool) {
        if let Some(agreements) = &mut self.agreements {
            agreements.is_answer = is_answer;
        }
    }

    /// An ADDBA frame for this radio has ended.
    pub(super) fn on_addba(&mut self, now: Instant, from: NodeId, addba: Addba) {
        if let Some(agreements) = &mut self.agreements
            && agreements
                .duplicates
                .accept(from.index(), addba.seq, addba.retry)
        {
            agreements.due.push((now, Due::Frame { from, addba }));
        }
    }

    /// Does what is due.
    #[inline]
    pub(super) fn run_agreements(&mut self, now: Instant) {
        while let Some(agreements) = &mut self.agreements
            && let Some(first) = agreements.due.iter().position(|(at, _)| *at <= now)
        {
            let (_, due) = agreements.due.remove(first);
            match due {
                Due::Frame { from, addba } => self.take_addba(now, from, addba),
                Due::NoResponse { function, to } => {
                    self.on_no_response(now, function, to);
                }
            }
        }
    }

    fn take_addba(&mut self, now: Instant, from: NodeId, addba: Addba) {
        let function = self.function(addba.category);
        match addba.kind {
            AddbaKind::Request { start } => {
                self.reorder(from, addba.category as usize, |recipient| {
                    recipient.offer(start);
                });
                let seq = self.agreements.as_mut().map_or(0, |all| all.number());
                let response = Addba {
                    seq,
                    retry: false,
                    kind: AddbaKind::Response,
                    ..addba
                };
                self.queues[function].push_addba(from, response);
                self.wish(now, function);
            }
            AddbaKind::Response => {
                let queue = &mut self.queues[function];
                // One that nobody asked for changes nothing.
                let was_asked = queue.originator(from).is_some()
                    && queue.change(from, |originator| originator.on_response(addba.token));
                if was_asked {
                    // The request came through, even if its acknowledgements did not.
                    queue.withdraw_addba(from, AddbaKind::Request { start: 0 });
                    self.wish(now, function);
                }
            }
        }
    }

    fn on_no_response(&mut self, at: Instant, function: usize, to: NodeId) {
        self.queues[function].change(to, |originator| originator.on_no_response(at));
        self.wish(at, function);
    }

    /// The ADDBA frame that `function` sends next, if it sends one: what waits, or a request for
    /// the receiver whose turn it is.
    pub(super) fn next_addba(&mut self, at: Instant, function: usize) -> Option<(Job, Ppdu<M>)> {
        let agreements = self.agreements.as_mut()?;
        let category = crate::frame::AccessCategory::ALL[function.min(3)];
        let queue = &mut self.queues[function];
        if queue.next_addba().is_none()
            && let Some(to) = queue.next_receiver()
            && let Some(start) = queue.originator(to)?.asks(at, &self.config)
        {
            let token = queue.change(to, Originator::on_asked);
            let request = Addba {
                seq: agreements.number(),
                retry: false,
                token,
                category,
                kind: AddbaKind::Request { start },
            };
            queue.push_addba(to, request);
        }
        let queued = queue.next_addba()?;
        queued.addba.retry = queued.attempts > 0;
        queued.attempts = queued.attempts.saturating_add(1);
        let (to, addba) = (queued.to, queued.addba);
        let timing = &self.config.timing;
        let ppdu = Ppdu {
            // Management frames go at the lowest basic rate, as in ns-3 3.37.
            mode: timing.lowest,
            airtime: timing.airtime(timing.lowest, len::ADDBA as usize),
            ..self.control(to, self.addba_answer(), Frame::Addba(addba))
        };
        Some((Job::Addba(to, addba.seq), ppdu))
    }

    /// SIFS and the acknowledgement of an ADDBA frame.
    fn addba_answer(&self) -> Duration {
        let timing = &self.config.timing;
        timing.sifs + timing.airtime(response_mode(timing.lowest), len::ACK as usize)
    }

    /// How long the exchange of the ADDBA frame takes that `function` sends next, if it sends one.
    pub(super) fn addba_exchange(&mut self, at: Instant, function: usize) -> Option<Duration> {
        self.agreements.as_ref()?;
        let queue = &mut self.queues[function];
        let asks = |queue: &crate::mac::queue::TransmitQueue<M>| {
            let originator = queue.next_receiver().and_then(|to| queue.originator(to));
            originator.is_some_and(|originator| originator.asks(at, &self.config).is_some())
        };
        if queue.next_addba().is_none() && !asks(queue) {
            return None;
        }
        let timing = &self.config.timing;
        let addba = timing.airtime(timing.lowest, len::ADDBA as usize);
        Some(addba + self.addba_answer())
    }

    /// The ADDBA frame sent last was acknowledged.
    pub(super) fn on_addba_acked(&mut self, at: Instant, function: usize, seq: u16) {
        let Some(queued) = self.queues[function].settle_addba(seq, |_| true) else {
            return;
        };
        let (to, category) = (queued.to, queued.addba.category);
        match queued.addba.kind {
            AddbaKind::Request { .. } => {
                let until = at + ADDBA_RESPONSE_TIMEOUT;
                if let Some(agreements) = &mut self.agreements {
                    let due = Due::NoResponse { function, to };
                    agreements.due.push((until, due));
                }
            }
            AddbaKind::Response => {
                self.reorder(to, category as usize, Recipient::confirm);
            }
        }
    }

    /// The ADDBA frame sent last was not acknowledged. It is given up as data frames are.
    pub(super) fn on_addba_missed(&mut self, at: Instant, function: usize, seq: u16) -> TxStatus {
        let most = self.config.retry_limit;
        let queue = &mut self.queues[function];
        let Some(queued) = queue.settle_addba(seq, |queued| queued.attempts >= most) else {
            return TxStatus::default();
        };
        if matches!(queued.addba.kind, AddbaKind::Request { .. }) {
            self.on_no_response(at, function, queued.to);
        }
        TxStatus {
            acked: 0,
            dropped: 1,
        }
    }
}
