//! Carrier sense: physical, after errors, and virtual by reservations (§10.3.2.1).

use tack_base::{Duration, Instant};

use super::span::Span;

/// The end of the last busy period (§10.3.2.3.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BusyEnd {
    /// A correct frame: AIFS follows, and an EIFS that still ran is over.
    Frame,
    /// A frame with a wrong FCS: EIFS follows.
    Error,
    /// Energy without a frame, or an own transmission: AIFS follows, or what is left of EIFS if
    /// that is longer.
    Energy,
}

/// Carrier sense of a radio, or of several that sense the same.
#[derive(Clone, Copy, Debug)]
pub struct Carrier {
    sifs: Span,
    /// EIFS less DIFS.
    eifs_extra: Span,
    is_busy: bool,
    /// Start of AIFSN slots by physical carrier sense.
    physical: Instant,
    /// Start of AIFSN slots by EIFS; zero when a correct frame ended it.
    eifs: Instant,
    nav: Instant,
}

impl Carrier {
    /// A medium that has been idle forever.
    pub fn new(sifs: Duration, eifs_extra: Duration) -> Self {
        Self {
            sifs: sifs.into(),
            eifs_extra: eifs_extra.into(),
            is_busy: false,
            physical: Instant::ZERO,
            eifs: Instant::ZERO,
            nav: Instant::ZERO,
        }
    }

    /// From when AIFSN slots count, for a radio that waits for a response until `response`.
    #[inline]
    pub fn start(&self, response: Instant) -> Instant {
        // NAV and timeouts are zero, or in the past, most of the time.
        let virtual_end = self.nav.max(response);
        self.physical
            .max(self.eifs)
            .max(self.sifs.after(virtual_end))
    }

    /// Whether two radios, for both of which the medium is busy until `until` at least, sense the
    /// same from then on if they hear the same.
    pub fn is_as(&self, other: &Self, until: Instant) -> bool {
        // What will have passed when the medium can be idle again makes no difference.
        let later = |carrier: &Self| {
            (
                carrier.nav.max(until),
                carrier.eifs.max(carrier.sifs.after(until)),
            )
        };
        self.is_busy && other.is_busy && later(self) == later(other)
    }

    /// The medium becomes busy.
    #[inline]
    pub fn on_busy(&mut self) {
        self.is_busy = true;
    }

    /// The medium becomes idle.
    #[inline]
    pub fn on_idle(&mut self, now: Instant, end: BusyEnd) {
        self.is_busy = false;
        self.physical = self.sifs.after(now);
        match end {
            BusyEnd::Frame => self.eifs = Instant::ZERO,
            BusyEnd::Error => self.eifs = self.eifs_extra.after(self.physical),
            BusyEnd::Energy => {}
        }
    }

    /// True while physical carrier sense says busy.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// A frame for somebody else reserves the medium until `until`.
    #[inline]
    pub fn set_nav(&mut self, until: Instant) {
        self.nav = self.nav.max(until);
    }

    /// Whatever reserved the medium did not happen: NAV ends at `now` (§10.3.2.4).
    pub fn reset_nav(&mut self, now: Instant) {
        self.nav = self.nav.min(now);
    }

    /// End of the reservation by others.
    #[inline]
    pub fn nav(&self) -> Instant {
        self.nav
    }
}
