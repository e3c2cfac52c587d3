//! An encrypted connection as its stream, or both halves of it, hold it.
//!
//! rustls makes and reads the records, renews keys and tells a complete stream from one that was
//! cut off; here its bytes are carried to the transport below and back. Both directions share a
//! lock, which is held for as long as a few records take.

use std::io::{self, BufRead, IoSlice, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use rustls::{Connection, Error as TlsError, NamedGroup, SupportedCipherSuite};
use tokio::io::ReadBuf;

use super::error::{ExportError, SecureError};
use super::handshake::Agreed;
use super::key::PublicKey;
use crate::connection::Inner;

/// Most plaintext of a record, bytes (RFC 8446 §5.1).
const FRAGMENT: usize = 1 << 14;
/// What a record has besides its plaintext: header, content type, authentication tag.
const OVERHEAD: usize = 5 + 1 + 16;
/// Most records that one write makes: the transport below sends them together.
const RECORDS: usize = 8;

/// What the halves of an encrypted stream share.
pub(super) struct Session {
    pub(super) stream: Arc<Inner>,
    pub(super) own: PublicKey,
    pub(super) peer: PublicKey,
    pub(super) alpn: Vec<u8>,
    pub(super) group: NamedGroup,
    pub(super) suite: SupportedCipherSuite,
    tls: Mutex<Tls>,
}

struct Tls {
    connection: Connection,
    /// Bytes of plaintext that became records.
    taken: u64,
    /// Bytes of it that were acknowledged when somebody asked last.
    acknowledged: u64,
    /// `close_notify` was sent, or an alert.
    closed: bool,
    /// Why there is nothing more to read: the peer's alert, or what it did against the rules.
    fault: Option<TlsError>,
}

impl Session {
    pub(super) fn new(stream: Arc<Inner>, own: PublicKey, alpn: Vec<u8>, agreed: Agreed) -> Self {
        Self {
            stream,
            own,
            peer: agreed.peer,
            alpn,
            group: agreed.group,
            suite: agreed.suite,
            tls: Mutex::new(Tls {
                connection: agreed.connection,
                taken: 0,
                acknowledged: 0,
                closed: false,
                fault: None,
            }),
        }
    }

    fn tls(&self) -> MutexGuard<'_, Tls> {
        // A panic under the lock is a bug here; the other direction goes on.
        self.tls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn export(
        &self,
        label: &[u8],
        context: &[u8],
        out: &mut [u8],
    ) -> Result<(), ExportError> {
        // rustls keeps only the low byte of the label's length.
        if label.len() > 249 {
            return Err(ExportError::Label(label.len()));
        }
        let len = out.len();
        let exported = self
            .tls()
            .connection
            .export_keying_material(out, label, Some(context));
        exported.map(drop).map_err(|_| ExportError::Length(len))
    }

    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = out.remaining();
        let mut tls = self.tls();
        while out.remaining() > 0 {
            match tls.give(out) {
                Given::Bytes => continue,
                Given::End => break,
                Given::Nothing => {}
            }
            // What is here comes first, before an error and before what may come.
            let filled = out.remaining() < room;
            let fetched = match &tls.fault {
                Some(fault) => Err(SecureError::from_tls(fault.clone(), None, None).into()),
                None => self.fetch(&mut tls, (!filled).then_some(&*cx)),
            };
            match fetched {
                Ok(_) => {}
                Err(_) if filled => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Hands rustls what arrived; with `cx` its task is woken when more does. How many bytes that
    /// was: 0 when the peer has said that its stream is complete.
    ///
    /// # Errors
    /// As reading from the transport; `WouldBlock` when nothing is here; [`SecureError::Truncated`]
    /// at its end; and when rustls holds enough that nobody has read.
    fn fetch(&self, tls: &mut Tls, cx: Option<&Context<'_>>) -> io::Result<usize> {
        let mut source = Source {
            stream: &self.stream,
            cx,
        };
        let len = tls.connection.read_tls(&mut source)?;
        if let Err(fault) = tls.connection.process_new_packets() {
            tls.closed = true;
            // Its alert to the peer, if it has one: who takes nothing learns it from the reset.
            let _ = self.flush(tls);
            if !matches!(fault, TlsError::AlertReceived(_)) {
                self.stream.reset();
            }
            tls.fault = Some(fault);
        }
        Ok(len)
    }

    /// Moves the records that rustls made into the send buffer, even if they exceed it.
    fn flush(&self, tls: &mut Tls) -> io::Result<()> {
        while tls.connection.wants_write() {
            tls.connection.write_tls(&mut Sink(&self.stream))?;
        }
        Ok(())
    }

    pub(super) fn poll_write(
        &self,
        cx: &Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut tls = self.tls();
        if tls.closed {
            return Poll::Ready(Err(self.reason(&mut tls, finished())));
        }
        if slices.iter().all(|slice| slice.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        let room = ready!(self.stream.poll_room(cx));
        // Whole records: the last one may exceed the room, which keeps none of it here.
        let records = (room / (FRAGMENT + OVERHEAD)).clamp(1, RECORDS);
        tls.connection.set_buffer_limit(Some(records * FRAGMENT));
        let taken = tls.connection.writer().write_vectored(slices)?;
        if let Err(error) = self.flush(&mut tls) {
            return Poll::Ready(Err(self.reason(&mut tls, error)));
        }
        tls.taken += taken as u64;
        Poll::Ready(Ok(taken))
    }

    /// Why a write failed with `error`: a peer that turns this side away says so by an alert, and
    /// then resets the connection.
    fn reason(&self, tls: &mut Tls, error: io::Error) -> io::Error {
        while tls.fault.is_none() && matches!(self.fetch(tls, None), Ok(1..)) {}
        match &tls.fault {
            Some(TlsError::AlertReceived(alert)) => SecureError::from_alert(*alert).into(),
            _ => error,
        }
    }

    /// Bytes of plaintext that the peer has acknowledged, as far as that can be told: what waits is
    /// counted with its overhead.
    pub(super) fn acknowledged(&self) -> u64 {
        // Under the lock: nothing is added between the two figures.
        let mut tls = self.tls();
        // What is unacknowledged includes the frames of records, so that the difference goes back a
        // little with each new record.
        let acknowledged = tls.taken.saturating_sub(self.stream.unacknowledged());
        tls.acknowledged = tls.acknowledged.max(acknowledged);
        tls.acknowledged
    }

    /// Says that this side's stream is complete: `close_notify`, then FIN. It does not wait for
    /// room: two sides that both end with full buffers, and read only afterwards, would wait
    /// for each other.
    pub(super) fn shutdown(&self) -> io::Result<()> {
        let mut tls = self.tls();
        if !tls.closed {
            tls.connection.send_close_notify();
            tls.closed = true;
            // Where the connection has ended there is nothing left to finish; reads and writes
            // tell.
            let _ = self.flush(&mut tls);
        }
        self.stream.finish()
    }

    /// Renews this side's keys, and asks the peer to renew its own.
    #[cfg(test)]
    pub(super) fn renew_keys(&self) {
        self.tls().connection.refresh_traffic_keys().unwrap();
    }
}

enum Given {
    Bytes,
    /// The peer's stream is complete.
    End,
    Nothing,
}

impl Tls {
    /// Moves plaintext to `out`.
    fn give(&mut self, out: &mut ReadBuf<'_>) -> Given {
        let mut reader = self.connection.reader();
        match reader.fill_buf() {
            Ok([]) => Given::End,
            Ok(plain) => {
                let len = plain.len().min(out.remaining());
                out.put_slice(&plain[..len]);
                reader.consume(len);
                Given::Bytes
            }
            Err(_) => Given::Nothing,
        }
    }
}

/// The transport below, as rustls reads from it.
struct Source<'a, 'c> {
    stream: &'a Inner,
    cx: Option<&'a Context<'c>>,
}

impl Read for Source<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = match self.cx {
            None => self.stream.try_read(buf)?,
            Some(cx) => {
                let mut buf = ReadBuf::new(buf);
                match self.stream.poll_read(cx, &mut buf) {
                    Poll::Ready(outcome) => outcome.map(|()| buf.filled().len())?,
                    Poll::Pending => return Err(io::ErrorKind::WouldBlock.into()),
                }
            }
        };
        match len {
            // It is asked only while the peer has not said that its stream is complete.
            0 => Err(SecureError::Truncated.into()),
            len => Ok(len),
        }
    }
}

/// The transport below, as rustls writes to it. It takes everything: rustls was given no more than
/// there is room for.
struct Sink<'a>(&'a Inner);

impl Write for Sink<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buf)])
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let parts: arrayvec::ArrayVec<&[u8], 64> = bufs.iter().map(|buf| &**buf).take(64).collect();
        self.0.write_whole(&parts)?;
        Ok(parts.iter().map(|part| part.len()).sum())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn finished() -> io::Error {
    io::Error::new(
        io::ErrorKind::BrokenPipe,
        "the sending side of the stream is finished",
    )
}
