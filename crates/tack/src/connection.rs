//! A connection as its stream, or both halves of it, hold it.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::{Context, Poll};

use tack_base::Instant;
use tack_tcp::{CloseReason, Connection, ConnectionId, State as TcpState, Stats, WriteError};
use tokio::io::ReadBuf;

use crate::error::{ConnectionEnded, EndpointClosed};
use crate::shared::Handle;
use crate::slot::Slot;
use crate::state::{Life, State};
use crate::wait::{Queue, Registration, wait_until};
use crate::wakers::keep;

/// What the halves of a stream share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) handle: Handle,
    pub(crate) id: ConnectionId,
    pub(crate) local: SocketAddr,
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

    /// Bytes written that the peer has not acknowledged.
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.handle.look(|state, _| {
            let connection = state.core.get(self.id);
            connection.map_or(0, |connection| connection.unacknowledged() as u64)
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
        wait_until(&self.handle, Queue::Watchers(self.id), |state, _| {
            let Some(slot) = self.slot(state) else {
                return Poll::Ready(Err(EndpointClosed.into()));
            };
            if slot.finished {
                return Poll::Ready(Ok(()));
            }
            match state.core.get(self.id).and_then(Connection::close_reason) {
                Some(reason) => Poll::Ready(Err(ConnectionEnded(reason).into())),
                None => Poll::Pending,
            }
        })
        .await
    }

    pub(crate) async fn closed(&self) -> CloseReason {
        wait_until(&self.handle, Queue::Watchers(self.id), |state, _| {
            let connection = state.core.get(self.id).filter(|_| state.life != Life::Dead);
            let Some(connection) = connection else {
                return Poll::Ready(CloseReason::Aborted);
            };
            match connection.close_reason() {
                Some(reason) => Poll::Ready(reason),
                // Both streams have ended: TIME-WAIT is not the application's concern.
                None if connection.state() == TcpState::TimeWait => {
                    Poll::Ready(CloseReason::Graceful)
                }
                None => Poll::Pending,
            }
        })
        .await
    }

    pub(crate) async fn readable(&self) {
        wait_until(&self.handle, Queue::Readers(self.id), |state, _| {
            self.look_for_bytes(state).map(drop)
        })
        .await;
    }

    /// A place among those that wait for bytes.
    pub(crate) fn waiting_reader(&self) -> Registration<'_> {
        Registration::new(&self.handle, Queue::Readers(self.id))
    }

    /// As [`Inner::readable`], with a place of [`Inner::waiting_reader`]: for a caller that
    /// checks for data and registers its wait under one lock, so that it misses no wakeup.
    pub(crate) fn poll_readable(
        &self,
        waiting: &mut Registration<'_>,
        cx: &Context<'_>,
    ) -> Poll<()> {
        waiting.poll(cx, |state, _| self.look_for_bytes(state).map(drop))
    }

    pub(crate) async fn writable(&self) {
        wait_until(&self.handle, Queue::Writers(self.id), |state, _| {
            let dead = self.slot(state).is_none();
            let connection = state.core.get_mut(self.id).filter(|_| !dead);
            if connection.is_none_or(Connection::is_write_ready) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    pub(crate) async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        wait_until(&self.handle, Queue::Readers(self.id), |state, _| {
            self.look_for_bytes(state).map_ok(|connection| {
                let (front, back) = connection.peek();
                let from_front = front.len().min(buf.len());
                buf[..from_front].copy_from_slice(&front[..from_front]);
                let from_back = back.len().min(buf.len() - from_front);
                buf[from_front..from_front + from_back].copy_from_slice(&back[..from_back]);
                from_front + from_back
            })
        })
        .await
    }

    fn slot<'a>(&self, state: &'a State) -> Option<&'a Slot> {
        state
            .slots
            .get(&self.id)
            .filter(|_| state.life != Life::Dead)
    }

    /// The connection, once it has bytes to read, or the end of the peer's stream.
    fn look_for_bytes<'a>(&self, state: &'a mut State) -> Poll<io::Result<&'a mut Connection>> {
        let is_dead = state.life == Life::Dead;
        if !state.slots.contains_key(&self.id) {
            return Poll::Ready(Err(EndpointClosed.into()));
        }
        let Some(connection) = state.core.get_mut(self.id) else {
            return Poll::Ready(Err(ConnectionEnded(CloseReason::Aborted).into()));
        };
        if connection.readable() > 0 || connection.is_read_finished() {
            return Poll::Ready(Ok(connection));
        }
        if let Some(reason) = connection.close_reason() {
            return Poll::Ready(Err(ConnectionEnded(reason).into()));
        }
        if is_dead {
            return Poll::Ready(Err(EndpointClosed.into()));
        }
        Poll::Pending
    }

    /// Moves bytes to `buf`, as many as are here and fit.
    fn read(&self, state: &mut State, now: Instant, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.look_for_bytes(state).map_ok(|connection| {
            let (front, back) = connection.peek();
            let from_front = front.len().min(buf.remaining());
            buf.put_slice(&front[..from_front]);
            let from_back = back.len().min(buf.remaining());
            buf.put_slice(&back[..from_back]);
            let taken = from_front + from_back;
            if taken > 0 {
                connection.consume(now, taken);
            }
        })
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
            let outcome = self.read(state, now, buf);
            if outcome.is_pending()
                && let Some(slot) = state.slots.get_mut(&self.id)
            {
                keep(&mut slot.reader, cx, &mut state.wakers);
            }
            outcome
        })
    }

    /// Appends what arrived to `out`, at most `limit` bytes; returns how many. With `cx` its task
    /// is woken when more comes.
    pub(crate) fn poll_append(
        &self,
        cx: Option<&Context<'_>>,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        self.handle.run(|state, now| {
            let outcome = self.look_for_bytes(state).map_ok(|connection| {
                let (front, back) = connection.peek();
                let front = &front[..front.len().min(limit)];
                let back = &back[..back.len().min(limit - front.len())];
                out.extend_from_slice(front);
                out.extend_from_slice(back);
                let taken = front.len() + back.len();
                if taken > 0 {
                    connection.consume(now, taken);
                }
                taken
            });
            if outcome.is_pending()
                && let Some(cx) = cx
                && let Some(slot) = state.slots.get_mut(&self.id)
            {
                keep(&mut slot.reader, cx, &mut state.wakers);
            }
            outcome
        })
    }

    /// Free space of the send buffer, bytes; none where the connection has ended.
    pub(crate) fn room(&self) -> usize {
        self.handle.look(|state, _| {
            let connection = state.core.get(self.id);
            connection.map_or(0, Connection::writable)
        })
    }

    pub(crate) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let mut buf = ReadBuf::new(buf);
        match self
            .handle
            .run(|state, now| self.read(state, now, &mut buf))
        {
            Poll::Ready(outcome) => outcome.map(|()| buf.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub(crate) fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        let slices = [IoSlice::new(buf)];
        match self
            .handle
            .run(|state, now| self.write(state, now, &slices))
        {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub(crate) fn poll_write(
        &self,
        cx: &Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.handle.run(|state, now| {
            let outcome = self.write(state, now, slices);
            if outcome.is_pending()
                && let Some(slot) = state.slots.get_mut(&self.id)
            {
                keep(&mut slot.writer, cx, &mut state.wakers);
            }
            outcome
        })
    }

    /// Takes bytes of `slices` into the send buffer, as many as fit.
    fn write(
        &self,
        state: &mut State,
        now: Instant,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.slot(state).is_none() {
            return Poll::Ready(Err(EndpointClosed.into()));
        }
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
                Err(WriteError::Blocked) => return Poll::Pending,
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
    }

    /// Looks for room in the send buffer; how much there is, bytes. With `cx` its task is woken
    /// when there is some. A connection that has ended has room: what follows tells.
    pub(crate) fn poll_room(&self, cx: Option<&Context<'_>>) -> Poll<usize> {
        let room = |state: &mut State| {
            let dead = self.slot(state).is_none();
            match state.core.get_mut(self.id).filter(|_| !dead) {
                None => Poll::Ready(usize::MAX),
                Some(connection) => {
                    if connection.is_write_ready() {
                        Poll::Ready(connection.writable().max(1))
                    } else {
                        Poll::Pending
                    }
                }
            }
        };
        let found = self.handle.change(room);
        let Some(cx) = cx.filter(|_| found.is_pending()) else {
            return found;
        };
        self.handle.run(|state, _| {
            let room = room(state);
            if room.is_pending()
                && let Some(slot) = state.slots.get_mut(&self.id)
            {
                keep(&mut slot.writer, cx, &mut state.wakers);
            }
            room
        })
    }

    /// Takes all of `parts` into the send buffer, even if they exceed it. To be called after
    /// [`Inner::poll_room`].
    ///
    /// # Errors
    /// As writing; then nothing was taken.
    pub(crate) fn write_whole(&self, parts: &[&[u8]]) -> io::Result<()> {
        self.handle.run(|state, now| {
            if self.slot(state).is_none() {
                return Err(EndpointClosed.into());
            }
            let Some(connection) = state.core.get_mut(self.id) else {
                return Err(ConnectionEnded(CloseReason::Aborted).into());
            };
            connection
                .write_whole(now, parts)
                .map_err(|error| match error {
                    WriteError::Blocked => io::ErrorKind::WouldBlock.into(),
                    WriteError::Finished => {
                        io::Error::new(io::ErrorKind::BrokenPipe, WriteError::Finished)
                    }
                    WriteError::Closed(reason) => ConnectionEnded(reason).into(),
                })
        })
    }

    pub(crate) fn finish(&self) -> io::Result<()> {
        self.handle.run(|state, now| {
            if state.life == Life::Dead {
                return Err(EndpointClosed.into());
            }
            // Where the connection has ended there is nothing left to finish; reads and writes have
            // told.
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
        self.local
    }
}
