//! The event kernel: what happens next, in an order that never depends on anything but the run.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tack_base::Instant;

/// Events in the order (time, insertion).
///
/// What happens once goes onto a heap. What happens again and again at a time that keeps changing
/// (a timer, the next arrival on a link) has a slot instead, which holds one deadline and forgets
/// the last: on a heap each change would leave an outdated entry behind, thousands of them on a
/// fast path.
#[derive(Debug)]
pub struct Kernel<E> {
    heap: BinaryHeap<Entry<E>>,
    slots: Vec<Entry<E>>,
    /// A tournament among the slots after the first few: place 1 has the one that is next, place n
    /// the earlier of those at 2n and 2n + 1. The slots themselves are in the last row, behind
    /// as many inner places.
    earliest: Vec<usize>,
    inserted: u64,
    now: Instant,
    handled: u64,
}

/// So many slots, the first that are made, are looked at one by one when an event is due. They are
/// those of links and radios, which are set at almost every event, and of the first hosts: a
/// tournament costs more the more slots take part in it.
const FEW: usize = 8;

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
            slots: Vec::new(),
            earliest: Vec::new(),
            inserted: 0,
            now: Instant::ZERO,
            handled: 0,
        }
    }
}

/// Names a slot of a [`Kernel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(usize);

impl<E: Clone> Kernel<E> {
    /// A new slot for `event`, without a deadline.
    pub fn slot(&mut self, event: E) -> Slot {
        let (at, number) = (Instant::FAR_FUTURE, u64::MAX);
        self.slots.push(Entry { at, number, event });
        // Slots are made before the run: the tournament starts over.
        let last = self.slots.len() - 1;
        if last >= FEW {
            let row = (self.slots.len() - FEW).next_power_of_two();
            // The rest of the row repeats the last slot, whose matches are the only ones that it
            // takes part in.
            self.earliest = vec![last; 2 * row];
            for slot in FEW..last {
                self.earliest[row + slot - FEW] = slot;
            }
            for place in (1..row).rev() {
                self.earliest[place] = self.winner(place);
            }
        }
        Slot(last)
    }

    /// The earlier one of the two slots below a place of the tournament.
    #[inline]
    fn winner(&self, place: usize) -> usize {
        self.earlier(self.earliest[2 * place], self.earliest[2 * place + 1])
    }

    #[inline]
    fn earlier(&self, one: usize, other: usize) -> usize {
        let key = |slot: usize| (self.slots[slot].at, self.slots[slot].number);
        if key(other) < key(one) { other } else { one }
    }

    /// The slot that is next.
    #[inline]
    fn first(&self) -> Option<usize> {
        let few = &self.slots[..self.slots.len().min(FEW)];
        let (mut first, mut best) = (0, few.first()?);
        for (place, slot) in few.iter().enumerate().skip(1) {
            // Seldom do two have the same time.
            if slot.at <= best.at && (slot.at < best.at || slot.number < best.number) {
                (first, best) = (place, slot);
            }
        }
        Some(match self.earliest.get(1) {
            Some(&winner) => self.earlier(first, winner),
            None => first,
        })
    }

    /// Plays the matches of `slot` again, if it takes part in any.
    #[inline]
    fn replay(&mut self, slot: usize) {
        if let Some(position) = slot.checked_sub(FEW) {
            self.replay_from(slot, position);
        }
    }

    /// Plays the matches of `slot` again, which has this position in the last row.
    fn replay_from(&mut self, slot: usize, position: usize) {
        let mut place = (self.earliest.len() / 2 + position) / 2;
        while place > 0 {
            let winner = self.winner(place);
            if self.earliest[place] == winner && winner != slot {
                return;
            }
            self.earliest[place] = winner;
            place /= 2;
        }
    }

    /// The slot's event happens at `at` and at no other time; `None` for not at all. Setting it to
    /// the time it has anyway changes nothing.
    #[inline]
    pub fn set(&mut self, slot: Slot, at: Option<Instant>) {
        let number = self.inserted;
        self.inserted += u64::from(self.put(slot, at, number));
    }

    /// As [`Kernel::set`], and of all that happens at that instant the slot's event is the last:
    /// its place does not depend on how often the slot was set before.
    #[inline]
    pub fn set_last(&mut self, slot: Slot, at: Option<Instant>) {
        self.put(slot, at, u64::MAX);
    }

