//! TCP/HACK at a radio: where its driver and its NIC meet queues and frames.

use alloc::vec::Vec;

use tack_base::{Duration, Instant};

use super::Station;
use crate::frame::{AccessCategory, Class, Data, Frame, Mpdu, Msdu, NodeId, Ppdu};
use crate::mac::hack::{Hack, HackStats, RebuiltAck};
use crate::mac::link::{Link, Settlement};

impl<M: Clone> Station<M> {
    /// Turns TCP/HACK on, before anything is queued.
    pub fn set_hack(&mut self, mut hack: Hack<M>) {
        hack.set_patience(self.config.reorder_timeout);
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

    /// Compares a rebuilt acknowledgement with what it came from, as only a simulator can, and gives it what does not travel.
    pub fn compare_rebuilt(&mut self, ack: &mut RebuiltAck<M>, original: &M) {
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
        let Some(hack) = &mut self.hack else {
            return self.push(now, to, msdu);
        };
        let mut last = Ok(());
        for native in hack.admit(now.as_nanos(), to, msdu) {
            last = self.push_native(now, native.to, native.msdu);
        }
        last
    }

    fn push_native(&mut self, now: Instant, to: NodeId, msdu: Msdu<M>) -> Result<(), Msdu<M>> {
        let packet = msdu.payload.clone();
        let outcome = self.push(now, to, msdu);
        if let (Some(hack), Some(packet)) = (&mut self.hack, packet) {
            match outcome {
                Ok(()) => hack.on_queued(to, &packet),
                Err(_) => hack.on_refused(to, &packet),
            }
        }
        outcome
    }

    /// The driver does what is due.
    pub(super) fn run_driver(&mut self, at: u64) {
        if let Some(hack) = &mut self.hack {
            hack.set_now(at);
        }
        while let Some(hack) = &mut self.hack
            && hack.next() <= at
            && let Some(natives) = hack.handle_timeout(at)
        {
            for native in natives {
                // A full queue drops it, which is counted.
                let _dropped = self.push_native(Instant::from_nanos(at), native.to, native.msdu);
            }
        }
    }

    /// The header of frame `index` of a PPDU for this radio was read, the first one of it that could be. The host can know at
    /// `known`.
    #[inline]
    pub fn on_data_header(&mut self, known: Instant, from: NodeId, data: &Data<M>, index: usize) {
        if let Some(hack) = &mut self.hack {
            hack.on_data_header(known.as_nanos(), from, data, index);
        }
    }

    /// MORE DATA and SYNC of a PPDU with `sent` frames to `to`.
    pub(super) fn promises(&self, to: NodeId, sent: usize) -> (bool, bool) {
        let Some(hack) = &self.hack else {
            return (false, false);
        };
        let links = self.queues.iter().filter_map(|queue| queue.link(to));
        let queued: usize = links.map(Link::len).sum();
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

    /// The link to `to` has settled frames.
    pub(super) fn tell_settled(&mut self, at: u64, function: usize, to: NodeId) {
        let Some(hack) = &mut self.hack else {
            return;
        };
        let queue = &mut self.queues[function];
        let settled: Vec<Settlement<M>> = queue.change(to, Link::take_settled);
        let start = queue.link(to).and_then(Link::settled_before);
        hack.on_settled(at, (to, function), settled, start);
    }

    /// A response goes on the air, now or never: it carries what is ready.
    pub(super) fn load(&mut self, at: u64, mut response: Ppdu<M>) -> Ppdu<M> {
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
        for twin in twins {
            self.take_out(at, to, &twin);
        }
        response
    }

    /// What protects a lengthened response from radios that do not hear it: their AIFS after the end of the reservation.
    fn protection(&self) -> Duration {
        let best_effort = &self.config.contention[AccessCategory::BestEffort as usize];
        self.config.timing.sifs + best_effort.aifsn * self.config.timing.slot
    }

    /// Takes an acknowledgement out of the transmit queue that left another way.
    fn take_out(&mut self, at: u64, to: NodeId, twin: &Msdu<M>) {
        let Some(packet) = &twin.payload else {
            return;
        };
        let (Some(hack), Some(waiting)) = (&self.hack, self.waiting(twin.category, to)) else {
            return;
        };
        let is_twin = |msdu: &Msdu<M>| {
            let other = msdu.payload.as_ref();
            other.is_some_and(|other| hack.is_same(to, packet, other))
        };
        let position = { waiting.iter().position(is_twin) };
        if let Some(position) = position {
            self.remove(Instant::from_nanos(at), twin.category, to, position);
        }
    }

    /// Whether `to` answered the last frame that wanted a response.
    pub(super) fn note_answer(&mut self, to: NodeId, is_answered: bool) {
        if let Some(hack) = &mut self.hack {
            hack.set_answered(to, is_answered);
        }
    }

    /// Earliest time at which the driver has something to do, nanoseconds.
    #[inline]
    pub(super) fn next_interrupt(&self) -> u64 {
        self.hack.as_ref().map_or(u64::MAX, |hack| hack.next())
    }
}

/// Lets the driver see what is delivered.
pub(super) fn seen<M: Clone>(
    hack: &mut Option<alloc::boxed::Box<Hack<M>>>,
    (now, from): (Instant, NodeId),
    msdu: &Msdu<M>,
) {
    if let Some(hack) = hack {
        hack.on_delivered(now.as_nanos(), from, msdu);
    }
}
