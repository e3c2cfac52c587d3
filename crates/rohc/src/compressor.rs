//! From acknowledgements to compressed packets.

use alloc::vec::Vec;

use crate::bits::CompressedBytes;
use crate::choice::{EcnObserver, IpIdObserver, StrideFinder};
use crate::context::Context;
use crate::encode::{Encoder, rsf_index};
use crate::error::Refusal;
use crate::format::Format;
use crate::header::Header;
use crate::ir;
use crate::list::ListPlan;
use crate::mode::Mode;

/// The MSN travels as `lsb(4, 4)`, which reaches 11 packets ahead of a reference.
const MAX_ROBUSTNESS: u8 = 11;

/// How a flow is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// What a compressed packet carries; the decompressor needs the same.
    pub mode: Mode,
    /// A decompressor that got any one of this many newest compressed packets understands the next
    /// one. 1 to 11, others are taken for the nearest; each costs about 1.5 KiB.
    ///
    /// It is the width of the W-LSB window and the number of optimistic repetitions (RFC 6846
    /// §5.2.1) in one. 1 is for carriers that deliver each packet, in order; the default is 4:
    /// three losses in a row are survived.
    pub robustness: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::Rfc,
            robustness: 4,
        }
    }
}

/// The delivery of a native packet, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// The decompressor has it: the link layer acknowledged it.
    Certain,
    /// The decompressor may have it.
    Possible,
}

/// One compressed packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compressed {
    /// The packet, without CID.
    pub bytes: CompressedBytes,
    /// Its format.
    pub format: Format,
    /// Its master sequence number: 16 bits, counts compressed packets.
    pub msn: u16,
}

/// The sending end of one flow.
///
/// It keeps each context that the decompressor may have, and encodes a field only so that all of
/// them read it back. A native packet ([`handle_native`](Self::handle_native)) or an IR packet
/// ([`compress_ir`](Self::compress_ir)) establishes the first.
#[derive(Clone, Debug)]
pub struct Compressor {
    mode: Mode,
    robustness: usize,
    /// What the decompressor may have, newest last.
    references: Vec<Context>,
    /// The decompressor may have a context that is not among the references.
    uncertain: bool,
    /// The decompressor may have another stride than the references.
    stride_in_doubt: bool,
    stride: StrideFinder,
    ip_id: IpIdObserver,
    ecn: EcnObserver,
}

impl Compressor {
    /// Without a context.
    pub fn new(config: Config) -> Self {
        Self {
            mode: config.mode,
            robustness: usize::from(config.robustness.clamp(1, MAX_ROBUSTNESS)),
            references: Vec::new(),
            uncertain: false,
            stride_in_doubt: false,
            stride: StrideFinder::default(),
            ip_id: IpIdObserver::default(),
            ecn: EcnObserver::default(),
        }
    }

    /// Takes note of a packet of the flow that is sent as it is. A packet of another flow starts a
    /// new context.
    ///
    /// After [`Delivery::Possible`] nothing is compressed until a native packet's delivery is
    /// certain, be it that packet's or a later one's.
    ///
    /// # Errors
    /// [`Refusal`] if this codec could not write the packet again bit for bit; the decompressor
    /// refuses it, too, and the contexts are as they were.
    pub fn handle_native(&mut self, packet: &[u8], delivery: Delivery) -> Result<(), Refusal> {
        let header = Header::read(packet)?;
        if delivery == Delivery::Possible {
            self.uncertain = true;
            return Ok(());
        }
        match self.references.last() {
            Some(newest) if newest.header.same_flow(&header) => {
                self.stride
                    .observe(header.ack.wrapping_sub(newest.header.ack));
                let mut next = newest.after_native(header).ok_or(Refusal::Options)?;
                // The one thing that the packet did not say.
                let known = |old: &Context| old.ack_stride == next.ack_stride;
                if self.stride_in_doubt || !self.references.iter().all(known) {
                    next.ack_stride = 0;
                }
                self.restart(next);
            }
            _ => {
                let context = Context::of_native(header).ok_or(Refusal::Options)?;
                self.start(context);
            }
        }
        Ok(())
    }

    /// Takes note that compressed packets may not have arrived, more of them than
    /// [`Config::robustness`] covers. Nothing is compressed until a native packet's delivery is
    /// certain, or an IR packet is made.
    pub fn handle_loss(&mut self) {
        self.uncertain = true;
        self.stride_in_doubt = true;
    }

