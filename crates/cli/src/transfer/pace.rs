//! The limit of a transfer's rate (`--bwlimit`).

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

/// Time that went by without use and is made up for: a timer that fired late, a stream that took
/// nothing for a moment. What is more is lost, so that no pause becomes a longer burst.
const CREDIT: Duration = Duration::from_millis(200);

/// Writes at a rate. In any time t it writes at most what the rate gives in t, [`CREDIT`], and one
/// piece.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Bytes a second.
    rate: u64,
    /// When what was written so far has had its time.
    free: Instant,
}

impl Pace {
    /// `rate`: bytes a second, at least 1.
    pub(crate) fn new(rate: u64) -> Self {
        let (rate, free) = (rate.max(1), Instant::now());
        Self { rate, free }
    }

    /// When `bytes` more may be moved; they count as moved then.
    pub(crate) fn reserve(&mut self, now: Instant, bytes: usize) -> Instant {
        let at = self.free.max(now);
        self.spend(now, bytes);
        at
    }

    /// A twentieth of a second, in bytes: what is written at once.
    pub(crate) fn piece(&self) -> usize {
        usize::try_from(self.rate / 20).unwrap_or(usize::MAX).max(1)
    }

    /// Writes piece by piece, each when its time has come; `wrote` hears what the stream took.
    pub(super) async fn write<W: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut W,
        bytes: &[u8],
        wrote: &mut impl FnMut(usize),
    ) -> io::Result<()> {
        for piece in bytes.chunks(self.piece()) {
            tokio::time::sleep_until(self.free).await;
            self.spend(Instant::now(), piece.len());
            write_all(stream, piece, wrote).await?;
        }
        Ok(())
    }

    /// So many bytes are written at `now`.
    fn spend(&mut self, now: Instant, bytes: usize) {
        let nanos = (bytes as u64).saturating_mul(1_000_000_000) / self.rate;
        let earliest = now.checked_sub(CREDIT).unwrap_or(now);
        self.free = self.free.max(earliest) + Duration::from_nanos(nanos);
    }
}

/// Writes all of `bytes`; `wrote` hears of each piece that the stream took.
pub(super) async fn write_all<W: AsyncWrite + Unpin>(
    stream: &mut W,
    mut bytes: &[u8],
    wrote: &mut impl FnMut(usize),
) -> io::Result<()> {
    while !bytes.is_empty() {
        let taken = stream.write(bytes).await?;
        if taken == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        wrote(taken);
        bytes = &bytes[taken..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    const RATE: u64 = 1_000_000;

    /// Bytes that a writer gets rid of in 10 s that wakes up so much later than it wants.
    fn written(late: impl Fn(usize) -> u64) -> u64 {
        let mut pace = Pace::new(RATE);
        let began = Instant::now();
        let (mut now, mut bytes) = (began, 0);
        for wake in 0.. {
            if pace.free > now {
                now = pace.free + Duration::from_millis(late(wake));
            }
            if now >= began + Duration::from_secs(10) {
                break;
            }
            pace.spend(now, pace.piece());
            bytes += pace.piece() as u64;
        }
        bytes
    }

    #[tokio::test(start_paused = true)]
    async fn late_timers_do_not_lower_the_rate_and_do_not_raise_it() {
        let piece = Pace::new(RATE).piece() as u64;
        for bytes in [
            written(|_| 0),
            written(|_| 150),
            written(|wake| [0, 3, 150, 0, 190][wake % 5]),
        ] {
            assert!(bytes <= 10 * RATE + piece, "{bytes}");
            assert!(bytes >= 10 * RATE - RATE / 5 - piece, "{bytes}");
        }
        // What is beyond the credit is lost.
        assert!(written(|_| 2_000) < 3 * RATE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_becomes_a_short_burst_only() {
        let (mut stream, mut far) = tokio::io::duplex(4 * RATE as usize);
        let mut pace = Pace::new(RATE);
        pace.write(&mut stream, &[1; 1000], &mut |_| ())
            .await
            .unwrap();
        far.read_exact(&mut [0; 1000]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        let mut bytes = vec![2; 2 * RATE as usize];
        // Up to a moment before the next piece would be due.
        let most = Duration::from_millis(49);
        let mut wrote = 0;
        let mut count = |bytes| wrote += bytes;
        let writing = tokio::time::timeout(most, pace.write(&mut stream, &bytes, &mut count)).await;
        assert!(writing.is_err());
        let burst = far.read(&mut bytes).await.unwrap();
        assert_eq!(burst, 5 * pace.piece(), "the credit and a piece");
        assert_eq!(wrote, burst);
    }
}
