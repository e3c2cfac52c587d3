//! How fast connections may carry, together.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tack_base::Rate;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

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

/// Reads as fast as a [`Limit`] lets all its readers together.
#[derive(Debug)]
pub(crate) struct Limited<R> {
    reader: R,
    limit: Arc<Limit>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<R> Limited<R> {
    pub(crate) fn new(reader: R, limit: Arc<Limit>) -> Self {
        Self {
            reader,
            limit,
            pause: None,
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
        if let Some(pause) = &mut this.pause {
            ready!(pause.as_mut().poll(cx));
            this.pause = None;
        }
        let most = buf.remaining().min(this.limit.piece());
        let len = {
            let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
            ready!(Pin::new(&mut this.reader).poll_read(cx, &mut part))?;
            part.filled().len()
        };
        buf.advance(len);
        if len > 0 {
            this.pause = this.limit.spend(len).map(|at| Box::pin(sleep_until(at)));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt;

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
}
