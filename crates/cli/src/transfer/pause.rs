//! Pauses between attempts to reach the other side.

use std::time::Duration;

/// The first pause between attempts, and the longest that it doubles to.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// The pause before the next attempt, which grows.
pub(crate) struct Pause(Duration);

impl Pause {
    pub(crate) const FIRST: Self = Self(FIRST_PAUSE);

    /// How long to wait where attempts go on for `left`: the last one comes at its end.
    pub(crate) fn next(&mut self, left: Duration) -> Duration {
        let pause = self.0.min(left.max(FIRST_PAUSE));
        self.0 = (self.0 * 2).min(LAST_PAUSE);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end_with_the_attempts() {
        let pauses = |left: u64, count| {
            let mut pause = Pause::FIRST;
            let next = |_| pause.next(Duration::from_millis(left)).as_millis();
            (0..count).map(next).collect::<Vec<_>>()
        };
        assert_eq!(
            pauses(60_000, 8),
            [200, 400, 800, 1600, 3200, 5000, 5000, 5000]
        );
        assert_eq!(pauses(1000, 5), [200, 400, 800, 1000, 1000]);
        assert_eq!(pauses(0, 3), [200, 200, 200]);
    }
}
