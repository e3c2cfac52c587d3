//! From compressed packets back to the originals.

use crate::cid;
use crate::context::Context;
use crate::error::{DecodeError, Refusal};
use crate::fields::{BaseHeader, Fields};
use crate::format::Format;
use crate::header::{Header, PacketBytes};
use crate::ir;
use crate::item::TimestampForm;
use crate::list;
use crate::mode::Mode;

/// One decompressed packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decompressed {
    /// The packet, bit for bit as it was compressed.
    pub packet: PacketBytes,
    /// Bytes of the compressed packet, CID included. What follows them is not part of it: a pure
    /// acknowledgement has no payload.
    pub consumed: usize,
    /// The format of the compressed packet.
    pub format: Format,
    /// The master sequence number: 16 bits, counts compressed packets.
    pub msn: u16,
}

/// The receiving end of one flow.
///
/// It starts without a context; a native packet ([`handle_native`](Self::handle_native)) or an IR
/// packet establishes one. Any bytes are survived; a refused packet leaves the context as it was.
/// Memory is constant.
#[derive(Clone, Debug)]
pub struct Decompressor {
    mode: Mode,
    context: Option<Context>,
}

/// The contents of a compressed packet.
struct Rebuilt {
    format: Format,
    header: Header,
    /// The context after it.
    context: Context,
    /// Bytes of the compressed packet.
    consumed: usize,
}

impl Decompressor {
    /// Without a context.
    pub const fn new(mode: Mode) -> Self {
        Self {
            mode,
            context: None,
        }
    }

    /// Takes note of a packet of the flow that came as it is: its fields become the context's. A
    /// packet of another flow starts a new context.
    ///
    /// # Errors
    /// [`Refusal`] if this codec could not write the packet again bit for bit; the context is then
    /// as it was.
    pub fn handle_native(&mut self, packet: &[u8]) -> Result<(), Refusal> {
        let header = Header::read(packet)?;
        let next = match &self.context {
            Some(context) if context.header.same_flow(&header) => context.after_native(header),
            _ => Context::of_native(header),
        };
        self.context = Some(next.ok_or(Refusal::Options)?);
        Ok(())
    }

    /// Rebuilds a packet from a compressed one at the start of `bytes`. Padding and an Add-CID
    /// octet in front of it are stepped over ([`small_cid`](crate::small_cid) reads them);
    /// which flow they mean is the caller's matter.
    ///
    /// IR and IR-DYN packets (RFC 6846 §7.1) establish or refresh the context; they are read as the
    /// RFC has them in every mode.
    ///
    /// # Errors
    /// [`DecodeError`]; the context is then as it was. [`DecodeError::Crc`] means that the contexts
    /// of the two ends differ, or that bits flipped; a CRC of three bits lets one wrong header
    /// in eight pass.
    pub fn decompress(&mut self, bytes: &[u8]) -> Result<Decompressed, DecodeError> {
        let prefix = cid::prefix(bytes);
        let Rebuilt {
            format,
            header,
            context: next,
            consumed,
        } = match bytes.get(prefix) {
            Some(&first) if ir::is_ir(first) => {
                // The CRC of these covers the identifier.
                let start = cid::padding(bytes);
                let read = ir::read(&bytes[start..], prefix - start, self.context.as_ref())?;
                Rebuilt {
                    format: read.format,
                    header: read.header,
                    context: read.context,
                    consumed: start + read.consumed,
                }
            }
            _ => {
                let read = self.read_compressed(&bytes[prefix..])?;
                Rebuilt {
                    consumed: prefix + read.consumed,
                    ..read
                }
            }
        };
        // An IR packet's own CRC was checked; the options' lengths were not.
        let packet = header
            .write()
            .ok_or(DecodeError::Malformed("the length of the option area"))?;
        let msn = next.msn;
        self.context = Some(Context { header, ..next });
        Ok(Decompressed {
            packet,
            consumed,
            format,
            msn,
        })
    }

    /// The master sequence number of the newest packet; `None` without a context.
    pub fn msn(&self) -> Option<u16> {
        self.context.as_ref().map(|context| context.msn)
    }

    fn read_compressed(&self, bytes: &[u8]) -> Result<Rebuilt, DecodeError> {
        let context = self.context.as_ref().ok_or(DecodeError::NoContext)?;
        let sequential = context.ip_id_behavior.is_sequential();
        let BaseHeader {
            format,
            mut fields,
            rest: mut bits,
        } = Fields::read(bytes, sequential)?;
        let form = match self.mode {
            Mode::Rfc => TimestampForm::Rfc,
            Mode::Lean | Mode::LeanNoChecksum => {
                // Deviation: in the lean modes the bit says whether the timestamps moved; see
                // [`Mode::Lean`].
                let moved = core::mem::take(&mut fields.psh);
                if moved {
                    TimestampForm::LeanMoved
                } else {
                    TimestampForm::LeanUnchanged
                }
            }
        };
        let (mut header, mut next) = fields.resolve(context)?;
        let list = if fields.list_present {
            list::read(header.ack, &mut next, &mut bits)?
        } else {
            list::unchanged(&next)
        };
        list::read_irregular(list, &mut header, &mut next, form, self.mode, &mut bits)?;
        if !self.mode.carries_checksum() {
            header.checksum = header
                .right_checksum()
                .ok_or(DecodeError::Malformed("the length of the option area"))?;
        }
        if let Some((crc, expected)) = fields.check {
            let packet = header
                .write()
                .ok_or(DecodeError::Malformed("the length of the option area"))?;
            let rebuilt = crc.of(&packet);
            if rebuilt != expected {
                return Err(DecodeError::Crc { expected, rebuilt });
            }
        }
        Ok(Rebuilt {
            format,
            header,
            context: next,
            consumed: bits.consumed(),
        })
    }
}
