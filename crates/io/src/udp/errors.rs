//! ICMP errors about what was sent: which peer's port is closed, and which segment told of it.
//!
//! (quinn-udp reads them as well, but says who reported an error, not which port it is about.)
//!
//! A socket that serves many peers is not told whom an error is about (RFC 1122 §4.1.3.3 leaves
//! that to the system). Linux keeps the errors in a queue of their own, with the destination of the
//! datagram that caused each (`IP_RECVERR`, ip(7)). Elsewhere there is nothing to read, and a dead
//! peer is noticed by its silence.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tack_wire::SeqNum;
use tokio::io::{Interest, Ready};
use tokio::net::UdpSocket;

/// Bytes of a segment that are read of what an error quotes: both ports and the sequence number.
const QUOTED: usize = 8;

/// A host's answer (ICMPv4 type 3 code 3, ICMPv6 type 1 code 4) that nobody has the UDP port that
/// was sent to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The address that was sent to, IPv4 always as IPv4.
    pub peer: SocketAddr,
    /// Of the segment that was in the datagram, where the answer quotes that much of it.
    pub segment: Option<QuotedSegment>,
}

/// How a segment of this side began that an ICMP error quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotedSegment {
    /// TCP port of this side.
    pub src_port: u16,
    /// TCP port of the peer.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: SeqNum,
}

impl QuotedSegment {
    /// From the first bytes of a datagram; `None` if they are too few.
    pub fn parse(quoted: &[u8]) -> Option<Self> {
        let [s0, s1, d0, d1, seq @ ..] = *quoted.first_chunk::<QUOTED>()?;
        Some(Self {
            src_port: u16::from_be_bytes([s0, s1]),
            dst_port: u16::from_be_bytes([d0, d1]),
            seq: SeqNum(u32::from_be_bytes(seq)),
        })
    }
}

type Waiting = Pin<Box<dyn Future<Output = io::Result<Ready>> + Send>>;

/// The errors of one socket.
pub(super) struct Errors {
    socket: Arc<UdpSocket>,
    waiting: Option<Waiting>,
}

impl Errors {
    pub(super) fn new(socket: Arc<UdpSocket>) -> Self {
        Self {
            socket,
            waiting: None,
        }
    }

    /// The next peer whose host reported its port closed.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Refused>> {
        loop {
            let next = self
                .socket
                .try_io(Interest::ERROR, || queue::next(&self.socket));
            match next {
                Ok(Some(refused)) => return Poll::Ready(Ok(refused)),
                // About something else: the MTU of a path, a router without a route.
                Ok(None) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            let socket = &self.socket;
            let waiting = self.waiting.get_or_insert_with(|| {
                let socket = Arc::clone(socket);
                Box::pin(async move { socket.ready(Interest::ERROR).await })
            });
            let woken = ready!(waiting.as_mut().poll(cx));
            self.waiting = None;
            woken?;
        }
    }
}

#[cfg(target_os = "linux")]
mod queue {
    use std::io;
    use std::os::fd::AsRawFd;

    use socket2::SockAddr;
    use tokio::net::UdpSocket;

    use super::{QUOTED, QuotedSegment, Refused};

    /// Bytes of control messages: the error itself, the address of who reported it, and a
    /// timestamp.
    const CONTROL: usize = 256;

    /// Memory for control messages, aligned as the system wants it.
    #[repr(align(8))]
    struct Control([u8; CONTROL]);

    /// Takes one error out of the queue: of a closed port, or `None` for any other error.
    #[expect(unsafe_code, reason = "no safe wrapper reads the error queue")]
    pub(super) fn next(socket: &UdpSocket) -> io::Result<Option<Refused>> {
        let mut payload = [0u8; QUOTED];
        let mut part = libc::iovec {
            iov_base: payload.as_mut_ptr().cast(),
            iov_len: payload.len(),
        };
        let mut control = Control([0; CONTROL]);
        // SAFETY: the closure gives the storage and its length to recvmsg, which writes at most
        // that much and says how much it wrote; all other pointers are to locals that
        // outlive the call, with their true lengths. A zeroed msghdr is valid: null
        // pointers with lengths of zero.
        let ((is_refused, len), address) = unsafe {
            SockAddr::try_init(|storage, len| {
                let mut message: libc::msghdr = std::mem::zeroed();
                message.msg_name = storage.cast();
                message.msg_namelen = *len;
                message.msg_iov = &raw mut part;
                message.msg_iovlen = 1;
                message.msg_control = control.0.as_mut_ptr().cast();
                message.msg_controllen = CONTROL as _;
                let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
                // What does not fit of the payload is cut off.
                let received = libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags);
                let Ok(received) = usize::try_from(received) else {
                    return Err(io::Error::last_os_error());
                };
                *len = message.msg_namelen;
                Ok((is_refused(&message), received))
            })?
        };
        let peer = address.as_socket().filter(|_| is_refused);
        Ok(peer.map(|peer| Refused {
            peer: crate::address::canonical(peer),
            segment: QuotedSegment::parse(&payload[..len.min(QUOTED)]),
        }))
    }

    /// Whether the control messages say that a host refused the datagram for want of a socket on
    /// its port.
    ///
    /// # Safety
    /// `message` was filled in by recvmsg, and its control buffer is alive.
    #[expect(
        unsafe_code,
        reason = "control messages are walked with the system's macros"
    )]
    unsafe fn is_refused(message: &libc::msghdr) -> bool {
        // SAFETY: as the caller promises; the macros stay within the length that the system wrote,
        // and the contents are read unaligned and only where the length of the message
        // covers them.
        unsafe {
            let mut header = libc::CMSG_FIRSTHDR(message);
            while !header.is_null() {
                let kind = ((*header).cmsg_level, (*header).cmsg_type);
                let room = libc::CMSG_LEN(size_of::<libc::sock_extended_err>() as u32) as usize;
                let is_error = kind == (libc::IPPROTO_IP, libc::IP_RECVERR)
                    || kind == (libc::IPPROTO_IPV6, libc::IPV6_RECVERR);
                if is_error && (*header).cmsg_len as usize >= room {
                    let error = libc::CMSG_DATA(header)
                        .cast::<libc::sock_extended_err>()
                        .read_unaligned();
                    let by_icmp = matches!(
                        error.ee_origin,
                        libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6
                    );
                    return by_icmp && error.ee_errno == libc::ECONNREFUSED as u32;
                }
                header = libc::CMSG_NXTHDR(message, header);
            }
        }
        false
    }
}

#[cfg(not(target_os = "linux"))]
mod queue {
    pub(super) fn next(_socket: &tokio::net::UdpSocket) -> std::io::Result<Option<super::Refused>> {
        Err(std::io::ErrorKind::WouldBlock.into())
    }
}
