//! An 802.11 model: PHY airtime, DCF and EDCA, A-MPDU, Block ACK. Pure: time is an argument.
//!
//! [`World`] is a basic service set on one channel: an access point, its stations, and maybe a
//! neighbouring network. It speaks the verbs of the other pure crates: packets go in by
//! [`World::handle_msdu`], time passes by [`World::handle_timeout`], and
//! out come [`World::poll_delivery`] and [`World::poll_timeout`]. Packets are opaque; of the
//! transport it only knows which of them are acknowledgements, to account their airtime, and what a
//! filter asks its caller to read.
//!
//! Not modelled: propagation delay and path loss (all signals are equally strong: no capture), rate
//! adaptation, fragmentation, A-MSDU, power save and association. The frames that set up Block ACK
//! agreements are, if [`mac::Agreements`] says so.
//!
//! Where mechanisms have their room: filters of transport acknowledgements in [`mac::discipline`],
//! to which the caller hands a reader of its packets; acknowledgements that travel inside link
//! acknowledgements (TCP/HACK) in [`mac::hack`], with a codec that the caller hands in; other rules
//! for the contention window in [`mac::access::CwAdaptation`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod capture;
pub mod frame;
pub mod mac;
pub mod phy;
pub mod world;

pub use frame::{AccessCategory, Class, Msdu, NodeId};
pub use mac::{MacConfig, StationStats};
pub use world::{Capture, Captured, Delivery, World, WorldConfig};
