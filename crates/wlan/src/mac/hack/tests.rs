//! Two radios with a medium between them that loses what a test says.

use std::boxed::Box;
use std::sync::Arc;
use std::vec::Vec;

use proptest::prelude::*;
use tack_base::{Duration, Instant};

use super::toy::{Toy, ToyCodec};
use super::{CodecFactory, Hack, HackConfig, HackStats, Variant};
use crate::frame::{AccessCategory, AckPolicy, Class, Frame, Msdu, NodeId, Ppdu};
use crate::mac::access::BusyEnd;
use crate::mac::config::MissedBlockAck;
use crate::mac::{MacConfig, Station};
use crate::phy::{GuardInterval, HtMode, Mode, OfdmRate, Preamble, Standard, Timing, Width};

const STA: NodeId = NodeId(1);
const INTERRUPT: Duration = Duration::from_micros(30);

/// What becomes of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Arrives,
    Lost,
    /// Only the first frame of it arrives.
    InPart,
    /// All but the first frame of it arrive.
    WithoutFirst,
}

fn config(standard: Standard) -> MacConfig {
    let mode = match standard {
        Standard::A => Mode::Ofdm(OfdmRate::R54),
        _ => Mode::Ht(HtMode::new(7, Width::W40, GuardInterval::Ns400).unwrap()),
    };
    let timing = Timing::new(standard, standard.band(), Preamble::Long);
    MacConfig {
        retry_limit: 3,
        ..MacConfig::new(standard, timing, mode)
    }
}

struct Pair {
    radios: [Station<Toy>; 2],
    now: Instant,
    /// The host's answer comes to the radio this long after the data came to the host.
    answer: Duration,
    /// On their way to a radio's queue.
    entering: Vec<(Instant, usize, Msdu<Toy>)>,
    /// Acknowledgements that came to each host, with flow and number.
    acks: [Vec<(u128, u32)>; 2],
    /// What responses of each radio carried.
    carried: [Vec<Vec<u8>>; 2],
}

fn data(from: usize, number: u32) -> Msdu<Toy> {
    let payload = Toy {
        flow: 1 + from as u128,
        number,
        is_ack: false,
    };
    Msdu {
        src: NodeId(from as u16),
        dst: NodeId(1 - from as u16),
        len: 1_500,
        class: Class::Data,
        category: AccessCategory::BestEffort,
        payload: Some(payload),
    }
}

impl Pair {
    fn new(config: MacConfig, variant: Variant) -> Self {
        Self::with_queues(config, variant, 10_000)
    }

    /// Radios with queues of so many packets.
    fn with_queues(config: MacConfig, variant: Variant, queue: usize) -> Self {
        let config = Arc::new(config);
        let radios = [NodeId::AP, STA].map(|id| {
            let mut station = Station::new(id, Arc::clone(&config), queue, None, 1);
            let factory = CodecFactory::new(|| Box::new(ToyCodec::default()));
            station.set_hack(Hack::new(HackConfig::new(variant), INTERRUPT, factory));
            station
        });
        Self {
            radios,
            now: Instant::from_micros(1_000),
            answer: Duration::from_micros(50),
            entering: Vec::new(),
            acks: [Vec::new(), Vec::new()],
            carried: [Vec::new(), Vec::new()],
        }
    }

    /// A context for the acknowledgements of each radio, by one native one.
    fn ready(config: MacConfig, variant: Variant) -> Self {
        Self::new(config, variant).made_ready()
    }

    fn made_ready(self) -> Self {
        let mut pair = self;
        for from in [0, 1] {
            pair.ack(from, 0);
            pair.run(20, |_, _| Fate::Arrives);
        }
        assert_eq!(pair.stats(1).native + pair.stats(0).native, 2);
        pair
    }

    fn stats(&self, at: usize) -> &HackStats {
        self.radios[at].hack_stats().unwrap()
    }

    /// The access point gets data to send.
    fn send(&mut self, from: usize, numbers: core::ops::Range<u32>) {
        for number in numbers {
            let to = NodeId(1 - from as u16);
            let queued = self.radios[from].enqueue(self.now, to, data(from, number));
            queued.unwrap();
        }
    }

