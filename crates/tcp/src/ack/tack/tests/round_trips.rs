//! When the sender tells of its round trip.

use super::*;

/// A host slept for 300 ms, and SRTT holds that for dozens of round trips of 10 ms. The receiver
/// takes it for a queue in which its reports wait, and sends one each 38 ms. So the sender tells it
/// of a round trip that is short again as soon as that is over, and not after a smoothed one.
#[test]
fn a_round_trip_that_is_short_again_is_told_at_once() {
    let mut sender = Sender::new();
    let tell = |sender: &mut Sender, now, smoothed_rtt, round_trip| {
        sender.reader.poll_sync(&SenderState {
            now: at(now),
            min_rtt: RTT,
            smoothed_rtt: Duration::from_millis(smoothed_rtt),
            round_trip: Duration::from_millis(round_trip),
            startup: false,
        })
    };
    assert!(tell(&mut sender, 1_000, 300, 300).is_some());
    let sync = tell(&mut sender, 1_040, 265, 40).expect("it is short again");
    assert_eq!(sync.rtt, 40_000);
    // Nothing changed since.
    assert!(tell(&mut sender, 1_080, 240, 40).is_none());
    // A queue that drains is told of once SRTT says so: reports would fill it at once.
    assert!(tell(&mut sender, 2_000, 300, 300).is_some());
    assert!(tell(&mut sender, 2_100, 290, 140).is_none());
    assert!(tell(&mut sender, 2_200, 270, 70).is_none());
    let sync = tell(&mut sender, 2_600, 140, 60).expect("SRTT is short");
    assert_eq!(sync.rtt, 140_000);
}
