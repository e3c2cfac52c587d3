//! How many files may be open: each carried connection takes one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files besides those of carried connections: sockets, state, and what the runtime has.
const BESIDES: u64 = 64;

/// Permits as many open files as the system does, for this program and those that it starts later.
pub(crate) fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // A service may not be permitted to ask.
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

/// Says so where that limit is too low for so many carried connections.
pub(super) fn check_file_limit(connections: usize) {
    let needed = connections as u64 + BESIDES;
    if let Some(limit) = getrlimit(Resource::Nofile).current
        && limit < needed
    {
        eprintln!(
            "tack: this program may open {limit} files (ulimit -n), and {connections} connections need {needed}: \
             connections beyond the limit are refused"
        );
    }
}
