//! A folder that a program with other duties lets peers send into, as `tack recv` does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::sync::watch;

use super::admission::Admission;
use super::committer::Committer;
use super::existing::Existing;
use super::holder::Sessions;
use super::outcome::{Returns, serve_one, tell, turn_away};
use super::progress::LiveProgress;
use super::queue::Queue;
use super::remembered::Transfers;
use super::serve::{GREETING, Service};
use super::store::Store;
use crate::exit::Failure;
use crate::meeting::PeerStream;
use crate::transfer::channel::Channel;
use crate::transfer::protocol::Refusal;
use crate::transfer::report::Listing;
use crate::volume::Volume;

/// Transfers into a folder at a time, and senders that wait for one to end.
const PLACES: usize = 16;
const WAITING: usize = 64;

/// A folder that peers may send into.
pub(crate) struct Inbox {
    service: Arc<Service>,
    queue: Arc<Queue>,
}

impl Inbox {
    /// Opens the folder, which is made if it does not exist. A sender may be silent for `silence`.
    ///
    /// # Errors
    /// A usage error when files cannot be stored there.
    pub(crate) fn open(
        dir: &Path,
        existing: Existing,
        delete: bool,
        max_bytes: Option<u64>,
        silence: Duration,
    ) -> Result<Self, Failure> {
        let store = Store::open(dir, existing).map_err(|error| {
            Failure::usage(format!(
                "{}: cannot store files in this directory: {error}",
                dir.display()
            ))
        })?;
        let service = Service {
            store,
            committer: Committer::new(),
            listing: Listing::CountsOnly,
            admission: Admission {
                max_bytes,
                delete,
                ask: false,
                transfers: Transfers::default(),
            },
            sessions: Sessions::default(),
            live: LiveProgress::new(Volume::Normal, false),
            silence,
            greeting: GREETING,
        };
        Ok(Self {
            service: Arc::new(service),
            queue: Queue::new(PLACES, WAITING),
        })
    }

    /// Receives what a peer sends, until its transfer ends or `stop` turns true. Its bytes are read
    /// through `reading`. How it ended is written to standard error.
    pub(crate) async fn receive<R: AsyncRead + Unpin>(
        &self,
        stream: PeerStream,
        reading: impl FnOnce(<PeerStream as Channel>::Reader) -> R,
        stop: watch::Receiver<bool>,
    ) {
        let place = self.queue.try_enter();
        let ticket = if place.is_none() {
            self.queue.line_up()
        } else {
            None
        };
        let (reader, mut writer) = Channel::into_split(stream);
        let place = match (place, ticket) {
            (None, Some(ticket)) => ticket.wait(&mut writer, stop.clone()).await,
            (place, _) => place,
        };
        let Some(_place) = place else {
            let words = "too many transfers into this folder are under way or wait";
            return turn_away((reader, writer), Refusal::Busy, words).await;
        };
        let mut showing = self.service.live.begin();
        let ended = serve_one(reading(reader), writer, &self.service, stop, &mut showing).await;
        drop(showing);
        let telling = move || tell(false, Volume::Normal, ended, Returns::Sender);
        if let Ok(Err(failure)) = tokio::task::spawn_blocking(telling).await {
            eprintln!("tack: {failure}");
        }
    }
}

/// Tells a peer that wants to send files that it may not.
pub(crate) async fn refuse_transfer(stream: PeerStream, words: &str) {
    turn_away(Channel::into_split(stream), Refusal::Declined, words).await;
}
