//! The settings of an endpoint, as plain values.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tack_io::{Segmentation, TunOptions, UdpOptions};
use tack_tcp::Config;

use crate::secure::Identity;

/// Whether datagrams that arrive together get one acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Coalesce {
    /// Everything one system call delivered is processed before anything is sent: one
    /// acknowledgement may then cover dozens of segments, whatever the policy's count. Fastest.
    #[default]
    Batches,
    /// Each segment is processed and answered by itself: the number of acknowledgements is what the
    /// policy says.
    Off,
}

/// What carries the segments of an endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) enum CarrierKind {
    /// A UDP socket.
    #[default]
    Udp,
    /// A TUN device.
    Tun(TunOptions),
    /// A TUN device that is set up already.
    Adopted(TunOptions, Arc<OwnedFd>),
}

/// What a builder gathers.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) carrier: CarrierKind,
    pub(crate) bind: SocketAddr,
    pub(crate) adopted: Option<Arc<UdpSocket>>,
    pub(crate) insecure: bool,
    pub(crate) identity: Option<Identity>,
    pub(crate) config: Config,
    pub(crate) mtu: u16,
    pub(crate) coalesce: Coalesce,
    pub(crate) segmentation: Segmentation,
    pub(crate) socket_buffer: usize,
    pub(crate) max_connections: usize,
    pub(crate) memory: usize,
}

impl Default for Settings {
    fn default() -> Self {
        let bind = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let socket = UdpOptions::new(bind);
        Self {
            carrier: CarrierKind::default(),
            bind,
            adopted: None,
            insecure: false,
            identity: None,
            config: Config::default(),
            mtu: 1500,
            coalesce: Coalesce::default(),
            segmentation: socket.segmentation,
            socket_buffer: socket.socket_buffer,
            max_connections: 65_536,
            memory: 1 << 30,
        }
    }
}
