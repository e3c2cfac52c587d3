//! The timestamps option (RFC 7323): our clock, PAWS, and the value to echo.

use tack_base::{Duration, Instant};
use tack_wire::{SeqNum, Timestamps};

/// One tick: RFC 7323 §5.4 wants between 1 ms and 1 s.
const TICK: u64 = 1_000_000;
/// TS.Recent is out of date after this long without a segment (RFC 7323 §5.5).
const STALE_AFTER: Duration = Duration::from_secs(24 * 24 * 3600);

/// State of the timestamps option of one connection.
#[derive(Clone, Debug)]
pub(crate) struct TimestampClock {
    /// Random start per connection (RFC 7323 §7.1).
    offset: u32,
    agreed: bool,
    /// Both sides sent the option on their SYN, and TACK was agreed on too.
    ///
    /// Deviation: segments do without the option then, though RFC 7323 §3.2 wants it in each.
    /// TACK's packet numbers and departures do the same and better, and take the room.
    reserved: bool,
    /// TS.Recent is of a segment, not of the handshake: an echo of that would be an age, not a
    /// round trip.
    heard: bool,
    recent: u32,
    recent_at: Instant,
}

impl TimestampClock {
    /// A clock that starts at `offset`.
    pub(crate) fn new(offset: u32) -> Self {
        Self {
            offset,
            agreed: false,
            reserved: false,
            heard: false,
            recent: 0,
            recent_at: Instant::ZERO,
        }
    }

    /// Both sides sent the option on their SYN.
    pub(crate) fn agree(&mut self, now: Instant, first: Timestamps) {
        self.reserve(now, first);
        self.take_up();
        self.heard = true;
    }

    /// Both sides sent the option on their SYN, and agreed on TACK too. A middlebox that takes
    /// TACK's option off leaves these.
    pub(crate) fn reserve(&mut self, now: Instant, first: Timestamps) {
        self.reserved = true;
        self.recent = first.value;
        self.recent_at = now;
    }

    /// The peer repeated its SYN: the answer echoes the newest.
    pub(crate) fn renew(&mut self, now: Instant, newest: Timestamps) {
        if self.is_known() && self.is_newer(newest) {
            self.recent = newest.value;
            self.recent_at = now;
        }
    }

    /// From now on segments carry the option, if it is in reserve. True when that is so and was not
    /// before.
    pub(crate) fn take_up(&mut self) -> bool {
        let begins = core::mem::take(&mut self.reserved);
        self.agreed |= begins;
        begins
    }

    /// True when both sides sent the option on their SYN.
    #[inline]
    pub(crate) fn is_known(&self) -> bool {
        self.agreed || self.reserved
    }

    /// True when segments carry the option.
    #[inline]
    pub(crate) fn is_agreed(&self) -> bool {
        self.agreed
    }

    /// TSval at `now`.
    #[inline]
    pub(crate) fn value(&self, now: Instant) -> u32 {
        ((now.as_nanos() / TICK) as u32).wrapping_add(self.offset)
    }

    /// The newest TSval accepted from the peer (TS.Recent).
    pub(crate) fn recent(&self) -> u32 {
        self.recent
    }

    /// The option for a segment that leaves now.
    #[inline]
    pub(crate) fn option(&self, now: Instant) -> Option<Timestamps> {
        self.agreed.then(|| Timestamps {
            value: self.value(now),
            echo: if self.heard { self.recent } else { 0 },
        })
    }

    /// The option for a SYN-ACK that leaves now.
    pub(crate) fn answer(&self, now: Instant) -> Option<Timestamps> {
        self.is_known().then(|| Timestamps {
            value: self.value(now),
            echo: self.recent,
        })
    }

    /// Protection against wrapped sequence numbers: true when the segment is too old (RFC 7323 §5.3
    /// R1).
    pub(crate) fn is_old(&self, now: Instant, timestamps: Timestamps) -> bool {
        (timestamps.value.wrapping_sub(self.recent) as i32) < 0
            && now.saturating_since(self.recent_at) < STALE_AFTER
    }

    /// True when the value is later than the last one accepted (RFC 6191 §2).
    pub(crate) fn is_newer(&self, timestamps: Timestamps) -> bool {
        (timestamps.value.wrapping_sub(self.recent) as i32) > 0
    }

    /// Updates TS.Recent from a segment that covers the last acknowledgement sent (RFC 7323 §4.3
    /// (2)).
    pub(crate) fn accept(
        &mut self,
        now: Instant,
        timestamps: Timestamps,
        seq: SeqNum,
        last_ack_sent: SeqNum,
    ) {
        // An outdated TS.Recent gives way to whatever comes (RFC 7323 §5.5).
        if !seq.after(last_ack_sent) && !self.is_old(now, timestamps) {
            self.recent = timestamps.value;
            self.recent_at = now;
            self.heard = true;
        }
    }

    /// Time since our tick `echo`, at the clock's resolution; `None` when it is in the future,
    /// which no correct peer echoes.
    pub(crate) fn age(&self, now: Instant, echo: u32) -> Option<Duration> {
        let ticks = self.value(now).wrapping_sub(echo);
        (ticks < 1 << 31).then(|| Duration::from_nanos(u64::from(ticks) * TICK))
    }

    /// Last instant at which our clock showed `echo`; `None` when it is in the future, which no
    /// correct peer echoes.
    pub(crate) fn latest_departure(&self, now: Instant, echo: u32) -> Option<Instant> {
        let ago = u64::from(self.value(now).wrapping_sub(echo));
        let tick = (now.as_nanos() / TICK).checked_sub(ago)?;
        (ago < 1 << 31).then(|| Instant::from_nanos((tick + 1).saturating_mul(TICK) - 1))
    }

    /// True when the echo names a moment before `instant`, at the clock's resolution (Eifel, RFC
    /// 3522).
    pub(crate) fn is_before(&self, echo: u32, instant: Instant) -> bool {
        (echo.wrapping_sub(self.value(instant)) as i32) < 0
    }
}
