//! SOCKS5 as a local program speaks it (RFC 1928): its request, and our reply.
//!
//! `fast-socks5` reads and writes the messages; what is reached and how is ours.

use std::io;
use std::net::SocketAddr;

use fast_socks5::server::{Socks5ServerProtocol, SocksServerError, states};
use fast_socks5::util::target_addr::TargetAddr;
use fast_socks5::{ReplyError, Socks5Command};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::tunnel::target::{Host, TunnelTarget};

/// First byte of SOCKS version 4 and version 5.
pub(crate) const VERSION_4: u8 = 4;
pub(crate) const VERSION_5: u8 = 5;
/// The reply of version 4 to a request that is refused.
pub(crate) const REFUSED_4: [u8; 8] = [0, 0x5b, 0, 0, 0, 0, 0, 0];

/// What a local program wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SocksRequest {
    /// A TCP connection.
    Connect(TunnelTarget),
    /// To send and receive UDP datagrams. The address from which it will send, as far as it says.
    Associate(Option<SocketAddr>),
}

/// A request that waits for its reply.
pub(crate) struct Replier<S>(Socks5ServerProtocol<S, states::CommandRead>);

/// Reads a request. What is not one has been answered as RFC 1928 says, where it has an answer.
///
/// # Errors
/// For what is not a request that we can serve, in words.
pub(crate) async fn accept<S>(stream: S) -> Result<(SocksRequest, Replier<S>), String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let protocol = Socks5ServerProtocol::accept_no_auth(stream).await;
    let (protocol, command, address) = protocol
        .map_err(in_words)?
        .read_command()
        .await
        .map_err(in_words)?;
    let request = match command {
        Socks5Command::TCPConnect => target_of(address).map(SocksRequest::Connect),
        Socks5Command::UDPAssociate => {
            let said = match address {
                TargetAddr::Ip(address) if address.port() != 0 => Some(address),
                TargetAddr::Ip(_) | TargetAddr::Domain(..) => None,
            };
            Some(SocksRequest::Associate(said))
        }
        Socks5Command::TCPBind => {
            let refused = ReplyError::CommandNotSupported;
            protocol.reply_error(&refused).await.map_err(in_words)?;
            return Err("it asks for BIND: expected CONNECT or UDP ASSOCIATE".into());
        }
    };
    match request {
        Some(request) => Ok((request, Replier(protocol))),
        None => {
            let refused = ReplyError::HostUnreachable;
            protocol.reply_error(&refused).await.map_err(in_words)?;
            Err("expected a host name or an address, and a port from 1 to 65535".into())
        }
    }
}

fn in_words(error: SocksServerError) -> String {
    match error {
        SocksServerError::AuthMethodUnacceptable(methods) => format!(
            "it offers the authentication methods {methods:?}: expected no authentication (0)"
        ),
        error => error.to_string(),
    }
}

/// The target that `address` stands for; port 0 and what is not a host name stand for none.
fn target_of(address: TargetAddr) -> Option<TunnelTarget> {
    let (host, port) = match address {
        TargetAddr::Ip(address) => (Host::Address(address.ip().to_canonical()), address.port()),
        TargetAddr::Domain(name, port) => (name.parse().ok()?, port),
    };
    (port != 0).then_some(TunnelTarget { host, port })
}

impl<S: AsyncRead + AsyncWrite + Unpin> Replier<S> {
    /// Success, with the address at which the connection or the association is.
    pub(crate) async fn succeeded(self, at: SocketAddr) -> io::Result<()> {
        let replied = self.0.reply_success(at).await;
        replied.map(|_| ()).map_err(io::Error::other)
    }

    /// A failure.
    pub(crate) async fn failed(self, code: ReplyError) -> io::Result<()> {
        self.0.reply_error(&code).await.map_err(io::Error::other)
    }
}

/// Where a datagram of a local program is to go, and its payload. `None` for a datagram that is
/// dropped: malformed, a fragment (RFC 1928 §7), or to a host that is not one.
pub(crate) async fn datagram(bytes: &[u8]) -> Option<(TunnelTarget, &[u8])> {
    let (fragment, address, payload) = fast_socks5::parse_udp_request(bytes).await.ok()?;
    (fragment == 0).then_some(())?;
    Some((target_of(address)?, payload))
}

