//! One outgoing transfer on a stream: greets, writes the sending thread's buffers, reads the answers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};

use super::confirmations::{BadAnswer, Confirmations};
use super::source::{Links, Source, send_all};
use crate::transfer::buffers::{Disconnected, Outgoing, Ring, drain, silent};
use crate::transfer::channel::Writer;
use crate::transfer::names::{RULES, printable};
use crate::transfer::protocol::{HEAD, Head, MAX_CONTROL, Refusal, Reply, Request, Violation};

/// How long to look for the receiver's own words after the stream broke.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a transfer as a whole failed; single files are in the report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("malformed answer, expected one of `tack recv`: {0}")]
    Violation(Violation),
    #[error(transparent)]
    BadAnswer(#[from] BadAnswer),
    #[error("the receiver ended the transfer ({reason}): {message}")]
    Fatal { reason: Refusal, message: String },
    #[error("the connection to the receiver was lost: {0}")]
    Stream(io::Error),
}

impl SendError {
    /// The receiver has no place for us now.
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

/// What to send and how patiently.
#[derive(Clone, Debug)]
pub(crate) struct Outbound {
    pub(crate) sources: Vec<Source>,
    pub(crate) links: Links,
    /// How long the receiver may be silent.
    pub(crate) silence: Duration,
    /// Bytes handed to the stream so far, for the progress bar.
    pub(crate) written: Arc<AtomicU64>,
}

/// Sends everything and waits until all of it is answered.
pub(crate) async fn send<R, W>(
    reader: R,
    writer: &mut W,
    outbound: Outbound,
    confirmations: &Arc<Confirmations>,
) -> Result<(), SendError>
where
    R: AsyncRead + Unpin,
    W: Writer,
{
    let result = run(reader, writer, outbound, confirmations).await;
    confirmations.hang();
    result
}

async fn run<R, W>(
    read_half: R,
    mut write_half: &mut W,
    outbound: Outbound,
    confirmations: &Arc<Confirmations>,
) -> Result<(), SendError>
where
    R: AsyncRead + Unpin,
    W: Writer,
{
    let silence = outbound.silence;
    let mut answers = Answers {
        stream: BufReader::with_capacity(64 << 10, read_half),
        payload: vec![0; MAX_CONTROL],
        silence,
    };

    let mut hello = Vec::new();
    Request::Hello(RULES).encode(&mut hello);
    write_half.write_all(&hello).await?;
    write_half.flush().await?;
    let rules = loop {
        match answers.next().await? {
            Reply::Welcome(rules) => break rules,
            Reply::KeepAlive => {}
            Reply::Queued { ahead } => confirmations.queued(ahead),
            Reply::Fatal { reason, message } => {
                return Err(SendError::Fatal {
                    reason,
                    message: printable(&message),
                });
            }
            _ => return Err(BadAnswer::unexpected().into()),
        }
    };

    let ring = Ring::new();
    let written = Arc::clone(&outbound.written);
    let thread = {
        let confirmations = Arc::clone(confirmations);
        let mut out = Outgoing::new(ring.full_in, ring.spent_out);
        // Detached on failure: it may be waiting for standard input, which nothing can interrupt.
        tokio::task::spawn_blocking(move || {
            match send_all(
                &outbound.sources,
                outbound.links,
                rules,
                &mut out,
                &confirmations,
            ) {
                Ok(()) => true,
                Err(Disconnected) => false,
            }
        })
    };
    let mut heartbeat = Vec::new();
    Request::KeepAlive.encode(&mut heartbeat);
    let writing = async {
        drain(
            &mut write_half,
            ring.full_out,
            ring.spent_in,
            &heartbeat,
            |bytes| {
                written.fetch_add(bytes as u64, Ordering::Relaxed);
            },
        )
        .await?;
        write_half.shutdown().await?;
        // The answers decide when the transfer is over.
        std::future::pending::<io::Result<()>>().await
    };
    let mut writing = std::pin::pin!(writing);
    let mut reading = std::pin::pin!(read_answers(&mut answers, confirmations));
    let outcome = tokio::select! {
        answered = &mut reading => answered,
        Err(broken) = &mut writing => match tokio::time::timeout(LAST_WORDS, reading).await {
            Ok(Err(error @ SendError::Fatal { .. })) => Err(error),
            _ => Err(broken.into()),
        },
    };
    if outcome.is_ok() && !thread.await.unwrap_or(false) {
        return Err(BadAnswer::unexpected().into());
    }
    outcome
}

async fn read_answers<R: AsyncRead + Unpin>(
    answers: &mut Answers<R>,
    confirmations: &Confirmations,
) -> Result<(), SendError> {
    loop {
        match answers.next().await? {
            Reply::KeepAlive => {}
            Reply::Confirm { index, size, hash } => confirmations.confirm(index, size, &hash)?,
            Reply::Reject {
                index,
                reason,
                message,
            } => confirmations.reject(index, reason, &message)?,
            Reply::Finished { files, bytes } => return Ok(confirmations.finish(files, bytes)?),
            Reply::Fatal { reason, message } => {
                return Err(SendError::Fatal {
                    reason,
                    message: printable(&message),
                });
            }
            Reply::Welcome(_) | Reply::Queued { .. } => return Err(BadAnswer::unexpected().into()),
        }
    }
}

/// The receiver's frames.
struct Answers<R> {
    stream: BufReader<R>,
    payload: Vec<u8>,
    silence: Duration,
}

impl<R: AsyncRead + Unpin> Answers<R> {
    async fn next(&mut self) -> Result<Reply, SendError> {
        let mut head = [0; HEAD];
        self.fill(&mut head).await?;
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
