//! An encrypted connection as its stream, or both halves of it, hold it.
//!
//! The two directions have a lock each: a task that reads and a task that writes do not wait for
//! each other.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use rustls::crypto::cipher::OutboundChunks;
use rustls::{AlertDescription, ContentType, NamedGroup, Tls13CipherSuite};
use tokio::io::ReadBuf;
use zeroize::Zeroizing;

use super::error::SecureError;
use super::exporter::{ExportError, export};
use super::handshake::{Agreed, Kernel};
use super::key::PublicKey;
use super::provider::tls13;
use super::record::{CLOSE_NOTIFY, FRAGMENT, HEADER, OVERHEAD, Opener, Sealer, record_len};
use crate::connection::Inner;

/// Most records that one write makes: the transport below sends them together.
const RECORDS: usize = 8;
/// Most ciphertext that is fetched at a time, bytes: it stays in the processor's cache until it is
/// decrypted.
const FETCH: usize = 4 * (FRAGMENT + OVERHEAD);
/// Most slices of a vectored write that one write looks at.
const SLICES: usize = 16;
/// Most records in a row that bring no data: key updates and empty ones cost this side work.
const IDLE_RECORDS: u32 = 64;

/// What the halves of an encrypted stream share.
pub(super) struct Session {
    pub(super) stream: Arc<Inner>,
    pub(super) own: PublicKey,
    pub(super) peer: PublicKey,
    pub(super) alpn: Vec<u8>,
    pub(super) group: NamedGroup,
    pub(super) suite: &'static Tls13CipherSuite,
    exporter: Zeroizing<Vec<u8>>,
    kernel: Mutex<Kernel>,
    read: Mutex<Reading>,
    write: Mutex<Writing>,
    /// The peer wants this side's keys renewed (RFC 8446 §4.6.3).
    update_wanted: AtomicBool,
}

struct Reading {
    opener: Opener,
    /// Plaintext of the last record, then what was not looked at yet.
    buffer: Vec<u8>,
    /// Where the plaintext is that nobody has read.
    plain: Range<usize>,
    /// Where the next record begins.
    at: usize,
    idle: u32,
    end: Option<End>,
    /// Why it is broken, until that was told.
    fault: Option<SecureError>,
}

/// How the peer's stream ended.
#[derive(Clone, Copy)]
enum End {
    /// With `close_notify`.
    Closed,
    /// With another alert.
    Alert(AlertDescription),
    /// The peer broke the rules, and this side gave the connection up.
    Broken,
}

struct Writing {
    sealer: Sealer,
    /// Bytes of plaintext that became records.
    taken: u64,
    /// `close_notify` was sent.
    closed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic under the lock is a bug here; the other direction goes on.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    pub(super) fn new(
        stream: Arc<Inner>,
        own: PublicKey,
        alpn: Vec<u8>,
        exporter: Zeroizing<Vec<u8>>,
        agreed: Agreed,
    ) -> Result<Self, SecureError> {
        let suite = tls13(agreed.suite);
        Ok(Self {
            stream,
            own,
            peer: agreed.peer,
            alpn,
            group: agreed.group,
            suite,
            exporter,
            kernel: Mutex::new(agreed.kernel),
            read: Mutex::new(Reading {
                opener: Opener::new(suite, agreed.secrets.rx)?,
                buffer: Vec::new(),
                plain: 0..0,
                at: 0,
                idle: 0,
                end: None,
                fault: None,
            }),
            write: Mutex::new(Writing {
                sealer: Sealer::new(suite, agreed.secrets.tx)?,
                taken: 0,
                closed: false,
            }),
            update_wanted: AtomicBool::new(false),
        })
    }

