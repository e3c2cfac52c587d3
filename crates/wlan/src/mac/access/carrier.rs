//! What carrier sense says: physically, after errors, and by reservations (§10.3.2.1).

/// What the last busy period ended in (§10.3.2.3.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BusyEnd {
    /// A correct frame: AIFS follows, and an EIFS that still ran is over.
    Frame,
    /// A frame with a wrong FCS: EIFS follows.
    Error,
    /// Energy without a frame, or an own transmission: AIFS follows, or what is left of EIFS if that is longer.
    Energy,
}

/// Carrier sense of a radio, or of several that sense the same. Nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Carrier {
    sifs: u64,
    /// EIFS less DIFS.
    eifs_extra: u64,
    is_busy: bool,
    /// Start of AIFSN slots by physical carrier sense.
    physical: u64,
    /// Start of AIFSN slots by EIFS; zero when a correct frame ended it.
    eifs: u64,
    nav: u64,
}

impl Carrier {
    /// A medium that has been idle for ever.
    pub fn new(sifs: u64, eifs_extra: u64) -> Self {
        Self {
            sifs,
            eifs_extra,
            is_busy: false,
            physical: 0,
            eifs: 0,
            nav: 0,
        }
    }

    /// From when AIFSN slots count, for a radio that waits for a response until `response`.
    #[inline]
    pub fn start(&self, response: u64) -> u64 {
        // NAV and timeouts are zero, or in the past, most of the time.
        let virtual_end = self.nav.max(response);
        self.physical.max(self.eifs).max(virtual_end + self.sifs)
    }

    /// Whether two radios, for both of which the medium is busy at `now`, sense the same from now on if they hear the same.
    pub fn is_as(&self, other: &Self, now: u64) -> bool {
        // What has passed by then, or will have when the medium can be idle again, makes no difference.
        let until = |carrier: &Self| (carrier.nav.max(now), carrier.eifs.max(now + carrier.sifs));
        self.is_busy && other.is_busy && until(self) == until(other)
    }

    /// The medium becomes busy.
    #[inline]
    pub fn on_busy(&mut self) {
        self.is_busy = true;
    }

    /// The medium becomes idle.
    #[inline]
    pub fn on_idle(&mut self, now: u64, end: BusyEnd) {
        self.is_busy = false;
        self.physical = now + self.sifs;
        match end {
            BusyEnd::Frame => self.eifs = 0,
            BusyEnd::Error => self.eifs = self.physical + self.eifs_extra,
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
    pub fn set_nav(&mut self, until: u64) {
        self.nav = self.nav.max(until);
    }

    /// Whatever reserved the medium did not happen: NAV ends at `now` (§10.3.2.4).
    pub fn reset_nav(&mut self, now: u64) {
        self.nav = self.nav.min(now);
    }

    /// End of the reservation by others.
    #[inline]
    pub fn nav(&self) -> u64 {
        self.nav
    }
}
