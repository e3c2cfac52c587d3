//! The receiving side: what frames for this radio, and for others, do.

use alloc::vec::Vec;

use tack_base::{Duration, Instant};

use super::hack::seen;
use super::{Awaited, Hold, Job, Station, Step};
use crate::frame::{AckPolicy, Data, Frame, Mpdu, Msdu, NodeId, Ppdu, len};
use crate::mac::originator::SolicitingFrame;
use crate::mac::recipient::Recipient;
use crate::phy::response::response_mode;

impl<M: Clone> Station<M> {
    /// A control frame for this radio has ended. MSDUs that a Block ACK request releases go to
    /// `deliver`.
    pub fn receive_control(
        &mut self,
        now: Instant,
        ppdu: &Ppdu<M>,
        mut deliver: impl FnMut(Msdu<M>),
    ) {
        self.reception = None;
        let from = ppdu.from;
        let awaited = self.awaited(from);
        match &ppdu.frame {
            Frame::Ack { carried } if awaited == Some(Awaited::Ack) => {
                // That to an ADDBA frame carries nothing.
                self.unpack(from, carried);
                self.on_ack(now);
            }
            Frame::Cts if awaited == Some(Awaited::Cts) => self.on_cleared(now),
            Frame::BlockAck {
                category,
                start,
                bitmap,
                carried,
            } if awaited == Some(Awaited::BlockAck) => {
                self.unpack(from, carried);
                let function = self.function(*category);
                let soliciting = match self.exchange.map(|exchange| exchange.job) {
                    Some(Job::Request(_)) => SolicitingFrame::BlockAckReq,
                    _ => SolicitingFrame::Data,
                };
                let said = (*start, *bitmap);
                self.settle(now, function, from, |originator, config| {
                    originator.on_block_ack(soliciting, said, config)
                });
                self.on_answered(now);
            }
            // A response that nobody waits for any more.
            Frame::Ack { .. } | Frame::Cts | Frame::BlockAck { .. } => self.on_other_reception(now),
            Frame::Beacon | Frame::Data(_) => self.on_other_reception(now),
            Frame::Addba(addba) => {
                self.on_other_reception(now);
                self.on_addba(now, from, *addba);
                self.respond(now, ppdu, Duration::ZERO, Frame::ACK);
            }
            Frame::Rts => {
                self.on_other_reception(now);
                // §10.3.2.9: no CTS while the medium is reserved for others.
                if self.access.nav() <= now {
                    let cts = self
                        .config
                        .timing
                        .airtime(response_mode(ppdu.mode), len::ACK as usize);
                    let left = ppdu.reserves.saturating_sub(self.config.timing.sifs + cts);
                    self.respond(now, ppdu, left, Frame::Cts);
                }
            }
            Frame::BlockAckReq { category, start } => {
                let (category, start) = (*category, *start);
                self.on_other_reception(now);
                let mut hack = self.hack.take();
                if let Some(hack) = &mut hack {
                    hack.on_request(from);
                }
                let (start, bitmap) = self.reorder(from, category as usize, |recipient| {
                    recipient.confirm();
                    recipient.request(start, |msdu| {
                        seen(&mut hack, (now, from), &msdu);
                        deliver(msdu);
                    });
                    recipient.block_ack()
                });
                self.hack = hack;
                let answer = Frame::BlockAck {
                    category,
                    start,
                    bitmap,
                    carried: Vec::new(),
                };
                self.respond(now, ppdu, Duration::ZERO, answer);
            }
        }
    }

    /// A data frame for this radio was read, while the PPDU around it may go on. MSDUs that are in
    /// order now go to `deliver`.
    pub fn receive_mpdu(
        &mut self,
        now: Instant,
        from: NodeId,
        mpdu: &mut Mpdu<M>,
        mut deliver: impl FnMut(Msdu<M>),
    ) {
        let msdu = mpdu.msdu.take();
        let len = u64::from(msdu.len);
        let mut hack = self.hack.take();
        let mut deliver = |msdu: Msdu<M>| {
            seen(&mut hack, (now, from), &msdu);
            deliver(msdu);
        };
        let is_new = if self.config.aggregates() {
            let category = msdu.category as usize;
            self.reorder(from, category, |recipient| {
                recipient.receive_mpdu(now, (mpdu.seq, mpdu.retry), msdu, &mut deliver)
            })
        } else {
            let is_new = self.duplicates.accept(from.index(), mpdu.seq, mpdu.retry);
            if is_new {
                deliver(msdu);
            }
            is_new
        };
        self.hack = hack;
        if is_new {
            self.stats.received += 1;
            self.stats.received_bytes += len;
        } else {
            self.stats.duplicates += 1;
        }
    }

    /// A PPDU of data for this radio, of which at least one frame was read, has ended: it is
    /// answered.
    pub fn finish_data(&mut self, now: Instant, ppdu: &Ppdu<M>) {
        self.reception = None;
        self.on_other_reception(now);
        let Frame::Data(Data { category, ack, .. }) = ppdu.frame else {
            return;
        };
        match ack {
            AckPolicy::BlockAck => {
                let (start, bitmap) = self.reorder(ppdu.from, category as usize, |recipient| {
                    recipient.block_ack()
                });
                let answer = Frame::BlockAck {
                    category,
                    start,
                    bitmap,
                    carried: Vec::new(),
                };
                self.respond(now, ppdu, Duration::ZERO, answer);
            }
            AckPolicy::Normal => self.respond(now, ppdu, Duration::ZERO, Frame::ACK),
        }
    }

