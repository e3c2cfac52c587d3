//! Connections: the settings that the command line has for them, and what they counted.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tack::secure::{Identity, PublicKey, SecureError, SecureStream};
use tack::{Builder, Config, ConnectError, Endpoint, Stats, Stream};

use crate::address::{Address, Family, Reach};
use crate::carrier::CarrierArgs;
use crate::exit::Failure;

/// The UDP port of `tack recv`.
pub(crate) const TRANSFER_UDP_PORT: u16 = 7777;
/// The UDP port of `tack perf --server`.
pub(crate) const PERF_UDP_PORT: u16 = 7778;
/// The UDP port of `tack perf --server --insecure`: clear text has ports of its own, so that
/// neither is taken for the other.
pub(crate) const CLEAR_PERF_UDP_PORT: u16 = 7779;
/// The TCP port of transfers within the UDP port, so that the handshake refuses other programs
/// already.
pub(crate) const TRANSFER_PORT: u16 = tack::DEFAULT_PORT;
/// The TCP port of `tack perf --insecure`.
pub(crate) const CLEAR_PERF_PORT: u16 = tack::DEFAULT_PORT + 1;
/// The TCP port of `tack perf` between two programs of one machine.
pub(crate) const PERF_PORT: u16 = tack::DEFAULT_PORT + 3;
/// The TCP port of `tack perf` between two sides that meet.
pub(crate) const MET_PERF_PORT: u16 = tack::DEFAULT_PORT + 5;

/// Where to connect from and to, and how patiently.
#[derive(Clone, Debug)]
pub(crate) struct Dial {
    /// Unless the address names another.
    pub(crate) udp_port: u16,
    pub(crate) tcp_port: u16,
    /// The command that serves there, for messages.
    pub(crate) service: &'static str,
    pub(crate) reach: Reach,
    pub(crate) family: Family,
    /// The local address; `None` takes one from which the peer can be reached.
    pub(crate) from: Option<IpAddr>,
    pub(crate) connect_timeout: Duration,
    pub(crate) carrier: CarrierArgs,
}

/// Connects to the first address of `to` that answers, each from a socket of its own, in clear
/// text.
pub(crate) async fn connect(to: &Address, dial: &Dial, config: &Config) -> Result<Stream, Failure> {
    dial.open(Endpoint::builder())?;
    first(to, dial, |address| async move {
        let endpoint = dial.endpoint(address, Endpoint::builder())?;
        let connect = endpoint.connect(address).port(dial.tcp_port);
        let connecting = connect.config(config.clone()).into_future();
        sensible(&endpoint, connecting)
            .await?
            .map_err(|error| dial.explain(error))
    })
    .await
}

/// What an encrypted connection needs besides an address.
#[derive(Clone, Debug)]
pub(crate) struct Encryption {
    /// What this side proves to be.
    pub(crate) identity: Identity,
    /// The one key that the peer may have; `None` accepts any, for the caller to judge.
    pub(crate) expected: Option<PublicKey>,
    /// The protocol inside.
    pub(crate) alpn: &'static [u8],
}

/// Connects to the first address of `to` that answers, each from a socket of its own, and encrypts.
pub(crate) async fn connect_encrypted(
    to: &Address,
    dial: &Dial,
    config: &Config,
    encryption: &Encryption,
) -> Result<SecureStream, Failure> {
    dial.open(Endpoint::builder().identity(encryption.identity.clone()))?;
    first(to, dial, |address| async move {
        let builder = Endpoint::builder().identity(encryption.identity.clone());
        let endpoint = dial.endpoint(address, builder)?;
        let connect = endpoint.connect(address).port(dial.tcp_port);
        let connect = connect.config(config.clone());
        let connect = match encryption.expected {
            Some(key) => connect.expecting(key, encryption.alpn),
            None => connect.any_key(encryption.alpn),
        };
        sensible(&endpoint, connect.into_future())
            .await?
            .map_err(|error| match error {
                SecureError::Connect(ConnectError::Refused { .. }) => format!(
                    "another tack service listens there, or one in clear text; expected `{}`",
                    dial.service
                ),
                SecureError::Connect(error) => dial.explain(error),
                error => error.to_string(),
            })
    })
    .await
}

