//! State that the thread that reads files and the task that reads answers share, and waiting for it
//! to change.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::transfer::buffers::Disconnected;

/// A state behind a lock, with a condition that every change signals. Waiting ends early when the
/// connection is lost.
#[derive(Debug, Default)]
pub(super) struct Monitor<T> {
    inner: Mutex<Inner<T>>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner<T> {
    state: T,
    is_disconnected: bool,
}

/// The state, while it is locked.
#[derive(Debug)]
pub(super) struct Guard<'a, T>(MutexGuard<'a, Inner<T>>);

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.state
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.state
    }
}

impl<T> Monitor<T> {
    pub(super) fn new(state: T) -> Self {
        Self {
            inner: Mutex::new(Inner {
                state,
                is_disconnected: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state. Whoever changes what others wait for calls [`Monitor::notify`] as well.
    pub(super) fn lock(&self) -> Guard<'_, T> {
        Guard(self.inner())
    }

    /// The state changed: those who wait look at it again.
    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits while the state is `busy`, at the longest until the connection is lost.
    pub(super) fn wait_while(
        &self,
        busy: impl Fn(&T) -> bool,
    ) -> Result<Guard<'_, T>, Disconnected> {
        let inner = self
            .changed
            .wait_while(self.inner(), |inner| {
                !inner.is_disconnected && busy(&inner.state)
            })
            .unwrap_or_else(PoisonError::into_inner);
        if inner.is_disconnected {
            return Err(Disconnected);
        }
        Ok(Guard(inner))
    }

    /// The connection is lost: waiting ends, until [`Monitor::reconnect`].
    pub(super) fn disconnect(&self) {
        self.inner().is_disconnected = true;
        self.notify();
    }

    /// There is a new connection; `reset` brings the state to its beginning.
    pub(super) fn reconnect(&self, reset: impl FnOnce(&mut T)) {
        let mut inner = self.inner();
        inner.is_disconnected = false;
        reset(&mut inner.state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_with_a_change_or_the_connection() {
        let monitor = Monitor::new(0);
        std::thread::scope(|scope| {
            let waiting_config =
                scope.spawn(|| monitor.wait_while(|count| *count < 2).map(|state| *state));
            for _ in 0..2 {
                *monitor.lock() += 1;
                monitor.notify();
            }
            assert_eq!(waiting_config.join().unwrap().ok(), Some(2));
            let waiting_config = scope.spawn(|| monitor.wait_while(|count| *count < 3).is_err());
            monitor.disconnect();
            assert!(waiting_config.join().unwrap());
        });
        // Nobody waits on a lost connection, even for what is there.
        assert!(monitor.wait_while(|_| false).is_err());
        monitor.reconnect(|count| *count = 7);
        assert_eq!(
            monitor.wait_while(|_| false).map(|state| *state).ok(),
            Some(7)
        );
    }
}
