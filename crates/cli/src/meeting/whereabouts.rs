//! Where a waiting side is: the addresses that peers can type, and what it announces on the local
//! network, also when its addresses change.

use std::net::{IpAddr, SocketAddr};
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

/// The addresses that a code is announced at: the likeliest one, or those of several links, of
/// which none is likelier than the others.
fn to_announce(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let is_of_link = |address: &SocketAddr| match address.ip() {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let count = match addresses.first().is_some_and(is_of_link) {
        true => MAX_ADDRESSES,
        false => 1,
    };
    let reachable = addresses
        .iter()
        .filter(|address| !address.ip().is_loopback());
    reachable.take(count).copied().collect()
}

/// The addresses of a waiting side, and what it announces.
pub(super) struct Whereabouts {
    key: PublicKey,
    bound: SocketAddr,
    addresses: Mutex<Vec<SocketAddr>>,
    /// The addresses are those of this machine on its networks, where codes are looked for.
    is_on_network: bool,
    /// A peer was let in, which may have to look for this side.
    has_met: AtomicBool,
    /// The announcements of the code.
    code: Mutex<Vec<Announcement>>,
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

    /// True where only programs of this machine can reach this side, though it listens for others.
    pub(super) fn is_alone(&self) -> bool {
        let is_loopback = |address: &SocketAddr| address.ip().is_loopback();
        self.is_on_network
            && self.bound.ip().is_unspecified()
            && self.locked_addresses().iter().all(is_loopback)
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

    fn code(&self) -> MutexGuard<'_, Vec<Announcement>> {
        self.code.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces the number of a code; true when that was possible.
    pub(super) fn announce_code(&self, number: u16) -> bool {
        if !self.is_on_network {
            return false;
        }
        let announcements = to_announce(&self.addresses())
            .into_iter()
            .map(|address| Announcement::new(Mark::Number(number), address));
        match announcements.collect::<Result<Vec<_>, _>>() {
            Ok(announcements) => {
                let is_announced = !announcements.is_empty();
                *self.code() = announcements;
                is_announced
            }
            Err(error) => {
                eprintln!("tack: cannot announce this program on the network: {error}");
                false
            }
        }
    }

    /// Withdraws the announcement of the code.
    pub(super) fn withdraw_code(&self) {
        drop(std::mem::take(&mut *self.code()));
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
            let mark = self.code().first().map(Announcement::mark);
            if let Some(mark) = mark
                && let Ok(announcement) = Announcement::new(mark, new[0])
            {
                *self.code() = vec![announcement];
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
