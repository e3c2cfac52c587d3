//! The TLS handshake over a bare stream: rustls decides, here records are read and written.
//!
//! The peer is read record by record, so that nothing behind the handshake is taken along, and what
//! it can make this side keep is bounded by [`MAX_RECORD`] and [`MAX_INCOMING`].

use rustls::pki_types::ServerName;
use rustls::{
    ClientConnection, Connection, Error as TlsError, NamedGroup, ServerConnection,
    SupportedCipherSuite,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::config::Setup;
use super::error::SecureError;
use super::key::PublicKey;
use super::parting::farewell;
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
    pub(super) connection: Connection,
}

/// Speaks the client's part.
pub(super) async fn connect(stream: &mut Stream, setup: &Setup) -> Result<Agreed, SecureError> {
    // Not sent: keys are the names.
    let name = ServerName::try_from("tack.invalid").expect("a valid name");
    let config = setup.client().map_err(refused_setup)?;
    let side = ClientConnection::new(config, name).map_err(refused_setup)?;
    negotiate(stream, side.into(), setup).await
}

/// Speaks the server's part.
pub(super) async fn accept(stream: &mut Stream, setup: &Setup) -> Result<Agreed, SecureError> {
    let config = setup.server().map_err(refused_setup)?;
    let side = ServerConnection::new(config).map_err(refused_setup)?;
    negotiate(stream, side.into(), setup).await
}

/// rustls refuses what was asked of it, before a peer could have said anything.
fn refused_setup(error: TlsError) -> SecureError {
    SecureError::Misbehaved(error.to_string())
}

async fn negotiate(
    stream: &mut Stream,
    mut side: Connection,
    setup: &Setup,
) -> Result<Agreed, SecureError> {
    if let Err(error) = talk(stream, &mut side, setup).await {
        if matches!(error, SecureError::PeerIsNotEncrypted) {
            farewell(stream, &NOT_TLS).await;
        } else {
            // The alert with which rustls explains its refusal, if it has one.
            let words = written(&mut side);
            if !words.is_empty() {
                farewell(stream, &words).await;
            }
        }
        return Err(error);
    }
    // A server that knows no ALPN answers without one.
    if side.alpn_protocol() != Some(&setup.alpn) {
        return Err(SecureError::WrongProtocol);
    }
    let peer = side
        .peer_certificates()
        .and_then(|shown| PublicKey::from_spki(shown.first()?))
        .ok_or(SecureError::NoRawKey)?;
    let incomplete = || SecureError::from_tls(TlsError::HandshakeNotComplete, None, None);
    let suite = side.negotiated_cipher_suite().ok_or_else(incomplete)?;
    let group = side
        .negotiated_key_exchange_group()
        .ok_or_else(incomplete)?
        .name();
    Ok(Agreed {
        peer,
        suite,
        group,
        connection: side,
    })
}

/// Records to and fro until rustls is content.
async fn talk(
    stream: &mut Stream,
    side: &mut Connection,
    setup: &Setup,
) -> Result<(), SecureError> {
    let mut incoming = Vec::new();
    let mut received = 0;
    loop {
        let words = written(side);
        if !words.is_empty() {
            stream.write_all(&words).await.map_err(ended)?;
        }
        if !side.is_handshaking() {
            return Ok(());
        }
        incoming.clear();
        received += read_record(stream, &mut incoming, received == 0).await?;
        if received > MAX_INCOMING {
            return Err(SecureError::HandshakeTooLong);
        }
        let mut rest = &incoming[..];
        while !rest.is_empty() {
            side.read_tls(&mut rest).map_err(SecureError::Io)?;
            side.process_new_packets()
                .map_err(|error| setup.keys.explain(error))?;
        }
    }
}

/// What rustls wants to be sent.
fn written(side: &mut Connection) -> Vec<u8> {
    let mut words = Vec::new();
    while side.wants_write() {
        if side.write_tls(&mut words).is_err() {
            break;
        }
    }
    words
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
