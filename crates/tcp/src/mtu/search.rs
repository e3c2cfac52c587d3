//! The search for a larger segment size (RFC 8899 §5, RFC 4821 §7): one segment of the stream that
//! is longer than the others. If it arrives, so will others; if it does not, that says nothing of
//! congestion.

use core::ops::Range;
use core::time::Duration;

use tack_base::{Instant, StreamOffset};

/// Probes of one size that get lost before it is taken for too long (MAX_PROBES of RFC 8899
/// §5.1.2).
const PROBES: u8 = 3;
/// Wait before a size that silence took away is tried again, and after a timeout.
pub(super) const FIRST_WAIT: Duration = Duration::from_secs(5);
/// Where the size is known to so many bytes, the search is over.
const CLOSE: u16 = 8;
/// Wait after a probe that got lost together with others, which says nothing.
const INCONCLUSIVE: Duration = Duration::from_secs(1);

/// The state of a search.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// The least size that is too long: all sizes are as in the MSS option.
    too_long: u16,
    /// The size below that did not come through: halves are tried from now on.
    halves: bool,
    /// A size, and how many probes of it got lost in a row.
    lost: (u16, u8),
    /// Timeouts in a row that met a probe.
    timeouts: u8,
    /// When the next probe may leave.
    next: Instant,
    probe: Option<Probe>,
}

/// A probe in flight.
#[derive(Clone, Debug)]
struct Probe {
    size: u16,
    range: Range<StreamOffset>,
}

impl Search {
    /// Looks for a size below `too_long`, from `next` on.
    pub(super) fn new(too_long: u16, next: Instant) -> Self {
        Self {
            too_long,
            halves: false,
            lost: (0, 0),
            timeouts: 0,
            next,
            probe: None,
        }
    }

    /// Size of the probe that may leave now, where segments have `size`.
    pub(super) fn due(&self, now: Instant, size: u16) -> Option<u16> {
        if self.probe.is_some() || now < self.next {
            return None;
        }
        Some(self.candidate(size)).filter(|candidate| *candidate > size)
    }

    fn candidate(&self, size: u16) -> u16 {
        if self.halves {
            size.midpoint(self.too_long)
        } else {
            self.too_long - 1
        }
    }

    pub(super) fn on_sent(&mut self, size: u16, range: Range<StreamOffset>) {
        self.probe = Some(Probe { size, range });
    }

    /// What the probe in flight carries.
    pub(super) fn in_flight(&self) -> Option<&Range<StreamOffset>> {
        self.probe.as_ref().map(|probe| &probe.range)
    }

    /// A segment with `len` positions arrived. The size that is proven by it.
    pub(super) fn on_delivered(&mut self, now: Instant, len: u64) -> Option<u16> {
        let probe = self
            .probe
            .take_if(|probe| len >= probe.range.end - probe.range.start)?;
        self.lost = (0, 0);
        self.timeouts = 0;
        self.next = now;
        Some(probe.size)
    }

    /// The probe got lost; `alone` says that nothing else did.
    pub(super) fn on_lost(&mut self, now: Instant, alone: bool) {
        let Some(probe) = self.probe.take() else {
            return;
        };
        if !alone {
            self.next = now + INCONCLUSIVE;
            return;
        }
        self.next = now;
        let before = if self.lost.0 == probe.size {
            self.lost.1
        } else {
            0
        };
        self.lost = (probe.size, before + 1);
        if self.lost.1 >= PROBES {
            self.exclude(probe.size);
        }
    }

    /// The path says that it takes `size`, and no more. True when the probe in flight is longer.
    pub(super) fn on_told(&mut self, now: Instant, size: u16) -> bool {
        let refused = self.probe.take_if(|probe| probe.size > size).is_some();
        if refused || size < self.too_long {
            self.too_long = self.too_long.min(size.saturating_add(1));
            self.halves = false;
            self.lost = (0, 0);
            if refused {
                self.next = now;
            }
        }
        refused
    }

    /// Segments of `size` do not come through.
    fn exclude(&mut self, size: u16) {
        self.too_long = size;
        self.halves = true;
        self.lost = (0, 0);
        self.timeouts = 0;
    }

    /// A timeout at `now`: everything in flight may be lost. The search pauses, each time that it
    /// costs a probe for twice as long, at most for `longest`. A size whose probes all meet a
    /// timeout does not come through. True when a probe was in flight.
    pub(super) fn pause(&mut self, now: Instant, longest: Duration) -> bool {
        let probe = self.probe.take();
        let wait = FIRST_WAIT * (1 << if probe.is_some() { self.timeouts } else { 0 });
        self.next = self.next.max(now + wait.min(longest));
        if let Some(probe) = &probe {
            self.timeouts += 1;
            if self.timeouts >= PROBES {
                self.exclude(probe.size);
            }
        }
        probe.is_some()
    }

    /// Nothing more is to be found above `size`.
    pub(super) fn is_over(&self, size: u16) -> bool {
        let left = self.too_long.saturating_sub(size);
        self.probe.is_none() && (left <= 1 || (self.halves && left <= CLOSE))
    }
}
