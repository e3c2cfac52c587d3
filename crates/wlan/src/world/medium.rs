//! The medium: who hears which part of what.
//!
//! All signals arrive with the same power: there is no capture. A receiver locks on to a signal
//! that begins while it hears nothing else. Another one that begins before the PHY header was read
//! destroys both for it: it senses energy and no frame, so no EIFS follows; one that still runs
//! goes on. One that begins later spoils the MPDUs it overlaps, and EIFS follows when none is left.

use alloc::boxed::Box;

use tack_base::{Duration, Instant};

use super::accounts::Network;
use super::air::InFlight;
use super::{Capture, Captured, World};
use crate::frame::{Data, Frame, NodeId, Ppdu, len};
use crate::mac::MacConfig;
use crate::mac::access::BusyEnd;
use crate::phy::response::response_mode;

impl<M: Clone> World<M> {
    /// `ppdu` goes on the air.
    pub(super) fn begin(&mut self, at: Instant, ppdu: Ppdu<M>) {
        let from = ppdu.from.index();
        if let Some(to) = ppdu.to {
            self.single_out(to.index());
        }
        let number = self.air.sent;
        self.air.sent += 1;
        self.fold(at, &ppdu);
        if self.capture == Capture::On {
            let ppdu = ppdu.clone();
            self.captured.push_back(Captured { at, ppdu, number });
        }
        let network = if ppdu.from.0 < self.members {
            Network::Own
        } else {
            Network::Neighbour
        };
        let mut flight = Box::new(InFlight::new(number, at, ppdu, network));
        // The sender hears nothing else while it sends.
        let sender = &mut self.radios[from];
        debug_assert!(!sender.is_sending, "no radio sends two PPDUs at once");
        sender.is_sending = true;
        sender.last = BusyEnd::Energy;
        if let Some(lost) = sender.lock.take()
            && let Some(lost) = self.air.find(lost)
        {
            lost.is_collided |= lost.ppdu.to == Some(NodeId(from as u16));
        }
        self.stations[from].on_reception_lost();
        self.stations[from].on_busy(at);
        self.rewake(from);
        let listeners = self.take_listeners(from);
        self.looks += listeners.radios.len() as u64;
        for listener in &listeners.radios {
            if self.is_told(from, *listener, listeners.which) {
                self.reach(at, usize::from(*listener), &mut flight);
            }
        }
        self.give_back(from, listeners);
        self.reach_crowds(at, &flight);
        flight.seek(0, self.mac.is_qos);
        self.air.flights.push(flight);
    }

    /// The signal of `flight` begins to reach a radio.
    #[inline]
    fn reach(&mut self, now: Instant, listener: usize, flight: &mut InFlight<M>) {
        let radio = &mut self.radios[listener];
        radio.heard += 1;
        let is_for_it = flight.ppdu.to == Some(NodeId(listener as u16));
        if radio.is_sending {
            flight.is_collided |= is_for_it;
            return;
        }
        let station = &mut self.stations[listener];
        if radio.heard == 1 {
            radio.lock_on(flight.number);
            station.on_busy(now);
            station.on_reception_start(flight.header_end);
            self.rewake(listener);
        } else {
            // To a radio that senses energy already, more of it moves no deadline.
            flight.is_collided |= is_for_it;
            if let Some(other) = radio.lock.and_then(|number| self.air.find(number)) {
                other.is_collided |= other.ppdu.to == Some(NodeId(listener as u16));
                if radio.overlap(flight, other) {
                    station.on_reception_lost();
                }
            }
        }
    }

    /// The PPDU at `position` ends.
    pub(super) fn end(&mut self, at: Instant, position: usize) {
        self.single_out_failing(position);
        let mut flight = self.air.flights.remove(position);
        let from = flight.ppdu.from.index();
        self.radios[from].is_sending = false;
        if flight.is_collided && flight.ppdu.wants_response() {
            self.stations[from].on_collision();
        }
        self.stations[from].on_transmitted(at, &flight.ppdu);
        if self.radios[from].heard == 0 {
            self.stations[from].on_idle(at, BusyEnd::Energy);
        }
        if self.stations[from].is_in_exchange() {
            // It waits for a response: its queues are what they were.
            self.rewake(from);
        } else {
            self.touch(from);
        }
        let listeners = self.take_listeners(from);
        self.looks += listeners.radios.len() as u64;
        // The receiver comes last: it takes the MPDUs out.
        self.fade_crowds(at, &flight);
        let receiver = flight.ppdu.to.map(|to| to.0);
        let mut is_received = false;
        for listener in &listeners.radios {
            if !self.is_told(from, *listener, listeners.which) {
                continue;
            }
            if Some(*listener) == receiver {
                is_received = true;
            } else {
                self.fade(at, usize::from(*listener), &mut flight);
            }
        }
        if is_received && let Some(receiver) = receiver {
            self.fade(at, usize::from(receiver), &mut flight);
        }
        self.give_back(from, listeners);
        if matches!(flight.ppdu.frame, Frame::Rts) {
            let mode = response_mode(flight.ppdu.mode);
            let cts = self.mac.timing.airtime(mode, len::ACK as usize);
            let look = at + announcement(&self.mac, cts);
            self.air.announcements.push((look, flight.number));
        }
        if let Frame::Data(data) = flight.ppdu.frame {
            let Data {
                mpdus, category, ..
            } = data;
            if flight.arriving.any {
                self.stations[from].recycle(mpdus);
            } else {
                self.stations[from].keep(flight.ppdu.to, category, mpdus);
            }
        }
    }