/// The first connection that `attempt` has to an address of `to`.
async fn first<T, F: Future<Output = Result<T, String>>>(
    to: &Address,
    dial: &Dial,
    attempt: impl Fn(SocketAddr) -> F,
) -> Result<T, Failure> {
    let mut addresses = to.resolve(dial.udp_port, dial.reach, dial.family).await?;
    if let Some(from) = dial.from {
        addresses.retain(|address| address.is_ipv4() == from.is_ipv4());
        if addresses.is_empty() {
            return Err(Failure::usage(format!(
                "{to} has no address of the family of --bind {from}"
            )));
        }
    }
    let share = dial.connect_timeout / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let mut last = None;
    for address in addresses {
        let failed = match tokio::time::timeout(share, attempt(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error,
            Err(_) => format!(
                "no answer within {} s (--connect-timeout)",
                share.as_secs_f64()
            ),
        };
        last = Some(format!("cannot connect to {address}: {failed}"));
    }
    Err(Failure::network(last.unwrap_or_default()))
}

/// How often it is looked whether strange answers came.
const LOOK: Duration = Duration::from_millis(100);

/// How long a connection may still take after a malformed segment arrived.
const STRANGE: Duration = Duration::from_secs(1);

/// Something answered that is no TCP in UDP.
pub(crate) const NOT_TACK: &str = "the peer answers, but does not speak tack";

/// Waits until it is clear that what answers is not tack.
pub(crate) async fn strange(endpoint: &Endpoint) {
    // A host behind a TUN device hears from any TCP, also from peers of whoever had its address.
    if endpoint.device().is_some() {
        std::future::pending::<()>().await;
    }
    // A text can pass for the header of a segment; it is one of no connection then.
    let is_strange = || {
        let stats = endpoint.carrier_stats();
        stats.malformed + stats.strays > 0
    };
    while !is_strange() {
        tokio::time::sleep(LOOK).await;
    }
    // A stray datagram must not spoil what goes well.
    tokio::time::sleep(STRANGE).await;
}

impl Dial {
    /// Makes the device, if there is to be one.
    fn open(&self, builder: Builder) -> Result<(), Failure> {
        self.carrier
            .open(builder.insecure(self.reach == Reach::Anywhere))
    }

    /// The socket for a connection to `address`, or in words why there is none.
    fn endpoint(&self, address: SocketAddr, builder: Builder) -> Result<Endpoint, String> {
        let builder = match self.from {
            Some(from) => builder.bind(SocketAddr::new(from, 0)),
            None => builder.bind_towards(address),
        };
        self.carrier
            .build(builder.insecure(self.reach == Reach::Anywhere))
            .map_err(|error| error.to_string())
    }

    fn explain(&self, error: ConnectError) -> String {
        match error {
            ConnectError::Unreachable(_) => {
                "connection refused: no program listens on this port".into()
            }
            // Its stack answers, so the UDP port is right, and the service is not.
            ConnectError::Refused { .. } => format!(
                "another tack service listens there, expected `{}`",
                self.service
            ),
            error => error.to_string(),
        }
    }
}

/// Waits for a connection of `endpoint`, unless what answers is no TCP.
async fn sensible<T>(
    endpoint: &Endpoint,
    connecting: impl Future<Output = T>,
) -> Result<T, String> {
    tokio::select! {
        connected = connecting => Ok(connected),
        () = strange(endpoint) => Err(NOT_TACK.into()),
    }
}

/// Opens the socket of a server on the first address of `at`, or its device; with an identity it
/// may serve encrypted connections.
pub(crate) async fn serve(
    carrier: &CarrierArgs,
    at: &Address,
    udp_port: u16,
    reach: Reach,
    family: Family,
    max_connections: usize,
    identity: Option<Identity>,
) -> Result<Endpoint, Failure> {
    let address = at.resolve(udp_port, reach, family).await?[0];
    let builder = match identity {
        Some(identity) => Endpoint::builder().identity(identity),
        None => Endpoint::builder(),
    };
    let builder = builder
        .bind(address)
        .insecure(reach == Reach::Anywhere)
        .max_connections(max_connections);
    carrier
        .build(builder)
        .map_err(|error| carrier.cannot_listen(address, &error))
}

/// What one side's connection counted, for JSON output and for `tack perf`'s exchange of results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TransportFigures {
    /// Segments with payload sent, retransmissions included.
    pub(crate) data_segments: u64,
    /// Segments that carried bytes sent before.
    pub(crate) retransmitted_segments: u64,
    /// Retransmissions that the peer turned out to have had.
    pub(crate) spurious_retransmissions: u64,
    /// Retransmission timeouts.
    pub(crate) rto_count: u64,
    /// Tail loss probes.
    pub(crate) tlp_count: u64,
    /// Pure acknowledgements sent.
    pub(crate) acks_sent: u64,
    /// Those by kind: why each left.
    pub(crate) acks_by_kind: AcksByKind,
    /// Segments that reported RTTmin and the loss rate of its acknowledgements to the peer.
    pub(crate) syncs_sent: u64,
    /// Pure acknowledgements received.
    pub(crate) acks_received: u64,
    /// Acknowledgements of the peer that said what cannot be.
    pub(crate) invalid_reports: u64,
    /// Segments with payload received, duplicates included.
    pub(crate) segments_received: u64,
    /// Smoothed round-trip time, microseconds.
    pub(crate) srtt_us: Option<f64>,
    /// Smallest round-trip time, microseconds.
    pub(crate) min_rtt_us: Option<f64>,
    /// Congestion window, bytes.
    pub(crate) cwnd: u64,
    /// Payload bytes of a full segment.
    pub(crate) mss: u16,
    /// Seconds that sending waited for each reason.
    pub(crate) limited_seconds: LimitedSeconds,
}

