//! Progress of a sender, as seen on the wire: its oldest unacknowledged byte is sent again in
//! time, and does not wait for long while the path carries other segments of the connection.
//!
//! The path carries segments in the time between two transmissions of the oldest byte if one
//! arrived in each direction in that time. What arrived once says nothing of a path that went dark
//! after it, and a timer that has backed off meanwhile is no fault.
//!
//! Two things count although nothing arrives. The path would have carried a smaller segment if the
//! oldest byte left in one that no time lets through, because of its size. And a receiver that got
//! a segment and sends nothing at all gives the path nothing to carry.
//!
//! What cannot be seen: each copy of the oldest byte is lost at random or in a full queue, nothing
//! else is sent, and the sender keeps to its timer. That is a lone sender's bad luck and looks like
//! it, packet by packet: whether the path had carried another packet at that time, only that packet
//! could tell. What is judged then is that the byte is sent again in time.
//!
//! Nothing here comes from the connection. Its retransmission timeout may be wrong, and its
//! scoreboard too: what counts is which segments the two hosts sent and got, and how long they
//! took.

use std::mem;

use tack_base::time::Nanos;
use tack_base::{Duration, Instant};
use tack_wire::SeqNum;

/// Shortest time without progress that counts as a stall.
const LEAST: Nanos = Nanos(5_000_000_000);
/// So many retransmission timeouts add up when five in a row back off: 1, 2, 4, 8 and 16 times the
/// first one (RFC 6298 §5.5).
const TIMEOUTS: u64 = 32;
/// So many segments in each direction show that the path delivers.
const DELIVERED: u64 = 10;
/// Shortest time without a transmission of the oldest byte that counts as a stall.
const LEAST_SILENCE: Nanos = Nanos(3_000_000_000);
/// How often a sender may wait longer than the backed-off timeout: what its timer measures and what
/// is seen here differ.
const MARGIN: u64 = 4;
/// First timeout for data after a SYN or its answer was sent again, until a round trip is measured
/// (RFC 6298 §5.7).
const AFTER_LOST_SYN: Nanos = Nanos(3_000_000_000);
/// Longest silence that any number of timeouts excuses: twice the longest timeout that is usual
/// (RFC 6298 §2.5).
const MOST_SILENCE: Nanos = Nanos(120_000_000_000);

/// Limits of a connection's timer, from its configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    /// Before the first measured round trip.
    pub(super) initial: Duration,
    /// Shortest.
    pub(super) least: Duration,
    /// What measures round trips by the peer's echo.
    pub(super) echoes: Echoes,
}

/// Segments whose timestamps the peer echoes. An echo also measures what waited for a
/// retransmission: of the segment, or of an answer that got lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Echoes {
    None,
    /// The SYN only: TACK measures round trips without them.
    Syn,
    All,
}

/// One direction of a connection.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    timer: Timer,
    /// The oldest number that no acknowledgement has reached the sender for, and the one after the
    /// highest sent.
    numbers: Option<(SeqNum, SeqNum)>,
    /// When the oldest number changed, or began to be outstanding, or the receiver began to read.
    since: Instant,
    /// When the oldest number was sent last, and how often.
    sent_at: Instant,
    attempts: u32,
    /// Most doublings of the sender's timer: an acknowledgement of what was sent again does not
    /// end its backing off, as nobody knows which transmission it answers (Karn's algorithm,
    /// RFC 6298 §3).
    doublings: u32,
    /// The doublings when the oldest number changed.
    doublings_before: u32,
    /// What lies beyond was sent after the last doubling: its acknowledgement is of one
    /// transmission and ends the backing off.
    ambiguous_until: Option<SeqNum>,
    /// Something that was sent once was acknowledged: the sender has measured a round trip.
    is_measured: bool,
    is_syn_acknowledged: bool,
    /// What is outstanding is one octet that left alone, after a wait: a window probe, as it seems.
    is_probe: bool,
    /// Segments that arrived since: at the peer, and acknowledgements of it back at the sender.
    arrived: [u64; 2],
    /// Whether any arrived since the oldest number was sent last.
    delivers: [bool; 2],
    /// How long the path delivered, of the time before that.
    delivered_for: Nanos,
    /// Whether the oldest number left last in a segment that is too large for the path, and for how
    /// long it had waited after such ones before.
    is_too_large: bool,
    too_large_for: Nanos,
    /// Whether the peer sent anything since the oldest number was sent last, and for how long it
    /// had not, although something arrived, before.
    is_answered: bool,
    unanswered_for: Nanos,
    /// Longest delay from host to host, of both directions.
    delays: [Option<Nanos>; 2],
    /// Longest time that the oldest number waited.
    longest: Nanos,
    /// How long numbers waited until they were acknowledged: the longest, less an eighth with each
    /// later one. Where an acknowledgement gets lost, the next one echoes the same timestamp,
    /// and the round trip is that long (RFC 7323 §4.3). Without timestamps it is the round trip of
    /// what was sent once.
    measured: Nanos,
    stalls: u64,
    /// The present wait was counted as a stall.
    is_counted: bool,
}

