//! The TLS handshake over a bare stream: rustls decides, here records are read and written.
//!
//! The peer is read record by record, so that nothing behind the handshake is taken along, and what
//! it can make this side keep is bounded by [`MAX_RECORD`] and [`MAX_INCOMING`].

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{CommonState, Error as TlsError, NamedGroup, SupportedCipherSuite};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::config::Setup;
use super::error::SecureError;
use super::exporter::{Exporter, SecretKeeper};
use super::key::PublicKey;
use super::parting::farewell;
use super::traffic::Traffic;
use crate::stream::Stream;

/// Header of a record.
const HEADER: usize = 5;
/// Longest record of a handshake, bytes. Ours have up to 1.5 KiB, most of it the hybrid key share.
const MAX_RECORD: usize = 4 << 10;
/// Most that a peer sends in a whole handshake, bytes.
const MAX_INCOMING: usize = 16 << 10;

/// The alert that a side which speaks TLS sends to one that does not: fatal, unexpected message
/// (RFC 8446 §6.2).
const NOT_TLS: [u8; 7] = [21, 3, 3, 0, 2, 2, 10];

/// True when `byte`, the first that a peer sent, begins TLS: a handshake or an alert (RFC 8446
/// §5.1). For services in clear text, so that they can say so.
pub fn is_tls(byte: u8) -> bool {
    byte == 0x16 || byte == 0x15
}

/// A stream whose handshake is under way: reset when it is given up.
#[derive(Debug)]
pub(super) struct Unfinished(Option<Stream>);

impl Unfinished {
    pub(super) fn new(stream: Stream) -> Self {
        Self(Some(stream))
    }

    pub(super) fn stream(&mut self) -> &mut Stream {
        self.0.as_mut().expect("only `finish` takes it")
    }

    pub(super) fn finish(mut self) -> Stream {
        self.0.take().expect("taken once")
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(stream) = self.0.take() {
            stream.reset();
        }
    }
}

/// What a handshake agreed on.
pub(super) struct Agreed {
    pub(super) peer: PublicKey,
    pub(super) suite: SupportedCipherSuite,
    pub(super) group: NamedGroup,
    pub(super) exporter: Exporter,
    pub(super) traffic: Traffic,
}

/// Speaks the client's part.
pub(super) async fn connect(stream: &mut Stream, setup: &Setup) -> Result<Agreed, SecureError> {
    // Not sent: keys are the names.
    let name = ServerName::try_from("tack.invalid").expect("a valid name");
    let (config, keeper) = setup.client().map_err(refused_setup)?;
    let side = UnbufferedClientConnection::new(config, name).map_err(refused_setup)?;
    negotiate(stream, Side::Client(side), setup, &keeper).await
}

/// Speaks the server's part.
pub(super) async fn accept(stream: &mut Stream, setup: &Setup) -> Result<Agreed, SecureError> {
    let (config, keeper) = setup.server().map_err(refused_setup)?;
    let side = UnbufferedServerConnection::new(config).map_err(refused_setup)?;
    negotiate(stream, Side::Server(side), setup, &keeper).await
}

/// rustls refuses what was asked of it, before a peer could have said anything.
fn refused_setup(error: TlsError) -> SecureError {
    SecureError::Misbehaved(error.to_string())
}

/// One side of a handshake.
pub(super) enum Side {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

/// What rustls wants next.
enum Step {
    /// To be asked again.
    Again,
    /// The peer's next record.
    Record,
    /// Nothing: the handshake is complete.
    Nothing,
}

impl Side {
    fn state(&self) -> &CommonState {
        match self {
            Self::Client(side) => side,
            Self::Server(side) => side,
        }
    }

    /// One step of rustls, which takes bytes from the front of `incoming` and appends to `words`
    /// what the peer is to be told.
    fn step(&mut self, incoming: &mut Vec<u8>, words: &mut Vec<u8>) -> Result<Step, TlsError> {
        let (taken, step) = match self {
            Self::Client(side) => follow(side.process_tls_records(incoming), words),
            Self::Server(side) => follow(side.process_tls_records(incoming), words),
        };
        incoming.drain(..taken);
        step
    }

    /// Steps until rustls wants the peer's next record (true) or the handshake is complete.
    pub(super) fn advance(
        &mut self,
        incoming: &mut Vec<u8>,
        words: &mut Vec<u8>,
    ) -> Result<bool, TlsError> {
        loop {
            match self.step(incoming, words)? {
                Step::Again => {}
                Step::Record => return Ok(true),
                Step::Nothing => return Ok(self.state().is_handshaking()),
            }
        }
    }

    /// The alert with which rustls explains its refusal, if it has one.
    fn last_words(&mut self) -> Vec<u8> {
        let mut words = Vec::new();
        // What waits to be sent comes before anything else; after it rustls would read on.
        while self.state().wants_write() {
            if self.step(&mut Vec::new(), &mut words).is_err() {
                break;
            }
        }
        words
    }

