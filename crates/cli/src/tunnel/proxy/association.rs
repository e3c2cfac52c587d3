//! UDP ASSOCIATE of SOCKS5 (RFC 1928 §7): datagrams of a local program, carried over one connection
//! to the peer.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use super::socks;
use crate::meeting::PeerStream;
use crate::observe::tunnels;
use crate::transfer::channel::Writer;
use crate::tunnel::carrier::Carrier;
use crate::tunnel::datagram;
use crate::tunnel::dial::RequestError;
use crate::tunnel::message::{Answer, Request};
use crate::tunnel::target::Host;

/// A port for the datagrams of a local program, and the way to the peer.
pub(super) struct Association {
    socket: UdpSocket,
    address: SocketAddr,
    client: Client,
    peer: PeerStream,
}

/// The local program: datagrams of others are dropped.
struct Client {
    host: IpAddr,
    /// The port that it has said or from which its first datagram came.
    port: Mutex<Option<u16>>,
}

impl Client {
    fn port(&self) -> std::sync::MutexGuard<'_, Option<u16>> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is(&self, from: SocketAddr) -> bool {
        from.ip() == self.host && self.port().is_none_or(|port| port == from.port())
    }
}

/// Opens a port beside the connection of the program `from` to `local`: at the same address, which
/// the program can reach. It has `said` where its datagrams will come from.
///
/// # Errors
/// [`RequestError`]; a refusal is one.
pub(super) async fn open(
    local: SocketAddr,
    from: SocketAddr,
    said: Option<SocketAddr>,
    carrier: &Carrier,
) -> Result<Association, RequestError> {
    let lost = |error: io::Error| RequestError::Lost(error.to_string());
    let socket = UdpSocket::bind(beside(local)).await.map_err(lost)?;
    let address = socket.local_addr().map_err(lost)?;
    let (peer, answer) = carrier.peer.request(&Request::Associate).await?;
    if answer != Answer::Associated {
        peer.reset();
        let words = "unexpected answer from the other side";
        return Err(RequestError::Lost(words.into()));
    }
    let host = from.ip().to_canonical();
    let port = said
        .filter(|said| said.ip().is_unspecified() || said.ip().to_canonical() == host)
        .map(|said| said.port());
    let client = Client {
        host,
        port: Mutex::new(port),
    };
    Ok(Association {
        socket,
        address,
        client,
        peer,
    })
}

/// Any free port at the address `local`; one of IPv4 in IPv6 is one of IPv4.
fn beside(local: SocketAddr) -> SocketAddr {
    let mut address = match local.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, 0),
        // With its scope.
        IpAddr::V6(_) => local,
    };
    address.set_port(0);
    address
}

impl Association {
    /// Where the program sends its datagrams.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Carries datagrams until the program ends its connection `control`, or the peer is lost.
    pub(super) async fn run(self, mut control: TcpStream) {
        let Self {
            socket,
            client,
            peer,
            ..
        } = self;
        let (mut reader, mut writer) = peer.into_split();
        let outgoing = async {
            let mut bytes = vec![0; datagram::MAX_DATAGRAM];
            let mut out = Vec::new();
            loop {
                let (len, from) = socket.recv_from(&mut bytes).await?;
                if !client.is(from) {
                    continue;
                }
                let Some((target, payload)) = socks::datagram(&bytes[..len]).await else {
                    continue;
                };
                *client.port() = Some(from.port());
                tunnels().datagrams.to_peer.inc();
                out.clear();
                if datagram::encode(&target, payload, &mut out).is_ok() {
                    writer.write_all(&out).await?;
                    writer.flush().await?;
                }
            }
            #[expect(unreachable_code, reason = "the type of what never ends well")]
            io::Result::Ok(())
        };
        let incoming = async {
            let (mut bytes, mut out) = (Vec::new(), Vec::new());
            while datagram::read(&mut reader, &mut bytes).await? {
                let (from, payload) = datagram::decode(&bytes)?;
                let Host::Address(address) = from.host else {
                    continue;
                };
                tunnels().datagrams.from_peer.inc();
                let port = *client.port();
                if let Some(port) = port {
                    let from = SocketAddr::new(address, from.port);
                    socks::encode_datagram(from, payload, &mut out);
                    // A datagram that does not fit, or that nobody wants, is lost.
                    let _ = socket.send_to(&out, (client.host, port)).await;
                }
            }
            io::Result::Ok(())
        };
        let ended = async {
            // RFC 1928 has no more to say here; the end of the connection ends the association.
            let mut ignored = [0; 256];
            while matches!(control.read(&mut ignored).await, Ok(1..)) {}
        };
        tokio::select! {
            _ = outgoing => {}
            _ = incoming => {}
            () = ended => {}
        }
        writer.abort();
    }
}