/// Pure acknowledgements by why they left; the kinds of a scenario's report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AcksByKind {
    /// Periodic ones.
    pub(crate) tack: u64,
    /// Loss or disorder.
    pub(crate) iack_loss: u64,
    /// The window closed or opened.
    pub(crate) iack_window: u64,
    /// Their frequency changed.
    pub(crate) iack_sync: u64,
    /// Handshake, FIN, duplicate, mark, challenge.
    pub(crate) iack_event: u64,
    /// Count or timer of a policy other than TACK.
    pub(crate) delayed: u64,
}

impl std::ops::Add for AcksByKind {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            tack: self.tack + other.tack,
            iack_loss: self.iack_loss + other.iack_loss,
            iack_window: self.iack_window + other.iack_window,
            iack_sync: self.iack_sync + other.iack_sync,
            iack_event: self.iack_event + other.iack_event,
            delayed: self.delayed + other.delayed,
        }
    }
}

/// What kept the sender from sending, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LimitedSeconds {
    pub(crate) cwnd: f64,
    pub(crate) rwnd: f64,
    pub(crate) pacing: f64,
    pub(crate) app: f64,
}

fn micros(duration: Option<Duration>) -> Option<f64> {
    duration.map(|duration| duration.as_nanos() as f64 / 1e3)
}

impl TransportFigures {
    /// What was counted after `before`; estimates are the present ones.
    pub(crate) fn since(self, before: &Self) -> Self {
        let (now, then) = (&self.acks_by_kind, &before.acks_by_kind);
        let acks_by_kind = AcksByKind {
            tack: now.tack.saturating_sub(then.tack),
            iack_loss: now.iack_loss.saturating_sub(then.iack_loss),
            iack_window: now.iack_window.saturating_sub(then.iack_window),
            iack_sync: now.iack_sync.saturating_sub(then.iack_sync),
            iack_event: now.iack_event.saturating_sub(then.iack_event),
            delayed: now.delayed.saturating_sub(then.delayed),
        };
        let (now, then) = (&self.limited_seconds, &before.limited_seconds);
        let limited_seconds = LimitedSeconds {
            cwnd: now.cwnd - then.cwnd,
            rwnd: now.rwnd - then.rwnd,
            pacing: now.pacing - then.pacing,
            app: now.app - then.app,
        };
        let less = u64::saturating_sub;
        Self {
            data_segments: less(self.data_segments, before.data_segments),
            retransmitted_segments: less(
                self.retransmitted_segments,
                before.retransmitted_segments,
            ),
            spurious_retransmissions: less(
                self.spurious_retransmissions,
                before.spurious_retransmissions,
            ),
            rto_count: less(self.rto_count, before.rto_count),
            tlp_count: less(self.tlp_count, before.tlp_count),
            acks_sent: less(self.acks_sent, before.acks_sent),
            acks_by_kind,
            syncs_sent: less(self.syncs_sent, before.syncs_sent),
            acks_received: less(self.acks_received, before.acks_received),
            invalid_reports: less(self.invalid_reports, before.invalid_reports),
            segments_received: less(self.segments_received, before.segments_received),
            limited_seconds,
            ..self
        }
    }
}

impl From<&Stats> for TransportFigures {
    fn from(stats: &Stats) -> Self {
        Self {
            data_segments: stats.data_segments,
            retransmitted_segments: stats.retransmitted_segments,
            spurious_retransmissions: stats.spurious_retransmissions,
            rto_count: stats.rto_count,
            tlp_count: stats.tlp_count,
            acks_sent: stats.acks,
            acks_by_kind: AcksByKind {
                tack: stats.acks_tack,
                iack_loss: stats.acks_loss,
                iack_window: stats.acks_window,
                iack_sync: stats.acks_sync,
                iack_event: stats.acks_event,
                delayed: stats.acks_delayed,
            },
            syncs_sent: stats.syncs,
            invalid_reports: stats.invalid_reports,
            acks_received: stats.acks_received,
            segments_received: stats.segments_received,
            srtt_us: micros(stats.srtt),
            min_rtt_us: micros(stats.min_rtt),
            cwnd: stats.cwnd,
            mss: stats.mss,
            limited_seconds: LimitedSeconds {
                cwnd: stats.limited_by_cwnd.as_secs_f64(),
                rwnd: stats.limited_by_rwnd.as_secs_f64(),
                pacing: stats.limited_by_pacing.as_secs_f64(),
                app: stats.limited_by_app.as_secs_f64(),
            },
        }
    }
}
