//! What a receiver makes of a PPDU: frame by frame, as they end.

use alloc::vec::Vec;

use tack_base::Instant;

use super::air::InFlight;
use super::host::Hosts;
use super::{Delivery, HostInterrupt, World};
use crate::frame::{Data, Frame, Msdu, NodeId, Ppdu, len};
use crate::mac::station::Station;
use crate::phy::Mode;

/// Where the packets go that a radio releases.
struct Outlet<'a, M> {
    /// The radio.
    at: NodeId,
    /// Radios of the network itself.
    members: u16,
    /// From when on the host can hear of them.
    ready: Instant,
    hosts: &'a mut Hosts<M>,
    relayed: &'a mut Vec<Msdu<M>>,
}

impl<M> Outlet<'_, M> {
    /// A packet leaves the radio: for its host, or at the access point for another station.
    #[inline]
    fn pass(&mut self, msdu: Msdu<M>) {
        let at = self.at;
        if msdu.dst != at && at == NodeId::AP && msdu.dst.0 < self.members {
            self.relayed.push(msdu);
        } else if msdu.payload.is_some() {
            self.hosts.deliver(self.ready, Delivery { at, msdu });
        }
    }
}

impl<M: Clone> World<M> {
    /// Whether `at` could read a PPDU it was locked on to, or a part of it.
    #[inline]
    pub(super) fn is_read(&mut self, at: NodeId, flight: &InFlight<M>) -> bool {
        let hit = self.radios[at.index()].hit.take();
        if hit.is_none() && self.is_quiet(flight.ppdu.from, at) {
            return true;
        }
        let ppdu = &flight.ppdu;
        if ppdu.to != Some(at) && self.overhearing.is_noisy() && self.overhearing.has(at) {
            return self.overhearing.can_read(at, flight, hit, self.mac.is_qos);
        }
        let Frame::Data(Data { mpdus, .. }) = &ppdu.frame else {
            return hit.is_none() && !self.is_lost(ppdu.from, at, ppdu.mode, ppdu.psdu);
        };
        let (mut begins, mut is_read) = (0, false);
        for mpdu in mpdus {
            let bytes = len::mpdu(mpdu.msdu.len, self.mac.is_qos);
            let ends = len::ampdu(begins, bytes);
            let is_hit = hit.is_some_and(|hit| flight.is_hit(begins, ends, hit));
            is_read |= !is_hit && !self.is_lost(ppdu.from, at, ppdu.mode, bytes);
            begins = ends;
        }
        is_read
    }

    /// True when noise spoils nothing between two radios.
    fn is_quiet(&self, from: NodeId, at: NodeId) -> bool {
        let end = if at == NodeId::AP { from } else { at };
        self.errors[end.index()].is_perfect()
    }

    /// Whether noise spoils an MPDU of `bytes` between two radios.
    fn is_lost(&mut self, from: NodeId, at: NodeId, mode: Mode, bytes: u32) -> bool {
        let loss = self.loss(from, at, mode, bytes);
        self.noise[at.index()].chance(loss)
    }

    /// Frames within A-MPDUs whose end has come are received. A receiver does not wait for the end
    /// of the PPDU: what its host has to say to a frame is queued while the rest is still on
    /// the air.
    pub(super) fn receive_frames(&mut self, at: Instant) {
        let mut position = 0;
        while position < self.air.flights.len() {
            if self.air.flights[position].arriving.at <= at {
                let mut flight = self.air.flights.remove(position);
                let receiver = flight.ppdu.to.map_or(usize::MAX, NodeId::index);
                let radio = self.radios.get(receiver);
                if radio.is_some_and(|radio| radio.lock == Some(flight.number)) {
                    while flight.arriving.at <= at {
                        self.receive_frame(receiver, &mut flight);
                    }
                } else {
                    flight.arriving.at = Instant::FAR_FUTURE;
                }
                self.air.flights.insert(position, flight);
            }
            position += 1;
        }
    }

    /// What is left of a PPDU when it ends. Says whether anything of it was read.
    pub(super) fn receive_rest(
        &mut self,
        now: Instant,
        receiver: usize,
        flight: &mut InFlight<M>,
    ) -> bool {
        let count = match &flight.ppdu.frame {
            Frame::Data(data) => data.mpdus.len(),
            _ => 0,
        };
        while flight.arriving.index < count {
            self.receive_frame(receiver, flight);
        }
        self.radios[receiver].hit = None;
        let any = flight.arriving.any;
        if any {
            self.stations[receiver].finish_data(now, &flight.ppdu);
        }
        any
    }

