//! The medium: who hears which part of what.
//!
//! All signals arrive with the same power: there is no capture. A receiver locks on to a signal that begins while it hears
//! nothing else. Another one that begins before the PHY header was read destroys both for it: it senses energy and no frame,
//! so no EIFS follows. One that begins later spoils the MPDUs it overlaps, and EIFS follows when none is left.

use alloc::vec::Vec;

use tack_base::Instant;
use tack_base::time::nanos;

use super::accounts::AirState;
use super::{Capture, Captured, Delivery, World, announcement};
use crate::frame::{Data, Frame, Msdu, NodeId, Ppdu, len};
use crate::mac::access::BusyEnd;
use crate::mac::station::Station;
use crate::phy::Mode;
use crate::phy::response::response_mode;

/// What a radio hears.
#[derive(Clone, Debug)]
pub(super) struct Radio {
    /// Signals that reach it, its own not counted.
    heard: u16,
    is_sending: bool,
    /// The number of the PPDU it is locked on to.
    lock: Option<u64>,
    /// From when to when other signals overlapped that PPDU after its header.
    hit: Option<(u64, u64)>,
    /// How the last reception ended.
    last: BusyEnd,
    /// The RTS that set its NAV, if nothing was received since.
    announced: Option<u64>,
    pub(super) is_active: bool,
}

impl Default for Radio {
    fn default() -> Self {
        Self {
            heard: 0,
            is_sending: false,
            lock: None,
            hit: None,
            last: BusyEnd::Clean,
            announced: None,
            is_active: false,
        }
    }
}

/// A PPDU on the air.
#[derive(Clone, Debug)]
struct InFlight<M> {
    number: u64,
    ppdu: Ppdu<M>,
    start: u64,
    header_end: u64,
    end: u64,
    use_of_air: AirState,
    /// Another signal spoils it at its receiver.
    is_collided: bool,
    /// Reception of the frames of an A-MPDU, one by one.
    arriving: Arriving,
}

/// How far the receiver has come with an A-MPDU.
#[derive(Clone, Copy, Debug)]
struct Arriving {
    /// The next frame, and where it begins in the PSDU.
    index: usize,
    begins: u32,
    ends: u32,
    /// When it ends; never, when the receiver does not receive, or only the last frame is left.
    at: u64,
    /// One frame at least was read.
    any: bool,
}

impl<M> InFlight<M> {
    /// Goes to frame `index` of the PSDU. All but the last have an end of their own before that of the PPDU.
    fn seek(&mut self, index: usize, is_qos: bool) {
        let Frame::Data(data) = &self.ppdu.frame else {
            return;
        };
        let (begins, count) = (self.arriving.ends, data.mpdus.len());
        let Some(mpdu) = data.mpdus.get(index) else {
            self.arriving.index = index;
            self.arriving.at = u64::MAX;
            return;
        };
        let ends = len::ampdu(begins, len::mpdu(mpdu.msdu.len, is_qos));
        self.arriving.index = index;
        self.arriving.begins = begins;
        self.arriving.ends = ends;
        self.arriving.at = if index + 1 < count {
            self.place(ends)
        } else {
            u64::MAX
        };
    }

    /// When a byte of the PSDU is on the air, by its place in it.
    fn place(&self, byte: u32) -> u64 {
        let data = u128::from(self.end - self.header_end);
        let into = data * u128::from(byte) / u128::from(self.ppdu.psdu.max(1));
        self.header_end + into as u64
    }

    /// Whether a signal from and to these instants overlaps these bytes of the PSDU.
    fn is_hit(&self, begins: u32, ends: u32, (from, to): (u64, u64)) -> bool {
        from < self.place(ends) && self.place(begins) < to
    }
}

/// All PPDUs on the air.
#[derive(Debug)]
pub(super) struct Air<M> {
    flights: Vec<InFlight<M>>,
    sent: u64,
    active: usize,
    /// When radios look whether an RTS was followed up: (instant, number of the RTS).
    announcements: Vec<(u64, u64)>,
}

impl<M> Default for Air<M> {
    fn default() -> Self {
        Self {
            flights: Vec::new(),
            sent: 0,
            active: 0,
            announcements: Vec::new(),
        }
    }
}

impl<M> Air<M> {
    /// When the next frame within an A-MPDU has been received.
    #[inline]
    pub(super) fn next_arrival(&self) -> u64 {
        let arrivals = self.flights.iter().map(|flight| flight.arriving.at);
        arrivals.min().unwrap_or(u64::MAX)
    }

