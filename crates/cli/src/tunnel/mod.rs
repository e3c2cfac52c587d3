//! Tunnels: TCP connections of other programs, carried by connections of ours to a `tack serve`.
//!
//! Each carried connection has one of ours to itself, so that none waits for another's lost
//! segments. `docs/tunnels.md` is the manual, `docs/tunnel-protocol.md` describes the messages.

mod breaks;
mod carrier;
mod connect;
mod datagram;
mod dial;
mod exec;
mod flows;
mod forward;
mod gateway;
mod limit;
mod message;
mod names;
mod open_files;
mod proxy;
mod pump;
mod rules;
mod serve;
mod standard_streams;
mod target;

pub(crate) use connect::{ConnectArgs, connect};
pub(crate) use exec::{EXEC_EXIT_CODES, EXEC_FAILED, ExecArgs, enter, exec, within};
pub(crate) use forward::{ForwardArgs, forward};
pub(crate) use gateway::{GatewayArgs, gateway};
pub(crate) use open_files::raise_file_limit;
pub(crate) use proxy::{ProxyArgs, proxy};
pub(crate) use serve::{MAX_LOOKUPS, ServeArgs, inherited_socket, serve};

/// The protocol inside TLS for carried connections (RFC 7301).
const ALPN: &[u8] = b"tack-tunnel/1";
/// The UDP port of `tack serve`.
const SERVE_UDP_PORT: u16 = crate::net::TRANSFER_UDP_PORT;
/// The TCP port, within the UDP port, where peers meet it.
const SERVE_PORT: u16 = tack::DEFAULT_PORT;
/// The TCP port of carried connections: TLS alone shows there whose they are.
const TUNNEL_PORT: u16 = tack::DEFAULT_PORT + 7;
/// What serves tunnels, for messages.
const SERVICE: &str = "tack serve";
