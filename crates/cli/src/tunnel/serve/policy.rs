//! What a serving side permits, and to whom.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tack_base::Rate;
use tack_pairing::meeting::Intent;
use tokio::sync::watch;

use crate::peers::PeerName;
use crate::transfer::Existing;
use crate::tunnel::rules::TargetRule;

/// The policy in force. A reload puts another one in its place.
#[derive(Debug)]
pub(super) struct CurrentPolicy(watch::Sender<Arc<Policy>>);

impl CurrentPolicy {
    pub(super) fn new(policy: Policy) -> Self {
        Self(watch::Sender::new(Arc::new(policy)))
    }

    pub(super) fn now(&self) -> Arc<Policy> {
        Arc::clone(&self.0.borrow())
    }

    pub(super) fn replace(&self, policy: Policy) {
        self.0.send_replace(Arc::new(policy));
    }

    /// Tells of each replacement from now on.
    pub(super) fn changes(&self) -> watch::Receiver<Arc<Policy>> {
        self.0.subscribe()
    }
}

/// What is permitted.
#[derive(Debug)]
pub(super) struct Policy {
    /// The known peers that are served; none of them named is all.
    pub(super) allowed: Vec<PeerName>,
    /// Maximum number of carried connections of all peers.
    pub(super) max_connections: u32,
    /// What peers without rules of their own may do.
    pub(super) common: Arc<PeerPolicy>,
    /// What the others may do.
    pub(super) peers: BTreeMap<PeerName, Arc<PeerPolicy>>,
}

/// What a peer may do.
#[derive(Clone, Debug)]
pub(super) struct PeerPolicy {
    /// Where it may connect and send datagrams to.
    pub(super) targets: Vec<TargetRule>,
    /// Where it may listen.
    pub(super) remote_listen: Vec<TargetRule>,
    /// Maximum number of its carried connections.
    pub(super) max_connections: u32,
    /// How fast its connections together may carry, in each direction.
    pub(super) rate: Option<Rate>,
    /// Where it may send files.
    pub(super) inbox: Option<InboxPolicy>,
    /// Files and folders that it may receive.
    pub(super) offer: Vec<PathBuf>,
}

/// A folder that peers may send into, and what they may do there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct InboxPolicy {
    pub(super) dir: PathBuf,
    pub(super) existing: Existing,
    /// Whether peers may delete.
    pub(super) delete: bool,
    pub(super) max_bytes: Option<u64>,
}

impl Policy {
    /// True when this known peer is served.
    pub(super) fn allows(&self, name: &PeerName) -> bool {
        self.allowed.is_empty() || self.allowed.contains(name)
    }

    /// True when some peer may have this.
    pub(super) fn serves(&self, intent: Intent) -> bool {
        let mut policies = self.peers.values().chain([&self.common]);
        match intent {
            Intent::Forward => true,
            Intent::Send => policies.any(|policy| policy.inbox.is_some()),
            Intent::Receive => policies.any(|policy| !policy.offer.is_empty()),
            Intent::Measure => false,
        }
    }

    /// True when some peer may do something.
    pub(super) fn is_useful(&self) -> bool {
        let mut policies = self.peers.values().chain([&self.common]);
        policies.any(|policy| {
            !policy.targets.is_empty()
                || !policy.remote_listen.is_empty()
                || policy.inbox.is_some()
                || !policy.offer.is_empty()
        })
    }

    /// What the peer with this name may do; one without a name was invited, and never had one.
    pub(super) fn of(&self, name: Option<&PeerName>) -> Arc<PeerPolicy> {
        let own = name.and_then(|name| self.peers.get(name));
        Arc::clone(own.unwrap_or(&self.common))
    }
}

impl InboxPolicy {
    /// A folder in which nothing is replaced or deleted.
    pub(super) fn cautious(dir: PathBuf) -> Self {
        Self {
            dir,
            existing: Existing::Refuse,
            delete: false,
            max_bytes: None,
        }
    }
}