/// Writes a datagram for a local program into `out`: who sent it, and its payload.
pub(crate) fn encode_datagram(from: SocketAddr, payload: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend(fast_socks5::new_udp_header(from).expect("an address needs no lookup"));
    out.extend(payload);
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// What we make of a conversation, and all that was answered.
    async fn talk(bytes: &[u8]) -> (Result<SocksRequest, String>, Vec<u8>) {
        let (mut near, mut far) = duplex(1024);
        near.write_all(bytes).await.unwrap();
        near.shutdown().await.unwrap();
        let request = match accept(&mut far).await {
            Ok((request, replier)) => {
                replier
                    .succeeded(SocketAddr::from(([1, 2, 3, 4], 5)))
                    .await
                    .unwrap();
                Ok(request)
            }
            Err(error) => Err(error),
        };
        drop(far);
        let mut answered = Vec::new();
        near.read_to_end(&mut answered).await.unwrap();
        (request, answered)
    }

    #[tokio::test]
    async fn requests_are_read_and_answered() {
        const SUCCESS: &[u8] = &[5, 0, 5, 0, 0, 1, 1, 2, 3, 4, 0, 5];
        let connect = |text: &str| Ok(SocksRequest::Connect(text.parse().unwrap()));
        let hello = [5, 2, 1, 0];
        for (bytes, expected) in [
            (
                &b"\x05\x01\x00\x01\x01\x02\x03\x04\x00\x50"[..],
                connect("1.2.3.4:80"),
            ),
            (b"\x05\x01\x00\x03\x03NAS\x00\x16", connect("nas:22")),
            // An address as text, and an IPv4 address in IPv6, are what they stand for.
            (b"\x05\x01\x00\x03\x091.2.3.4.5\x00\x16", Err(String::new())),
            (
                b"\x05\x01\x00\x03\x071.2.3.4\x00\x16",
                connect("1.2.3.4:22"),
            ),
            (
                b"\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\x01\x00\x16",
                connect("127.0.0.1:22"),
            ),
            (
                b"\x05\x03\x00\x01\0\0\0\0\0\0",
                Ok(SocksRequest::Associate(None)),
            ),
            (
                b"\x05\x03\x00\x01\x7f\0\0\x01\0\x07",
                Ok(SocksRequest::Associate(Some(([127, 0, 0, 1], 7).into()))),
            ),
        ] {
            let (request, answered) = talk(&[&hello[..], bytes].concat()).await;
            match expected {
                Ok(expected) => {
                    assert_eq!(request.unwrap(), expected);
                    assert_eq!(answered, SUCCESS);
                }
                Err(_) => {
                    request.unwrap_err();
                    assert_eq!(answered[..4], [5, 0, 5, 4]);
                }
            }
        }
    }

    #[tokio::test]
    async fn what_we_do_not_serve_is_answered() {
        for (bytes, answer, words) in [
            // No method without a password.
            (
                &b"\x05\x01\x02"[..],
                &[5, 0xff][..],
                "expected no authentication",
            ),
            // BIND, an unknown command, an unknown kind of address, port 0.
            (
                b"\x05\x01\x00\x05\x02\x00\x01\x01\x02\x03\x04\x00\x50",
                &[5, 0, 5, 7],
                "expected CONNECT",
            ),
            (
                b"\x05\x01\x00\x05\x09\x00\x01\x01\x02\x03\x04\x00\x50",
                &[5, 0, 5, 7],
                "command",
            ),
            (
                b"\x05\x01\x00\x05\x01\x00\x07\x01\x02\x03\x04\x00\x50",
                &[5, 0, 5, 8],
                "",
            ),
            (
                b"\x05\x01\x00\x05\x01\x00\x01\x01\x02\x03\x04\x00\x00",
                &[5, 0, 5, 4],
                "a port from 1",
            ),
            (b"\x05\x01\x00\x05\x01", &[5, 0], ""),
            (b"\x04\x01", &[], "version"),
        ] {
            let (request, answered) = talk(bytes).await;
            let said = request.unwrap_err();
            assert!(said.contains(words) && !said.contains("BUG"), "{said}");
            assert!(answered.starts_with(answer), "{bytes:?}: {answered:?}");
        }
    }

    #[tokio::test]
    async fn datagrams_have_an_address_and_fragments_are_dropped() {
        let from: SocketAddr = "[fd00::1]:53".parse().unwrap();
        let mut bytes = Vec::new();
        encode_datagram(from, b"answer", &mut bytes);
        let (target, payload) = datagram(&bytes).await.unwrap();
        assert_eq!(
            (target.to_string(), payload),
            (from.to_string(), &b"answer"[..])
        );
        bytes[2] = 1;
        assert_eq!(datagram(&bytes).await, None);
        for wrong in [
            &b""[..],
            b"\0\0\0",
            b"\0\x01\0\x01abcd\0\x05",
            b"\0\0\0\x03\x02a",
        ] {
            assert_eq!(datagram(wrong).await, None, "{wrong:?}");
        }
    }
}
