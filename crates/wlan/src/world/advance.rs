//! How the network goes from one instant to the next, and wakes the radios that are due.

use tack_base::Instant;

use super::World;

impl<M: Clone> World<M> {
    pub(super) fn run_before(&mut self, now: Instant) {
        while self.soonest() < now {
            self.step(self.soonest());
        }
        self.now = self.now.max(now);
    }

    /// Everything that happens at the instant `at`.
    pub(super) fn step(&mut self, at: Instant) {
        // A frame that waited behind another one may have waited too long by the time it is the
        // first that waits.
        let at = at.max(self.now);
        self.now = at;
        if self.next_arrival <= at {
            self.events += 1;
            self.receive_frames(at);
            self.next_arrival = self.air.next_arrival();
            if self.next > at && self.hosts.next_entry() > at {
                return;
            }
        }
        if self.next > at {
            self.take_entries(at);
            return;
        }
        self.accounts.advance(at, &self.air.moment());
        while let Some(position) = self.air.ending(at) {
            self.events += 1;
            self.end(at, position);
        }
        if self.air.resets_nav(at) {
            self.reset_navs(at);
        }
        if self.next_offer <= at {
            self.events += 1;
            self.take_offers(at);
        }
        self.take_entries(at);
        if self.next_wake <= at {
            self.wake_due(at);
        }
        if !self.starting.is_empty() {
            let mut starting = core::mem::take(&mut self.starting);
            let mut is_first = true;
            for ppdu in starting.drain(..) {
                let from = ppdu.from.index();
                self.begin(at, ppdu);
                if core::mem::take(&mut is_first) {
                    // Those that the first signal makes bystanders hear the others as such.
                    self.gather(at, from);
                }
            }
            self.starting = starting;
        }
        self.find_next();
    }

    /// Radios that want to be woken by `at` do what they want to.
    #[inline]
    pub(super) fn wake_due(&mut self, at: Instant) {
        self.single_out_granted(at);
        if !self.are_few_alone() {
            let mut from = 0;
            while let Some(index) = self.wakes.due(from, at) {
                self.wake(at, index);
                from = index + 1;
            }
            return;
        }
        let mut position = 0;
        while let Some(crowds) = &self.crowds {
            let later = &crowds.alone()[position..];
            let is_due = |index: &u16| self.wakes.of(usize::from(*index)) <= at;
            let Some(next) = later.iter().position(is_due) else {
                return;
            };
            self.wake(at, usize::from(later[next]));
            position += next + 1;
        }
    }

    #[inline]
    pub(super) fn wake(&mut self, at: Instant, index: usize) {
        while self.wakes.of(index) <= at {
            self.events += 1;
            self.release_overdue(index);
            match self.stations[index].handle_timeout(at) {
                Some(ppdu) => {
                    self.account_for_sender(index);
                    // Whatever else is due at this radio has to wait until it is done sending.
                    self.starting.push(ppdu);
                    self.wakes.set(index, Instant::FAR_FUTURE);
                }
                None => self.touch(index),
            }
        }
    }

    /// Packets come to the queues of radios.
    #[inline]
    pub(super) fn take_entries(&mut self, at: Instant) {
        while let Some((radio, msdu)) = self.hosts.enter(at) {
            self.events += 1;
            let _dropped = self.enter(radio, msdu);
        }
    }

    /// Packets come to sources with a load of their own.
    pub(super) fn take_offers(&mut self, at: Instant) {
        self.next_offer = Instant::FAR_FUTURE;
        for index in 0..self.sources.len() {
            let Some(source) = &self.sources[index] else {
                continue;
            };
            let next = source.next();
            if next <= at {
                self.take_offer(at, index);
            } else {
                self.next_offer = self.next_offer.min(next);
            }
        }
    }

    /// Packets come to the source of radio `index`.
    fn take_offer(&mut self, at: Instant, index: usize) {
        self.single_out(index);
        if let Some(source) = &mut self.sources[index] {
            source.arrive(at, &mut self.stations[index]);
            self.next_offer = self.next_offer.min(source.next());
        }
        self.touch(index);
    }

    /// Brings what is derived from a radio's state up to date.
    #[inline]
    pub(super) fn touch(&mut self, index: usize) {
        self.account(index);
        self.rewake(index);
    }

    /// As [`World::touch`], but for when the radio wants to be woken.
    #[inline]
    pub(super) fn account(&mut self, index: usize) {
        let station = &mut self.stations[index];
        if let Some(source) = &mut self.sources[index] {
            source.refill(self.now, station);
        }
        let is_shorter = self.queues[index].update(self.now, station.queued());
        let radio = &mut self.radios[index];
        if is_shorter && !radio.has_departures && index < usize::from(self.members) {
            radio.has_departures = true;
            self.departed.push(index as u16);
        }
        let is_active = station.is_active();
        if radio.is_active != is_active {
            radio.is_active = is_active;
            self.air.count_active(is_active);
        }
    }

    /// As [`World::account`], for a radio that begins to send. What it sends stays in its queue for
    /// now.
    #[inline]
    pub(super) fn account_for_sender(&mut self, index: usize) {
        if self.hack.is_on() {
            // Its driver may have moved acknowledgements.
            self.account(index);
        } else if !self.radios[index].is_active {
            self.radios[index].is_active = true;
            self.air.count_active(true);
        }
    }

    /// As [`World::touch`], for a radio that only senses what others do: its queues and what it is
    /// about do not change.
    #[inline]
    pub(super) fn rewake(&mut self, index: usize) {
        let wake = self.stations[index].next_wake();
        self.wakes.set(index, wake);
        self.next_wake = self.next_wake.min(wake);
    }

    pub(super) fn find_next(&mut self) {
        let wake = self.first_wake();
        self.next_wake = wake;
        self.next = wake.min(self.air.next()).min(self.next_offer);
        self.next_arrival = self.air.next_arrival();
    }
}
