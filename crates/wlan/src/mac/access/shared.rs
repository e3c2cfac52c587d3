//! Channel access of radios that sense the same, counted once for all of them.
//!
//! Their carrier sense is equal, so between two busy periods all of them count the same number of
//! slots in a function. That number is added up here; the backoff of a radio ends when the sum has
//! grown by the slots that it had left when it joined. What a busy period costs does not depend on
//! how many there are.

use alloc::vec::Vec;

use tack_base::{Duration, Instant};

use super::targets::Targets;
use super::{Carrier, ChannelAccess, Contention, Rules, Span};

/// Most functions of a radio: one for each category.
const FUNCTIONS: usize = 4;

/// One function, of all radios.
#[derive(Clone, Debug)]
struct SharedFunction {
    rules: Rules,
    /// AIFSN.
    aifs_slots: u64,
    /// Slots counted so far.
    counted: u64,
    /// Radios that want to send, by the count at which they may.
    targets: Targets,
}

/// Channel access of several radios that sense the same.
#[derive(Clone, Debug)]
pub struct SharedAccess {
    slot: Span,
    sifs: Span,
    carrier: Carrier,
    functions: Vec<SharedFunction>,
    /// What each function had counted when a radio joined, by radio.
    since: Vec<[u64; FUNCTIONS]>,
    members: usize,
}

impl SharedAccess {
    /// No radio yet, of `radios` that may join; their functions by ascending priority.
    pub fn new(
        slot: Duration,
        sifs: Duration,
        eifs_extra: Duration,
        functions: &[Contention],
        radios: usize,
    ) -> Self {
        debug_assert!(functions.len() <= FUNCTIONS, "one function a category");
        let functions = functions
            .iter()
            .map(|contention| SharedFunction {
                rules: contention.rules,
                aifs_slots: u64::from(contention.aifsn),
                counted: 0,
                targets: Targets::new(radios, contention.cw_max.max(contention.cw_min)),
            })
            .collect();
        Self {
            slot: slot.into(),
            sifs: sifs.into(),
            carrier: Carrier::new(sifs, eifs_extra),
            functions,
            since: alloc::vec![[0; FUNCTIONS]; radios],
            members: 0,
        }
    }

    /// How many radios are in.
    #[inline]
    pub fn members(&self) -> usize {
        self.members
    }

    /// Takes in radio `who`, with `access`, while the medium is busy, which it is until `until` at
    /// least. Says whether it senses what the others do, in all that counts from then on; the first
    /// one always does. A countdown that could go on later than theirs keeps a radio out, too.
    pub fn join(&mut self, who: u16, access: &ChannelAccess, until: Instant) -> bool {
        // AIFS begins a SIFS after the medium is idle.
        let next = self.sifs.after(until);
        let counts_alike = access.functions.iter().all(|function| {
            let is_idle = function.slots == 0 && !function.wants;
            is_idle || function.counted_to <= self.slot.times_after(function.aifs_slots, next)
        });
        if !access.carrier.is_busy()
            || access.response > until
            || access.functions.len() != self.functions.len()
            || !counts_alike
        {
            return false;
        }
        if self.members == 0 {
            self.carrier = access.carrier;
        } else if !self.carrier.is_as(&access.carrier, until) {
            return false;
        }
        self.members += 1;
        let since = &mut self.since[usize::from(who)];
        for (index, own) in access.functions.iter().enumerate() {
            let shared = &mut self.functions[index];
            since[index] = shared.counted;
            if own.wants {
                let target = shared.counted + u64::from(own.slots);
                shared.targets.insert(target, who);
            }
        }
        true
    }

    /// Radio `who` leaves: brings `access` up to date.
    pub fn leave(&mut self, who: u16, access: &mut ChannelAccess) {
        self.members -= 1;
        access.carrier = self.carrier;
        let since = &self.since[usize::from(who)];
        for (index, own) in access.functions.iter_mut().enumerate() {
            let (shared, since) = (&mut self.functions[index], since[index]);
            if own.wants {
                let target = since + u64::from(own.slots);
                // Its wishes do not change while it is in.
                shared.targets.remove(target, who);
            }
            let counted = shared.counted - since;
            let left = u64::from(own.slots).saturating_sub(counted);
            own.slots = left as u32;
        }
    }

    /// The medium becomes busy.
    pub fn on_busy(&mut self, now: Instant) {
        if self.carrier.is_busy() {
            return;
        }
        let start = self.carrier.start(Instant::ZERO);
        for function in &mut self.functions {
            let from = self.slot.times_after(function.aifs_slots, start);
            if now >= from {
                function.counted += function.rules.counted(self.slot.between(from, now));
            }
        }
        self.carrier.on_busy();
    }

    /// Carrier sense, for what needs no counting.
    #[inline]
    pub fn carrier(&mut self) -> &mut Carrier {
        &mut self.carrier
    }

    /// When the first radio that wants to may transmit, if the medium stays idle.
    #[inline]
    pub fn grant(&self) -> Option<Instant> {
        self.first().map(|(at, _)| at)
    }

    /// A radio that may transmit at `now`.
    pub fn granted(&self, now: Instant) -> Option<u16> {
        self.first()
            .filter(|(at, _)| *at <= now)
            .map(|(_, who)| who)
    }

    fn first(&self) -> Option<(Instant, u16)> {
        if self.carrier.is_busy() {
            return None;
        }
        let start = self.carrier.start(Instant::ZERO);
        let ends = self.functions.iter().filter_map(|function| {
            let (target, who) = function.targets.first()?;
            let left = target - function.counted;
            Some((
                self.slot.times_after(function.aifs_slots + left, start),
                who,
            ))
        });
        ends.min()
    }
}

#[cfg(test)]
mod tests;
