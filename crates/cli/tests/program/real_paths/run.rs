//! One run of a path: two endpoints, the emulator between them, and what watches their progress.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tack::{Coalesce, Endpoint, Stream};
use tack_emulator::{Emulator, Sample, Settings, kernel_drops};
use tack_sim::Scenario;
use tack_sim::scenario::{App, Flow, Party, Transport};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::figures::Figures;
use super::paths::{Path, Work};

/// The longest that a handshake, a transfer and a close may take each.
const LONGEST: Duration = Duration::from_secs(120);
/// How often progress is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Shortest time without progress that counts as a stall, and the same in timeouts: as in the
/// simulator.
const LEAST_STALL: Duration = Duration::from_secs(5);
const STALL_TIMEOUTS: u32 = 32;
/// So many datagrams each way show that the path delivers.
const DELIVERED: u64 = 10;

/// What came of a run.
pub(super) struct Outcome {
    pub(super) figures: Figures,
    /// The machine kept up.
    pub(super) is_trusted: bool,
}

/// Runs `path` over `links`, which have its flow as well.
pub(super) async fn measure(path: &Path, links: Scenario, seed: u64) -> Outcome {
    let flow = links.flows[0].clone();
    let Transport::Tcp(tcp) = &flow.transport else {
        panic!("paths have TCP flows");
    };
    let loopback = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let endpoint = || {
        Endpoint::builder()
            .bind(loopback)
            .config(tcp.config.clone())
            // Segments are acknowledged one by one, as the policy decides, however many the machine
            // reads at a time.
            .coalesce(Coalesce::Off)
            .build()
            .expect("a socket on loopback")
    };
    let (far, near) = (endpoint(), endpoint());
    let mut settings = Settings::new(links, loopback, far.local_addr());
    settings.seed = seed;
    settings.sample_interval = LOOK;
    let mut emulator = Emulator::start(settings).expect("the links can be emulated");
    let samples = emulator.take_samples().expect("nobody took them");
    let figures = carry(path, &flow, &tcp.app, [&far, &near], &emulator, samples).await;
    let drops: u64 = [far.local_addr(), near.local_addr()]
        .into_iter()
        .filter_map(kernel_drops)
        .sum();
    let summary = tokio::task::spawn_blocking(move || emulator.stop())
        .await
        .expect("it does not panic")
        .expect("the system does not fail it");
    Outcome {
        figures,
        is_trusted: summary.trust.ok && drops == 0,
    }
}

/// Opens a connection over the emulator, does the path's work and closes it.
async fn carry(
    path: &Path,
    flow: &Flow,
    app: &App,
    [far, near]: [&Endpoint; 2],
    emulator: &Emulator,
    samples: mpsc::Receiver<Sample>,
) -> Figures {
    let begin = Instant::now();
    let listener = far.listen(tack::DEFAULT_PORT).expect("the port is free");
    let opening = async { tokio::join!(listener.accept(), near.connect(emulator.local_addr())) };
    let opened = match tokio::time::timeout(LONGEST, opening).await {
        Ok((Ok((accepted, _)), Ok(connected))) => Ok((accepted, connected)),
        Ok((accepted, connected)) => Err(format!(
            "no connection: {:?}, {:?}",
            accepted.err(),
            connected.err()
        )),
        Err(_) => Err(format!("no connection within {LONGEST:?}")),
    };
    let (mut accepted, mut connected) = match opened {
        Ok(both) => both,
        Err(why) => {
            return Figures {
                completion: LONGEST.as_secs_f64(),
                unfinished: true,
                broken: Some(why),
                ..Figures::default()
            };
        }
    };
    let ends = match flow.from {
        Party::Server => [&accepted, &connected],
        _ => [&connected, &accepted],
    };
    let counts = Counts::default();
    let work = async {
        match app {
            App::Request {
                request,
                response,
                gap,
            } => converse(ends, [*request, *response], *gap, &counts).await,
            _ => send(ends, flow.bytes.unwrap_or(u64::MAX), &counts).await,
        }
    };
    let limit = match path.work {
        Work::Transfer => LONGEST,
        _ => Duration::from_secs_f64(path.duration),
    };
    let mut watcher = Watcher::default();
    let worked = tokio::select! {
        worked = tokio::time::timeout_at(begin + limit, work) => worked,
        never = watcher.watch(ends, samples) => match never {},
    };
    let seconds = begin.elapsed().as_secs_f64();
    let [sent, received] = ends.map(Stream::stats);
    let mut figures = Figures {
        bytes: counts.bytes.load(Ordering::Relaxed) as f64,
        completion: seconds,
        data: sent.data_segments as f64,
        repeated: sent.retransmitted_segments as f64,
        acks: received.acks as f64,
        timeouts: sent.rto_count as f64,
        answers: counts.answers.load(Ordering::Relaxed) as f64,
        stalls: watcher.stalls,
        no_progress: watcher.longest.as_secs_f64(),
        ..Figures::default()
    };
    figures.goodput = 8.0 * figures.bytes / seconds;
    (figures.slower, figures.faster) = (figures.goodput, figures.goodput);
    match worked {
        Ok(Ok(())) => {}
        Ok(Err(error)) => figures.broken = Some(error.to_string()),
        // Bulk data and requests end only with their time.
        Err(_) => figures.unfinished = path.work == Work::Transfer,
    }
    if path.work == Work::Transfer && !figures.unfinished && figures.broken.is_none() {
        let closing = async {
            tokio::try_join!(accepted.shutdown(), connected.shutdown())?;
            tokio::try_join!(accepted.finished(), connected.finished())
        };
        match tokio::time::timeout(LONGEST, closing).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => figures.broken = Some(format!("after its last byte: {error}")),
            Err(_) => figures.unfinished = true,
        }
    }
    figures
}