    /// A PPDU for others, whose reception had begun, has ended, and at least a part of it could be
    /// read.
    #[inline]
    pub fn overhear(&mut self, now: Instant, ppdu: &Ppdu<M>) {
        self.reception = None;
        self.access.set_nav(now + ppdu.reserves);
        self.on_other_reception(now);
    }

    /// A PPDU that could not be read has ended.
    pub fn on_reception_error(&mut self, now: Instant) {
        self.reception = None;
        self.on_other_reception(now);
    }

    /// Nobody took up what was announced: the reservation by an RTS ends (§10.3.2.4).
    pub fn reset_nav(&mut self, now: Instant) {
        self.access.reset_nav(now);
    }

    fn awaited(&self, from: NodeId) -> Option<Awaited> {
        let exchange = self.exchange?;
        let to = match exchange.job {
            Job::Data(to) | Job::Request(to) | Job::Addba(to, _) => to,
            Job::Beacon => return None,
        };
        match exchange.step {
            Step::Waiting { awaited, .. } | Step::Receiving { awaited } if to == from => {
                Some(awaited)
            }
            _ => None,
        }
    }

    /// Something other than the awaited response has ended: it is not coming (§10.3.2.11).
    fn on_other_reception(&mut self, at: Instant) {
        let Some(exchange) = self.exchange else {
            return;
        };
        if let Step::Waiting { awaited, .. } | Step::Receiving { awaited } = exchange.step {
            self.access.end_wait(at);
            self.on_unanswered(at, awaited);
        }
    }

    fn on_ack(&mut self, at: Instant) {
        let Some(exchange) = self.exchange else {
            return;
        };
        match exchange.job {
            Job::Data(to) => {
                self.settle(at, exchange.function, to, |originator, _| {
                    originator.on_ack()
                });
            }
            Job::Addba(_, seq) => self.on_addba_acked(at, exchange.function, seq),
            Job::Request(_) | Job::Beacon => {}
        }
        self.on_answered(at);
    }

    /// Frames that have waited too long for one before them go to `deliver`.
    pub fn release_overdue(&mut self, now: Instant, mut deliver: impl FnMut(Msdu<M>)) {
        let timeout = self.config.reorder_timeout.unwrap_or_default();
        while let Some(hold) = self.holds.first().copied()
            && hold.until <= now
        {
            let Hold { from, category, .. } = hold;
            self.stats.reorder_timeouts += 1;
            let mut hack = self.hack.take();
            self.reorder(from, category, |recipient| {
                recipient.release_overdue(now - timeout, |msdu| {
                    seen(&mut hack, (now, from), &msdu);
                    deliver(msdu);
                });
            });
            self.hack = hack;
        }
    }

    /// Lets something happen to the recipient of what `from` sends in `category`, and keeps note of
    /// when the frames that it holds back will have waited too long.
    #[inline]
    pub(super) fn reorder<R>(
        &mut self,
        from: NodeId,
        category: usize,
        act: impl FnOnce(&mut Recipient<M>) -> R,
    ) -> R {
        let index = from.index();
        if self.recipients.len() <= index {
            let make = if self.agreements.is_some() {
                Recipient::without_agreement
            } else {
                Recipient::default
            };
            self.recipients
                .resize_with(index + 1, || core::array::from_fn(|_| make()));
        }
        let recipient = &mut self.recipients[index][category];
        let before = recipient.held_since();
        let result = act(recipient);
        let after = recipient.held_since();
        if before != after
            && let Some(timeout) = self.config.reorder_timeout
        {
            let hold = |since: Instant| Hold {
                until: since + timeout,
                from,
                category,
            };
            if let Some(since) = before {
                self.holds.remove(&hold(since));
            }
            if let Some(since) = after {
                self.holds.insert(hold(since));
            }
            let first = self.holds.first();
            self.next_hold = first.map_or(Instant::FAR_FUTURE, |hold| hold.until);
        }
        result
    }

    /// What a response carried goes to the driver.
    fn unpack(&mut self, from: NodeId, carried: &[u8]) {
        if let Some(hack) = &mut self.hack {
            hack.unpack(from, carried);
        }
    }

    /// Answers `to` a SIFS after its end, whatever the medium does (§10.3.2.11).
    fn respond(&mut self, at: Instant, to: &Ppdu<M>, reserves: Duration, frame: Frame<M>) {
        self.note_addba_answer(matches!(to.frame, Frame::Addba(_)));
        // A response to control frames uses their rate rules; to data, the mode chosen for the
        // network.
        let mode = if to.mode == self.config.data_mode {
            self.config.control_mode
        } else {
            response_mode(to.mode)
        };
        let response = self.control(to.from, reserves, frame);
        let airtime = self.config.timing.airtime(mode, response.psdu as usize);
        let response = Ppdu {
            mode,
            airtime,
            ..response
        };
        self.response = Some((at + self.sifs, response));
    }
}
