//! Acknowledgements that are held compressed and are in the transmit queue, too.

use std::vec::Vec;

use tack_base::Duration;

use super::{Fate, Pair, config, fours};
use crate::mac::hack::Variant;
use crate::phy::Standard;

/// The response to the last batch carried acknowledgements, which should draw data. What
/// acknowledges the last batch waits for that, and not for long.
#[test]
fn what_a_response_should_draw_is_waited_for() {
    for draws in [false, true] {
        let mut pair = Pair::ready(fours(Standard::N), Variant::MoreData);
        pair.send(0, 0..8);
        let begin = pair.now;
        // Two batches, and the response to each.
        pair.run(4, |_, _| Fate::Arrives);
        pair.now += Duration::from_millis(1);
        if draws {
            pair.send(0, 8..9);
        }
        pair.run(100, |_, _| Fate::Arrives);
        let last = if draws { 9 } else { 8 };
        assert_eq!(pair.numbers(0), Vec::from_iter(0..=last));
        let waited = pair.now.saturating_since(begin);
        assert!(waited > Duration::from_millis(15) && waited < Duration::from_millis(30));
        // The acknowledgements of the second batch rode on what answered the data that came.
        assert_eq!(pair.stats(1).native, if draws { 1 + 1 } else { 1 + 4 });
        pair.assert_right();
    }
}

/// A native acknowledgement that waits behind data does not keep later ones from being compressed,
/// nor is it sent itself.
#[test]
fn what_waits_behind_data_rides_on_a_response() {
    for variant in [Variant::MoreData, Variant::Timer, Variant::Opportunistic] {
        let mut pair = Pair::ready(config(Standard::A), variant);
        pair.send(1, 0..200);
        for burst in 0..10 {
            // A single frame without promise.
            pair.send(0, burst..burst + 1);
            pair.run(24, |_, _| Fate::Arrives);
        }
        pair.run(600, |_, _| Fate::Arrives);
        assert_eq!(pair.numbers(0), Vec::from_iter(0..=10));
        // At most the last one goes as it is.
        let rebuilt = pair.stats(0).rebuilt;
        assert!(rebuilt >= 9, "{variant:?}: {rebuilt}");
        assert_eq!(pair.stats(1).native, 1 + 10 - rebuilt, "{variant:?}");
        pair.assert_right();
    }
}

/// Acknowledgements that wait behind one that was sent as it is are compressed when that has
/// arrived.
#[test]
fn what_waits_behind_a_native_one_is_compressed_when_that_has_arrived() {
    let mut pair = Pair::ready(config(Standard::A), Variant::MoreData);
    pair.ack(1, 1);
    // On the air and not answered: the others are behind it.
    pair.run(1, |_, _| Fate::Arrives);
    pair.send(1, 0..40);
    for number in 2..=6 {
        pair.ack(1, number);
    }
    assert_eq!(pair.stats(1).compressed, 1);
    pair.run(4, |_, _| Fate::Arrives);
    assert_eq!(pair.stats(1).compressed, 1 + 5);
    pair.send(0, 6..7);
    pair.run(200, |_, _| Fate::Arrives);
    assert_eq!(pair.numbers(0), Vec::from_iter(0..=7));
    let stats = pair.stats(1);
    assert_eq!((stats.native, pair.stats(0).rebuilt), (1 + 1 + 1, 5));
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

/// What finds the transmit queue full is held compressed, goes to the queue when that has room, and
/// leaves in its order.
#[test]
fn a_full_queue_loses_nothing_that_is_held() {
    let mut pair = Pair::with_queues(fours(Standard::N), Variant::Opportunistic, 2).made_ready();
    for number in 1..=5 {
        pair.ack(1, number);
    }
    let stats = pair.stats(1);
    assert_eq!((stats.compressed, stats.native), (5, 1 + 2));
    pair.run(50, |_, _| Fate::Arrives);
    // The first two left as they are. When they were settled there was room for two of the others.
    assert_eq!(pair.numbers(0), [0, 1, 2, 3, 4]);
    pair.ack(1, 6);
    pair.run(50, |_, _| Fate::Arrives);
    let before = pair.stats(1).compressed;
    pair.ack(1, 7);
    assert_eq!(pair.stats(1).compressed, before + 1);
    pair.run(50, |_, _| Fate::Arrives);
    assert_eq!(pair.numbers(0), [0, 1, 2, 3, 4, 6, 7]);
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
    assert_eq!((stats.retained_max, stats.compressed), (127, 127));
    pair.run(50, |_, _| Fate::Arrives);
    assert_eq!(pair.numbers(0), Vec::from_iter(0..=130));
    assert!(pair.stats(1).flushed >= 127);
    pair.assert_right();
}

#[test]
fn numbers_that_were_never_sent_are_given_again() {
    let mut pair = Pair::ready(fours(Standard::N), Variant::MoreData);
    pair.send(0, 0..4);
    // A batch without a promise: what answers it in time is held, and goes as it is after the Block
    // ACK.
    pair.run(100, |_, _| Fate::Arrives);
    pair.send(0, 4..12);
    pair.run(100, |_, _| Fate::Arrives);
    assert_eq!(pair.carried[1].first().map(|carried| carried[0]), Some(0));
    pair.assert_right();
}
