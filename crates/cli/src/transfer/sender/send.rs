//! One outgoing transfer on a stream: greets, writes the sending thread's buffers, reads the
//! answers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};

use super::bad_answer::BadAnswer;
use super::confirmations::Confirmations;
use super::extras::Extra;
use super::options::{Options, Source};
use super::progress::Progress;
use super::walk::send_all;
use crate::transfer::buffers::{HEARTBEAT, OUTGOING, Outgoing, Ring, drain, silent};
use crate::transfer::channel::Writer;
use crate::transfer::names::printable;
use crate::transfer::protocol::{
    HEAD, Head, Hello, MAX_CONTROL, NameRules, Refusal, Reply, Request, Violation,
};

/// Time to wait for the receiver's error message after the stream broke.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a transfer as a whole failed; single files are in the report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("{}", malformed(.0))]
    Violation(Violation),
    #[error(transparent)]
    BadAnswer(#[from] BadAnswer),
    #[error("the receiver ended the transfer ({reason}): {message}{}", hint(*reason))]
    Fatal { reason: Refusal, message: String },
    #[error("the connection to the receiver was lost: {0}")]
    Stream(io::Error),
}

/// What is said of an answer that is none.
fn malformed(violation: &Violation) -> String {
    match violation {
        Violation::Encrypted => violation.to_string(),
        _ => format!("malformed answer, expected one of `tack recv`: {violation}"),
    }
}

/// What helps after that.
fn hint(reason: Refusal) -> &'static str {
    match reason {
        Refusal::Stopping => "; once it runs again, the same command goes on where this one was",
        _ => "",
    }
}

impl SendError {
    /// True if the receiver is busy.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(
            self,
            Self::Fatal {
                reason: Refusal::Busy,
                ..
            }
        )
    }
}

impl SendError {
    /// True if the connection was lost: another one may resume the transfer.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Stream(_))
    }
}

impl From<Violation> for SendError {
    fn from(error: Violation) -> Self {
        Self::Violation(error)
    }
}

impl From<io::Error> for SendError {
    fn from(error: io::Error) -> Self {
        Self::Stream(error)
    }
}

/// What to send, and its limits of time and rate.
#[derive(Clone, Debug)]
pub(crate) struct Outbound {
    pub(crate) sources: Vec<Source>,
    pub(crate) options: Options,
    pub(crate) hello: Hello,
    /// Longest silence of the receiver.
    pub(crate) silence: Duration,
    /// Maximum rate, bytes per second.
    pub(crate) limit: Option<u64>,
}

/// Sends everything and waits until all of it is answered.
pub(crate) async fn send<R, W>(
    reader: R,
    writer: &mut W,
    outbound: Outbound,
    confirmations: &Arc<Confirmations>,
    progress: &Progress,
) -> Result<(), SendError>
where
    R: AsyncRead + Unpin,
    W: Writer,
{
    let carried = |bytes| confirmations.carried(bytes);
    let result = run(reader, writer, outbound, confirmations, progress, carried).await;
    confirmations.disconnect();
    result
}

