//! Which control messages come with a datagram.
//!
//! quinn-udp 0.6.3 reserves 96 bytes for them and asks the kernel for four: receive timestamp (32 bytes), segment size of
//! joined datagrams (24), destination address (32, IPv6: 40) and traffic class (24). The last one is cut off, so the ECN
//! codepoint of exactly the joined datagrams would be lost. The destination address is the one we can do without.

use std::io;
use std::net::SocketAddr;

use quinn_udp::UdpSocketState;
use tokio::net::UdpSocket;

/// The state of `socket`, all offloads probed anew, asking only for control messages that fit.
pub(super) fn state(socket: &UdpSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(socket.into())?;
    without_destination(socket, socket.local_addr()?)?;
    Ok(state)
}

#[cfg(target_os = "linux")]
fn without_destination(socket: &UdpSocket, local: SocketAddr) -> io::Result<()> {
    match local {
        SocketAddr::V4(_) => set_option(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 0),
        SocketAddr::V6(_) => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 0),
    }
}

#[cfg(not(target_os = "linux"))]
fn without_destination(_socket: &UdpSocket, _local: SocketAddr) -> io::Result<()> {
    Ok(())
}

/// Sets an integer option that has no safe wrapper.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe wrapper of these options exists")]
pub(super) fn set_option(
    socket: &UdpSocket,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open as long as `socket` is borrowed, and the value is an int of the length given.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
