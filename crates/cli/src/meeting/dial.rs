//! One encrypted connection to one address.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tack::secure::{Identity, PublicKey, SecureError, SecureStream};
use tack::{Config, ConnectError, Endpoint};

use super::ALPN;
use crate::carrier::CarrierArgs;
use crate::net;

/// Options of a connection to any peer.
#[derive(Clone, Debug)]
pub(crate) struct Dial {
    /// The TCP port of the service, within the UDP port.
    pub(crate) tcp_port: u16,
    /// The command that serves there, for messages.
    pub(crate) service: &'static str,
    /// The local address; `None` takes one from which the peer can be reached.
    pub(crate) from: Option<IpAddr>,
    pub(crate) config: Config,
    pub(crate) carrier: CarrierArgs,
}

/// The reason why a connection failed.
#[derive(Debug)]
pub(super) enum DialError {
    /// The peer presented another key.
    WrongKey { presented: PublicKey },
    /// No program listens there: there may be one later.
    Closed,
    /// What answers is nothing that could be met, as a message.
    WrongService(String),
    /// Any other error, as a message: there may be an answer later.
    Other(String),
}

impl Dial {
    /// Connects as `identity` to whoever has the key `expected`; `None` takes anybody.
    pub(super) async fn connect(
        &self,
        address: SocketAddr,
        tcp_port: u16,
        identity: Identity,
        expected: Option<PublicKey>,
        connect_timeout: Duration,
    ) -> Result<SecureStream, DialError> {
        let connecting = async {
            let mut builder = Endpoint::builder().bind_towards(address);
            if let Some(from) = self.from {
                builder = builder.bind(SocketAddr::new(from, 0));
            }
            let endpoint = self
                .carrier
                .build(builder.identity(identity.clone()))
                .map_err(|error| DialError::Other(error.to_string()))?;
            let connect = endpoint
                .connect(address)
                .port(tcp_port)
                .config(self.config.clone());
            let connect = match expected {
                Some(key) => connect.expecting(key, ALPN),
                None => connect.any_key(ALPN),
            };
            // A device is that of all connections, whatever key each of them shows.
            let connect = connect.identity(identity);
            let connected = tokio::select! {
                connected = connect.into_future() => connected,
                () = net::strange(&endpoint) => return Err(DialError::WrongService(net::NOT_TACK.into())),
            };
            connected.map_err(|error| match error {
                SecureError::WrongKey { presented, .. } => DialError::WrongKey { presented },
                SecureError::Connect(ConnectError::Unreachable(_)) => DialError::Closed,
                // Its stack answers, so the UDP port is right, and the service is not.
                SecureError::Connect(ConnectError::Refused { .. }) => {
                    DialError::WrongService(format!(
                        "another tack service listens there, expected `{}`",
                        self.service
                    ))
                }
                SecureError::PeerIsNotEncrypted => DialError::WrongService(error.to_string()),
                error => DialError::Other(error.to_string()),
            })
        };
        tracing::debug!(%address, tcp_port, "connecting");
        match tokio::time::timeout(connect_timeout, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(DialError::Other(format!(
                "no answer within {} s (--connect-timeout)",
                connect_timeout.as_secs_f64()
            ))),
        }
    }
}
