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
        Self {
            deadlines: [Instant::FAR_FUTURE; N],
            names: PhantomData,
        }
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
    #[inline]
    pub fn pop_expired(&mut self, now: Instant) -> Option<T> {
        // Asked until there is none: sooner found by the earliest than by each name.
        if self.next().is_none_or(|earliest| earliest > now) {
            return None;
        }
        for timer in T::ALL {
            if self.get(*timer).is_some_and(|deadline| deadline <= now) {
                self.stop(*timer);
                return Some(*timer);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Name {
        Retransmit,
        Persist,
        KeepAlive,
    }

    impl TimerName for Name {
        const ALL: &'static [Self] = &[Self::Retransmit, Self::Persist, Self::KeepAlive];
        fn index(self) -> usize {
            self as usize
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn expired_timers_fire_once_in_the_order_of_their_names() {
        let mut timers = Timers::<Name, 3>::default();
        timers.set(Name::KeepAlive, at(1));
        timers.set(Name::Retransmit, at(2));
        timers.set(Name::Persist, at(9));
        assert_eq!(timers.next(), Some(at(1)));
        assert_eq!(timers.pop_expired(at(0)), None);
        assert_eq!(timers.pop_expired(at(2)), Some(Name::Retransmit));
        assert_eq!(timers.pop_expired(at(2)), Some(Name::KeepAlive));
        assert_eq!(timers.pop_expired(at(2)), None);
        assert_eq!(timers.next(), Some(at(9)));
    }

    #[test]
    fn a_disarmed_timer_never_fires() {
        let mut timers = Timers::<Name, 3>::default();
        assert_eq!(timers.pop_expired(Instant::FAR_FUTURE), None);
        timers.set(Name::Persist, at(1));
        timers.stop(Name::Persist);
        assert_eq!(
            (timers.next(), timers.pop_expired(Instant::FAR_FUTURE)),
            (None, None)
        );
        // A deadline beyond all time is not a deadline.
        timers.set(Name::Persist, Instant::FAR_FUTURE);
        assert!(!timers.is_armed(Name::Persist));
    }

    #[derive(Clone, Copy, Debug)]
    enum Operation {
        Set(usize, u64),
        Stop(usize),
        Expire(u64),
        StopAll,
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            4 => (0..3_usize, 0..50_u64).prop_map(|(name, deadline)| Operation::Set(name, deadline)),
            2 => (0..3_usize).prop_map(Operation::Stop),
            3 => (0..50_u64).prop_map(Operation::Expire),
            1 => Just(Operation::StopAll),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_independent_deadlines(operations in proptest::collection::vec(operation(), 0..60)) {
            let mut timers = Timers::<Name, 3>::default();
            let mut model = [None; 3];
            for operation in operations {
                match operation {
                    Operation::Set(name, deadline) => {
                        timers.set(Name::ALL[name], at(deadline));
                        model[name] = Some(at(deadline));
                    }
                    Operation::Stop(name) => {
                        timers.stop(Name::ALL[name]);
                        model[name] = None;
                    }
                    Operation::StopAll => {
                        timers.stop_all();
                        model = [None; 3];
                    }
                    Operation::Expire(now) => {
                        let mut expected = Vec::new();
                        for (name, deadline) in model.iter_mut().enumerate() {
                            if deadline.is_some_and(|deadline| deadline <= at(now)) {
                                expected.push(Name::ALL[name]);
                                *deadline = None;
                            }
                        }
                        let mut fired = Vec::new();
                        while let Some(name) = timers.pop_expired(at(now)) {
                            fired.push(name);
                        }
                        prop_assert_eq!(fired, expected);
                    }
                }
                prop_assert_eq!(timers.next(), model.iter().flatten().min().copied());
                for (name, deadline) in model.iter().enumerate() {
                    prop_assert_eq!(timers.get(Name::ALL[name]), *deadline);
                }
            }
        }
    }
}
