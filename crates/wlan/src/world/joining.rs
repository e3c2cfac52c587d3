//! How radios join the crowds of those that only look on and leave them, and what the medium does
//! to a crowd.

use alloc::vec::Vec;

use tack_base::Instant;

use super::World;
use super::air::InFlight;
use super::crowd::{Crowds, Standing};
use super::overhearing::Failing;
use crate::frame::NodeId;

/// With more radios that go by themselves, the wakes of all radios are asked for the first.
const FEW: usize = 32;

/// Radios, ascending, among which are those to which signals of one radio have to be brought one by
/// one.
pub(super) struct Listeners {
    pub(super) radios: Vec<u16>,
    pub(super) which: Which,
}

/// Which of them those are, apart from the sender.
#[derive(Clone, Copy)]
pub(super) enum Which {
    All,
    /// Those that hear it.
    Hearing,
    /// Those in no crowd.
    Alone,
}

impl<M: Clone> World<M> {
    /// Radio `index` is about to do more than to look on.
    #[inline]
    pub(super) fn single_out(&mut self, index: usize) {
        if self.crowds.as_ref().is_some_and(|crowds| crowds.has(index)) {
            self.take_out(index);
            self.rewake(index);
        }
    }

    /// Radio `index` leaves its crowd. When it wants to be woken remains to be said.
    fn take_out(&mut self, index: usize) {
        if let Some(crowds) = &mut self.crowds {
            crowds.standing[index] = Standing::Alone;
            let position = crowds
                .alone
                .partition_point(|other| usize::from(*other) < index);
            crowds.alone.insert(position, index as u16);
            let crowd = &mut crowds.crowds[crowds.own[index]];
            self.radios[index].hear_as(&crowd.radio);
            let locked = crowd.radio.lock.and_then(|number| self.air.find(number));
            let header_end = locked.map(|flight| flight.header_end);
            self.stations[index].leave(&mut crowd.access, header_end);
            self.looks += 1;
        }
    }

    /// The PPDU at `position` ends: those of the crowds that noise keeps from reading it sense
    /// something else from now on. They are told of its end by themselves, and when they want to be
    /// woken is said then.
    #[inline]
    pub(super) fn single_out_failing(&mut self, position: usize) {
        if self.overhearing.is_noisy() {
            let crowds = self.crowds.as_ref().map_or(0, |crowds| crowds.crowds.len());
            for number in 0..crowds {
                self.single_out_failing_of(number, position);
            }
        }
    }

    /// As [`World::single_out_failing`], those of crowd `number`.
    fn single_out_failing_of(&mut self, number: usize, position: usize) {
        let mut passed = 0;
        while let Some(crowds) = &self.crowds {
            let crowd = &crowds.crowds[number];
            let flight = &self.air.flights[position];
            if crowd.is_empty() || crowd.radio.lock != Some(flight.number) {
                return;
            }
            let hit = crowd.radio.hit;
            let failing = match self.overhearing.failing(flight, hit, self.mac.is_qos) {
                // Then it is the same for all.
                Failing::All => return,
                Failing::Some(failing) => &failing[passed..],
            };
            let is_member = |index: &u16| {
                let index = usize::from(*index);
                crowds.has(index) && crowds.own[index] == number
            };
            let Some(next) = failing.iter().position(is_member) else {
                return;
            };
            let index = usize::from(failing[next]);
            passed += next + 1;
            self.take_out(index);
        }
    }

    /// Those of the crowds that may transmit at `at` do so by themselves.
    pub(super) fn single_out_granted(&mut self, at: Instant) {
        while let Some(crowds) = &self.crowds
            && let Some(who) = crowds.granted(at)
        {
            self.take_out(usize::from(who));
            self.wakes.set(usize::from(who), at);
        }
    }

    /// The signal of `flight` begins to reach the crowds that hear it.
    pub(super) fn reach_crowds(&mut self, now: Instant, flight: &InFlight<M>) {
        let Some(crowds) = &mut self.crowds else {
            return;
        };
        for crowd in crowds.hearing(flight.ppdu.from) {
            let radio = &mut crowd.radio;
            radio.heard += 1;
            if radio.heard == 1 {
                radio.lock_on(flight.number);
                crowd.access.on_busy(now);
            } else if let Some(locked) = radio.lock.and_then(|number| self.air.find(number)) {
                radio.overlap(flight, locked);
            }
        }
    }

