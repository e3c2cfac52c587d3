//! Boxes on the way that rewrite headers: option strippers, randomisers of initial sequence
//! numbers, and boxes that overwrite the ECN field of IP or clear the ECN flags of TCP.

use tack_base::random::RandomStream;
use tack_wire::checksum::PROTOCOL_TCP;
use tack_wire::options::{KIND_NOP, for_each_option_mut};
use tack_wire::{Ecn, Flags};

use crate::packet::Packet;

const KIND_SACK: u8 = 5;
const FLAG_SYN: u8 = 0x02;
const FLAG_ACK: u8 = 0x10;

/// Which segments lose their options or flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StripFrom {
    /// Every segment.
    #[default]
    All,
    /// Segments with SYN: the feature is never negotiated.
    Syn,
    /// Segments without SYN: the feature is negotiated and then fails.
    Rest,
}

impl StripFrom {
    fn concerns(self, packet: &Packet) -> bool {
        let is_syn = packet.transport()[13] & FLAG_SYN != 0;
        match self {
            Self::All => true,
            Self::Syn => is_syn,
            Self::Rest => !is_syn,
        }
    }
}

/// What an ISN rewriter does with SACK blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IsnRewrite {
    /// There is no rewriter.
    #[default]
    Off,
    /// It shifts them with the other numbers.
    WithSack,
    /// It forgets them, as some do: they then name bytes that were never sent.
    WithoutSack,
}

/// Which of the ECN flags of TCP are cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnFlags {
    /// None.
    #[default]
    None,
    /// AE, by boxes that know the bit as a reserved one.
    Ae,
    /// CWR and ECE, the flags of RFC 3168.
    CwrEce,
    /// All three.
    All,
}

impl EcnFlags {
    /// The flags.
    fn flags(self) -> Flags {
        let cwr_ece = Flags::CWR.with(Flags::ECE);
        match self {
            Self::None => Flags::default(),
            Self::Ae => Flags::AE,
            Self::CwrEce => cwr_ece,
            Self::All => cwr_ece.with(Flags::AE),
        }
    }
}

/// Settings of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MiddleboxConfig {
    /// Option kinds that are taken out.
    pub strip: Vec<u8>,
    /// Of which segments.
    pub strip_from: StripFrom,
    /// ECN flags of TCP that are cleared.
    pub clear: EcnFlags,
    /// Of which segments.
    pub clear_from: StripFrom,
    /// Codepoint that is written into the ECN field of each IP packet.
    pub ecn: Option<Ecn>,
    /// Rewriting of sequence numbers; must be the same in both directions.
    pub isn: IsnRewrite,
}

/// A box in one direction. Two boxes made with the same seed shift the numbers of the two
/// directions consistently.
#[derive(Clone, Debug)]
pub struct Middlebox {
    config: MiddleboxConfig,
    seed: u64,
    /// 0 from the server, 1 to the server.
    direction: usize,
    /// Shift of each direction by the (server, client) ports of the connection.
    shifts: Vec<((u16, u16), [u32; 2])>,
}

impl Middlebox {
    /// Of direction `direction`: 0 from the server, 1 to the server.
    pub fn new(config: MiddleboxConfig, seed: u64, direction: usize) -> Self {
        Self {
            config,
            seed,
            direction,
            shifts: Vec::new(),
        }
    }

    /// True when the box does anything.
    pub fn is_on(&self) -> bool {
        let MiddleboxConfig {
            strip,
            strip_from: _,
            clear,
            clear_from: _,
            ecn,
            isn,
        } = &self.config;
        let rewrites = *isn != IsnRewrite::Off || *clear != EcnFlags::None || ecn.is_some();
        rewrites || !strip.is_empty()
    }

