//! A sans-IO TCP (RFC 9293) with pluggable acknowledgement and congestion control.
//!
//! A [`Connection`] is a state machine. Time is an argument, deadlines are absolute, nothing here
//! reads a clock or opens a socket. Whoever owns the clock and the wire (the simulator, a UDP
//! socket, a TUN device, a test) drives it with four kinds of verbs:
//!
//! * input: `handle_segment`, `handle_timeout`, `handle_path_mtu`;
//! * application: `write`, `read`, `finish`, `abort`;
//! * output, to be drained after each input: `poll_transmit`, then `poll_event`, then
//!   `poll_timeout`;
//! * getters, which change nothing.
//!
//! An [`Endpoint`] holds many connections behind one carrier: it routes by TCP ports, listens,
//! chooses initial sequence numbers and answers strays.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod ack;
pub mod cc;
pub mod config;
pub mod connection;
mod ecn;
pub mod endpoint;
mod mtu;
mod pacing;
mod rate;
mod recovery;
mod recv;
mod ring;
mod rtt;
mod send;
pub mod stats;
pub mod trace;
pub mod transmit;

pub use ack::{AckKind, AckPolicy, AckPolicyFactory};
pub use cc::{Algorithm, CongestionController, ControllerFactory, ParseAlgorithmError};
pub use config::Config;
pub use connection::{CloseReason, Connection, Event, PathError, ReadError, State, WriteError};
pub use endpoint::{
    ConnectError, ConnectionId, Endpoint, EndpointConfig, EndpointStats, Incoming, ListenError,
    SynFilter, Tuple, Verdict,
};
pub use send::loss_sign::{LossCounts, LossSign};
pub use send::packet_number::PacketNumber;
pub use stats::Stats;
pub use tack_base::StreamOffset;
pub use transmit::{Batch, Transmit};
