//! The library over real sockets on loopback.

mod carrier;
mod lifecycle;
mod pair;
mod streams;
mod wakers;
