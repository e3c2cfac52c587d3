//! One incoming transfer on a stream: feeds the receiving thread and writes its answers.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

use super::admission::Admission;
use super::committer::Committer;
use super::holder::{Holder, Sessions};
use super::progress::{EVERY, LiveProgress, TransferProgress};
use super::receive::receive;
use super::receive_error::ReceiveError;
use super::session::Session;
use super::store::Store;
use crate::transfer::buffers::{HEARTBEAT, INCOMING, Incoming, Ring, feed, silent};
use crate::transfer::channel::Writer;
use crate::transfer::protocol::{Hello, Refusal, Reply};
use crate::transfer::report::{Listing, Report};

/// Time limit for the greeting of a peer.
pub(super) const GREETING: Duration = Duration::from_secs(10);
/// Time limit for the last answers to reach the sender.
const FAREWELL: Duration = Duration::from_secs(2);
/// Longest wait for a sender after a reset: it notices a new address of ours within half of its
/// `--timeout`, and then needs seconds to find it. One that was killed does not return.
const AFTER_RESET: Duration = Duration::from_secs(60);

/// The parts that all transfers of a `tack recv` share.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) store: Store,
    pub(crate) committer: Committer,
    pub(crate) listing: Listing,
    pub(crate) admission: Admission,
    pub(crate) sessions: Sessions,
    pub(crate) live: LiveProgress,
    /// Longest silence of a sender.
    pub(crate) silence: Duration,
    /// Time limit for its greeting.
    pub(crate) greeting: Duration,
}

/// The result of one connection.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) report: Report,
    pub(crate) seconds: f64,
    pub(crate) result: Result<(), ReceiveError>,
    /// How the peer greeted; `None` when it does not speak the protocol.
    pub(crate) hello: Option<Hello>,
}

impl Served {
    /// True when everything is stored that the peer came with: what let it in has served.
    pub(crate) fn is_complete(&self) -> bool {
        self.result.is_ok() && self.report.failed == 0 && !self.is_dry_run()
    }

    /// True when the peer only asked what a transfer would do.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.hello.as_ref().is_some_and(|hello| hello.dry_run)
    }

    /// True when the connection broke, and another one may take its place.
    pub(crate) fn is_lost(&self) -> bool {
        match (&self.result, &self.hello) {
            (Err(ReceiveError::Stream(_)), Some(hello)) => hello.returns > 0,
            // A sender that was slow to notice that the last one broke.
            (Err(ReceiveError::Stream(_) | ReceiveError::NoGreeting), None) => true,
            _ => false,
        }
    }

    fn stream_error(&self) -> Option<io::ErrorKind> {
        match &self.result {
            Err(ReceiveError::Stream(error)) => Some(error.kind()),
            _ => None,
        }
    }

    /// True when a sender that waits for connections may have ended: it closed this one, or a reset
    /// says that it has stopped, has started again, or does not know our new address.
    pub(crate) fn may_have_ended(&self) -> bool {
        use io::ErrorKind::{ConnectionReset, UnexpectedEof};
        matches!(self.stream_error(), Some(ConnectionReset | UnexpectedEof))
    }

    /// How long to wait for the sender of a transfer that was cut off; `None` when it does not
    /// return, or was told to stay away.
    pub(crate) fn returns(&self) -> Option<Duration> {
        let seconds = self.hello.as_ref().map_or(0, |hello| hello.returns);
        let time = Duration::from_secs(seconds.into());
        let time = match self.stream_error()? {
            // A sender that was stopped closes its stream.
            io::ErrorKind::UnexpectedEof => Duration::ZERO,
            // The system of a sender that does not know our new address answers so, too.
            io::ErrorKind::ConnectionReset => time.min(AFTER_RESET),
            _ => time,
        };
        (!time.is_zero()).then_some(time)
    }
}

