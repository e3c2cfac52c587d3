//! Sockets for addresses that this machine does not have: what a gateway accepts for other hosts,
//! and answers in their name (IP_TRANSPARENT, ip(7)). They take the capability CAP_NET_ADMIN.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use nix::cmsg_space;
use nix::libc;
use nix::sys::socket::sockopt::{Ipv4OrigDstAddr, Ipv6OrigDstAddr};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use socket2::{Domain, Protocol, Socket, Type};

/// A socket of the family of `address`, and only of that, which may have any address.
fn socket(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    // The option of IPv4 holds for sockets of IPv6, too.
    socket.set_ip_transparent_v4(true).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("a transparent socket needs the capability CAP_NET_ADMIN: {error}"),
        )
    })?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Listens at `address`, also for connections to other addresses that netfilter's TPROXY passes to
/// it. The local address of an accepted connection is the one that its client connected to.
///
/// # Errors
/// `PermissionDenied` without CAP_NET_ADMIN; otherwise what the system says.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(address, Type::STREAM, Protocol::TCP)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    Ok(socket.into())
}

/// Receives datagrams to other addresses that TPROXY passes to `address`; see [`receive`].
///
/// # Errors
/// As [`listen`].
pub fn receiver(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket(address, Type::DGRAM, Protocol::UDP)?;
    match address {
        SocketAddr::V4(_) => setsockopt(&socket, Ipv4OrigDstAddr, &true)?,
        SocketAddr::V6(_) => setsockopt(&socket, Ipv6OrigDstAddr, &true)?,
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Sends datagrams from `address`, which belongs to another host.
///
/// # Errors
/// As [`listen`].
pub fn sender(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket(address, Type::DGRAM, Protocol::UDP)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// A datagram at a [`receiver`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// Bytes of its payload.
    pub len: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// Whom it was for.
    pub to: SocketAddr,
}

/// Receives a datagram, cut to `buffer`.
///
/// # Errors
/// `WouldBlock` when there is none; `InvalidData` when the kernel does not say whom it was for.
pub fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<Arrived> {
    let mut control = cmsg_space!(libc::sockaddr_in6);
    let mut parts = [IoSliceMut::new(buffer)];
    let message = recvmsg::<SockaddrStorage>(
        socket.as_fd().as_raw_fd(),
        &mut parts,
        Some(&mut control),
        MsgFlags::empty(),
    )?;
    let to = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::Ipv4OrigDstAddr(to) => Some(SocketAddr::new(
            IpAddr::from(to.sin_addr.s_addr.to_ne_bytes()),
            u16::from_be(to.sin_port),
        )),
        ControlMessageOwned::Ipv6OrigDstAddr(to) => Some(SocketAddr::new(
            IpAddr::from(to.sin6_addr.s6_addr),
            u16::from_be(to.sin6_port),
        )),
        _ => None,
    });
    let from = message.address.as_ref().and_then(socket_address);
    match (from, to) {
        (Some(from), Some(to)) => Ok(Arrived {
            len: message.bytes,
            from,
            to,
        }),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the kernel does not say whom a datagram was for",
        )),
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address
        .as_sockaddr_in()
        .map(|address| SocketAddr::new(address.ip().into(), address.port()));
    v4.or_else(|| {
        let address = address.as_sockaddr_in6()?;
        Some(SocketAddr::new(address.ip().into(), address.port()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_says_whom_it_was_for_and_is_answered_from_there() {
        for any in ["127.0.0.1:0", "[::1]:0"].map(|text| text.parse().unwrap()) {
            let socket = match receiver(any) {
                Ok(socket) => socket,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return tack_skip::skipped(error);
                }
                Err(error) => panic!("{error}"),
            };
            let to = socket.local_addr().unwrap();
            let client = UdpSocket::bind(any).unwrap();
            client.send_to(b"asked", to).unwrap();
            let mut buffer = [0; 100];
            socket.set_nonblocking(false).unwrap();
            let arrived = receive(&socket, &mut buffer).unwrap();
            let from = client.local_addr().unwrap();
            assert_eq!(arrived, Arrived { len: 5, from, to });
            // From an address that this machine does not have.
            let elsewhere: SocketAddr = match any {
                SocketAddr::V4(_) => "192.0.2.1:53".parse().unwrap(),
                SocketAddr::V6(_) => "[2001:db8::1]:53".parse().unwrap(),
            };
            let answering = sender(elsewhere).unwrap();
            assert_eq!(answering.local_addr().unwrap(), elsewhere);
        }
    }
}
