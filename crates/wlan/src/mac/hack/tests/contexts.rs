//! Contexts: whose a CID is, and that both ends have the same.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use tack_base::Duration;

use super::{Fate, Pair, config, fours};
use crate::frame::{Frame, NodeId};
use crate::mac::MacConfig;
use crate::mac::config::MissedBlockAck;
use crate::mac::discipline::AckFilter;
use crate::mac::hack::Variant;
use crate::phy::Standard;

/// A radio that waits no longer for a frame discards it when it comes, though it acknowledges it.
/// What both ends have is not certain then: the next one goes as it is.
#[test]
fn what_came_too_late_is_no_context() {
    let config = MacConfig {
        retry_limit: 7,
        reorder_timeout: Some(Duration::from_millis(1)),
        ..fours(Standard::N)
    };
    let mut pair = Pair::ready(config, Variant::Timer);
    // The acknowledgement goes as it is because its flow has another one under way, and data
    // follows it.
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
        pair.ack_flow(1, flow, number);
    }
    pair.run(50, |_, _| Fate::Arrives);
    let stats = *pair.stats(1);
    assert_eq!((stats.compressed, stats.flushed), (2, 2));
    let mut acks = pair.acks[0].clone();
    acks.retain(|(flow, _)| *flow > 256);
    assert_eq!(acks, [(257, 7), (257, 8)]);
    pair.assert_right();
}

/// A flow that is silent loses its CID to another one that asks for it, over and over: hundreds of
/// flows one after the other.
#[test]
fn cids_are_given_anew() {
    let mut pair = Pair::ready(config(Standard::N), Variant::Timer);
    let mut before = 0;
    for generation in 1..400_u32 {
        let flow = 1 + 256 * u128::from(generation);
        pair.now += Duration::from_millis(250);
        for number in 0..6 {
            // Data draws responses, which carry what is held.
            pair.send(0, 10 * generation + number..10 * generation + number + 1);
            pair.ack_flow(1, flow, number);
            pair.run(8, |_, _| Fate::Arrives);
        }
        let rebuilt = pair.stats(0).rebuilt;
        assert!(rebuilt > before, "generation {generation}");
        before = rebuilt;
    }
    pair.assert_right();
}

/// A flow that goes on keeps its CID.
#[test]
fn a_cid_in_use_stays() {
    let mut pair = Pair::ready(config(Standard::N), Variant::Timer);
    for number in 1..50 {
        pair.now += Duration::from_millis(150);
        pair.ack(1, number);
        pair.ack_flow(1, 257, number);
        pair.run(50, |_, _| Fate::Arrives);
    }
    let own: Vec<_> = pair.acks[0].iter().filter(|(flow, _)| *flow == 1).collect();
    assert_eq!(own.len(), 50);
    let stats = pair.stats(1);
    assert_eq!(stats.native - stats.flushed, 1 + 49, "the other flow's");
    pair.assert_right();
}

fn variant() -> impl Strategy<Value = Variant> {
    prop::sample::select(vec![
        Variant::MoreData,
        Variant::Timer,
        Variant::Opportunistic,
        Variant::TimestampEcho,
    ])
}

fn filter() -> impl Strategy<Value = AckFilter> {
    prop::sample::select(vec![
        AckFilter::Off,
        AckFilter::Off,
        AckFilter::Paper,
        AckFilter::Safe,
        AckFilter::Cake,
        AckFilter::CakeAggressive,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is lost, what is rebuilt is right, each once and in order, and the last
    /// acknowledgement arrives when losses end.
    #[test]
    fn any_losses_leave_the_contexts_alone(
        fates in proptest::collection::vec(0_u8..10, 1..400),
        standard in prop_oneof![Just(Standard::A), Just(Standard::N)],
        variant in variant(),
        is_stamped in any::<bool>(),
        filter in filter(),
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
        let mut pair = Pair::new(config, variant).filtered(filter);
        if is_stamped {
            pair = pair.stamped(u32::MAX - 150);
        }
        let mut pair = pair.made_ready();
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

    /// Flows with one CID take turns while anything is lost: what is rebuilt is right, and the last
    /// acknowledgement of each flow arrives.
    #[test]
    fn any_losses_leave_owners_alone(
        steps in proptest::collection::vec((0_u8..10, 0_u128..4, 0_u8..4), 1..300),
        standard in prop_oneof![Just(Standard::A), Just(Standard::N)],
        variant in variant(),
        is_stamped in any::<bool>(),
        filter in filter(),
        patience in prop_oneof![Just(1_u64), Just(100)],
    ) {
        let mut config = config(standard);
        config.ampdu.frames = 4;
        config.reorder_timeout = Some(Duration::from_millis(patience));
        let mut pair = Pair::new(config, variant).filtered(filter);
        if is_stamped {
            pair = pair.stamped(u32::MAX - 100);
        }
        let mut pair = pair.made_ready();
        let mut fates = steps.iter().map(|(fate, ..)| *fate).cycle();
        let mut number = 0;
        for (_, flow, pause) in &steps {
            number += 1;
            pair.now += Duration::from_millis([0, 1, 90, 210][usize::from(*pause)]);
            pair.send(0, number..number + 1);
            pair.ack_flow(1, 2 + 256 * *flow, number);
            if number.is_multiple_of(7) {
                pair.send(1, number..number + 3);
            }
            pair.run(3, |_, _| match fates.next() {
                Some(0 | 1) => Fate::Lost,
                Some(2) => Fate::InPart,
                Some(3) => Fate::WithoutFirst,
                _ => Fate::Arrives,
            });
        }
        pair.run(4_000, |_, _| Fate::Arrives);
        for flow in 0..4 {
            number += 1;
            pair.ack_flow(1, 2 + 256 * flow, number);
            pair.run(100, |_, _| Fate::Arrives);
            prop_assert!(pair.acks[0].contains(&(2 + 256 * flow, number)));
        }
        pair.assert_right();
    }
}
