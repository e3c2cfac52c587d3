//! One data connection of a test: writes or reads as fast as it goes, and shows its state when asked.

use std::io;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tack::{Stats, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

use super::protocol::Limit;
use crate::net::TransportFigures;

/// Bytes of one write and of one read.
const BLOCK: usize = 128 << 10;

/// What a connection does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) stream: usize,
    /// Send until this; `None` sends nothing.
    pub(crate) send: Option<Limit>,
    /// Receive until the peer's end.
    pub(crate) receive: bool,
}

/// The state of a connection at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) stream: usize,
    pub(crate) received: u64,
    pub(crate) stats: Stats,
}

/// One side of a finished connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FlowResult {
    pub(crate) stream: usize,
    /// Bytes given to the connection.
    pub(crate) sent: u64,
    /// Seconds that took.
    pub(crate) send_seconds: f64,
    /// Bytes read.
    pub(crate) received: u64,
    /// Seconds from the test's beginning to the end of the peer's data.
    pub(crate) receive_seconds: f64,
    pub(crate) transport: TransportFigures,
}

impl FlowResult {
    /// The state at the end: all that was sent is acknowledged.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let transport = &self.transport;
        Snapshot {
            stream: self.stream,
            received: self.received,
            stats: Stats {
                bytes_acked: self.sent,
                retransmitted_segments: transport.retransmitted_segments,
                acks: transport.acks_sent,
                acks_received: transport.acks_received,
                cwnd: transport.cwnd,
                srtt: transport
                    .srtt_us
                    .map(|srtt| Duration::from_secs_f64(srtt / 1e6)),
                ..Stats::default()
            },
        }
    }
}

/// Runs one connection to its end. Each change of `ticks` is answered with a [`Snapshot`].
pub(crate) async fn run(
    stream: Stream,
    job: Job,
    mut ticks: watch::Receiver<u64>,
    snapshots: mpsc::Sender<Snapshot>,
) -> io::Result<FlowResult> {
    let began = Instant::now();
    let mut result = FlowResult {
        stream: job.stream,
        ..FlowResult::default()
    };
    let outgoing = vec![0x5a; if job.send.is_some() { BLOCK } else { 0 }];
    let mut incoming = vec![0; if job.receive { BLOCK } else { 0 }];
    let (mut reader, mut writer) = stream.into_split();
    let (mut sending, mut receiving) = (job.send.is_some(), job.receive);
    let mut left = match job.send {
        Some(Limit::Bytes(bytes)) => bytes,
        _ => u64::MAX,
    };
    let deadline = match job.send {
        Some(Limit::Millis(millis)) => Duration::from_millis(millis),
        // Far beyond every test; the byte count ends this one.
        _ => Duration::from_secs(7 * 24 * 3600),
    };
    let mut deadline = std::pin::pin!(tokio::time::sleep(deadline));
    let mut ticking = true;
    while sending || receiving {
        // Nothing when nothing is to be sent: the branches below are set up even when they are not taken.
        let block = &outgoing[..usize::try_from(left).unwrap_or(BLOCK).min(outgoing.len())];
        tokio::select! {
            biased;
            () = &mut deadline, if sending => left = 0,
            changed = ticks.changed(), if ticking => {
                ticking = changed.is_ok();
                let snapshot = Snapshot { stream: job.stream, received: result.received, stats: writer.stats() };
                // Whoever asked may have stopped listening.
                let _ = snapshots.try_send(snapshot);
                continue;
            }
            written = writer.write(block), if sending => {
                let written = written? as u64;
                result.sent += written;
                left -= written;
            }
            read = reader.read(&mut incoming), if receiving => {
                let read = read?;
                result.received += read as u64;
                if read == 0 {
                    receiving = false;
                    result.receive_seconds = began.elapsed().as_secs_f64();
                }
            }
        }
        if sending && left == 0 {
            sending = false;
            result.send_seconds = began.elapsed().as_secs_f64();
            writer.shutdown().await?;
        }
    }
    if job.send.is_some() {
        // The tail is part of the test: its retransmissions and acknowledgements count.
        writer.finished().await?;
    }
    result.transport = TransportFigures::from(&writer.stats());
    if job.send.is_none() {
        writer.shutdown().await?;
    }
    Ok(result)
}

/// Processor time of this process so far, all threads.
pub(crate) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}