    /// Takes note that the decompressor has the compressed packet with this MSN: older contexts are
    /// no longer possible. An MSN that was not sent lately is ignored.
    pub fn handle_confirmed(&mut self, msn: u16) {
        let is_older = |old: &Context| old.msn.wrapping_sub(msn).cast_signed() < 0;
        if self.references.iter().any(|old| old.msn == msn) {
            self.references.retain(|old| !is_older(old));
        }
    }

    /// Compresses one acknowledgement.
    ///
    /// # Errors
    /// [`Refusal`]: the packet has to be sent as it is, and told to
    /// [`handle_native`](Self::handle_native).
    pub fn compress(&mut self, packet: &[u8]) -> Result<Compressed, Refusal> {
        let header = Header::read(packet)?;
        let newest = self.references.last().ok_or(Refusal::NoContext)?;
        if !header.same_flow(&newest.header) {
            return Err(Refusal::OtherFlow);
        }
        if self.uncertain {
            return Err(Refusal::Uncertain);
        }
        let rsf = rsf_index(header.rsf).ok_or(Refusal::Flags)?;
        if !header.ack_flag || self.mode.is_lean() && header.psh {
            return Err(Refusal::Flags);
        }
        if !self.mode.carries_checksum() && header.right_checksum() != Some(header.checksum) {
            return Err(Refusal::TcpChecksum);
        }
        let list = ListPlan::new(&header, self.mode, &self.references).ok_or(Refusal::Options)?;
        self.stride
            .observe(header.ack.wrapping_sub(newest.header.ack));
        let encoder = Encoder {
            header: &header,
            packet,
            references: &self.references,
            mode: self.mode,
            msn: newest.msn.wrapping_add(1),
            ip_id_behavior: self.ip_id.choose(&header, newest),
            ecn_used: self.ecn.choose(&header, &self.references),
            ack_stride: self.stride.choose(newest.ack_stride, self.references.len()),
            rsf,
            list: &list,
        };
        let (format, out) = encoder.encode().ok_or(Refusal::Uncertain)?;
        let mut table = newest.table.clone();
        for old in &self.references {
            table.intersect(&old.table);
        }
        for (&index, option) in list.structure.iter().zip(&header.options) {
            table.set(index, option);
        }
        let msn = encoder.msn;
        let next = Context {
            msn,
            ip_id_behavior: encoder.ip_id_behavior,
            ecn_used: encoder.ecn_used,
            ack_stride: encoder.ack_stride,
            structure: list.structure,
            table,
            header,
        };
        self.push(next);
        Ok(Compressed {
            bytes: out.finish(),
            format,
            msn,
        })
    }

    /// Writes an IR packet (RFC 6846 §7.1) for this acknowledgement. It is about as long as the
    /// packet, and establishes a context.
    ///
    /// Later packets count on it. On a carrier that loses packets, send as many as
    /// [`Config::robustness`] says.
    ///
    /// # Errors
    /// [`Refusal`] if this codec could not write the packet again bit for bit.
    pub fn compress_ir(&mut self, packet: &[u8]) -> Result<Compressed, Refusal> {
        let header = Header::read(packet)?;
        let context = match self.references.last() {
            Some(newest) if newest.header.same_flow(&header) => {
                let mut context = newest.after_native(header).ok_or(Refusal::Options)?;
                context.msn = newest.msn.wrapping_add(1);
                if self.uncertain {
                    self.restart(context.clone());
                } else {
                    self.push(context.clone());
                }
                context
            }
            _ => {
                let context = Context::of_native(header).ok_or(Refusal::Options)?;
                self.start(context.clone());
                context
            }
        };
        Ok(Compressed {
            bytes: ir::write(&context),
            format: Format::Ir,
            msn: context.msn,
        })
    }

    /// The master sequence number of the newest packet; `None` without a context.
    pub fn msn(&self) -> Option<u16> {
        self.references.last().map(|context| context.msn)
    }

    /// A new flow.
    fn start(&mut self, context: Context) {
        self.restart(context);
        self.stride = StrideFinder::default();
        self.ip_id = IpIdObserver::default();
        self.ecn = EcnObserver::default();
    }

    /// The one context that the decompressor can have.
    fn restart(&mut self, context: Context) {
        self.references.clear();
        self.references.push(context);
        self.uncertain = false;
        self.stride_in_doubt = false;
    }

    fn push(&mut self, context: Context) {
        let excess = (self.references.len() + 1).saturating_sub(self.robustness);
        self.references.drain(..excess);
        self.references.push(context);
    }
}
