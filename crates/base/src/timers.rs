//! A table of independent deadlines, one per timer name.
//!
//! Timers never share a slot: a design in which one timer overwrites another loses deadlines.

use core::marker::PhantomData;

use crate::time::Instant;

/// The name of a timer: a fieldless enum whose values index the table.
pub trait TimerName: Copy + 'static {
    /// All names, in the order in which simultaneous timers fire.
    const ALL: &'static [Self];
    /// Position of this name in [`TimerName::ALL`].
    fn index(self) -> usize;
}

/// Deadlines of the timers named by `T`; `N` is the number of names.
#[derive(Clone, Debug)]
pub struct Timers<T, const N: usize> {
    deadlines: [Instant; N],
    names: PhantomData<T>,
}

impl<T: TimerName, const N: usize> Default for Timers<T, N> {
    fn default() -> Self {
        debug_assert_eq!(T::ALL.len(), N);
        Self { deadlines: [Instant::FAR_FUTURE; N], names: PhantomData }
    }
}

impl<T: TimerName, const N: usize> Timers<T, N> {
    /// Arms (or re-arms) `timer` for `deadline`.
    #[inline]
    pub fn set(&mut self, timer: T, deadline: Instant) {
        self.deadlines[timer.index()] = deadline;
    }

    /// Disarms `timer`.
    #[inline]
    pub fn stop(&mut self, timer: T) {
        self.deadlines[timer.index()] = Instant::FAR_FUTURE;
    }

    /// Disarms every timer.
    pub fn stop_all(&mut self) {
        self.deadlines = [Instant::FAR_FUTURE; N];
    }

    /// When `timer` fires, if it is armed.
    #[inline]
    pub fn get(&self, timer: T) -> Option<Instant> {
        let deadline = self.deadlines[timer.index()];
        (deadline != Instant::FAR_FUTURE).then_some(deadline)
    }

    /// True when `timer` is armed.
    pub fn is_armed(&self, timer: T) -> bool {
        self.get(timer).is_some()
    }

    /// The earliest deadline of all.
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        let mut earliest = Instant::FAR_FUTURE;
        for deadline in &self.deadlines {
            if *deadline < earliest {
                earliest = *deadline;
            }
        }
        (earliest != Instant::FAR_FUTURE).then_some(earliest)
    }

    /// Disarms and returns one timer whose deadline is not after `now`, in the order of `T::ALL`.
    pub fn pop_expired(&mut self, now: Instant) -> Option<T> {
        T::ALL.iter().copied().find(|timer| self.deadlines[timer.index()] <= now).inspect(|timer| self.stop(*timer))
    }
}
