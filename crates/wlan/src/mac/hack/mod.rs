//! TCP/HACK: acknowledgements of the transport, compressed, inside acknowledgements of the link.
//!
//! The parts are those of the paper (*Hierarchical Acknowledgments*, section 3.3): a driver that
//! knows packets and contexts, and a NIC that appends opaque bytes to its responses. `docs/hack.md`
//! describes it.

mod carried;
pub mod codec;
pub mod config;
mod contexts;
mod driver;
mod natives;
mod nic;
mod peer;
mod queue_changes;
mod rebuilding;
mod stats;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod toy;

pub use codec::{BoxedCodec, Codec, CodecFactory, DecodeError, FlowId, Rebuilt};
pub use config::{HackConfig, Variant};
pub use driver::Hack;
pub use peer::RebuiltAck;
pub(in crate::mac) use queue_changes::{Native, QueueChanges};
pub use stats::HackStats;
