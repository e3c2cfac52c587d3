//! Ending a connection.

use std::time::Duration;

use tack_tcp::{CloseReason, Config, Event};
use tack_testkit::Peer;

use crate::settings::plain;

/// RFC 9293 §3.6 figure 12, the side that closes first; §3.6.1: TIME-WAIT lasts 2 MSL.
#[test]
fn active_close() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        finish
        +0    > F. 1:1(0) ack 1
        state FinWait1
        +10ms < . 1:1(0) ack 2
        state FinWait2
        event Finished
        +10ms < F. 1:1(0) ack 2
        +0    > . 2:2(0) ack 2
        state TimeWait
        event Readable
        eof
        +59.999s > nothing
        state TimeWait
        +1ms  > nothing
        event Closed Graceful
        state Closed
        event nothing
        ",
    );
}

/// RFC 9293 §3.6 figure 12, the other side.
#[test]
fn passive_close() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +0    < F. 1:1(0) ack 1
        +0    > . 1:1(0) ack 2
        state CloseWait
        event Readable
        eof
        finish
        +0    > F. 1:1(0) ack 2
        state LastAck
        +10ms < . 2:2(0) ack 2
        state Closed
        event Finished
        event Closed Graceful
        event nothing
        ",
    );
}

/// RFC 9293 §3.6 figure 13: both FINs cross.
#[test]
fn simultaneous_close() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        finish
        +0    > F. 1:1(0) ack 1
        +5ms  < F. 1:1(0) ack 1
        +0    > . 2:2(0) ack 2
        state Closing
        +5ms  < . 2:2(0) ack 2
        state TimeWait
        +60s  > nothing
        state Closed
        ",
    );
}

/// RFC 9293 §3.10.7.4 (FIN in FIN-WAIT-1): a FIN that also acknowledges ours leads straight to
/// TIME-WAIT.
#[test]
fn fin_and_its_acknowledgement_in_one_segment() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        finish
        +0    > F. 1:1(0) ack 1
        +5ms  < F. 1:1(0) ack 2
        +0    > . 2:2(0) ack 2
        state TimeWait
        ",
    );
}

/// RFC 9293 §3.6: the stream that is not finished goes on (half-close), here towards us.
#[test]
fn half_closed_by_us_still_reads() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        finish
        +0    > F. 1:1(0) ack 1
        +10ms < . 1:1(0) ack 2
        event Finished
        +100s < P. 1:1001(1000) ack 2
        +0    > . 2:2(0) ack 1001
        event Readable
        read 1000
        state FinWait2
        +1s   < F. 1001:1001(0) ack 2
        +0    > . 2:2(0) ack 1002
        state TimeWait
        ",
    );
}

/// RFC 9293 §3.6: half-close the other way: we still send.
#[test]
fn half_closed_by_the_peer_still_writes() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +0    < F. 1:1(0) ack 1
        +0    > . 1:1(0) ack 2
        +100s write 2000
        +0    > . 1:2001(2000) ack 2 each 1000
        +10ms < . 2:2(0) ack 2001
        finish
        +0    > F. 2001:2001(0) ack 2
        +10ms < . 2:2(0) ack 2002
        state Closed
        ",
    );
}

/// The FIN rides on the last data when both are there.
#[test]
fn fin_travels_with_the_last_data() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.with(|connection, now| {
        let data = tack_testkit::pattern::bytes(0, 1500);
        assert_eq!(connection.write(now, &data), Ok(1500));
        connection.finish(now);
    });
    peer.run(
        "
        +0    > . 1:1001(1000) ack 1
        +0    > F. 1001:1501(500) ack 1
        +10ms < . 1:1(0) ack 1502
        state FinWait2
        ",
    );
}

/// RFC 6298 §5: a lost FIN is repeated; what follows is as if it had not been lost.
#[test]
fn lost_fin_is_repeated() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        finish
        +0    > F. 1:1(0) ack 1
        *     > F. 1:1(0) ack 1
        +10ms < . 1:1(0) ack 2
        state FinWait2
        ",
    );
    assert!(
        peer.elapsed() < Duration::from_secs(1),
        "{:?}",
        peer.elapsed()
    );
}

