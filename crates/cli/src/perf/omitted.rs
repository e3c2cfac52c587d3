//! The part of a stream that the results leave out (`--omit`): both sides count from the same byte.
//!
//! The sender decides: what is acknowledged when its omitted part ends is left out. It sends that
//! number of bytes on the control connection. The receiver had those bytes half a round trip
//! earlier, so it remembers for a while when it received how much.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

/// Between two positions that a receiver remembers, at least; their times are interpolated.
const RESOLUTION: Duration = Duration::from_millis(5);
/// Positions that a receiver remembers: more than 2.5 s, which bounds how late the sender's message
/// may arrive without moving the beginning of the time.
const REMEMBERED: usize = 512;

/// A sender's message: the results leave out the first bytes of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Omitted {
    pub(crate) stream: usize,
    pub(crate) bytes: u64,
}

/// What one flow tells its peer, and hears from it.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    tell: Option<mpsc::UnboundedSender<Omitted>>,
    told: Option<oneshot::Receiver<u64>>,
}

/// The messages of all flows of one side for the control connection.
#[derive(Debug)]
pub(crate) struct ToPeer(mpsc::UnboundedReceiver<Omitted>);

/// Takes the peer's messages from the control connection to the flows.
#[derive(Debug)]
pub(crate) struct FromPeer(Vec<Option<oneshot::Sender<u64>>>);

/// What `count` flows need to agree with their peers, when this side sends, or receives. Without
/// an omitted part neither is the case.
pub(crate) fn agreements(
    count: usize,
    sends: bool,
    receives: bool,
) -> (Vec<Agreement>, ToPeer, FromPeer) {
    let (tell, messages) = mpsc::unbounded_channel();
    let (told, flows) = (0..count)
        .map(|_| {
            let (teller, told) = oneshot::channel();
            let agreement = Agreement {
                tell: sends.then(|| tell.clone()),
                told: receives.then_some(told),
            };
            (receives.then_some(teller), agreement)
        })
        .unzip();
    (flows, ToPeer(messages), FromPeer(told))
}

impl Agreement {
    /// Tells the peer, once.
    pub(crate) fn tell(&mut self, stream: usize, bytes: u64) {
        if let Some(tell) = self.tell.take() {
            // A test that ended needs no message.
            let _ = tell.send(Omitted { stream, bytes });
        }
    }

    /// What the flow receives, from `now` on.
    pub(crate) fn received(&mut self, now: Instant) -> Received {
        let told = self.told.take();
        Received {
            total: 0,
            omitted: told.is_none().then_some(0),
            began: told.is_none().then_some(now),
            told,
            passed: VecDeque::from([(0, now)]),
        }
    }
}

impl ToPeer {
    /// The next message; `None` when every flow has told its own, or ended.
    pub(crate) async fn next(&mut self) -> Option<Omitted> {
        self.0.recv().await
    }
}

impl FromPeer {
    /// Takes a message to its flow.
    pub(crate) fn hear(&mut self, omitted: Omitted) -> io::Result<()> {
        let flow = self.0.get_mut(omitted.stream).and_then(Option::take);
        let flow = flow.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "the peer says what to omit of stream {} unasked",
                    omitted.stream
                ),
            )
        })?;
        // A flow that ended needs no message.
        let _ = flow.send(omitted.bytes);
        Ok(())
    }
}

/// Bytes that a flow received, and from which of them on they count.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) total: u64,
    /// The first bytes, which do not count; unknown until the peer says it.
    pub(crate) omitted: Option<u64>,
    told: Option<oneshot::Receiver<u64>>,
    /// When the last of those arrived.
    began: Option<Instant>,
    /// How many bytes were there, and when; the oldest first.
    passed: VecDeque<(u64, Instant)>,
}

impl Received {
    /// More bytes arrived.
    pub(crate) fn add(&mut self, bytes: u64, now: Instant) {
        self.total += bytes;
        if self.began.is_some() {
            return;
        }
        let last = self.passed.back();
        if last.is_none_or(|last| now.saturating_duration_since(last.1) >= RESOLUTION) {
            if self.passed.len() == REMEMBERED {
                self.passed.pop_front();
            }
            self.passed.push_back((self.total, now));
        }
        self.begin(now);
    }

    /// Whether the peer still has to say what to omit.
    pub(crate) fn is_open(&self) -> bool {
        self.told.is_some()
    }

