//! The receiving side: what frames for this radio, and for others, do.

use tack_base::Instant;
use tack_base::time::nanos;

use super::{Awaited, Job, Station, Step};
use crate::frame::{AckPolicy, Data, Frame, Msdu, NodeId, Ppdu, len};
use crate::mac::link::Settled;
use crate::mac::recipient::Recipient;
use crate::phy::response::response_mode;

/// What of a PPDU could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Everything.
    Whole,
    /// Some MPDUs of an A-MPDU: bit n stands for the n-th.
    Part(u64),
    /// Nothing: the FCS of every MPDU is wrong.
    Nothing,
}

impl Outcome {
    fn has(self, index: usize) -> bool {
        match self {
            Self::Whole => true,
            Self::Part(mask) => index < 64 && mask >> index & 1 == 1,
            Self::Nothing => false,
        }
    }
}

impl<M: Clone> Station<M> {
    /// A PPDU for this radio, whose reception had begun, has ended. MSDUs that are in order now go to `deliver`.
    ///
    /// The MPDUs that were received are taken out of `ppdu`.
    pub fn receive(
        &mut self,
        now: Instant,
        ppdu: &mut Ppdu<M>,
        outcome: Outcome,
        mut deliver: impl FnMut(Msdu<M>),
    ) {
        let at = now.as_nanos();
        self.reception = None;
        let from = ppdu.from;
        if outcome == Outcome::Nothing {
            self.on_other_reception(at);
            return;
        }
        let awaited = self.awaited(from);
        match &mut ppdu.frame {
            Frame::Ack if awaited == Some(Awaited::Ack) => self.on_ack(at),
            Frame::Cts if awaited == Some(Awaited::Cts) => self.on_cleared(at),
            Frame::BlockAck {
                category,
                start,
                bitmap,
            } if awaited == Some(Awaited::BlockAck) => {
                let function = self.function(*category);
                let limit = self.config.retry_limit;
                let link = self.queues[function].link(from);
                let settled = link.on_block_ack(*start, *bitmap, limit);
                self.on_answered(at, settled);
            }
            // A response that nobody waits for any more.
            Frame::Ack | Frame::Cts | Frame::BlockAck { .. } => self.on_other_reception(at),
            Frame::Beacon => self.on_other_reception(at),
            Frame::Rts => {
                self.on_other_reception(at);
                // §10.3.2.9: no CTS while the medium is reserved for others.
                if self.access.nav() <= at {
                    let cts = self
                        .config
                        .timing
                        .airtime(response_mode(ppdu.mode), len::ACK as usize);
                    let left = ppdu.reserves.saturating_sub(self.config.timing.sifs + cts);
                    self.respond(at, ppdu, len::ACK, left, Frame::Cts);
                }
            }
            Frame::BlockAckReq { category, start } => {
                let (category, start) = (*category, *start);
                self.on_other_reception(at);
                let recipient = self.recipient(from, category as usize);
                recipient.request(start, &mut deliver);
                let (start, bitmap) = recipient.block_ack();
                let answer = Frame::BlockAck {
                    category,
                    start,
                    bitmap,
                };
                self.respond(at, ppdu, len::BLOCK_ACK, Default::default(), answer);
            }
            Frame::Data(_) => {
                self.on_other_reception(at);
                self.receive_data(at, ppdu, outcome, deliver);
            }
        }
    }

    /// A PPDU for others, whose reception had begun, has ended, and at least a part of it could be read.
    #[inline]
    pub fn overhear(&mut self, now: Instant, ppdu: &Ppdu<M>) {
        let at = now.as_nanos();
        self.reception = None;
        self.access.set_nav(at + nanos(ppdu.reserves));
        self.on_other_reception(at);
    }

    /// A PPDU that could not be read has ended.
    pub fn on_reception_error(&mut self, now: Instant) {
        self.reception = None;
        self.on_other_reception(now.as_nanos());
    }

