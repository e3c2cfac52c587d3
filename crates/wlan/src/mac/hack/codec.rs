//! The codec that compresses packets: a trait, implemented outside of this crate.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A flow of acknowledgements: a hash over what its packets have in common. Its lowest byte
/// identifies it on the air.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowId(pub u128);

impl FlowId {
    /// The context identifier: the lowest byte of the hash (HACK, section 3.3.2).
    pub const fn cid(self) -> u8 {
        self.0 as u8
    }

    /// Tells flows with one CID apart: the four bytes of the hash before the lowest one.
    pub const fn name(self) -> u32 {
        (self.0 >> 8) as u32
    }
}

/// Why a compressed acknowledgement could not be rebuilt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The rebuilt header does not have the CRC that came with it: the contexts of the two ends
    /// differ.
    Crc,
    /// There is no context, or the bytes are malformed.
    Malformed,
}

/// A rebuilt acknowledgement.
#[derive(Clone, Debug)]
pub struct Rebuilt<M> {
    /// The packet.
    pub packet: M,
    /// Its length, bytes.
    pub len: u32,
}

/// Compresses acknowledgements to one radio, and rebuilds those that come from it. Contexts are
/// named by CID; which flow owns a CID, and which native acknowledgements the other end certainly
/// has, is decided by the caller.
pub trait Codec<M>: core::fmt::Debug + Send {
    /// The flow of a packet that is an acknowledgement and nothing else; `None` for packets that
    /// are never compressed. Equal packets give the same at both ends.
    fn flow(&mut self, packet: &M) -> Option<FlowId>;

    /// The other end certainly has this acknowledgement, which travelled as it is, and got none
    /// after it. It becomes the context that the next one refers to.
    fn native_sent(&mut self, cid: u8, packet: &M);

    /// Writes `packet` to `out`, with reference to what was compressed before it, or to the last
    /// native one. What is compressed arrives in order and without gaps, until
    /// [`Codec::forget`]. False when it cannot be compressed: it goes as it is.
    fn compress(&mut self, cid: u8, packet: &M, out: &mut Vec<u8>) -> bool;

    /// What was compressed since the last native acknowledgement may not have arrived. Nothing is
    /// compressed until [`Codec::native_sent`].
    fn forget(&mut self, cid: u8);

    /// The CID becomes another flow's at this end, which compresses: nothing of the last one is
    /// known any more.
    fn release_sending(&mut self, cid: u8);

    /// The CID becomes another flow's at this end, which rebuilds.
    fn release_receiving(&mut self, cid: u8);

    /// A native acknowledgement came from the other end: the context of what comes after it.
    fn native_received(&mut self, cid: u8, packet: &M);

    /// Rebuilds an acknowledgement.
    ///
    /// # Errors
    /// [`DecodeError`]; the context is then as it was.
    fn decompress(&mut self, cid: u8, bytes: &[u8]) -> Result<Rebuilt<M>, DecodeError>;

    /// True when two packets are the same on the wire, byte for byte.
    fn is_same(&self, a: &M, b: &M) -> bool;

    /// Gives a rebuilt packet what travels beside its bytes, such as the simulator's own notes: as
    /// `original` has it.
    fn adopt(&self, rebuilt: &mut M, original: &M);

    /// The timestamp value of an acknowledgement, if it has one (RFC 7323 §3.2).
    fn timestamp(&self, _ack: &M) -> Option<u32> {
        None
    }

    /// For a packet with data: the flow of the acknowledgements that answer it, and the timestamp
    /// that it echoes.
    fn echo(&mut self, _data: &M) -> Option<(FlowId, u32)> {
        None
    }
}

/// The codec of one pair of radios.
pub type BoxedCodec<M> = Box<dyn Codec<M>>;

/// Makes a codec for each pair of radios.
pub struct CodecFactory<M>(Arc<dyn Fn() -> BoxedCodec<M> + Send + Sync>);

impl<M> CodecFactory<M> {
    /// From what makes one.
    pub fn new(make: impl Fn() -> BoxedCodec<M> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// A codec without contexts.
    pub fn make(&self) -> BoxedCodec<M> {
        (self.0)()
    }
}

impl<M> Clone for CodecFactory<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> core::fmt::Debug for CodecFactory<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("CodecFactory")
    }
}
