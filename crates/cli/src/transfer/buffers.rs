//! Between the asynchronous stream and the blocking file threads: a fixed set of large buffers that
//! go round.
//!
//! The number of buffers bounds the memory of a transfer however large its files, and a thread that
//! falls behind stops the stream: nothing is ever queued beyond the set.

mod incoming;

use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use super::pace::{Pace, write_all};
use super::pages::{PAGE, Pages};
use super::protocol::{HEAD, MAX_DATA, data_head};
use super::starts::Starts;

pub(crate) use incoming::Incoming;

/// Bytes of one buffer: a data frame of the largest size.
pub(crate) const BUFFER: usize = HEAD + MAX_DATA;
/// What lies before a buffer, so that the content of its first frame begins a page.
const LEAD: usize = PAGE - HEAD;
/// Bytes of the memory of a buffer.
pub(crate) const MEMORY: usize = LEAD + BUFFER;
/// Bytes of that memory before the content of the first frame.
pub(crate) const CONTENT: usize = PAGE;
/// Buffers of a sender: one being filled, one being emptied, two between them.
pub(crate) const OUTGOING: usize = 4;
/// Buffers that a sender gets back at once where it is ahead.
const TOGETHER: usize = 2;
/// Buffers of a receiver: one being filled, one being emptied. What they hold is lost when it is
/// killed, and so is what the receive window lets be under way: together less than a MiB where the
/// window is the least one.
pub(crate) const INCOMING: usize = 2;
/// A data frame shorter than this waits for the next buffer instead of filling up the rest of one.
const LEAST_CHUNK: usize = 16 << 10;

/// A buffer and how much of it is filled.
#[derive(Debug)]
pub(crate) struct Buffer {
    pages: Pages,
    filled: usize,
    /// Those of `filled` that are content of files.
    content: usize,
}

impl Buffer {
    fn new() -> Self {
        Self {
            pages: Pages::new(MEMORY),
            filled: 0,
            content: 0,
        }
    }

    pub(crate) fn filled(&self) -> &[u8] {
        &self.pages[LEAD..][..self.filled]
    }

    fn free(&mut self) -> &mut [u8] {
        &mut self.pages[LEAD + self.filled..]
    }

