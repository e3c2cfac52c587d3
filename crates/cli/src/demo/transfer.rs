//! One transfer over real sockets, with the emulated link between them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use indicatif::ProgressBar;
use tack::{AckKind, Algorithm, Coalesce, Config, Endpoint, Stats, Stream};
use tack_emulator::{Emulator, Lateness, Sample, Settings, Trust, kernel_drops};
use tack_sim::Scenario;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::content::Content;
use super::figures::{Figures, Point, Waits, limit};
use super::virtual_run::INTERVAL;
use crate::emulate::cannot_start;
use crate::exit::Failure;

/// A peer that acknowledges nothing for so long is given up.
const SILENCE: Duration = Duration::from_secs(20);

/// How long the farewells may take once all bytes are there.
const FAREWELL: Duration = Duration::from_secs(3);

/// What came of a transfer.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) figures: Figures,
    pub(crate) hash: blake3::Hash,
    pub(crate) lateness: Lateness,
    pub(crate) trust: Trust,
}

/// Sends `content` from a host on the wire to a Wi-Fi station that connects to it.
pub(crate) async fn run(
    links: &Scenario,
    seed: u64,
    congestion: &Algorithm,
    ack: &AckKind,
    content: &Content,
    bar: &ProgressBar,
) -> Result<Measured, Failure> {
    let failed = |error: anyhow::Error| Failure::failed("the transfer failed", error);
    let loopback = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let config = Config {
        congestion: *congestion,
        ack: *ack,
        user_timeout: Some(SILENCE),
        ..Config::default()
    };
    let endpoint = |coalesce| {
        Endpoint::builder()
            .bind(loopback)
            .config(config.clone())
            .coalesce(coalesce)
            .build()
    };
    let cannot_bind = |error| Failure::network(format!("cannot open a socket: {error}"));
    let server = endpoint(Coalesce::Batches).map_err(cannot_bind)?;
    // Each segment is acknowledged by itself, or the count would say how the machine schedules, not
    // what the policy does.
    let station = endpoint(Coalesce::Off).map_err(cannot_bind)?;
    let listener = server
        .listen(tack::DEFAULT_PORT)
        .map_err(|error| Failure::network(format!("cannot listen: {error}")))?;
    let mut settings = Settings::new(links.clone(), loopback, server.local_addr());
    settings.seed = seed;
    settings.sample_interval = INTERVAL;
    let mut emulator = Emulator::start(settings).map_err(cannot_start)?;
    let samples = emulator.take_samples();
    let address = emulator.local_addr();

    let received = Arc::new(AtomicU64::new(0));
    let watching =
        samples.map(|samples| tokio::spawn(watch(samples, Arc::clone(&received), bar.clone())));
    let began = Instant::now();
    let sending = async {
        let (mut stream, _) = listener.accept().await.context("no client connected")?;
        content
            .write_to(&mut stream)
            .await
            .context("cannot send the file")?;
        stream.shutdown().await?;
        Ok::<_, anyhow::Error>(stream)
    };
    let receiving = async {
        let stream = station.connect(address).await.context("cannot connect")?;
        receive(stream, content.bytes, &received).await
    };
    let (sender, got) = tokio::try_join!(sending, receiving).map_err(failed)?;
    let Received {
        stream: receiver,
        hash,
        ended,
    } = got;
    let seconds = ended.duration_since(began).as_secs_f64();
    // Both ends learn that the other has everything, so that the counts are final.
    let farewells = async { tokio::join!(sender.finished(), receiver.finished()) };
    let _late = tokio::time::timeout(FAREWELL, farewells).await;
    let (sent, got) = (sender.stats(), receiver.stats());
    let lost_outside: u64 = [server.local_addr(), station.local_addr()]
        .into_iter()
        .filter_map(kernel_drops)
        .sum();
    let summary = tokio::task::spawn_blocking(move || emulator.stop())
        .await
        .map_err(|error| failed(error.into()))?
        .map_err(|error| failed(error.into()))?;
    let series = match watching {
        Some(watching) => watching.await.map_err(|error| failed(error.into()))?,
        None => Vec::new(),
    };
    let mut trust = summary.trust;
    if lost_outside > 0 {
        trust.ok = false;
        trust.reasons.push(format!(
            "the kernel dropped {lost_outside} datagrams before the endpoints could take them"
        ));
    }
    let limited_by = if trust.ok {
        limit(&summary.air_shares, waits(&sent))
    } else {
        "this machine, which did not keep up".into()
    };
    Ok(Measured {
        figures: Figures {
            goodput_bps: content.bytes as f64 * 8.0 / seconds,
            seconds,
            data_segments: sent.data_segments,
            retransmitted_segments: sent.retransmitted_segments,
            acks: got.acks,
            air: summary.air_shares,
            collisions: summary.wlan.as_ref().map_or(0, |wlan| wlan.collisions),
            radios: summary.wlan.as_ref().map(Into::into).unwrap_or_default(),
            limited_by,
            series,
        },
        hash,
        lateness: summary.lateness,
        trust,
    })
}

/// A file that arrived.
struct Received {
    /// Where it came from; the connection has ended.
    stream: Stream,
    hash: blake3::Hash,
    /// When the last byte came.
    ended: Instant,
}

/// Reads to the end, hashing, and ends the connection.
async fn receive(mut stream: Stream, bytes: u64, received: &AtomicU64) -> anyhow::Result<Received> {
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; 64 << 10];
    let mut ended = Instant::now();
    let mut got = 0;
    loop {
        let len = stream
            .read(&mut chunk)
            .await
            .context("the connection broke")?;
        if len == 0 {
            break;
        }
        ended = Instant::now();
        hasher.update(&chunk[..len]);
        got += len as u64;
        received.store(got, Ordering::Relaxed);
        anyhow::ensure!(got <= bytes, "received more bytes than were sent");
    }
    stream.shutdown().await?;
    Ok(Received {
        stream,
        hash: hasher.finalize(),
        ended,
    })
}

/// Turns samples into a series until there are no more.
async fn watch(
    mut samples: mpsc::Receiver<Sample>,
    received: Arc<AtomicU64>,
    bar: ProgressBar,
) -> Vec<Point> {
    let mut series = Vec::new();
    let (mut before, mut bytes_before) = (Sample::default(), 0);
    while let Some(sample) = samples.recv().await {
        let bytes = received.load(Ordering::Relaxed);
        bar.set_position(bytes);
        let seconds = (sample.seconds - before.seconds).max(1e-3);
        series.push(Point {
            seconds: sample.seconds,
            goodput_bps: (bytes - bytes_before) as f64 * 8.0 / seconds,
            queue: sample.ap_queue,
            acks_per_second: Some((sample.up.acks - before.up.acks) as f64 / seconds),
        });
        (before, bytes_before) = (sample, bytes);
    }
    series
}

fn waits(stats: &Stats) -> Waits {
    Waits {
        cwnd: stats.limited_by_cwnd.as_secs_f64(),
        rwnd: stats.limited_by_rwnd.as_secs_f64(),
        pacing: stats.limited_by_pacing.as_secs_f64(),
        app: stats.limited_by_app.as_secs_f64(),
    }
}
