//! Reports that are repeated when nothing more arrives: the sender may have used up its window and
//! wait for just this one.

use core::time::Duration;

/// Probability with which the report that ends a flight may get lost in all its copies.
const TOLERATED_SILENCE: f64 = 0.01;
/// Most copies of it on that account.
const MOST: u32 = 8;
/// For how many round trips a receiver goes on to report an unrepaired loss when nothing arrives.
const ROUND_TRIPS: u32 = 4;
/// Reports are not repeated faster, whatever RTTmin the peer said.
const SHORTEST: Duration = Duration::from_millis(1);
/// So long a sender that repeats itself backs off at least, if it backs off (RFC 6298 section 2.5).
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// How often the last report will be repeated, and when.
///
/// A period apart at first, until all copies getting lost has become unlikely; not at all where
/// ACKs do not get lost. A report before it that lets the sender go on as well is a copy. Then,
/// with a loss that is not repaired or a sender that repeats itself, after twice the time each:
/// what was to bring the repair about may have got lost, or had no room in the lists so far. The
/// sender does not depend on them. One that repeats itself backs its timer off, and its next try is
/// twice as far off as the last one was: word goes on that long, a quarter of it apart at most, so
/// that the sender is not silent until then where the way back carries reports again.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    done: u32,
    /// So many a period apart.
    close: u32,
    /// So many more, each after twice the time of the one before.
    spread: u32,
    /// How often the time doubles.
    doublings: u32,
    /// Periods in which an unrepaired loss is reported.
    periods: u32,
    /// Bytes came again under a new number: the reports of them got lost.
    unheard: bool,
}

/// Periods until a sender that repeated itself after `silence` does so again.
pub(super) fn backed_off(silence: Duration, period: Duration) -> u32 {
    let backoff = (2 * silence).min(LONGEST_BACKOFF);
    // 60,000 at most.
    (backoff.as_nanos() / period.max(SHORTEST).as_nanos()) as u32
}

impl Repeats {
    /// A segment arrived; `again` if its bytes had come before and its number had not.
    pub(super) fn on_data(&mut self, again: bool) {
        self.unheard = again;
    }

    /// The last report is repeated only because it may have got lost: no loss is open, and the
    /// sender does not repeat itself.
    pub(super) fn is_for_chance(&self) -> bool {
        self.spread == 0
    }

    /// The sender repeats itself.
    pub(super) fn is_unheard(&self) -> bool {
        self.unheard
    }

    /// A report of new arrivals leaves. `ack_loss_rate` is that of the path it takes, 0 to 1;
    /// `open` says that there is an unrepaired loss; there are `beta` periods to a round trip. With
    /// `told_before` the sender goes on if only the report before this one arrives. One that
    /// repeats itself does so again after so many periods, `backed_off`.
    pub(super) fn on_report(
        &mut self,
        ack_loss_rate: f64,
        open: bool,
        beta: u8,
        told_before: bool,
        backed_off: u32,
    ) {
        let mut all_lost = ack_loss_rate;
        let mut close = 0;
        while all_lost > TOLERATED_SILENCE && close < MOST {
            all_lost *= ack_loss_rate;
            close += 1;
        }
        let periods = ROUND_TRIPS * u32::from(beta);
        // 1 + 2 + 4 + … periods are so many.
        let (spread, doublings) = if self.unheard && backed_off > periods {
            let doublings = (backed_off / 4).max(1).ilog2();
            let longest = 1 << doublings;
            (
                doublings + (backed_off - (longest - 1)) / longest,
                doublings,
            )
        } else if self.unheard || open {
            (periods.ilog2(), u32::MAX)
        } else {
            (0, 0)
        };
        *self = Self {
            done: 0,
            close: close.saturating_sub(u32::from(told_before)),
            spread,
            doublings,
            periods: if open { periods } else { 0 },
            unheard: self.unheard,
        };
    }

    /// A repeat left.
    pub(super) fn on_repeated(&mut self) {
        self.done += 1;
    }

    /// Data left that carries the same cumulative acknowledgement: for a sender that waits for just
    /// that it is a copy.
    pub(super) fn on_carried(&mut self) {
        if self.done < self.close {
            self.done += 1;
        }
    }

