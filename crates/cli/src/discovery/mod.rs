//! Programs that wait on the same network: multicast DNS (RFC 6762, RFC 6763).

mod announce;
mod find;
mod local;

pub(crate) use announce::Announcement;
pub(crate) use find::Finder;
pub(crate) use local::reachable;

/// The type of the service.
const SERVICE: &str = "_tack._udp.local.";
/// The key of the TXT record with the number of the code, which is not secret.
const NUMBER: &str = "n";
