//! A test with plain UDP datagrams: how many are lost, how many come out of order, how evenly they
//! come.
//!
//! All streams of a side share one socket. A datagram begins with [`Head`]. The client's first ones
//! are greetings, which carry the token that the control connection gave it: nothing is sent to an
//! address that did not show the token.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use tack::Stats;
use tokio::net::UdpSocket;
use tokio::sync::{oneshot, watch};

use super::flow::{Ended, Sending, Shared};
use super::request::MIN_DATAGRAM;
use super::results::{Datagrams, FlowResult, Snapshot};

/// Bytes of a [`Head`].
const HEAD: usize = MIN_DATAGRAM as usize;
/// Between greetings, until the server has one.
const GREETING: Duration = Duration::from_millis(200);
/// How long the last datagrams may take after the peer said that it sent them.
pub(crate) const LINGER: Duration = Duration::from_millis(300);
/// Datagrams sent or received in one turn.
const TURN: usize = 64;
/// Streams whose numbers a datagram may carry are few; a greeting has none of them.
const GREETING_STREAM: u32 = u32::MAX;
/// Far beyond every test.
const NEVER: Duration = Duration::from_secs(7 * 24 * 3600);

/// The beginning of every datagram: all numbers big-endian.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Head {
    token: u64,
    stream: u32,
    /// Counts from 0 in each stream.
    sequence: u64,
    /// When it left, nanoseconds on its sender's clock.
    sent_at: u64,
}

impl Head {
    fn write(self, to: &mut [u8]) {
        to[..8].copy_from_slice(&self.token.to_be_bytes());
        to[8..12].copy_from_slice(&self.stream.to_be_bytes());
        to[12..20].copy_from_slice(&self.sequence.to_be_bytes());
        to[20..HEAD].copy_from_slice(&self.sent_at.to_be_bytes());
    }

    fn read(from: &[u8]) -> Option<Self> {
        let (head, _) = from.split_first_chunk::<HEAD>()?;
        let number = |range: std::ops::Range<usize>| {
            head[range]
                .iter()
                .fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        Some(Self {
            token: number(0..8),
            stream: number(8..12) as u32,
            sequence: number(12..20),
            sent_at: number(20..HEAD),
        })
    }
}

/// One stream of this side.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    figures: Datagrams,
    sent_bytes: u64,
    received_bytes: u64,
    /// The sequence number expected next.
    next: u64,
    /// Transit time of the latest datagram plus the difference of the clocks, nanoseconds.
    transit: Option<i64>,
}

impl Stream {
    fn take(&mut self, head: Head, len: usize, arrived: u64) {
        self.figures.received += 1;
        self.received_bytes += len as u64;
        if head.sequence >= self.next {
            let gap = head.sequence - self.next;
            self.figures.lost = self.figures.lost.saturating_add(gap);
            self.next = head.sequence.saturating_add(1);
        } else {
            self.figures.out_of_order += 1;
            self.figures.lost = self.figures.lost.saturating_sub(1);
        }
        let transit = arrived.wrapping_sub(head.sent_at) as i64;
        if let Some(before) = self.transit.replace(transit) {
            let variation = transit.wrapping_sub(before).unsigned_abs() as f64 / 1e3;
            self.figures.jitter_us += (variation - self.figures.jitter_us) / 16.0;
        }
    }

    fn snapshot(&self, stream: usize) -> Snapshot {
        let mut stats = Stats::default();
        stats.bytes_acked = self.sent_bytes;
        Snapshot {
            stream,
            received: self.received_bytes,
            received_before: None,
            stats,
            datagrams: Some(self.figures),
            times: None,
        }
    }
}

/// Shows the token to the server until dropped.
pub(crate) async fn greet(socket: &UdpSocket, token: u64) -> std::convert::Infallible {
    let mut greeting = [0; HEAD];
    let head = Head {
        token,
        stream: GREETING_STREAM,
        sequence: 0,
        sent_at: 0,
    };
    head.write(&mut greeting);
    loop {
        // What goes wrong here goes wrong for the test as well, and is said there.
        let _ = socket.send(&greeting).await;
        tokio::time::sleep(GREETING).await;
    }
}

