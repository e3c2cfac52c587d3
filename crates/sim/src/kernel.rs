//! The event kernel: what happens next, in an order that never depends on anything but the run.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tack_base::Instant;

/// Events in the order (time, insertion).
#[derive(Debug)]
pub struct Kernel<E> {
    heap: BinaryHeap<Entry<E>>,
    inserted: u64,
    now: Instant,
    handled: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Instant,
    number: u64,
    event: E,
}

impl<E> Ord for Entry<E> {
    /// The heap is a maximum heap: the earliest event is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

impl<E> Default for Kernel<E> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            inserted: 0,
            now: Instant::ZERO,
            handled: 0,
        }
    }
}

impl<E> Kernel<E> {
    /// Lets `event` happen at `at`; an instant that has passed means now.
    #[inline]
    pub fn schedule(&mut self, at: Instant, event: E) {
        let number = self.inserted;
        self.inserted += 1;
        let at = at.max(self.now);
        self.heap.push(Entry { at, number, event });
    }

    /// The next event that happens not after `end`; the clock moves to it.
    #[inline]
    pub fn next(&mut self, end: Instant) -> Option<(Instant, E)> {
        if self.heap.peek()?.at > end {
            return None;
        }
        let entry = self.heap.pop()?;
        self.now = entry.at;
        self.handled += 1;
        Some((entry.at, entry.event))
    }

    /// The time of the last event.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// How many events have happened.
    pub fn handled(&self) -> u64 {
        self.handled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_first_then_insertion() {
        let mut kernel = Kernel::default();
        for (at, name) in [(5, 'd'), (1, 'a'), (5, 'e'), (1, 'b'), (3, 'c'), (9, 'f')] {
            kernel.schedule(Instant::from_nanos(at), name);
        }
        let order: String = std::iter::from_fn(|| kernel.next(Instant::from_nanos(8)))
            .map(|(_, name)| name)
            .collect();
        assert_eq!(order, "abcde");
        assert_eq!(kernel.now(), Instant::from_nanos(5));
        assert_eq!(kernel.handled(), 5);
    }

    #[test]
    fn the_past_is_now() {
        let mut kernel = Kernel::default();
        kernel.schedule(Instant::from_nanos(10), 'a');
        kernel.next(Instant::FAR_FUTURE);
        kernel.schedule(Instant::from_nanos(3), 'b');
        assert_eq!(
            kernel.next(Instant::FAR_FUTURE),
            Some((Instant::from_nanos(10), 'b'))
        );
    }
}
