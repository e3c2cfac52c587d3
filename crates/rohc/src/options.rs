//! TCP options as RFC 6846 §6.3.4 knows them, each with its index in the list tables.

use arrayvec::ArrayVec;
use tack_wire::{SackBlock, SackBlocks, SeqNum, Timestamps};

/// Most options of one list: the count is a field of four bits (RFC 6846 §6.3.3).
pub(crate) const MAX_OPTIONS: usize = 15;
/// Largest option area, bytes (RFC 9293 §3.1).
pub(crate) const MAX_OPTIONS_LEN: usize = 40;
/// Largest option, without kind and length.
const MAX_BODY_LEN: usize = MAX_OPTIONS_LEN - 2;

/// The options of a header in their order.
pub(crate) type Options = ArrayVec<TcpOption, MAX_OPTIONS>;
/// The body of an option, without kind and length.
pub(crate) type Body = ArrayVec<u8, MAX_BODY_LEN>;

/// The place of an option in the tables (RFC 6846 §6.3.4, table of indices).
pub(crate) mod index {
    pub(crate) const NOP: u8 = 0;
    pub(crate) const END: u8 = 1;
    pub(crate) const MSS: u8 = 2;
    pub(crate) const WINDOW_SCALE: u8 = 3;
    pub(crate) const TIMESTAMPS: u8 = 4;
    pub(crate) const SACK_PERMITTED: u8 = 5;
    pub(crate) const SACK: u8 = 6;
    /// The first index of options that the RFC does not know; the last is 15.
    pub(crate) const GENERIC: u8 = 7;
}

/// One option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TcpOption {
    Nop,
    /// End of the list, with this many zero bytes of padding behind it.
    End {
        padding: u8,
    },
    Mss(u16),
    WindowScale(u8),
    Timestamps(Timestamps),
    SackPermitted,
    /// Never empty.
    Sack(SackBlocks),
    Generic {
        kind: u8,
        body: Body,
    },
}

impl TcpOption {
    /// Its index, if the RFC fixes it.
    pub(crate) fn well_known(&self) -> Option<u8> {
        Some(match self {
            Self::Nop => index::NOP,
            Self::End { .. } => index::END,
            Self::Mss(_) => index::MSS,
            Self::WindowScale(_) => index::WINDOW_SCALE,
            Self::Timestamps(_) => index::TIMESTAMPS,
            Self::SackPermitted => index::SACK_PERMITTED,
            Self::Sack(_) => index::SACK,
            Self::Generic { .. } => return None,
        })
    }

    fn read(kind: u8, body: &[u8]) -> Option<Self> {
        Some(match (kind, body) {
            (2, &[high, low]) => Self::Mss(u16::from_be_bytes([high, low])),
            (3, &[shift]) => Self::WindowScale(shift),
            (4, []) => Self::SackPermitted,
            (5, blocks) if matches!(blocks.len(), 8 | 16 | 24 | 32) => Self::Sack(
                blocks
                    .chunks_exact(8)
                    .map(|block| SackBlock {
                        start: SeqNum(word(block)),
                        end: SeqNum(word(&block[4..])),
                    })
                    .collect(),
            ),
            (8, fields) if fields.len() == 8 => Self::Timestamps(Timestamps {
                value: word(fields),
                echo: word(&fields[4..]),
            }),
            // A known kind with a length that it cannot have: no list item could carry it.
            (0..=5 | 8, _) => return None,
            _ => Self::Generic {
                kind,
                body: body.try_into().ok()?,
            },
        })
    }

    fn write(&self, out: &mut ArrayVec<u8, MAX_OPTIONS_LEN>) -> Option<()> {
        let mut put = |bytes: &[u8]| out.try_extend_from_slice(bytes).ok();
        match self {
            Self::Nop => put(&[1]),
            Self::End { padding } => {
                for _ in 0..=*padding {
                    put(&[0])?;
                }
                Some(())
            }
            Self::Mss(mss) => put(&[2, 4]).and_then(|()| put(&mss.to_be_bytes())),
            Self::WindowScale(shift) => put(&[3, 3, *shift]),
            Self::SackPermitted => put(&[4, 2]),
            Self::Sack(blocks) => {
                put(&[5, 2 + 8 * blocks.len() as u8])?;
                for block in blocks {
                    put(&block.start.0.to_be_bytes())?;
                    put(&block.end.0.to_be_bytes())?;
                }
                Some(())
            }
            Self::Timestamps(timestamps) => {
                put(&[8, 10])?;
                put(&timestamps.value.to_be_bytes())?;
                put(&timestamps.echo.to_be_bytes())
            }
            Self::Generic { kind, body } => {
                put(&[*kind, 2 + body.len() as u8])?;
                put(body)
            }
        }
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Reads a whole option area. `None` if it is malformed, has more than 15 options, or one of the
/// well-known ones twice (each has one place in the tables; only NOP may repeat).
pub(crate) fn read(area: &[u8]) -> Option<Options> {
    let mut options = Options::new();
    let mut seen = 0_u8;
    let mut rest = area;
    while let Some((&kind, tail)) = rest.split_first() {
        let option = match kind {
            0 => {
                if tail.iter().any(|&byte| byte != 0) {
                    return None;
                }
                rest = &[];
                TcpOption::End {
                    padding: tail.len() as u8,
                }
            }
            1 => {
                rest = tail;
                TcpOption::Nop
            }
            _ => {
                let len = usize::from(*tail.first()?);
                let body = rest.get(2..len)?;
                rest = &rest[len..];
                TcpOption::read(kind, body)?
            }
        };
        if let Some(index) = option.well_known()
            && index != index::NOP
        {
            if seen & 1 << index != 0 {
                return None;
            }
            seen |= 1 << index;
        }
        options.try_push(option).ok()?;
    }
    Some(options)
}

/// The option area of a header. `None` if it is longer than 40 bytes or not whole words: then no
/// header can hold it.
pub(crate) fn write(options: &Options) -> Option<ArrayVec<u8, MAX_OPTIONS_LEN>> {
    let mut area = ArrayVec::new();
    for option in options {
        option.write(&mut area)?;
    }
    (area.len() % 4 == 0).then_some(area)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(area: &[u8]) {
        let options = read(area).unwrap();
        assert_eq!(write(&options).unwrap().as_slice(), area, "{options:?}");
    }

    #[test]
    fn areas_come_back_bit_for_bit() {
        round_trip(&[]);
        round_trip(&[1, 1, 8, 10, 0, 0, 19, 136, 0, 0, 35, 40]);
        round_trip(&[2, 4, 5, 180, 4, 2, 3, 3, 7, 0, 0, 0]);
        round_trip(&[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        round_trip(&[30, 12, 0x20, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        round_trip(&[0, 0, 0, 0]);
    }

    #[test]
    fn what_no_list_can_carry_is_refused() {
        assert_eq!(read(&[8, 4, 0, 0]), None, "timestamps of the wrong length");
        assert_eq!(read(&[5, 2, 1, 1]), None, "SACK without a block");
        assert_eq!(read(&[30, 1, 0, 0]), None, "a length below 2");
        assert_eq!(read(&[30, 9, 0, 0]), None, "a length beyond the area");
        assert_eq!(read(&[3, 3, 7, 3, 3, 7, 1, 1]), None, "an option twice");
        assert_eq!(read(&[0, 0, 0, 9]), None, "padding that is not zero");
        assert_eq!(read(&[1; 16]), None, "more than 15 options");
    }
}