/// Waits for the greeting with `token` of a client at `ip`, and connects the socket to where it
/// came from.
pub(crate) async fn await_greeting(socket: &UdpSocket, token: u64, ip: IpAddr) -> io::Result<()> {
    let mut buffer = [0; HEAD + 1];
    loop {
        let (len, from): (usize, SocketAddr) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            // Of an earlier datagram, on some systems.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) => return Err(error),
        };
        let head = Head::read(&buffer[..len]);
        if head.is_some_and(|head| head.token == token && head.stream == GREETING_STREAM)
            && from.ip().to_canonical() == ip.to_canonical()
        {
            return socket.connect(from).await;
        }
    }
}

/// All streams of one side.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// Connected to the peer.
    pub(crate) socket: UdpSocket,
    pub(crate) token: u64,
    pub(crate) streams: usize,
    /// Bytes of a datagram's payload; at least [`MIN_DATAGRAM`].
    pub(crate) length: usize,
    pub(crate) send: Option<Sending>,
    /// Told when this side has sent everything.
    pub(crate) sent: oneshot::Sender<()>,
    /// True once the peer has; from the beginning when it sends nothing.
    pub(crate) peer_sent: watch::Receiver<bool>,
}

/// Sends and receives until both sides have sent everything.
pub(crate) async fn run(traffic: Traffic, mut shared: Shared) -> io::Result<Vec<Ended>> {
    let Traffic {
        socket,
        token,
        streams: count,
        length,
        send,
        sent,
        mut peer_sent,
    } = traffic;
    let mut streams = vec![Stream::default(); count];
    let mut before: Option<Vec<Stream>> =
        (shared.asks.borrow().begun).then(|| vec![Stream::default(); count]);
    let clock = Instant::now();
    let mut began = clock;
    let mut tell = Some(sent);
    let mut sending = send;
    let (mut send_seconds, mut receive_seconds) = (0.0, 0.0);
    let mut outgoing = vec![0x5a; length];
    let mut incoming = vec![0; 1 << 16];
    let (mut total, mut watched) = (0u64, true);
    let mut at = clock;
    let mut deadline = std::pin::pin!(tokio::time::sleep(send.map_or(NEVER, |send| send.time())));
    let receiving = async {
        // The sender of that message is gone, and so is the test.
        let _ = peer_sent.wait_for(|sent| *sent).await;
        tokio::time::sleep(LINGER).await;
    };
    let mut receiving = std::pin::pin!(receiving);
    let mut peer_done = false;
    loop {
        if sending.is_none() {
            if let Some(tell) = tell.take() {
                send_seconds = began.elapsed().as_secs_f64();
                if send.is_some() {
                    at = Instant::now();
                }
                // Nobody listens when the test is over already.
                let _ = tell.send(());
            }
            if peer_done {
                break;
            }
        }
        let due = sending.map(|send| {
            let datagrams = total / count as u64;
            let time = send.bitrate.map_or(Duration::ZERO, |rate| {
                rate.time_for(datagrams.saturating_mul(length as u64))
            });
            tokio::time::Instant::from_std(clock + time)
        });
        let is_due = due.is_some_and(|due| due <= tokio::time::Instant::now());
        tokio::select! {
            biased;
            () = &mut deadline, if sending.is_some() => sending = None,
            () = &mut receiving, if !peer_done => peer_done = true,
            changed = shared.asks.changed(), if watched => {
                watched = changed.is_ok();
                let ask = *shared.asks.borrow_and_update();
                if ask.begun && before.is_none() {
                    before = Some(streams.clone());
                    began = Instant::now();
                }
                for (number, stream) in streams.iter().enumerate() {
                    // The watcher may have stopped reading.
                    let _ = shared.snapshots.try_send(stream.snapshot(number));
                }
            }
            received = socket.recv(&mut incoming), if !peer_done => {
                let mut received = received;
                for _ in 0..TURN {
                    // Errors tell of earlier datagrams; those are lost, and counted so.
                    let Ok(len) = received else { break };
                    let head = Head::read(&incoming[..len]).filter(|head| head.token == token);
                    if let Some(head) = head && let Some(stream) = streams.get_mut(head.stream as usize) {
                        stream.take(head, len, clock.elapsed().as_nanos() as u64);
                        at = Instant::now();
                        receive_seconds = (at - began).as_secs_f64();
                        shared.budget.take(len as u64)?;
                    }
                    received = socket.try_recv(&mut incoming);
                }
            }
            writable = socket.writable(), if is_due => {
                writable?;
                for _ in 0..TURN {
                    let Some(send) = sending else { break };
                    let (number, sequence) = ((total % count as u64) as usize, total / count as u64);
                    let stream = &mut streams[number];
                    let base = before.as_ref().map(|before| before[number].sent_bytes);
                    let left = send.bytes(base).saturating_sub(stream.sent_bytes);
                    if left == 0 {
                        // Each has had its turn, so that all have as much.
                        sending = None;
                        break;
                    }
                    if send.bitrate.is_some_and(|rate| rate.time_for(sequence.saturating_mul(length as u64)) > clock.elapsed()) {
                        break;
                    }
                    let len = usize::try_from(left).unwrap_or(length).clamp(HEAD, length);
                    let sent_at = clock.elapsed().as_nanos() as u64;
                    Head { token, stream: number as u32, sequence, sent_at }.write(&mut outgoing);
                    match socket.try_send(&outgoing[..len]) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                        Err(error) if is_size(&error) => return Err(error),
                        // Sent or refused on the way out: lost, then, and counted so.
                        Ok(_) | Err(_) => {}
                    }
                    total += 1;
                    stream.figures.sent += 1;
                    stream.sent_bytes += len as u64;
                    shared.budget.take(len as u64)?;
                }
                tokio::task::yield_now().await;
            }
            () = tokio::time::sleep_until(due.unwrap_or_else(tokio::time::Instant::now)), if due.is_some() && !is_due => {}
        }
    }
    let before = before.unwrap_or_else(|| vec![Stream::default(); count]);
    let ended = streams.iter().zip(&before).enumerate();
    Ok(ended
        .map(|(number, (stream, before))| Ended {
            result: FlowResult {
                stream: number,
                sent: stream.sent_bytes - before.sent_bytes,
                send_seconds,
                received: stream.received_bytes - before.received_bytes,
                receive_seconds,
                datagrams: Some(stream.figures.since(&before.figures)),
                ..FlowResult::default()
            },
            last: stream.snapshot(number),
            at,
        })
        .collect())
}