    /// Data left that answers a message of the sender, which has nothing more to send until then.
    /// It is repeated until it arrives, with the same cumulative acknowledgement.
    pub(super) fn on_answered(&mut self) {
        self.done = self.done.max(self.close);
    }

    /// How long after the last report the next repeat is due; `None` when there is none to come. A
    /// period, as long as there are losses that no report had room for (`unreported`).
    pub(super) fn next(
        &self,
        period: impl FnOnce() -> Duration,
        unreported: bool,
    ) -> Option<Duration> {
        if unreported && self.done < self.periods {
            return Some(period().max(SHORTEST));
        }
        if self.done >= self.close + self.spread {
            return None;
        }
        let doublings = self.done.saturating_sub(self.close).min(self.doublings);
        Some(period().max(SHORTEST) * (1 << doublings))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const PERIOD: Duration = Duration::from_millis(10);

    /// Waits before each repeat, in periods.
    fn waits(repeats: &mut Repeats) -> Vec<u128> {
        core::iter::from_fn(|| {
            let wait = repeats.next(|| PERIOD, false)?;
            repeats.on_repeated();
            Some(wait.as_millis() / 10)
        })
        .collect()
    }

    #[test]
    fn nothing_is_repeated_on_a_clean_path() {
        let mut repeats = Repeats::default();
        repeats.on_report(0.0, false, 4, false, 0);
        assert!(waits(&mut repeats).is_empty());
    }

    #[test]
    fn data_that_carries_the_acknowledgement_is_a_copy() {
        let mut repeats = Repeats::default();
        repeats.on_report(0.3, true, 4, false, 0);
        let all = waits(&mut repeats).len();
        repeats.on_report(0.3, true, 4, false, 0);
        // Word of an open loss no data carries.
        for _ in 0..5 {
            repeats.on_carried();
        }
        assert_eq!(waits(&mut repeats).len(), all - 3);
    }

    #[test]
    fn copies_follow_the_loss_of_the_ack_path() {
        let mut repeats = Repeats::default();
        repeats.on_report(0.3, false, 4, false, 0);
        assert_eq!(waits(&mut repeats), [1, 1, 1]);
        repeats.on_report(1.0, false, 4, false, 0);
        assert_eq!(waits(&mut repeats).len(), MOST as usize);
    }

    #[test]
    fn a_report_before_it_that_does_as_well_is_a_copy() {
        for (ack_loss_rate, copies) in [(0.0, 0), (0.02, 0), (0.3, 2)] {
            let mut repeats = Repeats::default();
            repeats.on_report(ack_loss_rate, false, 4, true, 0);
            assert_eq!(waits(&mut repeats).len(), copies, "{ack_loss_rate}");
        }
    }

    #[test]
    fn reports_of_an_open_loss_back_off() {
        let mut repeats = Repeats::default();
        repeats.on_report(0.05, true, 4, false, 0);
        assert_eq!(waits(&mut repeats), [1, 1, 2, 4, 8]);
        repeats.on_report(0.0, true, 255, false, 0);
        assert_eq!(waits(&mut repeats).len(), 9);
    }

    #[test]
    fn what_had_no_room_follows_at_once() {
        let mut repeats = Repeats::default();
        repeats.on_report(0.0, true, 4, false, 0);
        for _ in 0..16 {
            assert_eq!(repeats.next(|| PERIOD, true), Some(PERIOD));
            repeats.on_repeated();
        }
        assert_eq!(repeats.next(|| PERIOD, true), None, "not without end");
    }

    #[test]
    fn a_sender_that_repeats_itself_heard_nothing() {
        let mut repeats = Repeats::default();
        repeats.on_data(true);
        repeats.on_report(0.0, false, 4, false, 0);
        assert_eq!(waits(&mut repeats), [1, 2, 4, 8]);
        // It waited for 50 periods, and will wait for 100.
        let periods = backed_off(50 * PERIOD, PERIOD);
        repeats.on_report(0.0, false, 4, false, periods);
        assert_eq!(waits(&mut repeats), [1, 2, 4, 8, 16, 16, 16, 16, 16]);
        let day = Duration::from_secs(86_400);
        assert_eq!(backed_off(day, Duration::ZERO), 60_000);
        repeats.on_data(false);
        repeats.on_report(0.0, false, 4, false, 0);
        assert!(waits(&mut repeats).is_empty());
    }
}
