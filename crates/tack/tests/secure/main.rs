//! Encrypted connections over real sockets on loopback.

#[path = "../loopback/pair.rs"]
#[allow(dead_code, reason = "shared with the tests in clear text")]
mod pair;

mod access;
mod crowds;
mod hostile;
mod readiness;
mod relay;
mod streams;
mod two;
