//! Channel access: when each EDCA function of a station may transmit (§10.3.4, §10.23.2).
//!
//! Nothing ticks. The state is the instant from which the medium has been idle; a backoff is a
//! number of slots that count from AIFS after it, and is brought up to date only when the medium
//! becomes busy:
//!
//! ```text
//!  busy | SIFS | AIFSN slots | slot | slot | slot … grant when the backoff reaches zero
//!       ^start = end of busy + SIFS (more after an error, NAV or an awaited response)
//! ```
//!
//! DCF counts a slot at its end, so a function whose countdown another station cut short has at
//! least one slot left. EDCA counts at slot boundaries, of which the end of AIFS is the first
//! (§10.23.2.4): a countdown that is cut short at a boundary has counted that boundary, may have
//! nothing left, and then ends at the next AIFS. A countdown that nothing interrupts lasts equally
//! long by both rules.

mod carrier;
mod shared;
mod span;
mod targets;

use alloc::vec::Vec;

use tack_base::{Duration, Instant};

pub use carrier::{BusyEnd, Carrier};
pub use shared::SharedAccess;
use span::Span;

/// Which rules a function follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    /// DCF: a frame that finds the medium idle goes as soon as it has been idle for DIFS; slots
    /// count at their end.
    Dcf,
    /// EDCA: access at slot boundaries only, and one slot less of the backoff at each of them, the
    /// end of AIFS included.
    Edca,
}

impl Rules {
    /// Slots of a backoff that count when `ended` whole ones have passed since AIFS.
    #[inline]
    fn counted(self, ended: u64) -> u64 {
        // Of n + 1 boundaries n slots lie between.
        match self {
            Self::Dcf => ended,
            Self::Edca => ended + 1,
        }
    }
}

/// What becomes of the contention window after an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CwAdaptation {
    /// It doubles after a failure, and is the smallest again after a success or when a frame is
    /// given up (§10.3.3).
    #[default]
    Standard,
    /// It doubles after a failure, the last attempt of a frame included, and halves after a
    /// success: multiplicative increase, multiplicative decrease (Pang, Liew, Lee, Chan, "A
    /// TCP-like adaptive contention window scheme for WLAN", ICC 2004).
    Mimd,
}

impl CwAdaptation {
    /// The window after an attempt that ended so, slots. Windows are powers of two less one.
    fn next(self, attempt: Attempt, cw: u32, contention: &Contention) -> u32 {
        // §10.3.3: the next power of two less one.
        let doubled = (2 * cw + 1).min(contention.cw_max);
        match (self, attempt) {
            (_, Attempt::Failed) | (Self::Mimd, Attempt::GivenUp) => doubled,
            (Self::Standard, _) => contention.cw_min,
            (Self::Mimd, Attempt::Succeeded) => (cw / 2).max(contention.cw_min),
        }
    }
}

/// Contention parameters of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contention {
    /// Slots after SIFS in AIFS; 2 makes DIFS.
    pub aifsn: u32,
    /// Smallest contention window: backoffs are drawn from 0 to this.
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// Rules of access.
    pub rules: Rules,
    /// How the window moves between the two.
    pub adaptation: CwAdaptation,
}

/// How a transmission attempt ended, as far as the contention window is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// Answered, or needs no answer.
    Succeeded,
    /// Not answered; it will be tried again.
    Failed,
    /// Not answered; what was sent has been given up.
    GivenUp,
}

/// One contending function: its window and its backoff.
#[derive(Clone, Debug)]
struct Function {
    contention: Contention,
    /// AIFSN.
    aifs_slots: u64,
    cw: u32,
    /// Backoff slots left, as of `counted_to`.
    slots: u32,
    /// Slots (EDCA: boundaries) before this instant are counted; the next one begins (is) here at
    /// the earliest.
    counted_to: Instant,
    wants: bool,
}

/// Channel access of one station.
#[derive(Clone, Debug)]
pub struct ChannelAccess {
    slot: Span,
    carrier: Carrier,
    /// Until when an own transmission waits for its response.
    response: Instant,
    functions: Vec<Function>,
}

impl ChannelAccess {
    /// Functions by ascending priority. The medium has been idle forever.
    pub fn new(
        slot: Duration,
        sifs: Duration,
        eifs_extra: Duration,
        functions: &[Contention],
    ) -> Self {
        let functions = functions
            .iter()
            .map(|contention| Function {
                contention: *contention,
                aifs_slots: u64::from(contention.aifsn),
                cw: contention.cw_min,
                slots: 0,
                counted_to: Instant::ZERO,
                wants: false,
            })
            .collect();
        Self {
            slot: slot.into(),
            carrier: Carrier::new(sifs, eifs_extra),
            response: Instant::ZERO,
            functions,
        }
    }

    /// From when AIFSN slots count.
    #[inline]
    fn start(&self) -> Instant {
        self.carrier.start(self.response)
    }

    /// Counts the idle slots up to `now`.
    #[inline]
    fn settle(&mut self, now: Instant) {
        let start = self.start();
        for function in &mut self.functions {
            if function.slots == 0 {
                continue;
            }
            let from = function
                .counted_to
                .max(self.slot.times_after(function.aifs_slots, start));
            if now >= from {
                let counted = function
                    .contention
                    .rules
                    .counted(self.slot.between(from, now));
                let idle = counted.min(u64::from(function.slots));
                function.slots -= idle as u32;
                function.counted_to = self.slot.times_after(idle, from);
            }
        }
    }