/// RFC 9293 §3.10.7.4 (FIN in TIME-WAIT): our last ACK was lost; the FIN comes again, is
/// acknowledged again, and 2 MSL start over.
#[test]
fn lost_last_acknowledgement() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        finish
        +0    > F. 1:1(0) ack 1
        +10ms < F. 1:1(0) ack 2
        +0    > . 2:2(0) ack 2
        +30s  < F. 1:1(0) ack 2
        +0    > . 2:2(0) ack 2
        +59s  > nothing
        state TimeWait
        +1s   > nothing
        state Closed
        ",
    );
}

/// RFC 9293 §3.10.7.4: a FIN above a hole is not a FIN yet.
#[test]
fn fin_out_of_order_waits_for_the_data_before_it() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +0    < F. 1001:1501(500) ack 1
        +0    > . 1:1(0) ack 1
        state Established
        +10ms < . 1:1001(1000) ack 1
        +0    > . 1:1(0) ack 1502
        state CloseWait
        event Readable
        read 1500
        eof
        ",
    );
}

/// RFC 9293 §3.6.1: data for an application that reads no more is answered by a reset.
#[test]
fn data_for_nobody_is_reset() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        finish
        +0    > F. 1:1(0) ack 1
        stop_reading
        +10ms < . 1:1(0) ack 2
        +10ms < P. 1:101(100) ack 2
        +0    > R. 2:2(0) ack 1
        state Closed
        ",
    );
}

/// A peer that finishes does not disturb an application that reads no more.
#[test]
fn fin_for_nobody_is_accepted() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        finish
        +0    > F. 1:1(0) ack 1
        stop_reading
        +10ms < F. 1:1(0) ack 2
        +0    > . 2:2(0) ack 2
        state TimeWait
        ",
    );
}

/// Nobody reads, and the peer never finishes: FIN-WAIT-2 is bounded by the configuration.
#[test]
fn abandoned_fin_wait_2_ends() {
    let mut peer = Peer::accepted(
        Config {
            fin_wait: Duration::from_secs(20),
            ..plain()
        },
        "mss 1000",
    );
    peer.run(
        "
        finish
        +0    > F. 1:1(0) ack 1
        +10ms < . 1:1(0) ack 2
        state FinWait2
        stop_reading
        +20s  > nothing
        state Closed
        ",
    );
}

/// RFC 9293 §3.10.5: abort sends a reset and forgets everything.
#[test]
fn abort_resets() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +0    < . 1:101(100) ack 1
        +0    > . 1:1(0) ack 101
        write 1500
        +0    > . 1:1501(1500) ack 101 each 1000
        abort
        +0    > R. 1501:1501(0) ack 101
        state Closed
        ",
    );
    let mut last = None;
    while let Some(event) = peer.next_event() {
        last = Some(event);
    }
    assert_eq!(last, Some(Event::Closed(CloseReason::Aborted)));
    peer.run("+100s > nothing");
}

/// RFC 9293 §3.10.5: in SYN-SENT there is nobody to tell.
#[test]
fn abort_before_the_answer() {
    let mut peer = Peer::connecting(plain());
    peer.run("+0 > S 0:0(0)\nabort\nstate Closed\n+100s > nothing");
}

/// RFC 9293 §3.10.7.4: a reset at exactly RCV.NXT ends the connection, and the application hears of
/// it.
#[test]
fn reset_by_the_peer() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +0    < . 1:101(100) ack 1
        +0    > . 1:1(0) ack 101
        event Readable
        write 5000
        +0    > . 1:5001(5000) ack 101 each 1000
        +10ms < R 101:101(0)
        state Closed
        event Closed Reset
        event nothing
        +100s > nothing
        ",
    );
    assert_eq!(peer.connection().close_reason(), Some(CloseReason::Reset));
    assert!(
        peer.with(|connection, now| connection.write(now, b"x"))
            .is_err()
    );
}

/// RFC 1337 §3, F1: an old duplicate draws an acknowledgement, and that a reset from a peer that
/// has forgotten the connection. It fits, and must not end TIME-WAIT all the same.
#[test]
fn time_wait_is_not_assassinated() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +0    < . 1:101(100) ack 1
        +0    > . 1:1(0) ack 101
        read 100
        finish
        +0    > F. 1:1(0) ack 101
        +10ms < F. 101:101(0) ack 2
        +0    > . 2:2(0) ack 102
        event Finished
        event Closed Graceful
        +1s   < . 1:101(100) ack 1
        +0    > . 2:2(0) ack 102
        +10ms < R 102:102(0)
        state TimeWait
        event nothing
        ",
    );
}