    /// The host of a radio acknowledges.
    fn ack(&mut self, from: usize, number: u32) {
        let to = NodeId(1 - from as u16);
        let queued = self.radios[from].enqueue(self.now, to, Self::ack_of(from, number));
        queued.unwrap();
    }

    fn ack_of(from: usize, number: u32) -> Msdu<Toy> {
        let mut msdu = data(1 - from, number);
        (msdu.src, msdu.dst) = (msdu.dst, msdu.src);
        msdu.class = Class::TransportAck;
        msdu.len = 52;
        if let Some(toy) = &mut msdu.payload {
            toy.is_ack = true;
        }
        msdu
    }

    /// When something happens next.
    fn next(&self) -> Option<Instant> {
        let entry = self.entering.iter().map(|(at, ..)| *at).min();
        let wakes = self.radios.iter().filter_map(Station::poll_timeout);
        wakes.chain(entry).min()
    }

    /// What hosts have answered comes to the radios.
    fn enter(&mut self) {
        self.entering.sort_by_key(|(at, ..)| *at);
        while let Some((due, ..)) = self.entering.first()
            && *due <= self.now
        {
            let (_, at, msdu) = self.entering.remove(0);
            let to = NodeId(1 - at as u16);
            self.radios[at].enqueue(self.now, to, msdu).unwrap();
        }
    }

    /// Frames that have waited too long for one before them go to the hosts.
    fn release(&mut self) {
        for at in [0, 1] {
            let mut released = Vec::new();
            if self.radios[at].holds_overdue(self.now) {
                self.radios[at].release_overdue(self.now, |msdu| released.push(msdu));
            }
            for msdu in released {
                self.deliver(at, msdu);
            }
        }
    }

    /// Lets up to `most` PPDUs go on the air.
    fn run(&mut self, most: usize, mut fate: impl FnMut(usize, &Ppdu<Toy>) -> Fate) {
        let mut sent = 0;
        while sent < most {
            let Some(next) = self.next() else {
                break;
            };
            self.now = self.now.max(next);
            self.enter();
            self.release();
            for from in [0, 1] {
                if let Some(ppdu) = self.radios[from].handle_timeout(self.now) {
                    let fate = fate(from, &ppdu);
                    self.transmit(from, ppdu, fate);
                    sent += 1;
                    break;
                }
            }
        }
    }

    fn transmit(&mut self, from: usize, mut ppdu: Ppdu<Toy>, fate: Fate) {
        let to = 1 - from;
        if !ppdu.frame.carried().is_empty() {
            self.carried[from].push(ppdu.frame.carried().to_vec());
        }
        for radio in &mut self.radios {
            radio.on_busy(self.now);
        }
        let header = self.now + Duration::from_micros(20);
        self.radios[to].on_reception_start(header);
        let end = self.now + ppdu.airtime;
        // What is due meanwhile.
        while let Some(due) = self.next().filter(|due| *due < end) {
            self.now = self.now.max(due);
            self.enter();
            self.release();
            for radio in &mut self.radios {
                let ppdu = radio.handle_timeout(self.now);
                assert!(ppdu.is_none(), "the medium is busy");
            }
        }
        self.now = end;
        self.radios[from].on_transmitted(end, &ppdu);
        self.radios[from].on_idle(end, BusyEnd::Frame);
        let mut delivered = Vec::new();
        let radio = &mut self.radios[to];
        let source = ppdu.from;
        let is_single = match &ppdu.frame {
            Frame::Data(data) => data.mpdus.len() == 1,
            _ => true,
        };
        if fate == Fate::Lost || fate == Fate::WithoutFirst && is_single {
            radio.on_reception_error(end);
        } else if let Frame::Data(data) = &mut ppdu.frame {
            radio.on_data_header(end, source, data, 0);
            let read = match fate {
                Fate::InPart => 0..1,
                Fate::WithoutFirst => 1..data.mpdus.len(),
                _ => 0..data.mpdus.len(),
            };
            for mpdu in &mut data.mpdus[read] {
                radio.receive_mpdu(end, source, mpdu, |msdu| delivered.push(msdu));
            }
            radio.finish_data(end, &ppdu);
        } else {
            radio.receive_control(end, &ppdu, |msdu| delivered.push(msdu));
            while let Some(mut ack) = self.radios[to].poll_rebuilt() {
                let original = self.radios[from].original(NodeId(to as u16), ack.msn);
                let original = *original.expect("the sender knows what it sent");
                self.radios[to].compare_rebuilt(&mut ack, &original);
                delivered.push(ack.msdu);
            }
        }
        self.radios[to].on_idle(end, BusyEnd::Frame);
        for msdu in delivered {
            self.deliver(to, msdu);
        }
    }

