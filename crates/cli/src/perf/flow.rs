//! One data connection of a test: writes or reads as fast as it goes, and shows its state when
//! asked.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tack::Stats;
use tack_base::Rate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

use super::omitted::{Agreement, Received};
use super::request::Limit;
use super::results::{FlowResult, Snapshot};
use crate::meeting::PeerStream;
use crate::net::TransportFigures;

/// Bytes of one write and of one read.
pub(crate) const BLOCK: usize = 128 << 10;
/// What a bitrate lets pass is written in pieces of this time.
const PIECE: Duration = Duration::from_millis(10);
/// A time later than the end of every test.
const NEVER: Duration = Duration::from_secs(7 * 24 * 3600);

/// What a connection has to send and receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) stream: usize,
    pub(crate) send: Option<Sending>,
    /// Receive until the peer's end.
    pub(crate) receive: bool,
    /// Bytes that were sent before the test; they count nowhere.
    pub(crate) preface: u64,
}

/// How much to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    /// Counts from the end of `omit`.
    pub(crate) limit: Limit,
    pub(crate) omit: Duration,
    /// Maximum rate; `None` sends without a limit.
    pub(crate) bitrate: Option<Rate>,
}

impl Sending {
    /// How long to send; a count of bytes ends later tests.
    pub(crate) fn time(&self) -> Duration {
        match self.limit {
            Limit::Millis(millis) => self.omit + Duration::from_millis(millis),
            Limit::Bytes(_) => NEVER,
        }
    }

    /// Bytes to send when `before` of them went before the results began, which they have or have
    /// not.
    pub(crate) fn bytes(&self, before: Option<u64>) -> u64 {
        match (self.limit, before) {
            (Limit::Bytes(bytes), Some(before)) => before.saturating_add(bytes),
            _ => u64::MAX,
        }
    }
}

/// What the watcher of a test asks for. A change of it asks every flow for a [`Snapshot`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SnapshotRequest {
    pub(crate) looks: u64,
    /// The part that the results leave out is over.
    pub(crate) begun: bool,
}

/// State that the flows of one side share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) asks: watch::Receiver<SnapshotRequest>,
    pub(crate) snapshots: mpsc::Sender<Snapshot>,
    pub(crate) budget: Arc<Budget>,
}

/// Limit on the bytes of a test, over all flows.
#[derive(Debug)]
pub(crate) struct Budget {
    most: u64,
    left: AtomicU64,
}

impl Budget {
    pub(crate) fn new(most: Option<u64>) -> Arc<Self> {
        let most = most.unwrap_or(u64::MAX);
        Arc::new(Self {
            most,
            left: AtomicU64::new(most),
        })
    }

    /// Accounts for `bytes`; an error once there are more than allowed.
    pub(crate) fn take(&self, bytes: u64) -> io::Result<()> {
        let take = |left: u64| left.checked_sub(bytes);
        match self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
        {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::other(format!(
                "the test moved more than the {} bytes that this server allows (--max-bytes)",
                self.most
            ))),
        }
    }
}

/// A finished connection: its result, and the state that it ended in.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) result: FlowResult,
    pub(crate) last: Snapshot,
    /// When its last bytes moved.
    pub(crate) at: Instant,
}

/// Counters of a connection, and their values where its results begin.
struct Counts {
    job: Job,
    sent: u64,
    received: Received,
    began: Instant,
    /// Set once the results begin: acknowledged by then.
    before: Option<(u64, TransportFigures)>,
    agreement: Agreement,
}

impl Counts {
    fn snapshot(&self, mut stats: Stats) -> Snapshot {
        stats.bytes_acked = stats
            .bytes_acked
            .saturating_sub(self.job.preface)
            .min(self.sent);
        Snapshot {
            stream: self.job.stream,
            received: self.received.total,
            received_before: self.received.omitted,
            stats,
            datagrams: None,
            times: None,
        }
    }

    /// Sends the watcher a snapshot.
    fn answer(&mut self, stats: Stats, shared: &mut Shared) {
        let ask = *shared.asks.borrow_and_update();
        let snapshot = self.snapshot(stats);
        if ask.begun && self.before.is_none() {
            let figures = TransportFigures::from(&snapshot.stats);
            let acked = snapshot.stats.bytes_acked;
            self.before = Some((acked, figures));
            self.began = Instant::now();
            self.agreement.tell(self.job.stream, acked);
        }
        // The watcher may have stopped reading.
        let _ = shared.snapshots.try_send(snapshot);
    }

