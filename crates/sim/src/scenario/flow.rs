//! Flows: from where to where, by which transport, for which application.

use std::borrow::Cow;
use std::time::Duration;

use tack_base::{Instant, Rate};
use tack_tcp::Config;
use tack_wlan::AccessCategory;

use super::video::Video;

/// A host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The host on the far side of the wired path.
    Server,
    /// The host on the near side, when there is no wireless network.
    Client,
    /// A station of the wireless network, from 0.
    Station(u16),
}

impl Party {
    /// As scenario files call it.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::Server => "server".into(),
            Self::Client => "client".into(),
            Self::Station(number) => format!("sta{number}").into(),
        }
    }

    /// Position in lists of hosts: the server is 0, the client or the first station 1.
    pub const fn index(self) -> usize {
        match self {
            Self::Server => 0,
            Self::Client => 1,
            Self::Station(number) => 1 + number as usize,
        }
    }
}

/// What the endpoints do with a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum App {
    /// `from` writes as much as it can, until `bytes`, `stop` or the end of the run.
    Bulk {
        /// Times at which the receiver stops reading and goes on again.
        pauses: Vec<(Instant, Instant)>,
    },
    /// Both sides write `bytes` at the same time over one connection.
    Duplex,
    /// `from` asks, `to` answers, one exchange after the other.
    Request {
        /// Bytes of a request, at least one.
        request: u64,
        /// Bytes of a response, at least one.
        response: u64,
        /// Pause between the end of one exchange and the next request.
        gap: Duration,
    },
    /// `from` writes frames as they are made, `to` plays them.
    Video(Video),
}

/// Settings of a TCP flow.
#[derive(Clone, Debug)]
pub struct TcpFlow {
    /// Both endpoints' settings.
    pub config: Config,
    /// The application.
    pub app: App,
}

/// How fast a UDP flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpRate {
    /// Keeps the queue in front of the bottleneck full.
    Saturate,
    /// At this rate of UDP payload.
    Fixed(Rate),
}

/// Settings of a UDP flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpFlow {
    /// Rate of sending.
    pub rate: UdpRate,
    /// UDP payload of a datagram, bytes.
    pub payload: usize,
    /// One acknowledgement for so many datagrams; zero is none.
    pub ack_every: u64,
    /// IP packet length of an acknowledgement, bytes.
    pub ack_size: usize,
    /// Frames to send instead of datagrams at `rate`, in datagrams spaced at the video's peak
    /// rate.
    pub video: Option<Video>,
}

/// The transport of a flow.
#[derive(Clone, Debug)]
pub enum Transport {
    /// TCP.
    Tcp(Box<TcpFlow>),
    /// UDP.
    Udp(UdpFlow),
}

/// One flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Who connects and sends (or asks).
    pub from: Party,
    /// The other one.
    pub to: Party,
    /// When it begins.
    pub start: Duration,
    /// When `from` stops sending.
    pub stop: Option<Duration>,
    /// How many bytes `from` sends (each side, for [`App::Duplex`]).
    pub bytes: Option<u64>,
    /// What its packets take beyond the wired path, one way, in each direction: propagation behind
    /// the shared link, which they meet last; between two stations, at the access point
    /// between both hops. At most an hour.
    pub extra_delay: Duration,
    /// In which category its packets contend for a wireless medium.
    pub category: AccessCategory,
    /// The protocol that carries the flow, and its settings.
    pub transport: Transport,
}

impl Flow {
    /// Most flows of a scenario: each has a port of its own.
    pub const MOST: u16 = 10_000;

    /// The settings of its two endpoints, to be changed from code: a policy or a controller that no
    /// file can name, for example. `None` for a UDP flow.
    pub fn tcp_config_mut(&mut self) -> Option<&mut Config> {
        match &mut self.transport {
            Transport::Tcp(tcp) => Some(&mut tcp.config),
            Transport::Udp(_) => None,
        }
    }
}
