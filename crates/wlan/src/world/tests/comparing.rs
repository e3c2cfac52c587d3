//! TCP/HACK in a whole network: rebuilt acknowledgements are compared with what they came from.

use std::boxed::Box;

use super::*;
use crate::mac::hack::toy::{Toy, ToyCodec, WrongCodec};
use crate::mac::hack::{HackStats, Variant};

fn packet(is_ack: bool, number: u32) -> Msdu<Toy> {
    let (src, dst) = if is_ack { (1, 0) } else { (0, 1) };
    Msdu {
        src: NodeId(src),
        dst: NodeId(dst),
        len: if is_ack { 52 } else { 1_500 },
        class: if is_ack {
            Class::TransportAck
        } else {
            Class::Data
        },
        category: AccessCategory::BestEffort,
        payload: Some(Toy {
            flow: 9,
            number,
            is_ack,
            stamp: None,
        }),
    }
}

/// A station that acknowledges each of 300 packets. Returns the numbers that arrived, without
/// repetitions, and the counters of the access point.
fn download(make: impl Fn() -> BoxedCodec<Toy> + Send + Sync + 'static) -> (Vec<u32>, HackStats) {
    let mut config = config(Standard::N, 1);
    config.hack = HackConfig::new(Variant::Timer);
    let mut world = World::new(&config, 1);
    world.set_codec(make);
    let start = Instant::from_millis(1);
    world.handle_msdu(start, packet(true, 0)).unwrap();
    world.handle_timeout(Instant::from_millis(2));
    for number in 0..300 {
        let at = Instant::from_millis(2);
        world.handle_msdu(at, packet(false, number)).unwrap();
    }
    let mut acknowledged = Vec::new();
    while let Some(next) = world.poll_timeout() {
        world.handle_timeout(next);
        while let Some(delivery) = world.poll_delivery() {
            let toy = delivery.msdu.payload.unwrap();
            if toy.is_ack {
                acknowledged.push(toy.number);
            } else {
                world
                    .handle_msdu(next, packet(true, toy.number + 1))
                    .unwrap();
            }
        }
    }
    // No frame confirms the last response, so the last one may come as it is, too.
    acknowledged.dedup();
    (acknowledged, *world.hack_stats(NodeId::AP).unwrap())
}

#[test]
fn a_right_codec_makes_no_difference() {
    let (acknowledged, stats) = download(|| Box::new(ToyCodec::default()));
    assert_eq!(acknowledged, Vec::from_iter(0..=300));
    assert!(stats.rebuilt > 200, "{stats:?}");
    assert_eq!(stats.differing, 0);
}

#[test]
fn each_fault_of_a_codec_is_counted() {
    for every in [1, 2, 7] {
        let (acknowledged, stats) = download(move || Box::new(WrongCodec::new(every)));
        assert!(stats.rebuilt > 200, "{stats:?}");
        assert_eq!(stats.differing, stats.rebuilt / u64::from(every));
        let wrong = acknowledged.iter().filter(|number| **number > 300);
        assert_eq!(wrong.count() as u64, stats.differing);
        assert_eq!([stats.crc_failures, stats.decode_failures], [0; 2]);
    }
}
