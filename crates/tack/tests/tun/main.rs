//! The library as a host behind a TUN device, against the Linux kernel's TCP and itself, in network
//! namespaces that the tests make. They take root and TUN, and say so where they cannot run.
#![cfg(target_os = "linux")]

mod conformance;
mod covering;
mod everywhere;
mod flood;
mod forwarder;
mod icmp;
mod impaired;
mod kernel;
mod middlebox;
#[path = "../support/pattern.rs"]
mod pattern;
mod programs;
mod soak;
mod stand_ins;
mod two_ends;
mod world;

use tack_skip::is_long;

/// Sets of SACK, timestamps and window scaling, a bit each from the lowest; all of them in the long
/// form.
fn sets_of_options() -> &'static [u32] {
    if is_long() {
        &[0, 1, 2, 3, 4, 5, 6, 7]
    } else {
        &[0b000, 0b110, 0b111]
    }
}
