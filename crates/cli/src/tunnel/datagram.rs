//! UDP datagrams in a stream of a tunnel, after `associated`.
//!
//! A datagram is the length of what follows (2 bytes, big-endian), the kind of its address (1 byte:
//! 4, 6, or 0 for a name), the address (4 or 16 bytes, or a length of 1 byte and a name), a port
//! (2 bytes), and the payload. It goes to this address on its way to the serving side, and comes
//! from it on its way back. `docs/tunnel-protocol.md` describes it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt};

use super::message::Malformed;
use super::target::{Host, TunnelTarget};

/// Longest datagram in a stream, bytes after its length.
pub(crate) const MAX_DATAGRAM: usize = u16::MAX as usize;

/// Appends a datagram to or from `address`.
///
/// # Errors
/// For a datagram that is longer than [`MAX_DATAGRAM`]; `out` is as before.
pub(crate) fn encode(
    address: &TunnelTarget,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let start = out.len();
    out.extend([0, 0]);
    match &address.host {
        Host::Address(IpAddr::V4(address)) => {
            out.push(4);
            out.extend(address.octets());
        }
        Host::Address(IpAddr::V6(address)) => {
            out.push(6);
            out.extend(address.octets());
        }
        Host::Name(name) => {
            out.extend([0, name.len() as u8]);
            out.extend(name.bytes());
        }
    }
    out.extend(address.port.to_be_bytes());
    out.extend(payload);
    let len = out.len() - start - 2;
    let Ok(len) = u16::try_from(len) else {
        out.truncate(start);
        return Err(Malformed);
    };
    out[start..start + 2].copy_from_slice(&len.to_be_bytes());
    Ok(())
}

/// The address and the payload of a datagram without its length.
///
/// # Errors
/// For bytes that are not a datagram; port 0 is not one.
pub(crate) fn decode(bytes: &[u8]) -> Result<(TunnelTarget, &[u8]), Malformed> {
    let (kind, rest) = bytes.split_first().ok_or(Malformed)?;
    let (host, rest) = match kind {
        4 => {
            let (octets, rest) = rest.split_first_chunk::<4>().ok_or(Malformed)?;
            (Host::Address(Ipv4Addr::from(*octets).into()), rest)
        }
        6 => {
            let (octets, rest) = rest.split_first_chunk::<16>().ok_or(Malformed)?;
            let address = IpAddr::from(Ipv6Addr::from(*octets)).to_canonical();
            (Host::Address(address), rest)
        }
        0 => {
            let (len, rest) = rest.split_first().ok_or(Malformed)?;
            let (name, rest) = rest.split_at_checked((*len).into()).ok_or(Malformed)?;
            let name = std::str::from_utf8(name).map_err(|_| Malformed)?;
            (name.parse().map_err(|_| Malformed)?, rest)
        }
        _ => return Err(Malformed),
    };
    let (port, payload) = rest.split_first_chunk::<2>().ok_or(Malformed)?;
    match u16::from_be_bytes(*port) {
        0 => Err(Malformed),
        port => Ok((TunnelTarget { host, port }, payload)),
    }
}

/// Reads the next datagram, without its length, into `buffer`; false at the stream's end.
///
/// # Errors
/// Those of the stream, also when it ends within a datagram.
pub(crate) async fn read(
    from: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<bool> {
    let mut len = [0; 2];
    match from.read(&mut len[..1]).await? {
        0 => return Ok(false),
        _ => from.read_exact(&mut len[1..]).await?,
    };
    buffer.resize(u16::from_be_bytes(len).into(), 0);
    from.read_exact(buffer).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn datagrams_come_back_and_longer_ones_are_refused() {
        for target in ["1.2.3.4:5", "[fd00::1]:65535", "a.example.org:53"] {
            let target: TunnelTarget = target.parse().unwrap();
            let mut bytes = vec![9];
            encode(&target, b"payload", &mut bytes).unwrap();
            let len = u16::from_be_bytes([bytes[1], bytes[2]]);
            assert_eq!(usize::from(len), bytes.len() - 3);
            assert_eq!(decode(&bytes[3..]), Ok((target.clone(), &b"payload"[..])));
            assert_eq!(
                encode(&target, &[0; MAX_DATAGRAM], &mut bytes),
                Err(Malformed)
            );
            assert_eq!(bytes.len(), usize::from(len) + 3);
        }
        // The longest payload of UDP over IPv4.
        let target: TunnelTarget = "1.2.3.4:5".parse().unwrap();
        encode(&target, &[0; 65_507], &mut Vec::new()).unwrap();
    }

    #[tokio::test]
    async fn a_stream_that_ends_within_a_datagram_is_an_error() {
        let mut buffer = Vec::new();
        assert!(!read(&mut &b""[..], &mut buffer).await.unwrap());
        assert!(read(&mut &b"\0\x02ab"[..], &mut buffer).await.unwrap());
        assert_eq!(buffer, b"ab");
        for cut in [&b"\0"[..], b"\0\x02a"] {
            assert!(read(&mut &*cut, &mut buffer).await.is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_datagram_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok((target, payload)) = decode(&bytes) {
                let mut again = Vec::new();
                encode(&target, payload, &mut again).unwrap();
                prop_assert_eq!(decode(&again[2..]), Ok((target, payload)));
            }
        }
    }
}
