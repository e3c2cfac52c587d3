//! TCP/HACK at a radio: where its driver and its NIC meet queues and frames.

use alloc::vec::Vec;

use tack_base::{Duration, Instant};

use super::Station;
use crate::frame::{AccessCategory, AckPolicy, Class, Data, Frame, Mpdu, Msdu, NodeId, Ppdu};
use crate::mac::hack::{FlowId, Hack, HackStats, Native, QueueChanges, RebuiltAck};
use crate::mac::originator::{Originator, Settlement};
use crate::mac::recipient::Recipient;

impl<M: Clone> Station<M> {
    /// Turns TCP/HACK on, before anything is queued.
    pub fn set_hack(&mut self, mut hack: Hack<M>) {
        hack.set_reorder_timeout(self.config.reorder_timeout);
        self.hack = Some(alloc::boxed::Box::new(hack));
        for queue in &mut self.queues {
            queue.watch_acks();
        }
    }

    /// Counters of TCP/HACK, where it is on.
    pub fn hack_stats(&self) -> Option<&HackStats> {
        self.hack.as_deref().map(Hack::stats)
    }

    /// The next acknowledgement that was rebuilt from a response.
    #[inline]
    pub fn poll_rebuilt(&mut self) -> Option<RebuiltAck<M>> {
        self.hack.as_mut()?.poll_rebuilt()
    }

    /// Where the descriptor with this number in the last response to `to` came from.
    pub fn original(&self, to: NodeId, msn: u8) -> Option<&M> {
        self.hack.as_ref()?.original(to, msn)
    }

    /// Compares a rebuilt acknowledgement with what it came from, as only a simulator can, and
    /// gives it what does not travel.
    pub fn compare_rebuilt(&mut self, ack: &mut RebuiltAck<M>, original: Option<&M>) {
        if let Some(hack) = &mut self.hack {
            hack.compare(ack, original);
        }
    }

    /// An acknowledgement of the transport comes from the host.
    pub(super) fn enqueue_ack(
        &mut self,
        now: Instant,
        to: NodeId,
        msdu: Msdu<M>,
    ) -> Result<(), Msdu<M>> {
        if let Some(hack) = &mut self.hack
            && let Some(flow) = hack.lacks_twins(to, &msdu)
        {
            self.compress_waiting(now, to, flow);
        }
        let Some(hack) = &mut self.hack else {
            return self.push(now, to, msdu);
        };
        let changes = hack.admit(now, to, msdu);
        self.apply(now, changes)
    }

    /// Changes the transmit queue as the driver asks. The result is that of the last
    /// acknowledgement that joins the queue.
    fn apply(&mut self, at: Instant, changes: QueueChanges<M>) -> Result<(), Msdu<M>> {
        let QueueChanges {
            to,
            recalled,
            natives,
            lacks_twins,
        } = changes;
        self.take_out(at, to, &recalled);
        let mut last = Ok(());
        for native in natives {
            last = self.push_native(at, native);
        }
        if let Some(flow) = lacks_twins {
            self.compress_waiting(at, to, flow);
        }
        last
    }

    fn push_native(&mut self, now: Instant, native: Native<M>) -> Result<(), Msdu<M>> {
        let Native { msdu, to, is_twin } = native;
        let packet = msdu.payload.clone();
        let function = self.function(msdu.category);
        if is_twin && self.queues[function].is_full() {
            if let (Some(hack), Some(packet)) = (&mut self.hack, packet) {
                hack.on_refused(now, to, &packet);
            }
            return Ok(());
        }
        let outcome = self.push(now, to, msdu);
        if let (Some(hack), Some(packet), Ok(())) = (&mut self.hack, packet, &outcome) {
            hack.on_queued(to, &packet);
        }
        outcome
    }

    /// Acknowledgements of a flow that wait in the transmit queue and were never sent are held
    /// compressed from now on, too.
    fn compress_waiting(&mut self, at: Instant, to: NodeId, flow: FlowId) {
        let Some(hack) = &mut self.hack else {
            return;
        };
        let mut waiting = Vec::new();
        let originators = self.queues.iter().filter_map(|queue| queue.originator(to));
        for msdu in originators.flat_map(|originator| originator.waiting().iter()) {
            if msdu.class == Class::TransportAck && hack.flow(to, msdu) == Some(flow) {
                waiting.push(msdu.clone());
            }
        }
        // Several categories have no order among each other.
        if waiting
            .windows(2)
            .any(|two| two[0].category != two[1].category)
        {
            return;
        }
        let recalled = hack.compress_waiting(at, (to, flow), waiting);
        self.take_out(at, to, &recalled);
    }

    /// The driver does what is due.
    pub(super) fn run_driver(&mut self, at: Instant) {
        if let Some(hack) = &mut self.hack {
            hack.set_now(at);
        }
        while let Some(hack) = &mut self.hack
            && hack.next() <= at
            && let Some(changes) = hack.handle_timeout(at)
        {
            // What finds the queue full is dropped, which is counted.
            let _dropped = self.apply(at, changes);
        }
    }

