//! Who is played against: a socket of the kernel, or a stream of ours.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tack::{
    AccurateEcn, Config, Endpoint, ListenOptions, Listener, Stream, TunNetwork, TunOptions,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use crate::world::{build, ip, set_if_known, sysctl};

/// Whose TCP is under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    Kernel,
    Ours,
}

/// Who opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opening {
    /// The script.
    Passive,
    /// The TCP under test.
    Active,
}

/// Which IP carries the segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Family {
    #[default]
    V4,
    V6,
}

impl Family {
    /// Player and kernel: the addresses of the player's device.
    pub(crate) fn player(self) -> TunNetwork {
        self.network(79)
    }

    /// Our TCP and the kernel, which routes between the devices.
    fn ours(self) -> TunNetwork {
        self.network(77)
    }

    fn network(self, number: u8) -> TunNetwork {
        let (kernel, prefix, stack) = match self {
            Self::V4 => (format!("10.{number}.0.1"), 24, format!("10.{number}.0.2")),
            Self::V6 => (format!("fd{number}::1"), 64, format!("fd{number}::2")),
        };
        TunNetwork {
            kernel: ip(&kernel),
            prefix,
            stack: ip(&stack),
        }
    }

    fn socket(self) -> TcpSocket {
        match self {
            Self::V4 => TcpSocket::new_v4(),
            Self::V6 => TcpSocket::new_v6(),
        }
        .unwrap()
    }
}

/// What a script needs of the TCP under test.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    /// Whether it asks for accurate ECN feedback, or knows of it; `None`: as usual.
    pub(crate) accurate_ecn: Option<AccurateEcn>,
    /// Retransmission timeouts take so long that nobody waits for one.
    pub(crate) no_timeouts: bool,
    /// Size of the receive buffer, bytes; `None`: it grows from some 64 KiB.
    pub(crate) receive_buffer: Option<u32>,
    pub(crate) family: Family,
}

impl Settings {
    /// A socket of the kernel.
    fn socket(self) -> TcpSocket {
        let socket = self.family.socket();
        if let Some(bytes) = self.receive_buffer {
            // The kernel takes twice as much, half of it for what belongs to segments besides data.
            socket.set_recv_buffer_size(bytes).unwrap();
        }
        socket
    }
}

/// One connection under test.
enum Connection {
    Kernel(TcpStream),
    Ours(Stream),
}

/// The TCP under test and its application.
pub(crate) struct Subject {
    pub(crate) address: IpAddr,
    opening: Option<JoinHandle<io::Result<Connection>>>,
    connection: Option<Connection>,
    kept: Kept,
}

/// What lives as long as the subject: a listener goes on to listen, and a host to be there.
enum Kept {
    Nothing,
    Kernel(#[expect(dead_code, reason = "it is held")] Arc<TcpListener>),
    Ours(
        Endpoint,
        #[expect(dead_code, reason = "it is held")] Option<Arc<Listener>>,
    ),
}

/// Where the subject listens.
pub(crate) const PORT: u16 = 8080;
const PATIENCE: Duration = Duration::from_secs(20);
/// The shortest retransmission timeout where a script is to have none: longer than the player waits
/// for anything.
const NEVER: Duration = Duration::from_secs(60);
/// Connections that may wait to be accepted, or to be opened.
const BACKLOG: u16 = 16;

impl Subject {
    /// Listens, or begins to connect to `player`.
    pub(crate) fn new(who: Who, opening: Opening, player: SocketAddr, settings: Settings) -> Self {
        let accurate = settings.accurate_ecn.unwrap_or_default();
        if who == Who::Kernel {
            let is_asked_for = accurate == AccurateEcn::Offer;
            sysctl("ipv4/tcp_ecn", if is_asked_for { "3" } else { "1" });
            // As ours by default.
            sysctl("ipv4/tcp_rmem", "4096 131072 6291456");
            // RFC 6298 §5.5 doubles the time from the first SYN on.
            set_if_known("ipv4/tcp_syn_linear_timeouts", "0");
            // The kernel challenges a connection once in half a second otherwise.
            sysctl("ipv4/tcp_invalid_ratelimit", "0");
            if settings.no_timeouts {
                sysctl(super::MIN_RTO, &NEVER.as_micros().to_string());
            }
        }
        let mut kept = Kept::Nothing;
        match who {
            Who::Kernel => {
                let address = settings.family.player().kernel;
                let opening = match opening {
                    Opening::Passive => {
                        let socket = settings.socket();
                        socket.bind(SocketAddr::new(address, PORT)).unwrap();
                        let listener = Arc::new(socket.listen(BACKLOG.into()).unwrap());
                        kept = Kept::Kernel(Arc::clone(&listener));
                        tokio::spawn(async move { listener.accept().await.map(|(it, _)| it) })
                    }
                    Opening::Active => {
                        let socket = settings.socket();
                        tokio::spawn(socket.connect(player))
                    }
                };
                let opening = tokio::spawn(async move {
                    let stream = opening.await.unwrap()?;
                    // As ours by default.
                    stream.set_nodelay(true)?;
                    Ok(Connection::Kernel(stream))
                });
                Self::opening(address, opening, kept)
            }
            Who::Ours => {
                sysctl("ipv4/ip_forward", "1");
                sysctl("ipv6/conf/all/forwarding", "1");
                let network = settings.family.ours();
                let endpoint = build(Endpoint::builder().tun(TunOptions::new(network)));
                // The kernel knows no TACK; a script that is to fit both does without.
                let config = Config {
                    ack: "delayed:2".parse().unwrap(),
                    accurate_ecn: accurate,
                    ..Config::default()
                };
                let config = match settings.receive_buffer {
                    None => config,
                    Some(bytes) => Config {
                        receive_buffer: bytes as usize,
                        initial_receive_buffer: bytes as usize,
                        ..config
                    },
                };
                let config = match settings.no_timeouts {
                    false => config,
                    true => Config {
                        min_rto: NEVER,
                        max_rto: NEVER,
                        ..config
                    },
                };
                let opening = match opening {
                    Opening::Passive => {
                        let options = ListenOptions::new().config(config).backlog(BACKLOG.into());
                        let listener = endpoint.listen_with(PORT, options).unwrap();
                        let listener = Arc::new(listener);
                        kept = Kept::Ours(endpoint, Some(Arc::clone(&listener)));
                        tokio::spawn(async move {
                            let (stream, _) = listener.accept().await?;
                            Ok(Connection::Ours(stream))
                        })
                    }
                    Opening::Active => {
                        let host = endpoint.clone();
                        kept = Kept::Ours(endpoint, None);
                        tokio::spawn(async move {
                            let stream = host.connect(player).config(config).await?;
                            Ok(Connection::Ours(stream))
                        })
                    }
                };
                Self::opening(network.stack, opening, kept)
            }
        }
    }

