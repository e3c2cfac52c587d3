//! The connections of a test: encrypted, or in clear text with `--insecure`. The two are on TCP
//! ports of their own.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use serde::Serialize;
use tack::secure::{
    Admission, Identity, PublicKey, SecureListenOptions, SecureListener, SecureReadHalf,
    SecureStream, SecureWriteHalf,
};
use tack::{
    Config, Endpoint, ListenError, ListenOptions, Listener, OwnedReadHalf, OwnedWriteHalf, Stats,
    Stream,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use super::args::PerfArgs;
use crate::address::Address;
use crate::exit::Failure;
use crate::net::{
    self, CLEAR_PERF_PORT, CLEAR_PERF_UDP_PORT, Dial, Encryption, PERF_PORT, PERF_UDP_PORT,
};

/// The protocol inside TLS.
const ALPN: &[u8] = b"tack-perf/2";

/// What this side's connections carry.
#[derive(Clone, Debug)]
pub(crate) enum Security {
    Clear,
    Encrypted(Identity),
}

/// How the data of a test is protected, as results say it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub(crate) struct Protection {
    pub(crate) encrypted: bool,
    /// As `TLS13_AES_128_GCM_SHA256`.
    pub(crate) cipher: Option<String>,
    /// As `X25519MLKEM768`.
    pub(crate) key_exchange: Option<String>,
}

impl Security {
    /// What the command line wants. An identity for this run alone: nothing about a test on
    /// loopback is to be remembered.
    pub(crate) fn of(args: &PerfArgs) -> Result<Self, Failure> {
        if args.is_clear() {
            return Ok(Self::Clear);
        }
        Identity::generate()
            .map(Self::Encrypted)
            .map_err(|error| Failure::failed("cannot make a key", error))
    }

    /// The UDP port of servers, unless the command line says another.
    pub(crate) fn udp_port(&self) -> u16 {
        match self {
            Self::Clear => CLEAR_PERF_UDP_PORT,
            Self::Encrypted(_) => PERF_UDP_PORT,
        }
    }

    fn tcp_port(&self) -> u16 {
        match self {
            Self::Clear => CLEAR_PERF_PORT,
            Self::Encrypted(_) => PERF_PORT,
        }
    }

    /// For the endpoint of a server.
    pub(crate) fn identity(&self) -> Option<Identity> {
        match self {
            Self::Clear => None,
            Self::Encrypted(identity) => Some(identity.clone()),
        }
    }

    /// Opens the control connection to the server at `address`.
    pub(crate) async fn dial(
        &self,
        args: &PerfArgs,
        address: &Address,
        config: &Config,
    ) -> Result<Link, Failure> {
        let dial = Dial {
            udp_port: self.udp_port(),
            tcp_port: self.tcp_port(),
            service: match self {
                Self::Clear => "tack perf --server --insecure",
                Self::Encrypted(_) => "tack perf --server",
            },
            reach: args.reach(),
            family: args.family(),
            from: args.bind,
            patience: args.connect_timeout,
        };
        match self {
            Self::Clear => net::connect(address, &dial, config).await.map(Link::Clear),
            Self::Encrypted(identity) => {
                let encryption = Encryption {
                    identity: identity.clone(),
                    // On loopback whoever answers is this machine.
                    expected: None,
                    alpn: ALPN,
                };
                net::connect_encrypted(address, &dial, config, &encryption)
                    .await
                    .map(Link::encrypted)
            }
        }
    }

    /// Listens for control connections; tells `strangers` of peers whose handshake failed, and why,
    /// while there is room.
    pub(crate) fn listen(
        &self,
        endpoint: &Endpoint,
        options: ListenOptions,
        strangers: mpsc::Sender<Stranger>,
    ) -> Result<Listening, ListenError> {
        match self {
            Self::Clear => Listening::clear(endpoint, self.tcp_port(), options),
            Self::Encrypted(_) => {
                // Bound to loopback: whoever comes is on this machine.
                let options = SecureListenOptions::new(ALPN, |_, _| Admission::Admit)
                    .transport(options)
                    .on_failure(move |peer, error| {
                        // What does not fit is a flood, and one like the other.
                        let _ = strangers.try_send((peer, error.to_string()));
                    });
                Listening::encrypted(endpoint, self.tcp_port(), options)
            }
        }
    }

    /// Listens on TCP port `port` for the data connections of one client, which has this key if it
    /// encrypts.
    pub(crate) fn listen_for(
        &self,
        client: Option<PublicKey>,
        endpoint: &Endpoint,
        port: u16,
        options: ListenOptions,
    ) -> Result<Listening, ListenError> {
        match self {
            Self::Clear => Listening::clear(endpoint, port, options),
            Self::Encrypted(_) => {
                let admit = move |key: &PublicKey, _: SocketAddr| {
                    if client == Some(*key) {
                        Admission::Admit
                    } else {
                        Admission::Refuse
                    }
                };
                let options = SecureListenOptions::new(ALPN, admit).transport(options);
                Listening::encrypted(endpoint, port, options)
            }
        }
    }
}

/// A peer without a connection, and why it has none.
pub(crate) type Stranger = (SocketAddr, String);

/// Where connections arrive.
#[derive(Debug)]
pub(crate) enum Listening {
    Clear(Listener),
    Encrypted(Box<SecureListener>),
}