    /// Nobody took up what was announced: the reservation by an RTS ends (§10.3.2.4).
    pub fn reset_nav(&mut self, now: Instant) {
        self.access.reset_nav(now.as_nanos());
    }

    fn awaited(&self, from: NodeId) -> Option<Awaited> {
        let exchange = self.exchange?;
        let to = match exchange.job {
            Job::Data(to) | Job::Request(to) => to,
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
    fn on_other_reception(&mut self, at: u64) {
        let Some(exchange) = self.exchange else {
            return;
        };
        if let Step::Waiting { awaited, .. } | Step::Receiving { awaited } = exchange.step {
            self.access.end_wait(at);
            self.on_unanswered(at, awaited);
        }
    }

    fn on_ack(&mut self, at: u64) {
        let Some(exchange) = self.exchange else {
            return;
        };
        let settled = match exchange.job {
            Job::Data(to) => self.queues[exchange.function].link(to).on_ack(),
            Job::Request(_) | Job::Beacon => Settled::default(),
        };
        self.on_answered(at, settled);
    }

    fn receive_data(
        &mut self,
        at: u64,
        ppdu: &mut Ppdu<M>,
        outcome: Outcome,
        mut deliver: impl FnMut(Msdu<M>),
    ) {
        let from = ppdu.from;
        let uses_windows = self.config.aggregates();
        let Frame::Data(Data {
            mpdus,
            category,
            ack,
        }) = &mut ppdu.frame
        else {
            return;
        };
        let (category, ack) = (*category, *ack);
        if uses_windows {
            self.recipient(from, category as usize);
        }
        let recipient = self.recipients.get_mut(from.index());
        let mut recipient = recipient.map(|all| &mut all[category as usize]);
        for (index, mpdu) in mpdus.drain(..).enumerate() {
            if !outcome.has(index) {
                continue;
            }
            let len = u64::from(mpdu.msdu.len);
            let is_new = match &mut recipient {
                Some(recipient) if uses_windows => {
                    recipient.receive(mpdu.seq, mpdu.msdu, &mut deliver)
                }
                _ => {
                    let is_new = self.duplicates.accept(from.index(), mpdu.seq, mpdu.retry);
                    if is_new {
                        deliver(mpdu.msdu);
                    }
                    is_new
                }
            };
            if is_new {
                self.stats.received += 1;
                self.stats.received_bytes += len;
            } else {
                self.stats.duplicates += 1;
            }
        }
        match (ack, recipient) {
            (AckPolicy::BlockAck, Some(recipient)) => {
                let (start, bitmap) = recipient.block_ack();
                let answer = Frame::BlockAck {
                    category,
                    start,
                    bitmap,
                };
                self.respond(at, ppdu, len::BLOCK_ACK, Default::default(), answer);
            }
            _ => self.respond(at, ppdu, len::ACK, Default::default(), Frame::Ack),
        }
    }

    fn recipient(&mut self, from: NodeId, category: usize) -> &mut Recipient<M> {
        let index = from.index();
        if self.recipients.len() <= index {
            self.recipients
                .resize_with(index + 1, || core::array::from_fn(|_| Recipient::default()));
        }
        &mut self.recipients[index][category]
    }

    /// Answers `to` a SIFS after its end, whatever the medium does (§10.3.2.11).
    fn respond(
        &mut self,
        at: u64,
        to: &Ppdu<M>,
        psdu: u32,
        reserves: tack_base::Duration,
        frame: Frame<M>,
    ) {
        // A response to control frames uses their rate rules; to data, the mode chosen for the network.
        let mode = if to.mode == self.config.data_mode {
            self.config.control_mode
        } else {
            response_mode(to.mode)
        };
        let response = Ppdu {
            mode,
            airtime: self.config.timing.airtime(mode, psdu as usize),
            ..self.control(to.from, psdu, reserves, frame)
        };
        self.response = Some((at + self.sifs, response));
    }
}
