//! The outer end of the device: every host, as far as the peer reaches it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tack::{Attempt, Datagram, Endpoint, InterceptOptions, Interceptor, NoConnection, TunOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::device::is_own;
use crate::exit::Failure;
use crate::observe::tunnels;
use crate::tunnel::carrier::Carrier;
use crate::tunnel::dial::RequestError;
use crate::tunnel::flows::{Deliver, FlowLimits, Flows};
use crate::tunnel::message::{Answer, Refusal, Request};
use crate::tunnel::names::Names;
use crate::tunnel::pump::join_own;
use crate::tunnel::target::TunnelTarget;

/// How long a program takes to complete a handshake, on the same machine.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Packets that a connection to the name server may hold up.
const QUERY_DEADLINE: Duration = Duration::from_secs(30);
/// Questions to the name server at a time; more are dropped, and come again.
const MAX_QUERIES: usize = 64;
/// The port of name servers.
const DNS: u16 = 53;
/// Associations of datagrams: a peer has 256.
const FLOWS: FlowLimits = FlowLimits {
    total: 240,
    of_client: 240,
};

/// What runs at the outer end.
pub(super) struct Outside {
    shared: Arc<Shared>,
    flows: Arc<Flows<Shared>>,
    connections: JoinHandle<()>,
    datagrams: JoinHandle<()>,
}

struct Shared {
    hosts: Interceptor,
    carrier: Arc<Carrier>,
    names: Names,
    queries: Semaphore,
    /// How many connections are carried.
    open: watch::Sender<usize>,
    _endpoint: Endpoint,
}

impl Deliver for Shared {
    fn deliver(&self, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        // A program that sends over one family hears over that alone.
        if from.is_ipv4() == to.is_ipv4() {
            let payload = payload.to_vec();
            self.hosts.send_datagram(&Datagram { from, to, payload });
        }
    }
}

impl Outside {
    pub(super) fn start(
        (options, device): (TunOptions, OwnedFd),
        carrier: Arc<Carrier>,
    ) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::failed("cannot use the device", error);
        let endpoint = Endpoint::builder()
            .tun_device(options, device)
            // Between two processes of one user: what leaves the machine is encrypted.
            .insecure(true)
            .build()
            .map_err(failed)?;
        let hosts = endpoint
            .intercept(InterceptOptions::default())
            .map_err(|error| failed(error.into()))?;
        let shared = Arc::new(Shared {
            hosts,
            names: Names::new(Arc::clone(&carrier)),
            carrier,
            queries: Semaphore::new(MAX_QUERIES),
            open: watch::Sender::new(0),
            _endpoint: endpoint,
        });
        let flows = Flows::new(Arc::clone(&shared.carrier), Arc::clone(&shared), FLOWS);
        Ok(Self {
            connections: tokio::spawn(connections(Arc::clone(&shared))),
            datagrams: tokio::spawn(datagrams(Arc::clone(&shared), Arc::clone(&flows))),
            flows,
            shared,
        })
    }

    /// Takes nothing more from programs, and gives up what only serves them to come.
    pub(super) fn close(&self) {
        self.connections.abort();
        self.datagrams.abort();
        self.flows.close();
        self.shared.names.close();
    }

    /// Waits until the device cannot be used any more.
    pub(super) async fn failed(&mut self) -> Failure {
        tokio::select! {
            _ = &mut self.connections => {}
            _ = &mut self.datagrams => {}
        }
        Failure::plain("the device of the command is gone")
    }

    /// True when nothing is carried.
    pub(super) fn is_idle(&self) -> bool {
        *self.shared.open.borrow() == 0
    }

    /// Waits until nothing is carried.
    pub(super) async fn idle(&self) {
        let _ = self
            .shared
            .open
            .subscribe()
            .wait_for(|open| *open == 0)
            .await;
    }
}

/// Takes what programs connect to.
async fn connections(shared: Arc<Shared>) {
    while let Ok(attempt) = shared.hosts.attempt().await {
        // Too many: the program tries again, and finds a place or gives up.
        let Ok(place) = Arc::clone(&shared.carrier.places).try_acquire_owned() else {
            attempt.refuse(NoConnection::Silence);
            continue;
        };
        shared.open.send_modify(|open| *open += 1);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let _place = place;
            carry(attempt, &shared).await;
            shared.open.send_modify(|open| *open -= 1);
        });
    }
}

