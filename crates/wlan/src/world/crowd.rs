//! Radios that only look on, and sense the same: what the medium does is worked out once for all of them.
//!
//! Most radios of a large network neither send nor receive what is on the air. If they hear everybody, and noise spoils nothing
//! for them, they sense the same and differ in nothing but their backoffs. A radio is in the crowd from a busy period on in
//! which it senses what the crowd does, until it is to receive, may transmit, or gets a packet to send. Then it goes by itself,
//! in the state in which it would be had it always done so. Results do not depend on who is in the crowd.

use alloc::vec::Vec;

use tack_base::Instant;
use tack_base::time::nanos;

use super::World;
use super::air::{InFlight, Radio};
use super::config::WorldConfig;
use crate::frame::{AccessCategory, Data, Frame, NodeId, len};
use crate::mac::access::SharedAccess;

/// With fewer radios that could be in it, a crowd saves little or nothing.
pub(super) const LEAST: usize = 6;

/// How a radio stands to the crowd.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// It always goes by itself.
    Apart,
    /// It goes by itself now.
    Alone,
    /// It is in the crowd.
    Member,
}

/// The radios that look on.
#[derive(Debug)]
pub(super) struct Crowd {
    access: SharedAccess,
    /// What each of them hears.
    radio: Radio,
    standing: Vec<Standing>,
    /// Radios that go by themselves, ascending.
    alone: Vec<u16>,
}

impl Crowd {
    /// Nobody is in the crowd yet. None, where fewer than `least` of the radios could ever be.
    pub(super) fn new(config: &WorldConfig, radios: usize, least: usize) -> Option<Self> {
        let errors = config.errors(radios);
        let mut standing: Vec<_> = errors
            .iter()
            .map(|error| match error.is_perfect() {
                true => Standing::Alone,
                // Whether it reads a frame is drawn for it alone.
                false => Standing::Apart,
            })
            .collect();
        // Those that receive what all others send.
        let centres = [NodeId::AP, NodeId(config.stations + 1)];
        let hidden = config.hidden.iter().flat_map(|(one, other)| [*one, *other]);
        for apart in centres.into_iter().chain(hidden) {
            if let Some(standing) = standing.get_mut(apart.index()) {
                *standing = Standing::Apart;
            }
        }
        let could = standing.iter().filter(|each| **each == Standing::Alone);
        if could.count() < least {
            return None;
        }
        let mac = &config.mac;
        let functions = if mac.is_qos {
            &mac.contention[..]
        } else {
            core::slice::from_ref(&mac.contention[AccessCategory::BestEffort as usize])
        };
        let (slot, sifs) = (nanos(mac.timing.slot), nanos(mac.timing.sifs));
        Some(Self {
            access: SharedAccess::new(slot, sifs, nanos(mac.eifs_extra()), functions, radios),
            radio: Radio::default(),
            standing,
            alone: (0..radios as u16).collect(),
        })
    }

    /// When the first of them may transmit, nanoseconds.
    #[inline]
    pub(super) fn grant(&self) -> u64 {
        self.access.grant().unwrap_or(u64::MAX)
    }

    /// Radios that go by themselves, ascending.
    #[inline]
    pub(super) fn alone(&self) -> &[u16] {
        &self.alone
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.access.members() == 0
    }

    /// Whether `at` looks on.
    #[inline]
    pub(super) fn has(&self, at: usize) -> bool {
        self.standing[at] == Standing::Member
    }

    /// Those that an RTS told of a reservation look whether anything followed it.
    pub(super) fn reset_nav(&mut self, now: u64, number: u64) {
        if self.radio.announced == Some(number) && self.radio.lock.is_none() {
            self.radio.announced = None;
            self.access.carrier().reset_nav(now);
        }
    }

    /// The signal of `flight`, which is for none of them, ends.
    fn fade<M>(&mut self, now: u64, flight: &InFlight<M>, is_qos: bool) {
        let radio = &mut self.radio;
        radio.heard -= 1;
        if radio.lock == Some(flight.number) {
            radio.lock = None;
            radio.announced = None;
            if is_read(radio, flight, is_qos) {
                radio.last = crate::mac::BusyEnd::Frame;
                if matches!(flight.ppdu.frame, Frame::Rts) {
                    radio.announced = Some(flight.number);
                }
                let until = now + nanos(flight.ppdu.reserves);
                self.access.carrier().set_nav(until);
            } else {
                radio.last = crate::mac::BusyEnd::Error;
            }
        }
        if radio.heard == 0 {
            self.access.carrier().on_idle(now, radio.last);
        }
    }
}

/// Whether radios could read a PPDU that they were locked on to, or a part of it, where only other signals spoil anything.
fn is_read<M>(radio: &mut Radio, flight: &InFlight<M>, is_qos: bool) -> bool {
    let Some(hit) = radio.hit.take() else {
        return true;
    };
    let Frame::Data(Data { mpdus, .. }) = &flight.ppdu.frame else {
        return false;
    };
    let mut begins = 0;
    mpdus.iter().any(|mpdu| {
        let ends = len::ampdu(begins, len::mpdu(mpdu.msdu.len, is_qos));
        let is_hit = flight.is_hit(begins, ends, hit);
        begins = ends;
        !is_hit
    })
}

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
            let header_end = locked.map(|flight| Instant::from_nanos(flight.header_end));
            self.stations[index].leave(&mut crowd.access, header_end);
            self.rewake(index);
        }
    }

    /// Those of the crowd that may transmit at `at` do so by themselves.
    pub(super) fn single_out_granted(&mut self, at: u64) {
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
            crowd.access.on_busy(now.as_nanos());
        } else if let Some(locked) = radio.lock.and_then(|number| self.air.find(number)) {
            radio.overlap(flight, locked);
        }
    }

    /// The signal of `flight` ends at the crowd.
    pub(super) fn fade_crowd(&mut self, now: Instant, flight: &InFlight<M>) {
        if let Some(crowd) = self.crowd.as_mut().filter(|crowd| !crowd.is_empty()) {
            crowd.fade(now.as_nanos(), flight, self.mac.is_qos);
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
            wakes[index] = u64::MAX;
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

    /// When the first radio wants to be woken, nanoseconds.
    #[inline]
    pub(super) fn first_wake(&self) -> u64 {
        let Some(crowd) = &self.crowd else {
            let all = self.wakes.iter();
            return all.fold(u64::MAX, |first, wake| first.min(*wake));
        };
        let alone = crowd.alone.iter().map(|at| self.wakes[usize::from(*at)]);
        alone.fold(crowd.grant(), u64::min)
    }
}

#[cfg(test)]
mod tests;
