//! Radios that only look on, and sense the same: what the medium does is worked out once for all of
//! them.
//!
//! Most radios of a large network neither send nor receive what is on the air. Those that hear the
//! same radios, and read what they hear, sense the same and differ in nothing but their backoffs:
//! they can form a crowd. Where nobody is hidden there is one, where one half of the stations does
//! not hear the other there are two. A radio is in its crowd from a busy period on in which it
//! senses what the crowd does, until it is to receive, may transmit, gets a packet to send, or
//! noise keeps it from reading what the others read. Then it goes by itself, in the state in which
//! it would be had it always done so. Results do not depend on who is in a crowd.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tack_base::Instant;

use super::air::{InFlight, Radio};
use super::config::WorldConfig;
use crate::frame::{AccessCategory, Data, Frame, NodeId, len};
use crate::mac::MacConfig;
use crate::mac::access::SharedAccess;

/// With fewer radios that could be in it, a crowd saves little or nothing.
pub(super) const LEAST: usize = 6;

/// How a radio stands to its crowd.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// It has none, and always goes by itself.
    Apart,
    /// It goes by itself now.
    Alone,
    /// It is in the crowd.
    Member,
}

/// The crowds of a network.
#[derive(Debug)]
pub(super) struct Crowds {
    pub(super) crowds: Vec<Crowd>,
    /// By radio, the number of its crowd; of no meaning for those that have none.
    pub(super) own: Vec<usize>,
    pub(super) standing: Vec<Standing>,
    /// Radios that go by themselves, ascending.
    pub(super) alone: Vec<u16>,
}

/// Radios that look on and hear the same.
#[derive(Debug)]
pub(super) struct Crowd {
    pub(super) access: SharedAccess,
    /// What each of them hears.
    pub(super) radio: Radio,
    /// By radio, whether they hear it.
    hears: Vec<bool>,
    /// For them the medium is busy until then at least.
    pub(super) busy_until: Instant,
}

impl Crowds {
    /// Nobody is in a crowd yet. `audience` says who hears each radio. None, where no crowd could
    /// have `least` radios.
    pub(super) fn new(config: &WorldConfig, audience: &[Vec<u16>], least: usize) -> Option<Self> {
        let radios = audience.len();
        // Whether a radio with noise of its own reads a frame is drawn for it alone.
        let errors = config.errors(radios);
        // Those that receive what all others send.
        let centres = [NodeId::AP, NodeId(config.stations + 1)];
        let could = (0..radios as u16).filter(|index| {
            errors[usize::from(*index)] == config.error && !centres.contains(&NodeId(*index))
        });
        let mut crowds = Self {
            crowds: Vec::new(),
            own: alloc::vec![0; radios],
            standing: alloc::vec![Standing::Apart; radios],
            alone: (0..radios as u16).collect(),
        };
        for (heard, those) in alike(audience, could) {
            if those.len() < least {
                continue;
            }
            for radio in those {
                crowds.own[usize::from(radio)] = crowds.crowds.len();
                crowds.standing[usize::from(radio)] = Standing::Alone;
            }
            let mut hears = alloc::vec![false; radios];
            for radio in heard {
                hears[usize::from(radio)] = true;
            }
            crowds.crowds.push(Crowd::new(&config.mac, hears));
        }
        (!crowds.crowds.is_empty()).then_some(crowds)
    }

    /// When the first radio of a crowd may transmit.
    #[inline]
    pub(super) fn grant(&self) -> Instant {
        let grants = self.crowds.iter().map(Crowd::grant);
        grants.fold(Instant::FAR_FUTURE, Instant::min)
    }

    /// One that may transmit at `at`, if any.
    pub(super) fn granted(&self, at: Instant) -> Option<u16> {
        let mut granted = self.crowds.iter().map(|crowd| crowd.access.granted(at));
        granted.find_map(|who| who)
    }

    /// The crowds in which somebody is who hears radio `from`, which is in none now.
    #[inline]
    pub(super) fn hearing(&mut self, from: NodeId) -> impl Iterator<Item = &mut Crowd> {
        let crowds = self.crowds.iter_mut();
        crowds.filter(move |crowd| !crowd.is_empty() && crowd.hears[from.index()])
    }

    /// Those that an RTS told of a reservation look whether anything followed it.
    pub(super) fn reset_nav(&mut self, now: Instant, number: u64) {
        for crowd in &mut self.crowds {
            crowd.reset_nav(now, number);
        }
    }

    /// Radios that go by themselves, ascending.
    #[inline]
    pub(super) fn alone(&self) -> &[u16] {
        &self.alone
    }

    /// Whether `at` looks on.
    #[inline]
    pub(super) fn has(&self, at: usize) -> bool {
        self.standing[at] == Standing::Member
    }
}

/// What the members of a group hear, and the members.
type Group = (Vec<u16>, Vec<u16>);

/// `radios` by whom they hear of the others: each group with what its members hear, which does not
/// hold for one of them that sends.
fn alike(audience: &[Vec<u16>], radios: impl Iterator<Item = u16>) -> Vec<Group> {
    // Hearing is mutual: who hears a radio is whom it hears. So those of a group all hear each
    // other, or none of them hears another; no radio can have company of both kinds.
    let mut mutual: BTreeMap<Vec<u16>, Vec<u16>> = BTreeMap::new();
    for radio in radios {
        let mut heard = audience[usize::from(radio)].clone();
        heard.insert(heard.partition_point(|other| *other < radio), radio);
        mutual.entry(heard).or_default().push(radio);
    }
    let (mut groups, single): (Vec<Group>, Vec<Group>) =
        mutual.into_iter().partition(|(_, those)| those.len() > 1);
    let mut hidden: BTreeMap<&[u16], Vec<u16>> = BTreeMap::new();
    for radio in single.into_iter().flat_map(|(_, those)| those) {
        let heard = &audience[usize::from(radio)];
        hidden.entry(heard).or_default().push(radio);
    }
    groups.extend(
        hidden
            .into_iter()
            .map(|(heard, those)| (heard.to_vec(), those)),
    );
    groups
}

impl Crowd {
    fn new(mac: &MacConfig, hears: Vec<bool>) -> Self {
        let functions = if mac.is_qos {
            &mac.contention[..]
        } else {
            core::slice::from_ref(&mac.contention[AccessCategory::BestEffort as usize])
        };
        let (slot, sifs) = (mac.timing.slot, mac.timing.sifs);
        Self {
            access: SharedAccess::new(slot, sifs, mac.eifs_extra(), functions, hears.len()),
            radio: Radio::default(),
            hears,
            busy_until: Instant::ZERO,
        }
    }

    /// Looks at what of `flights` they hear at `now`.
    pub(super) fn look<M>(&mut self, now: Instant, flights: &[Box<InFlight<M>>]) {
        let heard = flights
            .iter()
            .filter(|flight| self.hears[flight.ppdu.from.index()]);
        self.busy_until = heard.map(|flight| flight.end).min().unwrap_or(now);
    }

    /// When the first of them may transmit.
    #[inline]
    fn grant(&self) -> Instant {
        self.access.grant().unwrap_or(Instant::FAR_FUTURE)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.access.members() == 0
    }

    fn reset_nav(&mut self, now: Instant, number: u64) {
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