    /// The signal of `flight` ends at a radio.
    #[inline]
    fn fade(&mut self, now: Instant, listener: usize, flight: &mut InFlight<M>) {
        let radio = &mut self.radios[listener];
        radio.heard -= 1;
        let is_locked = radio.lock == Some(flight.number);
        let is_idle = radio.heard == 0 && !radio.is_sending;
        if is_locked {
            let was_in_exchange = self.stations[listener].is_in_exchange();
            self.take_signal(now, listener, flight);
            let last = self.radios[listener].last;
            if is_idle {
                self.stations[listener].on_idle(now, last);
            }
            if was_in_exchange || flight.ppdu.to == Some(NodeId(listener as u16)) {
                self.touch(listener);
            } else {
                self.rewake(listener);
            }
        } else if is_idle {
            let station = &mut self.stations[listener];
            station.on_idle(now, radio.last);
            // What an exchange waits for does not depend on carrier sense.
            if !station.is_in_exchange() {
                self.rewake(listener);
            }
        }
    }

    /// What a radio makes of `flight`, which it was locked on to and which ends.
    fn take_signal(&mut self, now: Instant, listener: usize, flight: &mut InFlight<M>) {
        let radio = &mut self.radios[listener];
        radio.lock = None;
        radio.announced = None;
        let id = NodeId(listener as u16);
        let is_for_it = flight.ppdu.to == Some(id);
        let is_read = if is_for_it && matches!(flight.ppdu.frame, Frame::Data(_)) {
            self.receive_rest(now, listener, flight)
        } else {
            self.is_read(id, flight)
        };
        let station = &mut self.stations[listener];
        let radio = &mut self.radios[listener];
        radio.last = BusyEnd::Frame;
        if !is_read {
            radio.last = BusyEnd::Error;
            station.on_reception_error(now);
        } else if is_for_it {
            self.hand_over(now, listener, &flight.ppdu);
        } else {
            if matches!(flight.ppdu.frame, Frame::Rts) {
                radio.announced = Some(flight.number);
            }
            station.overhear(now, &flight.ppdu);
        }
    }

    /// Radios whose NAV an RTS set look whether anything followed it.
    pub(super) fn reset_navs(&mut self, at: Instant) {
        while let Some(position) = self
            .air
            .announcements
            .iter()
            .position(|(look, _)| *look <= at)
        {
            let (_, number) = self.air.announcements.remove(position);
            if let Some(crowds) = &mut self.crowds {
                crowds.reset_nav(at, number);
            }
            for index in 0..self.radios.len() {
                if self.crowds.as_ref().is_some_and(|crowds| crowds.has(index)) {
                    continue;
                }
                let radio = &mut self.radios[index];
                // Something being received now may be what was announced.
                if radio.announced == Some(number) && radio.lock.is_none() {
                    radio.announced = None;
                    self.stations[index].reset_nav(at);
                    self.rewake(index);
                }
            }
        }
    }

    fn fold(&mut self, at: Instant, ppdu: &Ppdu<M>) {
        let to = ppdu.to.map_or(u64::MAX, |to| u64::from(to.0));
        for word in [
            at.as_nanos(),
            u64::from(ppdu.from.0) << 32 | u64::from(ppdu.psdu),
            to,
        ] {
            let mixed = (self.digest ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
            self.digest = mixed ^ mixed >> 32;
        }
    }
}

/// How long a radio that heard an RTS waits for what it announced (§10.3.2.4).
fn announcement(mac: &MacConfig, cts: Duration) -> Duration {
    let timing = &mac.timing;
    let start = timing.rx_start_delay.max(mac.control_mode.header());
    2 * timing.sifs + cts + start + 2 * timing.slot
}