    fn deliver(&mut self, to: usize, msdu: Msdu<Toy>) {
        let toy = msdu.payload.unwrap();
        if toy.is_ack {
            self.acks[to].push((toy.flow, toy.number));
        } else {
            let answer = Self::ack_of(to, toy.number + 1);
            self.entering.push((self.now + self.answer, to, answer));
        }
    }

    fn assert_right(&self) {
        for at in [0, 1] {
            let stats = self.stats(at);
            let wrong = [stats.crc_failures, stats.decode_failures, stats.differing];
            assert_eq!(wrong, [0; 3]);
        }
    }

    /// The numbers acknowledged at a host.
    fn numbers(&self, at: usize) -> Vec<u32> {
        self.acks[at].iter().map(|(_, number)| *number).collect()
    }
}

fn is_response(ppdu: &Ppdu<Toy>) -> bool {
    matches!(ppdu.frame, Frame::Ack { .. } | Frame::BlockAck { .. })
}

/// Batches of four: what answers the first rides on the Block ACK of the second, what answers the last goes as it is.
fn fours(standard: Standard) -> MacConfig {
    let mut config = config(standard);
    config.ampdu.frames = 4;
    config
}

#[test]
fn acknowledgements_ride_on_the_next_block_ack() {
    let mut pair = Pair::ready(fours(Standard::N), Variant::MoreData);
    pair.send(0, 0..12);
    pair.run(100, |_, _| Fate::Arrives);
    assert_eq!(pair.numbers(0), Vec::from_iter(0..=12));
    let stats = pair.stats(1);
    assert_eq!(
        (stats.compressed, stats.native, stats.flushed),
        (8, 1 + 4, 0)
    );
    // MSN, then four entries of two bytes; the first one names the flow.
    let lens: Vec<_> = pair.carried[1].iter().map(Vec::len).collect();
    assert_eq!(lens, [1 + 4 * 3 + 1; 2]);
    assert_eq!(pair.carried[1][1][0], 4);
    pair.assert_right();
}

#[test]
fn single_frames_are_answered_by_acks_that_carry() {
    let mut pair = Pair::ready(config(Standard::A), Variant::MoreData);
    pair.send(0, 0..10);
    pair.run(200, |_, _| Fate::Arrives);
    assert_eq!(pair.numbers(0), Vec::from_iter(0..=10));
    assert_eq!(pair.stats(1).compressed, 9);
    pair.assert_right();
}

