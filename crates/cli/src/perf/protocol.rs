//! What client and server of a test say to each other: JSON messages with bounded lengths.
//!
//! On the control connection the client sends [`MAGIC`] and a [`TestRequest`], and in a UDP test a [`ClientMessage`] when it has
//! sent everything; all else there is a [`ServerMessage`]. A data connection begins with [`Ticket`] bytes from the client;
//! after that each direction carries nothing but test data until its end. Datagrams of a UDP test: see `udp`.

use std::io;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tack::{AckKind, Algorithm, AnswersSingly, Config, Endpoint, KeepAlive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::flow::FlowResult;
use super::report::Interval;
use super::udp::HEAD;

/// First bytes of a control connection; the last one is the version.
pub(crate) const MAGIC: [u8; 9] = *b"tackperf\x02";
/// Largest request, bytes.
pub(crate) const MAX_REQUEST: usize = 4 << 10;
/// Largest answer, bytes: the results of the most connections fit several times.
pub(crate) const MAX_ANSWER: usize = 8 << 20;
/// Most connections of one test.
pub(crate) const MAX_STREAMS: u16 = 1024;
/// Longest test.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(24 * 3600);
/// How long a peer may stay silent.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
/// Most memory that one test may ask the server to buffer, bytes.
const MAX_BUFFERS: u64 = 1 << 30;
/// UDP payload that fits Ethernet with IPv6 and a few bytes of tunnel.
pub(crate) const DEFAULT_DATAGRAM: u16 = 1448;
/// Longest UDP payload of an IPv4 packet.
const MAX_DATAGRAM: u16 = 65_507;

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Direction {
    /// The client.
    Up,
    /// The server.
    Down,
    /// Both.
    Both,
}

impl Direction {
    pub(crate) fn client_sends(self) -> bool {
        self != Self::Down
    }

    pub(crate) fn server_sends(self) -> bool {
        self != Self::Up
    }
}

/// When a sender stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    Millis(u64),
    Bytes(u64),
}

/// Whether segments that arrive together are answered together, on both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Coalescing {
    /// As fast as it goes: an acknowledgement covers all that one system call delivered.
    #[default]
    On,
    /// As many acknowledgements as the policy says.
    Off,
}

impl Coalescing {
    /// What the endpoint of one side holds during a test.
    pub(crate) fn apply(self, endpoint: &Endpoint) -> Option<AnswersSingly> {
        (self == Self::Off).then(|| endpoint.answer_singly())
    }
}

/// What the test data travels in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Carrier {
    /// Connections of this stack.
    #[default]
    Tcp,
    /// Datagrams with this many bytes of payload; the measured path has no transport.
    Udp { length: u16 },
}

/// In what form the client wants the server's intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerOutput {
    #[default]
    None,
    Text,
    Json,
}

/// The test that a client asks for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TestRequest {
    pub(crate) direction: Direction,
    #[serde(default)]
    pub(crate) carrier: Carrier,
    pub(crate) streams: u16,
    pub(crate) limit: Limit,
    /// Time at the beginning that the results leave out; `limit` counts from its end.
    #[serde(default)]
    pub(crate) omit_millis: u64,
    /// Most that each stream sends, bits per second.
    #[serde(default)]
    pub(crate) bitrate: Option<u64>,
    #[serde(default)]
    pub(crate) server_output: ServerOutput,
    /// Between the server's intervals, if they are wanted; 0 for none.
    #[serde(default)]
    pub(crate) interval_millis: u64,
    pub(crate) congestion: String,
    pub(crate) ack: String,
    #[serde(default)]
    pub(crate) coalesce: Coalescing,
    pub(crate) mss: Option<u16>,
    pub(crate) window: Option<u64>,
}

impl TestRequest {
    /// Payload bytes of a datagram.
    pub(crate) fn datagram(&self) -> usize {
        match self.carrier {
            Carrier::Tcp => 0,
            Carrier::Udp { length } => length.into(),
        }
    }

