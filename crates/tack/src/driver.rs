//! The driver: the task that receives datagrams or packets, keeps the timer, and waits until a full
//! socket is writable.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use tack_base::Instant;
use tack_io::{Received, TunReceiver, UdpReceiver};
use tack_wire::{ParseError, Segment};

use crate::carrier::Receiver;
use crate::shared::Shared;
use crate::state::{Life, State};
use crate::wakers::keep;

/// Runs until no handle is left and every connection has finished.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    receiver: Receiver,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, receiver: Receiver) -> Self {
        Self { shared, receiver }
    }

    /// Receives once. Ready when there may be more.
    fn receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.receiver {
            Receiver::Udp(receiver) => Self::receive_datagrams(&self.shared, receiver, cx),
            Receiver::Tun(receiver) => Self::receive_packets(&self.shared, receiver, cx),
        }
    }

    /// Whether there may be more to receive; otherwise the task is woken when there is.
    fn is_readable(&self, cx: &mut Context<'_>) -> bool {
        match &self.receiver {
            Receiver::Udp(receiver) => receiver.poll_readable(cx).is_ready(),
            Receiver::Tun(_) => true,
        }
    }

    /// Receives from a socket with one system call.
    fn receive_datagrams(
        shared: &Shared,
        receiver: &mut UdpReceiver,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let received = loop {
            ready!(receiver.poll_readable(cx))?;
            match receiver.receive(&shared.clock) {
                Ok(received) => break received,
                // The poller learns of it: ask it again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // ICMP reports an earlier datagram; `refused` finds out whose.
                Err(_) => return Poll::Ready(Ok(())),
            }
        };
        if shared.uncoalesced.load(Ordering::Relaxed) == 0 {
            shared.run(|state, now| {
                state.receives += 1;
                for datagrams in received {
                    for segment in datagrams.segments() {
                        state.take(now, &datagrams, segment);
                    }
                }
                state.wake_acceptors();
            });
        } else {
            for datagrams in received {
                for segment in datagrams.segments() {
                    shared.run(|state, now| {
                        state.take(now, &datagrams, segment);
                        state.wake_acceptors();
                    });
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Receives a batch of packets from a TUN device.
    ///
    /// # Errors
    /// When the runtime shuts down, or the device is gone.
    fn receive_packets(
        shared: &Shared,
        receiver: &mut TunReceiver,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let packets = loop {
            ready!(receiver.poll_readable(cx))?;
            match receiver.receive(&shared.clock) {
                Ok(packets) => break packets,
                // The poller learns of it: ask it again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        };
        let local = &shared.local;
        if shared.uncoalesced.load(Ordering::Relaxed) == 0 {
            shared.run(|state, now| {
                state.receives += 1;
                for packet in packets {
                    state.take_packet(now, local, &packet);
                }
                state.wake_acceptors();
                state.pass_admitted(now);
            });
        } else {
            for packet in packets {
                shared.run(|state, now| {
                    state.take_packet(now, local, &packet);
                    state.wake_acceptors();
                    state.pass_admitted(now);
                });
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Most ICMP errors that one poll reads.
const ANSWERS: usize = 32;

impl Driver {
    /// Reads which peers' ports are closed.
    fn refused(&mut self, cx: &mut Context<'_>) {
        // What ICMP says to a host arrives among its packets.
        let Receiver::Udp(receiver) = &mut self.receiver else {
            return;
        };
        for _ in 0..ANSWERS {
            match receiver.poll_refused(cx) {
                Poll::Ready(Ok(refused)) => {
                    self.shared.run(|state, now| state.refused(now, &refused));
                }
                // Where the system does not tell, timers find out.
                Poll::Ready(Err(_)) | Poll::Pending => return,
            }
        }
        cx.waker().wake_by_ref();
    }
}

impl State {
    fn take(
        &mut self,
        now: Instant,
        from: &Received<'_>,
        segment: Result<Segment<'_>, ParseError>,
    ) {
        self.received += 1;
        match segment {
            Ok(segment) => {
                self.core
                    .handle_segment(now, from.arrived, from.peer, &segment, from.ecn);
            }
            Err(_) => self.malformed += 1,
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // One batch a poll: the readers that it wakes run before the next one, while its bytes are
        // in the cache.
        match self.receive(cx) {
            Poll::Ready(Ok(())) => {
                // A task that wakes itself makes the runtime wake another thread for it, which
                // costs more than a short batch does: only where more is known to be here.
                if self.is_readable(cx) {
                    cx.waker().wake_by_ref();
                }
            }
            // The runtime shuts down, or the device is gone.
            Poll::Ready(Err(_)) => return Poll::Ready(()),
            Poll::Pending => {}
        }
        self.refused(cx);
        let shared = Arc::clone(&self.shared);
        let mut expired = false;
        while let Poll::Ready(outcome) = shared.timer.poll_expired(cx) {
            if outcome.is_err() {
                return Poll::Ready(());
            }
            expired = true;
        }
        let ended = shared.run(|state, now| {
            if expired {
                state.armed = Instant::FAR_FUTURE;
            }
            while state.blocked {
                match state.outgoing.sender().poll_writable(cx) {
                    Poll::Ready(Ok(())) => state.flush(now),
                    Poll::Ready(Err(_)) => return true,
                    Poll::Pending => break,
                }
            }
            keep(&mut state.driver, cx, &mut state.wakers);
            state.life == Life::Abandoned && state.is_wound_up()
        });
        if ended {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.run(|state, now| state.die(now));
    }
}
