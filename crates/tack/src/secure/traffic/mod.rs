//! The records of a connection after its handshake, in both directions: data, alerts and key
//! updates (RFC 8446 §4.6, §5, §6).
//!
//! rustls hands its keys over as it does for kTLS (`rustls::kernel`), and makes the next ones.

#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod trial;

use std::io::IoSlice;
use std::ops::Range;

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;
use rustls::{
    AlertDescription, ConnectionTrafficSecrets, Error as TlsError, ExtractedSecrets, HandshakeType,
    InvalidMessage, PeerMisbehaved,
};
use tokio::io::ReadBuf;

use super::records::{
    ALERT, APPLICATION_DATA, FRAGMENT, HANDSHAKE, MAX_RECORD, OVERHEAD, Opener, Plaintext, Sealer,
    record_len, unexpected,
};

/// Handshake messages that may come after the handshake (RFC 8446 §4).
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;
/// Levels of alerts (RFC 8446 §6).
const WARNING: u8 = 1;
const FATAL: u8 = 2;
/// Longest record that is made of an alert or a key update, bytes.
pub(super) const CONTROL_LEN: usize = OVERHEAD + 5;
/// Records without data in a row that are tolerated: each costs time and gives nothing.
const MAX_IDLE_RECORDS: u32 = 32;
/// Most records that are held before they are opened. The C library of the static binary maps
/// longer blocks of memory each time anew.
const RECORDS_HELD: usize = 7;

/// What rustls keeps for key updates.
pub(super) enum Kernel {
    Client(KernelConnection<ClientConnectionData>),
    Server(KernelConnection<ServerConnectionData>),
}

impl From<KernelConnection<ClientConnectionData>> for Kernel {
    fn from(kernel: KernelConnection<ClientConnectionData>) -> Self {
        Self::Client(kernel)
    }
}

impl From<KernelConnection<ServerConnectionData>> for Kernel {
    fn from(kernel: KernelConnection<ServerConnectionData>) -> Self {
        Self::Server(kernel)
    }
}

impl Kernel {
    fn next_sending(&mut self) -> Result<(u64, ConnectionTrafficSecrets), TlsError> {
        match self {
            Self::Client(kernel) => kernel.update_tx_secret(),
            Self::Server(kernel) => kernel.update_tx_secret(),
        }
    }

    fn next_receiving(&mut self) -> Result<(u64, ConnectionTrafficSecrets), TlsError> {
        match self {
            Self::Client(kernel) => kernel.update_rx_secret(),
            Self::Server(kernel) => kernel.update_rx_secret(),
        }
    }

    /// Records that one key may protect (RFC 8446 §5.5).
    fn key_limit(&self) -> u64 {
        let suite = match self {
            Self::Client(kernel) => kernel.negotiated_cipher_suite(),
            Self::Server(kernel) => kernel.negotiated_cipher_suite(),
        };
        match suite.tls13() {
            Some(suite) => suite.common.confidentiality_limit,
            None => 0,
        }
    }
}

/// Keys of both directions, and ciphertext that waits to be opened.
pub(super) struct Traffic {
    kernel: Kernel,
    sealer: Sealer,
    opener: Opener,
    /// The peer wants this side's key renewed.
    renewal_wanted: bool,
    /// What arrived, the plaintext of a record that was opened in place included.
    incoming: Vec<u8>,
    /// Plaintext in `incoming` that nobody took yet.
    plaintext: Range<usize>,
    /// Where in `incoming` the next record begins.
    next: usize,
    /// Records without data since the last with some.
    idle: u32,
    /// The peer said that its stream is complete.
    ended: bool,
}

/// What the next record gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Given {
    /// Bytes for the reader.
    Bytes,
    /// Nothing for the reader; more records may be here.
    Control,
    /// The peer's stream is complete.
    End,
    /// The next record is not here, or not all of it.
    Incomplete,
}

impl Traffic {
    /// # Errors
    /// For a cipher that is not offered.
    pub(super) fn new(secrets: ExtractedSecrets, kernel: Kernel) -> Result<Self, TlsError> {
        Ok(Self {
            kernel,
            sealer: Sealer::new(secrets.tx)?,
            opener: Opener::new(secrets.rx)?,
            renewal_wanted: false,
            incoming: Vec::new(),
            plaintext: 0..0,
            next: 0,
            idle: 0,
            ended: false,
        })
    }

    /// True when the peer asked for a renewal of this side's key that was not sent yet.
    pub(super) fn is_renewal_wanted(&self) -> bool {
        self.renewal_wanted
    }