/// What got through.
#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    answers: AtomicU64,
}

/// Content of a stream: repeats after so many bytes, which no size of a segment or a buffer is a
/// multiple of, so that a piece too many or too few shows.
const PERIOD: usize = 251;
const PIECE: usize = 32 << 10;

/// The bytes of a stream from `at` on, at most `most` of them.
fn content(pattern: &[u8], at: u64, most: u64) -> &[u8] {
    let begin = (at % PERIOD as u64) as usize;
    &pattern[begin..begin + most.min(PIECE as u64) as usize]
}

fn pattern() -> Vec<u8> {
    (0..PIECE + PERIOD).map(|at| (at % PERIOD) as u8).collect()
}

/// Writes the bytes of a stream from `at` up to `end`.
async fn write(stream: &Stream, pattern: &[u8], mut at: u64, end: u64) -> io::Result<()> {
    while at < end {
        match stream.try_write(content(pattern, at, end - at)) {
            Ok(len) => at += len as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads the bytes of a stream from `at` up to `end`, counts them and compares them.
async fn read(
    stream: &Stream,
    pattern: &[u8],
    mut at: u64,
    end: u64,
    count: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    while at < end {
        let most = (end - at).min(PIECE as u64) as usize;
        match stream.try_read(&mut buffer[..most]) {
            Ok(0) => {
                return Err(io::Error::other(format!(
                    "the stream ended after {at} bytes"
                )));
            }
            Ok(len) if buffer[..len] != *content(pattern, at, len as u64) => {
                return Err(io::Error::other(format!("other bytes arrived at {at}")));
            }
            Ok(len) => {
                at += len as u64;
                count.fetch_add(len as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.readable().await,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Data one way.
async fn send([from, to]: [&Stream; 2], bytes: u64, counts: &Counts) -> io::Result<()> {
    let pattern = pattern();
    let writing = write(from, &pattern, 0, bytes);
    let reading = read(to, &pattern, 0, bytes, &counts.bytes);
    tokio::try_join!(writing, reading)?;
    Ok(())
}

/// Requests and responses of so many bytes in turn, until somebody ends it.
async fn converse(
    [asks, answers]: [&Stream; 2],
    [request, response]: [u64; 2],
    gap: Duration,
    counts: &Counts,
) -> io::Result<()> {
    let pattern = pattern();
    let aside = AtomicU64::new(0);
    let asking = async {
        for nth in 0.. {
            write(asks, &pattern, nth * request, (nth + 1) * request).await?;
            read(asks, &pattern, nth * response, (nth + 1) * response, &aside).await?;
            counts.answers.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(gap).await;
        }
        Ok(())
    };
    let answering = async {
        for nth in 0.. {
            let end = (nth + 1) * request;
            read(answers, &pattern, nth * request, end, &counts.bytes).await?;
            write(answers, &pattern, nth * response, (nth + 1) * response).await?;
        }
        Ok(())
    };
    tokio::try_join!(asking, answering).map(drop)
}

/// Whether the senders get on while the path delivers.
#[derive(Debug, Default)]
struct Watcher {
    sides: [Option<Wait>; 2],
    stalls: u64,
    /// Longest time that the oldest unacknowledged byte stayed the same.
    longest: Duration,
}

/// The oldest unacknowledged byte of a side.
#[derive(Clone, Copy, Debug)]
struct Wait {
    una: u64,
    since: Instant,
    /// The sender's timeout then.
    timeout: Duration,
    /// Datagrams that had been delivered each way by then.
    delivered: [u64; 2],
    is_counted: bool,
}

impl Watcher {
    /// Looks at each sample, for good.
    async fn watch(
        &mut self,
        ends: [&Stream; 2],
        mut samples: mpsc::Receiver<Sample>,
    ) -> std::convert::Infallible {
        while let Some(sample) = samples.recv().await {
            for (side, end) in ends.into_iter().enumerate() {
                self.look(side, end, &sample);
            }
        }
        std::future::pending().await
    }

    fn look(&mut self, side: usize, end: &Stream, sample: &Sample) {
        let (now, stats) = (Instant::now(), end.stats());
        let (una, sent) = (
            stats.bytes_acked,
            stats.data_bytes - stats.retransmitted_bytes,
        );
        let delivered = [sample.up.delivered, sample.down.delivered];
        if sent <= una {
            self.sides[side] = None;
            return;
        }
        let wait = self.sides[side].get_or_insert(Wait {
            una,
            since: now,
            timeout: stats.rto,
            delivered,
            is_counted: false,
        });
        if wait.una != una {
            *wait = Wait {
                una,
                since: now,
                timeout: stats.rto,
                delivered,
                is_counted: false,
            };
        }
        let waited = now - wait.since;
        self.longest = self.longest.max(waited);
        let delivers = (0..2).all(|way| delivered[way] >= wait.delivered[way] + DELIVERED);
        let most = LEAST_STALL.max(wait.timeout * STALL_TIMEOUTS);
        if delivers && waited >= most && !wait.is_counted {
            wait.is_counted = true;
            self.stalls += 1;
        }
    }
}
