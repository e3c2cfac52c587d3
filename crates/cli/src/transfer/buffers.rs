//! Between the asynchronous stream and the blocking file threads: a fixed set of large buffers that
//! go round.
//!
//! The number of buffers bounds the memory of a transfer however large its files, and a thread that
//! falls behind stops the stream: nothing is ever queued beyond the set.

use std::io::{self, BufRead, Read};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::mpsc;

use super::pace::{Pace, write_all};
use super::protocol::{HEAD, MAX_DATA, data_head};

/// Bytes of one buffer: a data frame of the largest size.
pub(crate) const BUFFER: usize = HEAD + MAX_DATA;
/// Buffers of one transfer: one being filled, one being emptied, two between them.
const BUFFERS: usize = 4;
/// A data frame shorter than this waits for the next buffer instead of filling up the rest of one.
const LEAST_CHUNK: usize = 16 << 10;

/// A buffer and how much of it is filled.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    filled: usize,
    /// Those of `filled` that are content of files.
    content: usize,
}

impl Buffer {
    fn new() -> Self {
        Self {
            bytes: vec![0; BUFFER].into_boxed_slice(),
            filled: 0,
            content: 0,
        }
    }

    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

/// The channel pair of one direction: full buffers one way, spent ones back.
pub(crate) struct Ring {
    pub(crate) full_in: mpsc::Sender<io::Result<Buffer>>,
    pub(crate) full_out: mpsc::Receiver<io::Result<Buffer>>,
    pub(crate) spent_in: mpsc::Sender<Buffer>,
    pub(crate) spent_out: mpsc::Receiver<Buffer>,
}

impl Ring {
    pub(crate) fn new() -> Self {
        let (full_in, full_out) = mpsc::channel(BUFFERS);
        let (spent_in, spent_out) = mpsc::channel(BUFFERS);
        for _ in 0..BUFFERS {
            // The channel holds exactly as many as there are, so this never fails.
            let _ = spent_in.try_send(Buffer::new());
        }
        Self {
            full_in,
            full_out,
            spent_in,
            spent_out,
        }
    }
}

/// The error of a stream whose other end said nothing for too long.
pub(crate) fn silent(limit: Duration) -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!(
            "the other side has been silent for {} s (--timeout)",
            limit.as_secs()
        ),
    )
}

/// Reads the stream into buffers until its end, an error, or `limit` without a byte; reports to the
/// thread which. `listen` hears when waiting for bytes begins (true) and ends.
pub(crate) async fn feed<R: AsyncRead + Unpin>(
    mut stream: R,
    full: mpsc::Sender<io::Result<Buffer>>,
    mut spent: mpsc::Receiver<Buffer>,
    limit: Duration,
    listen: impl Fn(bool),
) {
    while let Some(mut buffer) = spent.recv().await {
        listen(true);
        let filled = tokio::time::timeout(limit, fill(&mut stream, &mut buffer)).await;
        listen(false);
        match filled.unwrap_or_else(|_| Err(silent(limit))) {
            Ok(()) if buffer.filled == 0 => return,
            Ok(()) => {
                if full.send(Ok(buffer)).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                // The thread may be gone already; then nobody needs to know.
                let _ = full.send(Err(error)).await;
                return;
            }
        }
    }
}