/// Fig. 5 (a) and 6: the Block ACK is lost, the request draws another one with the same bytes and no more.
#[test]
fn what_a_lost_block_ack_carried_is_sent_again() {
    let mut pair = Pair::ready(fours(Standard::N), Variant::MoreData);
    pair.send(0, 0..16);
    let mut responses = 0;
    pair.run(200, |_, ppdu| {
        let is_carrying = !ppdu.frame.carried().is_empty();
        responses += usize::from(is_carrying);
        if is_carrying && responses == 1 {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    assert_eq!(pair.numbers(0), Vec::from_iter(0..=16));
    let [first, again, ..] = &pair.carried[1][..] else {
        panic!("nothing was sent again");
    };
    assert!(again.starts_with(first), "the same bytes first");
    assert_eq!(pair.stats(0).duplicates, 0);
    pair.assert_right();
}

/// Fig. 5 (b): the repetition of a frame confirms nothing.
#[test]
fn what_a_lost_ack_carried_is_sent_again() {
    let mut pair = Pair::ready(config(Standard::A), Variant::MoreData);
    pair.send(0, 0..10);
    let mut responses = 0;
    pair.run(300, |_, ppdu| {
        responses += usize::from(!ppdu.frame.carried().is_empty());
        match responses {
            2..4 if is_response(ppdu) => Fate::Lost,
            _ => Fate::Arrives,
        }
    });
    assert_eq!(pair.numbers(0), Vec::from_iter(0..=10));
    assert_eq!(pair.stats(0).duplicates, 0);
    pair.assert_right();
}

/// The Block ACK arrives, the data after it does not: SYNC says so of that data, and what had arrived comes again and is
/// discarded.
#[test]
fn repetitions_are_discarded() {
    for missed_block_ack in [MissedBlockAck::Request, MissedBlockAck::Resend] {
        let config = MacConfig {
            missed_block_ack,
            ..fours(Standard::N)
        };
        let mut pair = Pair::ready(config, Variant::MoreData);
        pair.send(0, 0..16);
        let mut ppdus = 0;
        let mut syncs = 0;
        pair.run(200, |_, ppdu| {
            let Frame::Data(data) = &ppdu.frame else {
                return Fate::Arrives;
            };
            ppdus += usize::from(data.ack == AckPolicy::BlockAck);
            syncs += usize::from(data.sync);
            if ppdus == 3 {
                Fate::Lost
            } else {
                Fate::Arrives
            }
        });
        assert_eq!(pair.numbers(0), Vec::from_iter(0..=16));
        assert_eq!(pair.stats(0).duplicates, 4);
        assert_eq!(syncs > 0, missed_block_ack == MissedBlockAck::Resend);
        pair.assert_right();
    }
}

/// Fig. 8: the access point gives up asking, and says by SYNC that it did.
#[test]
fn sync_keeps_what_was_never_received() {
    let mut pair = Pair::ready(fours(Standard::N), Variant::MoreData);
    pair.send(0, 0..24);
    let mut seen = (0, 0, false);
    pair.run(300, |_, ppdu| {
        let (carrying, requests, synced) = &mut seen;
        match &ppdu.frame {
            Frame::BlockAckReq { .. } => *requests += 1,
            Frame::Data(data) => *synced |= data.sync,
            _ => {}
        }
        *carrying += usize::from(!ppdu.frame.carried().is_empty());
        // The first Block ACK that carries, and those that answer the requests for it: three attempts.
        if is_response(ppdu) && (1..=4).contains(carrying) && *requests <= 3 && !*synced {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    assert!(seen.2, "SYNC was set");
    assert_eq!(*pair.numbers(0).last().unwrap(), 24);
    assert!(pair.stats(0).rebuilt >= 4);
    pair.assert_right();
}

/// Fig. 7: the last batch promises nothing. What was held and came too late for its Block ACK goes as it is.
#[test]
fn nothing_waits_for_what_was_not_promised() {
    let mut pair = Pair::ready(fours(Standard::N), Variant::MoreData);
    // The host is slow: it answers the first batch while the second one is answered by the radio.
    pair.answer = Duration::from_micros(450);
    pair.send(0, 0..8);
    let begin = pair.now;
    pair.run(100, |_, _| Fate::Arrives);
    assert_eq!(pair.numbers(0), Vec::from_iter(0..=8));
    assert!(
        pair.now < begin + Duration::from_millis(5),
        "nothing waited for a deadline"
    );
    pair.assert_right();
}

/// A promise that is not kept: the deadline ends the wait.
#[test]
fn a_broken_promise_costs_no_more_than_the_deadline() {
    let mut pair = Pair::ready(fours(Standard::N), Variant::MoreData);
    pair.send(0, 0..8);
    let mut batches = 0;
    pair.run(100, |from, ppdu| {
        batches += usize::from(from == 0 && matches!(ppdu.frame, Frame::Data(_)));
        // The access point falls silent after the first batch.
        if from == 0 && batches >= 2 {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    assert_eq!(pair.stats(1).flushed, 4);
    assert_eq!(pair.numbers(0), Vec::from_iter(0..=4));
    pair.assert_right();
}

#[test]
fn master_sequence_numbers_wrap() {
    let mut pair = Pair::ready(fours(Standard::N), Variant::MoreData);
    pair.send(0, 0..2_000);
    let mut ppdus = 0_u32;
    pair.run(4_000, |_, _| {
        ppdus += 1;
        if ppdus.is_multiple_of(13) {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    assert_eq!(*pair.numbers(0).last().unwrap(), 2_000);
    assert!(pair.stats(1).msn > 1_000 && pair.stats(0).duplicates > 0);
    pair.assert_right();
}

#[test]
fn both_directions_at_once() {
    for standard in [Standard::A, Standard::N] {
        let mut pair = Pair::ready(fours(standard), Variant::MoreData);
        pair.send(0, 0..200);
        pair.send(1, 0..200);
        let mut ppdus = 0_u32;
        pair.run(4_000, |_, _| {
            ppdus += 1;
            if ppdus.is_multiple_of(17) {
                Fate::Lost
            } else {
                Fate::Arrives
            }
        });
        for at in [0, 1] {
            assert_eq!(*pair.numbers(at).last().unwrap(), 200);
            assert!(pair.stats(at).rebuilt > 80, "{standard:?}");
        }
        pair.assert_right();
    }
}

/// A radio that waits no longer for a frame discards it when it comes, though it acknowledges it. What both ends have is not
/// certain then: the next one goes as it is.
#[test]
fn what_came_too_late_is_no_context() {
    let config = MacConfig {
        retry_limit: 7,
        reorder_timeout: Some(Duration::from_millis(1)),
        ..fours(Standard::N)
    };
    let mut pair = Pair::ready(config, Variant::Timer);
    // The acknowledgement goes as it is because its flow has another one under way, and data follows it.
    let mut msdu = Pair::ack_of(1, 1);
    if let Some(toy) = &mut msdu.payload {
        toy.flow = 77;
    }
    pair.radios[1]
        .enqueue(pair.now, NodeId::AP, msdu.clone())
        .unwrap();
    pair.send(1, 0..2);
    let mut attempts = 0;
    let mut first = true;
    let mut late = false;
    while attempts < 40 && !late {
        attempts += 1;
        pair.run(1, |from, ppdu| match &ppdu.frame {
            Frame::Data(data) if from == 1 && first => {
                first = false;
                assert_eq!(data.mpdus.len(), 3);
                Fate::WithoutFirst
            }
            Frame::Data(data) if from == 1 && data.mpdus[0].retry => Fate::Lost,
            _ => Fate::Arrives,
        });
        late = pair.radios[1].stats().retries >= 4;
    }
    assert!(late);
    pair.run(100, |_, _| Fate::Arrives);
    if let Some(toy) = &mut msdu.payload {
        toy.number = 2;
    }
    assert!(
        pair.radios[0].stats().duplicates > 0,
        "the late one was discarded"
    );
    let compressed = pair.stats(1).compressed;
    pair.radios[1].enqueue(pair.now, NodeId::AP, msdu).unwrap();
    assert_eq!(pair.stats(1).compressed, compressed, "it goes as it is");
    pair.run(100, |_, _| Fate::Arrives);
    pair.assert_right();
}

/// Two flows with one CID: the first one keeps it.
#[test]
fn a_cid_has_one_owner() {
    let mut pair = Pair::ready(config(Standard::N), Variant::Timer);
    for (flow, number) in [(1 + 256, 7), (1, 1), (1 + 256, 8), (1, 2)] {
        let mut msdu = Pair::ack_of(1, number);
        if let Some(toy) = &mut msdu.payload {
            toy.flow = flow;
        }
        pair.radios[1].enqueue(pair.now, NodeId::AP, msdu).unwrap();
    }
    pair.run(50, |_, _| Fate::Arrives);
    let stats = *pair.stats(1);
    assert_eq!((stats.compressed, stats.flushed), (2, 2));
    let mut acks = pair.acks[0].clone();
    acks.retain(|(flow, _)| *flow > 256);
    assert_eq!(acks, [(257, 7), (257, 8)]);
    pair.assert_right();
}

/// What is held compressed and queued as it is leaves once.
#[test]
fn twins_leave_by_one_way() {
    let mut pair = Pair::ready(fours(Standard::N), Variant::Opportunistic);
    pair.send(0, 0..40);
    pair.run(400, |_, _| Fate::Arrives);
    assert_eq!(pair.numbers(0), Vec::from_iter(0..=40));
    let stats = pair.stats(1);
    assert_eq!(stats.native + pair.stats(0).rebuilt, 1 + 40);
    assert!(pair.stats(0).rebuilt > 0);
    assert_eq!(pair.stats(0).duplicates, 0);
    pair.assert_right();
}

/// What finds the transmit queue full is dropped in both forms, as without TCP/HACK, and is not waited for.
#[test]
fn a_full_queue_drops_both_twins() {
    let mut pair = Pair::with_queues(fours(Standard::N), Variant::Opportunistic, 2).made_ready();
    let refused = (1..=5).filter(|number| {
        let ack = Pair::ack_of(1, *number);
        pair.radios[1].enqueue(pair.now, NodeId::AP, ack).is_err()
    });
    assert_eq!(refused.count(), 3);
    pair.run(50, |_, _| Fate::Arrives);
    assert_eq!(pair.numbers(0), [0, 1, 2]);
    // The context was in doubt; the next one goes as it is, and then all is as before.
    pair.ack(1, 6);
    pair.run(50, |_, _| Fate::Arrives);
    let before = pair.stats(1).compressed;
    pair.ack(1, 7);
    assert_eq!(pair.stats(1).compressed, before + 1);
    pair.run(50, |_, _| Fate::Arrives);
    assert_eq!(pair.numbers(0), [0, 1, 2, 6, 7]);
    pair.assert_right();
}

/// More than 127 are never retained.
#[test]
fn what_cannot_be_told_apart_goes_as_it_is() {
    let mut pair = Pair::ready(config(Standard::N), Variant::Timer);
    for number in 1..=130 {
        pair.ack(1, number);
    }
    let stats = pair.stats(1);
    assert_eq!(
        (stats.retained_max, stats.compressed, stats.flushed),
        (127, 127, 127)
    );
    pair.run(50, |_, _| Fate::Arrives);
    assert_eq!(pair.numbers(0), Vec::from_iter(0..=130));
    pair.assert_right();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is lost, what is rebuilt is right, each once and in order, and the last acknowledgement arrives when losses
    /// end.
    #[test]
    fn any_losses_leave_the_contexts_alone(
        fates in proptest::collection::vec(0_u8..10, 1..400),
        standard in prop_oneof![Just(Standard::A), Just(Standard::N)],
        variant in prop_oneof![
            Just(Variant::MoreData), Just(Variant::Timer), Just(Variant::Opportunistic)
        ],
        resend in any::<bool>(),
        frames in 1_u16..12,
        answer in prop_oneof![Just(5_u64), Just(50), Just(300), Just(2_000)],
        both in any::<bool>(),
        patience in prop_oneof![Just(1_u64), Just(5), Just(100)],
    ) {
        let mut config = config(standard);
        config.ampdu.frames = frames;
        config.reorder_timeout = Some(Duration::from_millis(patience));
        if resend {
            config.missed_block_ack = MissedBlockAck::Resend;
        }
        let mut pair = Pair::ready(config, variant);
        pair.answer = Duration::from_micros(answer);
        let mut fates = fates.into_iter();
        for burst in 0..12 {
            let first = burst * 30;
            pair.send(0, first..first + 30);
            if both {
                pair.send(1, first..first + 30);
            }
            pair.run(40, |_, _| match fates.next() {
                Some(0 | 1) => Fate::Lost,
                Some(2) => Fate::InPart,
                Some(3) => Fate::WithoutFirst,
                _ => Fate::Arrives,
            });
        }
        pair.run(4_000, |_, _| Fate::Arrives);
        pair.send(0, 1_000..1_001);
        pair.run(100, |_, _| Fate::Arrives);
        pair.assert_right();
        let numbers = pair.numbers(0);
        prop_assert_eq!(*numbers.last().unwrap(), 1_001);
        // Only what was carried and cleared may come again as it is.
        let again = numbers.windows(2).filter(|pair| pair[1] <= pair[0]).count() as u64;
        prop_assert!(again <= pair.stats(1).flushed + pair.stats(1).native, "{again}");
    }
}

#[test]
fn numbers_that_were_never_sent_are_given_again() {
    let mut pair = Pair::ready(fours(Standard::N), Variant::MoreData);
    pair.send(0, 0..4);
    // A batch without a promise: what answers it in time is held, and goes as it is after the Block ACK.
    pair.run(100, |_, _| Fate::Arrives);
    pair.send(0, 4..12);
    pair.run(100, |_, _| Fate::Arrives);
    assert_eq!(pair.carried[1].first().map(|carried| carried[0]), Some(0));
    pair.assert_right();
}
