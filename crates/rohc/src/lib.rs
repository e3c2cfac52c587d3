#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bits;
mod choice;
mod cid;
mod compressor;
mod context;
mod crc;
mod decompressor;
mod encode;
mod error;
mod fields;
mod format;
mod header;
mod ir;
mod item;
mod list;
mod lsb;
mod mode;
mod options;

pub use bits::{CompressedBytes, MAX_COMPRESSED_LEN};
pub use cid::{add_cid, small_cid};
pub use compressor::{Compressed, Compressor, Config, Delivery};
pub use decompressor::{Decompressed, Decompressor};
pub use error::{DecodeError, Refusal};
pub use format::Format;
pub use header::{MAX_PACKET_LEN, PacketBytes};
pub use mode::Mode;