    /// The next frame of a PPDU has ended at its receiver.
    fn receive_frame(&mut self, receiver: usize, flight: &mut InFlight<M>) {
        let arriving = flight.arriving;
        let id = NodeId(receiver as u16);
        let from = flight.ppdu.from;
        let hit = self.radios[receiver].hit;
        let is_hit = hit.is_some_and(|hit| flight.is_hit(arriving.begins, arriving.ends, hit));
        let bytes = match &flight.ppdu.frame {
            Frame::Data(data) => {
                let mpdu = data.mpdus.get(arriving.index);
                mpdu.map_or(0, |mpdu| len::mpdu(mpdu.msdu.len, self.mac.is_qos))
            }
            _ => flight.ppdu.psdu,
        };
        let is_lost =
            is_hit || (!self.is_quiet(from, id) && self.is_lost(from, id, flight.ppdu.mode, bytes));
        if !is_lost && let Frame::Data(data) = &mut flight.ppdu.frame {
            let now = self.now;
            if self.interrupt == HostInterrupt::Ppdu {
                self.ready = flight.end;
            }
            let known = self.ready.max(self.now);
            if !flight.arriving.any {
                flight.arriving.any = true;
                self.stations[receiver].on_data_header(known, from, data, arriving.index);
            }
            if let Some(mpdu) = data.mpdus.get_mut(arriving.index) {
                self.take_in(receiver, |station, mut outlet| {
                    station.receive_mpdu(now, from, mpdu, |msdu| outlet.pass(msdu));
                });
            }
            if self.hack.is_on() {
                // Its driver will hear of the frame.
                self.rewake(receiver);
                self.next = self.next.min(self.wakes.of(receiver));
            }
        }
        flight.seek(arriving.index + 1, self.mac.is_qos);
    }

    /// A radio takes a control frame that is for it.
    pub(super) fn hand_over(&mut self, now: Instant, at: usize, ppdu: &Ppdu<M>) {
        if !matches!(ppdu.frame, Frame::Data(_)) {
            self.take_in(at, |station, mut outlet| {
                station.receive_control(now, ppdu, |msdu| outlet.pass(msdu));
            });
            self.deliver_rebuilt(ppdu.from, at);
        }
    }

    /// What a radio rebuilt from a response of `from` goes on. Nobody but a simulator can tell
    /// whether it is right.
    #[inline]
    fn deliver_rebuilt(&mut self, from: NodeId, at: usize) {
        let to = NodeId(at as u16);
        while let Some(mut ack) = self.stations[at].poll_rebuilt() {
            let original = self.stations[from.index()].original(to, ack.msn).cloned();
            self.stations[at].compare_rebuilt(&mut ack, original.as_ref());
            self.take_in(at, |_, mut outlet| outlet.pass(ack.msdu));
        }
    }

    /// A radio releases what has waited too long for a frame before it.
    pub(super) fn release_overdue(&mut self, at: usize) {
        let now = self.now;
        if self.stations[at].holds_overdue(now) {
            self.take_in(at, |station, mut outlet| {
                station.release_overdue(now, |msdu| outlet.pass(msdu));
            });
        }
    }

    /// Lets a radio receive; what it releases goes on to where it shall leave.
    #[inline]
    fn take_in(&mut self, at: usize, receive: impl FnOnce(&mut Station<M>, Outlet<'_, M>)) {
        let outlet = Outlet {
            at: NodeId(at as u16),
            members: self.members,
            ready: self.ready.max(self.now),
            hosts: &mut self.hosts,
            relayed: &mut self.relayed,
        };
        receive(&mut self.stations[at], outlet);
        if !self.relayed.is_empty() {
            self.relay(at);
        }
    }

    /// What radio `at`, the access point's, has released for stations goes on to them.
    fn relay(&mut self, at: usize) {
        // Between stations: through the access point's host and its queue. A full queue drops and
        // counts.
        let mut relayed = core::mem::take(&mut self.relayed);
        for msdu in relayed.drain(..) {
            if let Some(msdu) = self.hosts.relay(self.now, self.ready, msdu) {
                let _dropped = self.put(NodeId::AP, msdu.dst, msdu);
            }
        }
        self.relayed = relayed;
        self.touch(at);
        self.next = self
            .next
            .min(self.wakes.of(at))
            .min(self.hosts.next_entry());
    }
}
