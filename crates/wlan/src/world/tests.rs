//! Whole networks, event by event. What all subjects need is here.

mod agreements;
mod clock;
mod collisions;
mod comparing;
mod exchanges;
mod neighbours;
mod queues;
mod random_traffic;

use std::vec::Vec;

use super::*;
use crate::frame::{Class, Frame};
use crate::phy::{
    DsssRate, GuardInterval, HtMode, Mode, OfdmRate, Preamble, Standard, Timing, Width,
};
use tack_base::Duration;

/// Whether a case is run: all of them where `TACK_LONG=1` asks for the long form, for which alone
/// these tests are optimised; else one of `of`. (`PROPTEST_CASES` goes before the number of cases
/// that a test names.)
fn is_run(seed: u64, of: u64) -> bool {
    tack_skip::is_long() || seed.is_multiple_of(of)
}

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn config(standard: Standard, stations: u16) -> WorldConfig {
    let mode = match standard {
        Standard::B => Mode::Dsss(DsssRate::R11, Preamble::Long),
        Standard::A => Mode::Ofdm(OfdmRate::R54),
        _ => Mode::Ht(HtMode::new(7, Width::W40, GuardInterval::Ns400).unwrap()),
    };
    let timing = Timing::new(standard, standard.band(), Preamble::Long);
    WorldConfig::new(MacConfig::new(standard, timing, mode), stations)
}

fn msdu(src: u16, dst: u16, number: u32) -> Msdu<u32> {
    Msdu {
        src: NodeId(src),
        dst: NodeId(dst),
        len: 1_500,
        class: Class::Data,
        category: AccessCategory::BestEffort,
        payload: Some(number),
    }
}

fn deliveries(world: &mut World<u32>) -> Vec<(u16, u32)> {
    core::iter::from_fn(|| world.poll_delivery())
        .map(|delivery| (delivery.at.0, delivery.msdu.payload.unwrap()))
        .collect()
}