    /// The next end of a PPDU, or the next look at an RTS.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        let ends = self.flights.iter().map(|flight| flight.end);
        let looks = self.announcements.iter().map(|(at, _)| *at);
        ends.chain(looks).min().unwrap_or(u64::MAX)
    }

    /// Position of the PPDU that ends at `at`, the one with the lowest number first.
    #[inline]
    pub(super) fn ending(&self, at: u64) -> Option<usize> {
        let due = self.flights.iter().enumerate();
        due.filter(|(_, flight)| flight.end <= at)
            .min_by_key(|(_, flight)| flight.number)
            .map(|(position, _)| position)
    }

    pub(super) fn resets_nav(&self, at: u64) -> bool {
        self.announcements.iter().any(|(look, _)| *look <= at)
    }

    pub(super) fn count_active(&mut self, is_active: bool) {
        if is_active {
            self.active += 1;
        } else {
            self.active -= 1;
        }
    }

    /// What the present moment counts as.
    #[inline]
    pub(super) fn state(&self) -> AirState {
        let Some(first) = self.flights.first() else {
            return if self.active > 0 {
                AirState::Access
            } else {
                AirState::Idle
            };
        };
        if self.flights.iter().any(|flight| flight.is_collided) {
            AirState::Collision
        } else {
            first.use_of_air
        }
    }

    fn find(&mut self, number: u64) -> Option<&mut InFlight<M>> {
        self.flights
            .iter_mut()
            .find(|flight| flight.number == number)
    }
}