    pub(super) fn export(
        &self,
        label: &[u8],
        context: &[u8],
        out: &mut [u8],
    ) -> Result<(), ExportError> {
        export(self.suite, &self.exporter, label, context, out)
    }

    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = out.remaining();
        let mut read = lock(&self.read);
        while out.remaining() > 0 {
            if read.give(out) {
                continue;
            }
            // What is here comes first, before an error and before what may come.
            let filled = out.remaining() < room;
            match self.next(&mut read) {
                Ok(Progress::Record) => {}
                Ok(_) if filled => break,
                Ok(Progress::Incomplete) => match ready!(self.fetch(&mut read, cx)) {
                    Ok(()) => {}
                    Err(error) => return Poll::Ready(Err(error)),
                },
                Ok(Progress::End(End::Closed)) => break,
                Ok(Progress::End(End::Alert(alert))) => {
                    return Poll::Ready(Err(SecureError::from_alert(alert).into()));
                }
                Ok(Progress::End(End::Broken)) => {
                    let given_up = || SecureError::Misbehaved("the connection was given up".into());
                    let error = read.fault.take().unwrap_or_else(given_up);
                    return Poll::Ready(Err(error.into()));
                }
                Err(error) => {
                    self.give_up(&error);
                    read.end = Some(End::Broken);
                    read.fault = Some(error);
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Opens the next record, if all of it is here.
    fn next(&self, read: &mut Reading) -> Result<Progress, SecureError> {
        if let Some(end) = read.end {
            return Ok(Progress::End(end));
        }
        let waiting = &read.buffer[read.at..];
        let Some(len) = record_len(waiting)?.filter(|len| *len <= waiting.len()) else {
            return Ok(Progress::Incomplete);
        };
        let body = read.at + HEADER;
        let (kind, plain) = read.opener.open(&mut read.buffer[body..read.at + len])?;
        read.at += len;
        let plain = body..body + plain;
        if kind == ContentType::ApplicationData && !plain.is_empty() {
            read.idle = 0;
            read.plain = plain;
            return Ok(Progress::Record);
        }
        read.idle += 1;
        if read.idle > IDLE_RECORDS {
            let message = "many records without data";
            return Err(SecureError::Misbehaved(message.into()));
        }
        match kind {
            ContentType::ApplicationData => {}
            ContentType::Alert => read.end = Some(end_of(&read.buffer[plain])?),
            ContentType::Handshake => self.update(read, plain)?,
            other => {
                return Err(SecureError::Misbehaved(format!(
                    "a record of type {other:?}"
                )));
            }
        }
        Ok(Progress::Record)
    }

    /// A message of the handshake after the handshake: only a KeyUpdate is expected (RFC 8446
    /// §4.6.3).
    fn update(&self, read: &mut Reading, message: Range<usize>) -> Result<(), SecureError> {
        let wanted = match read.buffer[message] {
            [24, 0, 0, 1, 0] => false,
            [24, 0, 0, 1, 1] => true,
            _ => {
                let message = "a handshake message other than KeyUpdate";
                return Err(SecureError::Misbehaved(message.into()));
            }
        };
        let keys = lock(&self.kernel)
            .next_receiving()
            .map_err(|error| SecureError::Misbehaved(error.to_string()))?;
        read.opener.update(keys)?;
        // The peer's data gets there first: this side's next write says it.
        self.update_wanted.fetch_or(wanted, Ordering::Relaxed);
        Ok(())
    }

    /// Appends what is here to the buffer; false when there is nothing.
    fn fetch_now(&self, read: &mut Reading) -> bool {
        let most = read.make_room();
        matches!(self.stream.try_fetch(&mut read.buffer, most), Ok(1..))
    }

    /// Appends what arrived to the buffer.
    fn fetch(&self, read: &mut Reading, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let most = read.make_room();
        match self.stream.poll_fetch(cx, &mut read.buffer, most) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(SecureError::Truncated.into())),
            Poll::Ready(outcome) => Poll::Ready(outcome.map(drop)),
            Poll::Pending => {
                // A connection that waits for its peer keeps no buffer.
                if read.buffer.is_empty() {
                    read.buffer = Vec::new();
                }
                Poll::Pending
            }
        }
    }

    /// Ends a connection whose peer breaks the rules, with an alert that says so.
    fn give_up(&self, error: &SecureError) {
        let alert = match error {
            SecureError::Corrupt => AlertDescription::BadRecordMac,
            _ => AlertDescription::UnexpectedMessage,
        };
        self.send_alert(alert);
        self.stream.reset();
    }

    /// Sends a fatal alert, if there is room for it.
    pub(super) fn send_alert(&self, alert: AlertDescription) {
        let mut write = lock(&self.write);
        let words = [2, u8::from(alert)];
        if let Ok(record) = write
            .sealer
            .seal(ContentType::Alert, OutboundChunks::Single(&words))
        {
            // A peer that takes nothing learns it from the reset.
            let _ = self.stream.write_whole(&[&record]);
        }
        write.closed = true;
    }

    pub(super) fn poll_write(
        &self,
        cx: &Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut write = lock(&self.write);
        if write.closed {
            return Poll::Ready(Err(finished()));
        }
        let slices: arrayvec::ArrayVec<&[u8], SLICES> = slices
            .iter()
            .map(|slice| &**slice)
            .filter(|slice| !slice.is_empty())
            .take(SLICES)
            .collect();
        if slices.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let room = ready!(self.stream.poll_room(cx));
        // Whole records: the last one may exceed the room, which keeps none of it here.
        let records = (room / (FRAGMENT + OVERHEAD)).clamp(1, RECORDS);
        let (mut rest, _) = OutboundChunks::new(&slices).split_at(records * FRAGMENT);
        let taken = rest.len();
        let mut made = arrayvec::ArrayVec::<Vec<u8>, { 2 * RECORDS }>::new();
        while !rest.is_empty() {
            if let Some(update) = self.renew(&mut write)? {
                made.push(update);
            }
            let (fragment, after) = rest.split_at(FRAGMENT);
            made.push(write.sealer.seal(ContentType::ApplicationData, fragment)?);
            rest = after;
        }
        let parts: arrayvec::ArrayVec<&[u8], { 2 * RECORDS }> =
            made.iter().map(Vec::as_slice).collect();
        if let Err(error) = self.stream.write_whole(&parts) {
            return Poll::Ready(Err(self.reason(error)));
        }
        write.taken += taken as u64;
        Poll::Ready(Ok(taken))
    }

    /// Why a write failed with `error`: a peer that turns this side away says so by an alert, and
    /// then resets the connection.
    fn reason(&self, error: io::Error) -> io::Error {
        let Ok(mut read) = self.read.try_lock() else {
            // The task that reads finds it.
            return error;
        };
        while read.plain.is_empty() {
            match self.next(&mut read) {
                Ok(Progress::End(End::Alert(alert))) => {
                    return SecureError::from_alert(alert).into();
                }
                Ok(Progress::Record) => {}
                Ok(Progress::Incomplete) if self.fetch_now(&mut read) => {}
                Ok(_) => break,
                // Left for who reads.
                Err(fault) => {
                    read.end = Some(End::Broken);
                    read.fault = Some(fault);
                }
            }
        }
        error
    }

    /// Bytes of plaintext that the peer has acknowledged, as far as that can be told: what waits is
    /// counted with its overhead.
    pub(super) fn acknowledged(&self) -> u64 {
        // Under the lock: nothing is added between the two figures.
        let write = lock(&self.write);
        write.taken.saturating_sub(self.stream.unacknowledged())
    }

    /// The record that renews this side's keys, if they have done their share or the peer wants it.
    fn renew(&self, write: &mut Writing) -> Result<Option<Vec<u8>>, SecureError> {
        let wanted = self.update_wanted.swap(false, Ordering::Relaxed);
        if !wanted && !write.sealer.is_worn() {
            return Ok(None);
        }
        let keys = lock(&self.kernel)
            .next_sending()
            .map_err(|error| SecureError::Misbehaved(error.to_string()))?;
        write.sealer.update(keys).map(Some)
    }

    /// Says that this side's stream is complete: `close_notify`, then FIN. It does not wait for
    /// room: two sides that both end with full buffers, and read only afterwards, would wait
    /// for each other.
    pub(super) fn shutdown(&self) -> io::Result<()> {
        let mut write = lock(&self.write);
        if !write.closed {
            let words = OutboundChunks::Single(&CLOSE_NOTIFY);
            let record = write.sealer.seal(ContentType::Alert, words)?;
            write.closed = true;
            // Where the connection has ended there is nothing left to finish; reads and writes
            // tell.
            let _ = self.stream.write_whole(&[&record]);
        }
        self.stream.finish()
    }

    #[cfg(test)]
    pub(super) fn wear_after(&self, records: u64) {
        lock(&self.write).sealer.wear_after(records);
    }

    /// Records made with the present key.
    #[cfg(test)]
    pub(super) fn sealed(&self) -> u64 {
        lock(&self.write).sealer.sealed()
    }

    /// Sends a KeyUpdate that asks for one in return.
    #[cfg(test)]
    pub(super) fn ask_for_update(&self) {
        let mut write = lock(&self.write);
        let words = OutboundChunks::Single(&[24, 0, 0, 1, 1]);
        let record = write.sealer.seal(ContentType::Handshake, words).unwrap();
        let keys = lock(&self.kernel).next_sending().unwrap();
        write.sealer = Sealer::new(self.suite, keys).unwrap();
        self.stream.write_whole(&[&record]).unwrap();
    }
}

enum Progress {
    /// One was opened.
    Record,
    /// Not all of it is here.
    Incomplete,
    End(End),
}

impl Reading {
    /// Moves what was not looked at to the front of the buffer; returns how much fits behind it.
    /// All plaintext has been read.
    fn make_room(&mut self) -> usize {
        self.buffer.drain(..self.at);
        self.at = 0;
        self.plain = 0..0;
        if self.buffer.capacity() < FETCH {
            self.buffer.reserve_exact(FETCH - self.buffer.len());
        }
        FETCH - self.buffer.len()
    }

    /// Moves plaintext to `out`; false when there is none.
    fn give(&mut self, out: &mut ReadBuf<'_>) -> bool {
        let len = self.plain.len().min(out.remaining());
        let from = self.plain.start;
        out.put_slice(&self.buffer[from..from + len]);
        self.plain.start += len;
        len > 0
    }
}

/// What an alert of the peer says (RFC 8446 §6).
fn end_of(alert: &[u8]) -> Result<End, SecureError> {
    match *alert {
        [_, description] => Ok(match AlertDescription::from(description) {
            AlertDescription::CloseNotify => End::Closed,
            other => End::Alert(other),
        }),
        _ => Err(SecureError::Misbehaved("an alert of a wrong length".into())),
    }
}

fn finished() -> io::Error {
    io::Error::new(
        io::ErrorKind::BrokenPipe,
        "the sending side of the stream is finished",
    )
}
