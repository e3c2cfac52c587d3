//! Socket options that differ from quinn-udp's: which control messages come with a datagram, and
//! which MTU counts.
//!
//! quinn-udp 0.6.3 reserves 96 bytes for them and asks the kernel for four: receive timestamp (32
//! bytes), segment size of joined datagrams (24), destination address (32, IPv6: 40) and traffic
//! class (24). The last one is cut off, so the ECN codepoint of exactly the joined datagrams would
//! be lost. The destination address is the one we can do without.
//!
//! It also has Linux send anything that fits the device, whatever is known of the path, since it
//! probes for the MTU itself. We do not: the kernel refuses what exceeds the MTU of the route, or
//! what ICMP said of the path, with EMSGSIZE.

use std::io;
use std::net::SocketAddr;

use quinn_udp::UdpSocketState;
use tokio::net::UdpSocket;

/// The state of `socket`, all offloads probed anew, asking only for control messages that fit.
pub(super) fn state(socket: &UdpSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(socket.into())?;
    adjust(socket, socket.local_addr()?)?;
    Ok(state)
}

#[cfg(target_os = "linux")]
fn adjust(socket: &UdpSocket, local: SocketAddr) -> io::Result<()> {
    use libc::{IPPROTO_IP, IPPROTO_IPV6};
    // On IPv6 sockets this one is for the IPv4 peers. A kernel or sandbox that refuses either keeps
    // what was set before: the MTU of the device.
    let _ = set_option(
        socket,
        IPPROTO_IP,
        libc::IP_MTU_DISCOVER,
        libc::IP_PMTUDISC_DO,
    );
    match local {
        SocketAddr::V4(_) => set_option(socket, IPPROTO_IP, libc::IP_PKTINFO, 0),
        SocketAddr::V6(_) => {
            let _ = set_option(
                socket,
                IPPROTO_IPV6,
                libc::IPV6_MTU_DISCOVER,
                libc::IPV6_PMTUDISC_DO,
            );
            set_option(socket, IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 0)
        }
    }
}

/// Tells the system to queue the errors that `errors` reads. Where a sandbox refuses, timers find
/// dead peers.
#[cfg(target_os = "linux")]
pub(super) fn keep_errors(socket: &UdpSocket, local: SocketAddr) {
    // On IPv6 sockets this one is for the IPv4 peers.
    let _ = set_option(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1);
    if local.is_ipv6() {
        let _ = set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1);
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn keep_errors(_socket: &UdpSocket, _local: SocketAddr) {}

#[cfg(not(target_os = "linux"))]
fn adjust(_socket: &UdpSocket, _local: SocketAddr) -> io::Result<()> {
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
    // SAFETY: the descriptor is open as long as `socket` is borrowed, and the value is an int of
    // the length given.
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
