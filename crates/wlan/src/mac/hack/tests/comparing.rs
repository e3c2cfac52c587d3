//! A codec that rebuilds something else, unnoticed: the comparison with the original counts it.

use std::boxed::Box;

use super::{Fate, Pair, fours};
use crate::mac::hack::toy::WrongCodec;
use crate::mac::hack::{BoxedCodec, Variant};
use crate::phy::Standard;

fn every_third() -> BoxedCodec<super::Toy> {
    Box::new(WrongCodec::new(3))
}

#[test]
fn what_differs_from_its_original_is_counted() {
    let config = fours(Standard::N);
    let mut pair = Pair::with_codec(config, Variant::MoreData, 10_000, every_third).made_ready();
    pair.send(0, 0..40);
    pair.run(400, |_, _| Fate::Arrives);
    let stats = *pair.stats(0);
    assert!(stats.rebuilt > 30, "{stats:?}");
    assert_eq!(stats.differing, stats.rebuilt / 3);
    // No CRC finds them, so they go on to the host.
    assert_eq!([stats.crc_failures, stats.decode_failures], [0; 2]);
    let numbers = pair.numbers(0);
    let wrong = numbers.iter().filter(|number| **number >= 1 << 20).count();
    assert_eq!(wrong as u64, stats.differing);
    assert_eq!(pair.stats(1).differing, 0, "the other end rebuilt nothing");
}

/// What has no original was not sent as it came out.
#[test]
fn what_has_no_original_differs() {
    let mut pair = Pair::ready(fours(Standard::N), Variant::Timer);
    for number in 1..=3 {
        pair.ack(1, number);
    }
    pair.forgets_originals = true;
    pair.send(0, 0..2);
    pair.run(3, |_, _| Fate::Arrives);
    assert_eq!((pair.stats(0).rebuilt, pair.stats(0).differing), (3, 3));
}
