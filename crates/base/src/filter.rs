//! Windowed minimum and maximum filters.
//!
//! Kathleen Nichols' algorithm, as Linux `win_minmax` uses it: three candidates, the best of the
//! window and the best of its later parts, so the estimate never falls back to nothing when the
//! best one expires. The window is measured in any unit that only grows: nanoseconds, rounds.
//!
//! What three candidates can and cannot promise, right after an update:
//! * the estimate is a sample of the window, so it is never better than the window's true extreme;
//! * no sample since the estimate's own is better, so a new extreme shows at once;
//! * it may be worse than the true extreme when that came before the estimate's own sample, was not
//!   the best while it was new, and its better has left the window since.

/// Which extreme a filter keeps.
pub trait Extreme {
    /// True when `new` should replace `old` as the better value (ties replace, to stay fresh).
    fn better<V: PartialOrd>(new: &V, old: &V) -> bool;
}

/// Keeps the largest value of the window.
#[derive(Clone, Copy, Debug)]
pub struct Max;
/// Keeps the smallest value of the window.
#[derive(Clone, Copy, Debug)]
pub struct Min;

impl Extreme for Max {
    fn better<V: PartialOrd>(new: &V, old: &V) -> bool {
        new >= old
    }
}
impl Extreme for Min {
    fn better<V: PartialOrd>(new: &V, old: &V) -> bool {
        new <= old
    }
}

#[derive(Clone, Copy, Debug)]
struct Candidate<V> {
    at: u64,
    value: V,
}

/// The extreme of the values seen within the last `window` units of position.
#[derive(Clone, Debug)]
pub struct Windowed<E, V> {
    window: u64,
    best: Option<[Candidate<V>; 3]>,
    extreme: core::marker::PhantomData<E>,
}

/// Windowed maximum.
pub type WindowedMax<V> = Windowed<Max, V>;
/// Windowed minimum.
pub type WindowedMin<V> = Windowed<Min, V>;

impl<E: Extreme, V: Copy + PartialOrd> Windowed<E, V> {
    /// A filter over `window` units.
    pub const fn new(window: u64) -> Self {
        Self {
            window,
            best: None,
            extreme: core::marker::PhantomData,
        }
    }

    /// The extreme as of the last update, if anything was seen. Time alone does not age it.
    #[inline]
    pub fn get(&self) -> Option<V> {
        self.best.map(|best| best[0].value)
    }

    /// The position at which the current extreme was seen.
    pub fn position(&self) -> Option<u64> {
        self.best.map(|best| best[0].at)
    }

    /// Forgets everything and starts over from `value`.
    pub fn reset(&mut self, at: u64, value: V) {
        self.best = Some([Candidate { at, value }; 3]);
    }

    /// Changes the window; the candidates stay.
    pub fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    /// Adds `value` seen at position `at` (never smaller than before) and returns the extreme.
    pub fn update(&mut self, at: u64, value: V) -> V {
        let new = Candidate { at, value };
        let Some(best) = &mut self.best else {
            self.best = Some([new; 3]);
            return value;
        };
        if E::better(&value, &best[0].value) || at.saturating_sub(best[2].at) > self.window {
            *best = [new; 3];
            return value;
        }
        if E::better(&value, &best[1].value) {
            best[1] = new;
            best[2] = new;
        } else if E::better(&value, &best[2].value) {
            best[2] = new;
        }
        // Age the candidates: the best of a past window gives way to the next one.
        let age = at.saturating_sub(best[0].at);
        if age > self.window {
            *best = [best[1], best[2], new];
            if at.saturating_sub(best[0].at) > self.window {
                *best = [best[1], best[2], new];
            }
        } else if best[1].at == best[0].at && age > self.window / 4 {
            best[1] = new;
            best[2] = new;
        } else if best[2].at == best[1].at && age > self.window / 2 {
            best[2] = new;
        }
        best[0].value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn maximum_expires_with_the_window() {
        let mut filter = WindowedMax::new(10);
        assert_eq!(filter.update(0, 100), 100);
        for at in 1..=10 {
            assert_eq!(filter.update(at, 50), 100);
        }
        assert_eq!(filter.update(11, 40), 50);
    }

    #[test]
    fn minimum_takes_new_lows_at_once() {
        let mut filter = WindowedMin::new(1000);
        filter.update(0, 30);
        assert_eq!(filter.update(1, 20), 20);
        assert_eq!(filter.update(2, 25), 20);
        assert_eq!(filter.position(), Some(1));
    }

    proptest! {
        #[test]
        fn keeps_its_promises(window in 0..60_u64, samples in proptest::collection::vec((0..20_u64, 0..100_u32), 1..150)) {
            let mut maximum = WindowedMax::new(window);
            let mut minimum = WindowedMin::new(window);
            let mut now = 0;
            let mut seen: Vec<(u64, u32)> = Vec::new();
            for (step, value) in samples {
                now += step;
                seen.push((now, value));
                let in_window = || seen.iter().filter(|(at, _)| now - at <= window);
                let since = |position: u64| seen.iter().filter(move |(at, _)| *at > position);
                let true_max = in_window().map(|(_, value)| *value).max().unwrap();
                let true_min = in_window().map(|(_, value)| *value).min().unwrap();

                let estimate = maximum.update(now, value);
                let position = maximum.position().unwrap();
                prop_assert!(in_window().any(|sample| *sample == (position, estimate)));
                prop_assert!(estimate <= true_max);
                prop_assert!(since(position).all(|(_, later)| *later <= estimate));
                prop_assert!(value < true_max || estimate == true_max);

                let estimate = minimum.update(now, value);
                let position = minimum.position().unwrap();
                prop_assert!(in_window().any(|sample| *sample == (position, estimate)));
                prop_assert!(estimate >= true_min);
                prop_assert!(since(position).all(|(_, later)| *later >= estimate));
                prop_assert!(value > true_min || estimate == true_min);
            }
        }
    }
}
