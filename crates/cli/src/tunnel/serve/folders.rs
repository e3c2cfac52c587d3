//! Folders of a serving side: peers that it knows send into them, and fetch from them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tack_pairing::meeting::Intent;
use tokio::sync::watch;

use super::policy::{InboxPolicy, Policy};
use super::service::Service;
use crate::exit::Failure;
use crate::meeting::PeerStream;
use crate::transfer::{Inbox, offer, refuse_transfer};
use crate::tunnel::limit::Limited;

/// Transfers to peers at a time.
const MAX_OFFERS: usize = 64;

/// The folders that are open.
pub(super) struct Folders {
    inboxes: Mutex<BTreeMap<InboxPolicy, Arc<Inbox>>>,
    offers: tokio::sync::Semaphore,
    /// Longest silence of a peer.
    silence: Duration,
    /// Turns true when the program ends.
    stopped: watch::Receiver<bool>,
}

impl Folders {
    pub(super) fn new(silence: Duration, stopped: watch::Receiver<bool>) -> Self {
        Self {
            inboxes: Mutex::default(),
            offers: tokio::sync::Semaphore::new(MAX_OFFERS),
            silence,
            stopped,
        }
    }

    fn inboxes(&self) -> std::sync::MutexGuard<'_, BTreeMap<InboxPolicy, Arc<Inbox>>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens what `policy` names, and closes what it does not name. Transfers under way go on.
    ///
    /// # Errors
    /// A usage error for a folder that cannot be used; then nothing has changed.
    pub(super) fn prepare(&self, policy: &Policy) -> Result<(), Failure> {
        let mut inboxes = self.inboxes();
        let mut wanted = BTreeMap::new();
        for peer in policy.peers.values().chain([&policy.common]) {
            for path in &peer.offer {
                path.metadata().map_err(|error| {
                    Failure::usage(format!("{}: cannot be offered: {error}", path.display()))
                })?;
            }
            let Some(inbox) = &peer.inbox else {
                continue;
            };
            if wanted.contains_key(inbox) {
                continue;
            }
            let open = match inboxes.get(inbox) {
                Some(open) => Arc::clone(open),
                None => Arc::new(Inbox::open(
                    &inbox.dir,
                    inbox.existing,
                    inbox.delete,
                    inbox.max_bytes,
                    self.silence,
                )?),
            };
            wanted.insert(inbox.clone(), open);
        }
        *inboxes = wanted;
        Ok(())
    }

    /// Serves a peer that wants to send or to receive.
    pub(super) async fn serve(&self, service: &Service, stream: PeerStream, intent: Intent) {
        let PeerStream::Secure(_, peer) = &stream else {
            return;
        };
        let guest = service.guest(peer.key);
        // Whoever was invited has a way to targets, and no folder.
        let known = guest.filter(|guest| guest.name.is_some());
        let Some(guest) = known else {
            return refuse_transfer(stream, "folders here are for peers known by name").await;
        };
        let policy = service.policy_of(&guest);
        let Some(place) = service.enter(&guest) else {
            return refuse_transfer(stream, "too many connections").await;
        };
        if intent == Intent::Send {
            let inbox = policy.inbox.as_ref();
            let open = inbox.and_then(|inbox| self.inboxes().get(inbox).cloned());
            let Some(open) = open else {
                return refuse_transfer(stream, "this peer may not send files here").await;
            };
            let limit = Arc::clone(&place.limits.from_peer);
            let reading = |reader| Limited::new(reader, limit);
            return open.receive(stream, reading, self.stopped.clone()).await;
        }
        if policy.offer.is_empty() {
            service.say(&guest, &"no files are offered to it");
            return stream.reset();
        }
        let Ok(_turn) = self.offers.acquire().await else {
            return;
        };
        let limit = Arc::clone(&place.limits.to_peer);
        let writing = |writer| Limited::new(writer, limit);
        let mut stopped = self.stopped.clone();
        tokio::select! {
            sent = offer(&policy.offer, stream, self.silence, writing) => match sent {
                Ok((files, bytes)) => {
                    service.say(&guest, &format_args!("fetched {files} files, {bytes} bytes"));
                }
                Err(error) => eprintln!("tack: {guest}: files were not fetched: {error}"),
            },
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
    }
}