    pub(super) fn into_traffic(self) -> Result<Traffic, TlsError> {
        match self {
            Self::Client(side) => {
                let (secrets, kernel) = side.dangerous_into_kernel_connection()?;
                Traffic::new(secrets, kernel.into())
            }
            Self::Server(side) => {
                let (secrets, kernel) = side.dangerous_into_kernel_connection()?;
                Traffic::new(secrets, kernel.into())
            }
        }
    }
}

/// Does what rustls asks for; how many bytes it took.
fn follow<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    words: &mut Vec<u8>,
) -> (usize, Result<Step, TlsError>) {
    let step = status.state.and_then(|state| match state {
        ConnectionState::EncodeTlsData(mut data) => {
            let start = words.len();
            if let Err(EncodeError::InsufficientSize(wanted)) = data.encode(&mut []) {
                words.resize(start + wanted.required_size, 0);
                let encoded = data.encode(&mut words[start..]);
                encoded.map_err(|error| TlsError::General(error.to_string()))?;
            }
            Ok(Step::Again)
        }
        // They are on their way before the peer is heard again.
        ConnectionState::TransmitTlsData(data) => {
            data.done();
            Ok(Step::Again)
        }
        ConnectionState::BlockedHandshake => Ok(Step::Record),
        ConnectionState::WriteTraffic(_) => Ok(Step::Nothing),
        other => Err(TlsError::General(format!("{other:?} in the handshake"))),
    });
    (status.discard, step)
}

async fn negotiate(
    stream: &mut Stream,
    mut side: Side,
    setup: &Setup,
    keeper: &SecretKeeper,
) -> Result<Agreed, SecureError> {
    let mut incoming = Vec::new();
    if let Err(error) = talk(stream, &mut side, &mut incoming, setup).await {
        if matches!(error, SecureError::PeerIsNotEncrypted) {
            farewell(stream, &NOT_TLS).await;
        } else {
            let words = side.last_words();
            if !words.is_empty() {
                farewell(stream, &words).await;
            }
        }
        return Err(error);
    }
    let state = side.state();
    // A server that knows no ALPN answers without one.
    if state.alpn_protocol() != Some(&setup.alpn) {
        return Err(SecureError::WrongProtocol);
    }
    let peer = state
        .peer_certificates()
        .and_then(|shown| PublicKey::from_spki(shown.first()?))
        .ok_or(SecureError::NoRawKey)?;
    let failed = |error| SecureError::from_tls(error, None, None);
    let incomplete = || failed(TlsError::HandshakeNotComplete);
    let suite = state.negotiated_cipher_suite().ok_or_else(incomplete)?;
    let group = state
        .negotiated_key_exchange_group()
        .ok_or_else(incomplete)?
        .name();
    let secret = keeper.take().ok_or_else(incomplete)?;
    let exporter = Exporter::new(suite.tls13().ok_or_else(incomplete)?, &secret);
    Ok(Agreed {
        peer,
        suite,
        group,
        exporter,
        traffic: side.into_traffic().map_err(failed)?,
    })
}

/// Records to and fro until rustls is content.
async fn talk(
    stream: &mut Stream,
    side: &mut Side,
    incoming: &mut Vec<u8>,
    setup: &Setup,
) -> Result<(), SecureError> {
    let mut received = 0;
    let mut words = Vec::new();
    loop {
        let advanced = side.advance(incoming, &mut words);
        let wants_record = advanced.map_err(|error| setup.keys.explain(error))?;
        if !words.is_empty() {
            stream.write_all(&words).await.map_err(ended)?;
            words.clear();
        }
        if !wants_record {
            // Whole records were read, and the last one is the peer's last of the handshake.
            let rest = !incoming.is_empty();
            return match rest {
                true => Err(SecureError::Misbehaved("bytes after the handshake".into())),
                false => Ok(()),
            };
        }
        received += read_record(stream, incoming, received == 0).await?;
        if received > MAX_INCOMING {
            return Err(SecureError::HandshakeTooLong);
        }
    }
}

/// Appends the peer's next record; returns its length.
async fn read_record(
    stream: &mut Stream,
    incoming: &mut Vec<u8>,
    first: bool,
) -> Result<usize, SecureError> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header[..1]).await.map_err(ended)?;
    if first && !is_tls(header[0]) {
        return Err(SecureError::PeerIsNotEncrypted);
    }
    stream.read_exact(&mut header[1..]).await.map_err(ended)?;
    let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
    if len > MAX_RECORD {
        return Err(SecureError::HandshakeTooLong);
    }
    let start = incoming.len();
    incoming.extend(header);
    incoming.resize(start + HEADER + len, 0);
    let body = &mut incoming[start + HEADER..];
    stream.read_exact(body).await.map_err(ended)?;
    Ok(HEADER + len)
}

/// An end of the connection, which the transport may tell as an error.
fn ended(error: std::io::Error) -> SecureError {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof
        | std::io::ErrorKind::ConnectionReset
        | std::io::ErrorKind::BrokenPipe => SecureError::EndedEarly,
        _ => SecureError::Io(error),
    }
}
