//! Where the data of a test goes: the connections that a client opens to the server for it, or a
//! socket for its datagrams.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::Duration;

use tack::{Config, Endpoint, ListenOptions};
use tokio::net::UdpSocket;

use super::protocol::{ServerMessage, Ticket, write_message};
use super::request::{Carrier, TestRequest};
use super::security::{DataPort, DataSecurity};
use super::udp;
use crate::meeting::PeerStream;

/// How long a client may take for each step before the test begins.
const STEP: Duration = Duration::from_secs(10);
/// How much longer for each data connection: a handshake on a busy machine.
const STEP_PER_CONNECTION: Duration = Duration::from_millis(50);
/// TCP ports for data connections (the dynamic range of RFC 6335 §6).
const DATA_PORTS: std::ops::RangeInclusive<u16> = 49152..=65535;

/// The connections or the socket of the data.
pub(crate) enum DataChannels {
    Connections(Vec<PeerStream>),
    Datagrams(UdpSocket, u64),
}

/// Tells the client where its data goes, and waits for all of its connections, or its first
/// datagram.
pub(crate) async fn open_paths(
    control: &mut PeerStream,
    (endpoint, security): (&Endpoint, &DataSecurity),
    request: &TestRequest,
    config: &Config,
) -> io::Result<DataChannels> {
    let token = random();
    let peer = control.peer_addr().ip();
    match request.carrier {
        Carrier::Tcp => {
            let data = open_data_port((endpoint, security), config, request.connections())?;
            let port = data.port();
            write_message(control, &ServerMessage::Accepted { port, token }).await?;
            let accepting = accept_all(&data, token, request.connections());
            let connect_timeout = STEP + STEP_PER_CONNECTION * request.connections().into();
            let streams = within(connect_timeout, "its data connections", accepting).await?;
            Ok(DataChannels::Connections(streams))
        }
        Carrier::Udp { .. } => {
            let local = endpoint.local_addr().ip();
            let socket = UdpSocket::bind((local, 0)).await?;
            let port = socket.local_addr()?.port();
            write_message(control, &ServerMessage::Accepted { port, token }).await?;
            let greeting = udp::await_greeting(&socket, token, peer);
            step("its first datagram", greeting).await?;
            Ok(DataChannels::Datagrams(socket, token))
        }
    }
}

/// A free TCP port of the endpoint, with the settings of the test, for this client.
fn open_data_port(
    (endpoint, security): (&Endpoint, &DataSecurity),
    config: &Config,
    streams: u16,
) -> io::Result<DataPort> {
    let ports = u64::from(DATA_PORTS.end() - DATA_PORTS.start());
    for _ in 0..64 {
        let port = DATA_PORTS.start() + (random() % ports) as u16;
        let options = ListenOptions::new()
            .config(config.clone())
            .backlog(streams.into());
        match security.listen(endpoint, port, options) {
            Ok(listener) => return Ok(listener),
            Err(tack::ListenError::InUse(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AddrInUse,
        "no data port is free",
    ))
}

/// Takes the client's data connections, in the order of their numbers; other connections are
/// dropped.
async fn accept_all(data: &DataPort, token: u64, streams: u16) -> io::Result<Vec<PeerStream>> {
    let mut arrived = BTreeMap::new();
    while arrived.len() < usize::from(streams) {
        let mut stream = data.accept().await?;
        match Ticket::read(&mut stream).await {
            Ok(ticket) if ticket.token == token && ticket.stream < streams => {
                arrived.insert(ticket.stream, stream);
            }
            Ok(_) | Err(_) => stream.reset(),
        }
    }
    Ok(arrived.into_values().collect())
}

/// Bounds what the client has to do before the test begins.
pub(crate) async fn step<T>(
    what: &str,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    within(STEP, what, work).await
}

async fn within<T>(
    connect_timeout: Duration,
    what: &str,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    tokio::time::timeout(connect_timeout, work)
        .await
        .unwrap_or_else(|_| {
            let message = format!(
                "the client did not send {what} within {} s",
                connect_timeout.as_secs()
            );
            Err(io::Error::new(io::ErrorKind::TimedOut, message))
        })
}

/// Unpredictable, for tokens and ports.
fn random() -> u64 {
    RandomState::new().hash_one(0u8)
}
