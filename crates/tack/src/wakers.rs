//! Wakers, which are woken and dropped without the lock.

use std::task::{Context, Waker};

use arrayvec::ArrayVec;

/// Wakers to wake or drop once the lock is free. A waker runs foreign code, when woken and when
/// dropped: it may hold the last reference to a task that owns a stream, whose drop takes the lock.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    /// Enough for nearly every change, without allocation.
    few: ArrayVec<Parting, 16>,
    /// What does not fit there.
    pub(crate) more: Vec<Parting>,
}

#[derive(Debug)]
pub(crate) enum Parting {
    Wake(Waker),
    Drop(Waker),
}

impl Wakers {
    /// Wakes `waker` once the lock is free.
    pub(crate) fn push(&mut self, waker: Waker) {
        self.add(Parting::Wake(waker));
    }

    /// Drops `waker` once the lock is free.
    pub(crate) fn drop_later(&mut self, waker: Waker) {
        self.add(Parting::Drop(waker));
    }

    fn add(&mut self, parting: Parting) {
        if let Err(full) = self.few.try_push(parting) {
            self.more.push(full.element());
        }
    }

    /// Wakes or drops all. To be called without the lock.
    pub(crate) fn part(&mut self) {
        for parting in self.few.drain(..).chain(self.more.drain(..)) {
            match parting {
                Parting::Wake(waker) => waker.wake(),
                Parting::Drop(waker) => drop(waker),
            }
        }
    }
}

/// Keeps `cx`'s waker for a later wake-up, without cloning it when it is already there. The one it
/// replaces goes to `wakers`, to be dropped without the lock.
pub(crate) fn keep(slot: &mut Option<Waker>, cx: &Context<'_>, wakers: &mut Wakers) {
    match slot {
        Some(waker) if waker.will_wake(cx.waker()) => {}
        _ => {
            if let Some(replaced) = slot.replace(cx.waker().clone()) {
                wakers.add(Parting::Drop(replaced));
            }
        }
    }
}
