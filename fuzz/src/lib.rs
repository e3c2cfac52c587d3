//! What each fuzz target does with its bytes. The targets themselves only call these functions, so
//! that `cargo test` replays the seeds without a fuzzer.
#![forbid(unsafe_code)]

mod connection;
mod duel;
mod pairing;
mod records;
mod rohc;
mod transfer;
mod tunnel;
mod wire;

pub use connection::{Run, connection_ops};
pub use duel::{Match, duel};
pub use pairing::{code, meeting, ticket};
pub use records::records;
pub use rohc::{rohc_packets, rohc_streams};
pub use transfer::transfer_frames;
pub use tunnel::{http_connect, socks, tunnel_messages};
pub use wire::{encapsulation, ip, options, segment, tack_lists};

#[cfg(test)]
mod tests;
