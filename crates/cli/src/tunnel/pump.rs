//! Moves bytes between the two connections of a tunnel, in both directions, until both have ended.
//!
//! The end of a stream is carried over as an end, a reset as a reset, when it happens: also where
//! nothing is read from that side, since its stream has ended or the other side takes nothing. A
//! connection without bytes on their way holds no buffer.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use prometheus_client::metrics::counter::Counter;
use tack_base::Rate;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::breaks::Breaks;
use super::limit::{Limit, Limited};
use crate::meeting::{PeerReader, PeerStream};
use crate::observe::tunnels;
use crate::transfer::channel::Writer;

/// Bytes that are moved at a time: as many as one write to the peer takes. With 128 KiB, a tunnel
/// takes a tenth more processor time, and switches threads a fifth more often. A direction whose
/// writer does not take them holds them meanwhile.
const BUFFER: usize = 240 << 10;
/// Buffers that a thread keeps for the next read.
const KEPT: usize = 4;

/// Bytes that all tunnelled connections of this program have carried so far: whether anything goes
/// on.
pub(crate) fn moved() -> u64 {
    let bytes = &tunnels().bytes;
    bytes.to_peer.get() + bytes.from_peer.get()
}

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer of [`BUFFER`] bytes.
pub(crate) fn take_buffer() -> Vec<u8> {
    let kept = BUFFERS.with_borrow_mut(Vec::pop);
    kept.unwrap_or_else(|| vec![0; BUFFER])
}

/// Gives a buffer back.
pub(crate) fn keep_buffer(buffer: Vec<u8>) {
    BUFFERS.with_borrow_mut(|buffers| {
        if buffers.len() < KEPT {
            buffers.push(buffer);
        }
    });
}

/// Bytes that a tunnelled connection carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Carried {
    /// From the local connection to the peer.
    pub(crate) sent: u64,
    /// From the peer to the local connection.
    pub(crate) received: u64,
}

/// One direction.
pub(super) struct Direction {
    /// Bytes that were read and not yet written.
    buffer: Vec<u8>,
    pending: std::ops::Range<usize>,
    read_ended: bool,
    /// The end was carried over, too.
    done: bool,
    carried: u64,
    /// What all such directions of the program have moved.
    moved: &'static Counter,
}

impl Direction {
    /// From a local connection to the peer.
    pub(super) fn to_peer() -> Self {
        Self::counted_by(&tunnels().bytes.to_peer)
    }

    /// From the peer to a local connection.
    pub(super) fn from_peer() -> Self {
        Self::counted_by(&tunnels().bytes.from_peer)
    }

    fn counted_by(moved: &'static Counter) -> Self {
        Self {
            buffer: Vec::new(),
            pending: 0..0,
            read_ended: false,
            done: false,
            carried: 0,
            moved,
        }
    }