async fn carry(attempt: Attempt, shared: &Shared) {
    let to = attempt.target();
    if is_own(to.ip()) {
        match to.port() {
            DNS => name_server(attempt, shared).await,
            _ => attempt.refuse(NoConnection::Refused),
        }
        return;
    }
    let mut outcome = Err(RequestError::Refused(Refusal::NotPermitted));
    for host in shared.names.hosts_of(to.ip()) {
        let port = to.port();
        let target = TunnelTarget { host, port };
        let request = Request::Connect(target.clone());
        outcome = shared.carrier.peer.request(&request).await;
        // The rules there may name the host in another way.
        if !matches!(outcome, Err(RequestError::Refused(Refusal::NotPermitted))) {
            shared.names.permitted_as(to.ip(), &target.host);
            break;
        }
    }
    match outcome {
        Ok((peer, Answer::Open(_))) => match attempt.accept(HANDSHAKE).await {
            // How it ended both of its ends know.
            Ok(local) => {
                let _open = tunnels().opened();
                drop(join_own(local, peer).await);
            }
            // The program has given up.
            Err(_) => peer.reset(),
        },
        Ok((peer, _)) => {
            peer.reset();
            attempt.refuse(NoConnection::NetworkUnreachable);
        }
        Err(error) => {
            let why = meaning(&error);
            // The rest a program can tell its user.
            if why != NoConnection::Refused {
                shared.carrier.complain(&to, &error);
            }
            attempt.refuse(why);
        }
    }
}

/// How a program learns that there is no connection.
fn meaning(error: &RequestError) -> NoConnection {
    match error {
        RequestError::Lost(_) => NoConnection::NetworkUnreachable,
        RequestError::Refused(refusal) => match refusal {
            Refusal::ConnectionRefused => NoConnection::Refused,
            Refusal::NotPermitted => NoConnection::Prohibited,
            Refusal::Busy => NoConnection::Silence,
            _ => NoConnection::HostUnreachable,
        },
    }
}

/// DNS over TCP (RFC 7766).
async fn name_server(attempt: Attempt, shared: &Shared) {
    let Ok(mut stream) = attempt.accept(HANDSHAKE).await else {
        return;
    };
    let serving = async {
        loop {
            let mut query = vec![0; usize::from(stream.read_u16().await?)];
            stream.read_exact(&mut query).await?;
            let Some(response) = shared.names.answer(&query).await else {
                return io::Result::Ok(());
            };
            // Length and message at once (§8).
            let mut message = (response.len() as u16).to_be_bytes().to_vec();
            message.extend(response);
            stream.write_all(&message).await?;
        }
    };
    let _ = tokio::time::timeout(QUERY_DEADLINE, serving).await;
}

/// Takes the datagrams that programs send.
async fn datagrams(shared: Arc<Shared>, flows: Arc<Flows<Shared>>) {
    while let Ok(datagram) = shared.hosts.datagram().await {
        let Datagram { from, to, payload } = datagram;
        if !is_own(to.ip()) {
            let host = shared.names.host_of_datagram(to.ip());
            let port = to.port();
            flows.carry(from, TunnelTarget { host, port }, payload);
            continue;
        }
        if to.port() != DNS {
            continue;
        }
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let Ok(_turn) = shared.queries.try_acquire() else {
                return;
            };
            if let Some(payload) = shared.names.answer(&payload).await {
                let (from, to) = (to, from);
                shared.hosts.send_datagram(&Datagram { from, to, payload });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reaches_the_program_by_what_it_means() {
        for (refusal, expected) in [
            (Refusal::ConnectionRefused, NoConnection::Refused),
            (Refusal::NotPermitted, NoConnection::Prohibited),
            (Refusal::Unreachable, NoConnection::HostUnreachable),
            (Refusal::TimedOut, NoConnection::HostUnreachable),
            (Refusal::Busy, NoConnection::Silence),
        ] {
            assert_eq!(meaning(&RequestError::Refused(refusal)), expected);
        }
        let lost = RequestError::Lost(String::new());
        assert_eq!(meaning(&lost), NoConnection::NetworkUnreachable);
    }
}
