//! The TLS handshake over a bare stream: rustls decides, here records are read and written.
//!
//! The peer is read record by record, so that nothing behind the handshake is taken along, and what
//! it can make this side keep is bounded by [`MAX_RECORD`] and [`MAX_INCOMING`].

use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::pki_types::ServerName;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, InsufficientSizeError, UnbufferedStatus};
use rustls::{CommonState, ConnectionTrafficSecrets, Error as TlsError, ExtractedSecrets};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::config::Setup;
use super::error::SecureError;
use super::key::PublicKey;
use super::parting::farewell;
use super::record::HEADER;
use crate::stream::Stream;

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

/// Computes new traffic keys after the handshake.
pub(super) enum Kernel {
    Client(Box<KernelConnection<ClientConnectionData>>),
    Server(Box<KernelConnection<ServerConnectionData>>),
}

impl Kernel {
    pub(super) fn next_sending(&mut self) -> Result<(u64, ConnectionTrafficSecrets), TlsError> {
        match self {
            Self::Client(kernel) => kernel.update_tx_secret(),
            Self::Server(kernel) => kernel.update_tx_secret(),
        }
    }

    pub(super) fn next_receiving(&mut self) -> Result<(u64, ConnectionTrafficSecrets), TlsError> {
        match self {
            Self::Client(kernel) => kernel.update_rx_secret(),
            Self::Server(kernel) => kernel.update_rx_secret(),
        }
    }
}

/// What a handshake agreed on.
pub(super) struct Agreed {
    pub(super) peer: PublicKey,
    pub(super) suite: rustls::SupportedCipherSuite,
    pub(super) group: rustls::NamedGroup,
    pub(super) secrets: ExtractedSecrets,
    pub(super) kernel: Kernel,
}

/// Either side, as rustls drives it.
enum Side {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

/// What rustls wants next.
enum Step {
    /// These bytes are to be sent.
    Encoded(Vec<u8>),
    /// Everything encoded is to be sent now.
    Transmit,
    /// More of the peer is needed.
    Read,
    Done,
}

impl Side {
    fn step(&mut self, incoming: &mut [u8]) -> (usize, Result<Step, TlsError>) {
        match self {
            Self::Client(side) => step(side.process_tls_records(incoming)),
            Self::Server(side) => step(side.process_tls_records(incoming)),
        }
    }

    fn common(&self) -> &CommonState {
        match self {
            Self::Client(side) => side,
            Self::Server(side) => side,
        }
    }

    fn into_kernel(self) -> Result<(ExtractedSecrets, Kernel), TlsError> {
        Ok(match self {
            Self::Client(side) => {
                let (secrets, kernel) = side.dangerous_into_kernel_connection()?;
                (secrets, Kernel::Client(Box::new(kernel)))
            }
            Self::Server(side) => {
                let (secrets, kernel) = side.dangerous_into_kernel_connection()?;
                (secrets, Kernel::Server(Box::new(kernel)))
            }
        })
    }
}

fn step<Data>(status: UnbufferedStatus<'_, '_, Data>) -> (usize, Result<Step, TlsError>) {
    let step = status.state.and_then(|state| match state {
        ConnectionState::EncodeTlsData(mut data) => {
            let mut bytes = vec![0; MAX_RECORD];
            loop {
                match data.encode(&mut bytes) {
                    Ok(len) => {
                        bytes.truncate(len);
                        return Ok(Step::Encoded(bytes));
                    }
                    Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
                        bytes.resize(required_size, 0);
                    }
                    Err(error) => return Err(TlsError::General(error.to_string())),
                }
            }
        }
        ConnectionState::TransmitTlsData(data) => {
            data.done();
            Ok(Step::Transmit)
        }
        ConnectionState::BlockedHandshake => Ok(Step::Read),
        ConnectionState::WriteTraffic(_) => Ok(Step::Done),
        // An end (`close_notify`), or data, before the handshake is over.
        _ => Err(TlsError::HandshakeNotComplete),
    });
    (status.discard, step)
}

