//! What a flow does while cross traffic comes and goes: what it sends and what of it arrives, round
//! trip by round trip.

use std::time::Duration;

use tack_base::Instant;
use tack_base::time::nanos;
use tack_sim::scenario::Party;
use tack_sim::{Observer, PacketEvent, Passing, Scenario};
use tack_wire::checksum::PROTOCOL_TCP;

use super::values::Values;

/// Round trips looked at before the cross traffic comes.
pub(crate) const BEFORE: u32 = 16;

/// Of the first flow, which is the only one by TCP, in each round trip of the path: payload bytes
/// and acknowledgements.
#[derive(Debug, Default)]
pub(super) struct Change {
    from: Option<Party>,
    round_trip: Duration,
    /// Left the sender, repeated bytes included.
    sent: Vec<u64>,
    /// Came to the receiver, repeated bytes included: few of them came before.
    arrived: Vec<u64>,
    /// Acknowledgements that left the receiver.
    acks: Vec<u64>,
    /// [`BEFORE`] the second flow, the cross traffic, comes.
    origin: Instant,
    /// How long it stays.
    present: Duration,
}

impl Observer for Change {
    fn on_start(&mut self, scenario: &Scenario) {
        let [flow, cross, ..] = &scenario.flows[..] else {
            return;
        };
        let wired = &scenario.wired;
        self.from = Some(flow.from);
        self.round_trip =
            wired.forward.bottleneck.delay + wired.reverse.bottleneck.delay + 2 * flow.extra_delay;
        let before = BEFORE * self.round_trip;
        self.origin = Instant::ZERO + cross.start.saturating_sub(before);
        let stop = cross.stop.unwrap_or(scenario.duration);
        self.present = stop.saturating_sub(cross.start);
    }

    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let packet = event.packet;
        if packet.protocol() != PROTOCOL_TCP || event.at < self.origin {
            return;
        }
        let from_sender = Some(event.host) == self.from;
        let bytes = packet.payload.len() as u64;
        let (rounds, amount) = match event.passing {
            Passing::Out if from_sender => (&mut self.sent, bytes),
            Passing::Out => (&mut self.acks, u64::from(packet.is_pure_ack())),
            Passing::In if !from_sender => (&mut self.arrived, bytes),
            Passing::In => return,
        };
        let since = event.at.saturating_since(self.origin);
        let round = (nanos(since) / nanos(self.round_trip).max(1)) as usize;
        if rounds.len() <= round {
            rounds.resize(round + 1, 0);
        }
        rounds[round] += amount;
    }
}

impl Change {
    pub(super) fn add_to(self, values: &mut Values) {
        let seconds = self.round_trip.as_secs_f64();
        values.insert("change.present", self.present.as_secs_f64() / seconds);
        let mbps = 8e-6 / seconds;
        for (name, rounds, unit) in [
            ("sent", &self.sent, mbps),
            ("arrived", &self.arrived, mbps),
            ("acks", &self.acks, 1.0),
        ] {
            // The last one is cut off by the end of the run.
            let whole = rounds.len().saturating_sub(1);
            for (round, amount) in rounds[..whole].iter().enumerate() {
                values.insert(format!("{name}.{round}"), *amount as f64 * unit);
            }
        }
    }
}
