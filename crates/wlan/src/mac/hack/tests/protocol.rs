//! The protocol of the paper, section 3.4: what is lost is sent again, what comes twice is
//! discarded.

use std::vec::Vec;

use tack_base::Duration;

use super::{Fate, Pair, config, fours, is_response};
use crate::frame::{AckPolicy, Frame};
use crate::mac::MacConfig;
use crate::mac::config::MissedBlockAck;
use crate::mac::hack::Variant;
use crate::phy::Standard;

#[test]
fn acknowledgements_ride_on_the_next_block_ack() {
    let mut pair = Pair::ready(fours(Standard::N), Variant::MoreData);
    pair.send(0, 0..12);
    pair.run(100, |_, _| Fate::Arrives);
    assert_eq!(pair.numbers(0), Vec::from_iter(0..=12));
    let stats = pair.stats(1);
    assert_eq!(
        (stats.compressed, stats.native, stats.flushed),
        (12, 1 + 4, 4)
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
    let stats = pair.stats(1);
    assert_eq!((stats.compressed, stats.native), (10, 1 + 1));
    pair.assert_right();
}

/// Fig. 5 (a) and 6: the Block ACK is lost, the request draws another one with the same bytes and
/// no more.
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

/// The Block ACK arrives, the data after it does not: SYNC says so of that data, and what had
/// arrived comes again and is discarded.
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
        // The first Block ACK that carries, and those that answer the requests for it: three
        // attempts.
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

/// Fig. 7: the only batch promises nothing. What came too late for its Block ACK goes as it is.
#[test]
fn nothing_waits_for_what_was_not_promised() {
    let mut pair = Pair::ready(fours(Standard::N), Variant::MoreData);
    pair.answer = Duration::from_micros(450);
    pair.send(0, 0..4);
    let begin = pair.now;
    pair.run(100, |_, _| Fate::Arrives);
    assert_eq!(pair.numbers(0), Vec::from_iter(0..=4));
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
