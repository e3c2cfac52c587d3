//! The carriers of an endpoint: a UDP socket, or a TUN device.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};

use arrayvec::ArrayVec;
use tack_io::tun::{PREFIX, Packets};
use tack_io::{Datagrams, SendError, TunReceiver, TunSender, UdpOptions, UdpReceiver, UdpSender};
use tack_wire::{Ecn, ip};

use crate::address::DEFAULT_PORT;
use crate::settings::{CarrierKind, Settings};

/// Opens the carrier that the settings ask for.
pub(crate) fn open(settings: &Settings) -> io::Result<(Sender, Receiver)> {
    match &settings.carrier {
        CarrierKind::Udp => {
            let mut options = UdpOptions::new(settings.bind);
            options.segmentation = settings.segmentation;
            options.socket_buffer = settings.socket_buffer;
            options.refusals = true;
            options.adopted = settings.adopted.clone();
            let (sender, receiver) = options.open()?;
            Ok((Sender::Udp(sender), Receiver::Udp(receiver)))
        }
        CarrierKind::Tun(options) => {
            let (sender, receiver) = options.open()?;
            Ok((Sender::Tun(sender), Receiver::Tun(receiver)))
        }
        CarrierKind::Adopted(options, device) => {
            let (sender, receiver) = options.adopt(device.try_clone()?)?;
            Ok((Sender::Tun(sender), Receiver::Tun(receiver)))
        }
    }
}

/// The transmitting half.
#[derive(Debug)]
pub(crate) enum Sender {
    Udp(UdpSender),
    Tun(TunSender),
}

/// The receiving half.
#[expect(
    clippy::large_enum_variant,
    reason = "one for each endpoint, and never moved"
)]
pub(crate) enum Receiver {
    Udp(UdpReceiver),
    Tun(TunReceiver),
}

impl Sender {
    /// Bytes in front of each segment that the carrier fills in.
    pub(crate) fn prefix(&self) -> usize {
        match self {
            Self::Udp(_) => 0,
            Self::Tun(_) => PREFIX,
        }
    }

    /// Most segments of one batch.
    pub(crate) fn max_batch(&self) -> usize {
        match self {
            Self::Udp(sender) => sender.max_batch(),
            Self::Tun(sender) => sender.max_batch(),
        }
    }

    /// Batches that the kernel refused to cut.
    pub(crate) fn refusals(&self) -> u64 {
        match self {
            Self::Udp(sender) => sender.refusals(),
            Self::Tun(_) => 0,
        }
    }

    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Udp(sender) => sender.poll_writable(cx),
            Self::Tun(sender) => sender.poll_writable(cx),
        }
    }

    /// Sends a batch: segments of `segment_size` bytes, prefix included, and a last one that may be
    /// shorter.
    pub(crate) fn send(
        &mut self,
        peer: SocketAddr,
        ecn: Ecn,
        contents: &mut [u8],
        segment_size: usize,
    ) -> Result<(), SendError> {
        match self {
            Self::Udp(sender) => sender.send(&Datagrams {
                peer,
                ecn,
                contents,
                segment_size,
            }),
            Self::Tun(sender) => sender.send(&mut Packets {
                peer: peer.ip(),
                ecn,
                contents,
                packet_size: segment_size,
            }),
        }
    }

    /// What this endpoint is to its peers.
    pub(crate) fn local(&self) -> Local {
        match self {
            Self::Udp(sender) => Local::Socket(sender.local_addr()),
            Self::Tun(sender) => match sender.clients() {
                Some(clients) => Local::Everywhere {
                    clients: clients.iter().copied().collect(),
                    device: sender.name().into(),
                    mtu: sender.mtu(),
                },
                None => Local::Host {
                    addresses: sender.addresses().iter().copied().collect(),
                    device: sender.name().into(),
                    mtu: sender.mtu(),
                },
            },
        }
    }
}

/// What an endpoint is to its peers, and what that means for addresses and sizes.
#[derive(Clone, Debug)]
pub(crate) enum Local {
    /// A UDP socket: segments travel in datagrams, and TCP ports lie within the UDP port.
    Socket(SocketAddr),
    /// A host, with at most one address of each family.
    Host {
        addresses: ArrayVec<IpAddr, 2>,
        device: Box<str>,
        mtu: u16,
    },
    /// Every host, to one client that has at most one address of each family. The core's name of
    /// the peer of a connection is here the address that the client connects to: the client is
    /// always the same, and this tells its connections apart.
    Everywhere {
        clients: ArrayVec<IpAddr, 2>,
        device: Box<str>,
        mtu: u16,
    },
}

