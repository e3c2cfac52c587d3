//! A connection as its stream, or both halves of it, hold it.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::{Context, Poll};

use tack_tcp::{CloseReason, ConnectionId, Stats, WriteError};
use tokio::io::ReadBuf;

use crate::error::{ConnectionEnded, EndpointClosed};
use crate::shared::Handle;
use crate::state::Life;
use crate::wakers::keep;

/// What the halves of a stream share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) handle: Handle,
    pub(crate) id: ConnectionId,
    pub(crate) peer: SocketAddr,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.handle.run(|state, now| state.release(now, self.id));
    }
}

impl Inner {
    pub(crate) fn stats(&self) -> Stats {
        self.handle.look(|state, now| {
            state
                .core
                .get(self.id)
                .map(|connection| connection.stats(now))
                .unwrap_or_default()
        })
    }

    pub(crate) fn reset(&self) {
        self.handle.run(|state, now| {
            if let Some(connection) = state.core.get_mut(self.id) {
                connection.abort(now);
            }
        });
    }

    pub(crate) async fn finished(&self) -> io::Result<()> {
        poll_fn(|cx| {
            self.handle.run(|state, _| {
                let Some(slot) = state
                    .slots
                    .get_mut(&self.id)
                    .filter(|_| state.life != Life::Dead)
                else {
                    return Poll::Ready(Err(EndpointClosed.into()));
                };
                if slot.finished {
                    return Poll::Ready(Ok(()));
                }
                match state
                    .core
                    .get(self.id)
                    .and_then(|connection| connection.close_reason())
                {
                    Some(reason) => Poll::Ready(Err(ConnectionEnded(reason).into())),
                    None => slot.watch(cx),
                }
            })
        })
        .await
    }

    pub(crate) fn poll_read(
        &self,
        cx: &Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        self.handle.run(|state, now| {
            let Some(slot) = state.slots.get_mut(&self.id) else {
                return Poll::Ready(Err(EndpointClosed.into()));
            };
            let Some(connection) = state.core.get_mut(self.id) else {
                return Poll::Ready(Err(ConnectionEnded(CloseReason::Aborted).into()));
            };
            let (front, back) = connection.peek();
            let from_front = front.len().min(buf.remaining());
            buf.put_slice(&front[..from_front]);
            let from_back = back.len().min(buf.remaining());
            buf.put_slice(&back[..from_back]);
            let taken = from_front + from_back;
            if taken > 0 {
                connection.consume(now, taken);
                return Poll::Ready(Ok(()));
            }
            if connection.is_read_finished() {
                return Poll::Ready(Ok(()));
            }
            if let Some(reason) = connection.close_reason() {
                return Poll::Ready(Err(ConnectionEnded(reason).into()));
            }
            if state.life == Life::Dead {
                return Poll::Ready(Err(EndpointClosed.into()));
            }
            keep(&mut slot.reader, cx, &mut state.wakers);
            Poll::Pending
        })
    }

    pub(crate) fn poll_write(
        &self,
        cx: &Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.handle.run(|state, now| {
            let Some(slot) = state
                .slots
                .get_mut(&self.id)
                .filter(|_| state.life != Life::Dead)
            else {
                return Poll::Ready(Err(EndpointClosed.into()));
            };
            let Some(connection) = state.core.get_mut(self.id) else {
                return Poll::Ready(Err(ConnectionEnded(CloseReason::Aborted).into()));
            };
            let mut taken = 0;
            for slice in slices.iter().filter(|slice| !slice.is_empty()) {
                match connection.write(now, slice) {
                    Ok(len) => {
                        taken += len;
                        if len < slice.len() {
                            break;
                        }
                    }
                    Err(_) if taken > 0 => break,
                    Err(WriteError::Blocked) => {
                        keep(&mut slot.writer, cx, &mut state.wakers);
                        return Poll::Pending;
                    }
                    Err(WriteError::Finished) => {
                        return Poll::Ready(Err(io::Error::new(
                            io::ErrorKind::BrokenPipe,
                            WriteError::Finished,
                        )));
                    }
                    Err(WriteError::Closed(reason)) => {
                        return Poll::Ready(Err(ConnectionEnded(reason).into()));
                    }
                }
            }
            Poll::Ready(Ok(taken))
        })
    }

    pub(crate) fn finish(&self) -> io::Result<()> {
        self.handle.run(|state, now| {
            if state.life == Life::Dead {
                return Err(EndpointClosed.into());
            }
            // Where the connection has ended there is nothing left to finish; reads and writes have told.
            if let Some(connection) = state.core.get_mut(self.id) {
                connection.finish(now);
            }
            Ok(())
        })
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.handle.local
    }
}
