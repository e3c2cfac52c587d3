//! The test that a client asks for, and what a server allows.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tack::{AckKind, Algorithm, CoalescingGuard, Config, Endpoint, KeepAlive};

/// Most connections of one test.
pub(crate) const MAX_STREAMS: u16 = 1024;
/// Longest test.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(24 * 3600);
/// Longest silence of a peer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
/// Most memory that one test may ask the server to buffer, bytes.
const MAX_BUFFERS: u64 = 1 << 30;
/// UDP payload that fits Ethernet with IPv6 and a few bytes of tunnel.
pub(crate) const DEFAULT_DATAGRAM: u16 = 1448;
/// Bytes of a request and of a response, unless another length is asked for.
pub(crate) const DEFAULT_MESSAGE: u32 = 1;
/// Most bytes of a request or a response.
const MAX_MESSAGE: u32 = 1 << 20;
/// Shortest payload of a datagram: its header.
pub(crate) const MIN_DATAGRAM: u16 = 28;
/// Longest UDP payload of an IPv4 packet.
const MAX_DATAGRAM: u16 = 65_507;

/// Which side sends.
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
    /// One acknowledgement covers all segments that one system call delivered.
    #[default]
    On,
    /// Each segment is processed alone: the policy decides the number of acknowledgements.
    Off,
}

impl Coalescing {
    /// What the endpoint of one side holds during a test.
    pub(crate) fn apply(self, endpoint: &Endpoint) -> Option<CoalescingGuard> {
        (self == Self::Off).then(|| endpoint.suspend_coalescing())
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

/// Requests of the client, each of which the server answers with as many bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exchange {
    /// Of a request, and of a response.
    pub(crate) bytes: u32,
    /// On one connection more, beside bulk data on the others; else on all connections.
    pub(crate) beside_load: bool,
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
    /// Requests and responses, in the place of bulk data or beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exchange: Option<Exchange>,
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
    /// Connections with bulk data: the first ones.
    pub(crate) fn bulk_streams(&self) -> usize {
        match self.exchange {
            Some(Exchange {
                beside_load: false, ..
            }) => 0,
            Some(_) | None => self.streams.into(),
        }
    }

    /// All connections.
    pub(crate) fn connections(&self) -> u16 {
        match self.exchange {
            Some(Exchange {
                beside_load: true, ..
            }) => self.streams.saturating_add(1),
            Some(_) | None => self.streams,
        }
    }

    /// What a connection exchanges, if it is no bulk data.
    pub(crate) fn exchange_of(&self, stream: usize) -> Option<Exchange> {
        self.exchange.filter(|_| stream >= self.bulk_streams())
    }

    /// Payload bytes of a datagram.
    pub(crate) fn datagram(&self) -> usize {
        match self.carrier {
            Carrier::Tcp => 0,
            Carrier::Udp { length } => length.into(),
        }
    }

    /// The settings of the test's connections, or what is wrong with the request at a server that
    /// allows tests of `max_time` and `max_bytes`.
    pub(crate) fn config(
        &self,
        max_time: Duration,
        max_bytes: Option<u64>,
    ) -> Result<Config, String> {
        if self.streams == 0 || self.streams > MAX_STREAMS {
            return Err(format!("expected 1 to {MAX_STREAMS} connections"));
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
            && !(MIN_DATAGRAM..=MAX_DATAGRAM).contains(&length)
        {
            return Err(format!(
                "expected {MIN_DATAGRAM} to {MAX_DATAGRAM} bytes of payload per datagram"
            ));
        }
        if let Some(exchange) = self.exchange {
            if !(1..=MAX_MESSAGE).contains(&exchange.bytes) {
                return Err(format!(
                    "expected requests and responses of 1 to {MAX_MESSAGE} bytes"
                ));
            }
            if exchange.beside_load && matches!(self.limit, Limit::Bytes(_)) {
                return Err("requests beside bulk data need a test that ends by time".into());
            }
            if self.carrier != Carrier::Tcp {
                return Err("requests and responses need connections, not datagrams".into());
            }
        }
        if self.bitrate == Some(0) {
            return Err("expected a bitrate above zero".into());
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
            hard_errors: true,
            // A side that only receives detects by these, within the same time, that the other side
            // is gone.
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
            let share = (MAX_BUFFERS / u64::from(self.connections())) as usize;
            config.send_buffer = config.send_buffer.min(share);
            config.receive_buffer = config.receive_buffer.min(share);
        }
        let buffers = (config.send_buffer as u64).saturating_add(config.receive_buffer as u64);
        if buffers.saturating_mul(self.streams.into()) > 2 * MAX_BUFFERS {
            return Err(format!(
                "connections times window exceeds {} MiB",
                MAX_BUFFERS >> 20
            ));
        }
        Ok(config)
    }
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
            exchange: None,
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
            (Algorithm::CUBIC, 1000, 1 << 20)
        );
        assert_eq!(config.ack, AckKind::delayed(4));
    }

    #[test]
    fn a_dead_peer_is_noticed_in_15_s_by_who_sends_and_who_receives() {
        let config = request().config(MAX_TIME, None).unwrap();
        assert_eq!(config.user_timeout, Some(Duration::from_secs(15)));
        let probing = config.keep_alive.unwrap();
        let noticed = probing.idle + probing.interval * probing.probes;
        assert_eq!(noticed, Duration::from_secs(15));
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
                exchange: Some(Exchange {
                    bytes: u32::MAX,
                    beside_load: true,
                }),
                ..request()
            },
            TestRequest {
                exchange: Some(Exchange {
                    bytes: 0,
                    beside_load: false,
                }),
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
}
