//! A connection that exchanges requests and responses, one after the other: how long a program
//! waits for an answer over this path.
//!
//! The client sends a request of some bytes and waits for as many; the server answers each request
//! when it has all of it. The time of a transaction is from the first byte written to the last one
//! read, on the client's clock.

use std::io;
use std::time::{Duration, Instant};

use tack::Stats;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::flow::{Ended, Job, Shared};
use super::latency::Times;
use super::omitted::Agreement;
use super::request::{Exchange, Limit};
use super::results::{FlowResult, Snapshot};
use crate::meeting::PeerStream;
use crate::net::TransportFigures;

/// A connection's counters, and where its results begin.
struct Counts {
    stream: usize,
    /// Payload, each way.
    sent: u64,
    received: u64,
    began: Instant,
    /// Set once the results begin: sent, received, and the transport's figures then.
    before: Option<(u64, u64, TransportFigures)>,
    /// A server measures none.
    times: Option<Times>,
    /// Those that the results leave out.
    omitted: Option<Times>,
}

impl Counts {
    fn snapshot(&self, mut stats: Stats) -> Snapshot {
        stats.bytes_acked = self.sent;
        Snapshot {
            stream: self.stream,
            received: self.received,
            received_before: Some(0),
            stats,
            datagrams: None,
            times: self.times.clone(),
        }
    }

    fn answer(&mut self, stats: Stats, shared: &mut Shared) {
        let ask = *shared.asks.borrow_and_update();
        if ask.begun && self.before.is_none() {
            let figures = TransportFigures::from(&stats);
            self.before = Some((self.sent, self.received, figures));
            self.began = Instant::now();
            self.omitted = self.times.clone();
        }
        // The watcher may have stopped reading.
        let _ = shared.snapshots.try_send(self.snapshot(stats));
    }

    fn transaction(&mut self, time: Duration) {
        if let Some(times) = &mut self.times {
            times.add(time);
        }
    }
}

/// What is being waited for.
enum Waiting {
    Write(usize),
    Read(usize),
}

/// Runs one connection to its end: with something to send as the client, else as the server.
pub(crate) async fn run(
    stream: PeerStream,
    job: Job,
    exchange: Exchange,
    mut agreement: Agreement,
    mut shared: Shared,
) -> io::Result<Ended> {
    let began = Instant::now();
    let is_client = job.send.is_some();
    // Nothing of this stream is left out by bytes: each side knows its transactions.
    agreement.tell(job.stream, 0);
    let mut agreed = agreement.received(began);
    let mut counts = Counts {
        stream: job.stream,
        sent: 0,
        received: 0,
        began,
        before: (shared.asks.borrow().begun).then(Default::default),
        times: is_client.then(Times::new),
        omitted: None,
    };
    let outgoing = vec![0x5a; exchange.bytes as usize];
    let mut incoming = vec![0; exchange.bytes as usize];
    let (mut reader, mut writer) = stream.into_split();
    let time = job.send.map_or(Duration::MAX, |send| send.time());
    let deadline = tokio::time::sleep(time.min(Duration::from_secs(7 * 24 * 3600)));
    let mut deadline = std::pin::pin!(deadline);
    let mut over = false;
    let mut watched = true;
    let mut waiting = match is_client {
        true => Waiting::Write(0),
        false => Waiting::Read(0),
    };
    let mut asked_at = began;
    loop {
        // A transaction that has begun is waited for; its end is the end.
        let is_between = match waiting {
            Waiting::Write(0) => is_client,
            Waiting::Read(0) => !is_client,
            _ => false,
        };
        if is_client && is_between {
            let before = counts.before.as_ref().map(|before| before.0);
            let full = match job.send.map(|send| (send.limit, before)) {
                Some((Limit::Bytes(bytes), Some(before))) => counts.sent - before >= bytes,
                _ => false,
            };
            if over || full {
                break;
            }
            asked_at = Instant::now();
        }
        tokio::select! {
            biased;
            () = &mut deadline, if is_client && !over => over = true,
            changed = shared.asks.changed(), if watched => {
                watched = changed.is_ok();
                counts.answer(writer.stats(), &mut shared);
            }
            written = async { match waiting {
                Waiting::Write(from) => writer.write(&outgoing[from..]).await,
                Waiting::Read(_) => std::future::pending().await,
            } } => {
                let written = written?;
                let Waiting::Write(from) = waiting else { continue };
                counts.sent += written as u64;
                shared.budget.take(written as u64)?;
                waiting = match from + written {
                    end if end == outgoing.len() => Waiting::Read(0),
                    end => Waiting::Write(end),
                };
            }
            read = async { match waiting {
                Waiting::Read(from) => reader.read(&mut incoming[from..]).await,
                Waiting::Write(_) => std::future::pending().await,
            } } => {
                let read = read?;
                let Waiting::Read(from) = waiting else { continue };
                if read == 0 {
                    if is_client || from > 0 {
                        return Err(io::Error::new(
                            io::ErrorKind::UnexpectedEof,
                            "the peer ended the connection before its answer",
                        ));
                    }
                    break;
                }
                counts.received += read as u64;
                shared.budget.take(read as u64)?;
                waiting = match from + read {
                    end if end == incoming.len() => {
                        if is_client {
                            counts.transaction(asked_at.elapsed());
                        }
                        Waiting::Write(0)
                    }
                    end => Waiting::Read(end),
                };
            }
        }
    }
    let at = Instant::now();
    let seconds = counts.began.elapsed().as_secs_f64();
    agreed.told().await?;
    let stats = writer.stats();
    let last = counts.snapshot(stats.clone());
    writer.shutdown().await?;
    if is_client {
        // The server ends its side when it has seen our end.
        while reader.read(&mut incoming).await? > 0 {}
    }
    let (sent, received, figures) = counts.before.take().unwrap_or_default();
    let omitted = counts.omitted.as_ref();
    let times = counts.times.as_ref().map(|times| times.since(omitted));
    Ok(Ended {
        result: FlowResult {
            stream: job.stream,
            sent: counts.sent - sent,
            send_seconds: seconds,
            received: counts.received - received,
            receive_seconds: seconds,
            transport: TransportFigures::from(&stats).since(&figures),
            datagrams: None,
            latency: times.as_ref().map(Times::latency),
            times,
        },
        last,
        at,
    })
}