/// A datagram that is too long for the path cannot be sent at all.
fn is_size(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(sequence: u64, sent_at: u64) -> Head {
        Head {
            token: 7,
            stream: 0,
            sequence,
            sent_at,
        }
    }

    #[test]
    fn heads_round_trip_and_short_datagrams_have_none() {
        let mut bytes = [0; HEAD];
        let head = Head {
            token: u64::MAX - 5,
            stream: 1023,
            sequence: 1 << 40,
            sent_at: 3,
        };
        head.write(&mut bytes);
        assert_eq!(Head::read(&bytes), Some(head));
        assert_eq!(Head::read(&bytes[..HEAD - 1]), None);
    }

    #[test]
    fn gaps_are_lost_and_latecomers_are_not() {
        let mut stream = Stream::default();
        for sequence in [0, 1, 4, 2, 5] {
            stream.take(head(sequence, 0), 100, 0);
        }
        let figures = stream.figures;
        assert_eq!(
            (figures.received, figures.lost, figures.out_of_order),
            (5, 1, 1)
        );
        assert_eq!(figures.jitter_us, 0.0);
        // A peer may send any number.
        stream.take(head(u64::MAX, u64::MAX), 100, 5);
        stream.take(head(u64::MAX, 0), 100, 5);
    }

    #[test]
    fn jitter_follows_rfc_3550() {
        let mut stream = Stream::default();
        // Sent every millisecond; the second one is 160 µs late.
        stream.take(head(0, 0), 100, 500_000);
        stream.take(head(1, 1_000_000), 100, 1_660_000);
        assert!((stream.figures.jitter_us - 10.0).abs() < 1e-9);
        // The clocks' difference does not matter, even when it is negative.
        let mut early = Stream::default();
        early.take(head(0, 9_000_000), 100, 0);
        early.take(head(1, 10_000_000), 100, 1_000_000);
        assert_eq!(early.figures.jitter_us, 0.0);
    }
}
