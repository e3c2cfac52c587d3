//! The sending side of an exchange: from the grant to the response or its timeout.

use alloc::vec::Vec;

use tack_base::{Duration, Instant};

use super::{Awaited, Exchange, Job, Station, Step, draw};
use crate::frame::{AckPolicy, Data, Frame, NodeId, Ppdu, len};
use crate::mac::access::Attempt;
use crate::mac::config::Protection;
use crate::mac::originator::{Originator, TxStatus};

impl<M: Clone> Station<M> {
    /// Does what is due at `now`. Returns what goes on the air at this instant; call again until
    /// the next deadline is later.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Ppdu<M>> {
        if self.next_beacon <= now {
            self.on_beacon_time(now);
        }
        self.run_driver(now);
        self.run_agreements(now);
        if let Some((due, _)) = &self.response
            && *due <= now
        {
            let (_, mut response) = self.response.take()?;
            if !self.answers_addba() {
                response = self.load(now, response);
            }
            // A radio that is sending cannot answer; it could not have received either.
            return (!self.is_sending).then(|| self.send(response));
        }
        let Some(exchange) = self.exchange else {
            return self.take_grant(now);
        };
        match exchange.step {
            Step::Pausing { until } if until <= now => {
                let prepared = self.prepared.take()?;
                self.set_step(Step::Sending);
                Some(self.send_attempt(prepared))
            }
            Step::Waiting { awaited, deadline } if deadline <= now => {
                // §10.3.2.11: the timeout asks only whether a reception has begun.
                if self.reception.is_some_and(|header_end| header_end <= now) {
                    self.set_step(Step::Receiving { awaited });
                } else {
                    self.on_unanswered(now, awaited);
                }
                None
            }
            _ => None,
        }
    }

    /// The PPDU that this radio sent has ended.
    pub fn on_transmitted(&mut self, now: Instant, ppdu: &Ppdu<M>) {
        self.is_sending = false;
        let Some(exchange) = self.exchange else {
            return;
        };
        if exchange.step != Step::Sending {
            return;
        }
        let awaited = match &ppdu.frame {
            Frame::Data(data) => match data.ack {
                AckPolicy::Normal => Awaited::Ack,
                AckPolicy::BlockAck => Awaited::BlockAck,
            },
            Frame::BlockAckReq { .. } => Awaited::BlockAck,
            Frame::Addba(_) => Awaited::Ack,
            Frame::Rts => Awaited::Cts,
            Frame::Cts => {
                self.set_step(Step::Pausing {
                    until: now + self.sifs,
                });
                return;
            }
            Frame::Ack { .. } | Frame::BlockAck { .. } | Frame::Beacon => {
                self.finish(now, Attempt::Succeeded);
                return;
            }
        };
        let deadline = now + self.response_timeout;
        self.access.await_response(deadline);
        self.set_step(Step::Waiting { awaited, deadline });
    }

    fn set_step(&mut self, step: Step) {
        if let Some(exchange) = &mut self.exchange {
            exchange.step = step;
        }
    }

    fn on_beacon_time(&mut self, at: Instant) {
        let Some(beacons) = self.beacons else { return };
        while self.next_beacon <= at {
            self.next_beacon += beacons.interval.max(Duration::from_nanos(1));
        }
        let function = self.queues.len();
        if !self.beacon_is_due {
            self.beacon_is_due = true;
            self.access.request(function, at, |_| 0);
        }
    }

    fn take_grant(&mut self, at: Instant) -> Option<Ppdu<M>> {
        if self.is_sending || self.access.grant().is_none_or(|grant| grant > at) {
            return None;
        }
        let random = &mut self.random;
        let function = self.access.take_grant(at, |cw| draw(random, cw))?;
        let limit = if function < self.queues.len() {
            self.config.txop_limit[self.category(function) as usize]
        } else {
            Duration::ZERO
        };
        let Some((job, ppdu)) = self.next_frame(at, function, limit) else {
            self.access.set_wants(function, false);
            return None;
        };
        self.exchange = Some(Exchange {
            function,
            job,
            step: Step::Sending,
            txop_end: at + limit,
            attempts: 0,
        });
        let first = self.protect(ppdu);
        Some(self.send_attempt(first))
    }

    /// The next frame of `function`; data frames as long as `limit` allows with their response, if
    /// it is not zero.
    fn next_frame(
        &mut self,
        at: Instant,
        function: usize,
        limit: Duration,
    ) -> Option<(Job, Ppdu<M>)> {
        if function == self.queues.len() {
            self.beacon_is_due = false;
            let beacons = self.beacons?;
            let airtime = self
                .config
                .timing
                .airtime(beacons.mode, beacons.len as usize);
            let ppdu = Ppdu {
                from: self.id,
                to: None,
                mode: beacons.mode,
                psdu: beacons.len,
                airtime,
                reserves: Duration::ZERO,
                frame: Frame::Beacon,
            };
            return Some((Job::Beacon, ppdu));
        }
        if let Some(next) = self.next_addba(at, function) {
            return Some(next);
        }
        let to = self.queues[function].next_receiver()?;
        let category = self.category(function);
        let originator = self.queues[function].originator(to)?;
        if originator.request_is_due() {
            let start = originator.window_start();
            let frame = Frame::BlockAckReq { category, start };
            let reserves = self.config.timing.sifs + self.config.control_airtime(len::BLOCK_ACK);
            let ppdu = self.control(to, reserves, frame);
            return Some((Job::Request(to), ppdu));
        }
        Some((Job::Data(to), self.data(function, to, limit)?))
    }

    /// A PPDU of data frames to `to`.
    fn data(&mut self, function: usize, to: NodeId, limit: Duration) -> Option<Ppdu<M>> {
        let mpdus = self.list(function, to);
        let config = &self.config;
        let timing = &config.timing;
        let longest = config.ampdu.airtime;
        let longest = if limit > Duration::ZERO {
            let mut around = timing.sifs + config.control_airtime(len::BLOCK_ACK);
            if config.rts_threshold.is_some() {
                around += 2 * timing.sifs
                    + config.control_airtime(len::RTS)
                    + config.control_airtime(len::ACK);
            }
            longest.min(limit.saturating_sub(around))
        } else {
            longest
        };
        let prepared = self.queues[function]
            .change(to, |originator| originator.prepare(config, longest, mpdus))?;
        self.on_leaving(to, function, &prepared.mpdus);
        let (more_data, sync) = self.promises(to, prepared.mpdus.len());
        let (config, timing) = (&self.config, &self.config.timing);
        let (ack, answer) = if prepared.mpdus.len() > 1 {
            (AckPolicy::BlockAck, len::BLOCK_ACK)
        } else {
            (AckPolicy::Normal, len::ACK)
        };
        Some(Ppdu {
            from: self.id,
            to: Some(to),
            mode: config.data_mode,
            psdu: prepared.psdu,
            airtime: timing.airtime(config.data_mode, prepared.psdu as usize),
            reserves: timing.sifs + config.control_airtime(answer),
            frame: Frame::Data(Data {
                mpdus: prepared.mpdus,
                category: self.category(function),
                ack,
                more_data,
                sync,
            }),
        })
    }

    /// What goes before `ppdu`, which then waits, or `ppdu` itself.
    fn protect(&mut self, ppdu: Ppdu<M>) -> Ppdu<M> {
        if !matches!(ppdu.frame, Frame::Data(_) | Frame::Addba(_)) {
            return ppdu;
        }
        let sifs = self.config.timing.sifs;
        let data = sifs + ppdu.airtime + ppdu.reserves;
        let needs_rts = self
            .config
            .rts_threshold
            .is_some_and(|threshold| ppdu.psdu > threshold);
        let first = if needs_rts {
            let reserves = sifs + self.config.control_airtime(len::ACK) + data;
            let to = ppdu.to.unwrap_or(NodeId::AP);
            self.control(to, reserves, Frame::Rts)
        } else if let Protection::CtsToSelf(mode) = self.config.protection {
            Ppdu {
                mode,
                airtime: self.config.timing.airtime(mode, len::ACK as usize),
                ..self.control(self.id, data, Frame::Cts)
            }
        } else {
            return ppdu;
        };
        self.prepared = Some(ppdu);
        first
    }

    /// A control frame.
    pub(super) fn control(&self, to: NodeId, reserves: Duration, frame: Frame<M>) -> Ppdu<M> {
        let psdu = frame.control_len();
        Ppdu {
            from: self.id,
            to: Some(to),
            mode: self.config.control_mode,
            psdu,
            airtime: self.config.control_airtime(psdu),
            reserves,
            frame,
        }
    }

    fn send_attempt(&mut self, ppdu: Ppdu<M>) -> Ppdu<M> {
        if ppdu.wants_response() {
            self.stats.attempts += 1;
            if let Some(exchange) = &mut self.exchange {
                self.stats.accesses += u64::from(exchange.attempts == 0);
                exchange.attempts = exchange.attempts.saturating_add(1);
            }
        }
        if let Frame::Data(data) = &ppdu.frame {
            self.stats.data_ppdus += 1;
            self.stats.mpdus += data.mpdus.len() as u64;
            self.stats.retries += data.mpdus.iter().filter(|mpdu| mpdu.retry).count() as u64;
        }
        self.send(ppdu)
    }

    fn send(&mut self, ppdu: Ppdu<M>) -> Ppdu<M> {
        self.is_sending = true;
        self.reception = None;
        self.stats.ppdus += 1;
        let carried = ppdu.frame.carried().len() as u64;
        self.stats.carrying += u64::from(carried > 0);
        self.stats.carried_bytes += carried;
        ppdu
    }

    /// No response came.
    pub(super) fn on_unanswered(&mut self, at: Instant, awaited: Awaited) {
        let Some(exchange) = self.exchange else {
            return;
        };
        self.stats.unanswered += 1;
        let status = match exchange.job {
            Job::Beacon => TxStatus::default(),
            Job::Addba(_, seq) => {
                self.prepared = None;
                self.on_addba_missed(at, exchange.function, seq)
            }
            Job::Request(to) => {
                self.note_answer(to, false);
                self.settle(at, exchange.function, to, Originator::on_missed_request)
            }
            Job::Data(to) if awaited == Awaited::BlockAck => {
                self.note_answer(to, false);
                self.settle(at, exchange.function, to, Originator::on_missed_block_ack)
            }
            Job::Data(to) => {
                if awaited == Awaited::Ack {
                    self.note_answer(to, false);
                }
                if let Some(prepared) = self.prepared.take() {
                    recycle(&mut self.spare, prepared);
                }
                self.settle(at, exchange.function, to, Originator::on_missed_ack)
            }
        };
        let attempt = if status.dropped > 0 {
            Attempt::GivenUp
        } else {
            Attempt::Failed
        };
        self.finish(at, attempt);
    }

    /// The response that was waited for came.
    pub(super) fn on_answered(&mut self, at: Instant) {
        let Some(exchange) = self.exchange else {
            return;
        };
        if let Job::Data(to) | Job::Request(to) = exchange.job {
            self.note_answer(to, true);
        }
        self.access.end_wait(at);
        if at < exchange.txop_end && self.continue_txop(at, exchange) {
            return;
        }
        self.finish(at, Attempt::Succeeded);
    }

    /// Prepares the next frame of a TXOP if there is one and it fits with its response.
    fn continue_txop(&mut self, at: Instant, exchange: Exchange) -> bool {
        let start = at + self.sifs;
        if self.queues[exchange.function].is_empty() || start >= exchange.txop_end {
            return false;
        }
        let left = exchange.txop_end.saturating_since(start);
        // The shortest exchange there is: without its time, nothing is taken from the queue.
        let function = exchange.function;
        let needs = match self.addba_exchange(at, function) {
            Some(needs) => needs,
            None => {
                let Some(to) = self.queues[function].next_receiver() else {
                    return false;
                };
                let originator = self.queues[function].originator(to);
                let next = originator.map_or(0, |originator| originator.next_len(&self.config));
                let answer = self.config.timing.sifs + self.config.control_airtime(len::BLOCK_ACK);
                let timing = &self.config.timing;
                timing.airtime(self.config.data_mode, next as usize) + answer
            }
        };
        if needs > left {
            return false;
        }
        let Some((job, ppdu)) = self.next_frame(at, function, left) else {
            return false;
        };
        self.prepared = Some(ppdu);
        self.exchange = Some(Exchange {
            job,
            step: Step::Pausing { until: start },
            ..exchange
        });
        true
    }

    /// The exchange is over: contention begins anew.
    fn finish(&mut self, at: Instant, attempt: Attempt) {
        let Some(exchange) = self.exchange.take() else {
            return;
        };
        let function = exchange.function;
        let random = &mut self.random;
        self.access
            .release(function, at, attempt, |cw| draw(random, cw));
        let more = match self.queues.get(function) {
            Some(queue) => !queue.is_empty(),
            None => self.beacon_is_due,
        };
        self.access.set_wants(function, more);
    }

    /// After CTS the data follows.
    pub(super) fn on_cleared(&mut self, at: Instant) {
        self.access.end_wait(at);
        self.set_step(Step::Pausing {
            until: at + self.sifs,
        });
    }
}

fn recycle<M>(spare: &mut Vec<Vec<crate::frame::Mpdu<M>>>, ppdu: Ppdu<M>) {
    if let Frame::Data(Data { mut mpdus, .. }) = ppdu.frame
        && spare.len() < 2
    {
        mpdus.clear();
        spare.push(mpdus);
    }
}
