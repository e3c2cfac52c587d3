//! Tasks that wait for the same thing.

use std::task::{Context, Waker};

use crate::wakers::Wakers;

/// Any number of tasks that wait for the same thing. One that gives up leaves nothing behind.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    list: Vec<(Ticket, Waker)>,
    next: u64,
}

/// Names a place among the waiters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket(u64);

impl Waiters {
    /// Keeps `cx`'s waker at the place of `ticket`, or at a new one. Returns a waker that it
    /// replaced, to be dropped without the lock.
    pub(crate) fn wait(&mut self, ticket: &mut Option<Ticket>, cx: &Context<'_>) -> Option<Waker> {
        let kept = self
            .list
            .iter_mut()
            .find(|(kept, _)| Some(*kept) == *ticket);
        match kept {
            Some((_, waker)) if waker.will_wake(cx.waker()) => None,
            Some((_, waker)) => Some(std::mem::replace(waker, cx.waker().clone())),
            None => {
                let fresh = Ticket(self.next);
                self.next += 1;
                *ticket = Some(fresh);
                self.list.push((fresh, cx.waker().clone()));
                None
            }
        }
    }

    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        let place = self.list.iter().position(|(kept, _)| *kept == ticket)?;
        Some(self.list.swap_remove(place).1)
    }

    /// Wakes all once the lock is free.
    pub(crate) fn wake(&mut self, wakers: &mut Wakers) {
        for (_, waker) in self.list.drain(..) {
            wakers.push(waker);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    struct Task;

    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn each_waiter_has_one_place_and_can_leave_it() {
        let mut waiters = Waiters::default();
        // Not `Waker::noop()`: its clones have one table or another, as the compiler puts them, and
        // then count as different wakers.
        let waker = Waker::from(Arc::new(Task));
        let cx = Context::from_waker(&waker);
        let (mut one, mut other) = (None, None);
        for _ in 0..3 {
            assert!(waiters.wait(&mut one, &cx).is_none());
            assert!(waiters.wait(&mut other, &cx).is_none());
        }
        assert_eq!(waiters.list.len(), 2);
        assert!(waiters.leave(one.unwrap()).is_some());
        assert!(waiters.leave(one.unwrap()).is_none());
        assert_eq!(waiters.list.len(), 1);
        waiters.wake(&mut Wakers::default());
        assert!(waiters.is_empty());
        // A place that was woken is a new one next time.
        let before = other;
        assert!(waiters.wait(&mut other, &cx).is_none());
        assert_ne!(before, other);
    }
}
