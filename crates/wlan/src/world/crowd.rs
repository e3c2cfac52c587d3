//! Radios that only look on, and sense the same: what the medium does is worked out once for all of
//! them.
//!
//! Most radios of a large network neither send nor receive what is on the air. If they hear
//! everybody, and read it, they sense the same and differ in nothing but their backoffs. A radio is
//! in the crowd from a busy period on in which it senses what the crowd does, until it is to
//! receive, may transmit, gets a packet to send, or noise keeps it from reading what the others
//! read. Then it goes by itself, in the state in which it would be had it always done so. Results
//! do not depend on who is in the crowd.

use alloc::vec::Vec;

use tack_base::Instant;

use super::air::{InFlight, Radio};
use super::config::WorldConfig;
use crate::frame::{AccessCategory, Data, Frame, NodeId, len};
use crate::mac::access::SharedAccess;

/// With fewer radios that could be in it, a crowd saves little or nothing.
pub(super) const LEAST: usize = 6;

/// How a radio stands to the crowd.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
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
    pub(super) access: SharedAccess,
    /// What each of them hears.
    pub(super) radio: Radio,
    pub(super) standing: Vec<Standing>,
    /// Radios that go by themselves, ascending.
    pub(super) alone: Vec<u16>,
}

impl Crowd {
    /// Nobody is in the crowd yet. None, where fewer than `least` of the radios could ever be.
    pub(super) fn new(config: &WorldConfig, radios: usize, least: usize) -> Option<Self> {
        let errors = config.errors(radios);
        let mut standing: Vec<_> = errors
            .iter()
            .map(|error| match *error == config.error {
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
        let (slot, sifs) = (mac.timing.slot, mac.timing.sifs);
        Some(Self {
            access: SharedAccess::new(slot, sifs, mac.eifs_extra(), functions, radios),
            radio: Radio::default(),
            standing,
            alone: (0..radios as u16).collect(),
        })
    }

    /// When the first of them may transmit.
    #[inline]
    pub(super) fn grant(&self) -> Instant {
        self.access.grant().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Radios that go by themselves, ascending.
    #[inline]
    pub(super) fn alone(&self) -> &[u16] {
        &self.alone
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.access.members() == 0
    }

    /// Whether `at` looks on.
    #[inline]
    pub(super) fn has(&self, at: usize) -> bool {
        self.standing[at] == Standing::Member
    }

    /// Those that an RTS told of a reservation look whether anything followed it.
    pub(super) fn reset_nav(&mut self, now: Instant, number: u64) {
        if self.radio.announced == Some(number) && self.radio.lock.is_none() {
            self.radio.announced = None;
            self.access.carrier().reset_nav(now);
        }
    }

    /// The signal of `flight`, which is for none of them, ends.
    pub(super) fn fade<M>(&mut self, now: Instant, flight: &InFlight<M>, is_qos: bool) {
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
                let until = now + flight.ppdu.reserves;
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

/// Whether radios could read a PPDU that they were locked on to, or a part of it: those that noise
/// kept from it have left.
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

#[cfg(test)]
mod tests;
