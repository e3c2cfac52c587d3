//! An 802.11 model: PHY airtime, DCF and EDCA, A-MPDU, Block ACK. Pure: time is an argument.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod phy;
