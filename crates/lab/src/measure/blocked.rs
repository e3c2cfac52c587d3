//! Bytes above a hole, as periodic acknowledgements report them.

use tack_sim::scenario::Party;
use tack_sim::{Observer, PacketEvent, Passing};
use tack_wire::tack::ReportKind;
use tack_wire::{Segment, TackOption};

use super::Values;

/// Collects what periodic acknowledgements say waits above a hole.
#[derive(Debug, Default)]
pub(super) struct Blocked(Vec<u64>);

impl Observer for Blocked {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        if event.host != Party::Client || event.passing != Passing::Out {
            return;
        }
        if let Ok(segment) = Segment::parse(event.packet.transport())
            && let Some(TackOption::Report(report)) = segment.header.options.tack
            && report.kind == ReportKind::Tack
        {
            self.0.push(report.above.into());
        }
    }
}

impl Blocked {
    pub(super) fn add_to(self, values: &mut Values) {
        // From nothing in the buffer to 64 MiB in steps of two.
        for limit in std::iter::once(0).chain((10..=26).map(|power| 1_u64 << power)) {
            let below = self.0.iter().filter(|bytes| **bytes <= limit).count();
            values.insert(
                format!("blocked.le.{limit}"),
                below as f64 / self.0.len() as f64,
            );
        }
        values.insert("blocked.reports", self.0.len() as f64);
    }
}
