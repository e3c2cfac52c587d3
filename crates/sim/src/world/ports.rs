//! The ports of flows: each flow has its own pair, so that a packet's ports identify its flow.

/// The lowest port that flows listen on: among those that packet analysers expect nothing special
/// on.
const LISTEN: u16 = 40_000;
/// The lowest port that flows connect from.
const CONNECT: u16 = 50_000;

/// The port that a flow's receiver listens on.
pub(super) const fn listen_port(flow: usize) -> u16 {
    LISTEN + flow as u16
}

/// The port that a flow's sender connects from.
pub(super) const fn connect_port(flow: usize) -> u16 {
    CONNECT + flow as u16
}

/// The flow a packet belongs to: the lower one of its ports is the one listened on.
pub(crate) const fn flow_of(ports: (u16, u16)) -> Option<usize> {
    let low = if ports.0 < ports.1 { ports.0 } else { ports.1 };
    if low >= LISTEN {
        Some((low - LISTEN) as usize)
    } else {
        None
    }
}
