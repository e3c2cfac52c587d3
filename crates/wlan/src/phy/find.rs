//! Finding the mode that a rate names, as in `rate = "300Mbps"`.

use alloc::vec::Vec;

use tack_base::Rate;

use super::dsss::{DsssRate, Preamble};
use super::he::HeMode;
use super::ht::HtMode;
use super::mcs::{GuardInterval, Width};
use super::mode::{Mode, Standard};
use super::ofdm::OfdmRate;
use super::vht::{SigB, VhtMode};

/// What is known about a mode besides its generation; everything left open may be anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ModeQuery {
    /// Data rate; a rate that is rounded to a tenth of a Mbit/s, such as 866.7 Mbit/s, is
    /// understood.
    pub rate: Option<Rate>,
    /// MCS index.
    pub mcs: Option<u8>,
    /// Spatial streams.
    pub streams: Option<u8>,
    /// Channel width.
    pub width: Option<Width>,
    /// Guard interval.
    pub guard: Option<GuardInterval>,
    /// Preamble of 802.11b.
    pub preamble: Preamble,
    /// VHT-SIG-B of 802.11ac.
    pub sig_b: SigB,
}

impl ModeQuery {
    /// The modes of `standard` that fit, those with fewer streams first, then narrower channels,
    /// then longer guard intervals, then lower rates.
    pub fn find(&self, standard: Standard) -> Vec<Mode> {
        let mut found: Vec<Mode> = match standard {
            Standard::B => {
                let modes =
                    DsssRate::ALL.map(|rate| Mode::Dsss(rate, rate.preamble(self.preamble)));
                modes.into_iter().filter(|_| self.is_plain()).collect()
            }
            Standard::A | Standard::G => {
                let modes = OfdmRate::ALL.map(Mode::Ofdm);
                modes.into_iter().filter(|_| self.is_plain()).collect()
            }
            Standard::N | Standard::Ac | Standard::Ax => self.high_throughput(standard),
        };
        found.retain(|mode| self.rate.is_none_or(|rate| is_named(*mode, rate)));
        found
    }

    /// Nothing was asked for that only HT and its successors have.
    fn is_plain(&self) -> bool {
        self.mcs.is_none()
            && self.streams.is_none_or(|streams| streams == 1)
            && self.width.is_none_or(|width| width == Width::W20)
            && self.guard.is_none_or(|guard| guard == GuardInterval::Ns800)
    }

    fn high_throughput(&self, standard: Standard) -> Vec<Mode> {
        let mut found = Vec::new();
        for streams in 1..=8 {
            for width in Width::ALL {
                for guard in GuardInterval::ALL.into_iter().rev() {
                    for mcs in 0..=11 {
                        let mode = match standard {
                            Standard::N if mcs < 8 && streams <= 4 => {
                                HtMode::new(mcs + 8 * (streams - 1), width, guard).map(Mode::Ht)
                            }
                            Standard::N => continue,
                            Standard::Ac => {
                                VhtMode::new(mcs, streams, width, guard, self.sig_b).map(Mode::Vht)
                            }
                            _ => HeMode::new(mcs, streams, width, guard).map(Mode::He),
                        };
                        let Ok(mode) = mode else { continue };
                        let index = match mode {
                            Mode::Ht(mode) => mode.mcs(),
                            _ => mcs,
                        };
                        let fits = self.mcs.is_none_or(|wanted| wanted == index)
                            && self.streams.is_none_or(|wanted| wanted == streams)
                            && self.width.is_none_or(|wanted| wanted == width)
                            && self.guard.is_none_or(|wanted| wanted == guard);
                        if fits {
                            found.push(mode);
                        }
                    }
                }
            }
        }
        found
    }
}

/// True when `rate` is the mode's rate, or that rate rounded to a tenth or a half of a Mbit/s.
fn is_named(mode: Mode, rate: Rate) -> bool {
    mode.rate().bits_per_sec().abs_diff(rate.bits_per_sec()) <= 50_000
}
