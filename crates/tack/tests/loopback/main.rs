//! The library over real sockets on loopback.

mod accepting;
mod carrier;
mod lifecycle;
mod monitor;
mod names;
mod pair;
mod plugged;
mod readiness;
mod streams;
mod wakers;