    #[inline]
    fn put(&mut self, slot: Slot, at: Option<Instant>, number: u64) -> bool {
        let at = at.map_or(Instant::FAR_FUTURE, |at| at.max(self.now));
        let entry = &mut self.slots[slot.0];
        let is_new = entry.at != at;
        if is_new {
            entry.at = at;
            entry.number = number;
            self.replay(slot.0);
        }
        is_new
    }

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
        let next = self.first();
        let slot = next.map(|slot| &mut self.slots[slot]);
        let (at, event) = match (self.heap.peek(), slot) {
            (Some(first), slot) if slot.as_ref().is_none_or(|slot| first > &**slot) => {
                if first.at > end {
                    return None;
                }
                let first = self.heap.pop()?;
                (first.at, first.event)
            }
            (_, Some(slot)) if slot.at <= end && slot.at != Instant::FAR_FUTURE => {
                let at = std::mem::replace(&mut slot.at, Instant::FAR_FUTURE);
                let event = slot.event.clone();
                self.replay(next.unwrap_or_default());
                (at, event)
            }
            _ => return None,
        };
        self.now = at;
        self.handled += 1;
        Some((at, event))
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
    fn a_slot_has_one_deadline_at_a_time() {
        let at = Instant::from_nanos;
        let mut kernel = Kernel::default();
        let (slot, other) = (kernel.slot('s'), kernel.slot('o'));
        assert_eq!(kernel.next(Instant::FAR_FUTURE), None);
        kernel.set(slot, Some(at(5)));
        kernel.set(slot, Some(at(7)));
        kernel.set(slot, Some(at(3)));
        kernel.schedule(at(3), 'h');
        kernel.schedule(at(2), 'g');
        kernel.set(other, Some(at(3)));
        kernel.set(slot, Some(at(3)));
        let mut next = || kernel.next(Instant::FAR_FUTURE);
        assert_eq!(next(), Some((at(2), 'g')));
        assert_eq!(next(), Some((at(3), 's')), "insertion order among equals");
        assert_eq!(next(), Some((at(3), 'h')));
        assert_eq!(next(), Some((at(3), 'o')));
        assert_eq!(next(), None);
        kernel.set(slot, Some(at(9)));
        kernel.set(slot, None);
        assert_eq!(kernel.next(Instant::FAR_FUTURE), None);
        kernel.set(slot, Some(at(9)));
        assert_eq!(kernel.next(at(8)), None);
        assert_eq!(kernel.next(at(9)), Some((at(9), 's')));
    }

    #[test]
    fn what_is_last_comes_after_all_of_its_instant() {
        let at = Instant::from_nanos;
        let mut kernel = Kernel::default();
        let (last, other) = (kernel.slot('l'), kernel.slot('o'));
        kernel.set_last(last, Some(at(3)));
        kernel.set(other, Some(at(3)));
        kernel.schedule(at(3), 'h');
        kernel.schedule(at(4), 'i');
        let order: String = std::iter::from_fn(|| kernel.next(Instant::FAR_FUTURE))
            .map(|(_, name)| name)
            .collect();
        assert_eq!(order, "ohli");
    }

    /// Many slots, set again and again: the next one is what a search finds.
    #[test]
    fn the_earliest_of_many_slots_is_next() {
        let mut kernel = Kernel::default();
        let slots: Vec<_> = (0..37).map(|slot| kernel.slot(slot)).collect();
        let mut model = [(u64::MAX, 0_u64); 37];
        let mut random = 1_u64;
        for number in 1..5_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            let slot = (random >> 33) as usize % slots.len();
            let at = kernel.now().as_nanos() + (random >> 40) % 50;
            if model[slot].0 != at {
                model[slot] = (at, number);
            }
            kernel.set(slots[slot], Some(Instant::from_nanos(at)));
            if number % 3 == 0 {
                let (next, _) = model
                    .iter()
                    .enumerate()
                    .min_by_key(|(_, key)| **key)
                    .unwrap();
                let expected = Instant::from_nanos(model[next].0);
                assert_eq!(kernel.next(Instant::FAR_FUTURE), Some((expected, next)));
                model[next].0 = u64::MAX;
            }
        }
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
