//! What noise does to an MPDU.

use super::dsss::DsssRate;
use super::mcs::modulation;
use super::mode::Mode;
use super::ofdm::OfdmRate;

/// The probability that an MPDU is received with a wrong FCS, collisions apart.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum ErrorModel {
    /// Every MPDU that no other frame overlaps is received.
    #[default]
    Perfect,
    /// The same probability for every MPDU, control frames included, at every receiver.
    Rate(f64),
    /// Additive white noise at a signal-to-noise ratio.
    Awgn(Awgn),
}

impl ErrorModel {
    /// Probability that an MPDU of `len` bytes sent in `mode` is lost.
    pub fn loss(&self, mode: Mode, len: usize) -> f64 {
        match self {
            Self::Perfect => 0.0,
            Self::Rate(probability) => *probability,
            Self::Awgn(awgn) => awgn.loss(mode, len),
        }
    }

    /// True when nothing is ever lost.
    pub fn is_perfect(&self) -> bool {
        match self {
            Self::Perfect => true,
            Self::Rate(probability) => *probability <= 0.0,
            Self::Awgn(_) => false,
        }
    }
}

/// Additive white Gaussian noise on a flat channel, hard-decision Viterbi decoding.
///
/// Bit error rates of the modulations: Proakis, "Digital Communications", for Gray-coded square
/// QAM. Bound on the coded bit error rate: union bound with the distance spectra of the K = 7 code
/// (133, 171) and its punctured forms: Frenger, Orten, Ottosson, "Multi-rate convolutional codes",
/// Chalmers 1998, and Haccoun, Bégin, IEEE Trans. Comm. 37(11), 1989. That is the model which Pei
/// and Henderson, "Validation of OFDM error rate model in ns-3", Boeing 2010, checked against
/// measurements. DSSS: DBPSK and DQPSK with the 11-chip Barker gain; CCK as union bound over the
/// codeword distances of IEEE 802.11b-1999.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Awgn {
    snr: f64,
}

/// Weights of a code by distance.
struct Spectrum {
    /// The free distance.
    first: i32,
    /// From one distance to the next.
    step: i32,
    divisor: f64,
    weights: &'static [f64],
}

const fn spectrum(code: (u64, u64)) -> Spectrum {
    match code {
        (1, 2) => Spectrum {
            first: 10,
            step: 2,
            divisor: 1.0,
            weights: &[36.0, 211.0, 1_404.0, 11_633.0, 77_433.0, 502_690.0],
        },
        (2, 3) => Spectrum {
            first: 6,
            step: 1,
            divisor: 2.0,
            weights: &[3.0, 70.0, 285.0, 1_276.0, 6_160.0, 27_128.0, 117_019.0],
        },
        (3, 4) => Spectrum {
            first: 5,
            step: 1,
            divisor: 3.0,
            weights: &[42.0, 201.0, 1_492.0, 10_469.0, 62_935.0, 379_644.0],
        },
        _ => Spectrum {
            first: 4,
            step: 1,
            divisor: 5.0,
            weights: &[92.0, 528.0, 8_694.0, 79_453.0, 792_114.0, 7_375_573.0],
        },
    }
}

impl Awgn {
    /// Noise that leaves a signal-to-noise ratio of `snr_db` decibels in the occupied bandwidth,
    /// for each stream.
    pub fn new(snr_db: f64) -> Self {
        Self {
            snr: libm::pow(10.0, snr_db / 10.0),
        }
    }

    /// Probability that an MPDU of `len` bytes sent in `mode` is lost.
    pub fn loss(&self, mode: Mode, len: usize) -> f64 {
        let error = self.bit_error(mode).clamp(0.0, 0.5);
        // 1 - (1 - p)^bits without loss of precision at small p.
        -libm::expm1(len as f64 * 8.0 * libm::log1p(-error))
    }

    fn bit_error(&self, mode: Mode) -> f64 {
        let (bits, code) = match mode {
            Mode::Dsss(rate, _) => return self.dsss(rate),
            Mode::Ofdm(rate) => match rate {
                OfdmRate::R6 => (1, (1, 2)),
                OfdmRate::R9 => (1, (3, 4)),
                OfdmRate::R12 => (2, (1, 2)),
                OfdmRate::R18 => (2, (3, 4)),
                OfdmRate::R24 => (4, (1, 2)),
                OfdmRate::R36 => (4, (3, 4)),
                OfdmRate::R48 => (6, (2, 3)),
                OfdmRate::R54 => (6, (3, 4)),
            },
            Mode::Ht(mode) => modulation(mode.mcs() % 8),
            Mode::Vht(mode) => modulation(mode.mcs()),
            Mode::He(mode) => modulation(mode.mcs()),
        };
        coded(uncoded(bits, self.snr), &spectrum(code))
    }

    /// Eb/N0 from the SNR in the 22 MHz channel: 11 Mchip/s spread over the bits of the rate.
    fn dsss(&self, rate: DsssRate) -> f64 {
        let gain = 22.0e6 / rate.rate().bits_per_sec() as f64;
        let energy = self.snr * gain;
        match rate {
            DsssRate::R1 => 0.5 * libm::exp(-energy),
            // DQPSK needs about 2.3 dB more than coherent QPSK (Proakis §5.2.8).
            DsssRate::R2 => q(libm::sqrt(2.0 * energy / 1.7)),
            // Pairs of codewords at each distance (IEEE 802.11b-1999 §18.4.6.5: 16 and 256 words of
            // 8 chips).
            DsssRate::R5_5 => cck(self.snr, &[(14.0, 8.0), (1.0, 16.0)], 4.0),
            DsssRate::R11 => cck(
                self.snr,
                &[
                    (24.0, 4.0),
                    (16.0, 6.0),
                    (174.0, 8.0),
                    (16.0, 10.0),
                    (24.0, 12.0),
                    (1.0, 16.0),
                ],
                8.0,
            ),
        }
    }
}

/// Union bound over codewords; each wrong word spoils half its bits.
fn cck(snr: f64, distances: &[(f64, f64)], bits: f64) -> f64 {
    // Energy of a chip over N0: 22 MHz of noise for 11 Mchip/s.
    let chip = snr * 2.0;
    let words: f64 = distances
        .iter()
        .map(|(count, distance)| count * q(libm::sqrt(chip * distance)))
        .sum();
    (words * bits / 2.0 / (bits - 1.0)).min(0.5)
}

fn q(x: f64) -> f64 {
    0.5 * libm::erfc(x / core::f64::consts::SQRT_2)
}

/// Bit error rate of BPSK (1), QPSK (2) and Gray-coded square QAM of so many bits a symbol.
fn uncoded(bits: u64, snr: f64) -> f64 {
    match bits {
        1 => q(libm::sqrt(2.0 * snr)),
        2 => q(libm::sqrt(snr)),
        _ => {
            let points = libm::pow(2.0, bits as f64);
            let side = libm::sqrt(points);
            4.0 / bits as f64 * (1.0 - 1.0 / side) * q(libm::sqrt(3.0 * snr / (points - 1.0)))
        }
    }
}

/// Union bound on the bit error rate after hard-decision decoding, by the Chernoff bound on
/// pairwise errors.
fn coded(p: f64, spectrum: &Spectrum) -> f64 {
    let d = libm::sqrt(4.0 * p * (1.0 - p));
    let mut power = libm::pow(d, f64::from(spectrum.first));
    let factor = libm::pow(d, f64::from(spectrum.step));
    let mut sum = 0.0;
    for weight in spectrum.weights {
        sum += weight * power;
        power *= factor;
    }
    (sum / (2.0 * spectrum.divisor)).min(0.5)
}
