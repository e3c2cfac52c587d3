//! Connections: the settings that the command line has for them, and what they counted.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tack::{Config, ConnectError, Endpoint, Stats, Stream};

use crate::address::{Address, Reach};
use crate::exit::Failure;

/// The UDP port of `tack recv`.
pub(crate) const TRANSFER_UDP_PORT: u16 = 7777;
/// The UDP port of `tack perf --server`.
pub(crate) const PERF_UDP_PORT: u16 = 7778;
/// The TCP port of transfers within the UDP port, so that a stranger is refused by the handshake already.
pub(crate) const TRANSFER_PORT: u16 = tack::DEFAULT_PORT;
/// The TCP port of `tack perf`.
pub(crate) const PERF_PORT: u16 = tack::DEFAULT_PORT + 1;

/// Connects to the first address of `to` that answers, each from a socket of its own.
pub(crate) async fn connect(
    to: &Address,
    udp_port: u16,
    tcp_port: u16,
    reach: Reach,
    config: &Config,
    patience: Duration,
) -> Result<Stream, Failure> {
    let addresses = to.resolve(udp_port, reach).await?;
    let share = patience / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let mut last = None;
    for address in addresses {
        let connecting = async {
            tokio::select! {
                connected = connect_one(address, tcp_port, reach, config) => Some(connected),
                () = nobody_listens(address) => None,
            }
        };
        match tokio::time::timeout(share, connecting).await {
            Ok(Some(Ok(stream))) => return Ok(stream),
            Ok(None) => {
                last = Some(format!(
                    "cannot connect to {address}: nobody listens there (connection refused)"
                ))
            }
            Ok(Some(Err(error))) => last = Some(format!("cannot connect to {address}: {error}")),
            Err(_) => {
                last = Some(format!(
                    "cannot connect to {address}: no answer within {} s",
                    share.as_secs_f64()
                ))
            }
        }
    }
    Err(Failure::network(last.unwrap_or_default()))
}

async fn connect_one(
    address: SocketAddr,
    tcp_port: u16,
    reach: Reach,
    config: &Config,
) -> Result<Stream, ConnectError> {
    let builder = Endpoint::builder()
        .bind_towards(address)
        .insecure(reach == Reach::Anywhere);
    builder
        .build()
        .await?
        .connect_with(address, tcp_port, config)
        .await
}

/// Ends when the kernel, or the host there, says that the UDP port is closed; never otherwise.
///
/// An empty datagram from a connected socket of its own asks: the endpoint's socket serves many peers, and the kernel does
/// not tell such a socket of ICMP errors (RFC 1122 §4.1.3.3). Nobody is asked once a connection stands, so that a forged
/// error harms no more than a forged RST in answer to the SYN would.
async fn nobody_listens(address: SocketAddr) {
    let any: std::net::IpAddr = match address {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let asking = async {
        let socket = tokio::net::UdpSocket::bind((any, 0)).await?;
        socket.connect(address).await?;
        socket.send(&[]).await?;
        loop {
            // What a stranger has to say does not matter.
            socket.recv(&mut [0; 1]).await?;
        }
    };
    let answer: std::io::Result<std::convert::Infallible> = asking.await;
    let Err(error) = answer;
    if error.kind() != std::io::ErrorKind::ConnectionRefused {
        std::future::pending::<()>().await;
    }
}

/// Opens the socket of a server on the first address of `at`.
pub(crate) async fn serve(
    at: &Address,
    udp_port: u16,
    reach: Reach,
    max_connections: usize,
) -> Result<Endpoint, Failure> {
    let address = at.resolve(udp_port, reach).await?[0];
    Endpoint::builder()
        .bind(address)
        .insecure(reach == Reach::Anywhere)
        .max_connections(max_connections)
        .build()
        .await
        .map_err(|error| Failure::network(format!("cannot listen on {address}: {error}")))
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
    /// Segments that told the peer RTTmin and the loss of its acknowledgements.
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