    /// Rewrites a packet that passes. Says whether options were taken out, or ECN bits changed.
    pub fn pass(&mut self, packet: &mut Packet) -> bool {
        let mut changed = false;
        if let Some(ecn) = self.config.ecn.filter(|ecn| *ecn != packet.ecn()) {
            packet.set_ecn(ecn);
            changed = true;
        }
        if packet.protocol() != PROTOCOL_TCP {
            return changed;
        }
        if self.config.isn != IsnRewrite::Off {
            self.rewrite(packet);
        }
        changed |= self.config.clear != EcnFlags::None && self.clear(packet);
        changed |= !self.config.strip.is_empty() && self.strip(packet);
        changed
    }

    /// Clears the ECN flags. Says whether one was set.
    fn clear(&self, packet: &mut Packet) -> bool {
        if !self.config.clear_from.concerns(packet) {
            return false;
        }
        // AE is the lowest bit of the byte of the data offset.
        let [high, low] = self.config.clear.flags().0.to_be_bytes();
        let transport = packet.transport_mut();
        let was_set = (transport[12] & high) | (transport[13] & low) != 0;
        transport[12] &= !high;
        transport[13] &= !low;
        was_set
    }

    fn rewrite(&mut self, packet: &mut Packet) {
        let transport = packet.transport();
        let half = |at: usize| u16::from_be_bytes([transport[at], transport[at + 1]]);
        let ports = match self.direction {
            0 => (half(0), half(2)),
            _ => (half(2), half(0)),
        };
        let shifts = self.shifts_of(ports);
        let (own, other) = (shifts[self.direction], shifts[1 - self.direction]);
        let with_sack = self.config.isn == IsnRewrite::WithSack;
        let transport = packet.transport_mut();
        shift(&mut transport[4..8], own);
        // Acknowledgements and SACK blocks speak of the other direction's numbers, as this side saw
        // them: shifted.
        if transport[13] & FLAG_ACK != 0 {
            shift(&mut transport[8..12], other.wrapping_neg());
        }
        if with_sack {
            for_each_option_mut(&mut transport[20..], |kind, body| {
                if kind == KIND_SACK {
                    for edge in body.chunks_exact_mut(4) {
                        shift(edge, other.wrapping_neg());
                    }
                }
            });
        }
    }

    fn shifts_of(&mut self, ports: (u16, u16)) -> [u32; 2] {
        if let Some((_, shifts)) = self.shifts.iter().find(|(known, _)| *known == ports) {
            return *shifts;
        }
        let connection = u64::from(ports.0) << 16 | u64::from(ports.1);
        let mut stream = RandomStream::new(self.seed, "isn_rewrite", connection);
        let shifts = [stream.next_u64() as u32, stream.next_u64() as u32];
        self.shifts.push((ports, shifts));
        shifts
    }

    fn strip(&self, packet: &mut Packet) -> bool {
        if !self.config.strip_from.concerns(packet) {
            return false;
        }
        let mut kept = Vec::new();
        let mut stripped = false;
        for_each_option_mut(&mut packet.transport_mut()[20..], |kind, body| {
            if self.config.strip.contains(&kind) {
                stripped = true;
            } else {
                kept.push(kind);
                kept.push(body.len() as u8 + 2);
                kept.extend_from_slice(body);
            }
        });
        if !stripped {
            return false;
        }
        kept.resize(kept.len().next_multiple_of(4), KIND_NOP);
        let header_len = 20 + kept.len();
        let start = packet.head.len() - packet.transport().len();
        packet.head.truncate(start + 20);
        let fits = packet.head.append(&kept);
        assert!(fits, "without alignment options never grow");
        packet.transport_mut()[12] =
            ((header_len / 4) as u8) << 4 | (packet.transport_mut()[12] & 0x0f);
        packet.update_length();
        true
    }
}

fn shift(field: &mut [u8], by: u32) {
    let number = u32::from_be_bytes([field[0], field[1], field[2], field[3]]);
    field.copy_from_slice(&number.wrapping_add(by).to_be_bytes());
}
