//! Wakers are foreign code: they may use the endpoint when they are woken, and drop a stream when
//! they are dropped.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tack::{Endpoint, Stream};
use tokio::io::{AsyncRead, ReadBuf};

use crate::pair::{Pair, within};

/// A task that owns a stream.
struct Owner {
    _stream: Stream,
}

impl Wake for Owner {
    fn wake(self: Arc<Self>) {}
}

/// A task that looks at its endpoint as soon as it is woken.
struct Curious {
    endpoint: Endpoint,
    woken: AtomicUsize,
}

impl Wake for Curious {
    fn wake(self: Arc<Self>) {
        self.endpoint.carrier_stats();
        self.woken.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs `work`, which may hang, on a thread that the test need not wait for.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, waiting) = tokio::sync::oneshot::channel();
    let thread = std::thread::spawn(move || {
        let _ = done.send(work());
    });
    let result = within(waiting).await.expect("panicked");
    thread.join().unwrap();
    result
}

fn owner(stream: Stream) -> Waker {
    Waker::from(Arc::new(Owner { _stream: stream }))
}

fn poll_read(stream: &mut Stream, waker: &Waker) {
    let mut space = [0; 8];
    let mut cx = Context::from_waker(waker);
    let read = pin!(stream).poll_read(&mut cx, &mut ReadBuf::new(&mut space));
    assert!(read.is_pending());
}

#[tokio::test]
async fn a_replaced_waker_may_own_a_stream() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (mut reading, _server) = pair.connect().await;
    let (owned, _other) = pair.connect().await;
    apart(move || {
        poll_read(&mut reading, &owner(owned));
        poll_read(&mut reading, Waker::noop());
    })
    .await;
}

#[tokio::test]
async fn the_waker_of_a_dropped_listener_may_own_a_stream() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (owned, _server) = pair.connect().await;
    let listener = pair.client.listen(77).unwrap();
    apart(move || {
        let waker = owner(owned);
        let accepted = listener.poll_accept(&mut Context::from_waker(&waker));
        assert!(accepted.is_pending());
        drop(waker);
        drop(listener);
    })
    .await;
}

#[tokio::test]
async fn a_crowd_of_wakers_is_woken_without_the_lock() {
    const CROWD: usize = 100;
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (client, peer) = pair.connect().await;
    let tasks: Vec<_> = (0..CROWD)
        .map(|_| {
            Arc::new(Curious {
                endpoint: pair.client.clone(),
                woken: AtomicUsize::new(0),
            })
        })
        .collect();
    let counts = apart(move || {
        let mut waiting = Vec::new();
        for (number, task) in tasks.iter().enumerate() {
            let waker = Waker::from(Arc::clone(task));
            let mut finished = Box::pin(client.closed());
            let poll = finished.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(matches!(poll, Poll::Pending));
            // Every second one gives up, and is not woken.
            if number % 2 == 0 {
                waiting.push(finished);
            }
        }
        peer.reset();
        let woken = |task: &Arc<Curious>| task.woken.load(Ordering::Relaxed);
        while tasks.iter().map(woken).sum::<usize>() < CROWD / 2 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        drop(waiting);
        tasks.iter().map(woken).collect::<Vec<_>>()
    })
    .await;
    let expected: Vec<_> = (0..CROWD).map(|number| (number + 1) % 2).collect();
    assert_eq!(counts, expected);
}
