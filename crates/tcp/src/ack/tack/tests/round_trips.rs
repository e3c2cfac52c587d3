//! When the sender states its round trip.

use super::reader::Sender;
use super::*;
use crate::ack::feedback::{FeedbackReader, SenderState};

/// Polls for a sync at `now`, after an acknowledgement that measured `newest`, if anything; all in
/// milliseconds.
fn poll(sender: &mut Sender, now: u64, smoothed_rtt: u64, newest: Option<u64>) -> Option<Sync> {
    let ms = Duration::from_millis;
    sender.reader.poll_sync(&SenderState {
        now: at(now),
        min_rtt: RTT,
        smoothed_rtt: ms(smoothed_rtt),
        round_trip: ms(newest.unwrap_or(smoothed_rtt)),
        newest: newest.map(ms),
        startup: false,
    })
}

/// A host slept for 300 ms, and SRTT holds that for dozens of round trips of 10 ms. The receiver
/// takes it for a queue in which its reports wait, and sends one each 38 ms. So the sender states a
/// round trip that is short again as soon as that is over, and not after a smoothed one.
#[test]
fn a_round_trip_that_is_short_again_is_told_at_once() {
    let mut sender = Sender::new();
    assert!(poll(&mut sender, 1_000, 300, Some(300)).is_some());
    let sync = poll(&mut sender, 1_040, 265, Some(40)).expect("it is short again");
    assert_eq!(sync.rtt, 40_000);
    // Nothing changed since.
    assert!(poll(&mut sender, 1_080, 240, Some(40)).is_none());
    // A queue that drains is reported once SRTT shows it: reports would fill it at once.
    assert!(poll(&mut sender, 2_000, 300, Some(300)).is_some());
    assert!(poll(&mut sender, 2_100, 290, Some(140)).is_none());
    assert!(poll(&mut sender, 2_200, 270, Some(70)).is_none());
    let sync = poll(&mut sender, 2_600, 140, Some(60)).expect("SRTT is short");
    assert_eq!(sync.rtt, 140_000);
}

/// Data of the peer and reports that lost their option measure nothing: they do not show that a
/// long round trip is over, and do not hide it from the next one that does.
#[test]
fn acknowledgements_that_measure_nothing_say_nothing_of_the_round_trip() {
    let mut sender = Sender::new();
    assert!(poll(&mut sender, 1_000, 40, Some(300)).is_some());
    assert!(poll(&mut sender, 1_030, 40, None).is_none());
    let sync = poll(&mut sender, 1_035, 40, Some(50)).expect("it is short again");
    assert_eq!(sync.rtt, 50_000);
}
