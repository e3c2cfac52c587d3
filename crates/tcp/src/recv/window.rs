//! The window this side offers: autotuned, never silly. Its right edge never goes back.
//!
//! RFC 9293 §3.8.6.2.2 (receiver's silly-window avoidance), RFC 7323 §2 (scaling). Autotuning is
//! dynamic right-sizing: the buffer grows to twice what the application took in the last round
//! trip, so that a sender may double its rate each round trip, and no further than the cap. The
//! buffer shrinks only where the configuration says so.

use core::time::Duration;

use tack_base::filter::{WindowedMax, WindowedMin};
use tack_base::time::Nanos;
use tack_base::{Instant, StreamOffset};

/// Shortest interval over which consumption is measured.
const SHORTEST_ROUND: Nanos = Nanos(1_000_000);

/// What the application takes is judged as over a round trip of at least this, where none was
/// measured since the handshake. That saw no queue, and a radio that aggregates keeps some
/// milliseconds of data on the air and as much waiting: twice the bandwidth-delay product of an
/// empty path does not fill it.
const UNMEASURED_ROUND: Nanos = Nanos(20_000_000);

/// A buffer that may shrink holds what the most demanding of so many round trips asked for.
const ROUNDS_TO_SHRINK: u64 = 16;

/// How much is known of the round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RoundTrip {
    /// As it is now.
    Measured(Duration),
    /// As the handshake found it.
    Initial(Duration),
}

/// What a buffer that may shrink follows.
#[derive(Debug)]
struct Needs {
    /// The buffer does not get smaller, bytes.
    least: usize,
    /// What the last round trips asked for, bytes, by their number.
    asked: WindowedMax<usize>,
    /// The shortest of the last round trips.
    shortest: WindowedMin<Nanos>,
    /// Round trips judged.
    rounds: u64,
    /// What the application's pace in the last one asks for, bytes.
    pace: usize,
}

/// The receive window. Positions are sequence positions.
#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    /// Buffer in use, bytes.
    buffer: usize,
    cap: usize,
    /// The largest buffer so far, bytes.
    largest: usize,
    /// Where the buffer may shrink.
    needs: Option<Needs>,
    /// Right edge promised to the peer.
    edge: StreamOffset,
    /// Shift of our window field once scaling is agreed.
    scale: u8,
    /// Payload of a full-sized segment, bytes: the edge moves by that much at least.
    segment: u64,
    round_start: Instant,
    round_read: StreamOffset,
    /// What the application's pace asks for, bytes.
    target: usize,
    /// The round trip that the target is for; zero before the first round.
    target_round: Nanos,
}

impl ReceiveWindow {
    /// A window of `initial` bytes that may grow to `cap`.
    pub(crate) fn new(initial: usize, cap: usize, now: Instant) -> Self {
        let cap = cap.max(1);
        Self {
            buffer: initial.clamp(1, cap),
            cap,
            largest: 0,
            needs: None,
            edge: StreamOffset::FIRST_BYTE,
            scale: 0,
            segment: USUAL_SEGMENT,
            round_start: now,
            round_read: StreamOffset::FIRST_BYTE,
            target: 0,
            target_round: Nanos::ZERO,
        }
    }

    /// The buffer may shrink, down to `least` bytes.
    pub(crate) fn shrinking_to(mut self, least: Option<usize>) -> Self {
        self.needs = least.map(|least| {
            let mut asked = WindowedMax::new(ROUNDS_TO_SHRINK);
            asked.reset(0, self.buffer);
            Needs {
                least,
                asked,
                shortest: WindowedMin::new(ROUNDS_TO_SHRINK),
                rounds: 0,
                pace: 0,
            }
        });
        self
    }

    /// The shift to offer: the smallest with which the cap can be announced (RFC 7323 §2.3).
    pub(crate) fn scale_for(cap: usize) -> u8 {
        (0..14).find(|shift| cap >> shift <= 0xffff).unwrap_or(14)
    }

    /// From now on the buffer does not outgrow `cap`, bytes. What was promised stays promised.
    pub(crate) fn set_cap(&mut self, cap: usize) {
        self.largest = self.largest_buffer();
        self.cap = cap.max(1);
        self.buffer = self.buffer.min(self.cap);
    }

    /// By how much window fields are shifted.
    pub(crate) fn shift(&self) -> u8 {
        self.scale
    }

