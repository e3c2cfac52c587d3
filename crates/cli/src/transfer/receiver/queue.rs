//! Senders that wait until a place is free, in the order in which they came.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::transfer::buffers::HEARTBEAT;
use crate::transfer::protocol::Reply;

/// The transfer slots of a receiver, and the senders that wait for one.
#[derive(Debug)]
pub(crate) struct Queue {
    places: Arc<Semaphore>,
    most: usize,
    line: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    waiting: BTreeSet<u64>,
}

/// A position in the queue; dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct QueuePosition {
    queue: Arc<Queue>,
    number: u64,
}

impl Queue {
    /// `places` transfers at a time, and at most `most` senders that wait.
    pub(crate) fn new(places: usize, most: usize) -> Arc<Self> {
        Arc::new(Self {
            places: Arc::new(Semaphore::new(places)),
            most,
            line: Mutex::default(),
        })
    }

    /// A slot, if one is free and no sender waits.
    pub(crate) fn try_enter(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// A position in the queue; `None` if the queue is full.
    pub(crate) fn line_up(self: &Arc<Self>) -> Option<QueuePosition> {
        let mut line = self.line();
        if line.waiting.len() >= self.most {
            return None;
        }
        let number = line.next;
        line.next += 1;
        line.waiting.insert(number);
        Some(QueuePosition {
            queue: Arc::clone(self),
            number,
        })
    }

    fn line(&self) -> MutexGuard<'_, Waiting> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueuePosition {
    /// Number of senders before this one.
    fn ahead(&self) -> u32 {
        let line = self.queue.line();
        u32::try_from(line.waiting.range(..self.number).count()).unwrap_or(u32::MAX)
    }

    /// Waits for a place and reports to the sender once a second how many are ahead. `None` when
    /// the sender went away, or when `closing` turns true.
    pub(crate) async fn wait(
        self,
        stream: &mut (impl AsyncWrite + Unpin),
        mut closing: watch::Receiver<bool>,
    ) -> Option<OwnedSemaphorePermit> {
        let mut place = std::pin::pin!(Arc::clone(&self.queue.places).acquire_owned());
        let mut frame = Vec::new();
        loop {
            frame.clear();
            let ahead = self.ahead();
            Reply::Queued { ahead }.encode(&mut frame);
            let telling = async {
                stream.write_all(&frame).await?;
                tokio::time::sleep(HEARTBEAT).await;
                std::io::Result::Ok(())
            };
            tokio::select! {
                biased;
                place = &mut place => return place.ok(),
                () = async { _ = closing.wait_for(|closing| *closing).await } => return None,
                told = telling => if told.is_err() { return None },
            }
        }
    }
}

impl Drop for QueuePosition {
    fn drop(&mut self) {
        self.queue.line().waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_bounded_and_moves_up() {
        let queue = Queue::new(1, 2);
        let place = queue.try_enter().unwrap();
        assert!(queue.try_enter().is_none());
        let (first, second) = (queue.line_up().unwrap(), queue.line_up().unwrap());
        assert!(queue.line_up().is_none(), "full");
        assert_eq!((first.ahead(), second.ahead()), (0, 1));
        drop(first);
        assert_eq!(second.ahead(), 0);
        assert!(queue.line_up().is_some());
        drop(place);
        assert!(queue.try_enter().is_some());
    }
}