    /// The settings of the test's connections, or what is wrong with the request at a server that allows tests of
    /// `max_time` and `max_bytes`.
    pub(crate) fn config(
        &self,
        max_time: Duration,
        max_bytes: Option<u64>,
    ) -> Result<Config, String> {
        if self.streams == 0 || self.streams > MAX_STREAMS {
            return Err(format!(
                "between 1 and {MAX_STREAMS} connections are possible"
            ));
        }
        let longest = max_time.min(MAX_TIME);
        let time = match self.limit {
            Limit::Millis(0) | Limit::Bytes(0) => return Err("the test is empty".into()),
            Limit::Millis(millis) => millis,
            Limit::Bytes(_) => 0,
        };
        if Duration::from_millis(time.saturating_add(self.omit_millis)) > longest {
            return Err(format!(
                "a test may last up to {}",
                tack_base::units::show_duration(longest)
            ));
        }
        let directions = match self.direction {
            Direction::Up | Direction::Down => 1,
            Direction::Both => 2,
        };
        if let (Limit::Bytes(bytes), Some(most)) = (self.limit, max_bytes)
            && bytes
                .saturating_mul(u64::from(self.streams))
                .saturating_mul(directions)
                > most
        {
            return Err(format!("a test may move up to {most} bytes in all"));
        }
        if let Carrier::Udp { length } = self.carrier
            && !(HEAD as u16..=MAX_DATAGRAM).contains(&length)
        {
            return Err(format!(
                "a datagram has {HEAD} to {MAX_DATAGRAM} bytes of payload"
            ));
        }
        if self.bitrate == Some(0) {
            return Err("a bitrate is above zero".into());
        }
        let mut config = Config {
            congestion: self
                .congestion
                .parse::<Algorithm>()
                .map_err(|error| error.to_string())?,
            ack: self
                .ack
                .parse::<AckKind>()
                .map_err(|error| error.to_string())?,
            user_timeout: Some(PATIENCE),
            // Who only receives learns from these that the other side is gone: within the same time.
            keep_alive: Some(KeepAlive {
                idle: PATIENCE * 2 / 5,
                interval: PATIENCE / 5,
                probes: 3,
            }),
            ..Config::default()
        };
        if let Some(mss) = self.mss {
            config.mss = mss;
        }
        if let Some(window) = self.window {
            let window =
                usize::try_from(window).map_err(|_| "the window is too large".to_owned())?;
            config.send_buffer = window;
            config.receive_buffer = window;
        }
        if self.window.is_none() {
            // Many connections share what memory there is.
            let share = (MAX_BUFFERS / u64::from(self.streams)) as usize;
            config.send_buffer = config.send_buffer.min(share);
            config.receive_buffer = config.receive_buffer.min(share);
        }
        let buffers = (config.send_buffer as u64).saturating_add(config.receive_buffer as u64);
        if buffers.saturating_mul(self.streams.into()) > 2 * MAX_BUFFERS {
            return Err(format!(
                "connections times window may be {} MiB",
                MAX_BUFFERS >> 20
            ));
        }
        Ok(config)
    }
}

/// What the server says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerMessage {
    /// Data connections go to this TCP port and begin with this token.
    Accepted { port: u16, token: u64 },
    /// There will be no test.
    Refused { message: String },
    /// There will be no test now.
    Busy { message: String },
    /// All data connections are here: the test begins.
    Started,
    /// A UDP test: the server has sent everything.
    Sent,
    /// The test ended before its end, for this reason.
    Stopped { message: String },
    /// The server's side of the finished test.
    Results {
        flows: Vec<FlowResult>,
        cpu_seconds: f64,
        /// Its intervals, if the request wants them.
        #[serde(default)]
        output: Option<Output>,
    },
}

/// The server's intervals, as far as they fit; in the form that the request asks for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Output {
    Text(String),
    Json(Vec<Interval>),
}

/// A client's word that it has sent every datagram of a UDP test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ClientMessage {
    Sent,
}

/// The first bytes of a data connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    pub(crate) token: u64,
    pub(crate) stream: u16,
}

/// Bytes of a [`Ticket`].
pub(crate) const TICKET: u64 = 10;

impl Ticket {
    pub(crate) async fn write<W: AsyncWrite + Unpin>(self, to: &mut W) -> io::Result<()> {
        let mut bytes = [0; TICKET as usize];
        bytes[..8].copy_from_slice(&self.token.to_be_bytes());
        bytes[8..].copy_from_slice(&self.stream.to_be_bytes());
        to.write_all(&bytes).await?;
        to.flush().await
    }

    pub(crate) async fn read<R: AsyncRead + Unpin>(from: &mut R) -> io::Result<Self> {
        Ok(Self {
            token: from.read_u64().await?,
            stream: from.read_u16().await?,
        })
    }
}

