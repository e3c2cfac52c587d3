//! How radios join the crowd of those that only look on and leave it, and what the medium does to it.

use alloc::vec::Vec;

use tack_base::Instant;

use super::World;
use super::air::InFlight;
use super::crowd::{Crowd, Standing};
use crate::frame::NodeId;

impl<M: Clone> World<M> {
    /// Radio `index` is about to do more than to look on.
    #[inline]
    pub(super) fn single_out(&mut self, index: usize) {
        if let Some(crowd) = &mut self.crowd
            && crowd.has(index)
        {
            crowd.standing[index] = Standing::Alone;
            let position = crowd
                .alone
                .partition_point(|other| usize::from(*other) < index);
            crowd.alone.insert(position, index as u16);
            self.radios[index].hear_as(&crowd.radio);
            let locked = crowd.radio.lock.and_then(|number| self.air.find(number));
            let header_end = locked.map(|flight| flight.header_end);
            self.stations[index].leave(&mut crowd.access, header_end);
            self.rewake(index);
        }
    }

    /// Those of the crowd that may transmit at `at` do so by themselves.
    pub(super) fn single_out_granted(&mut self, at: Instant) {
        while let Some(crowd) = &self.crowd
            && let Some(who) = crowd.access.granted(at)
        {
            self.single_out(usize::from(who));
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

    /// Radios that go by themselves and have nothing to do but look on join the crowd. `flight` has begun.
    pub(super) fn gather(&mut self, now: Instant, flight: &InFlight<M>) {
        let Self {
            crowd: Some(crowd),
            radios,
            stations,
            air,
            wakes,
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
        alone.retain(|who| {
            let index = usize::from(*who);
            let radio = &radios[index];
            if standing[index] == Standing::Apart || radio.is_sending || radio.heard == 0 {
                return true;
            }
            let is_first = access.members() == 0;
            let receives = |flight: &InFlight<M>| flight.ppdu.to == Some(NodeId(*who));
            if !(is_first || radio.hears_as(heard))
                || receives(flight)
                || air.flights.iter().any(receives)
                || !stations[index].join(access, now)
            {
                return true;
            }
            if is_first {
                heard.hear_as(radio);
            }
            standing[index] = Standing::Member;
            wakes[index] = Instant::FAR_FUTURE;
            false
        });
    }

    /// Radios to which the signal of radio `from` has to be brought one by one, ascending. They are handed back by
    /// [`World::give_back`].
    #[inline]
    pub(super) fn take_listeners(&mut self, from: usize) -> Vec<u16> {
        let audience = &mut self.audience[from];
        let Some(crowd) = &self.crowd else {
            return core::mem::take(audience);
        };
        let mut listeners = core::mem::take(&mut self.listeners);
        if audience.len() + 1 == self.radios.len() {
            listeners.extend_from_slice(&crowd.alone);
            listeners.retain(|at| usize::from(*at) != from);
        } else {
            let hear_it = |at: &&u16| audience.binary_search(at).is_ok();
            listeners.extend(crowd.alone.iter().filter(hear_it));
        }
        listeners
    }

    /// Takes back what [`World::take_listeners`] gave.
    #[inline]
    pub(super) fn give_back(&mut self, from: usize, mut listeners: Vec<u16>) {
        if self.crowd.is_none() {
            self.audience[from] = listeners;
        } else {
            listeners.clear();
            self.listeners = listeners;
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
