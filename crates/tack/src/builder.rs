//! How an endpoint is set up.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tack_io::{Segmentation, TunOptions};
use tack_tcp::{AckPolicyFactory, Config, ControllerFactory};
use tokio::net::{ToSocketAddrs, lookup_host};

use crate::address::{DEFAULT_PORT, is_loopback};
use crate::endpoint::Endpoint;
use crate::error::InsecureAddress;
use crate::listener::Listener;
use crate::secure::Identity;
use crate::settings::{CarrierKind, Coalesce, Settings};

/// Settings of an [`Endpoint`]; made by [`Endpoint::builder`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    settings: Settings,
}

impl Builder {
    /// Local UDP address; port 0 picks a free one. Default `127.0.0.1:0`. An unspecified IPv6
    /// address (`[::]`) serves IPv4 peers too.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.settings.bind = address;
        self.settings.adopted = None;
        self
    }

    /// Makes the endpoint a host of its own behind a TUN device, in place of a UDP socket
    /// (Linux). It then speaks TCP in IP packets with every host that the kernel routes to, and
    /// TACK with those that speak it. The device, its addresses and routes exist as long as the
    /// endpoint.
    ///
    /// A peer's address is its IP address and TCP port. [`Builder::bind`],
    /// [`Builder::segmentation`] and [`Builder::socket_buffer`] have no effect.
    ///
    /// ```no_run
    /// use tack::{Endpoint, TunNetwork, TunOptions};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let network = TunNetwork {
    ///     kernel: "10.77.0.1".parse()?,
    ///     prefix: 24,
    ///     stack: "10.77.0.2".parse()?,
    /// };
    /// let endpoint = Endpoint::builder()
    ///     .tun(TunOptions::new(network))
    ///     .insecure(true)
    ///     .build()?;
    /// let stream = endpoint.connect("10.77.0.1:80").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn tun(mut self, options: TunOptions) -> Self {
        self.settings.carrier = CarrierKind::Tun(options);
        self
    }

    /// As [`Builder::tun`], with a device that `TunOptions::create` has set up with the same
    /// options, such as one of another network namespace.
    #[must_use]
    pub fn tun_device(mut self, options: TunOptions, device: OwnedFd) -> Self {
        self.settings.carrier = CarrierKind::Adopted(options, Arc::new(device));
        self
    }

    /// Takes a UDP socket that is bound already, such as one that a service manager has passed on,
    /// in place of [`Builder::bind`].
    ///
    /// # Errors
    /// What the system says about the socket's address.
    pub fn socket(mut self, socket: UdpSocket) -> io::Result<Self> {
        self.settings.bind = socket.local_addr()?;
        self.settings.adopted = Some(Arc::new(socket));
        Ok(self)
    }

    /// Binds to a free port of an address from which `peer` can be reached: loopback for a loopback
    /// peer, else unspecified.
    #[must_use]
    pub fn bind_towards(self, peer: SocketAddr) -> Self {
        let ip: IpAddr = match peer {
            SocketAddr::V4(v4) if v4.ip().is_loopback() => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(v6) if v6.ip().is_loopback() => Ipv6Addr::LOCALHOST.into(),
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        self.bind(SocketAddr::new(ip, 0))
    }

    /// The identity that this side proves in encrypted connections ([`crate::secure`]). With an
    /// identity the endpoint may leave loopback; connections in clear text still may not. Default:
    /// none.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.settings.identity = Some(identity);
        self
    }

    /// Allows clear text beyond loopback: anyone on the path can read and change what passes.
    /// Default false. Encrypted connections need an [identity](Builder::identity) instead.
    #[must_use]
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.settings.insecure = insecure;
        self
    }

    /// Settings of connections that do not have their own. `carrier` is filled in by the
    /// endpoint, and `mss` cut to what [`Builder::mtu`] leaves room for.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.settings.config = config;
        self
    }

    /// Has each connection acknowledge by a policy of the application's own, where its settings
    /// come from [`Builder::config`], which is to be called before. Such a connection is plain
    /// TCP: TACK is neither offered nor agreed.
    #[must_use]
    pub fn ack_policy(mut self, factory: AckPolicyFactory) -> Self {
        self.settings.config.ack_policy = Some(factory);
        self
    }

    /// Has a controller of the application's own decide how much each connection sends, where its
    /// settings come from [`Builder::config`], which is to be called before.
    #[must_use]
    pub fn controller(mut self, factory: ControllerFactory) -> Self {
        self.settings.config.controller = Some(factory);
        self
    }

    /// Largest IP packet to send, bytes, headers included. Default 1500. A path that turns out
    /// narrower is adapted to when the kernel says so: its devices, and on Linux its routing
    /// table and ICMP messages from routers. A router that drops long packets silently is
    /// found out by three timeouts in a row.
    ///
    /// A connection whose [`Config`] has a `base_mss` begins within this, and looks for segments of
    /// up to its `mss` where the route to the peer takes more: on loopback, and in networks with
    /// jumbo frames.
    #[must_use]
    pub fn mtu(mut self, mtu: u16) -> Self {
        self.settings.mtu = mtu;
        self
    }

    /// Whether datagrams that arrive together get one acknowledgement. Default
    /// [`Coalesce::Batches`].
    #[must_use]
    pub fn coalesce(mut self, coalesce: Coalesce) -> Self {
        self.settings.coalesce = coalesce;
        self
    }

    /// Whether the kernel segments batches into datagrams. Default [`Segmentation::Offload`], which
    /// falls back by itself.
    #[must_use]
    pub fn segmentation(mut self, segmentation: Segmentation) -> Self {
        self.settings.segmentation = segmentation;
        self
    }

    /// Requested size of the kernel's socket buffers, bytes, each way; the system may cap it.
    /// Default 4 MiB.
    #[must_use]
    pub fn socket_buffer(mut self, bytes: usize) -> Self {
        self.settings.socket_buffer = bytes;
        self
    }

    /// Maximum number of connections at a time. Default 65,536.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.settings.max_connections = connections;
        self
    }

    /// Memory that all connections of the endpoint may hold together, bytes. Default 1 GiB.
    ///
    /// An idle connection takes some 5 KiB, a busy one its buffers besides: up to `receive_buffer`
    /// and `send_buffer` of its [`Config`]. From three quarters of the limit on buffers do not
    /// grow any more. At the limit they shrink as far as they are empty, data that waits for a
    /// lost segment is thrown away, to be sent again, and new connections are refused.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.settings.memory = bytes;
        self
    }

    /// Opens the socket and starts the endpoint's task on the current tokio runtime.
    ///
    /// # Errors
    /// `PermissionDenied` with an [`InsecureAddress`] inside for an address beyond loopback with
    /// neither [`Builder::identity`] nor [`Builder::insecure`], or a TUN device without the
    /// capability CAP_NET_ADMIN; `NotFound` where the machine has no TUN devices; `InvalidInput`
    /// for addresses that a TUN device cannot have; `Unsupported` outside a tokio runtime, or for
    /// TUN on other systems than Linux; otherwise what the system says about the address.
    pub fn build(self) -> io::Result<Endpoint> {
        let guarded = self.settings.insecure || self.settings.identity.is_some();
        let local = match &self.settings.carrier {
            CarrierKind::Udp => Some(self.settings.bind),
            CarrierKind::Tun(options) | CarrierKind::Adopted(options, _) => options
                .networks
                .first()
                .map(|network| SocketAddr::new(network.stack, 0)),
        };
        if let Some(local) = local.filter(|local| !guarded && !is_loopback(*local)) {
            return Err(InsecureAddress(local).into());
        }
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "an endpoint needs a tokio runtime to live in",
            ));
        }
        Endpoint::open(&self.settings)
    }

    /// Opens the socket on the first address of `address` (`localhost:7777`, for example) that it
    /// can be bound to, in place of [`Builder::bind`], and starts the endpoint's task.
    ///
    /// # Errors
    /// As [`Builder::build`], of the last address tried; or that the name has no address.
    pub async fn build_at(self, address: impl ToSocketAddrs) -> io::Result<Endpoint> {
        let mut last = None;
        for address in lookup_host(address).await? {
            match self.clone().bind(address).build() {
                Ok(endpoint) => return Ok(endpoint),
                Err(error) => last = Some(error),
            }
        }
        Err(last
            .unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address")))
    }
}

impl Endpoint {
    /// A builder with the default settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// An endpoint with default settings on the first address of `address` that it can be bound to,
    /// a loopback one.
    ///
    /// # Errors
    /// As [`Builder::build_at`].
    pub async fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        Self::builder().build_at(address).await
    }
}

impl Listener {
    /// Listens on [`DEFAULT_PORT`] of a socket of its own at `address`, which must be a loopback
    /// one; use [`Endpoint::builder`] for others.
    ///
    /// # Errors
    /// As [`Builder::build_at`].
    pub async fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        Ok(Endpoint::bind(address).await?.listen(DEFAULT_PORT)?)
    }
}