    /// Seals the first bytes of `slices`, at most `limit`, into records in `out`: how many bytes it
    /// took, and how long the records are. A renewal of the key comes first where one is due.
    ///
    /// # Errors
    /// When the cipher fails; nothing can be sent after that.
    ///
    /// # Panics
    /// If `out` is shorter than [`sealed_len`] says.
    pub(super) fn seal(
        &mut self,
        slices: &[IoSlice<'_>],
        limit: usize,
        out: &mut [u8],
    ) -> Result<(usize, usize), TlsError> {
        let mut plaintext = Plaintext::new(slices, limit);
        let taken = plaintext.len();
        let records = taken.div_ceil(FRAGMENT) as u64;
        let mut len = 0;
        // The limit is far above what one call seals.
        if self.renewal_wanted || self.sealer.records() + records > self.kernel.key_limit() {
            len = self.renew(false, out)?;
        }
        while plaintext.len() > 0 {
            len += self
                .sealer
                .seal(APPLICATION_DATA, &mut plaintext, &mut out[len..])?;
        }
        Ok((taken, len))
    }

    /// Tells the peer in `out` that this side's next records have another key, and whether it is
    /// asked to renew its own; returns the length of the record.
    pub(super) fn renew(&mut self, ask: bool, out: &mut [u8]) -> Result<usize, TlsError> {
        let len = self.control(HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, u8::from(ask)], out)?;
        self.sealer = Sealer::new(self.kernel.next_sending()?)?;
        self.renewal_wanted = false;
        Ok(len)
    }

    /// Says in `out` that this side's stream is complete; returns the length of the record.
    pub(super) fn close_notify(&mut self, out: &mut [u8]) -> Result<usize, TlsError> {
        self.control(ALERT, &[WARNING, AlertDescription::CloseNotify.into()], out)
    }

    /// Tells the peer in `out` what `fault` of its ended the connection; returns the length of the
    /// record.
    pub(super) fn alert(&mut self, fault: &TlsError, out: &mut [u8]) -> Result<usize, TlsError> {
        let description = match fault {
            TlsError::DecryptError => AlertDescription::BadRecordMac,
            TlsError::PeerSentOversizedRecord => AlertDescription::RecordOverflow,
            TlsError::InvalidMessage(_) => AlertDescription::DecodeError,
            TlsError::InappropriateMessage { .. }
            | TlsError::InappropriateHandshakeMessage { .. }
            | TlsError::PeerMisbehaved(_) => AlertDescription::UnexpectedMessage,
            _ => AlertDescription::InternalError,
        };
        self.control(ALERT, &[FATAL, description.into()], out)
    }

    fn control(&mut self, kind: u8, message: &[u8], out: &mut [u8]) -> Result<usize, TlsError> {
        let slices = [IoSlice::new(message)];
        let mut plaintext = Plaintext::new(&slices, message.len());
        self.sealer.seal(kind, &mut plaintext, out)
    }

    /// Appends what `read` adds to what arrived: it is given how much is wanted, bytes, for a
    /// reader with room for `room`. To be called when the next record is incomplete.
    pub(super) fn receive<T>(
        &mut self,
        room: usize,
        read: impl FnOnce(&mut Vec<u8>, usize) -> T,
    ) -> T {
        self.incoming.drain(..self.next);
        self.next = 0;
        self.plaintext = 0..0;
        let records = (room / FRAGMENT + 1).min(RECORDS_HELD);
        let wanted = (records * MAX_RECORD).saturating_sub(self.incoming.len());
        let outcome = read(&mut self.incoming, wanted);
        if self.incoming.is_empty() {
            // An idle connection holds no buffer.
            self.incoming = Vec::new();
        }
        outcome
    }

    /// Moves plaintext of the next record to `out`, or follows what the record says.
    ///
    /// # Errors
    /// The peer's alert, or what it did against the rules; nothing may be read after that.
    pub(super) fn give(&mut self, out: &mut ReadBuf<'_>) -> Result<Given, TlsError> {
        if self.plaintext.is_empty() {
            if self.ended {
                return Ok(Given::End);
            }
            let Some(record) = self.next_record()? else {
                return Ok(Given::Incomplete);
            };
            let opened_len = Opener::opened_len(&self.incoming[record.clone()]);
            if opened_len > out.remaining() {
                return self.open_in_place(record);
            }
            let room = out.initialize_unfilled_to(opened_len);
            let (kind, len) = self.opener.open_to(&self.incoming[record], room)?;
            if kind != APPLICATION_DATA {
                let message = room[..len].to_vec();
                return self.follow(kind, &message);
            }
            out.advance(len);
            return self.took(len);
        }
        let len = self.plaintext.len().min(out.remaining());
        out.put_slice(&self.incoming[self.plaintext.start..][..len]);
        self.plaintext.start += len;
        Ok(Given::Bytes)
    }

