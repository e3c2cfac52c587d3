//! What it takes to believe that a path takes TACK's option off segments, and that it does so no
//! more.

use core::time::Duration;

use tack_base::Instant;

/// Least number of segments without the option, in a row, that show that none comes any more.
const FEW: u32 = 6;
/// The largest such number. A path that passes a quarter of them takes it off 40 in a row once in
/// 100,000 times; what passes one of twenty is of no use.
const MANY: u32 = 40;
/// With a smaller share of segments than this the option is of no use.
const LEAST_SHARE: u32 = ALL / 8;
/// All of them, in the unit of [`Absence::share`].
const ALL: u32 = 1 << 16;
/// Segments over which the share is averaged, about.
const AVERAGED: u32 = 64;
/// Of this many segments with the option the longest row without it is remembered, about.
const MEMORY: u32 = 64;

/// Segments in a row that show what the path does: fewer are damage to some segments.
const IN_A_ROW: u32 = 3;

/// Segments in a row that have something in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Run {
    count: u32,
    since: Option<Instant>,
}

impl Run {
    /// One more arrived at `at`. True when they are enough, and `round_trip` has passed since the
    /// first: a burst that a box damaged at one moment shows nothing.
    pub(super) fn add(&mut self, at: Instant, round_trip: Duration) -> bool {
        self.count = self.count.saturating_add(1);
        let since = *self.since.get_or_insert(at);
        self.count >= IN_A_ROW && at >= since + round_trip
    }

    /// How many.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// How long before `at` the first one arrived; nothing where none did.
    pub(super) fn age(&self, at: Instant) -> Duration {
        self.since
            .map_or(Duration::ZERO, |since| at.saturating_since(since))
    }

    /// Something else came.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// None so far.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Whether TACK's option comes at all. A path may take it off some segments only, so what shows
/// that none comes any more depends on how many were seen without it before the next one came with
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Absence {
    run: Run,
    /// The share that comes with it, 0 to [`ALL`].
    share: u32,
    /// The longest row without it that ended lately, in 1/[`MEMORY`].
    longest: u32,
}

impl Absence {
    /// All come with it.
    pub(super) fn new() -> Self {
        Self {
            run: Run::default(),
            share: ALL,
            longest: 0,
        }
    }

    /// A segment came without the option at `at`. True if none comes any more, as far as this
    /// shows, or too few: if so many came without it in a row, and in `round_trip` at least.
    pub(super) fn on_bare(&mut self, at: Instant, round_trip: Duration) -> bool {
        self.share -= self.share / AVERAGED;
        let is_long = self.run.add(at, round_trip);
        is_long && (self.run.count >= self.patience() || self.share < LEAST_SHARE)
    }

    /// TACK is tried again. The row that ended it was not one that the path passes.
    pub(super) fn try_again(&mut self) {
        self.run.end();
        self.on_option();
        self.share = ALL / 2;
    }

    /// Segments in a row that show it.
    fn patience(&self) -> u32 {
        (FEW + 2 * self.longest.div_ceil(MEMORY)).min(MANY)
    }

    /// The last ones came without it, but no more of them in a row than lately: it is about to
    /// come.
    pub(super) fn is_usual(&self) -> bool {
        (1..=self.longest.div_ceil(MEMORY)).contains(&self.run.count)
    }

    /// One came with the option: the path passes it.
    #[inline]
    pub(super) fn on_option(&mut self) {
        if self.run.is_empty() && self.longest == 0 && self.share == ALL {
            return;
        }
        self.share += (ALL - self.share).div_ceil(AVERAGED);
        self.longest -= self.longest.div_ceil(MEMORY);
        // A longer one was none of those that a path has between two segments that it lets pass.
        if self.run.count <= MANY {
            self.longest = self.longest.max(self.run.count * MEMORY);
        }
        self.run.end();
    }

    /// How long before `at` the first of the row arrived.
    pub(super) fn age(&self, at: Instant) -> Duration {
        self.run.age(at)
    }
}

/// Whether the option comes again, after it was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Return {
    run: Run,
    /// Segments without it since the last one with it.
    bare: u32,
}

impl Return {
    /// A segment came with it at `at`. True if the path passes it: if three did over `round_trip`.
    pub(super) fn on_option(&mut self, at: Instant, round_trip: Duration) -> bool {
        self.bare = 0;
        self.run.add(at, round_trip)
    }