    /// Waits until it does.
    pub(crate) async fn told(&mut self) -> io::Result<()> {
        let Some(told) = &mut self.told else {
            return Ok(());
        };
        let omitted = told.await.map_err(|_| {
            io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the peer did not say where its results begin",
            )
        })?;
        self.told = None;
        self.omitted = Some(omitted);
        self.begin(Instant::now());
        Ok(())
    }

    /// Sets when the counted part began, once that is known and in the past.
    fn begin(&mut self, now: Instant) {
        if let Some(omitted) = self.omitted
            && self.total >= omitted
            && self.began.is_none()
        {
            self.began = Some(self.time_of(omitted, now));
            self.passed = VecDeque::new();
        }
    }

    /// When so many bytes were there, which are there `now`.
    fn time_of(&self, bytes: u64, now: Instant) -> Instant {
        let after = self.passed.partition_point(|(passed, _)| *passed < bytes);
        let (there, then) = self.passed.get(after).copied().unwrap_or((self.total, now));
        let Some((here, earlier)) = after.checked_sub(1).map(|before| self.passed[before]) else {
            return then;
        };
        let share = (bytes - here) as f64 / (there - here).max(1) as f64;
        earlier + (then - earlier).mul_f64(share.min(1.0))
    }

    /// Bytes that count, and seconds from the first of them until `end`.
    pub(crate) fn counted(&self, end: Instant) -> (u64, f64) {
        let bytes = self.total.saturating_sub(self.omitted.unwrap_or_default());
        let began = self.began.unwrap_or(end);
        (bytes, end.saturating_duration_since(began).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// 100 bytes each millisecond until 100 ms.
    fn receiving(agreement: &mut Agreement) -> (Received, Instant) {
        let start = Instant::now();
        let mut received = agreement.received(start);
        for ms in 1..=100 {
            received.add(100, start + ms * MS);
        }
        (received, start)
    }

    #[tokio::test]
    async fn a_receiver_counts_from_where_the_sender_says() {
        // In the past, and later than all that has come.
        for (omitted, from) in [(4_120, 41.2), (0, 0.0), (9_990, 99.9), (15_000, 150.0)] {
            let (mut flows, _, mut from_peer) = agreements(1, false, true);
            let (mut received, start) = receiving(&mut flows[0]);
            assert!(received.is_open());
            let message = Omitted {
                stream: 0,
                bytes: omitted,
            };
            from_peer.hear(message).unwrap();
            assert!(from_peer.hear(message).is_err(), "once");
            received.told().await.unwrap();
            assert!(!received.is_open());
            for ms in 101..=200 {
                received.add(100, start + ms * MS);
            }
            let (bytes, seconds) = received.counted(start + 200 * MS);
            assert_eq!(bytes, 20_000 - omitted);
            let expected = (200.0 - from) / 1e3;
            assert!((seconds - expected).abs() < 1e-6, "{omitted}: {seconds}");
        }
    }

    #[tokio::test]
    async fn what_is_remembered_is_bounded() {
        let (mut flows, _, mut from_peer) = agreements(1, false, true);
        let start = Instant::now();
        let mut received = flows[0].received(start);
        for second in 1..=1_000 {
            received.add(1, start + second * 1_000 * MS);
        }
        assert_eq!(received.passed.len(), REMEMBERED);
        // Longer ago than it remembers: from the first that it does.
        let message = Omitted {
            stream: 0,
            bytes: 3,
        };
        from_peer.hear(message).unwrap();
        received.told().await.unwrap();
        let (bytes, seconds) = received.counted(start + 1_000 * 1_000 * MS);
        assert_eq!((bytes, seconds), (997, 511.0));
    }

    #[tokio::test]
    async fn a_peer_that_says_nothing_ends_the_wait() {
        let (mut flows, _, from_peer) = agreements(1, false, true);
        let mut received = flows[0].received(Instant::now());
        drop(from_peer);
        assert!(received.told().await.is_err());
        // Without an omitted part there is nothing to wait for.
        let (mut flows, mut to_peer, mut from_peer) = agreements(1, false, false);
        let (received, start) = receiving(&mut flows[0]);
        assert!(!received.is_open());
        assert_eq!(received.counted(start + 100 * MS), (10_000, 0.1));
        let unasked = Omitted {
            stream: 0,
            bytes: 1,
        };
        assert!(from_peer.hear(unasked).is_err());
        assert_eq!(to_peer.next().await, None);
    }

    #[tokio::test]
    async fn a_sender_tells_once() {
        let (mut flows, mut to_peer, _) = agreements(2, true, false);
        for flow in &mut flows {
            flow.tell(1, 5);
            flow.tell(1, 6);
        }
        let message = Omitted {
            stream: 1,
            bytes: 5,
        };
        assert_eq!(to_peer.next().await, Some(message));
        assert_eq!(to_peer.next().await, Some(message));
        assert_eq!(to_peer.next().await, None);
    }
}