    /// Looks into the next record without a reader: data in it waits for one.
    ///
    /// # Errors
    /// As [`Traffic::give`].
    pub(super) fn look(&mut self) -> Result<Given, TlsError> {
        if !self.plaintext.is_empty() {
            return Ok(Given::Bytes);
        }
        if self.ended {
            return Ok(Given::End);
        }
        match self.next_record()? {
            None => Ok(Given::Incomplete),
            Some(record) => self.open_in_place(record),
        }
    }

    /// Data of an opened record that nobody took yet.
    pub(super) fn plaintext(&self) -> &[u8] {
        &self.incoming[self.plaintext.clone()]
    }

    /// Where the next record is, once all of it is here.
    fn next_record(&mut self) -> Result<Option<Range<usize>>, TlsError> {
        let here = &self.incoming[self.next..];
        match record_len(here)? {
            Some(len) if len <= here.len() => {
                let start = self.next;
                self.next += len;
                Ok(Some(start..self.next))
            }
            _ => Ok(None),
        }
    }

    fn open_in_place(&mut self, record: Range<usize>) -> Result<Given, TlsError> {
        let start = record.start;
        let (kind, within) = self.opener.open_in_place(&mut self.incoming[record])?;
        let place = start + within.start..start + within.end;
        if kind != APPLICATION_DATA {
            let message = self.incoming[place].to_vec();
            return self.follow(kind, &message);
        }
        let len = place.len();
        self.plaintext = place;
        self.took(len)
    }

    /// A record with `len` bytes of data was opened.
    fn took(&mut self, len: usize) -> Result<Given, TlsError> {
        if len == 0 {
            return self.bear();
        }
        self.idle = 0;
        Ok(Given::Bytes)
    }

    /// A record without data was opened.
    fn bear(&mut self) -> Result<Given, TlsError> {
        self.idle += 1;
        if self.idle > MAX_IDLE_RECORDS {
            return Err(PeerMisbehaved::TooManyEmptyFragments.into());
        }
        Ok(Given::Control)
    }

    /// Follows an alert or a message of the handshake protocol.
    fn follow(&mut self, kind: u8, message: &[u8]) -> Result<Given, TlsError> {
        match (kind, message) {
            (ALERT, &[_, description]) => match AlertDescription::from(description) {
                AlertDescription::CloseNotify => {
                    self.ended = true;
                    Ok(Given::End)
                }
                // A `close_notify` comes after it (RFC 8446 §6.1).
                AlertDescription::UserCanceled => self.bear(),
                // Every other alert ends the connection (RFC 8446 §6.2).
                alert => Err(TlsError::AlertReceived(alert)),
            },
            (ALERT, _) => Err(InvalidMessage::InvalidContentType.into()),
            (HANDSHAKE, message) => self.follow_handshake(message),
            (kind, _) => Err(unexpected(kind)),
        }
    }

    fn follow_handshake(&mut self, mut rest: &[u8]) -> Result<Given, TlsError> {
        // An empty message is refused, too (RFC 8446 §5.1).
        loop {
            // Nothing that may come here is long enough to be worth more than one record.
            let &[kind, a, b, c, ref after @ ..] = rest else {
                return Err(InvalidMessage::MessageTooShort.into());
            };
            let len = u32::from_be_bytes([0, a, b, c]) as usize;
            let Some((body, after)) = after.split_at_checked(len) else {
                return Err(InvalidMessage::MessageTooShort.into());
            };
            match (kind, body) {
                (KEY_UPDATE, &[ask @ (0 | 1)]) => {
                    // The next record has another key, so that nothing may follow (RFC 8446 §5.1).
                    if !after.is_empty() {
                        return Err(PeerMisbehaved::KeyEpochWithPendingFragment.into());
                    }
                    self.renewal_wanted |= ask == 1;
                    self.opener = Opener::new(self.kernel.next_receiving()?)?;
                }
                (KEY_UPDATE, _) => return Err(InvalidMessage::InvalidKeyUpdate.into()),
                // Sessions are not resumed here; a server of another program may offer it.
                (NEW_SESSION_TICKET, _) if matches!(self.kernel, Kernel::Client(_)) => {}
                (kind, _) => {
                    return Err(TlsError::InappropriateHandshakeMessage {
                        expect_types: vec![HandshakeType::KeyUpdate],
                        got_type: kind.into(),
                    });
                }
            }
            if after.is_empty() {
                return self.bear();
            }
            rest = after;
        }
    }
}

/// Bytes that `records` records of data take at most, with a renewal of the key before them.
pub(super) const fn sealed_len(records: usize) -> usize {
    CONTROL_LEN + records * (FRAGMENT + OVERHEAD)
}