impl<M: Clone> World<M> {
    /// `ppdu` goes on the air.
    pub(super) fn begin(&mut self, at: u64, ppdu: Ppdu<M>) {
        let now = Instant::from_nanos(at);
        let from = ppdu.from.index();
        let number = self.air.sent;
        self.air.sent += 1;
        self.fold(at, &ppdu);
        if self.capture == Capture::On {
            let ppdu = ppdu.clone();
            self.captured.push_back(Captured {
                at: now,
                ppdu,
                number,
            });
        }
        let mut flight = InFlight {
            number,
            start: at,
            header_end: at + nanos(ppdu.mode.header()),
            end: at + nanos(ppdu.airtime),
            use_of_air: AirState::of(&ppdu),
            is_collided: false,
            arriving: Arriving {
                index: 0,
                begins: 0,
                ends: 0,
                at: u64::MAX,
                any: false,
            },
            ppdu,
        };
        // The sender hears nothing else while it sends.
        let sender = &mut self.radios[from];
        debug_assert!(!sender.is_sending, "no radio sends two PPDUs at once");
        sender.is_sending = true;
        sender.last = BusyEnd::Clean;
        if let Some(lost) = sender.lock.take()
            && let Some(lost) = self.air.find(lost)
        {
            lost.is_collided |= lost.ppdu.to == Some(NodeId(from as u16));
        }
        self.stations[from].on_reception_lost();
        self.stations[from].on_busy(now);
        self.touch(from);
        let audience = core::mem::take(&mut self.audience[from]);
        for listener in &audience {
            self.reach(now, usize::from(*listener), &mut flight);
        }
        self.audience[from] = audience;
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
            radio.lock = Some(flight.number);
            radio.hit = None;
            station.on_busy(now);
            station.on_reception_start(Instant::from_nanos(flight.header_end));
        } else {
            flight.is_collided |= is_for_it;
            if let Some(other) = radio.lock.and_then(|number| self.air.find(number)) {
                other.is_collided |= other.ppdu.to == Some(NodeId(listener as u16));
                if flight.start < other.header_end {
                    radio.lock = None;
                    station.on_reception_lost();
                } else {
                    let from = radio.hit.map_or(flight.start, |(from, _)| from);
                    let to = flight.end.min(other.end);
                    radio.hit = Some((from, radio.hit.map_or(to, |(_, end)| end.max(to))));
                }
            }
        }
        self.touch(listener);
    }

    /// The PPDU at `position` ends.
    pub(super) fn end(&mut self, at: u64, position: usize) {
        let now = Instant::from_nanos(at);
        let mut flight = self.air.flights.remove(position);
        let from = flight.ppdu.from.index();
        self.radios[from].is_sending = false;
        if flight.is_collided && flight.ppdu.wants_response() {
            self.stations[from].stats_mut().collisions += 1;
        }
        self.stations[from].on_transmitted(now, &flight.ppdu);
        if self.radios[from].heard == 0 {
            self.stations[from].on_idle(now, BusyEnd::Clean);
        }
        self.touch(from);
        let audience = core::mem::take(&mut self.audience[from]);
        // The receiver comes last: it takes the MPDUs out.
        let receiver = flight.ppdu.to.map(|to| to.0);
        for listener in audience.iter().filter(|to| Some(**to) != receiver) {
            self.fade(now, usize::from(*listener), &mut flight);
        }
        if let Some(receiver) = receiver.filter(|to| audience.contains(to)) {
            self.fade(now, usize::from(receiver), &mut flight);
        }
        self.audience[from] = audience;
        if matches!(flight.ppdu.frame, Frame::Rts) {
            let mode = response_mode(flight.ppdu.mode);
            let cts = self.mac.timing.airtime(mode, len::ACK as usize);
            let look = at + announcement(&self.mac, cts);
            self.air.announcements.push((look, flight.number));
        }
        if let Frame::Data(Data { mpdus, .. }) = flight.ppdu.frame {
            self.stations[from].recycle(mpdus);
        }
    }

    /// The signal of `flight` ends at a radio.
    #[inline]
    fn fade(&mut self, now: Instant, listener: usize, flight: &mut InFlight<M>) {
        let radio = &mut self.radios[listener];
        radio.heard -= 1;
        if radio.lock == Some(flight.number) {
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
            radio.last = BusyEnd::Clean;
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
        let radio = &self.radios[listener];
        if radio.heard == 0 && !radio.is_sending {
            self.stations[listener].on_idle(now, radio.last);
        }
        self.touch(listener);
    }

    /// Whether `at` could read a PPDU it was locked on to, or a part of it.
    #[inline]
    fn is_read(&mut self, at: NodeId, flight: &InFlight<M>) -> bool {
        let hit = self.radios[at.index()].hit.take();
        if hit.is_none() && self.is_quiet(flight.ppdu.from, at) {
            return true;
        }
        let ppdu = &flight.ppdu;
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

    /// Frames within A-MPDUs whose end has come are received. A receiver does not wait for the end of the PPDU: what its host
    /// has to say to a frame is queued while the rest is still on the air.
    pub(super) fn receive_frames(&mut self, at: u64) {
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
                    flight.arriving.at = u64::MAX;
                }
                self.air.flights.insert(position, flight);
            }
            position += 1;
        }
    }

    /// What is left of a PPDU when it ends. Says whether anything of it was read.
    fn receive_rest(&mut self, now: Instant, receiver: usize, flight: &mut InFlight<M>) -> bool {
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
        if !is_lost
            && let Frame::Data(data) = &mut flight.ppdu.frame
            && let Some(mpdu) = data.mpdus.get_mut(arriving.index)
        {
            flight.arriving.any = true;
            self.take_in(receiver, |station, deliver| {
                station.receive_mpdu(from, mpdu, deliver);
            });
        }
        flight.seek(arriving.index + 1, self.mac.is_qos);
    }

    /// A radio takes a control frame that is for it.
    fn hand_over(&mut self, now: Instant, at: usize, ppdu: &Ppdu<M>) {
        if !matches!(ppdu.frame, Frame::Data(_)) {
            self.take_in(at, |station, deliver| {
                station.receive_control(now, ppdu, deliver);
            });
        }
    }

    /// Lets a radio receive; what it releases goes on to where it shall leave.
    #[inline]
    fn take_in(
        &mut self,
        at: usize,
        receive: impl FnOnce(&mut Station<M>, &mut dyn FnMut(Msdu<M>)),
    ) {
        let Self {
            stations,
            deliveries,
            members,
            relayed,
            ..
        } = self;
        let at_id = NodeId(at as u16);
        receive(&mut stations[at], &mut |msdu| {
            if msdu.dst != at_id && at_id == NodeId::AP && msdu.dst.0 < *members {
                relayed.push(msdu);
            } else if msdu.payload.is_some() {
                deliveries.push_back(Delivery { at: at_id, msdu });
            }
        });
        if self.relayed.is_empty() {
            return;
        }
        // Between stations: through the access point's queue. A full queue drops and counts.
        let now = Instant::from_nanos(self.now);
        let mut relayed = core::mem::take(&mut self.relayed);
        for msdu in relayed.drain(..) {
            let to = msdu.dst;
            let _dropped = self.stations[at].enqueue(now, to, msdu);
        }
        self.relayed = relayed;
        self.touch(at);
        self.next = self.next.min(self.wakes[at]);
    }

    /// Radios whose NAV an RTS set look whether anything followed it.
    pub(super) fn reset_navs(&mut self, at: u64) {
        let now = Instant::from_nanos(at);
        while let Some(position) = self
            .air
            .announcements
            .iter()
            .position(|(look, _)| *look <= at)
        {
            let (_, number) = self.air.announcements.remove(position);
            for index in 0..self.radios.len() {
                let radio = &mut self.radios[index];
                // Something being received now may be what was announced.
                if radio.announced == Some(number) && radio.lock.is_none() {
                    radio.announced = None;
                    self.stations[index].reset_nav(now);
                    self.touch(index);
                }
            }
        }
    }

    fn fold(&mut self, at: u64, ppdu: &Ppdu<M>) {
        let to = ppdu.to.map_or(u64::MAX, |to| u64::from(to.0));
        for word in [at, u64::from(ppdu.from.0) << 32 | u64::from(ppdu.psdu), to] {
            let mixed = (self.digest ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
            self.digest = mixed ^ mixed >> 32;
        }
    }
}