    /// Appends bytes, for which there must be room.
    fn append(&mut self, bytes: &[u8]) {
        self.free()[..bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
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
    pub(crate) fn new(buffers: usize) -> Self {
        let (full_in, full_out) = mpsc::channel(buffers);
        let (spent_in, spent_out) = mpsc::channel(buffers);
        for _ in 0..buffers {
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

/// How long a large frame may wait to be complete before what is there of it is handed over.
const PATIENCE: Duration = Duration::from_millis(100);

/// Reads the stream into buffers until its end, an error, or `limit` without a byte; reports to the
/// thread which. `listen` hears when waiting for bytes begins (true) and ends.
///
/// A large data frame comes whole and at the beginning of a buffer, where the stream is fast enough
/// for that: its content is then one piece of memory that lies as in the file, and is hashed and
/// written at once.
pub(crate) async fn feed<R: AsyncRead + Unpin>(
    mut stream: R,
    full: mpsc::Sender<io::Result<Buffer>>,
    mut spent: mpsc::Receiver<Buffer>,
    limit: Duration,
    listen: impl Fn(bool),
) {
    let mut starts = Starts::default();
    // What belongs into the next buffer.
    let mut rest = Vec::new();
    // Not a timer for each wait: to set one costs a system call.
    let mut patience = tokio::time::interval_at(Instant::now() + PATIENCE, PATIENCE);
    patience.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while let Some(mut buffer) = spent.recv().await {
        buffer.filled = 0;
        buffer.append(&rest);
        rest.clear();
        let ended = loop {
            let before = buffer.filled;
            listen(true);
            let filling = async {
                tokio::select! {
                    biased;
                    filled = fill(&mut stream, &mut buffer) => Some(filled),
                    _ = patience.tick(), if before >= HEAD => None,
                }
            };
            let filled = tokio::time::timeout(limit, filling).await;
            listen(false);
            match filled.unwrap_or_else(|_| Some(Err(silent(limit)))) {
                Some(Ok(())) if buffer.filled == before => break Some(Ok(())),
                Some(Ok(())) => {}
                Some(Err(error)) => break Some(Err(error)),
                None => {
                    starts.pass(buffer.filled());
                    break None;
                }
            }
            let cut = starts.cut(buffer.filled());
            if cut > 0 {
                rest.extend_from_slice(&buffer.filled()[cut..]);
                buffer.filled = cut;
                break None;
            }
        };
        if buffer.filled > 0 && full.send(Ok(buffer)).await.is_err() {
            return;
        }
        match ended {
            None => {}
            Some(Ok(())) => return,
            Some(Err(error)) => {
                // The thread may be gone already; then nobody needs to know.
                let _ = full.send(Err(error)).await;
                return;
            }
        }
    }
}

/// Adds what is there now to the buffer; waits only for the first byte. Nothing at all is the end
/// of the stream.
async fn fill<R: AsyncRead + Unpin>(stream: &mut R, buffer: &mut Buffer) -> io::Result<()> {
    let before = buffer.filled;
    std::future::poll_fn(|cx| {
        loop {
            let mut free = ReadBuf::new(buffer.free());
            if free.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            match Pin::new(&mut *stream).poll_read(cx, &mut free) {
                Poll::Ready(Ok(())) if free.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => buffer.filled += free.filled().len(),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if buffer.filled > before => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await
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
        self.with_room(control.len())?.append(&control);
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
        let free = buffer.free();
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
        Ok(Ok(&buffer.filled()[start..]))
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
    let mut emptied = Vec::new();
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
                emptied.push(buffer);
                // The thread that fills them is woken once for two of them, while there are others
                // to send.
                if emptied.len() >= TOGETHER || full.is_empty() {
                    for buffer in emptied.drain(..) {
                        // Cannot be full; a thread that is gone needs no buffers.
                        let _ = spent.try_send(buffer);
                    }
                }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::transfer::protocol::Request;
    use crate::transfer::starts::LARGE;

    /// What a thread is handed of a stream into which `pieces` are written, each once the reader
    /// waits: bytes, and where the first content of each buffer lies in its page.
    async fn fed(pieces: &[&[u8]]) -> Vec<(Vec<u8>, usize)> {
        let (mut near, far) = tokio::io::duplex(1 << 20);
        let mut ring = Ring::new(INCOMING);
        let feeding = feed(far, ring.full_in, ring.spent_out, HEARTBEAT, |_| ());
        let writing = async {
            for piece in pieces {
                near.write_all(piece).await.unwrap();
                // Virtual time goes on only while all of this waits.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            drop(near);
        };
        let reading = async {
            let mut all = Vec::new();
            while let Some(buffer) = ring.full_out.recv().await {
                let buffer = buffer.unwrap();
                let place = buffer.filled().as_ptr() as usize + HEAD;
                all.push((buffer.filled().to_vec(), place % PAGE));
                // The feeder may have ended.
                let _ = ring.spent_in.send(buffer).await;
            }
            all
        };
        tokio::join!(feeding, writing, reading).2
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_frame_is_handed_over_whole_and_lies_as_in_the_file() {
        let mut large = data_head(MAX_DATA).to_vec();
        large.resize(BUFFER, 7);
        let small = [&data_head(10)[..], &[1; 10]].concat();
        // One small frame first, and the large ones in pieces that end anywhere.
        let stream = [&small[..], &large, &large].concat();
        let (first, rest) = stream.split_at(100_000);
        let (second, third) = rest.split_at(200_000);
        let handed = fed(&[first, second, third]).await;
        let lens: Vec<_> = handed.iter().map(|(bytes, _)| bytes.len()).collect();
        assert_eq!(lens, [small.len(), BUFFER, BUFFER]);
        assert!(handed.iter().all(|(_, place)| *place == 0));
        let bytes: Vec<_> = handed.into_iter().flat_map(|(bytes, _)| bytes).collect();
        assert!(bytes == stream);
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_comes_slowly_is_handed_over_in_pieces() {
        let mut large = data_head(MAX_DATA).to_vec();
        large.resize(BUFFER, 7);
        let pieces: Vec<_> = large.chunks(1000).collect();
        let handed = fed(&pieces).await;
        assert!(handed.len() >= 3, "{}", handed.len());
        let bytes: Vec<_> = handed.into_iter().flat_map(|(bytes, _)| bytes).collect();
        assert!(bytes == large);
        // A stream that ends within a frame is handed over as far as it came.
        let handed = fed(&[&large[..5000], &large[..3]]).await;
        assert_eq!(
            handed.iter().map(|(bytes, _)| bytes.len()).sum::<usize>(),
            5003
        );
    }

    /// Where frames lie in their stream, and the stream: data of a length, or a small one.
    fn stream_of(frames: &[(bool, usize)]) -> (Vec<(usize, usize)>, Vec<u8>) {
        let (mut places, mut stream) = (Vec::new(), Vec::new());
        for (is_data, len) in frames {
            let start = stream.len();
            if *is_data {
                stream.extend_from_slice(&data_head(*len));
                stream.resize(start + HEAD + len, 0);
                let mut noise = blake3::Hasher::new();
                noise.update(&start.to_be_bytes());
                noise.finalize_xof().fill(&mut stream[start + HEAD..]);
            } else {
                Request::Seek(*len as u64).encode(&mut stream);
            }
            places.push((start, stream.len()));
        }
        (places, stream)
    }

    fn frame() -> impl Strategy<Value = (bool, usize)> {
        let len = prop_oneof![
            1..2000usize,
            LARGE - 2..LARGE + 2,
            1..=MAX_DATA,
            Just(MAX_DATA)
        ];
        (any::<bool>(), len)
    }

    proptest! {
        #[test]
        fn a_stream_in_any_pieces_arrives_as_it_is(
            frames in proptest::collection::vec(frame(), 1..8),
            // No more than come before the first tick.
            lens in proptest::collection::vec(prop_oneof![1..20usize, 1..300_000usize], 0..60),
            // Where it is no stream of frames any more.
            garbage in proptest::option::of((any::<proptest::sample::Index>(), any::<[u8; 7]>())),
        ) {
            let (places, mut stream) = stream_of(&frames);
            if let Some((at, bytes)) = &garbage {
                let at = at.index(stream.len());
                let len = bytes.len().min(stream.len() - at);
                stream[at..][..len].copy_from_slice(&bytes[..len]);
            }
            let (mut pieces, mut rest) = (Vec::new(), &stream[..]);
            for len in lens {
                let (piece, after) = rest.split_at(len.min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .unwrap();
            let handed = runtime.block_on(fed(&pieces));
            let (mut ends, mut arrived) = (Vec::new(), Vec::new());
            for (bytes, _) in handed {
                prop_assert!((1..=BUFFER).contains(&bytes.len()));
                arrived.extend_from_slice(&bytes);
                ends.push(arrived.len());
            }
            prop_assert!(arrived == stream);
            let begun = places.iter().zip(&frames).filter(|_| garbage.is_none());
            for ((start, end), (is_data, len)) in begun {
                // A head stays together, and a large frame as a whole.
                let whole = match *is_data && *len >= LARGE {
                    true => *end,
                    false => start + HEAD,
                };
                let cut = ends.iter().find(|at| (start + 1..whole).contains(*at));
                prop_assert_eq!(cut, None, "frame {}..{}", start, end);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_read_than_the_buffers_hold() {
        const PIPE: usize = 1000;
        let (mut near, far) = tokio::io::duplex(PIPE);
        let ring = Ring::new(INCOMING);
        let feeding = feed(far, ring.full_in, ring.spent_out, HEARTBEAT, |_| ());
        let (_, stream) = stream_of(&[(true, MAX_DATA), (false, 1), (true, 1)].repeat(10));
        let mut written = 0;
        let writing = async {
            while written < stream.len() {
                written += near.write(&stream[written..]).await.unwrap();
            }
        };
        // Nobody takes what is handed over.
        let both = async { tokio::join!(feeding, writing) };
        assert!(tokio::time::timeout(HEARTBEAT / 2, both).await.is_err());
        assert!(written <= INCOMING * BUFFER + PIPE, "{written}");
    }
}
