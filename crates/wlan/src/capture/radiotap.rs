//! The radiotap header: when and how a frame was sent.

use alloc::vec::Vec;

use tack_base::Instant;

use crate::phy::{Band, GuardInterval, Mode, Width};

/// Channel number at 2.4 GHz, as beacons name it.
pub(super) const CHANNEL_2_4: u8 = 1;

/// A frame within an A-MPDU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subframe {
    /// The same for all frames of the A-MPDU.
    pub(super) reference: u32,
    /// No other follows.
    pub(super) is_last: bool,
}

const TSFT: u32 = 1 << 0;
const FLAGS: u32 = 1 << 1;
const RATE: u32 = 1 << 2;
const CHANNEL: u32 = 1 << 3;
const MCS: u32 = 1 << 19;
const AMPDU: u32 = 1 << 20;
const VHT: u32 = 1 << 21;
const HE: u32 = 1 << 23;

/// Writes the header. Fields come in the order of their bits, each aligned to its size.
pub(super) fn write(
    bytes: &mut Vec<u8>,
    at: Instant,
    mode: Mode,
    band: Band,
    subframe: Option<Subframe>,
) {
    let how = match mode {
        Mode::Dsss(..) | Mode::Ofdm(_) => RATE,
        Mode::Ht(_) => MCS,
        Mode::Vht(_) => VHT,
        Mode::He(_) => HE,
    };
    let present = TSFT | FLAGS | CHANNEL | how | if subframe.is_some() { AMPDU } else { 0 };
    bytes.extend([0, 0, 0, 0]);
    bytes.extend(present.to_le_bytes());
    bytes.extend(at.as_micros().to_le_bytes());
    // The FCS is there; maybe the preamble is short.
    bytes.push(0x10 | if mode.has_short_preamble() { 0x02 } else { 0 });
    if how == RATE {
        bytes.push((mode.rate().bits_per_sec() / 500_000) as u8);
    }
    align(bytes, 2);
    let (frequency, band_flag) = match band {
        Band::Ghz2_4 => (2_407 + 5 * u16::from(CHANNEL_2_4), 0x0080),
        Band::Ghz5 => (5_180_u16, 0x0100_u16),
    };
    let modulation = if mode.is_ofdm() { 0x0040 } else { 0x0020 };
    bytes.extend(frequency.to_le_bytes());
    bytes.extend((band_flag | modulation).to_le_bytes());
    if let Mode::Ht(mode) = mode {
        // All known: bandwidth, MCS, guard interval, format, BCC coding, no STBC, no extension
        // streams.
        let wide = u8::from(mode.width() == Width::W40);
        let short = u8::from(mode.guard() == GuardInterval::Ns400) << 2;
        bytes.extend([0x7f, wide | short, mode.mcs()]);
    }
    if let Some(subframe) = subframe {
        align(bytes, 4);
        bytes.extend(subframe.reference.to_le_bytes());
        // The last subframe is known, and marked.
        let flags = 0x0004_u16 | if subframe.is_last { 0x0008 } else { 0 };
        bytes.extend(flags.to_le_bytes());
        bytes.extend([0, 0]);
    }
    match mode {
        Mode::Vht(mode) => {
            align(bytes, 2);
            // Known: no STBC, guard interval, bandwidth.
            bytes.extend(0x0045_u16.to_le_bytes());
            let width = match mode.width() {
                Width::W20 => 0,
                Width::W40 => 1,
                Width::W80 => 4,
                Width::W160 => 11,
            };
            let short = u8::from(mode.guard() == GuardInterval::Ns400) << 2;
            bytes.extend([short, width, mode.mcs() << 4 | mode.streams(), 0, 0, 0]);
            bytes.extend([0, 0, 0, 0]);
        }
        Mode::He(mode) => {
            align(bytes, 2);
            let width = match mode.width() {
                Width::W20 => 0,
                Width::W40 => 1,
                Width::W80 => 2,
                Width::W160 => 3,
            };
            let guard = match mode.guard() {
                GuardInterval::Ns400 | GuardInterval::Ns800 => 0,
                GuardInterval::Ns1600 => 1,
                GuardInterval::Ns3200 => 2,
            };
            // Single user; MCS, coding and bandwidth known; guard interval known; LDPC.
            let words = [
                0x0020 | 0x0080 | 0x4000,
                0x0002,
                u16::from(mode.mcs()) << 8 | 0x2000,
                0,
                width | guard << 4,
                u16::from(mode.streams()),
            ];
            for word in words {
                bytes.extend(word.to_le_bytes());
            }
        }
        Mode::Dsss(..) | Mode::Ofdm(_) | Mode::Ht(_) => {}
    }
    let len = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&len.to_le_bytes());
}

/// The header begins at offset zero: alignment is that of the length so far.
fn align(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}
