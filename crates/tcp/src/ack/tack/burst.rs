//! Bursts: what a report tells of that is due as one begins.
//!
//! A radio that aggregates is silent for longer than the interval of reports, and then brings
//! dozens of segments. The first L of them make a report due. Sent then, it tells of these alone,
//! and the rest need another one an interval later. On such a medium that is two accesses instead
//! of one, and they cost air and collide. So a report that the beginning of a burst makes due waits
//! for the end of it: for twice the time that lies between segments of bursts, but for no longer
//! than an interval after the first segment, nor than a radio holds the medium. What arrives at one
//! instant is one burst, whose end is the same instant.
//!
//! Where segments come evenly, a report is due before the segment arrives that lets it leave, or
//! segments are further apart than those of bursts: then nothing waits.

use tack_base::Instant;
use tack_base::time::Nanos;

/// Segments belong to the same burst if no more than this part of an interval lies between them.
const PART: u64 = 8;
/// … and no more than this: a segment takes less in a transmission of 54 Mbit/s.
const CLOSE: Nanos = Nanos(250_000);
/// Weight of the newest spacing in the smoothed one is one in so many.
const SMOOTHING: u64 = 8;

/// A burst is not waited for longer than this after its first segment: no transmission of 802.11
/// takes longer (aPPDUMaxTime, IEEE 802.11-2020 table 19-25). What goes on is a stream.
const LONGEST: Nanos = Nanos(5_484_000);

/// The burst that is arriving, and how close segments of bursts follow each other.
#[derive(Debug)]
pub(super) struct Burst {
    /// When the newest segment arrived.
    newest: Option<Instant>,
    /// Smoothed time between segments of the same burst.
    spacing: Nanos,
    ends: Instant,
}

impl Default for Burst {
    fn default() -> Self {
        Self {
            newest: None,
            spacing: Nanos::ZERO,
            ends: Instant::ZERO,
        }
    }
}

impl Burst {
    /// A segment that arrived at `arrived` is handled at `now`. `begins` is when the first one was
    /// that no report told of, if a report was due by then; reports are `interval` apart at least.
    #[inline]
    pub(super) fn on_data(
        &mut self,
        now: Instant,
        arrived: Instant,
        interval: Nanos,
        begins: Option<Instant>,
    ) {
        let longest = (interval / PART).min(CLOSE);
        let before = self.newest.replace(arrived);
        self.ends = Instant::ZERO;
        let Some(spacing) = before
            .map(|before| arrived.nanos_since(before))
            .filter(|spacing| *spacing <= longest)
        else {
            return;
        };
        self.spacing = (self.spacing * (SMOOTHING - 1) + spacing) / SMOOTHING;
        if let Some(begins) = begins {
            let wait = (self.spacing * 2).min(longest);
            self.ends = (now + wait).min(begins + interval.min(LONGEST));
        }
    }

    /// When the burst ends that a report shall wait for, unless another segment arrives before; in
    /// the past if nothing is to be waited for. Now: with what arrived at the same instant.
    pub(super) const fn ends(&self) -> Instant {
        self.ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Nanos = Nanos(4_000_000);

    fn us(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    /// Segments this far apart, microseconds, that begin at `from`. When the burst ends after the
    /// last of them.
    fn burst(burst: &mut Burst, from: u64, segments: u64, spacing: u64) -> Instant {
        for segment in 0..segments {
            let at = us(from + segment * spacing);
            burst.on_data(at, at, INTERVAL, Some(us(from)));
        }
        burst.ends()
    }

    #[test]
    fn it_ends_two_spacings_after_its_last_segment_and_an_interval_after_its_first() {
        let mut bursts = Burst::default();
        for number in 0..10 {
            burst(&mut bursts, number * 100_000, 40, 50);
        }
        let end = burst(&mut bursts, 2_000_000, 40, 50);
        let wait = end.saturating_since(us(2_000_000 + 39 * 50));
        assert!((90..=110).contains(&wait.as_micros()), "{wait:?}");
        assert_eq!(
            burst(&mut bursts, 3_000_000, 80, 50),
            us(3_000_000) + INTERVAL
        );
    }

    #[test]
    fn a_stream_that_goes_on_is_not_waited_for_longer_than_a_transmission_takes() {
        let mut bursts = Burst::default();
        let from = us(1_000_000);
        for segment in 0..1_000 {
            let at = from + Nanos(50_000 * segment);
            bursts.on_data(at, at, Nanos(50_000_000), Some(from));
            assert!(bursts.ends() <= from + LONGEST, "{segment}");
        }
    }

    #[test]
    fn what_arrives_at_one_instant_ends_at_that_instant() {
        assert_eq!(burst(&mut Burst::default(), 5_000, 20, 0), us(5_000));
    }

    #[test]
    fn segments_far_apart_are_no_burst_and_neither_is_what_no_silence_preceded() {
        let mut bursts = Burst::default();
        assert_eq!(burst(&mut bursts, 1_000, 40, 251), Instant::ZERO);
        for segment in 0..40 {
            let at = us(100_000 + 50 * segment);
            bursts.on_data(at, at, INTERVAL, None);
            assert_eq!(bursts.ends(), Instant::ZERO);
        }
    }
}