/// Fills the buffer with what is there now; waits only for the first byte. Nothing at all is the
/// end of the stream.
async fn fill<R: AsyncRead + Unpin>(stream: &mut R, buffer: &mut Buffer) -> io::Result<()> {
    buffer.filled = 0;
    std::future::poll_fn(|cx| {
        loop {
            let mut free = ReadBuf::new(&mut buffer.bytes[buffer.filled..]);
            if free.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            match Pin::new(&mut *stream).poll_read(cx, &mut free) {
                Poll::Ready(Ok(())) if free.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => buffer.filled += free.filled().len(),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if buffer.filled > 0 => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await
}

/// The thread's view of an incoming stream: the buffers of [`feed`], in place.
pub(crate) struct Incoming {
    full: mpsc::Receiver<io::Result<Buffer>>,
    spent: mpsc::Sender<Buffer>,
    current: Option<Buffer>,
    position: usize,
}

impl Incoming {
    pub(crate) fn new(
        full: mpsc::Receiver<io::Result<Buffer>>,
        spent: mpsc::Sender<Buffer>,
    ) -> Self {
        Self {
            full,
            spent,
            current: None,
            position: 0,
        }
    }
}

impl BufRead for Incoming {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self
            .current
            .as_ref()
            .is_none_or(|buffer| self.position == buffer.filled)
        {
            if let Some(buffer) = self.current.take() {
                // Cannot be full; a feeder that is gone needs no buffers.
                let _ = self.spent.try_send(buffer);
            }
            self.position = 0;
            self.current = self.full.blocking_recv().transpose()?;
        }
        Ok(self
            .current
            .as_ref()
            .map_or(&[], |buffer| &buffer.filled()[self.position..]))
    }

    fn consume(&mut self, amount: usize) {
        self.position += amount;
        debug_assert!(self.current.as_ref().map_or(0, |buffer| buffer.filled) >= self.position);
    }
}

impl Read for Incoming {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let amount = available.len().min(out.len());
        out[..amount].copy_from_slice(&available[..amount]);
        self.consume(amount);
        Ok(amount)
    }
}

/// The stream's other side is gone; why is known over there.
#[derive(Debug)]
pub(crate) struct Disconnected;

/// The thread's view of an outgoing stream: frames collected into buffers for [`drain`].
pub(crate) struct Outgoing {
    full: mpsc::Sender<io::Result<Buffer>>,
    spent: mpsc::Receiver<Buffer>,
    current: Option<Buffer>,
    control: Vec<u8>,
}

impl Outgoing {
    pub(crate) fn new(
        full: mpsc::Sender<io::Result<Buffer>>,
        spent: mpsc::Receiver<Buffer>,
    ) -> Self {
        Self {
            full,
            spent,
            current: None,
            control: Vec::with_capacity(256),
        }
    }

    /// A buffer with at least `room` bytes free.
    fn with_room(&mut self, room: usize) -> Result<&mut Buffer, Disconnected> {
        if self
            .current
            .as_ref()
            .is_some_and(|buffer| BUFFER - buffer.filled < room)
        {
            self.flush()?;
        }
        let buffer = match self.current.take() {
            Some(buffer) => buffer,
            None => {
                let mut buffer = self.spent.blocking_recv().ok_or(Disconnected)?;
                (buffer.filled, buffer.content) = (0, 0);
                buffer
            }
        };
        Ok(self.current.insert(buffer))
    }

    /// Appends a frame that `encode` writes (not data).
    pub(crate) fn frame(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), Disconnected> {
        let mut control = std::mem::take(&mut self.control);
        control.clear();
        encode(&mut control);
        let buffer = self.with_room(control.len())?;
        buffer.bytes[buffer.filled..][..control.len()].copy_from_slice(&control);
        buffer.filled += control.len();
        self.control = control;
        Ok(())
    }

    /// Appends a data frame of up to `limit` bytes that `read` puts straight into the buffer, and
    /// returns those bytes; none when `read` says it is at the end.
    pub(crate) fn data(
        &mut self,
        limit: u64,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> Result<io::Result<&[u8]>, Disconnected> {
        let least = usize::try_from(limit)
            .unwrap_or(usize::MAX)
            .clamp(1, LEAST_CHUNK);
        let buffer = self.with_room(HEAD + least)?;
        let free = &mut buffer.bytes[buffer.filled..];
        let most = usize::try_from(limit)
            .unwrap_or(usize::MAX)
            .min(free.len() - HEAD)
            .min(MAX_DATA);
        let amount = match read(&mut free[HEAD..HEAD + most]) {
            Ok(0) => return Ok(Ok(&[])),
            Ok(amount) => amount,
            Err(error) => return Ok(Err(error)),
        };
        free[..HEAD].copy_from_slice(&data_head(amount));
        let start = buffer.filled + HEAD;
        buffer.filled = start + amount;
        buffer.content += amount;
        Ok(Ok(&buffer.bytes[start..start + amount]))
    }

    /// Hands over what is collected.
    pub(crate) fn flush(&mut self) -> Result<(), Disconnected> {
        match self.current.take() {
            Some(buffer) if buffer.filled > 0 => self
                .full
                .blocking_send(Ok(buffer))
                .map_err(|_| Disconnected),
            other => {
                self.current = other;
                Ok(())
            }
        }
    }
}

/// Writes buffers to the stream until the thread ends, `heartbeat` whenever it is idle for a
/// second. `carried` hears how many bytes of content the stream took.
///
/// Buffers hold whole frames, so a keep-alive may stand between any two of them.
pub(crate) async fn drain<W: AsyncWrite + Unpin>(
    stream: &mut W,
    mut full: mpsc::Receiver<io::Result<Buffer>>,
    spent: mpsc::Sender<Buffer>,
    heartbeat: &[u8],
    limit: Option<u64>,
    carried: impl Fn(u64),
) -> io::Result<()> {
    let mut pace = limit.map(Pace::new);
    loop {
        match tokio::time::timeout(HEARTBEAT, full.recv()).await {
            Ok(Some(buffer)) => {
                let buffer = buffer?;
                let mut content = buffer.content;
                // Of a buffer that is taken in part, what is around the content counts as content.
                let mut wrote = |bytes: usize| {
                    let bytes = bytes.min(content);
                    content -= bytes;
                    carried(bytes as u64);
                };
                match &mut pace {
                    Some(pace) => pace.write(stream, buffer.filled(), &mut wrote).await?,
                    None => write_all(stream, buffer.filled(), &mut wrote).await?,
                }
                // What is asked must not wait in a buffer of an encrypted stream.
                stream.flush().await?;
                // Cannot be full; a thread that is gone needs no buffers.
                let _ = spent.try_send(buffer);
            }
            Ok(None) => return stream.flush().await,
            Err(_) => {
                stream.write_all(heartbeat).await?;
                stream.flush().await?;
            }
        }
    }
}

/// How long a side may be idle before it says that it is alive.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);