    /// SYN cookies that left, and that came back.
    pub(crate) fn cookies(&self) -> (u64, u64) {
        match &self.kept {
            Kept::Ours(endpoint, _) => {
                let stats = endpoint.carrier_stats();
                (stats.cookies_sent, stats.cookies_accepted)
            }
            Kept::Nothing | Kept::Kernel(_) => {
                let text = std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
                let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
                let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
                let number = |name: &str| {
                    let mut pairs = names.split(' ').zip(values.split(' '));
                    let value = pairs.find(|(is, _)| *is == name).unwrap().1;
                    value.parse().unwrap()
                };
                (number("SyncookiesSent"), number("SyncookiesRecv"))
            }
        }
    }

    fn opening(address: IpAddr, opening: JoinHandle<io::Result<Connection>>, kept: Kept) -> Self {
        Self {
            address,
            opening: Some(opening),
            connection: None,
            kept,
        }
    }

    /// Waits until the connection is open.
    pub(crate) async fn opened(&mut self) -> io::Result<()> {
        if let Some(opening) = self.opening.take() {
            let opened = tokio::time::timeout(PATIENCE, opening).await;
            self.connection = Some(opened.expect("the application hears of it").unwrap()?);
        }
        Ok(())
    }

    async fn connection(&mut self) -> &mut Connection {
        self.opened().await.unwrap();
        self.connection.as_mut().expect("it is open")
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let written = match self.connection().await {
            Connection::Kernel(stream) => stream.write_all(bytes).await,
            Connection::Ours(stream) => stream.write_all(bytes).await,
        };
        written.unwrap();
    }

    /// Reads so many bytes.
    pub(crate) async fn read(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let reading = async {
            match self.connection().await {
                Connection::Kernel(stream) => stream.read_exact(&mut bytes).await,
                Connection::Ours(stream) => stream.read_exact(&mut bytes).await,
            }
        };
        let read = tokio::time::timeout(PATIENCE, reading).await;
        read.expect("the bytes are there").unwrap();
        bytes
    }

    /// What a read finds: bytes, the end, or an error.
    pub(crate) async fn read_some(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 16];
        let reading = async {
            match self.connection().await {
                Connection::Kernel(stream) => stream.read(&mut bytes).await,
                Connection::Ours(stream) => stream.read(&mut bytes).await,
            }
        };
        let read = tokio::time::timeout(PATIENCE, reading).await;
        read.expect("the application hears of it")
    }

    pub(crate) async fn finish(&mut self) {
        let finished = match self.connection().await {
            Connection::Kernel(stream) => stream.shutdown().await,
            Connection::Ours(stream) => stream.shutdown().await,
        };
        finished.unwrap();
    }

    pub(crate) async fn abort(&mut self) {
        self.opened().await.unwrap();
        match self.connection.take().expect("it is open") {
            Connection::Kernel(stream) => {
                // Linger for no time at all: a reset.
                socket2::SockRef::from(&stream)
                    .set_linger(Some(Duration::ZERO))
                    .unwrap();
            }
            Connection::Ours(stream) => stream.reset(),
        }
    }
}
