//! A filter reads the transmit queue, in which only native copies are.

use std::vec::Vec;

use tack_base::Duration;

use super::{Fate, Pair, config};
use crate::frame::Frame;
use crate::mac::discipline::AckFilter;
use crate::mac::hack::Variant;
use crate::phy::Standard;

const FILTERS: [AckFilter; 4] = [
    AckFilter::Paper,
    AckFilter::Safe,
    AckFilter::Cake,
    AckFilter::CakeAggressive,
];

/// How many acknowledgements of a flow a filter leaves in a queue.
fn left(filter: AckFilter) -> u64 {
    match filter {
        AckFilter::Off => u64::MAX,
        AckFilter::Cake => 2,
        _ => 1,
    }
}

/// Five acknowledgements behind data that the station sends, each held compressed and queued.
fn behind_data(variant: Variant, filter: AckFilter) -> Pair {
    let mut pair = Pair::new(config(Standard::A), variant)
        .filtered(filter)
        .made_ready();
    pair.send(1, 0..30);
    for number in 1..=5 {
        pair.ack(1, number);
    }
    let stats = pair.stats(1);
    assert_eq!(
        (stats.compressed, stats.native),
        (5, 1 + left(filter)),
        "{filter:?}"
    );
    assert_eq!(
        pair.radios[1].stats().superseded,
        5 - left(filter),
        "{filter:?}"
    );
    pair
}

#[test]
fn what_a_filter_drops_still_rides_on_a_response() {
    for filter in FILTERS {
        for variant in [Variant::Opportunistic, Variant::MoreData] {
            let mut pair = behind_data(variant, filter);
            pair.send(0, 5..6);
            pair.run(200, |_, _| Fate::Arrives);
            // All five, and the one that the frame drew.
            assert_eq!(pair.numbers(0), Vec::from_iter(0..=6), "{filter:?}");
            assert!(pair.stats(0).rebuilt >= 5, "{filter:?}");
            assert!(pair.stats(1).native <= 2, "their copies left the queue");
            pair.assert_right();
        }
    }
}

/// The copy that the filter left goes first: it says all that the others said, and they do not come
/// behind it.
#[test]
fn what_a_filter_drops_does_not_come_behind_what_it_left() {
    for filter in FILTERS {
        let mut pair = behind_data(Variant::Opportunistic, filter);
        // The access point answers the data later, so no frame of it draws a response.
        pair.answer = Duration::from_secs(1);
        while pair.radios[1].queued() > 0 {
            pair.run(1, |_, _| Fate::Arrives);
        }
        // Of two, the second is compressed once more when the first has arrived.
        let (expected, flushed): (&[u32], u64) = match left(filter) {
            1 => (&[0, 5], 1),
            _ => (&[0, 4, 5], 2 + 1),
        };
        assert_eq!(pair.numbers(0), expected, "{filter:?}");
        assert_eq!(pair.stats(1).flushed, flushed, "{filter:?}");
        // The native one is the context of what follows.
        pair.answer = Duration::from_micros(50);
        pair.send(0, 5..8);
        pair.run(200, |_, _| Fate::Arrives);
        assert_eq!(*pair.numbers(0).last().unwrap(), 8);
        assert!(pair.stats(0).rebuilt > 0);
        pair.assert_right();
    }
}

/// Promised data never comes: what was held joins the queue, where the filter thins it out.
#[test]
fn what_waited_too_long_is_filtered() {
    for filter in FILTERS {
        let mut pair = Pair::new(config(Standard::A), Variant::Timer)
            .filtered(filter)
            .made_ready();
        for number in 1..=5 {
            pair.ack(1, number);
        }
        let begin = pair.now;
        pair.run(20, |_, _| Fate::Arrives);
        assert!(pair.now > begin + Duration::from_millis(10));
        assert_eq!(pair.numbers(0).last(), Some(&5), "{filter:?}");
        let native = pair.numbers(0).len() as u64 - 1;
        assert_eq!(native, left(filter), "{filter:?}");
        pair.assert_right();
    }
}

/// Acknowledgements that wait without a twin, and of which a filter has dropped some, are
/// compressed as soon as both ends have one context.
#[test]
fn what_a_filter_left_behind_a_native_one_is_compressed() {
    for filter in FILTERS {
        let variant = Variant::MoreData;
        let mut pair = Pair::new(config(Standard::A), variant)
            .filtered(filter)
            .made_ready();
        pair.ack(1, 1);
        // On the air and not answered: the others are behind it, and no twin is made.
        pair.run(1, |_, _| Fate::Arrives);
        pair.send(1, 0..40);
        for number in 2..=6 {
            pair.ack(1, number);
        }
        assert_eq!(pair.stats(1).compressed, 1);
        pair.run(4, |_, _| Fate::Arrives);
        assert_eq!(pair.stats(1).compressed, 1 + left(filter), "{filter:?}");
        pair.send(0, 6..7);
        pair.run(200, |_, ppdu| {
            let is_answered = matches!(ppdu.frame, Frame::Ack { .. });
            assert!(is_answered || matches!(ppdu.frame, Frame::Data(_)));
            Fate::Arrives
        });
        let numbers = pair.numbers(0);
        let expected: &[u32] = match left(filter) {
            1 => &[0, 1, 6, 7],
            _ => &[0, 1, 5, 6, 7],
        };
        assert_eq!(numbers, expected, "{filter:?}");
        pair.assert_right();
    }
}
