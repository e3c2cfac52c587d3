//! Timestamps and protection against wrapped sequence numbers (RFC 7323).

use tack_testkit::Peer;

use crate::settings::{ms, secs, with_timestamps};

fn peer() -> Peer {
    Peer::accepted(with_timestamps(), "mss 1012,TS")
}

/// RFC 7323 §5.3 R1: an older timestamp than the newest seen makes a segment unacceptable: it is
/// answered by an ACK.
#[test]
fn paws_drops_old_segments() {
    let mut peer = peer();
    peer.run(
        "
        +0    < . 1:101(100) ack 1 <TS val 5002000 ecr *>
        +0    > . 1:1(0) ack 101 <TS val * ecr 5002000>
        +1ms  < . 101:201(100) ack 1 <TS val 5001999 ecr *>
        +0    > . 1:1(0) ack 101 <TS val * ecr 5002000>
        +1ms  < . 101:201(100) ack 1 <TS val 5002000 ecr *>
        +0    > . 1:1(0) ack 201 <TS val * ecr 5002000>
        read 200
        ",
    );
}

/// RFC 7323 §5.2: timestamps are compared modulo 2^32.
#[test]
fn timestamps_wrap() {
    let mut peer = Peer::listening(with_timestamps());
    peer.run(
        "
        +0    < S 0:0(0) <mss 1000,TS val 4294967290 ecr 0>
        +0    > S. 0:0(0) ack 1 <mss 1460,TS val * ecr 4294967290>
        +10ms < . 1:1(0) ack 1 <TS val 4294967291 ecr *>
        +0    < . 1:101(100) ack 1 <TS val 4294967295 ecr *>
        +0    > . 1:1(0) ack 101 <TS val * ecr 4294967295>
        +0    < . 101:201(100) ack 1 <TS val 5 ecr *>
        +0    > . 1:1(0) ack 201 <TS val * ecr 5>
        +0    < . 201:301(100) ack 1 <TS val 4294967295 ecr *>
        +0    > . 1:1(0) ack 201 <TS val * ecr 5>
        ",
    );
}

/// RFC 7323 §5.5: after 24 days of silence an old-looking timestamp is believed again.
#[test]
fn timestamps_grow_stale() {
    let mut peer = peer();
    peer.run("+0 < . 1:101(100) ack 1 <TS val 5002000 ecr *>\n+0 > . 1:1(0) ack 101");
    peer.wait(secs(25 * 24 * 3600));
    peer.run("+0 < . 101:201(100) ack 1 <TS val 4000000 ecr *>\n+0 > . 1:1(0) ack 201 <TS val * ecr 4000000>");
}

/// RFC 7323 §4.3: the echo is that of the segment which last advanced the left edge: a hole freezes
/// it, what lies above does not count.
#[test]
fn the_echo_is_that_of_the_left_edge() {
    let mut peer = peer();
    peer.run(
        "
        +0    < . 1:101(100) ack 1 <TS val 5001010 ecr *>
        +0    > . 1:1(0) ack 101 <TS val * ecr 5001010>
        +0    < . 201:301(100) ack 1 <TS val 5001020 ecr *>
        +0    > . 1:1(0) ack 101 <TS val * ecr 5001010>
        +0    < . 101:201(100) ack 1 <TS val 5001030 ecr *>
        +0    > . 1:1(0) ack 301 <TS val * ecr 5001030>
        ",
    );
}

/// RFC 7323 §4.3, with delayed acknowledgements: the echo is the timestamp of the first segment not
/// acknowledged yet, so that the delay is part of the RTT that the peer measures.
#[test]
fn the_echo_covers_the_delay() {
    let mut config = with_timestamps();
    config.ack = tack_tcp::AckKind::delayed(2);
    let mut peer = Peer::accepted(config, "mss 1460,TS");
    peer.run(
        "
        +0    < . 1:1449(1448) ack 1 <TS val 5001010 ecr *>
        +40ms > . 1:1(0) ack 1449 <TS val * ecr 5001010>
        +1ms  < . 1449:2897(1448) ack 1 <TS val 5001051 ecr *>
        +9ms  < . 2897:4345(1448) ack 1 <TS val 5001060 ecr *>
        +0    > . 1:1(0) ack 4345 <TS val * ecr 5001051>
        ",
    );
}

/// RFC 7323 §5.4: the clock ticks between once a millisecond and once a second; here milliseconds.
#[test]
fn the_clock_ticks_in_milliseconds() {
    let mut peer = peer();
    peer.run("write 10\n+0 > P. 1:11(10) ack 1");
    let first = peer.newest_timestamp();
    peer.run("+100ms < . 1:1(0) ack 11\nwrite 10\n+0 > P. 11:21(10) ack 1");
    assert_eq!(peer.newest_timestamp().wrapping_sub(first), 100);
}

/// RFC 7323 §4.1: timestamps measure the RTT of retransmitted segments, where Karn's rule alone
/// gives none; and every sample counts the time until the segment *arrived*.
#[test]
fn timestamps_measure_retransmissions() {
    let mut peer = peer();
    peer.run("write 100\n+0 > P. 1:101(100) ack 1\n* > P. 1:101(100) ack 1");
    peer.run("+30ms < . 1:1(0) ack 101");
    let stats = peer.connection().stats(peer.now());
    // SRTT was 10 ms from the handshake: 7/8 · 10 + 1/8 · 30 = 12.5 ms, to a tick of the clock.
    let srtt = stats.srtt.expect("a sample");
    assert!((ms(12)..=ms(13)).contains(&srtt), "{srtt:?}");
}

/// A peer that echoes a timestamp from the future, or of ages ago, spoils nothing.
#[test]
fn lying_echoes_are_harmless() {
    for echo in ["0", "1", "4294967295", "2147483648"] {
        let mut peer = peer();
        peer.run("write 100\n+0 > P. 1:101(100) ack 1");
        peer.run(&format!("+10ms < . 1:1(0) ack 101 <TS val * ecr {echo}>"));
        let stats = peer.connection().stats(peer.now());
        assert!(
            stats.srtt.is_some_and(|srtt| srtt < secs(1)),
            "echo {echo}: {stats:?}"
        );
        peer.run("write 100\n+0 > P. 101:201(100) ack 1");
    }
}