impl Local {
    /// Its address; port zero for a host.
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Socket(address) => *address,
            Self::Host { addresses, .. } => SocketAddr::new(addresses[0], 0),
            Self::Everywhere { clients, .. } => SocketAddr::new(unspecified(clients[0]), 0),
        }
    }

    /// Its address as `peer` sees it.
    pub(crate) fn address_towards(&self, peer: SocketAddr, port: u16) -> SocketAddr {
        match self {
            Self::Socket(address) => *address,
            Self::Host { addresses, .. } => {
                let mut alike = addresses.iter().copied();
                let ip = alike.find(|address| address.is_ipv4() == peer.is_ipv4());
                SocketAddr::new(ip.unwrap_or(addresses[0]), port)
            }
            Self::Everywhere { .. } => SocketAddr::new(peer.ip(), port),
        }
    }

    /// The client's address of the family of `address`, where this is every host.
    pub(crate) fn client(&self, address: IpAddr) -> Option<IpAddr> {
        match self {
            Self::Everywhere { clients, .. } => {
                let mut clients = clients.iter().copied();
                clients.find(|client| client.is_ipv4() == address.is_ipv4())
            }
            Self::Socket(_) | Self::Host { .. } => None,
        }
    }

    /// Whether it has an address of the family of `peer`.
    pub(crate) fn reaches(&self, peer: IpAddr) -> bool {
        match self {
            // An IPv6 socket sends to IPv4 peers, too.
            Self::Socket(address) => address.is_ipv6() || peer.is_ipv4(),
            Self::Host { addresses, .. }
            | Self::Everywhere {
                clients: addresses, ..
            } => addresses
                .iter()
                .any(|address| address.is_ipv4() == peer.is_ipv4()),
        }
    }

    /// Whether this is an address of the host.
    pub(crate) fn is(&self, address: IpAddr) -> bool {
        match self {
            Self::Socket(local) => local.ip() == address,
            Self::Host { addresses, .. } => addresses.contains(&address),
            Self::Everywhere { clients, .. } => !clients.contains(&address),
        }
    }

    /// Whether peers of IPv6 are possible.
    pub(crate) fn has_ipv6(&self) -> bool {
        self.reaches(IpAddr::V6(Ipv6Addr::LOCALHOST))
    }

    /// Bytes of headers below TCP, towards this family.
    pub(crate) fn overhead(&self, peer: IpAddr) -> u16 {
        let udp = match self {
            Self::Socket(_) => tack_wire::encapsulation::UDP_HEADER_LEN,
            Self::Host { .. } | Self::Everywhere { .. } => 0,
        };
        (ip::header_len(peer) + udp) as u16
    }

    /// Largest packet of the carrier itself.
    pub(crate) fn mtu(&self) -> u16 {
        match self {
            Self::Socket(_) => u16::MAX,
            Self::Host { mtu, .. } | Self::Everywhere { mtu, .. } => *mtu,
        }
    }

    /// Longest IP packet that the way to `peer` takes, bytes, as far as the system says.
    pub(crate) fn route_mtu(&self, peer: SocketAddr) -> Option<u16> {
        match self {
            Self::Socket(_) => tack_io::udp::route_mtu(peer),
            // What is behind the device is not the system's to know.
            Self::Host { .. } | Self::Everywhere { .. } => None,
        }
    }

    /// What names a peer at `address` for the core, and the TCP port there: the one asked for, or
    /// what the carrier takes where none was.
    pub(crate) fn name(&self, address: SocketAddr, port: Option<u16>) -> (SocketAddr, u16) {
        match self {
            Self::Socket(_) => (address, port.unwrap_or(DEFAULT_PORT)),
            Self::Host { .. } | Self::Everywhere { .. } => (
                SocketAddr::new(address.ip(), 0),
                port.unwrap_or(address.port()),
            ),
        }
    }

    /// The address of a peer as people know it.
    pub(crate) fn shown(&self, peer: SocketAddr, port: u16) -> SocketAddr {
        match self {
            Self::Socket(_) => peer,
            Self::Host { .. } => SocketAddr::new(peer.ip(), port),
            Self::Everywhere { .. } => {
                SocketAddr::new(self.client(peer.ip()).unwrap_or(peer.ip()), port)
            }
        }
    }
}

fn unspecified(alike: IpAddr) -> IpAddr {
    match alike {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_known_by_its_addresses_and_its_peers_by_theirs() {
        let addresses = ["10.77.0.2", "fd77::2"].map(|text| text.parse().unwrap());
        let host = Local::Host {
            addresses: addresses.into(),
            device: "tun0".into(),
            mtu: 1400,
        };
        let peer = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(
            host.name(peer("192.0.2.1:80"), None),
            (peer("192.0.2.1:0"), 80)
        );
        assert_eq!(
            host.name(peer("192.0.2.1:80"), Some(9)),
            (peer("192.0.2.1:0"), 9)
        );
        assert_eq!(host.shown(peer("[fd77::1]:0"), 80), peer("[fd77::1]:80"));
        assert_eq!(
            host.address_towards(peer("[fd77::1]:0"), 7),
            peer("[fd77::2]:7")
        );
        assert!(host.has_ipv6() && host.is("fd77::2".parse().unwrap()));
        assert_eq!(host.overhead("fd77::1".parse().unwrap()), 40);

        let socket = Local::Socket(peer("127.0.0.1:7777"));
        assert!(!socket.reaches("::1".parse().unwrap()));
        assert_eq!(socket.overhead("127.0.0.1".parse().unwrap()), 28);
        let there = peer("127.0.0.1:9000");
        assert_eq!(socket.name(there, None), (there, DEFAULT_PORT));
        assert_eq!(socket.shown(there, 9), there);
    }
}