    /// One came without it. The others may still come.
    pub(super) fn on_bare(&mut self) {
        self.bare = self.bare.saturating_add(1);
        if self.bare >= FEW {
            self.run.end();
        }
    }

    /// None came so far, or they are over.
    pub(super) fn is_empty(&self) -> bool {
        self.run.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(10);

    /// How many segments in a row without the option, 5 ms apart, it takes.
    fn taken(mut absence: Absence) -> usize {
        let at = |number| Instant::from_millis(1_000 + 5 * number);
        let is_over = |number: &u64| absence.on_bare(at(*number), RTT);
        (1..).find(is_over).map_or(0, |number| number as usize)
    }

    #[test]
    fn six_in_a_row_over_a_round_trip_show_that_none_comes() {
        assert_eq!(taken(Absence::new()), FEW as usize);
        let mut absence = Absence::new();
        for _ in 0..100 {
            assert!(!absence.on_bare(Instant::from_millis(200), RTT), "a burst");
        }
        assert!(absence.on_bare(Instant::from_millis(210), RTT));
    }

    /// What rows without it were like is remembered, and forgotten.
    #[test]
    fn a_path_that_passes_some_is_given_more_time() {
        let mut absence = Absence::new();
        for longest in [1, 4, 9, MANY as usize] {
            for _ in 0..longest {
                absence.on_bare(Instant::from_millis(100), RTT);
            }
            absence.on_option();
            let expected = (FEW as usize + 2 * longest).min(MANY as usize);
            assert_eq!(taken(absence), expected);
        }
        assert!((0..=MANY).all(|_| !absence.on_bare(Instant::from_millis(100), RTT)));
        for _ in 0..MEMORY {
            absence.on_option();
        }
        assert!((20..40).contains(&taken(absence)));
        for _ in 0..10 * MEMORY {
            absence.on_option();
        }
        assert_eq!(taken(absence), FEW as usize);
    }

    /// A path drops the option for a while, again and again. Such a row ended TACK: it says nothing
    /// of how many segments without the option a path has between two that have it.
    #[test]
    fn a_row_that_ended_tack_is_not_expected_again() {
        let mut absence = Absence::new();
        for _ in 0..5 {
            assert_eq!(taken(absence), FEW as usize);
            for number in 0..30 {
                absence.on_bare(Instant::from_millis(1_000 + 5 * number), RTT);
            }
            absence.try_again();
        }
    }

    /// One of ten segments comes with the option: never forty in a row come without it, but it is
    /// of no use. One of five is.
    #[test]
    fn a_path_that_passes_few_is_given_up() {
        for (each, is_given_up) in [(10, true), (5, false)] {
            let mut absence = Absence::new();
            let mut bare = |number: u64| {
                if number.is_multiple_of(each) {
                    absence.on_option();
                    return false;
                }
                absence.on_bare(Instant::from_millis(1_000 + 5 * number), RTT)
            };
            // The first row is longer than any before it.
            (0..50).for_each(|number| _ = bare(number));
            assert_eq!((50..10_000).any(bare), is_given_up, "one of {each}");
        }
    }

    #[test]
    fn three_segments_with_the_option_show_that_it_comes_again() {
        let at = Instant::from_millis;
        let mut again = Return::default();
        assert!(!again.on_option(at(100), RTT) && !again.on_option(at(105), RTT));
        (0..FEW - 1).for_each(|_| again.on_bare());
        assert!(again.on_option(at(110), RTT));
        let mut again = Return::default();
        again.on_option(at(100), RTT);
        again.on_option(at(105), RTT);
        (0..FEW).for_each(|_| again.on_bare());
        assert!(again.is_empty());
        assert!(!again.on_option(at(110), RTT), "the first of three");
    }

    #[test]
    fn three_in_a_row_over_a_round_trip_are_enough() {
        let rtt = Duration::from_millis(10);
        let mut run = Run::default();
        let at = Instant::from_millis;
        assert!(!run.add(at(100), rtt) && !run.add(at(120), rtt), "two");
        assert!(run.add(at(121), rtt));
        run.end();
        for _ in 0..100 {
            assert!(!run.add(at(200), rtt), "a burst");
        }
        assert!(run.add(at(210), rtt));
    }
}
