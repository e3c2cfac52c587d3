//! Queues of segments that tests write by hand.

mod cake;
mod information;
mod paper;
mod safe;

use alloc::vec::Vec;

use super::segment::before;
use super::{AckFilter, Flags, OtherOptions, Segment, SegmentReader, Timestamps};
use crate::frame::{AccessCategory, Class, Msdu, NodeId};
use crate::mac::originator;
use crate::mac::queue::TransmitQueue;

/// A packet: its flow, and a number by which the test knows it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Packet {
    flow: u8,
    id: u32,
    segment: Option<Segment>,
}

#[derive(Clone, Copy, Debug)]
struct Reader;

impl SegmentReader<Packet> for Reader {
    type Flow = u8;

    fn flow(&self, packet: &Packet) -> Option<u8> {
        (packet.flow > 0).then_some(packet.flow)
    }

    fn segment(&self, packet: &Packet) -> Option<Segment> {
        packet.segment
    }
}

/// A pure acknowledgement.
fn ack(number: u32) -> Segment {
    Segment {
        flags: Flags::ACK,
        ack: number,
        ..Segment::default()
    }
}

/// The same with blocks.
fn sack(number: u32, blocks: &[(u32, u32)]) -> Segment {
    Segment {
        sack: blocks.iter().copied().collect(),
        ..ack(number)
    }
}

/// The same with timestamps.
fn stamped(number: u32, value: u32, echo: u32) -> Segment {
    Segment {
        timestamps: Some(Timestamps { value, echo }),
        ..ack(number)
    }
}

fn with_flags(segment: Segment, flags: u16) -> Segment {
    Segment {
        flags: Flags(Flags::ACK.0 | flags),
        ..segment
    }
}

/// A segment with data.
fn data(number: u32) -> Segment {
    Segment {
        payload: 1_448,
        ..ack(number)
    }
}

/// A queue, and how many have gone for newer ones.
#[derive(Debug)]
struct Queue {
    queue: TransmitQueue<Packet>,
    filtered: usize,
    pushed: u32,
}

const TO: NodeId = NodeId(1);

impl Queue {
    fn new(filter: AckFilter, capacity: usize) -> Self {
        let mut queue = TransmitQueue::new(capacity);
        queue.set_discipline(filter.discipline(Reader));
        Self {
            queue,
            filtered: 0,
            pushed: 0,
        }
    }

    /// True when it found room.
    fn push(&mut self, flow: u8, segment: impl Into<Option<Segment>>) -> bool {
        let packet = Packet {
            flow,
            id: self.pushed,
            segment: segment.into(),
        };
        let is_ack = packet.segment.is_some_and(|segment| segment.payload == 0);
        self.pushed += 1;
        let msdu = Msdu {
            src: NodeId::AP,
            dst: TO,
            len: 40,
            class: if is_ack {
                Class::TransportAck
            } else {
                Class::Data
            },
            category: AccessCategory::BestEffort,
            payload: Some(packet),
        };
        let outcome = self.queue.push(TO, msdu);
        self.filtered += usize::from(matches!(outcome, Ok(Some(_))));
        outcome.is_ok()
    }

    fn pop(&mut self) -> Option<Packet> {
        self.queue.remove(TO, 0)?.payload
    }

    fn packets(&self) -> Vec<Packet> {
        let waiting = self
            .queue
            .originator(TO)
            .map(|originator| originator.waiting());
        let packets = waiting.into_iter().flat_map(|waiting| waiting.iter());
        packets.filter_map(|msdu| msdu.payload).collect()
    }

    /// Flows and acknowledgement numbers of what waits.
    fn numbers(&self) -> Vec<(u8, u32)> {
        let packets = self.packets().into_iter();
        let number = |packet: Packet| packet.segment.map_or(0, |segment| segment.ack);
        packets
            .map(|packet| (packet.flow, number(packet)))
            .collect()
    }
}

/// What is left of `segments`, all of one flow, after they came in this order: their positions
/// among them, from the head.
fn left(filter: AckFilter, segments: &[Segment]) -> Vec<u32> {
    let mut queue = Queue::new(filter, 100);
    for segment in segments {
        assert!(queue.push(1, *segment));
    }
    queue.packets().iter().map(|packet| packet.id).collect()
}

const FILTERS: [AckFilter; 4] = [
    AckFilter::Paper,
    AckFilter::Safe,
    AckFilter::Cake,
    AckFilter::CakeAggressive,
];

#[test]
fn tack_passes_every_filter_untouched() {
    let tack = |number| Segment {
        options: OtherOptions::Tack,
        ..ack(number)
    };
    // A report whose lists are in the payload.
    let report = |number| Segment {
        payload: 200,
        ..tack(number)
    };
    let all = [100, 200, 300, 400].map(tack);
    let mixed = [ack(100), tack(200), tack(300), report(400), report(500)];
    for filter in FILTERS {
        assert_eq!(left(filter, &all), [0, 1, 2, 3], "{filter:?}");
        assert_eq!(left(filter, &mixed), [0, 1, 2, 3, 4], "{filter:?}");
    }
}

#[test]
fn what_was_sent_once_stays() {
    let config = originator::tests::a54();
    for filter in FILTERS {
        let mut queue = Queue::new(filter, 100);
        assert!(queue.push(1, ack(100)));
        queue.queue.change(TO, |originator| {
            originator.prepare(&config, tack_base::Duration::ZERO, Vec::new())
        });
        // Its receiver may have it: another packet under its sequence number would be taken for a
        // duplicate.
        for number in [200, 300] {
            assert!(queue.push(1, ack(number)));
        }
        let expected = match filter {
            AckFilter::Cake => [200, 300].as_slice(),
            _ => &[300],
        };
        let numbers: Vec<_> = queue.numbers().iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers, expected, "{filter:?}");
        assert_eq!(queue.queue.len(), 1 + expected.len(), "{filter:?}");
    }
}

#[test]
fn flows_and_packets_without_one_are_told_apart() {
    for filter in FILTERS {
        let mut queue = Queue::new(filter, 100);
        // Flow 0 is none.
        for (flow, number) in [(1, 100), (2, 100), (0, 100), (3, 100), (0, 200), (0, 300)] {
            assert!(queue.push(flow, ack(number)));
        }
        assert_eq!(
            (queue.filtered, queue.packets().len()),
            (0, 6),
            "{filter:?}"
        );
    }
}

#[test]
fn numbers_wrap_around() {
    for filter in FILTERS {
        let (older, newer) = (u32::MAX - 99, 100);
        assert!(before(older, newer) && !before(newer, older));
        let expected = match filter {
            AckFilter::Cake => [1, 2].as_slice(),
            _ => &[2],
        };
        let segments = [ack(older), ack(newer), ack(newer + 100)];
        assert_eq!(left(filter, &segments), expected, "{filter:?}");
        // One from before the wrap that comes late replaces nothing.
        assert_eq!(left(filter, &[ack(newer), ack(older)]), [0, 1]);
    }
}
