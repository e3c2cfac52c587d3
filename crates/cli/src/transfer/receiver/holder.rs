//! Transfers as owners of names: whose they are, and whether their senders still live.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::transfer::channel::PeerKey;

/// A living sender says something every second. After this time of silence another transfer of the
/// same peer may take over.
const DOUBTFUL: Duration = Duration::from_secs(3);

/// What a sender said before it was gone may still be on its way to us. What comes after this time
/// comes from one that lives.
const IN_FLIGHT: Duration = Duration::from_secs(2);

/// A transfer that another one of the same peer may take over.
#[derive(Debug)]
pub(crate) struct Holder {
    owner: PeerKey,
    activity: Mutex<SenderActivity>,
    cut: Notify,
}

#[derive(Debug)]
struct SenderActivity {
    heard: Instant,
    /// This side waits for bytes; otherwise the silence is not the sender's.
    listening: bool,
    cut: bool,
}

/// What another transfer may do about the names of this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claim {
    /// The sender was heard: the transfer keeps its names.
    Alive,
    /// Not decided yet.
    Unclear,
    /// The sender is silent, or the transfer has ended.
    Gone,
}

impl Holder {
    /// `owner` is the peer's key; zeros where peers have none.
    pub(crate) fn new(owner: Option<PeerKey>) -> Arc<Self> {
        Arc::new(Self {
            owner: owner.unwrap_or_default(),
            activity: Mutex::new(SenderActivity {
                heard: Instant::now(),
                listening: true,
                cut: false,
            }),
            cut: Notify::new(),
        })
    }

    pub(crate) fn owner(&self) -> &PeerKey {
        &self.owner
    }

    fn activity(&self) -> MutexGuard<'_, SenderActivity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// We begin to wait for bytes, or cease to because some came.
    pub(crate) fn listen(&self, listening: bool) {
        let mut activity = self.activity();
        activity.listening = listening;
        if !listening {
            activity.heard = Instant::now();
        }
    }

    /// How long the sender has been silent while this side waited.
    pub(crate) fn silence(&self) -> Duration {
        let activity = self.activity();
        if activity.listening {
            activity.heard.elapsed()
        } else {
            Duration::ZERO
        }
    }

    /// Whether the sender was heard after `since`.
    pub(crate) fn claim(&self, since: Instant) -> Claim {
        let activity = self.activity();
        if activity.cut || (activity.listening && activity.heard.elapsed() >= DOUBTFUL) {
            Claim::Gone
        } else if activity.heard > since + IN_FLIGHT {
            Claim::Alive
        } else {
            Claim::Unclear
        }
    }

    /// Ends the transfer: another one goes on in its place.
    pub(crate) fn cut_off(&self) {
        self.activity().cut = true;
        self.cut.notify_one();
    }

    /// Waits until another transfer takes over.
    pub(crate) async fn was_cut_off(&self) {
        self.cut.notified().await;
    }
}

/// A peer's key and its name for the transfer.
type Session = (PeerKey, [u8; 16]);

/// The current transfers, by session.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<Session, Arc<Holder>>>);

impl Sessions {
    /// A transfer begins, or goes on over a new connection: then the old one, which its sender has
    /// left, ends.
    pub(crate) fn begin(&self, session: [u8; 16], holder: &Arc<Holder>) {
        let old = self
            .lock()
            .insert((holder.owner, session), Arc::clone(holder));
        if let Some(old) = old {
            old.cut_off();
        }
    }

    /// Removes a transfer that has ended.
    pub(crate) fn end(&self, session: [u8; 16], holder: &Arc<Holder>) {
        let mut sessions = self.lock();
        let key = (holder.owner, session);
        if sessions
            .get(&key)
            .is_some_and(|found| Arc::ptr_eq(found, holder))
        {
            sessions.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Session, Arc<Holder>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_that_goes_on_ends_its_old_connection_only() {
        let sessions = Sessions::default();
        let (old, stranger, new) = (
            Holder::new(Some([1; 32])),
            Holder::new(Some([2; 32])),
            Holder::new(Some([1; 32])),
        );
        sessions.begin([7; 16], &old);
        sessions.begin([7; 16], &stranger);
        let since = Instant::now();
        assert_ne!(old.claim(since), Claim::Gone, "the same name, another key");
        sessions.begin([7; 16], &new);
        old.was_cut_off().await;
        assert_eq!(old.claim(since), Claim::Gone);
        assert_ne!(stranger.claim(since), Claim::Gone);
        sessions.end([7; 16], &old);
        assert_eq!(sessions.lock().len(), 2, "the new one is still there");
        sessions.end([7; 16], &new);
        sessions.end([7; 16], &stranger);
        assert!(sessions.lock().is_empty());
    }

    #[test]
    fn only_a_sender_that_goes_on_speaking_is_alive() {
        let holder = Holder::new(None);
        holder.listen(false);
        holder.listen(true);
        let now = Instant::now();
        // What was on its way when its sender was killed.
        assert_eq!(holder.claim(now), Claim::Unclear);
        let Some(since) = now.checked_sub(IN_FLIGHT + Duration::from_secs(1)) else {
            return;
        };
        assert_eq!(holder.claim(since), Claim::Alive);
        holder.activity().heard = since;
        assert_eq!(holder.claim(since), Claim::Gone, "silent for 3 s");
        holder.listen(false);
        holder.activity().heard = since;
        assert_eq!(holder.claim(since), Claim::Unclear, "it waits for us");
        holder.cut_off();
        assert_eq!(holder.claim(since), Claim::Gone);
    }
}