impl Listening {
    fn clear(endpoint: &Endpoint, port: u16, options: ListenOptions) -> Result<Self, ListenError> {
        endpoint.listen_with(port, options).map(Self::Clear)
    }

    fn encrypted(
        endpoint: &Endpoint,
        port: u16,
        options: SecureListenOptions,
    ) -> Result<Self, ListenError> {
        let listener = endpoint.listen_secure(port, options)?;
        Ok(Self::Encrypted(Box::new(listener)))
    }

    pub(crate) async fn accept(&self) -> io::Result<(Link, SocketAddr)> {
        Ok(match self {
            Self::Clear(listener) => {
                let (stream, peer) = listener.accept().await?;
                (Link::Clear(stream), peer)
            }
            Self::Encrypted(listener) => {
                let (stream, peer) = listener.accept().await?;
                (Link::encrypted(stream), peer)
            }
        })
    }

    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::Clear(listener) => listener.port(),
            Self::Encrypted(listener) => listener.port(),
        }
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) enum Link {
    Clear(Stream),
    Encrypted(Box<SecureStream>),
}

impl Link {
    fn encrypted(stream: SecureStream) -> Self {
        Self::Encrypted(Box::new(stream))
    }

    /// Another connection to the same peer, at its TCP port `port`, protected in the same way.
    pub(crate) async fn another(&self, port: u16, config: &Config) -> io::Result<Self> {
        let endpoint = self.endpoint();
        let connect = endpoint.connect(self.peer_addr()).port(port);
        let connect = connect.config(config.clone());
        match self {
            Self::Clear(_) => Ok(Self::Clear(connect.await?)),
            Self::Encrypted(stream) => {
                let connect = connect.expecting(stream.peer_key(), ALPN);
                Ok(Self::encrypted(connect.await?))
            }
        }
    }

    pub(crate) fn protection(&self) -> Protection {
        match self {
            Self::Clear(_) => Protection::default(),
            Self::Encrypted(stream) => Protection {
                encrypted: true,
                cipher: Some(stream.cipher()),
                key_exchange: Some(stream.key_exchange()),
            },
        }
    }

    /// The key that the peer has proven.
    pub(crate) fn peer_key(&self) -> Option<PublicKey> {
        match self {
            Self::Clear(_) => None,
            Self::Encrypted(stream) => Some(stream.peer_key()),
        }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        match self {
            Self::Clear(stream) => stream.endpoint(),
            Self::Encrypted(stream) => stream.endpoint(),
        }
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        match self {
            Self::Clear(stream) => stream.local_addr(),
            Self::Encrypted(stream) => stream.local_addr(),
        }
    }

    pub(crate) fn peer_addr(&self) -> SocketAddr {
        match self {
            Self::Clear(stream) => stream.peer_addr(),
            Self::Encrypted(stream) => stream.peer_addr(),
        }
    }

    pub(crate) async fn finished(&self) -> io::Result<()> {
        match self {
            Self::Clear(stream) => stream.finished().await,
            Self::Encrypted(stream) => stream.finished().await,
        }
    }

    pub(crate) fn reset(self) {
        match self {
            Self::Clear(stream) => stream.reset(),
            Self::Encrypted(stream) => stream.reset(),
        }
    }

    pub(crate) fn into_split(self) -> (LinkReader, LinkWriter) {
        match self {
            Self::Clear(stream) => {
                let (reader, writer) = stream.into_split();
                (LinkReader::Clear(reader), LinkWriter::Clear(writer))
            }
            Self::Encrypted(stream) => {
                let (reader, writer) = stream.into_split();
                (LinkReader::Encrypted(reader), LinkWriter::Encrypted(writer))
            }
        }
    }
}

/// The reading half of a [`Link`].
#[derive(Debug)]
pub(crate) enum LinkReader {
    Clear(OwnedReadHalf),
    Encrypted(SecureReadHalf),
}

/// The writing half of a [`Link`].
#[derive(Debug)]
pub(crate) enum LinkWriter {
    Clear(OwnedWriteHalf),
    Encrypted(SecureWriteHalf),
}

impl LinkWriter {
    /// What the transport counted, where the acknowledged bytes are those that were written here.
    pub(crate) fn stats(&self) -> Stats {
        match self {
            Self::Clear(writer) => writer.stats(),
            Self::Encrypted(writer) => {
                let mut stats = writer.stats();
                stats.bytes_acked = writer.acknowledged();
                stats
            }
        }
    }

    pub(crate) async fn finished(&self) -> io::Result<()> {
        match self {
            Self::Clear(writer) => writer.finished().await,
            Self::Encrypted(writer) => writer.finished().await,
        }
    }
}

impl AsyncRead for Link {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Encrypted(stream) => Pin::new(&mut **stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Link {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Encrypted(stream) => Pin::new(&mut **stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_flush(cx),
            Self::Encrypted(stream) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Encrypted(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
        }
    }
}

impl AsyncRead for LinkReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(reader) => Pin::new(reader).poll_read(cx, buf),
            Self::Encrypted(reader) => Pin::new(reader).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for LinkWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(writer) => Pin::new(writer).poll_write(cx, bytes),
            Self::Encrypted(writer) => Pin::new(writer).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(writer) => Pin::new(writer).poll_flush(cx),
            Self::Encrypted(writer) => Pin::new(writer).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(writer) => Pin::new(writer).poll_shutdown(cx),
            Self::Encrypted(writer) => Pin::new(writer).poll_shutdown(cx),
        }
    }
}
