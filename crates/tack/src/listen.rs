//! How a port is listened on.

use tack_tcp::{Config, Incoming, SynFilter, Verdict};

/// Options of a listener; see [`Endpoint::listen_with`](crate::Endpoint::listen_with).
#[derive(Debug)]
pub struct ListenOptions {
    pub(crate) config: Option<Config>,
    pub(crate) backlog: usize,
    pub(crate) filter: Option<SynFilter>,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            config: None,
            backlog: 1024,
            filter: None,
        }
    }
}

impl ListenOptions {
    /// The default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Settings of the accepted connections. Default: those of the endpoint.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }

    /// Maximum number of connections that wait for [`Listener::accept`](crate::Listener::accept),
    /// at least 1.
    /// Default 1024. SYNs beyond that are ignored until there is room, and their peers try
    /// again.
    ///
    /// Half-open connections take none of that room: they are records of some 300 bytes, and beyond
    /// `backlog` of them SYN cookies, so that a flood of forged SYNs neither takes memory nor
    /// keeps others out.
    #[must_use]
    pub fn backlog(mut self, connections: usize) -> Self {
        self.backlog = connections;
        self
    }

    /// Calls `decide` for each SYN before the endpoint stores anything for it. Default: all SYNs
    /// are accepted.
    ///
    /// `decide` sees the address that the SYN claims to come from, which nothing proves yet: use it
    /// to keep known peers out and unknown ones from costing memory, not to let anybody in. It
    /// is called under the lock of the endpoint: it must not block, and a call to the endpoint
    /// or to one of its streams would never return. A SYN that a SYN cookie answers is shown to it
    /// too; the acknowledgement that brings the cookie back is not, as the cookie is bound to the
    /// address.
    #[must_use]
    pub fn filter(mut self, decide: impl FnMut(&Incoming) -> Verdict + Send + 'static) -> Self {
        self.filter = Some(SynFilter::new(decide));
        self
    }
}
