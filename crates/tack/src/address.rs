//! Addresses that are special here.

use std::net::SocketAddr;

/// The TCP port that connections use by default.
pub const DEFAULT_PORT: u16 = 8225;

/// True for addresses that no packet leaves the machine for.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
