//! The TCP header and the segment around it (RFC 9293 §3.1).

use core::fmt;

use crate::options::TcpOptions;
use crate::seq::SeqNum;

/// Bytes of a TCP header without options.
pub const HEADER_LEN: usize = 20;
/// Largest TCP header, with 40 bytes of options.
pub const MAX_HEADER_LEN: usize = 60;

/// Control bits of a TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);
    /// Accurate ECN (RFC 9768): with CWR and ECE a counter of three bits.
    pub const AE: Self = Self(0x100);

    /// True when every flag of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags and those of `other`.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// FIN is set.
    pub const fn fin(self) -> bool {
        self.contains(Self::FIN)
    }
    /// SYN is set.
    pub const fn syn(self) -> bool {
        self.contains(Self::SYN)
    }
    /// RST is set.
    pub const fn rst(self) -> bool {
        self.contains(Self::RST)
    }
    /// PSH is set.
    pub const fn psh(self) -> bool {
        self.contains(Self::PSH)
    }
    /// ACK is set.
    pub const fn ack(self) -> bool {
        self.contains(Self::ACK)
    }
}

impl fmt::Debug for Flags {
    /// tcpdump's letters: `S`, `F`, `R`, `P`, `.` for ACK, `U`, `E`, `W`,
    /// `e` for AE; `none` for none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("none");
        }
        for (flag, letter) in [
            (Self::SYN, "S"),
            (Self::FIN, "F"),
            (Self::RST, "R"),
            (Self::PSH, "P"),
            (Self::ACK, "."),
            (Self::URG, "U"),
            (Self::ECE, "E"),
            (Self::CWR, "W"),
            (Self::AE, "e"),
        ] {
            if self.contains(flag) {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}

/// Why bytes are not a TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Fewer than the 20 bytes of the fixed header; carries how many there were.
    TooShort(usize),
    /// The data offset (byte 12) names a header shorter than 20 bytes or longer than the segment;
    /// carries the header length it names.
    DataOffset(usize),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort(len) => write!(f, "{len} bytes are fewer than the 20 of a TCP header"),
            Self::DataOffset(len) => {
                write!(f, "data offset at byte 12 names a header of {len} bytes")
            }
        }
    }
}

impl core::error::Error for ParseError {}

/// A TCP header with its options.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first payload byte (or of SYN).
    pub seq: SeqNum,
    /// Next sequence number expected; meaningful with ACK.
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// Window field as it travels, not scaled.
    pub window: u16,
    /// Urgent pointer; kept, never acted on.
    pub urgent: u16,
    /// Options.
    pub options: TcpOptions,
}

impl Header {
    /// Bytes that [`Header::emit`] writes: 20 to 60.
    pub fn encoded_len(&self) -> usize {
        HEADER_LEN + self.options.encoded_len()
    }

    /// Writes the header to the start of `out`, checksum zero, and returns its length.
    ///
    /// # Panics
    /// When `out` is shorter than [`Header::encoded_len`], or the options are more than 40 bytes.
    pub fn emit(&self, out: &mut [u8]) -> usize {
        let len = HEADER_LEN + self.options.emit(&mut out[HEADER_LEN..]);
        assert!(
            len <= MAX_HEADER_LEN,
            "a TCP header has at most 40 bytes of options"
        );
        out[0..2].copy_from_slice(&self.src_port.to_be_bytes());
        out[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        out[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        out[8..12].copy_from_slice(&self.ack.0.to_be_bytes());
        let [high, low] = self.flags.0.to_be_bytes();
        out[12] = (((len / 4) as u8) << 4) | (high & 1);
        out[13] = low;
        out[14..16].copy_from_slice(&self.window.to_be_bytes());
        out[16..18].fill(0);
        out[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        len
    }
}

/// A parsed segment: header by value, payload borrowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment<'a> {
    /// Header and options.
    pub header: Header,
    /// Payload.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Reads a segment from `bytes` (the IP payload). The checksum is not looked at.
    ///
    /// # Errors
    /// [`ParseError`] when the fixed header is cut short or the data offset is impossible.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let Some((fixed, _)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Err(ParseError::TooShort(bytes.len()));
        };
        let header_len = usize::from(fixed[12] >> 4) * 4;
        if header_len < HEADER_LEN || header_len > bytes.len() {
            return Err(ParseError::DataOffset(header_len));
        }
        let word = |at: usize| {
            u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
        };
        let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let header = Header {
            src_port: half(0),
            dst_port: half(2),
            seq: SeqNum(word(4)),
            ack: SeqNum(word(8)),
            flags: Flags(u16::from_be_bytes([fixed[12] & 1, fixed[13]])),
            window: half(14),
            urgent: half(18),
            options: TcpOptions::parse(&bytes[HEADER_LEN..header_len]),
        };
        Ok(Self {
            header,
            payload: &bytes[header_len..],
        })
    }

    /// Source and destination port of `bytes` without parsing the rest; `None` when cut short.
    pub fn ports(bytes: &[u8]) -> Option<(u16, u16)> {
        let [a, b, c, d, ..] = *bytes else {
            return None;
        };
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }

    /// Control bits of `bytes` without parsing the rest; `None` when cut short.
    #[inline]
    pub fn flags(bytes: &[u8]) -> Option<Flags> {
        let [high, low] = *bytes.get(12..)?.first_chunk()?;
        Some(Flags(u16::from_be_bytes([high & 1, low])))
    }

    /// Sequence number of `bytes` without parsing the rest; `None` when cut short.
    #[inline]
    pub fn seq(bytes: &[u8]) -> Option<SeqNum> {
        let word = bytes.get(4..)?.first_chunk()?;
        Some(SeqNum(u32::from_be_bytes(*word)))
    }

    /// Sequence space that the segment takes: payload, SYN and FIN.
    pub fn sequence_len(&self) -> u32 {
        self.payload.len() as u32
            + u32::from(self.header.flags.syn())
            + u32::from(self.header.flags.fin())
    }
}

impl fmt::Display for Segment<'_> {
    /// One line in tcpdump's words: `50000 > 443: Flags [P.], seq 1:5, ack 9, win 512, length 4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Header {
            src_port,
            dst_port,
            seq,
            ack,
            flags,
            window,
            urgent,
            options,
        } = &self.header;
        write!(f, "{src_port} > {dst_port}: Flags [{flags:?}], seq {seq:?}")?;
        if !self.payload.is_empty() {
            write!(f, ":{:?}", *seq + self.payload.len() as u32)?;
        }
        if flags.ack() {
            write!(f, ", ack {ack:?}")?;
        }
        write!(f, ", win {window}")?;
        if flags.contains(Flags::URG) {
            write!(f, ", urg {urgent}")?;
        }
        if *options != TcpOptions::default() {
            write!(f, ", options [{options}]")?;
        }
        write!(f, ", length {}", self.payload.len())
    }
}

#[cfg(test)]
mod tests;
