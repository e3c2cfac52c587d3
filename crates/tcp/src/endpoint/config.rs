//! Settings of an endpoint.

/// Settings of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Secret for initial sequence numbers (RFC 6528) and for choosing ports; must be random in
    /// real use.
    pub secret: [u8; 16],
    /// Most connections at a time, from the end of the handshake until they are released and in
    /// TIME-WAIT. Default 65,536, at most 2^24.
    pub max_connections: usize,
    /// Most records of released connections in TIME-WAIT, some 300 bytes each. Beyond that the
    /// oldest gives way: then only sequence numbers and timestamps keep its late segments out
    /// of a new connection with the same ports. Default 65,536.
    pub max_time_wait: usize,
    /// Memory that all connections may hold together, bytes. From three quarters of it on buffers
    /// do not grow any more. At the limit they shrink as far as they are empty, what waits
    /// above a hole is thrown away, to be sent again, and new connections are refused. Default
    /// 1 GiB.
    pub memory: usize,
}

impl EndpointConfig {
    /// The defaults, with this secret.
    pub const fn new(secret: [u8; 16]) -> Self {
        Self {
            secret,
            max_connections: 65_536,
            max_time_wait: 65_536,
            memory: 1 << 30,
        }
    }
}
