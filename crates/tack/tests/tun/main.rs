//! The library as a host behind a TUN device, against the Linux kernel's TCP and itself, in network
//! namespaces that the tests make. They take root and TUN, and say so where they cannot run.
#![cfg(target_os = "linux")]

mod conformance;
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
mod two_ends;
mod world;
