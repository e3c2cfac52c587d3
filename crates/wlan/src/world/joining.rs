//! How radios join the crowd of those that only look on and leave it, and what the medium does to
//! it.

use alloc::vec::Vec;

use tack_base::Instant;

use super::World;
use super::air::InFlight;
use super::crowd::{Crowd, Standing};
use super::onlookers::Failing;
use crate::frame::NodeId;

impl<M: Clone> World<M> {
    /// Radio `index` is about to do more than to look on.
    #[inline]
    pub(super) fn single_out(&mut self, index: usize) {
        if self.crowd.as_ref().is_some_and(|crowd| crowd.has(index)) {
            self.take_out(index);
            self.rewake(index);
        }
    }

    /// Radio `index` leaves the crowd. When it wants to be woken remains to be said.
    fn take_out(&mut self, index: usize) {
        if let Some(crowd) = &mut self.crowd {
            crowd.standing[index] = Standing::Alone;
            let position = crowd
                .alone
                .partition_point(|other| usize::from(*other) < index);
            crowd.alone.insert(position, index as u16);
            self.radios[index].hear_as(&crowd.radio);
            let locked = crowd.radio.lock.and_then(|number| self.air.find(number));
            let header_end = locked.map(|flight| flight.header_end);
            self.stations[index].leave(&mut crowd.access, header_end);
            self.looks += 1;
        }
    }

    /// The PPDU at `position` ends: those of the crowd that noise keeps from reading it sense
    /// something else from now on. They are told of its end by themselves, and when they want to be
    /// woken is said then.
    #[inline]
    pub(super) fn single_out_failing(&mut self, position: usize) {
        if self.crowd.is_none() || !self.onlookers.is_noisy() {
            return;
        }
        let mut passed = 0;
        while let Some(crowd) = &self.crowd {
            let flight = &self.air.flights[position];
            if crowd.is_empty() || crowd.radio.lock != Some(flight.number) {
                return;
            }
            let hit = crowd.radio.hit;
            let failing = match self.onlookers.failing(flight, hit, self.mac.is_qos) {
                // Then it is the same for all.
                Failing::All => return,
                Failing::Some(failing) => &failing[passed..],
            };
            let is_member = |index: &u16| crowd.has(usize::from(*index));
            let Some(next) = failing.iter().position(is_member) else {
                return;
            };
            let index = usize::from(failing[next]);
            passed += next + 1;
            self.take_out(index);
        }
    }

    /// Those of the crowd that may transmit at `at` do so by themselves.
    pub(super) fn single_out_granted(&mut self, at: Instant) {
        while let Some(crowd) = &self.crowd
            && let Some(who) = crowd.access.granted(at)
        {
            self.take_out(usize::from(who));
            self.wakes[usize::from(who)] = at;
        }
    }

    /// The signal of `flight` begins to reach the crowd.
    pub(super) fn reach_crowd(&mut self, now: Instant, flight: &InFlight<M>) {
        let Some(crowd) = self.crowd.as_mut().filter(|crowd| !crowd.is_empty()) else {
            return;
        };
        let radio = &mut crowd.radio;
        radio.heard += 1;
        if radio.heard == 1 {
            radio.lock_on(flight.number);
            crowd.access.on_busy(now);
        } else if let Some(locked) = radio.lock.and_then(|number| self.air.find(number)) {
            radio.overlap(flight, locked);
        }
    }

    /// The signal of `flight` ends at the crowd.
    pub(super) fn fade_crowd(&mut self, now: Instant, flight: &InFlight<M>) {
        if let Some(crowd) = self.crowd.as_mut().filter(|crowd| !crowd.is_empty()) {
            crowd.fade(now, flight, self.mac.is_qos);
        }
    }

    /// Radios that go by themselves and have nothing to do but look on join the crowd: a signal has
    /// begun.
    pub(super) fn gather(&mut self, at: Instant) {
        let Self {
            crowd: Some(crowd),
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
        let Crowd {
            access,
            radio: heard,
            standing,
            alone,
        } = crowd;
        // The medium is busy until then at least.
        let ends = air.flights.iter().map(|flight| flight.end);
        let until = ends.min().unwrap_or(at);
        alone.retain(|who| {
            let index = usize::from(*who);
            let radio = &radios[index];
            if standing[index] == Standing::Apart || radio.is_sending || radio.heard == 0 {
                return true;
            }
            let is_first = access.members() == 0;
            let receives = |flight: &InFlight<M>| flight.ppdu.to == Some(NodeId(*who));
            if !(is_first || radio.hears_as(heard))
                || air.flights.iter().any(receives)
                || !stations[index].join(access, until)
            {
                return true;
            }
            if is_first {
                heard.hear_as(radio);
            }
            standing[index] = Standing::Member;
            wakes[index] = Instant::FAR_FUTURE;
            *looks += 1;
            false
        });
    }

    /// Radios to which signals have to be brought one by one, ascending: all that hear radio
    /// `from`, perhaps that one itself, and others if not [`World::all_hear`] it. They are
    /// handed back by [`World::give_back`]; until then nobody leaves the crowd.
    #[inline]
    pub(super) fn take_listeners(&mut self, from: usize) -> Vec<u16> {
        match &mut self.crowd {
            Some(crowd) => core::mem::take(&mut crowd.alone),
            None => core::mem::take(&mut self.audience[from]),
        }
    }

    /// Whether all listeners but itself hear radio `from`.
    #[inline]
    pub(super) fn all_hear(&self, from: usize) -> bool {
        self.crowd.is_none() || self.audience[from].len() + 1 == self.radios.len()
    }

    /// Whether `listener` hears radio `from`, which not all do.
    pub(super) fn hears(&self, from: usize, listener: u16) -> bool {
        self.audience[from].binary_search(&listener).is_ok()
    }

    /// Takes back what [`World::take_listeners`] gave.
    #[inline]
    pub(super) fn give_back(&mut self, from: usize, listeners: Vec<u16>) {
        match &mut self.crowd {
            Some(crowd) => {
                debug_assert!(crowd.alone.is_empty(), "nobody has left the crowd");
                crowd.alone = listeners;
            }
            None => self.audience[from] = listeners,
        }
    }

    /// When the first radio wants to be woken.
    #[inline]
    pub(super) fn first_wake(&self) -> Instant {
        let Some(crowd) = &self.crowd else {
            let all = self.wakes.iter();
            return all.fold(Instant::FAR_FUTURE, |first, wake| first.min(*wake));
        };
        let alone = crowd.alone.iter().map(|at| self.wakes[usize::from(*at)]);
        alone.fold(crowd.grant(), Instant::min)
    }
}
