//! Property: what a sender knows in the end, it knows with the safe filter too.

use alloc::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// What a sender makes of acknowledgements.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Sender {
    snd_una: u32,
    /// Units of sequence space above it that are reported.
    scoreboard: BTreeSet<u32>,
    /// Blocks that told of duplicates.
    dsacks: Vec<(u32, u32)>,
    /// ECE, CWR and AE, whenever they changed.
    echoes: Vec<u16>,
    timestamps: Option<Timestamps>,
    unknown: usize,
    refused: usize,
}

impl Sender {
    fn take(&mut self, segment: &Segment) {
        if let (Some(new), Some(newest)) = (segment.timestamps, self.timestamps)
            && before(new.value, newest.value)
        {
            // PAWS.
            self.refused += 1;
            return;
        }
        self.timestamps = segment.timestamps.or(self.timestamps);
        let echo = segment.flags.of(Flags::ECN).0;
        if self.echoes.last() != Some(&echo) {
            self.echoes.push(echo);
        }
        self.unknown += usize::from(segment.options == OtherOptions::Unknown);
        if before(self.snd_una, segment.ack) {
            self.snd_una = segment.ack;
        }
        let blocks = segment.sack.as_slice();
        if segment.has_dsack() {
            self.dsacks.extend(blocks.first());
        }
        for (start, end) in blocks {
            self.scoreboard
                .extend((0..end.wrapping_sub(*start)).map(|unit| start.wrapping_add(unit)));
        }
        let una = self.snd_una;
        self.scoreboard.retain(|unit| !before(*unit, una));
    }
}

/// A receiver that gets units of sequence space in some order, and acknowledges each.
#[derive(Debug)]
struct Receiver {
    /// First number.
    origin: u32,
    has: BTreeSet<u32>,
    recent: Vec<u32>,
    clock: u32,
    echo: u16,
}

impl Receiver {
    fn number(&self) -> u32 {
        (0..).find(|unit| !self.has.contains(unit)).unwrap_or(0)
    }

    fn arrive(&mut self, unit: u32, event: &Event, options: Options) -> Segment {
        let is_twice = !self.has.insert(unit);
        if !is_twice {
            self.recent.push(unit);
        }
        let next = self.number();
        self.clock = self.clock.wrapping_add(event.ticks);
        self.echo = if event.changes_echo {
            (self.echo + 1) & 3
        } else {
            self.echo
        };
        let mut segment = Segment {
            flags: Flags(Flags::ACK.0 | self.echo << 6),
            ..ack(self.origin.wrapping_add(next))
        };
        if options.timestamps {
            segment.timestamps = Some(Timestamps {
                value: self.clock,
                echo: self.clock / 2,
            });
        }
        if event.is_unknown {
            segment.options = OtherOptions::Unknown;
        }
        if options.sack {
            if is_twice {
                segment.sack.push(self.block(unit, unit + 1));
            }
            let mut listed = BTreeSet::new();
            for recent in self.recent.iter().rev().filter(|unit| **unit > next) {
                let start = (0..=*recent)
                    .rev()
                    .take_while(|unit| self.has.contains(unit))
                    .last()
                    .unwrap_or(*recent);
                let end = (*recent..)
                    .find(|unit| !self.has.contains(unit))
                    .unwrap_or(0);
                if listed.insert(start) && listed.len() <= 3 {
                    segment.sack.push(self.block(start, end));
                }
            }
        }
        segment
    }

    fn block(&self, start: u32, end: u32) -> (u32, u32) {
        (
            self.origin.wrapping_add(start),
            self.origin.wrapping_add(end),
        )
    }
}

#[derive(Clone, Copy, Debug)]
struct Options {
    timestamps: bool,
    sack: bool,
}

/// What happens beside an arrival.
#[derive(Clone, Debug)]
struct Event {
    /// Which of the next units arrives: mostly the first one that is missing.
    ahead: u32,
    ticks: u32,
    changes_echo: bool,
    is_unknown: bool,
    /// Packets that leave the queue afterwards.
    leave: usize,
}

fn event() -> impl Strategy<Value = Event> {
    (
        prop_oneof![6 => Just(0_u32), 3 => 1..8_u32, 1 => Just(100)],
        0..3_u32,
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.05),
        prop_oneof![4 => Just(0_usize), 2 => Just(1), 1 => 2..6_usize],
    )
        .prop_map(|(ahead, ticks, changes_echo, is_unknown, leave)| Event {
            ahead,
            ticks,
            changes_echo,
            is_unknown,
            leave,
        })
}

proptest! {
    #[test]
    fn the_safe_filter_removes_no_information(
        events in prop::collection::vec(event(), 1..120),
        origin in prop_oneof![Just(1_000_u32), Just(u32::MAX - 20)],
        (timestamps, sack) in (any::<bool>(), any::<bool>()),
    ) {
        let options = Options { timestamps, sack };
        let mut receiver = Receiver {
            origin,
            has: BTreeSet::new(),
            recent: Vec::new(),
            clock: u32::MAX - 10,
            echo: 0,
        };
        let start = Sender { snd_una: origin, ..Sender::default() };
        let (mut plain, mut filtered) = (start.clone(), start);
        let mut queue = Queue::new(AckFilter::Safe, usize::MAX);
        let mut copies = [BTreeMap::new(), BTreeMap::new()];
        let mut count = |which: usize, segment: &Segment| {
            *copies[which].entry(segment.ack).or_insert(0) += 1;
        };
        for event in &events {
            let next = receiver.number();
            // 100: one that has arrived already.
            let unit = if event.ahead == 100 { next.saturating_sub(1) } else { next + event.ahead };
            let segment = receiver.arrive(unit, event, options);
            plain.take(&segment);
            count(0, &segment);
            prop_assert!(queue.push(1, segment));
            for _ in 0..event.leave {
                if let Some(segment) = queue.pop().and_then(|packet| packet.segment) {
                    filtered.take(&segment);
                    count(1, &segment);
                }
            }
            if queue.packets().is_empty() {
                prop_assert_eq!(&filtered, &plain);
            }
        }
        while let Some(segment) = queue.pop().and_then(|packet| packet.segment) {
            filtered.take(&segment);
            count(1, &segment);
        }
        // Equal in all: what is known, what is reported above it, each duplicate, each change of
        // the echo.
        prop_assert_eq!(&filtered, &plain);
        prop_assert_eq!(filtered.refused, 0);
        // Of the acknowledgements with one number, at most one goes: the original, or a duplicate
        // that waits alone.
        let [all, some] = copies;
        for (number, copies) in all {
            let left = some.get(&number).copied().unwrap_or(0);
            prop_assert!(left + 1 >= copies, "{} of {} with {}", left, copies, number);
        }
    }
}