impl Progress {
    pub(super) fn new(timer: Timer) -> Self {
        Self {
            timer,
            numbers: None,
            since: Instant::ZERO,
            sent_at: Instant::ZERO,
            attempts: 0,
            doublings: 0,
            doublings_before: 0,
            ambiguous_until: None,
            is_measured: false,
            is_syn_acknowledged: false,
            is_probe: false,
            arrived: [0; 2],
            delivers: [false; 2],
            delivered_for: Nanos::ZERO,
            is_too_large: false,
            too_large_for: Nanos::ZERO,
            is_answered: false,
            unanswered_for: Nanos::ZERO,
            delays: [None; 2],
            longest: Nanos::ZERO,
            measured: Nanos::ZERO,
            stalls: 0,
            is_counted: false,
        }
    }

    /// How often the sender stalled.
    pub(super) fn stalls(&self) -> u64 {
        self.stalls
    }

    /// Longest time that the oldest unacknowledged number stayed the same, whatever the reason.
    pub(super) fn longest(&self) -> Duration {
        self.longest.into()
    }

    /// The sender sends `len` numbers from `seq`, in a packet that the path takes (`fits`), or is
    /// too large for it at any time.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, seq: SeqNum, len: u32, fits: bool) {
        if len == 0 {
            return;
        }
        let end = seq + len;
        let (una, highest) = *self.numbers.get_or_insert((seq, seq));
        if una == highest {
            self.is_probe = len == 1 && now.nanos_since(self.since) >= self.timer.least.into();
            self.restart(now, 0);
        }
        if !seq.after(una) && end.after(una) {
            self.attempts += 1;
            self.delivered_for = self.delivered_for(now);
            self.too_large_for = self.too_large_for(now);
            self.unanswered_for = self.unanswered_for(now);
            self.delivers = [false; 2];
            self.is_too_large = !fits;
            self.is_answered = false;
            self.sent_at = now;
            if self.attempts > 1 {
                self.doublings += 1;
                self.ambiguous_until = Some(if end.after(highest) { end } else { highest });
            }
        }
        if end.after(highest) {
            self.numbers = Some((una, end));
        }
    }

    /// A segment of the sender with numbers of its own arrived after `delay`.
    #[inline]
    pub(super) fn on_delivered(&mut self, delay: Nanos) {
        self.arrived[0] += 1;
        self.delivers[0] = true;
        let longest = self.delays[0].map_or(delay, |longest| longest.max(delay));
        self.delays[0] = Some(longest);
    }

    /// The peer sends a segment of whatever kind.
    #[inline]
    pub(super) fn on_answered(&mut self) {
        self.is_answered = true;
    }

    /// An acknowledgement of everything before `ack` arrived at the sender after `delay`.
    #[inline]
    pub(super) fn on_acknowledged(&mut self, now: Instant, ack: SeqNum, delay: Nanos) {
        self.arrived[1] += 1;
        self.delivers[1] = true;
        let longest = self.delays[1].map_or(delay, |longest| longest.max(delay));
        self.delays[1] = Some(longest);
        if let Some((una, highest)) = self.numbers
            && ack.after(una)
            && !ack.after(highest)
        {
            self.numbers = Some((ack, highest));
            let is_first_sample = !self.is_measured;
            if self.is_probe && ack == highest {
                // A window probe whose octet was taken: the next one leaves after twice the time
                // all the same (RFC 9293 §3.8.6.1).
                self.doublings += 1;
            } else if self.ambiguous_until.is_none_or(|end| ack.after(end)) {
                self.doublings = 0;
                self.ambiguous_until = None;
                self.is_measured = true;
            }
            let is_syn = !mem::replace(&mut self.is_syn_acknowledged, true);
            let waited = now.nanos_since(self.since);
            // Karn's algorithm: what was sent again, and what left before that, measures nothing.
            let is_sample = self.attempts == 1 && self.ambiguous_until.is_none();
            let waited = match self.timer.echoes {
                // The variation of the first sample is half of it (RFC 6298 §2.2).
                Echoes::All | Echoes::Syn if is_syn => waited * 3,
                Echoes::None if is_sample && is_first_sample => waited * 3,
                Echoes::None if is_sample => waited,
                Echoes::All => waited,
                Echoes::Syn | Echoes::None => Nanos::ZERO,
            };
            self.measured = waited.max(self.measured.saturating_sub(self.measured / 8));
            // What is oldest now was sent before.
            self.restart(now, 1);
        }
    }

    /// The receiving application does not read: a sender that stands still is excused until it
    /// reads again.
    pub(super) fn excuse(&mut self, now: Instant) {
        self.restart(now, self.attempts);
    }

    fn restart(&mut self, now: Instant, attempts: u32) {
        self.since = now;
        self.sent_at = now;
        self.attempts = attempts;
        self.doublings_before = self.doublings;
        self.arrived = [0; 2];
        self.delivers = [false; 2];
        self.delivered_for = Nanos::ZERO;
        self.is_too_large = false;
        self.too_large_for = Nanos::ZERO;
        self.is_answered = false;
        self.unanswered_for = Nanos::ZERO;
        self.is_counted = false;
    }

    /// How long the path delivered since the oldest number changed.
    fn delivered_for(&self, now: Instant) -> Nanos {
        let last = now.nanos_since(self.sent_at);
        self.delivered_for
            + if self.delivers == [true; 2] {
                last
            } else {
                Nanos::ZERO
            }
    }

    /// How long the oldest number waited after segments that were too large for the path.
    fn too_large_for(&self, now: Instant) -> Nanos {
        let last = now.nanos_since(self.sent_at);
        self.too_large_for + if self.is_too_large { last } else { Nanos::ZERO }
    }

    /// How long the peer sent nothing, in times in which a segment of the sender arrived.
    fn unanswered_for(&self, now: Instant) -> Nanos {
        let last = now.nanos_since(self.sent_at);
        self.unanswered_for
            + if self.delivers[0] && !self.is_answered {
                last
            } else {
                Nanos::ZERO
            }
    }

    /// What the sender's first timeout for a segment can come to on this path, at most: a smoothed
    /// round trip, taken as the longest one, and the longer of four times its variation (RFC
    /// 6298 §2.3), taken as that again, and the least timeout, which the sender adds as Linux
    /// does; or what an echo made longer.
    fn timeout(&self) -> Nanos {
        match self.delays {
            [Some(there), Some(back)] if self.is_measured => {
                let longest = there + back;
                (longest + longest.max(self.timer.least.into())).max(self.measured)
            }
            _ if self.doublings > 0 => AFTER_LOST_SYN.max(self.timer.initial.into()),
            _ => self.timer.initial.into(),
        }
    }

    /// Takes note of the time. Says in words what is wrong, once for each stall.
    #[inline]
    pub(super) fn check(&mut self, now: Instant) -> Option<String> {
        let (una, highest) = self.numbers?;
        if una == highest {
            return None;
        }
        let waited = now.nanos_since(self.since);
        self.longest = self.longest.max(waited);
        if self.is_counted || waited < LEAST_SILENCE {
            return None;
        }
        self.judge(now, waited)
    }

    /// The oldest number has `waited` so long that it may be a stall.
    #[cold]
    fn judge(&mut self, now: Instant, waited: Nanos) -> Option<String> {
        let timeout = self.timeout();
        let delivers = self.arrived.iter().all(|count| *count >= DELIVERED);
        let delivered_for = self.delivered_for(now);
        let doubled = |doublings: u32| 1_u64 << doublings.min(12);
        let silent = now.nanos_since(self.sent_at);
        let most_silent = timeout * MARGIN * doubled(self.doublings);
        let most_waited = timeout * TIMEOUTS * doubled(self.doublings_before);
        let [too_large_for, unanswered_for] = [self.too_large_for(now), self.unanswered_for(now)];
        let [is_long, is_delivered, is_too_large, is_unanswered] = [
            silent >= most_silent.clamp(LEAST_SILENCE, MOST_SILENCE),
            delivers && delivered_for >= LEAST.max(most_waited),
            too_large_for >= LEAST.max(most_waited),
            unanswered_for >= LEAST.max(most_waited),
        ];
        // For people.
        let [waited, timeout, silent] = [waited, timeout, silent].map(Duration::from);
        let [delivered_for, too_large_for, unanswered_for] =
            [delivered_for, too_large_for, unanswered_for].map(Duration::from);
        let what = if is_delivered {
            format!(
                "the oldest byte has been unacknowledged for {waited:.1?}, although the path delivered for {delivered_for:.1?}: \
                 {} segments of this side and {} of the other arrived meanwhile (a timeout is {timeout:.1?} at most)",
                self.arrived[0], self.arrived[1],
            )
        } else if is_too_large {
            format!(
                "the oldest byte has been unacknowledged for {waited:.1?} and was sent {} times, in segments that are too large for the \
                 path for {too_large_for:.1?} of that time (a timeout is {timeout:.1?} at most)",
                self.attempts,
            )
        } else if is_unanswered {
            format!(
                "the peer has sent nothing for {unanswered_for:.1?}, although {} segments arrived at it and the oldest byte has been \
                 unacknowledged for {waited:.1?} (a timeout is {timeout:.1?} at most)",
                self.arrived[0],
            )
        } else if is_long {
            format!(
                "the oldest unacknowledged byte was sent {} times and not again for {silent:.1?} (a timeout is {timeout:.1?} \
                 at most)",
                self.attempts,
            )
        } else {
            return None;
        };
        self.is_counted = true;
        self.stalls += 1;
        Some(what)
    }
}

#[cfg(test)]
mod tests;
