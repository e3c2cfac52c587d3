//! The mode of control responses: ACK, Block ACK, CTS (§10.6.6.5).

use super::dsss::{DsssRate, Preamble};
use super::mode::Mode;
use super::ofdm::OfdmRate;

/// Basic rates of OFDM networks: the mandatory ones.
const BASIC_OFDM: [OfdmRate; 3] = [OfdmRate::R6, OfdmRate::R12, OfdmRate::R24];

/// Basic rates of 802.11b networks: those that every 802.11 radio has known since 1997.
const BASIC_DSSS: [DsssRate; 2] = [DsssRate::R1, DsssRate::R2];

/// The highest basic rate that is not above the rate of the frame that asks for the response.
///
/// The response to DSSS has the preamble of the frame it answers, where its rate allows
/// (§10.6.6.5.2).
pub fn response_mode(to: Mode) -> Mode {
    match (to, to.reference_rate()) {
        (Mode::Dsss(rate, preamble), _) => dsss(rate, preamble),
        (_, Some(reference)) => ofdm(reference),
        // Every mode that is not DSSS has a reference rate.
        (_, None) => Mode::Ofdm(OfdmRate::R6),
    }
}

fn dsss(rate: DsssRate, preamble: Preamble) -> Mode {
    let basic = BASIC_DSSS.iter().rev().find(|basic| **basic <= rate);
    let rate = basic.copied().unwrap_or(DsssRate::R1);
    Mode::Dsss(rate, rate.preamble(preamble))
}

fn ofdm(reference: OfdmRate) -> Mode {
    let basic = BASIC_OFDM.iter().rev().find(|basic| **basic <= reference);
    Mode::Ofdm(basic.copied().unwrap_or(OfdmRate::R6))
}
