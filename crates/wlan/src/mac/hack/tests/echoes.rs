//! The variant that waits for the echo of a timestamp, where MORE DATA would decide otherwise.

use std::vec::Vec;

use tack_base::{Duration, Instant};

use super::{Fate, Pair, config, fours};
use crate::frame::Frame;
use crate::mac::hack::Variant;
use crate::phy::Standard;

/// Timestamps of the first acknowledgement; the last one is close to the end of their circle.
const FIRST: [u32; 3] = [1, 1 << 31, u32::MAX];

fn ready(variant: Variant, first: u32) -> Pair {
    Pair::new(config(Standard::A), variant)
        .stamped(first)
        .made_ready()
}

fn since(begin: Instant, pair: &Pair) -> Duration {
    pair.now.saturating_since(begin)
}

/// A frame that promises nothing left before the newest timestamp came: another one is to come that
/// echoes it. Returns how long the acknowledgement of the frame took, and how many were native.
fn without_promise(mut pair: Pair) -> (Duration, u64) {
    pair.newest[0] = pair.newest[0].map(|stamp| stamp.wrapping_sub(1));
    let begin = pair.now;
    pair.send(0, 0..1);
    pair.run(20, |_, ppdu| {
        assert!(!matches!(&ppdu.frame, Frame::Data(data) if data.more_data));
        Fate::Arrives
    });
    assert_eq!(pair.numbers(0), [0, 1]);
    pair.assert_right();
    (since(begin, &pair), pair.stats(1).native)
}

#[test]
fn an_acknowledgement_waits_for_the_echo_and_not_for_long() {
    for first in FIRST {
        let (took, _) = without_promise(ready(Variant::TimestampEcho, first));
        let limit = Duration::from_millis(20);
        assert!(
            took > limit && took < limit + Duration::from_millis(2),
            "{took:?}"
        );
        let (took, native) = without_promise(ready(Variant::MoreData, first));
        assert!(took < Duration::from_millis(2), "{took:?}");
        assert_eq!(native, 1 + 1);
    }
}

/// The data that echoes it comes: its response carries what waited, and nothing goes as it is.
#[test]
fn data_that_echoes_draws_what_waits() {
    for first in FIRST {
        let mut pair = ready(Variant::TimestampEcho, first);
        pair.newest[0] = Some(first.wrapping_sub(1));
        for number in 0..50 {
            // A round trip later; each echoes the newest acknowledgement but one.
            pair.send(0, number..number + 1);
            pair.run(2, |_, _| Fate::Arrives);
            pair.now += Duration::from_millis(8);
        }
        assert_eq!(pair.stats(1).native, 1, "the one that made the context");
        assert_eq!(pair.stats(0).rebuilt, 49);
        pair.run(20, |_, _| Fate::Arrives);
        assert_eq!(pair.numbers(0), Vec::from_iter(0..=50));
        pair.assert_right();
    }
}

/// The newest timestamp has come back, and the frame promises another one, which never comes.
fn broken_promise(mut pair: Pair) -> Duration {
    let begin = pair.now;
    pair.send(0, 0..2);
    let mut frames = 0;
    pair.run(1_000, |from, ppdu| {
        frames += usize::from(from == 0 && matches!(ppdu.frame, Frame::Data(_)));
        let is_second = from == 0 && frames > 1;
        if is_second { Fate::Lost } else { Fate::Arrives }
    });
    assert_eq!(pair.numbers(0), [0, 1]);
    pair.assert_right();
    since(begin, &pair)
}

#[test]
fn more_data_is_not_waited_for_when_the_echo_has_come() {
    for first in FIRST {
        let took = broken_promise(ready(Variant::TimestampEcho, first));
        assert!(took < Duration::from_millis(5), "{took:?}");
        let took = broken_promise(ready(Variant::MoreData, first));
        assert!(took > Duration::from_millis(99), "{took:?}");
    }
}

/// A flow without timestamps waits for MORE DATA, for 20 ms at most.
#[test]
fn without_timestamps_more_data_is_what_counts() {
    let ready = || Pair::ready(config(Standard::A), Variant::TimestampEcho);
    let (took, native) = without_promise(ready());
    assert!(took < Duration::from_millis(2), "{took:?}");
    assert_eq!(native, 1 + 1);
    let took = broken_promise(ready());
    let limit = Duration::from_millis(20);
    assert!(
        took > limit && took < limit + Duration::from_millis(3),
        "{took:?}"
    );
}

/// One has waited too long and joined the queue, behind data. The next one takes it back, since the
/// echo of its timestamp may still come; both wait for that, and not forever.
#[test]
fn what_is_taken_back_waits_no_longer_than_anything_else() {
    for first in FIRST {
        let mut pair = ready(Variant::TimestampEcho, first);
        // The access point's host is silent, so nothing draws a response.
        pair.answer = Duration::from_secs(1);
        let begin = pair.now;
        pair.send(1, 0..200);
        pair.ack(1, 1);
        while since(begin, &pair) < Duration::from_millis(21) {
            pair.run(1, |_, _| Fate::Arrives);
        }
        assert_eq!(pair.stats(1).native, 1 + 1, "it is in the queue");
        pair.ack(1, 2);
        assert_eq!(pair.stats(1).native, 1, "and out of it again");
        let end = begin + Duration::from_millis(500);
        while pair.next().is_some_and(|next| next < end) {
            pair.run(1, |_, _| Fate::Arrives);
        }
        assert_eq!(pair.numbers(0), [0, 1, 2]);
        pair.assert_right();
    }
}

/// Batches that promise nothing, each drawn by the response to the one before, while some are lost:
/// every acknowledgement arrives, and none is rebuilt wrongly.
#[test]
fn a_stream_of_batches_that_promise_nothing_stays_compressed() {
    for first in FIRST {
        let mut pair = Pair::new(fours(Standard::N), Variant::TimestampEcho)
            .stamped(first)
            .made_ready();
        pair.newest[0] = Some(first.wrapping_sub(1));
        let mut ppdus = 0_u32;
        for batch in 0..100 {
            let first = 4 * batch;
            pair.send(0, first..first + 4);
            while pair.radios[0].queued() > 0 {
                pair.run(1, |_, _| {
                    ppdus += 1;
                    let is_lost = ppdus.is_multiple_of(7);
                    if is_lost { Fate::Lost } else { Fate::Arrives }
                });
            }
            pair.now += Duration::from_millis(4);
        }
        pair.run(100, |_, _| Fate::Arrives);
        assert_eq!(pair.numbers(0), Vec::from_iter(0..=400));
        let native = pair.stats(1).native;
        assert!(
            native <= 1 + 4,
            "{native}: only the last batch waited in vain"
        );
        pair.assert_right();
    }
}
