//! Counters of an endpoint.

/// What an endpoint counted besides its connections, since its beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Segments that belonged to no connection and no listener, or made no sense to the listener.
    pub strays: u64,
    /// Resets sent in answer to those.
    pub resets: u64,
    /// SYNs ignored because a backlog was full of established connections, or the endpoint of
    /// connections or memory.
    pub syns_dropped: u64,
    /// SYNs that the filter of a listener refused or ignored.
    pub syns_refused: u64,
    /// SYNs answered with a cookie, because a backlog was full of half-open connections (RFC 4987
    /// §3.6).
    pub cookies_sent: u64,
    /// Connections that came of those.
    pub cookies_accepted: u64,
    /// Errors of the path (ICMP) that a connection believed.
    pub path_errors: u64,
    /// Errors of the path about no segment that was under way.
    pub path_errors_ignored: u64,
    /// Records of TIME-WAIT forgotten before their time, because there were too many.
    pub time_wait_evicted: u64,
}