/// Serves one connection until its transfer ends or `stop` turns true, and shows how far it is.
pub(crate) async fn serve<R, W>(
    reader: R,
    mut writer: &mut W,
    service: &Arc<Service>,
    mut stop: watch::Receiver<bool>,
    showing: &mut TransferProgress,
) -> Served
where
    R: AsyncRead + Unpin,
    W: Writer,
{
    let began = Instant::now();
    showing.connected();
    let ring = Ring::new(INCOMING);
    let (reply_in, mut replies) = mpsc::unbounded_channel();
    let holder = Holder::new(writer.peer_key());
    let report = Report::new(service.listing);
    let peer = writer.peer_addr();
    let (names, naming) = (Arc::clone(&holder), service.live.naming.clone());
    let session = Arc::new(Session::new(reply_in, report, names, peer, naming));

    let thread = {
        let (session, service) = (Arc::clone(&session), Arc::clone(service));
        let mut input = Incoming::new(ring.full_out, ring.spent_in);
        tokio::task::spawn_blocking(move || {
            let Service {
                store,
                admission,
                committer,
                ..
            } = &*service;
            receive(&mut input, &session, store, admission, committer)
        })
    };
    let mut thread = std::pin::pin!(thread);
    let mut feeding = Some(Box::pin(feed(
        reader,
        ring.full_in,
        ring.spent_out,
        service.silence,
        |listening| holder.listen(listening),
    )));
    let mut begun = false;
    let mut greeting = std::pin::pin!(tokio::time::sleep(service.greeting));
    let mut updates = tokio::time::interval_at(tokio::time::Instant::now() + EVERY, EVERY);
    updates.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut encoded = Vec::new();
    let mut batch = Vec::new();
    let mut stream_lost = false;
    // When we last said something.
    let mut said = tokio::time::Instant::now();
    // Why we stopped listening, when that is what ended the input.
    let mut cut = None;

    let result = loop {
        if feeding.is_none() {
            session.abandon();
        }
        let mut answers = 0;
        tokio::select! {
            biased;
            // Once the thread is done its answers are all queued; they are written below.
            ended = &mut thread => break ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic())),
            () = async { feeding.as_mut().expect("checked").await }, if feeding.is_some() => feeding = None,
            count = replies.recv_many(&mut batch, 256), if !stream_lost => answers = count,
            _ = updates.tick() => showing.update(&session),
            () = tokio::time::sleep_until(said + HEARTBEAT), if !stream_lost => batch.push(Reply::KeepAlive),
            () = &mut greeting, if !session.is_greeted() && feeding.is_some() => {
                cut.get_or_insert(ReceiveError::NoGreeting);
                feeding = None;
            }
            () = holder.was_cut_off() => {
                cut.get_or_insert(ReceiveError::Superseded);
                feeding = None;
            }
            () = async { _ = stop.wait_for(|stop| *stop).await }, if !matches!(cut, Some(ReceiveError::Stopped)) => {
                cut = Some(ReceiveError::Stopped);
                session.reply(Reply::Fatal { reason: Refusal::Stopping, message: "the receiver is shutting down".into() });
                feeding = None;
            }
        }
        if !begun && let Some(hello) = session.hello() {
            begun = true;
            service.sessions.begin(hello.session, &holder);
        }
        if !batch.is_empty() {
            let writing = write(&mut writer, &mut batch, &mut encoded);
            let written = tokio::select! {
                written = tokio::time::timeout(service.silence, writing) => {
                    let failed = written.unwrap_or_else(|_| Err(silent(service.silence))).err();
                    let was_written = failed.is_none();
                    // The thread may not have read as far as that: it waits for its user. Without
                    // this, its input ends as if the sender had closed it.
                    if let Some(error) = failed && feeding.is_some() {
                        cut.get_or_insert(ReceiveError::Stream(error));
                    }
                    was_written
                }
                () = holder.was_cut_off() => {
                    cut.get_or_insert(ReceiveError::Superseded);
                    false
                }
            };
            session.answered(answers);
            said = tokio::time::Instant::now();
            if !written {
                // Nobody listens any more: the thread ends when its input does.
                stream_lost = true;
                session.close();
                feeding = None;
            }
        }
    };
    while let Ok(reply) = replies.try_recv() {
        batch.push(reply);
    }
    let farewell = async {
        write(&mut writer, &mut batch, &mut encoded).await?;
        writer.shutdown().await
    };
    if !stream_lost {
        // A sender that went away has its error already.
        let _ = tokio::time::timeout(FAREWELL, farewell).await;
    }
    showing.note(&session);
    let hello = session.hello();
    if let Some(hello) = &hello {
        service.sessions.end(hello.session, &holder);
    }
    let report = std::mem::replace(&mut *session.report(), Report::new(Listing::CountsOnly));
    Served {
        report,
        seconds: began.elapsed().as_secs_f64(),
        result: match (result, cut) {
            (Err(ReceiveError::Stream(_)), Some(cut)) => Err(cut),
            (result, _) => result,
        },
        hello,
    }
}

async fn write<W: AsyncWrite + Unpin>(
    stream: &mut W,
    batch: &mut Vec<Reply>,
    encoded: &mut Vec<u8>,
) -> io::Result<()> {
    encoded.clear();
    for reply in batch.drain(..) {
        reply.encode(encoded);
    }
    stream.write_all(encoded).await?;
    stream.flush().await
}