    /// Moves what there is. Ready when the end was carried over, too, however often that is asked.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_out(cx, to))?;
            if self.done {
                return Poll::Ready(Ok(()));
            }
            if self.buffer.is_empty() {
                self.buffer = take_buffer();
            }
            let mut buf = ReadBuf::new(&mut self.buffer);
            match Pin::new(&mut *from).poll_read(cx, &mut buf)? {
                Poll::Pending => {
                    self.give_back();
                    // What was written may wait in a buffer of the writer's.
                    let _ = Pin::new(&mut *to).poll_flush(cx)?;
                    return Poll::Pending;
                }
                Poll::Ready(()) => {
                    self.pending = 0..buf.filled().len();
                    self.read_ended = self.pending.is_empty();
                }
            }
        }
    }

    /// Writes what was read, and the end after it.
    fn poll_out(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        while !self.pending.is_empty() {
            let bytes = &self.buffer[self.pending.clone()];
            let written = ready!(Pin::new(&mut *to).poll_write(cx, bytes))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.pending.start += written;
            self.moved.inc_by(written as u64);
            self.carried += written as u64;
        }
        if self.read_ended && !self.done {
            self.give_back();
            // Standard output does not flush when it is shut down.
            ready!(Pin::new(&mut *to).poll_flush(cx))?;
            ready!(Pin::new(&mut *to).poll_shutdown(cx))?;
            self.done = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Whether it waits for nothing but bytes of its source, whose reading tells how that ends.
    fn reads(&self) -> bool {
        self.pending.is_empty() && !self.read_ended
    }

    /// Moves what comes, and its end, which `ended` then tells; then goes on to watch the source.
    ///
    /// # Errors
    /// It ends only so: by the first failure of a side.
    async fn run(
        &mut self,
        from: &mut (impl Breaks + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
        ended: &AtomicBool,
    ) -> io::Error {
        loop {
            let moved = poll_fn(|cx| match self.poll(cx, from, to) {
                Poll::Pending if !self.reads() => Poll::Ready(Ok(())),
                moved => moved,
            });
            if let Err(error) = moved.await {
                return error;
            }
            if self.done {
                ended.store(true, Ordering::Relaxed);
                return from.broken().await;
            }
            // The writer takes nothing more at the moment, and so nothing is read.
            let written = tokio::select! {
                biased;
                written = poll_fn(|cx| self.poll_out(cx, to)) => written,
                error = from.broken() => Err(error),
            };
            if let Err(error) = written {
                return error;
            }
        }
    }

    fn give_back(&mut self) {
        if !self.buffer.is_empty() {
            keep_buffer(std::mem::take(&mut self.buffer));
        }
    }
}

impl Drop for Direction {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Moves bytes both ways until both streams have ended; `up` may have begun.
///
/// # Errors
/// The first failure of a side, after which neither is of use.
async fn both_ways(
    mut up: Direction,
    local: (&mut (impl Breaks + Unpin), &mut (impl AsyncWrite + Unpin)),
    peer: (&mut (impl Breaks + Unpin), &mut (impl AsyncWrite + Unpin)),
) -> (Carried, io::Result<()>) {
    let mut down = Direction::from_peer();
    let outcome = {
        let ended = [AtomicBool::new(false), AtomicBool::new(false)];
        let mut up = pin!(up.run(local.0, peer.1, &ended[0]));
        let mut down = pin!(down.run(peer.0, local.1, &ended[1]));
        poll_fn(|cx| {
            let broken = [up.as_mut().poll(cx), down.as_mut().poll(cx)];
            if ended.iter().all(|ended| ended.load(Ordering::Relaxed)) {
                return Poll::Ready(Ok(()));
            }
            match broken {
                [Poll::Ready(error), _] | [_, Poll::Ready(error)] => Poll::Ready(Err(error)),
                [Poll::Pending, Poll::Pending] => Poll::Pending,
            }
        })
        .await
    };
    let carried = Carried {
        sent: up.carried,
        received: down.carried,
    };
    (carried, outcome)
}

/// Joins a TCP connection of this machine and a stream of the tunnel whose request is not answered
/// yet: what the connection says goes behind the request at once, so that it waits for one round
/// trip less. `answer` reads the answer; nothing is carried back before it.
///
/// # Errors
/// That of `answer`, after which both connections have been reset.
pub(crate) async fn join_early<E>(
    mut local: TcpStream,
    peer: PeerStream,
    answer: impl AsyncFnOnce(&mut PeerReader) -> Result<(), E>,
) -> Result<(), E> {
    let (mut peer_reader, mut peer_writer) = peer.into_split();
    let (mut reader, mut writer) = local.split();
    let mut up = Direction::to_peer();
    // Where the local connection breaks off before the answer, the peer learns it after that.
    let mut broken = false;
    let answered = {
        let mut answer = pin!(answer(&mut peer_reader));
        poll_fn(|cx| {
            let answered = answer.as_mut().poll(cx);
            if answered.is_pending() && !broken {
                let moved = up.poll(cx, &mut reader, &mut peer_writer);
                broken = matches!(moved, Poll::Ready(Err(_)));
            }
            answered
        })
        .await
    };
    let is_whole = answered.is_ok() && !broken && {
        let (local, peer) = (
            (&mut reader, &mut writer),
            (&mut peer_reader, &mut peer_writer),
        );
        both_ways(up, local, peer).await.1.is_ok()
    };
    if !is_whole {
        peer_writer.abort();
        reset(local);
    }
    answered
}

/// Joins a TCP connection of this machine and a stream of the tunnel. A reset of either becomes a
/// reset of the other.
pub(crate) async fn join(local: TcpStream, peer: PeerStream) -> (Carried, io::Result<()>) {
    join_limited(local, peer, &Limits::default()).await
}

/// How fast bytes are moved, in both directions.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub(crate) to_peer: Arc<Limit>,
    pub(crate) from_peer: Arc<Limit>,
}

impl Limits {
    /// Sets the rate of each direction.
    pub(crate) fn set(&self, rate: Option<Rate>) {
        self.to_peer.set(rate);
        self.from_peer.set(rate);
    }
}

/// As [`join`], not faster than the limits let it.
pub(crate) async fn join_limited(
    mut local: TcpStream,
    peer: PeerStream,
    limits: &Limits,
) -> (Carried, io::Result<()>) {
    let (peer_reader, mut peer_writer) = peer.into_split();
    let mut peer_reader = Limited::new(peer_reader, Arc::clone(&limits.from_peer));
    let (reader, mut writer) = local.split();
    let mut reader = Limited::new(reader, Arc::clone(&limits.to_peer));
    let (carried, outcome) = both_ways(
        Direction::to_peer(),
        (&mut reader, &mut writer),
        (&mut peer_reader, &mut peer_writer),
    )
    .await;
    if outcome.is_err() {
        peer_writer.abort();
        reset(local);
    }
    (carried, outcome)
}

/// As [`join`], for a connection that ends in our own TCP.
pub(crate) async fn join_own(local: tack::Stream, peer: PeerStream) -> (Carried, io::Result<()>) {
    let (mut peer_reader, mut peer_writer) = peer.into_split();
    let (mut reader, mut writer) = local.into_split();
    let (carried, outcome) = both_ways(
        Direction::to_peer(),
        (&mut reader, &mut writer),
        (&mut peer_reader, &mut peer_writer),
    )
    .await;
    if outcome.is_err() {
        peer_writer.abort();
        writer.reset();
    }
    (carried, outcome)
}

/// Ends a TCP connection by a reset, so that its other end learns that bytes may be missing.
pub(crate) fn reset(stream: TcpStream) {
    // Where that fails the connection is gone already.
    let _ = stream.set_zero_linger();
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn each_direction_ends_by_itself_and_bytes_are_counted() {
        let (near, here) = duplex(100);
        let (far, there) = duplex(100);
        let (mut here_read, mut here_write) = tokio::io::split(here);
        let (mut there_read, mut there_write) = tokio::io::split(there);
        let (mut near_read, mut near_write) = tokio::io::split(near);
        let (mut far_read, mut far_write) = tokio::io::split(far);
        let joined = both_ways(
            Direction::to_peer(),
            (&mut here_read, &mut here_write),
            (&mut there_read, &mut there_write),
        );
        let bytes = vec![7; 200_000];
        let talk = async {
            // The near side ends first; the far side goes on.
            let writing = async {
                near_write.write_all(&bytes).await.unwrap();
                near_write.shutdown().await.unwrap();
            };
            let mut got = Vec::new();
            let (_, read) = tokio::join!(writing, far_read.read_to_end(&mut got));
            read.unwrap();
            assert!(got == bytes);
            far_write.write_all(b"answer").await.unwrap();
            far_write.shutdown().await.unwrap();
            let mut answer = String::new();
            near_read.read_to_string(&mut answer).await.unwrap();
            assert_eq!(answer, "answer");
        };
        let ((carried, outcome), ()) = tokio::join!(joined, talk);
        outcome.unwrap();
        assert_eq!((carried.sent, carried.received), (200_000, 6));
    }

    /// A program's connection to here, as it and as this side have it, and a stream to a peer, as
    /// this side and as the peer have it.
    async fn connections() -> (TcpStream, TcpStream, PeerStream, tack::Stream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let program = TcpStream::connect(listener.local_addr().unwrap());
        let (program, accepted) = tokio::join!(program, listener.accept());
        let peers = tack::Listener::bind("127.0.0.1:0").await.unwrap();
        let stream = tack::connect(peers.local_addr());
        let (stream, arrived) = tokio::join!(stream.into_future(), peers.accept());
        let peer = PeerStream::Clear(stream.unwrap());
        (
            program.unwrap(),
            accepted.unwrap().0,
            peer,
            arrived.unwrap().0,
        )
    }

    #[tokio::test]
    async fn what_a_program_says_travels_before_the_answer() {
        let (mut program, local, peer, mut serving) = connections().await;
        let talk = async {
            program.write_all(b"early").await.unwrap();
            let mut early = [0; 5];
            serving.read_exact(&mut early).await.unwrap();
            assert_eq!(&early, b"early");
            // The answer, and what follows.
            serving.write_all(b"!late").await.unwrap();
            serving.shutdown().await.unwrap();
            program.shutdown().await.unwrap();
            assert_eq!(serving.read(&mut early).await.unwrap(), 0);
            let mut heard = String::new();
            program.read_to_string(&mut heard).await.unwrap();
            assert_eq!(heard, "late");
        };
        let joined = join_early(local, peer, async |reader| {
            reader.read_u8().await.map(|byte| assert_eq!(byte, b'!'))
        });
        tokio::join!(joined, talk).0.unwrap();
    }

    #[tokio::test]
    async fn a_refusal_resets_both_sides() {
        let (mut program, local, peer, mut serving) = connections().await;
        program.write_all(b"early").await.unwrap();
        serving.write_all(b"?").await.unwrap();
        let joined = join_early(local, peer, async |reader| {
            Err::<(), _>(reader.read_u8().await.unwrap())
        });
        assert_eq!(joined.await, Err(b'?'));
        let reset = |error: io::Error| assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        reset(program.read(&mut [0]).await.unwrap_err());
        reset(serving.read_to_end(&mut Vec::new()).await.unwrap_err());
    }

    #[test]
    fn a_direction_without_bytes_holds_no_buffer() {
        let (mut from, _from_end) = duplex(10);
        let (mut to, _to_end) = duplex(10);
        let mut direction = Direction::to_peer();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(direction.poll(&mut cx, &mut from, &mut to).is_pending());
        assert_eq!(direction.buffer.capacity(), 0);
    }
}
