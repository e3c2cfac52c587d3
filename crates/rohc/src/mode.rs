//! Modes: the contents of a compressed packet.

/// The two ways of accounting for a compressed acknowledgement. Both ends of a flow need the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Mode {
    /// RFC 6846 bit for bit.
    #[default]
    Rfc,
    /// RFC 6846 with one departure.
    ///
    /// Deviation: the PSH bit of the compressed header says whether the timestamps moved (RFC 6846
    /// §8.2 carries PSH there). Unchanged timestamps take no byte, where the RFC takes six.
    /// Moved ones take one byte `v|3 bits|e|3 bits` for value and echo: `lsb(3, 0)`, or with
    /// `v` or `e` set the high bits of `lsb(11, 0)`, whose low byte follows. A segment with PSH
    /// is not compressed.
    Lean,
    /// [`Lean`](Self::Lean) without the TCP checksum.
    ///
    /// Deviation: the irregular chain carries no checksum (RFC 6846 §8.2 has 16 bits), and the
    /// decompressor computes it. A segment with a wrong checksum is not compressed. The receiver's
    /// TCP then no longer notices a header that was rebuilt wrongly and passed the CRC of three
    /// bits.
    LeanNoChecksum,
}

impl Mode {
    pub(crate) const fn is_lean(self) -> bool {
        !matches!(self, Self::Rfc)
    }

    pub(crate) const fn carries_checksum(self) -> bool {
        !matches!(self, Self::LeanNoChecksum)
    }
}