/// Speaks the client's part.
pub(super) async fn connect(stream: &mut Stream, setup: &Setup) -> Result<Agreed, SecureError> {
    // Not sent: keys are the names.
    let name = ServerName::try_from("tack.invalid").expect("a valid name");
    let config = setup.client().map_err(refused_setup)?;
    let side = UnbufferedClientConnection::new(config, name).map_err(refused_setup)?;
    negotiate(stream, Side::Client(side), setup).await
}

/// Speaks the server's part.
pub(super) async fn accept(stream: &mut Stream, setup: &Setup) -> Result<Agreed, SecureError> {
    let config: Arc<_> = setup.server().map_err(refused_setup)?;
    let side = UnbufferedServerConnection::new(config).map_err(refused_setup)?;
    negotiate(stream, Side::Server(side), setup).await
}

/// rustls refuses what was asked of it, before a peer could have said anything.
fn refused_setup(error: TlsError) -> SecureError {
    SecureError::Misbehaved(error.to_string())
}

async fn negotiate(
    stream: &mut Stream,
    mut side: Side,
    setup: &Setup,
) -> Result<Agreed, SecureError> {
    if let Err(error) = talk(stream, &mut side, setup).await {
        if matches!(error, SecureError::PeerIsNotEncrypted) {
            farewell(stream, &NOT_TLS).await;
        } else {
            let words = last_words(&mut side);
            if !words.is_empty() {
                farewell(stream, &words).await;
            }
        }
        return Err(error);
    }
    let common = side.common();
    // A server that knows no ALPN answers without one.
    if common.alpn_protocol() != Some(&setup.alpn) {
        return Err(SecureError::WrongProtocol);
    }
    let peer = common
        .peer_certificates()
        .and_then(|shown| PublicKey::from_spki(shown.first()?))
        .ok_or(SecureError::NoRawKey)?;
    let incomplete = || SecureError::from_tls(TlsError::HandshakeNotComplete, None, None);
    let suite = common.negotiated_cipher_suite().ok_or_else(incomplete)?;
    let group = common
        .negotiated_key_exchange_group()
        .ok_or_else(incomplete)?
        .name();
    let (secrets, kernel) = side
        .into_kernel()
        .map_err(|error| SecureError::Misbehaved(error.to_string()))?;
    Ok(Agreed {
        peer,
        suite,
        group,
        secrets,
        kernel,
    })
}

/// Records to and fro until rustls is content.
async fn talk(stream: &mut Stream, side: &mut Side, setup: &Setup) -> Result<(), SecureError> {
    let mut incoming = Vec::new();
    let mut outgoing = Vec::new();
    let mut received = 0;
    loop {
        let (discard, step) = side.step(&mut incoming);
        incoming.drain(..discard);
        let step = step.map_err(|error| {
            let expected = setup.keys.expected();
            SecureError::from_tls(error, expected, setup.keys.shown())
        })?;
        match step {
            Step::Encoded(bytes) => outgoing.extend(bytes),
            Step::Transmit => {
                stream.write_all(&outgoing).await.map_err(ended)?;
                outgoing.clear();
            }
            Step::Done if !side.common().is_handshaking() => return Ok(()),
            Step::Done | Step::Read => {
                received += read_record(stream, &mut incoming, received == 0).await?;
                if received > MAX_INCOMING {
                    return Err(SecureError::HandshakeTooLong);
                }
            }
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

/// The alert with which rustls explains its refusal, if it has one, after what has to go before it.
fn last_words(side: &mut Side) -> Vec<u8> {
    let mut words = Vec::new();
    // Without anything to send rustls would look for the rest of a message that is not there.
    while side.common().wants_write() {
        match side.step(&mut []).1 {
            Ok(Step::Encoded(bytes)) => words.extend(bytes),
            _ => break,
        }
    }
    words
}