    /// The shift that the handshake settled: zero without agreement.
    pub(crate) fn set_scale(&mut self, scale: u8) {
        self.scale = scale;
    }

    /// Full-sized segments carry `bytes` of payload from now on.
    #[inline]
    pub(crate) fn set_segment(&mut self, bytes: u64) {
        self.segment = bytes;
    }

    /// First position that will not be accepted. Includes what rounding the window field up
    /// promised.
    #[inline]
    pub(crate) fn edge(&self) -> StreamOffset {
        self.edge + (1 << self.scale) - 1
    }

    /// Buffer in use, bytes.
    pub(crate) fn buffer(&self) -> usize {
        self.buffer
    }

    /// The largest buffer that was ever in use, bytes.
    pub(crate) fn largest_buffer(&self) -> usize {
        self.largest.max(self.buffer)
    }

    /// How much may wait to be read or be on its way while the application has read up to `read`,
    /// bytes: the buffer, or more where it shrank since that was promised.
    #[inline]
    pub(crate) fn room(&self, read: StreamOffset) -> u64 {
        self.edge.saturating_since(read).max(self.buffer as u64)
    }

    /// The window field for a segment that leaves now, and the promise it makes. `syn` fields are
    /// not scaled.
    #[inline]
    pub(crate) fn announce(&mut self, read: StreamOffset, next: StreamOffset, syn: bool) -> u16 {
        let (edge, field) = self.field(read, next, syn);
        self.edge = edge;
        field
    }

    fn field(&self, read: StreamOffset, next: StreamOffset, syn: bool) -> (StreamOffset, u16) {
        let scale = if syn { 0 } else { self.scale };
        // The whole of a small buffer is free, and the peer had room for a full-sized segment when
        // it sent a shorter one: no window makes it send short ones. (4.4BSD and Linux announce any
        // window that holds a segment.)
        let is_empty = self.buffer < LARGE_BUFFER
            && read == next
            && self.edge.saturating_since(next) >= self.segment;
        let edge = if is_empty {
            self.edge.max(read + self.buffer as u64)
        } else {
            self.wanted_edge(read)
        };
        let size = edge.saturating_since(next);
        // Round up: rounding down could take back up to 2^scale - 1 promised bytes (RFC 7323 §2.4).
        let field = (size + (1 << scale) - 1) >> scale;
        let field = u16::try_from(field).unwrap_or(u16::MAX);
        (
            edge.min(next + (u64::from(field) << scale)).max(self.edge),
            field,
        )
    }

    /// By how much the edge moves at least, bytes: a full-sized segment, as the algorithm that RFC
    /// 9293 §3.8.6.2.2 suggests has it (MUST-39 asks for any that avoids silly windows).
    ///
    /// In a buffer that holds many segments it is [`USUAL_SEGMENT`], so that segments with options,
    /// of 1,448 bytes, move the edge in pairs: less silly than asked for, never more. No sender
    /// stands still there for one segment of window. Measured where the window alone limits
    /// (100 Mbit/s, 40 ms; 64, 128 and 256 KiB; `every`, `delayed:2` and 8): goodput with pairs is
    /// 0.99 to 1.03 times that with segments of 1,460 bytes, each of which moves the edge.
    fn step(&self) -> u64 {
        if self.buffer < LARGE_BUFFER {
            self.segment
        } else {
            USUAL_SEGMENT
        }
    }

    /// A segment that leaves now would promise more than the last one did.
    #[inline]
    pub(crate) fn would_move(&self, read: StreamOffset) -> bool {
        self.wanted_edge(read) > self.edge
    }

    fn wanted_edge(&self, read: StreamOffset) -> StreamOffset {
        let free = read + self.buffer as u64;
        // Small advances of the edge would make the peer send small segments: hold them back.
        let step = (self.buffer as u64 / 2).min(self.step());
        if free >= self.edge + step {
            free
        } else {
            self.edge
        }
    }

    /// So many bytes wait above a hole. They take room that the application's pace does not show,
    /// as it cannot read them: without more, the sender would stand still whenever a loss takes a
    /// round trip to repair.
    pub(crate) fn on_blocked(&mut self, blocked: u64) {
        let blocked = usize::try_from(blocked).unwrap_or(usize::MAX);
        let pace = self.needs.as_ref().map_or(self.target, |needs| needs.pace);
        let wanted = blocked.saturating_add(pace).min(self.cap);
        self.buffer = self.buffer.max(wanted);
        if let Some(needs) = &mut self.needs {
            needs.asked.update(needs.rounds, wanted);
        }
    }

