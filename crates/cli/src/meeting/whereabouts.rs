//! Where a waiting side is: the addresses that peers can type, and what it announces on the local
//! network, also when its addresses change.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tack_pairing::PublicKey;
use tokio::time::Instant;

use crate::discovery::{Announcement, Mark, reachable};

/// How often the addresses are looked at.
const EVERY: Duration = Duration::from_secs(2);
/// How long the key is announced after a change, for peers whose connections were lost with the old
/// address: as long as they try by default (`--reconnect`).
const ANNOUNCED: Duration = Duration::from_secs(600);
/// New addresses that are announced, as many as a ticket names.
const MAX_ADDRESSES: usize = 3;

/// The addresses of a waiting side, and what it announces.
pub(super) struct Whereabouts {
    key: PublicKey,
    bound: SocketAddr,
    addresses: Mutex<Vec<SocketAddr>>,
    /// The addresses are those of this machine on its networks, where codes are looked for.
    is_on_network: bool,
    /// A peer was let in, which may have to look for this side.
    has_met: AtomicBool,
    /// The announcement of the code.
    code: Mutex<Option<Announcement>>,
}

impl Whereabouts {
    /// Of the side with this key and a socket that is bound to `bound`. `others` are the addresses
    /// that it has in place of those of the machine.
    pub(super) fn new(key: PublicKey, bound: SocketAddr, others: Option<Vec<SocketAddr>>) -> Self {
        Self {
            key,
            bound,
            is_on_network: others.is_none(),
            addresses: Mutex::new(others.unwrap_or_else(|| reachable(bound))),
            has_met: AtomicBool::new(false),
            code: Mutex::default(),
        }
    }

    pub(super) fn is_on_network(&self) -> bool {
        self.is_on_network
    }

    /// What a peer can type.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.locked_addresses().clone()
    }

    fn locked_addresses(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn code(&self) -> MutexGuard<'_, Option<Announcement>> {
        self.code.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces the number of a code; true when that was possible.
    pub(super) fn announce_code(&self, number: u16) -> bool {
        let address = self.addresses().first().copied();
        let is_reachable = |address: &SocketAddr| !address.ip().is_loopback() && self.is_on_network;
        let Some(address) = address.filter(is_reachable) else {
            return false;
        };
        match Announcement::new(Mark::Number(number), address) {
            Ok(announcement) => {
                *self.code() = Some(announcement);
                true
            }
            Err(error) => {
                eprintln!("tack: cannot announce this program on the network: {error}");
                false
            }
        }
    }

    /// Withdraws the announcement of the code.
    pub(super) fn withdraw_code(&self) {
        drop(self.code().take());
    }

    /// Notes that a peer was let in.
    pub(super) fn met(&self) {
        self.has_met.store(true, Ordering::Relaxed);
    }

    /// Announces this side anew whenever it has new addresses: its code where it has one that
    /// nobody has used, and its key where it has met peers.
    pub(super) async fn follow(&self) {
        if !self.bound.ip().is_unspecified() || !self.is_on_network {
            return;
        }
        let mut announced = Vec::new();
        let mut until = Instant::now();
        let mut looks = tokio::time::interval(EVERY);
        loop {
            looks.tick().await;
            if Instant::now() >= until {
                announced.clear();
            }
            let now = reachable(self.bound);
            let before = std::mem::replace(&mut *self.locked_addresses(), now.clone());
            let is_new =
                |address: &&SocketAddr| !before.contains(address) && !address.ip().is_loopback();
            let new: Vec<SocketAddr> = now.iter().filter(is_new).copied().collect();
            if new.is_empty() {
                continue;
            }
            tracing::info!(?new, "this machine has new addresses");
            let mark = self.code().as_ref().map(Announcement::mark);
            if let Some(mark) = mark
                && let Ok(announcement) = Announcement::new(mark, new[0])
            {
                *self.code() = Some(announcement);
            }
            if self.has_met.load(Ordering::Relaxed) {
                let mark = Mark::Key(self.key);
                let announce = |address: &SocketAddr| Announcement::new(mark, *address).ok();
                announced = new
                    .iter()
                    .take(MAX_ADDRESSES)
                    .filter_map(announce)
                    .collect();
                until = Instant::now() + ANNOUNCED;
            }
        }
    }
}