    fn elapsed(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}

/// Runs one connection to its end.
pub(crate) async fn run(
    stream: PeerStream,
    job: Job,
    mut agreement: Agreement,
    mut shared: Shared,
) -> io::Result<Ended> {
    let began = Instant::now();
    let mut counts = Counts {
        job,
        sent: 0,
        received: agreement.received(began),
        began,
        agreement,
        before: (shared.asks.borrow().begun).then(Default::default),
    };
    let mut result = FlowResult {
        stream: job.stream,
        ..FlowResult::default()
    };
    let outgoing = vec![0x5a; if job.send.is_some() { BLOCK } else { 0 }];
    let mut incoming = vec![0; if job.receive { BLOCK } else { 0 }];
    let (mut reader, mut writer) = stream.into_split();
    let (mut sending, mut receiving) = (job.send, job.receive);
    let time = job.send.map_or(NEVER, |send| send.time());
    let mut deadline = std::pin::pin!(tokio::time::sleep(time));
    let pace = Pace::new(job.send.and_then(|send| send.bitrate));
    let mut watched = true;
    let mut received_at = began;
    while sending.is_some() || receiving {
        let before = counts.before.as_ref().map(|before| before.0);
        let left = sending.map_or(0, |send| send.bytes(before).saturating_sub(counts.sent));
        // Nothing when nothing is to be sent: the branches below are set up even when they are not
        // taken.
        let most = usize::try_from(left).unwrap_or(BLOCK).min(outgoing.len());
        let pause = pace.pause(counts.sent, tokio::time::Instant::now());
        let block = &outgoing[..most.min(pace.piece)];
        let mut finish = sending.is_some() && left == 0;
        if !finish {
            tokio::select! {
                biased;
                () = &mut deadline, if sending.is_some() => finish = true,
                changed = shared.asks.changed(), if watched => {
                    watched = changed.is_ok();
                    counts.answer(writer.stats(), &mut shared);
                }
                told = counts.received.told(), if counts.received.is_open() => told?,
                () = tokio::time::sleep_until(pause.unwrap_or(pace.began)), if sending.is_some() && pause.is_some() => {}
                written = writer.write(block), if sending.is_some() && pause.is_none() => {
                    let written = written? as u64;
                    counts.sent += written;
                    shared.budget.take(written)?;
                }
                read = reader.read(&mut incoming), if receiving => {
                    let read = read?;
                    received_at = Instant::now();
                    counts.received.add(read as u64, received_at);
                    shared.budget.take(read as u64)?;
                    if read == 0 {
                        receiving = false;
                    }
                }
            }
        }
        if finish {
            sending = None;
            result.send_seconds = counts.elapsed();
            writer.shutdown().await?;
        }
    }
    if job.send.is_some() {
        // The tail is part of the test: its retransmissions and acknowledgements count, and the
        // watcher sees it.
        let mut finished = std::pin::pin!(writer.finished());
        loop {
            tokio::select! {
                biased;
                ended = &mut finished => break ended?,
                changed = shared.asks.changed(), if watched => {
                    watched = changed.is_ok();
                    counts.answer(writer.stats(), &mut shared);
                }
            }
        }
    }
    let at = Instant::now();
    // Nothing is left out of a test that ended before its results began.
    counts.agreement.tell(job.stream, 0);
    counts.received.told().await?;
    let last = counts.snapshot(writer.stats());
    if job.send.is_none() {
        writer.shutdown().await?;
    }
    let (sent, figures) = counts.before.take().unwrap_or_default();
    result.sent = counts.sent - sent;
    (result.received, result.receive_seconds) = counts.received.counted(received_at);
    result.transport = TransportFigures::from(&last.stats).since(&figures);
    Ok(Ended { result, last, at })
}

/// Keeps writes within a bitrate.
#[derive(Clone, Copy, Debug)]
struct Pace {
    rate: Option<Rate>,
    began: tokio::time::Instant,
    /// Bytes of one write.
    piece: usize,
}

impl Pace {
    fn new(rate: Option<Rate>) -> Self {
        let piece = rate.map_or(u64::MAX, |rate| rate.bytes_in(PIECE).max(1));
        Self {
            rate,
            began: tokio::time::Instant::now(),
            piece: usize::try_from(piece).unwrap_or(usize::MAX),
        }
    }

    /// Until when to write nothing, when `sent` bytes went until `now`.
    fn pause(&self, sent: u64, now: tokio::time::Instant) -> Option<tokio::time::Instant> {
        let due = self.began + self.rate?.time_for(sent);
        (due > now).then_some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_where_it_says() {
        let budget = Budget::new(Some(10));
        assert!(budget.take(10).is_ok());
        let exceeded = budget.take(1).unwrap_err();
        assert!(exceeded.to_string().contains("10 bytes"), "{exceeded}");
        assert!(Budget::new(None).take(u64::MAX / 2).is_ok());
    }

    #[test]
    fn a_bitrate_is_kept_in_pieces() {
        let pace = Pace::new(Some(Rate::from_bits_per_sec(8_000_000)));
        assert_eq!(pace.piece, 10_000);
        assert_eq!(pace.pause(0, pace.began), None);
        let due = pace.pause(10_000, pace.began).unwrap();
        assert_eq!(due - pace.began, Duration::from_millis(10));
        assert_eq!(pace.pause(10_000, due), None);
        assert_eq!(Pace::new(None).pause(u64::MAX, due), None);
    }
}
