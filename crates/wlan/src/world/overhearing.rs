//! Radios that overhear a PPDU which is not for them: which of them noise keeps from reading it.
//!
//! Each of them fails to read it by itself, all with the same probability. Instead of asking each,
//! the next that fails is drawn: how many radios there are before it has a geometric distribution.
//! The cost of a PPDU thus depends on how many fail, not on how many there are. Which ones are
//! drawn depends on nothing but the seed, the PPDU, and what of it other signals have spoilt.

use alloc::vec::Vec;

use tack_base::Instant;
use tack_base::random::RandomStream;

use super::air::InFlight;
use super::config::WorldConfig;
use crate::frame::{Data, Frame, NodeId, len};
use crate::phy::ErrorModel;

/// No draw is finer.
const NEVER: f64 = 1e-16;

/// When other signals overlapped a PPDU, where they did.
type Hit = Option<(Instant, Instant)>;

/// Who cannot read a PPDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failing<'a> {
    /// Everybody: other signals have spoilt all of it.
    All,
    /// These, ascending, as far as they overhear it.
    Some(&'a [u16]),
}

/// Radios whose noise is that of most, as far as they overhear it.
#[derive(Debug)]
pub(super) struct Overhearing {
    noise: ErrorModel,
    /// By radio, whether its noise is this.
    are_alike: Vec<bool>,
    seed: u64,
    /// The PPDU that was asked for last, whether other signals have spoilt all of it, and who else
    /// cannot read it.
    last: Option<(u64, Hit)>,
    is_spoilt: bool,
    failing: Vec<u16>,
}

impl Overhearing {
    pub(super) fn new(config: &WorldConfig, radios: usize, seed: u64) -> Self {
        let errors = config.errors(radios);
        let is_alike = |(index, error): (usize, &ErrorModel)| {
            // What the access point reads depends on the sender's noise.
            index != NodeId::AP.index() && *error == config.error
        };
        Self {
            noise: config.error.clone(),
            are_alike: errors.iter().enumerate().map(is_alike).collect(),
            seed,
            last: None,
            is_spoilt: false,
            failing: Vec::new(),
        }
    }

    /// Whether noise spoils anything for them.
    #[inline]
    pub(super) fn is_noisy(&self) -> bool {
        !self.noise.is_perfect()
    }

    /// Whether `at` has this noise.
    #[inline]
    pub(super) fn has(&self, at: NodeId) -> bool {
        self.are_alike[at.index()]
    }

    /// Which of those that were locked on to `flight` all the time, and for which others overlapped
    /// it as `hit` says, cannot read any of it.
    pub(super) fn failing<M>(
        &mut self,
        flight: &InFlight<M>,
        hit: Hit,
        is_qos: bool,
    ) -> Failing<'_> {
        if self.last != Some((flight.number, hit)) {
            self.last = Some((flight.number, hit));
            let probability = self.probability(flight, hit, is_qos);
            self.is_spoilt = probability.is_none();
            let mut stream = self.stream(flight.number, hit);
            let (radios, probability) = (self.are_alike.len(), probability.unwrap_or_default());
            draw(&mut self.failing, radios, probability, || stream.unit());
        }
        match self.is_spoilt {
            true => Failing::All,
            false => Failing::Some(&self.failing),
        }
    }

    /// Whether `at`, as those that [`Overhearing::failing`] speaks of, can read `flight` or a part
    /// of it.
    pub(super) fn can_read<M>(
        &mut self,
        at: NodeId,
        flight: &InFlight<M>,
        hit: Hit,
        is_qos: bool,
    ) -> bool {
        match self.failing(flight, hit, is_qos) {
            Failing::All => false,
            Failing::Some(failing) => failing.binary_search(&at.0).is_err(),
        }
    }

    /// Probability that noise spoils all that other signals have left of a PPDU; none if that is
    /// nothing.
    fn probability<M>(&self, flight: &InFlight<M>, hit: Hit, is_qos: bool) -> Option<f64> {
        let ppdu = &flight.ppdu;
        let Frame::Data(Data { mpdus, .. }) = &ppdu.frame else {
            let loss = self.noise.loss(ppdu.mode, ppdu.psdu as usize);
            return hit.is_none().then_some(loss);
        };
        let (mut begins, mut all) = (0, None);
        for mpdu in mpdus {
            let bytes = len::mpdu(mpdu.msdu.len, is_qos);
            let ends = len::ampdu(begins, bytes);
            if !hit.is_some_and(|hit| flight.is_hit(begins, ends, hit)) {
                let loss = self.noise.loss(ppdu.mode, bytes as usize);
                let product = all.unwrap_or(1.0) * loss;
                if product < NEVER {
                    return Some(0.0);
                }
                all = Some(product);
            }
            begins = ends;
        }
        all
    }

    /// Random numbers for a PPDU and those for which it was hit so.
    fn stream(&self, number: u64, hit: Hit) -> RandomStream {
        let (from, to) = hit.map_or((0, 0), |(from, to)| (from.as_nanos(), to.as_nanos()));
        let hit = from.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ to.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        RandomStream::new(self.seed, "onlookers", number ^ hit)
    }
}

/// Puts into `chosen` each of the numbers below `count` with `probability`, ascending. `unit` draws
/// from 0 to below 1.
fn draw(chosen: &mut Vec<u16>, count: usize, probability: f64, mut unit: impl FnMut() -> f64) {
    chosen.clear();
    if probability <= 0.0 {
        return;
    }
    // Devroye, "Non-Uniform Random Variate Generation", 1986, X.2: the integral part of ln U / ln
    // (1 - p) is geometric. Zero where p is one.
    let scale = 1.0 / libm::log1p(-probability);
    let mut next = 0_usize;
    loop {
        let passed = libm::log(1.0 - unit()) * scale;
        next = next.saturating_add(passed as usize);
        if next >= count {
            return;
        }
        chosen.push(next as u16);
        next += 1;
    }
}

#[cfg(test)]
mod tests;