/// Sends one message: four bytes of length, big-endian, and JSON.
pub(crate) async fn write_message<W: AsyncWrite + Unpin>(
    to: &mut W,
    message: &impl Serialize,
) -> io::Result<()> {
    let json = serde_json::to_vec(message)?;
    let len = u32::try_from(json.len()).map_err(|_| io::Error::other("a message is too long"))?;
    to.write_all(&len.to_be_bytes()).await?;
    to.write_all(&json).await?;
    to.flush().await
}

/// Reads one message of at most `max` bytes.
pub(crate) async fn read_message<R, T>(from: &mut R, max: usize) -> io::Result<T>
where
    R: AsyncRead + Unpin,
    T: DeserializeOwned,
{
    let len = from.read_u32().await? as usize;
    if len > max {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a message of {len} bytes, allowed are {max}"),
        ));
    }
    let mut json = vec![0; len];
    from.read_exact(&mut json).await?;
    serde_json::from_slice(&json).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> TestRequest {
        TestRequest {
            direction: Direction::Both,
            carrier: Carrier::Tcp,
            streams: 2,
            limit: Limit::Millis(1_000),
            omit_millis: 0,
            bitrate: None,
            server_output: ServerOutput::None,
            interval_millis: 1_000,
            congestion: "cubic".into(),
            ack: "delayed:4".into(),
            coalesce: Coalescing::Off,
            mss: Some(1000),
            window: Some(1 << 20),
        }
    }

    #[test]
    fn a_request_becomes_a_config() {
        let config = request().config(MAX_TIME, None).unwrap();
        assert_eq!(
            (config.congestion, config.mss, config.send_buffer),
            (Algorithm::Cubic, 1000, 1 << 20)
        );
        assert_eq!(config.ack, AckKind::delayed(4));
    }

    #[test]
    fn greedy_or_wrong_requests_are_refused() {
        for wrong in [
            TestRequest {
                streams: 0,
                ..request()
            },
            TestRequest {
                streams: 1025,
                ..request()
            },
            TestRequest {
                limit: Limit::Millis(0),
                ..request()
            },
            TestRequest {
                limit: Limit::Millis(u64::MAX),
                ..request()
            },
            TestRequest {
                omit_millis: u64::MAX,
                ..request()
            },
            TestRequest {
                bitrate: Some(0),
                ..request()
            },
            TestRequest {
                carrier: Carrier::Udp { length: 4 },
                ..request()
            },
            TestRequest {
                congestion: "warp".into(),
                ..request()
            },
            TestRequest {
                ack: "never".into(),
                ..request()
            },
            TestRequest {
                window: Some(u64::MAX),
                ..request()
            },
            TestRequest {
                window: Some(1 << 30),
                streams: 128,
                ..request()
            },
        ] {
            assert!(wrong.config(MAX_TIME, None).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_server_has_limits_of_its_own_and_names_them() {
        let long = request().config(Duration::from_millis(999), None);
        assert!(long.unwrap_err().contains("999ms"));
        let large = TestRequest {
            limit: Limit::Bytes(1000),
            ..request()
        };
        // Two connections, both directions.
        assert!(large.config(MAX_TIME, Some(4000)).is_ok());
        assert!(
            large
                .config(MAX_TIME, Some(3999))
                .unwrap_err()
                .contains("3999")
        );
    }

    #[test]
    fn a_thousand_connections_share_the_memory() {
        let many = TestRequest {
            streams: 1024,
            window: None,
            ..request()
        };
        assert!(many.config(MAX_TIME, None).unwrap().send_buffer <= 1 << 20);
    }

    #[tokio::test]
    async fn messages_round_trip_and_are_bounded() {
        let (mut a, mut b) = tokio::io::duplex(1 << 16);
        write_message(&mut a, &request()).await.unwrap();
        assert_eq!(
            read_message::<_, TestRequest>(&mut b, MAX_REQUEST)
                .await
                .unwrap(),
            request()
        );
        write_message(&mut a, &request()).await.unwrap();
        assert!(read_message::<_, TestRequest>(&mut b, 10).await.is_err());
        let (mut a, mut b) = tokio::io::duplex(64);
        a.write_all(&[0, 0, 0, 2, b'n', b'o']).await.unwrap();
        assert!(read_message::<_, TestRequest>(&mut b, 10).await.is_err());
    }
}
