//! What the two ends of a tunnel say before a connection's bytes: a request, and its answer.
//!
//! A message is its length (2 bytes, big-endian, at most [`MAX_MESSAGE`]), its kind (1 byte) and
//! its fields. `docs/tunnel-protocol.md` lists them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::target::{Host, MAX_NAME, TunnelTarget};

/// Longest message, bytes after its length.
const MAX_MESSAGE: usize = 1 + 2 + MAX_NAME;

/// Most addresses in an answer: more do not fit, if they are of IPv6.
pub(crate) const MAX_ADDRESSES: usize = (MAX_MESSAGE - 1) / 17;

/// What the side that connected wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// A TCP connection to a target.
    Connect(TunnelTarget),
    /// To listen for TCP connections here, at this address and port; port 0 is any free one.
    Listen(SocketAddr),
    /// The accepted connection with this number.
    Accept(u64),
    /// To send and receive UDP datagrams.
    Associate,
    /// The addresses of this name. Further such requests may follow on the same stream.
    Resolve(String),
}

/// What the serving side answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// The connection is there: its bytes follow. The address of the serving side in it.
    Open(SocketAddr),
    /// The serving side listens at this address. An [`Answer::Arrived`] follows for each
    /// connection.
    Listening(SocketAddr),
    /// A connection was accepted: its number, and who made it.
    Arrived(u64, SocketAddr),
    /// UDP datagrams follow in both directions ([`super::datagram`]).
    Associated,
    /// The addresses of the name, at least one and at most [`MAX_ADDRESSES`].
    Addresses(Vec<IpAddr>),
    /// The request is refused.
    Refused(Refusal),
}

/// Why a request is refused. Only the number is sent; each side has its own words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The message is malformed, or of a later version.
    #[error("the other side does not understand the request: it is another version of tack")]
    Malformed,
    /// No rule permits the target.
    #[error("the other side does not permit this target (its --target)")]
    NotPermitted,
    /// The name does not resolve there.
    #[error("the other side finds no address of this name")]
    NoSuchHost,
    /// Nobody listens at the target.
    #[error("connection refused")]
    ConnectionRefused,
    /// No route to the target.
    #[error("the target is unreachable from the other side")]
    Unreachable,
    /// The target does not answer.
    #[error("the target does not answer")]
    TimedOut,
    /// The serving side has its maximum of connections or of open files, or cannot read its known
    /// peers.
    #[error("the other side has its maximum of connections, or takes none at the moment")]
    Busy,
    /// The address to listen on is in use.
    #[error("the address is in use at the other side")]
    AddressInUse,
    /// The accepted connection is gone.
    #[error("the connection is gone")]
    Gone,
    /// The name server there does not answer or fails, or the peer looks too many names up.
    #[error("the other side gets no answer about this name, which it may get later")]
    LookupFailed,
    /// Another failure.
    #[error("the other side failed to do it")]
    Failed,
}

/// Numbers on the wire.
const REFUSALS: [(u8, Refusal); 11] = [
    (1, Refusal::Malformed),
    (2, Refusal::NotPermitted),
    (3, Refusal::NoSuchHost),
    (4, Refusal::ConnectionRefused),
    (5, Refusal::Unreachable),
    (6, Refusal::TimedOut),
    (7, Refusal::Busy),
    (8, Refusal::AddressInUse),
    (9, Refusal::Gone),
    (10, Refusal::Failed),
    (11, Refusal::LookupFailed),
];

const CONNECT: u8 = 0x01;
const LISTEN: u8 = 0x02;
const ACCEPT: u8 = 0x03;
const ASSOCIATE: u8 = 0x04;
const RESOLVE: u8 = 0x05;
const OPEN: u8 = 0x81;
const LISTENING: u8 = 0x82;
const ARRIVED: u8 = 0x83;
const ASSOCIATED: u8 = 0x84;
const ADDRESSES: u8 = 0x85;
const REFUSED: u8 = 0xff;

/// A message that is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("malformed message of a tunnel")]
pub(crate) struct Malformed;

impl From<Malformed> for io::Error {
    fn from(error: Malformed) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

impl Refusal {
    fn number(self) -> u8 {
        let found = REFUSALS.iter().find(|(_, refusal)| *refusal == self);
        found.expect("every refusal has a number").0
    }