    /// The medium becomes busy, by reception or own transmission.
    #[inline]
    pub fn on_busy(&mut self, now: Instant) {
        if !self.carrier.is_busy() {
            self.settle(now);
            self.carrier.on_busy();
        }
    }

    /// The medium becomes idle.
    #[inline]
    pub fn on_idle(&mut self, now: Instant, end: BusyEnd) {
        self.carrier.on_idle(now, end);
    }

    /// True while physical carrier sense says busy.
    pub fn is_busy(&self) -> bool {
        self.carrier.is_busy()
    }

    /// A frame for somebody else reserves the medium until `until`.
    #[inline]
    pub fn set_nav(&mut self, until: Instant) {
        self.carrier.set_nav(until);
    }

    /// Whatever reserved the medium did not happen: NAV ends at `now` (§10.3.2.4).
    pub fn reset_nav(&mut self, now: Instant) {
        self.carrier.reset_nav(now);
    }

    /// End of the reservation by others.
    pub fn nav(&self) -> Instant {
        self.carrier.nav()
    }

    /// An own transmission waits for its response until `until`; nothing is counted before.
    pub fn await_response(&mut self, until: Instant) {
        self.response = until;
    }

    /// The wait for a response is over.
    pub fn end_wait(&mut self, now: Instant) {
        self.response = self.response.min(now);
    }

    /// Function `index` has something to send again after it had nothing. `draw` gives a number in
    /// 0 to its argument.
    pub fn request(&mut self, index: usize, now: Instant, draw: impl FnOnce(u32) -> u32) {
        if !self.carrier.is_busy() {
            self.settle(now);
        }
        let start = self.start();
        let is_idle = !self.carrier.is_busy() && self.carrier.nav() <= now && self.response <= now;
        let slot = self.slot;
        let function = &mut self.functions[index];
        function.wants = true;
        if function.slots > 0 {
            return;
        }
        let first = slot.times_after(function.aifs_slots, start);
        match function.contention.rules {
            // §10.3.4.2: no backoff when the medium is idle as the frame is queued; what is left of
            // DIFS has to pass.
            Rules::Dcf if is_idle => function.counted_to = now.max(first),
            // §10.23.2.2 a): backoff only when the medium is busy. §10.23.2.4: access at a slot
            // boundary.
            Rules::Edca if is_idle => {
                function.counted_to = if now > first {
                    slot.times_after(slot.between(first, now) + 1, first)
                } else {
                    first
                };
            }
            _ => {
                function.slots = draw(function.cw);
                function.counted_to = now;
            }
        }
    }

    /// Whether function `index` has more to send after an attempt; its backoff goes on in any case.
    pub fn set_wants(&mut self, index: usize, wants: bool) {
        self.functions[index].wants = wants;
    }

    /// True when function `index` has something to send.
    pub fn wants(&self, index: usize) -> bool {
        self.functions[index].wants
    }

    /// The end of a transmission attempt of function `index`: a new backoff, whether or not there
    /// is more to send.
    pub fn release(
        &mut self,
        index: usize,
        now: Instant,
        attempt: Attempt,
        draw: impl FnOnce(u32) -> u32,
    ) {
        let function = &mut self.functions[index];
        let contention = &function.contention;
        function.cw = contention.adaptation.next(attempt, function.cw, contention);
        function.slots = draw(function.cw);
        function.counted_to = now;
    }

    /// Contention window of function `index`.
    pub fn cw(&self, index: usize) -> u32 {
        self.functions[index].cw
    }

    /// When the first function that wants to may transmit, if the medium stays idle.
    #[inline]
    pub fn grant(&self) -> Option<Instant> {
        if self.carrier.is_busy() {
            return None;
        }
        let start = self.start();
        let mut first = Instant::FAR_FUTURE;
        for function in &self.functions {
            if function.wants {
                first = first.min(self.end(function, start));
            }
        }
        (first != Instant::FAR_FUTURE).then_some(first)
    }

    #[inline]
    fn end(&self, function: &Function, start: Instant) -> Instant {
        let from = function
            .counted_to
            .max(self.slot.times_after(function.aifs_slots, start));
        self.slot.times_after(u64::from(function.slots), from)
    }

    /// Grants access at `now`: to the function of the highest priority whose backoff has ended. The
    /// others that end now have collided inside the station and back off as if they had
    /// collided outside (§10.23.2.4).
    pub fn take_grant(&mut self, now: Instant, mut draw: impl FnMut(u32) -> u32) -> Option<usize> {
        let start = self.start();
        let ends = |access: &Self, index: usize| {
            let function = &access.functions[index];
            function.wants && access.end(function, start) <= now
        };
        let winner = (0..self.functions.len())
            .rev()
            .find(|index| ends(self, *index))?;
        for index in 0..winner {
            if ends(self, index) {
                self.release(index, now, Attempt::Failed, &mut draw);
                // A function does one thing at a boundary: this one it has drawn at, the next one
                // it may count.
                self.functions[index].counted_to = self.slot.after(now);
            }
        }
        self.functions[winner].slots = 0;
        Some(winner)
    }
}

#[cfg(test)]
mod tests;
