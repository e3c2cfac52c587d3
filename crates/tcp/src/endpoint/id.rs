//! The name of a connection.

/// Names a connection of an [`Endpoint`](super::Endpoint). Never reused while the endpoint lives;
/// later connections have greater ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub(crate) u64);