    /// The reason in a word, as the metrics have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::NotPermitted => "not_permitted",
            Self::NoSuchHost => "no_such_host",
            Self::ConnectionRefused => "connection_refused",
            Self::Unreachable => "unreachable",
            Self::TimedOut => "timed_out",
            Self::Busy => "busy",
            Self::AddressInUse => "address_in_use",
            Self::Gone => "gone",
            Self::LookupFailed => "lookup_failed",
            Self::Failed => "failed",
        }
    }

    /// The words of the side that refuses.
    pub(crate) fn to_refusing(self) -> &'static str {
        match self {
            Self::Malformed => "the request is malformed, or of another version of tack",
            Self::NotPermitted => "not permitted",
            Self::NoSuchHost => "no address of this name is found",
            Self::ConnectionRefused => "connection refused",
            Self::Unreachable => "the target is unreachable",
            Self::TimedOut => "the target does not answer",
            Self::Busy => "no more connections or files can be open",
            Self::AddressInUse => "the address is in use",
            Self::Gone => "the connection is gone",
            Self::LookupFailed => "no answer about this name",
            Self::Failed => "it failed",
        }
    }

    /// The refusal that a failed connection to a target means.
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::ConnectionRefused,
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown => Self::Unreachable,
            io::ErrorKind::TimedOut => Self::TimedOut,
            io::ErrorKind::AddrInUse => Self::AddressInUse,
            io::ErrorKind::PermissionDenied | io::ErrorKind::AddrNotAvailable => Self::NotPermitted,
            _ => Self::Failed,
        }
    }
}

impl Request {
    /// The message, without its length.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Connect(target) => {
                let mut bytes = vec![CONNECT];
                bytes.extend(target.port.to_be_bytes());
                bytes.extend(target.host.to_string().bytes());
                bytes
            }
            Self::Listen(address) => with_address(vec![LISTEN], *address),
            Self::Accept(number) => {
                let mut bytes = vec![ACCEPT];
                bytes.extend(number.to_be_bytes());
                bytes
            }
            Self::Associate => vec![ASSOCIATE],
            Self::Resolve(name) => {
                let mut bytes = vec![RESOLVE];
                bytes.extend(name.bytes());
                bytes
            }
        }
    }

    /// Reads a message without its length.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        match bytes {
            [CONNECT, high, low, host @ ..] => {
                let port = u16::from_be_bytes([*high, *low]);
                let host = std::str::from_utf8(host).map_err(|_| Malformed)?;
                let host: Host = host.parse().map_err(|_| Malformed)?;
                match port {
                    0 => Err(Malformed),
                    _ => Ok(Self::Connect(TunnelTarget { host, port })),
                }
            }
            [LISTEN, address @ ..] => address_of(address).map(Self::Listen),
            [ACCEPT, number @ ..] => number_of(number).map(Self::Accept),
            [ASSOCIATE] => Ok(Self::Associate),
            [RESOLVE, name @ ..] => {
                let name = std::str::from_utf8(name).map_err(|_| Malformed)?;
                match name.parse().map_err(|_| Malformed)? {
                    Host::Name(name) => Ok(Self::Resolve(name)),
                    Host::Address(_) => Err(Malformed),
                }
            }
            _ => Err(Malformed),
        }
    }

    /// Writes the request.
    pub(crate) async fn write(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        write(to, &self.encode()).await
    }

    /// Reads a request.
    pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        Ok(Self::decode(&read(from).await?)?)
    }
}

impl Answer {
    /// The message, without its length.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Open(address) => with_address(vec![OPEN], *address),
            Self::Listening(address) => with_address(vec![LISTENING], *address),
            Self::Arrived(number, from) => {
                let mut bytes = vec![ARRIVED];
                bytes.extend(number.to_be_bytes());
                with_address(bytes, *from)
            }
            Self::Associated => vec![ASSOCIATED],
            Self::Addresses(addresses) => {
                let mut bytes = vec![ADDRESSES];
                for address in addresses.iter().take(MAX_ADDRESSES) {
                    with_ip(&mut bytes, *address);
                }
                bytes
            }
            Self::Refused(refusal) => vec![REFUSED, refusal.number()],
        }
    }

    /// Reads a message without its length.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        match bytes {
            [OPEN, address @ ..] => address_of(address).map(Self::Open),
            [LISTENING, address @ ..] => address_of(address).map(Self::Listening),
            [ARRIVED, rest @ ..] => {
                let (number, from) = rest.split_at_checked(8).ok_or(Malformed)?;
                Ok(Self::Arrived(number_of(number)?, address_of(from)?))
            }
            [ASSOCIATED] => Ok(Self::Associated),
            [ADDRESSES, rest @ ..] if !rest.is_empty() => {
                let (mut addresses, mut rest) = (Vec::new(), rest);
                while !rest.is_empty() {
                    let (address, more) = ip_of(rest)?;
                    addresses.push(address);
                    rest = more;
                }
                match addresses.len() {
                    0..=MAX_ADDRESSES => Ok(Self::Addresses(addresses)),
                    _ => Err(Malformed),
                }
            }
            [REFUSED, number] => {
                let found = REFUSALS.iter().find(|(known, _)| known == number);
                // A later version may have more of them.
                let refusal = found.map_or(Refusal::Failed, |(_, refusal)| *refusal);
                Ok(Self::Refused(refusal))
            }
            _ => Err(Malformed),
        }
    }

    /// Writes the answer.
    pub(crate) async fn write(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        write(to, &self.encode()).await
    }

    /// Reads an answer.
    pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        Ok(Self::decode(&read(from).await?)?)
    }
}

