//! What is on the air, and what each radio hears of it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tack_base::Instant;

use super::accounts::{AirState, Moment, Network};
use crate::frame::{Frame, Ppdu, len};
use crate::mac::access::BusyEnd;

/// What a radio hears.
#[derive(Clone, Debug)]
pub(super) struct Radio {
    /// Signals that reach it, its own not counted.
    pub(super) heard: u16,
    pub(super) is_sending: bool,
    /// The number of the PPDU it is locked on to.
    pub(super) lock: Option<u64>,
    /// From when to when other signals overlapped that PPDU after its header.
    pub(super) hit: Option<(Instant, Instant)>,
    /// What the busy period has ended in so far.
    pub(super) last: BusyEnd,
    /// The RTS that set its NAV, if nothing was received since.
    pub(super) announced: Option<u64>,
    pub(super) is_active: bool,
    /// Its queues have become shorter, and nobody has asked.
    pub(super) has_departures: bool,
}

impl Radio {
    /// It locks on to PPDU `number`, in the silence before which it heard nothing.
    #[inline]
    pub(super) fn lock_on(&mut self, number: u64) {
        self.lock = Some(number);
        self.hit = None;
        self.last = BusyEnd::Energy;
    }

    /// `flight` comes on top of `locked`, which it is locked on to. Says whether it loses that one.
    #[inline]
    pub(super) fn overlap<M>(&mut self, flight: &InFlight<M>, locked: &InFlight<M>) -> bool {
        if flight.start < locked.header_end {
            self.lock = None;
            return true;
        }
        let from = self.hit.map_or(flight.start, |(from, _)| from);
        let to = flight.end.min(locked.end);
        self.hit = Some((from, self.hit.map_or(to, |(_, end)| end.max(to))));
        false
    }

    /// Takes over what `other` hears.
    pub(super) fn hear_as(&mut self, other: &Self) {
        self.heard = other.heard;
        self.lock = other.lock;
        self.hit = other.hit;
        self.last = other.last;
        self.announced = other.announced;
    }

    /// Whether it hears what `other` does.
    pub(super) fn hears_as(&self, other: &Self) -> bool {
        self.heard == other.heard
            && self.lock == other.lock
            && self.hit == other.hit
            && self.last == other.last
            && self.announced == other.announced
    }
}

impl Default for Radio {
    fn default() -> Self {
        Self {
            heard: 0,
            is_sending: false,
            lock: None,
            hit: None,
            last: BusyEnd::Energy,
            announced: None,
            is_active: false,
            has_departures: false,
        }
    }
}

/// A PPDU on the air.
#[derive(Clone, Debug)]
pub(super) struct InFlight<M> {
    pub(super) number: u64,
    pub(super) ppdu: Ppdu<M>,
    pub(super) start: Instant,
    pub(super) header_end: Instant,
    pub(super) end: Instant,
    pub(super) use_of_air: AirState,
    pub(super) network: Network,
    /// Another signal spoils it at its receiver.
    pub(super) is_collided: bool,
    /// Reception of the frames of an A-MPDU, one by one.
    pub(super) arriving: Arriving,
}

/// How far the receiver has come with an A-MPDU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arriving {
    /// The next frame, and where it begins in the PSDU.
    pub(super) index: usize,
    pub(super) begins: u32,
    pub(super) ends: u32,
    /// When it ends; never, when the receiver does not receive, or only the last frame is left.
    pub(super) at: Instant,
    /// One frame at least was read.
    pub(super) any: bool,
}

impl<M> InFlight<M> {
    /// `ppdu` of a radio of `network` from `start` on.
    pub(super) fn new(number: u64, start: Instant, ppdu: Ppdu<M>, network: Network) -> Self {
        Self {
            number,
            start,
            header_end: start + ppdu.mode.header(),
            end: start + ppdu.airtime,
            use_of_air: AirState::of(&ppdu),
            network,
            is_collided: false,
            arriving: Arriving {
                index: 0,
                begins: 0,
                ends: 0,
                at: Instant::FAR_FUTURE,
                any: false,
            },
            ppdu,
        }
    }

    /// Goes to frame `index` of the PSDU. All but the last have an end of their own before that of
    /// the PPDU.
    pub(super) fn seek(&mut self, index: usize, is_qos: bool) {
        let Frame::Data(data) = &self.ppdu.frame else {
            return;
        };
        let (begins, count) = (self.arriving.ends, data.mpdus.len());
        let Some(mpdu) = data.mpdus.get(index) else {
            self.arriving.index = index;
            self.arriving.at = Instant::FAR_FUTURE;
            return;
        };
        let ends = len::ampdu(begins, len::mpdu(mpdu.msdu.len, is_qos));
        self.arriving.index = index;
        self.arriving.begins = begins;
        self.arriving.ends = ends;
        self.arriving.at = if index + 1 < count {
            self.place(ends)
        } else {
            Instant::FAR_FUTURE
        };
    }

    /// When a byte of the PSDU is on the air, by its place in it.
    pub(super) fn place(&self, byte: u32) -> Instant {
        let (from, to) = (self.header_end.as_nanos(), self.end.as_nanos());
        let data = u128::from(to - from);
        let into = data * u128::from(byte) / u128::from(self.ppdu.psdu.max(1));
        Instant::from_nanos(from + into as u64)
    }

    /// Whether a signal from and to these instants overlaps these bytes of the PSDU.
    pub(super) fn is_hit(&self, begins: u32, ends: u32, (from, to): (Instant, Instant)) -> bool {
        from < self.place(ends) && self.place(begins) < to
    }
}

/// All PPDUs on the air.
#[derive(Debug)]
pub(super) struct Air<M> {
    #[expect(
        clippy::vec_box,
        reason = "a receiver takes one out and puts it back for each frame of it"
    )]
    pub(super) flights: Vec<Box<InFlight<M>>>,
    pub(super) sent: u64,
    pub(super) active: usize,
    /// When radios look whether an RTS was followed up: (instant, number of the RTS).
    pub(super) announcements: Vec<(Instant, u64)>,
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
    pub(super) fn next_arrival(&self) -> Instant {
        let arrivals = self.flights.iter().map(|flight| flight.arriving.at);
        arrivals.min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// The next end of a PPDU, or the next look at an RTS.
    #[inline]
    pub(super) fn next(&self) -> Instant {
        let ends = self.flights.iter().map(|flight| flight.end);
        let looks = self.announcements.iter().map(|(at, _)| *at);
        ends.chain(looks).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Position of the PPDU that ends at `at`, the one with the lowest number first.
    #[inline]
    pub(super) fn ending(&self, at: Instant) -> Option<usize> {
        let due = self.flights.iter().enumerate();
        due.filter(|(_, flight)| flight.end <= at)
            .min_by_key(|(_, flight)| flight.number)
            .map(|(position, _)| position)
    }

    pub(super) fn resets_nav(&self, at: Instant) -> bool {
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
    pub(super) fn moment(&self) -> Moment {
        let Some(first) = self.flights.first() else {
            let state = if self.active > 0 {
                AirState::Access
            } else {
                AirState::Idle
            };
            return Moment {
                state,
                network: Network::Own,
            };
        };
        let state = if self.flights.iter().any(|flight| flight.is_collided) {
            AirState::Collision
        } else {
            first.use_of_air
        };
        Moment {
            state,
            network: first.network,
        }
    }

    pub(super) fn find(&mut self, number: u64) -> Option<&mut InFlight<M>> {
        self.flights
            .iter_mut()
            .map(Box::as_mut)
            .find(|flight| flight.number == number)
    }
}