    /// The header of frame `index` of a PPDU for this radio was read, the first one of it that
    /// could be. The host can know at `at`.
    #[inline]
    pub fn on_data_header(&mut self, at: Instant, from: NodeId, data: &Data<M>, index: usize) {
        if data.ack == AckPolicy::BlockAck && self.agreements.is_some() {
            self.reorder(from, data.category as usize, Recipient::confirm);
        }
        let Some(hack) = &mut self.hack else {
            return;
        };
        let arrived = hack.on_data_header(at, from, data, index);
        self.take_out(at, from, &arrived);
    }

    /// MORE DATA and SYNC of a PPDU with `sent` frames to `to`.
    pub(super) fn promises(&self, to: NodeId, sent: usize) -> (bool, bool) {
        let Some(hack) = &self.hack else {
            return (false, false);
        };
        let originators = self.queues.iter().filter_map(|queue| queue.originator(to));
        let queued: usize = originators.map(Originator::len).sum();
        (queued > sent, hack.sync(to))
    }

    /// Frames are put together for the air.
    pub(super) fn on_leaving(&mut self, to: NodeId, function: usize, mpdus: &[Mpdu<M>]) {
        let Some(hack) = &mut self.hack else {
            return;
        };
        for mpdu in mpdus.iter().filter(|mpdu| !mpdu.retry) {
            if let (Class::TransportAck, Some(packet)) = (mpdu.msdu.class, &mpdu.msdu.payload) {
                hack.on_leaving((to, function), mpdu.seq, packet);
            }
        }
    }

    /// The originator for `to` has settled frames.
    pub(super) fn tell_settled(&mut self, at: Instant, function: usize, to: NodeId) {
        let Some(hack) = &mut self.hack else {
            return;
        };
        let queue = &mut self.queues[function];
        let settled: Vec<Settlement<M>> = queue.change(to, Originator::take_settled);
        let start = queue.originator(to).and_then(Originator::settled_before);
        hack.on_settled(at, (to, function), settled, start);
    }

    /// A response goes on the air, now or never: it carries what is ready.
    pub(super) fn load(&mut self, at: Instant, mut response: Ppdu<M>) -> Ppdu<M> {
        let protection = self.protection();
        let (Some(hack), Some(to)) = (&mut self.hack, response.to) else {
            return response;
        };
        let (Frame::Ack { carried } | Frame::BlockAck { carried, .. }) = &mut response.frame else {
            return response;
        };
        if self.is_sending {
            hack.on_responded(at, to);
            return response;
        }
        let twins = hack.load(at, to, carried);
        hack.on_responded(at, to);
        if !carried.is_empty() {
            response.psdu = response.frame.control_len();
            let timing = &self.config.timing;
            let plain = response.airtime;
            response.airtime = timing.airtime(response.mode, response.psdu as usize);
            if response.airtime <= plain + protection {
                hack.count_fitting();
            }
        }
        self.take_out(at, to, &twins);
        response
    }

    /// What protects a lengthened response from radios that do not hear it: their AIFS after the
    /// end of the reservation.
    fn protection(&self) -> Duration {
        let best_effort = &self.config.contention[AccessCategory::BestEffort as usize];
        self.config.timing.sifs + best_effort.aifsn * self.config.timing.slot
    }

    /// Takes acknowledgements out of the transmit queue that were never sent: they leave another
    /// way.
    fn take_out(&mut self, at: Instant, to: NodeId, twins: &[Msdu<M>]) {
        let mut from = 0;
        for twin in twins {
            let (Some(hack), Some(packet)) = (&self.hack, &twin.payload) else {
                continue;
            };
            let function = self.function(twin.category);
            let Some(originator) = self.queues[function].originator(to) else {
                continue;
            };
            let is_twin = |msdu: &Msdu<M>| {
                let other = msdu.payload.as_ref().filter(|_| msdu.class == twin.class);
                other.is_some_and(|other| hack.is_same(to, packet, other))
            };
            // They mostly are in order, each behind the one before.
            let waiting = originator.waiting();
            let behind = waiting.iter().skip(from).position(is_twin);
            let position = behind.map(|behind| from + behind);
            let Some(position) = position.or_else(|| waiting.iter().position(is_twin)) else {
                continue;
            };
            from = position;
            if let Some(msdu) = self.queues[function].remove(to, position) {
                self.stats.removed += 1;
                if let Some(hack) = &mut self.hack {
                    hack.on_taken(to, &msdu);
                }
                self.wish(at, function);
            }
        }
    }

    /// Whether `to` answered the last frame that wanted a response.
    pub(super) fn note_answer(&mut self, to: NodeId, is_answered: bool) {
        if let Some(hack) = &mut self.hack {
            hack.set_answered(to, is_answered);
        }
    }

    /// Earliest time at which the driver has something to do.
    #[inline]
    pub(super) fn next_interrupt(&self) -> Instant {
        let hack = self.hack.as_ref();
        hack.map_or(Instant::FAR_FUTURE, |hack| hack.next())
    }
}

/// Lets the driver see what is delivered.
pub(super) fn seen<M: Clone>(
    hack: &mut Option<alloc::boxed::Box<Hack<M>>>,
    (now, from): (Instant, NodeId),
    msdu: &Msdu<M>,
) {
    if let Some(hack) = hack {
        hack.on_delivered(now, from, msdu);
    }
}