fn with_ip(bytes: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            bytes.push(4);
            bytes.extend(address.octets());
        }
        IpAddr::V6(address) => {
            bytes.push(6);
            bytes.extend(address.octets());
        }
    }
}

fn with_address(mut bytes: Vec<u8>, address: SocketAddr) -> Vec<u8> {
    with_ip(&mut bytes, address.ip());
    bytes.extend(address.port().to_be_bytes());
    bytes
}

/// An IP address behind its family, and what follows it.
fn ip_of(bytes: &[u8]) -> Result<(IpAddr, &[u8]), Malformed> {
    match bytes.split_first().ok_or(Malformed)? {
        (4, rest) => {
            let (octets, rest) = rest.split_first_chunk::<4>().ok_or(Malformed)?;
            Ok((Ipv4Addr::from(*octets).into(), rest))
        }
        (6, rest) => {
            let (octets, rest) = rest.split_first_chunk::<16>().ok_or(Malformed)?;
            Ok((Ipv6Addr::from(*octets).into(), rest))
        }
        _ => Err(Malformed),
    }
}

fn address_of(bytes: &[u8]) -> Result<SocketAddr, Malformed> {
    let (address, port) = ip_of(bytes)?;
    let port = u16::from_be_bytes(port.try_into().map_err(|_| Malformed)?);
    Ok(SocketAddr::new(address, port))
}

fn number_of(bytes: &[u8]) -> Result<u64, Malformed> {
    bytes
        .try_into()
        .map(u64::from_be_bytes)
        .map_err(|_| Malformed)
}

async fn write(to: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    let mut bytes = (message.len() as u16).to_be_bytes().to_vec();
    bytes.extend(message);
    to.write_all(&bytes).await
}

async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let len = usize::from(from.read_u16().await?);
    if len > MAX_MESSAGE {
        return Err(Malformed.into());
    }
    let mut message = vec![0; len];
    from.read_exact(&mut message).await?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_and_answers_come_back() {
        let addresses = ["1.2.3.4:5", "[fd00::1]:65535", "0.0.0.0:0"];
        let name = [
            "a".repeat(63),
            "b".repeat(63),
            "c".repeat(63),
            "d".repeat(61),
        ]
        .join(".");
        let mut requests = vec![
            Request::Accept(u64::MAX),
            Request::Associate,
            Request::Resolve(name.clone()),
        ];
        for target in [
            "nas:22",
            "[fd00::1]:1",
            "1.2.3.4:65535",
            &format!("{name}:7"),
        ] {
            requests.push(Request::Connect(target.parse().unwrap()));
        }
        let mut answers: Vec<_> = REFUSALS.map(|(_, it)| Answer::Refused(it)).to_vec();
        answers.push(Answer::Associated);
        answers.push(Answer::Addresses(vec![Ipv4Addr::LOCALHOST.into()]));
        let many = vec![Ipv6Addr::LOCALHOST.into(); MAX_ADDRESSES];
        answers.push(Answer::Addresses(many));
        for address in addresses.map(|address| address.parse().unwrap()) {
            requests.push(Request::Listen(address));
            answers.extend([Answer::Open(address), Answer::Listening(address)]);
            answers.push(Answer::Arrived(7, address));
        }
        for request in requests {
            let bytes = request.encode();
            assert!(bytes.len() <= MAX_MESSAGE);
            assert_eq!(Request::decode(&bytes), Ok(request));
        }
        for answer in answers {
            let bytes = answer.encode();
            assert!(bytes.len() <= MAX_MESSAGE);
            assert_eq!(Answer::decode(&bytes), Ok(answer));
        }
        assert_eq!(Answer::decode(&[ADDRESSES]), Err(Malformed));
        assert_eq!(Request::decode(b"\x051.2.3.4"), Err(Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(request) = Request::decode(&bytes) {
                prop_assert_eq!(Request::decode(&request.encode()), Ok(request));
            }
            if let Ok(answer) = Answer::decode(&bytes) {
                prop_assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
            }
        }
    }
}