    /// The signal of `flight` ends at the crowds that hear it.
    pub(super) fn fade_crowds(&mut self, now: Instant, flight: &InFlight<M>) {
        if let Some(crowds) = &mut self.crowds {
            for crowd in crowds.hearing(flight.ppdu.from) {
                crowd.fade(now, flight, self.mac.is_qos);
            }
        }
    }

    /// Radios that go by themselves and have nothing to do but look on join their crowds: a signal
    /// of radio `from` has begun.
    pub(super) fn gather(&mut self, at: Instant, from: usize) {
        let Self {
            crowds: Some(crowds),
            audience,
            radios,
            stations,
            air,
            wakes,
            looks,
            ..
        } = self
        else {
            return;
        };
        let Crowds {
            crowds,
            own,
            standing,
            alone,
        } = crowds;
        let hearing = &audience[from];
        let is_alone = |who: &u16| standing[usize::from(*who)] == Standing::Alone;
        if hearing.len() < alone.len() && !hearing.iter().any(is_alone) {
            return;
        }
        for crowd in crowds.iter_mut() {
            crowd.look(at, &air.flights);
        }
        alone.retain(|who| {
            let index = usize::from(*who);
            let radio = &radios[index];
            if standing[index] == Standing::Apart || radio.is_sending || radio.heard == 0 {
                return true;
            }
            let crowd = &mut crowds[own[index]];
            let is_first = crowd.is_empty();
            let receives = |flight: &InFlight<M>| flight.ppdu.to == Some(NodeId(*who));
            if !(is_first || radio.hears_as(&crowd.radio))
                || air.flights.iter().any(|flight| receives(flight))
                || !stations[index].join(&mut crowd.access, crowd.busy_until)
            {
                return true;
            }
            if is_first {
                crowd.radio.hear_as(radio);
            }
            standing[index] = Standing::Member;
            wakes.set(index, Instant::FAR_FUTURE);
            *looks += 1;
            false
        });
    }

    /// Radios to which signals of radio `from` have to be brought one by one. They are handed back
    /// by [`World::give_back`]; until then nobody leaves a crowd.
    #[inline]
    pub(super) fn take_listeners(&mut self, from: usize) -> Listeners {
        let hearing = &mut self.audience[from];
        let (radios, which) = match &mut self.crowds {
            None => (core::mem::take(hearing), Which::All),
            Some(crowds) if hearing.len() + 1 == self.radios.len() => {
                (core::mem::take(&mut crowds.alone), Which::All)
            }
            Some(crowds) if hearing.len() < crowds.alone.len() => {
                (core::mem::take(hearing), Which::Alone)
            }
            Some(crowds) => (core::mem::take(&mut crowds.alone), Which::Hearing),
        };
        Listeners { radios, which }
    }

    /// Whether a signal of radio `from` has to be brought to `listener`, one of those that
    /// [`World::take_listeners`] gave.
    #[inline]
    pub(super) fn is_told(&self, from: usize, listener: u16, which: Which) -> bool {
        let index = usize::from(listener);
        index != from
            && match which {
                Which::All => true,
                Which::Hearing => self.audience[from].binary_search(&listener).is_ok(),
                Which::Alone => self.crowds.as_ref().is_none_or(|all| !all.has(index)),
            }
    }

    /// Takes back what [`World::take_listeners`] gave.
    #[inline]
    pub(super) fn give_back(&mut self, from: usize, listeners: Listeners) {
        let Listeners { radios, which } = listeners;
        match (&mut self.crowds, which) {
            (None, _) | (_, Which::Alone) => self.audience[from] = radios,
            (Some(crowds), _) => {
                debug_assert!(crowds.alone.is_empty(), "nobody has left a crowd");
                crowds.alone = radios;
            }
        }
    }

    /// When the first radio wants to be woken.
    #[inline]
    pub(super) fn first_wake(&mut self) -> Instant {
        let are_few = self.are_few_alone();
        match &self.crowds {
            Some(crowds) if are_few => {
                let alone = crowds.alone.iter();
                let wakes = alone.map(|at| self.wakes.of(usize::from(*at)));
                wakes.fold(crowds.grant(), Instant::min)
            }
            Some(crowds) => crowds.grant().min(self.wakes.first()),
            None => self.wakes.first(),
        }
    }

    /// Whether so few radios go by themselves that asking each for its wake costs less than asking
    /// for the first of all radios. Those in crowds have none.
    #[inline]
    pub(super) fn are_few_alone(&self) -> bool {
        let crowds = self.crowds.as_ref();
        crowds.is_some_and(|crowds| crowds.alone.len() <= FEW)
    }
}
