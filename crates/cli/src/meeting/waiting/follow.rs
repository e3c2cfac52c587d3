//! A waiting side whose addresses change: says on the local network where it is now.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::Shared;
use crate::discovery::{Announcement, Mark, reachable};

/// How often the addresses are looked at.
const EVERY: Duration = Duration::from_secs(2);
/// How long the key is announced after a change, for peers whose connections were lost with the old
/// address: as long as they try by default (`--reconnect`).
const ANNOUNCED: Duration = Duration::from_secs(600);
/// New addresses that are announced, as many as a ticket names.
const MAX_ADDRESSES: usize = 3;

/// Announces this side anew whenever it has new addresses: its code where it has one that nobody has
/// used, and its key where it has met peers.
pub(super) async fn follow(shared: Arc<Shared>, bound: SocketAddr) {
    if !bound.ip().is_unspecified() {
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
        let now = reachable(bound);
        let before = std::mem::replace(&mut *shared.addresses(), now.clone());
        let new = |address: &&SocketAddr| !before.contains(address) && !address.ip().is_loopback();
        let new: Vec<SocketAddr> = now.iter().filter(new).copied().collect();
        if new.is_empty() {
            continue;
        }
        tracing::info!(?new, "this machine has new addresses");
        let code = shared.announcement().as_ref().map(Announcement::mark);
        if let Some(code) = code
            && let Ok(announcement) = Announcement::new(code, new[0])
        {
            *shared.announcement() = Some(announcement);
        }
        if shared.has_met.load(Ordering::Relaxed) {
            let key = Mark::Key(shared.own.identity.public_key());
            let announce = |address: &SocketAddr| Announcement::new(key, *address).ok();
            announced = new
                .iter()
                .take(MAX_ADDRESSES)
                .filter_map(announce)
                .collect();
            until = Instant::now() + ANNOUNCED;
        }
    }
}