async fn run<R, W>(
    reader: R,
    mut writer: &mut W,
    outbound: Outbound,
    confirmations: &Arc<Confirmations>,
    progress: &Progress,
    carried: impl Fn(u64),
) -> Result<(), SendError>
where
    R: AsyncRead + Unpin,
    W: Writer,
{
    let (silence, limit, dry_run) = (outbound.silence, outbound.limit, outbound.options.dry_run);
    let returns = outbound.hello.returns > 0;
    let mut answers = Answers {
        stream: BufReader::with_capacity(64 << 10, reader),
        payload: vec![0; MAX_CONTROL],
        silence,
        progress,
    };
    let mut heartbeat = Vec::new();
    Request::KeepAlive.encode(&mut heartbeat);

    let mut hello = Vec::new();
    Request::Hello(outbound.hello.clone()).encode(&mut hello);
    writer.write_all(&hello).await?;
    writer.flush().await?;
    let rules = {
        let mut welcome = std::pin::pin!(welcome(&mut answers, confirmations));
        loop {
            match tokio::time::timeout(HEARTBEAT, &mut welcome).await {
                Ok(rules) => break rules?,
                // Somebody at the receiver may have to be asked first.
                Err(_) => {
                    writer.write_all(&heartbeat).await?;
                    writer.flush().await?;
                }
            }
        }
    };

    let ring = Ring::new(OUTGOING);
    let thread = {
        let (confirmations, progress) = (Arc::clone(confirmations), progress.clone());
        let mut out = Outgoing::new(ring.full_in, ring.spent_out);
        // Detached on failure: it may be waiting for standard input, which nothing can interrupt.
        tokio::task::spawn_blocking(move || {
            let Outbound {
                sources, options, ..
            } = &outbound;
            send_all(sources, options, rules, &mut out, &confirmations, &progress).is_ok()
        })
    };
    let writing = async {
        let (full, spent) = (ring.full_out, ring.spent_in);
        drain(&mut writer, full, spent, &heartbeat, limit, carried).await?;
        writer.shutdown().await?;
        // The answers decide when the transfer is over.
        std::future::pending::<io::Result<()>>().await
    };
    let outcome = {
        let mut writing = std::pin::pin!(writing);
        let mut reading = std::pin::pin!(read_answers(&mut answers, confirmations));
        tokio::select! {
            answered = &mut reading => answered,
            Err(broken) = &mut writing => match tokio::time::timeout(LAST_WORDS, reading).await {
                Ok(Err(error @ SendError::Fatal { .. })) => Err(error),
                _ => Err(broken.into()),
            },
        }
    };
    match outcome {
        Ok(()) => {
            if dry_run {
                confirmations.finish_dry();
            }
            match thread.await {
                Ok(true) => Ok(()),
                _ => Err(BadAnswer::unexpected().into()),
            }
        }
        Err(error) => {
            confirmations.disconnect();
            if error.is_lost() && returns {
                // A sender that resumes must find it gone. One that waits for standard input, with
                // which nobody goes on, may never be.
                let _ = tokio::time::timeout(silence, thread).await;
            }
            Err(error)
        }
    }
}

/// Waits until the receiver accepts the transfer.
async fn welcome<R: AsyncRead + Unpin>(
    answers: &mut Answers<'_, R>,
    confirmations: &Confirmations,
) -> Result<NameRules, SendError> {
    loop {
        match answers.next().await? {
            Reply::Welcome(rules) => return Ok(rules),
            Reply::KeepAlive => {}
            Reply::Queued { ahead } => confirmations.queued(ahead),
            Reply::Fatal { reason, message } => return Err(fatal(reason, &message)),
            _ => return Err(BadAnswer::unexpected().into()),
        }
    }
}

fn fatal(reason: Refusal, message: &str) -> SendError {
    let message = printable(message);
    SendError::Fatal { reason, message }
}

async fn read_answers<R: AsyncRead + Unpin>(
    answers: &mut Answers<'_, R>,
    confirmations: &Confirmations,
) -> Result<(), SendError> {
    loop {
        match answers.next().await? {
            Reply::KeepAlive => {}
            Reply::Want { index, listed } => confirmations.want(index, listed)?,
            Reply::Have { index, kept } => confirmations.have(index, kept)?,
            Reply::Groups { first, values } => confirmations.groups(first, values)?,
            Reply::Confirm {
                index,
                size,
                hash,
                name,
            } => confirmations.confirm(index, size, &hash, &name)?,
            Reply::Reject {
                index,
                reason,
                message,
            } => confirmations.reject(index, reason, &message)?,
            Reply::Extra {
                number,
                is_dir,
                path,
            } => confirmations.extra(Extra {
                number,
                is_dir,
                path,
            })?,
            Reply::ExtrasEnd { more } => confirmations.extras.end(more)?,
            Reply::Removed { number, message } => confirmations.removed(number, &message)?,
            Reply::Finished { files, bytes } => return Ok(confirmations.finish(files, bytes)?),
            Reply::Fatal { reason, message } => return Err(fatal(reason, &message)),
            _ => return Err(BadAnswer::unexpected().into()),
        }
    }
}

/// The receiver's frames.
struct Answers<'a, R> {
    stream: BufReader<R>,
    payload: Vec<u8>,
    silence: Duration,
    progress: &'a Progress,
}

impl<R: AsyncRead + Unpin> Answers<'_, R> {
    async fn next(&mut self) -> Result<Reply, SendError> {
        let mut head = [0; HEAD];
        self.fill(&mut head).await?;
        self.progress.heard();
        let head = Head::parse(head)?;
        if head.len > self.payload.len() {
            return Err(Violation::Unexpected(head.kind).into());
        }
        let mut payload = std::mem::take(&mut self.payload);
        let filled = self.fill(&mut payload[..head.len]).await;
        self.payload = payload;
        filled?;
        Ok(Reply::decode(head.kind, &self.payload[..head.len])?)
    }

    async fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        match tokio::time::timeout(self.silence, self.stream.read_exact(bytes)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "it closed the connection before it confirmed every file",
            )),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(silent(self.silence)),
        }
    }
}
