//! The receiver's decisions, and what the sender believes of reports.

mod reader;
mod report_contents;
mod report_times;
mod round_trips;
mod segments_per_report;
mod small_window;

use alloc::vec;
use alloc::vec::Vec;

use tack_base::range_set::RangeSet;
use tack_wire::tack::Lists;

use super::*;
use crate::ack::kind::AckKind;

const MSS: u64 = 1_000;
const RTT: Duration = Duration::from_millis(40);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A receiver of full segments, and its decisions.
struct Receiver {
    policy: TackPolicy,
    received: RangeSet<StreamOffset>,
    received_to: StreamOffset,
}

impl Receiver {
    fn new(settings: &str) -> Self {
        let AckKind::Tack(params) = settings.parse().expect("settings of TACK") else {
            panic!("TACK is meant");
        };
        let mut policy = TackPolicy::new(params);
        policy.on_handshake(RTT);
        // Established: the sender does not probe for capacity.
        policy.on_sync(
            at(0),
            &Sync {
                startup: false,
                ack_loss_rate: 0,
                number: 1,
                rtt_min: RTT.as_micros() as u32,
                rtt: RTT.as_micros() as u32,
            },
        );
        Self {
            policy,
            received: RangeSet::new(),
            received_to: StreamOffset::FIRST_BYTE,
        }
    }

    /// Transmission `number` brings segment `segment`.
    fn receive(&mut self, now: Instant, number: u32, segment: u64) -> AckDecision {
        let start = StreamOffset(1 + segment * MSS);
        let is_known = self.received.range_at(start).is_some();
        self.received.insert(start..start + MSS);
        let in_order = start == self.received_to;
        if let Some(run) = self.received.range_at(self.received_to) {
            self.received_to = run.end;
        }
        let arrival = DataArrival {
            now,
            arrived: now,
            start,
            len: MSS,
            order: if is_known {
                SegmentOrder::Duplicate
            } else if in_order {
                SegmentOrder::InOrder
            } else {
                SegmentOrder::OutOfOrder
            },
            push: false,
            fin: false,
            received_to: self.received_to,
            unacknowledged: 0,
            peer_mss: MSS,
            window_left: 1 << 24,
            window: 1 << 24,
            ce_changed: false,
            window_moves: false,
            stamp: Some(DataStamp {
                number,
                departure: now.as_micros() as u32,
            }),
        };
        self.policy.on_data(&arrival)
    }

    /// A report leaves. What it is, and the gaps that it lists, as distances and lengths.
    fn report(&mut self, now: Instant, reason: AckReason) -> (TackOption, Vec<(u64, u64)>) {
        let mut ahead = self.received.clone();
        ahead.remove_below(self.received_to);
        let context = ReportContext {
            now,
            reason,
            received_to: self.received_to,
            ahead: &ahead,
        };
        let mut buffer = vec![0; 1_400];
        let (option, len) = self
            .policy
            .report(&context, &mut buffer)
            .expect("nothing stripped the options");
        if len == 0 {
            return (option, Vec::new());
        }
        let lists = Lists::parse(&buffer[..len]).expect("own lists are sound");
        (option, lists.gaps().collect())
    }

    /// Lets time pass until nothing is planned any more; returns when reports left.
    fn reports_in_silence(&mut self, mut due: AckDecision) -> Vec<Instant> {
        let mut reports = Vec::new();
        while let AckDecision::Delayed(now) = due {
            due = self.policy.on_timer(now);
            if let AckDecision::Now(reason) = due {
                self.report(now, reason);
                reports.push(now);
                assert!(reports.len() < 100, "it never falls silent");
                due = self
                    .policy
                    .on_ack_sent(now, Carried::Alone)
                    .map_or(AckDecision::Nothing, AckDecision::Delayed);
            }
        }
        reports
    }
}

/// What a sender says whose round trip is `rtt` ms now.
fn sync_with(rtt: u32) -> Sync {
    Sync {
        startup: false,
        ack_loss_rate: 0,
        number: 1,
        rtt_min: RTT.as_micros() as u32,
        rtt: 1_000 * rtt,
    }
}
