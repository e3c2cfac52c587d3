//! What an emulator says about itself, while it runs and at its end.

use serde::Serialize;
use tack_sim::report::{WiredReport, WlanReport};
use tack_wlan::world::Airtime;

use crate::content::Counting;
use crate::lateness::{Lateness, Trust};

/// Counters of the datagrams of one direction, since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Datagrams that a program sent.
    pub datagrams: u64,
    /// Payload bytes of the datagrams sent, without UDP and IP headers.
    pub bytes: u64,
    /// Datagrams sent that are, or count as, acknowledgements.
    pub acks: u64,
    /// Of these, between hosts of the emulation: acknowledgements of TCP without SACK blocks that
    /// answer one segment and announce a larger window than the one before. Linux sends one for
    /// each segment that makes its receive window grow.
    pub acks_widening: u64,
    /// Datagrams sent that are, or count as, data. SYN, FIN and RST are neither.
    pub data: u64,
    /// Datagrams delivered to the other program.
    pub delivered: u64,
    /// Payload bytes of the datagrams delivered.
    pub delivered_bytes: u64,
}

impl std::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.datagrams += other.datagrams;
        self.bytes += other.bytes;
        self.acks += other.acks;
        self.acks_widening += other.acks_widening;
        self.data += other.data;
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
    }
}

/// Airtime by use: seconds, which add up to the time that passed, or shares of it
/// (see [`Self::shares`]), which add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AirSeconds {
    /// Data frames, neighbours' included.
    pub data: f64,
    /// Data frames with acknowledgements.
    pub ack: f64,
    /// ACK, Block ACK and their requests, RTS, CTS, beacons.
    pub control: f64,
    /// Transmissions that collide.
    pub collision: f64,
    /// Interframe spaces, backoff and timeouts of radios that have something to send.
    pub access: f64,
    /// The channel is idle: no radio has anything to send.
    pub idle: f64,
    /// The part of `data` and `control` that radios of a neighbouring network sent. Not a part of
    /// the total.
    pub neighbour: f64,
}

impl AirSeconds {
    /// The sum of all parts.
    pub fn total(&self) -> f64 {
        self.data + self.ack + self.control + self.collision + self.access + self.idle
    }

    /// The airtime between `earlier` and this sample.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            data: self.data - earlier.data,
            ack: self.ack - earlier.ack,
            control: self.control - earlier.control,
            collision: self.collision - earlier.collision,
            access: self.access - earlier.access,
            idle: self.idle - earlier.idle,
            neighbour: self.neighbour - earlier.neighbour,
        }
    }

    /// Each part's share of the whole, 0 to 1.
    #[must_use]
    pub fn shares(&self) -> Self {
        let total = self.total().max(f64::MIN_POSITIVE);
        Self {
            data: self.data / total,
            ack: self.ack / total,
            control: self.control / total,
            collision: self.collision / total,
            access: self.access / total,
            idle: self.idle / total,
            neighbour: self.neighbour / total,
        }
    }
}

impl From<Airtime> for AirSeconds {
    fn from(airtime: Airtime) -> Self {
        Self {
            data: airtime.data.as_secs_f64(),
            ack: airtime.transport_ack.as_secs_f64(),
            control: airtime.control.as_secs_f64(),
            collision: airtime.collision.as_secs_f64(),
            access: airtime.access.as_secs_f64(),
            idle: airtime.idle.as_secs_f64(),
            neighbour: airtime.neighbour.as_secs_f64(),
        }
    }
}

/// The state at one moment. Counters run from the beginning: subtract two samples for an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Time of the sample, seconds since the start.
    pub seconds: f64,
    /// Airtime by use.
    pub air: AirSeconds,
    /// Datagrams from the clients.
    pub up: Totals,
    /// Datagrams to the clients.
    pub down: Totals,
    /// Transmissions that collided with another one at their receiver.
    pub collisions: u64,
    /// Packets that wait at the access point, or on the wired path to it.
    pub ap_queue: usize,
    /// Packets that wait at the stations, all together.
    pub station_queue: usize,
    /// Flows in the table.
    pub flows: usize,
    /// How late deliveries were.
    pub lateness: Lateness,
}

/// Figures of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowFigures {
    /// The client's address, between hosts of the emulation with its port.
    pub client: String,
    /// The other end, between hosts of the emulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Protocol between hosts of the emulation: `tcp` or `udp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<&'static str>,
    /// Its station, as scenario files call it.
    pub station: String,
    /// How its acknowledgements are distinguished from its data.
    pub counted: Counting,
    /// Datagrams from the client.
    pub up: Totals,
    /// Datagrams to the client.
    pub down: Totals,
}

/// Datagrams that were dropped outside the model, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Datagrams longer than [`crate::MAX_DATAGRAM`], and empty ones; between hosts of the
    /// emulation, malformed IP packets, and those with options of IPv4.
    pub unfit: u64,
    /// Packets between hosts of the emulation to or from an address that none of them has, such as
    /// multicast.
    pub no_host: u64,
    /// Datagrams from a new client while the table of flows was full of active ones.
    pub table_full: u64,
    /// Datagrams from a new client for which the system gave no socket.
    pub no_socket: u64,
    /// Datagrams that came from another address than [`crate::Settings::to`].
    pub unknown_sources: u64,
    /// Datagrams that the scenario's wired path corrupted; the receiving host's checksums would
    /// have found them.
    pub damaged: u64,
    /// Datagrams for a flow that had ended.
    pub stale: u64,
    /// Datagrams that the kernel dropped because the emulator did not read them in time.
    pub kernel: u64,
    /// Datagrams that the kernel refused to send, or dropped before the host that they were for had
    /// them.
    pub refused: u64,
}

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub name: String,
    /// Seed of the model's random draws.
    pub seed: u64,
    /// Duration of the run, seconds.
    pub seconds: f64,
    /// Shares of the airtime by use.
    pub air_shares: AirSeconds,
    /// Datagrams from the clients, including flows that have ended.
    pub up: Totals,
    /// Datagrams to the clients, including flows that have ended.
    pub down: Totals,
    /// Flows at the end, in no particular order.
    pub flows: Vec<FlowFigures>,
    /// Number of flows of the whole run.
    pub flows_seen: u64,
    /// Datagrams dropped outside the links.
    pub dropped: Dropped,
    /// Figures of the wireless network, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wlan: Option<WlanReport>,
    /// Counters of the wired path.
    pub wired: WiredReport,
    /// How late deliveries were.
    pub lateness: Lateness,
    /// How late datagrams entered the model, after the kernel had received them. The model's time
    /// is past: a datagram that is late here met the medium in another state than it should have.
    pub entry_lateness: Lateness,
    /// Whether the results are reliable.
    pub trust: Trust,
}

impl Summary {
    /// The summary as one line of JSON, without a line break.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a summary has no map with odd keys")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn shares_of_an_interval_add_up() {
        let earlier = AirSeconds::from(Airtime {
            data: Duration::from_millis(1_000),
            idle: Duration::from_millis(1_000),
            ..Airtime::default()
        });
        let later = AirSeconds::from(Airtime {
            data: Duration::from_millis(2_000),
            transport_ack: Duration::from_millis(500),
            idle: Duration::from_millis(3_500),
            ..Airtime::default()
        });
        let shares = later.since(&earlier).shares();
        assert!((shares.total() - 1.0).abs() < 1e-12);
        assert!((shares.data - 0.25).abs() < 1e-12);
        assert!((shares.ack - 0.125).abs() < 1e-12);
        assert_eq!(AirSeconds::default().shares(), AirSeconds::default());
    }
}