    /// The application took data up to `read`. True when that opens the window enough to say so at
    /// once: a sender must not sit blocked on a window that is open.
    pub(crate) fn on_read(
        &mut self,
        now: Instant,
        read: StreamOffset,
        next: StreamOffset,
        round_trip: RoundTrip,
    ) -> bool {
        let elapsed = now.nanos_since(self.round_start);
        let (round, judged) = match round_trip {
            RoundTrip::Measured(round) => (round.into(), round.into()),
            RoundTrip::Initial(round) => (round.into(), UNMEASURED_ROUND.max(round.into())),
        };
        let path = judged;
        let (round, judged) = (SHORTEST_ROUND.max(round), SHORTEST_ROUND.max(judged));
        if elapsed >= round {
            let taken = read - self.round_read;
            // A round that took much longer than asked for says less about the rate: scale it down.
            let rounds = elapsed.0 / round.0;
            let share = judged.0 / round.0;
            let target = 2 * u128::from(taken) * u128::from(share) / u128::from(rounds);
            self.aim_at(target, round * share, path);
            self.round_start = now;
            self.round_read = read;
        } else if judged > self.target_round + self.target_round / 8 && self.target > 0 {
            // A queue grows on the path: the same rate takes more room. To wait for the end of a
            // round that gets longer all the time would keep the sender from filling the path
            // meanwhile.
            let grown = (self.target.saturating_sub(SPARE) as u128) * u128::from(judged.0)
                / u128::from(self.target_round.0.max(1));
            self.aim_at(grown, judged, path);
        }
        let current = self.edge.saturating_since(next);
        let offered = self.wanted_edge(read).saturating_since(next);
        offered >= current.saturating_mul(2).max(1)
            && offered - current >= (self.buffer as u64 / 2).min(2 * self.step())
    }

    /// Takes `target` bytes and some segments for what a round trip of `round` asks for, which is
    /// a millisecond or longer. Where the path's own round trips, such as `path`, are shorter, a
    /// buffer that may shrink takes what the shortest of them asks for: the others are long
    /// because a processor was busy.
    fn aim_at(&mut self, target: u128, round: Nanos, path: Nanos) {
        let target = usize::try_from(target).unwrap_or(usize::MAX);
        self.target = target.saturating_add(SPARE);
        self.target_round = round;
        let Some(needs) = &mut self.needs else {
            self.buffer = self.buffer.max(self.target.min(self.cap));
            return;
        };
        self.largest = self.largest.max(self.buffer);
        needs.rounds += 1;
        let shortest = needs.shortest.update(needs.rounds, path);
        needs.pace = if shortest < SHORTEST_ROUND {
            let share = target as u128 * u128::from(shortest.0) / u128::from(round.0);
            usize::try_from(share)
                .unwrap_or(usize::MAX)
                .saturating_add(SPARE)
        } else {
            self.target
        };
        let asked = needs.asked.update(needs.rounds, needs.pace);
        self.buffer = asked.max(needs.least).min(self.cap);
    }
}

/// Room beyond what the pace asks for, bytes: some segments, so that the first rounds grow.
const SPARE: usize = 16 * 1460;

/// Payload of a full-sized segment without options, bytes.
const USUAL_SEGMENT: u64 = 1460;

