//! How fast connections may carry, together.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tack_base::Rate;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::breaks::Breaks;
use crate::net::TransportFigures;
use crate::transfer::channel::{PeerKey, Writer};
use crate::transfer::pace::Pace;

/// A rate that all who hold it share; without a rate there is no limit.
#[derive(Debug, Default)]
pub(crate) struct Limit(Mutex<Option<(Rate, Pace)>>);

impl Limit {
    /// Sets the rate; one that is as before goes on.
    pub(crate) fn set(&self, rate: Option<Rate>) {
        let mut limit = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if limit.as_ref().map(|(rate, _)| *rate) != rate {
            *limit = rate.map(|rate| (rate, Pace::new(rate.bits_per_sec() / 8)));
        }
    }

    /// Most bytes that are moved at once.
    fn piece(&self) -> usize {
        let limit = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        limit.as_ref().map_or(usize::MAX, |(_, pace)| pace.piece())
    }

    /// When `bytes`, which are being moved, have had their time; `None` where that is now.
    pub(crate) fn spend(&self, bytes: usize) -> Option<Instant> {
        let mut limit = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, pace) = limit.as_mut()?;
        let now = Instant::now();
        pace.reserve(now, bytes);
        // What the bytes took has passed once no more would have to wait.
        let free = pace.reserve(now, 0);
        (free > now).then_some(free)
    }
}

/// Reads or writes as fast as a [`Limit`] lets all who have it together.
#[derive(Debug)]
pub(crate) struct Limited<S> {
    stream: S,
    limit: Arc<Limit>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<S> Limited<S> {
    pub(crate) fn new(stream: S, limit: Arc<Limit>) -> Self {
        Self {
            stream,
            limit,
            pause: None,
        }
    }

    /// Waits until what was moved has had its time.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        Poll::Ready(())
    }

    fn moved(&mut self, len: usize) {
        if len > 0 {
            self.pause = self.limit.spend(len).map(|at| Box::pin(sleep_until(at)));
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Limited<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(this.poll_turn(cx));
        let most = buf.remaining().min(this.limit.piece());
        let len = {
            let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut part))?;
            part.filled().len()
        };
        buf.advance(len);
        this.moved(len);
        Poll::Ready(Ok(()))
    }
}

impl<R: Breaks + Unpin> Breaks for Limited<R> {
    fn broken(&self) -> impl Future<Output = io::Error> + Send {
        self.stream.broken()
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Limited<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        ready!(this.poll_turn(cx));
        let piece = &bytes[..bytes.len().min(this.limit.piece())];
        let len = ready!(Pin::new(&mut this.stream).poll_write(cx, piece))?;
        this.moved(len);
        Poll::Ready(Ok(len))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<W: Writer> Writer for Limited<W> {
    fn peer_key(&self) -> Option<PeerKey> {
        self.stream.peer_key()
    }

    fn peer_addr(&self) -> SocketAddr {
        self.stream.peer_addr()
    }

    fn figures(&self) -> Option<TransportFigures> {
        self.stream.figures()
    }

    fn sent_bytes(&self) -> Option<u64> {
        self.stream.sent_bytes()
    }

    fn finished(&self) -> impl Future<Output = io::Result<()>> + Send {
        self.stream.finished()
    }

    fn closed(&self) -> impl Future<Output = ()> + Send {
        self.stream.closed()
    }

    fn abort(self) {
        self.stream.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn readers_share_the_rate_and_none_is_unlimited() {
        let limit = Arc::new(Limit::default());
        let read = async |bytes: usize| {
            let source = vec![1; bytes];
            let mut reader = Limited::new(&source[..], Arc::clone(&limit));
            let mut got = Vec::new();
            reader.read_to_end(&mut got).await.unwrap();
            assert_eq!(got.len(), bytes);
        };
        let began = Instant::now();
        read(10_000_000).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        // 1 MB/s: two readers of 5 MB take 10 s, less what is made up for, and the last piece.
        limit.set(Some(Rate::from_bits_per_sec(8_000_000)));
        tokio::join!(read(5_000_000), read(5_000_000));
        let took = began.elapsed();
        assert!(took <= Duration::from_millis(10_100), "{took:?}");
        assert!(took >= Duration::from_millis(9_600), "{took:?}");
        limit.set(None);
        read(10_000_000).await;
        assert_eq!(began.elapsed(), took);
    }

    #[tokio::test(start_paused = true)]
    async fn a_writer_is_let_off_when_the_rate_is() {
        let limit = Arc::new(Limit::default());
        // 1 kB/s.
        limit.set(Some(Rate::from_bits_per_sec(8_000)));
        let mut writer = Limited::new(tokio::io::sink(), Arc::clone(&limit));
        let began = Instant::now();
        writer.write_all(&[1; 10_000]).await.unwrap();
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(9_600), "{took:?}");
        let bytes = [1; 1_000_000];
        let writing = async {
            writer.write_all(&bytes).await.unwrap();
        };
        let changing = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            limit.set(None);
        };
        tokio::join!(writing, changing);
        let rest = began.elapsed() - took;
        assert!(rest <= Duration::from_millis(1_100), "{rest:?}");
    }
}
