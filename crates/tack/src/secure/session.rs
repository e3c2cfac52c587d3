//! An encrypted connection as its stream, or both halves of it, hold it.
//!
//! rustls agreed on the keys; here records are carried to the transport below and back, and a
//! complete stream is told from one that was cut off. Both directions share a lock, which is held
//! for as long as a few records take.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use rustls::{Error as TlsError, NamedGroup, SupportedCipherSuite};
use tokio::io::ReadBuf;

use super::error::{ExportError, SecureError};
use super::exporter::Exporter;
use super::handshake::Agreed;
use super::key::PublicKey;
use super::records::{FRAGMENT, OVERHEAD};
use super::traffic::{CONTROL_LEN, Given, Traffic, sealed_len};
use crate::connection::Inner;

/// Most records that one write makes: the transport below sends them together. A write takes the
/// locks and wakes whoever waits once, however many there are; more would leave the nearest cache.
const RECORDS: usize = 15;

thread_local! {
    /// Where records are made on their way to the send buffer: once a thread, not a connection.
    static SEALED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What the halves of an encrypted stream share.
pub(super) struct Session {
    pub(super) stream: Arc<Inner>,
    pub(super) own: PublicKey,
    pub(super) peer: PublicKey,
    pub(super) alpn: Vec<u8>,
    pub(super) group: NamedGroup,
    pub(super) suite: SupportedCipherSuite,
    exporter: Exporter,
    tls: Mutex<Tls>,
}

struct Tls {
    traffic: Traffic,
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
            exporter: agreed.exporter,
            tls: Mutex::new(Tls {
                traffic: agreed.traffic,
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
        self.exporter.export(label, context, out)
    }

    /// Moves what was decrypted to `out`, as much as fits; with `cx` its task is woken when
    /// something more arrives.
    pub(super) fn poll_read(
        &self,
        cx: Option<&Context<'_>>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = out.remaining();
        let mut tls = self.tls();
        while out.remaining() > 0 {
            match self.give(&mut tls, |traffic| traffic.give(out)) {
                Ok(Given::Bytes | Given::Control) => continue,
                Ok(Given::End) => break,
                Ok(Given::Incomplete) => {}
                Err(fault) if out.remaining() == room => {
                    let error = SecureError::from_tls(fault, None, None);
                    return Poll::Ready(Err(error.into()));
                }
                Err(_) => break,
            }
            // What is here comes first, before an error and before what may come.
            let filled = out.remaining() < room;
            match self.fetch(&mut tls, cx.filter(|_| !filled), out.remaining()) {
                Ok(()) => {}
                Err(_) if filled => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let mut buf = ReadBuf::new(buf);
        match self.poll_read(None, &mut buf) {
            Poll::Ready(outcome) => outcome.map(|()| buf.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Waits until there is data, decrypted, or the end of the peer's stream, and gives what `see`
    /// makes of the data.
    async fn look<T>(&self, mut see: impl FnMut(&[u8]) -> T) -> io::Result<T> {
        let mut waiting = self.stream.waiting_reader();
        poll_fn(|cx| {
            // Held until the task waits: another one that takes the bytes from the transport below
            // sees them before this one looks, or after this one waits for more.
            let mut tls = self.tls();
            loop {
                match self.give(&mut tls, Traffic::look) {
                    Ok(Given::Bytes | Given::End) => {
                        return Poll::Ready(Ok(see(tls.traffic.plaintext())));
                    }
                    Ok(Given::Control) => continue,
                    Ok(Given::Incomplete) => {}
                    Err(fault) => {
                        let error = SecureError::from_tls(fault, None, None);
                        return Poll::Ready(Err(error.into()));
                    }
                }
                match self.fetch(&mut tls, None, 0) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        ready!(self.stream.poll_readable(&mut waiting, cx));
                    }
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        })
        .await
    }

    pub(super) async fn readable(&self) {
        // An error is for who reads: it stays.
        let _ = self.look(|_| ()).await;
    }

    pub(super) async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.look(|data| {
            let len = data.len().min(buf.len());
            buf[..len].copy_from_slice(&data[..len]);
            len
        })
        .await
    }

    /// Lets `open` look at the next record. A fault of the peer's is told to it, and stays.
    fn give(
        &self,
        tls: &mut Tls,
        open: impl FnOnce(&mut Traffic) -> Result<Given, TlsError>,
    ) -> Result<Given, TlsError> {
        if let Some(fault) = &tls.fault {
            return Err(fault.clone());
        }
        let given = open(&mut tls.traffic);
        if let Err(fault) = &given {
            if !tls.closed && !matches!(fault, TlsError::AlertReceived(_)) {
                // A peer that does not read it learns it from the reset.
                let _ = self.tell(tls, |traffic, out| traffic.alert(fault, out));
            }
            tls.closed = true;
            // At once (RFC 8446 §6.2); a writer that waits for room is woken by it.
            self.stream.reset();
            tls.fault = Some(fault.clone());
        } else if tls.traffic.is_renewal_wanted() && !tls.closed && self.stream.room() > 0 {
            // Without room it waits for the next write: a peer that asks without reading makes
            // nothing grow.
            let _ = self.tell(tls, |traffic, out| traffic.renew(false, out));
        }
        given
    }

    /// Takes what arrived; with `cx` its task is woken when more does.
    ///
    /// # Errors
    /// As reading from the transport; `WouldBlock` when nothing is here; [`SecureError::Truncated`]
    /// at its end.
    fn fetch(&self, tls: &mut Tls, cx: Option<&Context<'_>>, room: usize) -> io::Result<()> {
        let len = tls.traffic.receive(room, |incoming, wanted| {
            match self.stream.poll_append(cx, incoming, wanted) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
            }
        })?;
        match len {
            // It is asked only while the peer has not said that its stream is complete.
            0 => Err(SecureError::Truncated.into()),
            _ => Ok(()),
        }
    }

    /// Puts a record that is no data into the send buffer, even if it exceeds it.
    fn tell(
        &self,
        tls: &mut Tls,
        seal: impl FnOnce(&mut Traffic, &mut [u8]) -> Result<usize, TlsError>,
    ) -> io::Result<()> {
        let mut record = [0; CONTROL_LEN];
        let len = seal(&mut tls.traffic, &mut record).map_err(io::Error::other)?;
        self.stream.write_whole(&[&record[..len]])
    }

    pub(super) async fn writable(&self) {
        let is_closed = self.tls().closed;
        if !is_closed {
            self.stream.writable().await;
        }
    }

    pub(super) fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        match self.poll_write(None, &[IoSlice::new(buf)]) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Encrypts bytes of `slices` into the send buffer; with `cx` its task is woken when there is
    /// room.
    pub(super) fn poll_write(
        &self,
        cx: Option<&Context<'_>>,
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
        let mut sealed = SEALED.take();
        sealed.resize(sealed_len(RECORDS), 0);
        let written = tls
            .traffic
            .seal(slices, records * FRAGMENT, &mut sealed)
            .map_err(io::Error::other)
            .and_then(|(taken, len)| {
                self.stream.write_whole(&[&sealed[..len]])?;
                Ok(taken)
            });
        SEALED.set(sealed);
        match written {
            Ok(taken) => {
                tls.taken += taken as u64;
                Poll::Ready(Ok(taken))
            }
            Err(error) => Poll::Ready(Err(self.reason(&mut tls, error))),
        }
    }

    /// Why a write failed with `error`: a peer that turns this side away says so by an alert, and
    /// then resets the connection.
    fn reason(&self, tls: &mut Tls, error: io::Error) -> io::Error {
        loop {
            match self.give(tls, Traffic::look) {
                Err(TlsError::AlertReceived(alert)) => {
                    return SecureError::from_alert(alert).into();
                }
                Ok(Given::Control) => {}
                Ok(Given::Incomplete) => {
                    if self.fetch(tls, None, 0).is_err() {
                        return error;
                    }
                }
                Ok(Given::Bytes | Given::End) | Err(_) => return error,
            }
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
            tls.closed = true;
            // Where the connection has ended there is nothing left to finish; reads and writes
            // tell.
            let _ = self.tell(&mut tls, Traffic::close_notify);
        }
        self.stream.finish()
    }

    /// Renews this side's keys, and asks the peer to renew its own.
    #[cfg(test)]
    pub(super) fn renew_keys(&self) {
        let mut tls = self.tls();
        self.tell(&mut tls, |traffic, out| traffic.renew(true, out))
            .unwrap();
    }
}

fn finished() -> io::Error {
    io::Error::new(
        io::ErrorKind::BrokenPipe,
        "the sending side of the stream is finished",
    )
}
