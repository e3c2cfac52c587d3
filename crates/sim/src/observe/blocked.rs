//! Bytes that wait above a hole at a receiver (TACK, figure 5(a)).

use tack_wire::tack::ReportKind;
use tack_wire::{Segment, TackOption};

use super::{Observer, PacketEvent, Passing};
use crate::scenario::Party;

/// Collects the bytes above the first hole, as each periodic report that leaves the client tells
/// them.
#[derive(Debug, Default)]
pub struct Blocked {
    /// Bytes, one figure a report.
    pub bytes: Vec<u64>,
}

impl Observer for Blocked {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        if event.host != Party::Client || event.passing != Passing::Out {
            return;
        }
        if let Ok(segment) = Segment::parse(event.packet.transport())
            && let Some(TackOption::Report(report)) = segment.header.options.tack
            && report.kind == ReportKind::Tack
        {
            self.bytes.push(report.above.into());
        }
    }
}
