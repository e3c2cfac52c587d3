//! Segments that a kernel or a network card joined into one (TSO, GRO), apart again.

use crate::segment::{Flags, Segment};

/// The segments that `joined` stands for: each has `size` bytes of payload, the last one possibly
/// fewer. PSH and FIN belong to the last. CWR stays on all: it may be part of a counter (RFC 9768),
/// and as an answer to marks (RFC 3168) it means the same on each. A `size` of zero stands for no
/// cutting.
pub fn cut(joined: Segment<'_>, size: usize) -> Train<'_> {
    let size = if size == 0 { usize::MAX } else { size };
    Train {
        joined: Some(joined),
        size,
    }
}

/// Iterator of [`cut`].
#[derive(Clone, Debug)]
pub struct Train<'a> {
    joined: Option<Segment<'a>>,
    size: usize,
}

impl<'a> Iterator for Train<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        let mut rest = self.joined.take()?;
        if rest.payload.len() <= self.size {
            return Some(rest);
        }
        let (payload, later) = rest.payload.split_at(self.size);
        let mut header = rest.header.clone();
        header.flags = without(header.flags, Flags::PSH.with(Flags::FIN));
        rest.header.seq = rest.header.seq + payload.len() as u32;
        rest.payload = later;
        self.joined = Some(rest);
        Some(Segment { header, payload })
    }
}

const fn without(flags: Flags, taken: Flags) -> Flags {
    Flags(flags.0 & !taken.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Header, SeqNum};
    use std::vec::Vec;

    fn joined(flags: Flags, payload: &[u8]) -> Segment<'_> {
        Segment {
            header: Header {
                seq: SeqNum(u32::MAX - 1),
                flags,
                ..Header::default()
            },
            payload,
        }
    }

    #[test]
    fn a_train_comes_apart_at_its_size() {
        let flags = Flags::ACK
            .with(Flags::PSH)
            .with(Flags::FIN)
            .with(Flags::AE)
            .with(Flags::CWR);
        let parts: Vec<_> = cut(joined(flags, b"abcdefgh"), 3)
            .map(|part| (part.header.seq.0, part.header.flags, part.payload))
            .collect();
        let all = Flags::ACK.with(Flags::AE).with(Flags::CWR);
        assert_eq!(
            parts,
            [
                (u32::MAX - 1, all, &b"abc"[..]),
                (1, all, b"def"),
                (4, flags, b"gh"),
            ]
        );
    }

    #[test]
    fn a_single_segment_stays_whole() {
        for size in [0, 8, 9] {
            let parts: Vec<_> = cut(joined(Flags::PSH, b"abcdefgh"), size).collect();
            assert_eq!(parts, [joined(Flags::PSH, b"abcdefgh")]);
        }
        assert_eq!(cut(joined(Flags::ACK, b""), 3).count(), 1);
    }
}