/// A buffer of so many bytes holds dozens of segments.
const LARGE_BUFFER: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_MS: RoundTrip = RoundTrip::Measured(Duration::from_millis(10));

    #[test]
    fn the_edge_never_goes_back() {
        let mut window = ReceiveWindow::new(64 << 10, 1 << 20, Instant::ZERO);
        window.set_scale(7);
        let first = window.announce(StreamOffset(1), StreamOffset(1), false);
        assert_eq!(u64::from(first) << 7, 65_536);
        let edge = window.edge();
        // Three odd bytes arrive and stay unread: the promise holds.
        let second = window.announce(StreamOffset(1), StreamOffset(4), false);
        assert!(StreamOffset(4) + (u64::from(second) << 7) >= edge - 127);
        assert!(window.edge() >= edge);
    }

    #[test]
    fn a_drained_buffer_is_announced_at_once() {
        let mut window = ReceiveWindow::new(64 << 10, 64 << 10, Instant::ZERO);
        window.announce(StreamOffset(1), StreamOffset(1), false);
        let full = 1 + (64 << 10);
        assert_eq!(
            window.announce(StreamOffset(1), StreamOffset(full), false),
            0
        );
        assert!(
            !window.on_read(Instant::ZERO, StreamOffset(100), StreamOffset(full), TEN_MS),
            "a silly window stays closed"
        );
        assert!(window.on_read(
            Instant::ZERO,
            StreamOffset(4000),
            StreamOffset(full),
            TEN_MS
        ));
    }

    /// A buffer of two segments and a bit: each segment that is read moves the edge, whatever the
    /// peer's full size is (RFC 9293 MUST-39).
    #[test]
    fn a_full_sized_segment_that_is_read_moves_the_edge() {
        for segment in [536, 1448, 1460] {
            let mut window = ReceiveWindow::new(4096, 4096, Instant::ZERO);
            window.set_segment(segment);
            window.announce(StreamOffset(1), StreamOffset(1), false);
            let edge = window.edge();
            let less = StreamOffset(segment);
            window.announce(less, less + 1, false);
            assert_eq!(window.edge(), edge, "{segment}: a byte less");
            let read = StreamOffset(1 + segment);
            window.announce(read, read, false);
            assert_eq!(window.edge(), edge + segment);
        }
    }

    /// A short segment from a peer that had room for a full one, and nothing waits to be read.
    #[test]
    fn a_short_segment_moves_the_edge_of_an_empty_buffer_while_a_full_one_fits() {
        for (buffer, came, unread, moves) in [
            (4096, 1000, 0, true),
            (4096, 2648, 0, true),
            (4096, 1000, 1, false),
            // No full segment fits any more: the window itself may have made this one short.
            (2400, 1000, 0, false),
            // Dozens of segments: there the edge moves in pairs of them.
            (64 << 10, 1000, 0, false),
        ] {
            let mut window = ReceiveWindow::new(buffer, buffer, Instant::ZERO);
            window.set_segment(1448);
            window.announce(StreamOffset(1), StreamOffset(1), false);
            let edge = window.edge();
            let next = StreamOffset(1 + came);
            window.announce(StreamOffset(next.0 - unread), next, false);
            assert_eq!(window.edge() > edge, moves, "{came} bytes, {unread} unread");
        }
    }

    #[test]
    fn the_buffer_grows_with_consumption_up_to_the_cap() {
        let mut window = ReceiveWindow::new(64 << 10, 1 << 20, Instant::ZERO);
        let mut read = 1;
        for round in 1..20 {
            read += window.buffer() as u64;
            window.on_read(
                Instant::from_millis(10 * round),
                StreamOffset(read),
                StreamOffset(read),
                TEN_MS,
            );
        }
        assert_eq!(window.buffer(), 1 << 20);
    }

    /// 100 Mbit/s over an empty path of 2 ms: two such round trips are not enough for a queue that
    /// builds up.
    #[test]
    fn a_round_trip_that_nobody_measures_is_taken_for_longer() {
        let buffer = |round_trip| {
            let mut window = ReceiveWindow::new(64 << 10, 1 << 20, Instant::ZERO);
            for round in 1..20 {
                let read = 1 + round * 25_000;
                window.on_read(
                    Instant::from_millis(2 * round),
                    StreamOffset(read),
                    StreamOffset(read),
                    round_trip,
                );
            }
            window.buffer()
        };
        let two = Duration::from_millis(2);
        assert_eq!(buffer(RoundTrip::Measured(two)), 2 * 25_000 + 16 * 1460);
        assert_eq!(buffer(RoundTrip::Initial(two)), 20 * 25_000 + 16 * 1460);
    }

    /// The rate stays, the round trip triples: the buffer does not wait for the end of the longer
    /// round.
    #[test]
    fn a_round_trip_that_grows_is_followed_before_its_round_ends() {
        let mut window = ReceiveWindow::new(64 << 10, 4 << 20, Instant::ZERO);
        let mut at = |ms: u64, round_trip| {
            let read = 1 + ms * 10_000;
            let measured = RoundTrip::Measured(Duration::from_millis(round_trip));
            window.on_read(
                Instant::from_millis(ms),
                StreamOffset(read),
                StreamOffset(read),
                measured,
            );
            window.buffer()
        };
        at(10, 10);
        assert_eq!(at(20, 10), 2 * 100_000 + SPARE);
        assert_eq!(at(21, 11), 2 * 100_000 + SPARE, "less than an eighth more");
        assert_eq!(at(22, 30), 2 * 300_000 + SPARE);
        assert_eq!(at(23, 20), 2 * 300_000 + SPARE, "it never shrinks");
        assert_eq!(
            at(80, 30),
            2 * 300_000 + SPARE,
            "the same at the end of a round"
        );
    }

    /// 1 MB in each round trip of 10 ms, then a tenth of it.
    #[test]
    fn a_buffer_that_may_shrink_follows_the_pace_of_the_last_round_trips() {
        const LEAST: usize = 100_000;
        let slow = |rounds: u64, least| {
            let mut window =
                ReceiveWindow::new(64 << 10, 4 << 20, Instant::ZERO).shrinking_to(least);
            let mut read = StreamOffset(1);
            for round in 1..20 + rounds {
                read += if round < 20 { 1_000_000 } else { 100_000 };
                window.announce(read, read, false);
                let edge = window.edge();
                let now = Instant::from_millis(10 * round);
                window.on_read(now, read, read, TEN_MS);
                window.announce(read, read, false);
                assert!(window.edge() >= edge, "what was promised stays promised");
            }
            (window.buffer(), window.largest_buffer())
        };
        let (fast, less) = (2_000_000 + SPARE, 200_000 + SPARE);
        assert_eq!(slow(8, Some(LEAST)), (fast, fast));
        assert_eq!(slow(40, Some(LEAST)), (less, fast));
        assert_eq!(slow(40, Some(500_000)), (500_000, fast));
        assert_eq!(slow(40, Some(8 << 20)).0, 4 << 20, "no more than the cap");
        assert_eq!(slow(40, None), (fast, fast));
    }

    /// 1 MB in each millisecond: a path of 100 us needs a tenth of what one of 1 ms does.
    #[test]
    fn a_buffer_that_may_shrink_knows_paths_shorter_than_a_millisecond() {
        let buffer = |micros: u64, blocked: u64| {
            let mut window =
                ReceiveWindow::new(64 << 10, 4 << 20, Instant::ZERO).shrinking_to(Some(1));
            let round_trip = RoundTrip::Measured(Duration::from_micros(micros));
            for ms in 1..40 {
                let read = StreamOffset(1 + ms * 1_000_000);
                window.on_read(Instant::from_millis(ms), read, read, round_trip);
            }
            // A statement that says more than the path's own.
            let late = RoundTrip::Measured(Duration::from_micros(20 * micros));
            let read = StreamOffset(1 + 40 * 1_000_000);
            window.on_read(Instant::from_millis(40), read, read, late);
            window.on_blocked(blocked);
            window.buffer() - SPARE
        };
        assert_eq!(buffer(100, 0), 200_000);
        assert_eq!(buffer(100, 100_000), 300_000, "above a hole, too");
    }

    /// Bytes above a hole take their room for as long as a pace does, and so does the buffer at the
    /// beginning. A pause is one round trip, however long it is.
    #[test]
    fn a_buffer_that_may_shrink_remembers_sixteen_round_trips() {
        let mut window = ReceiveWindow::new(64 << 10, 4 << 20, Instant::ZERO).shrinking_to(Some(1));
        let mut at = |ms: u64, blocked: u64| {
            let read = StreamOffset(1 + ms * 1_000);
            if blocked > 0 {
                window.on_blocked(blocked);
            }
            window.on_read(Instant::from_millis(ms), read, read, TEN_MS);
            window.buffer()
        };
        let calm = 20_000 + SPARE;
        assert_eq!(at(10, 0), 64 << 10);
        for round in 2..20 {
            at(10 * round, 0);
        }
        assert_eq!(at(200, 0), calm);
        assert_eq!(at(210, 500_000), calm + 500_000);
        assert_eq!(at(10_000, 0), calm + 500_000);
        for round in 1..20 {
            at(10_000 + 10 * round, 0);
        }
        assert_eq!(at(10_200, 0), calm);
    }

    #[test]
    fn scales_cover_the_cap() {
        assert_eq!(ReceiveWindow::scale_for(65_535), 0);
        assert_eq!(ReceiveWindow::scale_for(6 << 20), 7);
        assert_eq!(ReceiveWindow::scale_for(usize::MAX), 14);
    }
}
