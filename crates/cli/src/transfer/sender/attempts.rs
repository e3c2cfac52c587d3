//! One transfer over as many connections as it takes: a busy receiver is asked again, a lost
//! connection is made again.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, ReadBuf};

use super::confirmations::Confirmations;
use super::progress::Progress;
use super::send::{Outbound, SendError, send};
use crate::exit::{Exit, Failure};
use crate::signals::Signals;
use crate::transfer::bars::Recovery;
use crate::transfer::channel::{Channel, Writer};
use crate::transfer::pause::Pause;

/// How connections are made.
pub(crate) trait Dialer {
    /// A connection.
    type Channel: Channel;

    /// Makes one.
    fn dial(&self) -> impl Future<Output = Result<Self::Channel, Failure>>;

    /// What it does when a connection was lost.
    fn recovery(&self) -> Recovery {
        Recovery::Reconnecting
    }

    /// Waits until the peer of the last connection has made another one in its place, which
    /// [`Dialer::dial`] returns next. Cancel safe.
    fn replaced(&self) -> impl Future<Output = ()> {
        std::future::pending()
    }
}

/// For how long further attempts are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryLimits {
    /// While the receiver is busy or was never reached.
    pub(crate) retry: Duration,
    /// After a connection was lost.
    pub(crate) reconnect: Duration,
}

/// A connection that ended too early. Its transport may still send what it holds, so what never
/// left is known only when the next one has taken its place.
struct Broken<W> {
    writer: W,
    error: SendError,
    /// Bytes of content that its stream took.
    taken: u64,
}

impl<W: Writer> Broken<W> {
    /// Takes back what was counted as carried and never left.
    fn settle(self, confirmations: &Confirmations) -> (W, SendError) {
        if let Some(left) = self.writer.sent_bytes() {
            confirmations.never_left(self.taken.saturating_sub(left));
        }
        (self.writer, self.error)
    }
}

/// A connection's reading half, which fails once another connection has taken its place: a path
/// that breaks says nothing for seconds, while the peer is back already.
struct Replaceable<R, F> {
    reader: R,
    replaced: Pin<Box<F>>,
}

impl<R: AsyncRead + Unpin, F: Future<Output = ()>> AsyncRead for Replaceable<R, F> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Polled no more once it is ready: the error ends the transfer over this connection.
        if self.replaced.as_mut().poll(cx).is_ready() {
            let words = "the receiver has made another one";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, words)));
        }
        Pin::new(&mut self.reader).poll_read(cx, buffer)
    }
}

/// How it ended, and over what.
#[derive(Debug)]
pub(crate) enum Outcome<W> {
    /// No connection was ever made.
    Unreached(Failure),
    /// A signal came.
    Interrupted(Option<W>, Exit),
    Ended(W, Result<(), SendError>),
}

/// Sends until it is done, refused, or patience ends.
pub(crate) async fn send_patiently<D: Dialer>(
    dialer: &D,
    outbound: &Outbound,
    limits: RetryLimits,
    signals: &mut Signals,
    confirmations: &Arc<Confirmations>,
    progress: &Progress,
) -> Outcome<<D::Channel as Channel>::Writer> {
    let mut pause = Pause::FIRST;
    // Since when nothing went forward, and how far it went before.
    let (mut since, mut best) = (Instant::now(), 0);
    let mut last = None::<Broken<_>>;
    let settled = |last: Option<Broken<_>>| last.map(|broken| broken.settle(confirmations));
    let (mut lost, mut told) = (false, false);
    loop {
        let left = limits.reconnect.saturating_sub(since.elapsed());
        let dialed = tokio::select! {
            dialed = dialer.dial() => dialed,
            // A side that waits for a connection does not learn that none will come.
            () = tokio::time::sleep(left), if lost => Err(Failure::network("the other side did not reconnect in time")),
            exit = signals.next() => return Outcome::Interrupted(settled(last).map(|(writer, _)| writer), exit),
        };
        let limit = |lost| {
            if lost { limits.reconnect } else { limits.retry }
        };
        match dialed {
            Ok(channel) => {
                progress.connected();
                if last.is_some() {
                    confirmations.begin_again(lost);
                }
                let (reader, mut writer) = channel.into_split();
                let reader = Replaceable {
                    reader,
                    replaced: Box::pin(dialer.replaced()),
                };
                let outbound = outbound.clone();
                let sent = tokio::select! {
                    sent = send(reader, &mut writer, outbound, confirmations, progress) => sent,
                    exit = signals.next() => {
                        settled(last);
                        return Outcome::Interrupted(Some(writer), exit);
                    }
                };
                if let Some((writer, _)) = settled(last.take()) {
                    // Dropped, it would close its stream, as a sender does that does not return.
                    writer.abort();
                }
                let taken = confirmations.take_taken();
                let error = match sent {
                    Ok(()) => return Outcome::Ended(writer, Ok(())),
                    Err(error) => error,
                };
                let may_return =
                    error.is_busy() || error.is_lost() && limits.reconnect > Duration::ZERO;
                lost |= error.is_lost();
                if progress.bytes() > best {
                    (since, pause) = (Instant::now(), Pause::FIRST);
                    best = progress.bytes();
                }
                let broken = Broken {
                    writer,
                    error,
                    taken,
                };
                if !may_return || since.elapsed() >= limit(lost) {
                    let (writer, error) = broken.settle(confirmations);
                    return Outcome::Ended(writer, Err(error));
                }
                let error = &broken.error;
                tracing::warn!(%error, lost = error.is_lost(), "the transfer did not end");
                if error.is_lost() {
                    progress.say(&format!("{error}; {}", dialer.recovery().words()));
                } else if !std::mem::replace(&mut told, true) {
                    let seconds = limit(lost).as_secs();
                    progress.say(&format!("the receiver is busy; retrying for {seconds} s"));
                }
                progress.reconnecting(dialer.recovery());
                last = Some(broken);
            }
            Err(failure) => {
                if failure.exit != Exit::Network || since.elapsed() >= limit(lost) {
                    return match settled(last) {
                        Some((writer, error)) => Outcome::Ended(writer, Err(error)),
                        None => Outcome::Unreached(failure),
                    };
                }
            }
        }
        let left = limit(lost).saturating_sub(since.elapsed());
        tokio::select! {
            () = tokio::time::sleep(pause.next(left)) => {}
            exit = signals.next() => return Outcome::Interrupted(settled(last).map(|(writer, _)| writer), exit),
        }
    }
}
