//! Blind attacks (RFC 5961), and segments that no correct peer sends.

use tack_testkit::Peer;

use crate::settings::{plain, with_timestamps};

/// RFC 5961 §3.2: a reset is believed at exactly RCV.NXT, challenged elsewhere in the window,
/// ignored outside.
#[test]
fn blind_reset() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +0    < R 2:2(0)
        +0    > . 1:1(0) ack 1
        +1s   < R 60000:60000(0)
        +0    > . 1:1(0) ack 1
        +1s   < R 0:0(0)
        +0    < R 100000:100000(0)
        +0    < R 4000000000:4000000000(0)
        +0    > nothing
        state Established
        +0    < R 1:1(0)
        state Closed
        event Closed Reset
        ",
    );
}

/// RFC 5961 §4.2: a SYN in a synchronised state is challenged, wherever it lies.
#[test]
fn blind_syn() {
    for seq in ["0:0", "1:1", "500:500", "3000000000:3000000000"] {
        let mut peer = Peer::accepted(plain(), "mss 1000");
        peer.run(&format!(
            "+1s < S {seq}(0) <mss 1000>
             +0  > . 1:1(0) ack 1
             state Established"
        ));
    }
}

/// RFC 5961 §5.2: data whose acknowledgement lies too far back, or ahead of what was sent, is
/// dropped and answered by an ACK.
#[test]
fn blind_data() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +1s   < . 1:101(100) ack 2
        +0    > . 1:1(0) ack 1
        +1s   < . 1:101(100) ack 2000000000
        +0    > . 1:1(0) ack 1
        +1s   < . 1:101(100) ack 4294000000
        +0    > . 1:1(0) ack 1
        event nothing
        read 0
        +1s   < . 1:101(100) ack 1
        +0    > . 1:1(0) ack 101
        read 100
        ",
    );
}

/// RFC 5961 §5.2: an acknowledgement that is old by no more than the largest window is acceptable.
#[test]
fn somewhat_old_acknowledgements_carry_data() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        write 3000
        +0    > . 1:3001(3000) ack 1 each 1000
        +10ms < . 1:1(0) ack 3001
        +0    < . 1:101(100) ack 1001
        +0    > . 3001:3001(0) ack 101
        ",
    );
}

/// RFC 5961 §7: challenge ACKs are limited, or a flood would be reflected.
#[test]
fn challenges_are_rate_limited() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    let mut challenges = 0;
    for _ in 0..1000 {
        challenges += peer.arrives("S 100:100(0)").len();
        peer.wait(std::time::Duration::from_micros(100));
    }
    assert!((1..=20).contains(&challenges), "{challenges} in 100 ms");
}

/// An ACK storm needs two: bare acknowledgements outside the window are answered at a limited rate
/// (RFC 9293 §3.10.7.4 first check; RFC 5961 §7).
#[test]
fn acknowledgements_out_of_window_start_no_storm() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    let mut answers = 0;
    for _ in 0..200 {
        answers += peer.arrives(". 0:0(0) ack 1").len();
    }
    assert!(answers <= 20, "{answers}");
}

/// RFC 9293 §3.10.7.4 (fifth check): segments without ACK are dropped once synchronised.
#[test]
fn segments_without_ack_are_dropped() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +0    < - 1:101(100)
        +0    < P 1:101(100)
        +0    < F 1:1(0)
        +100ms > nothing
        state Established
        event nothing
        ",
    );
}

/// RFC 9293 §3.10.7.4 (first check): data outside the window brings an ACK that says what is
/// expected, and nothing else.
#[test]
fn data_out_of_the_window() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +0    < . 1:1001(1000) ack 1
        +0    > . 1:1(0) ack 1001
        +1s   < . 1:1001(1000) ack 1
        +0    > . 1:1(0) ack 1001
        +1s   < . 200001:201001(1000) ack 1
        +0    > . 1:1(0) ack 1001
        +1s   < . 3000000000:3000001000(1000) ack 1
        +0    > . 1:1(0) ack 1001
        read 1000
        ",
    );
}

/// RFC 9293 §3.10.7.4: a segment that sticks out on either side of the window is trimmed to it.
#[test]
fn segments_are_trimmed_to_the_window() {
    let mut config = plain();
    config.receive_buffer = 2000;
    let mut peer = Peer::accepted(config, "mss 1000");
    peer.run(
        "
        +0    < . 1:501(500) ack 1
        +0    > . 1:1(0) ack 501 win 1500
        +0    < . 301:901(600) ack 1
        +0    > . 1:1(0) ack 901 win 1100
        +0    < . 901:2901(2000) ack 1
        +0    > . 1:1(0) ack 2001 win 0
        read 2000
        +0    > . 1:1(0) ack 2001 win 2000
        ",
    );
}

/// RFC 9293 §3.8.5 with RFC 6093: urgent data stays in line, and the pointer does nothing.
#[test]
fn urgent_pointer_is_ignored_safely() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +0    < PU. 1:101(100) ack 1 urg 50
        +0    > . 1:1(0) ack 101
        +0    < U. 101:201(100) ack 1 urg 65535
        +0    > . 1:1(0) ack 201
        +0    < U. 201:301(100) ack 1 urg 0
        +0    > . 1:1(0) ack 301
        read 300
        ",
    );
}

/// RFC 7323 §3.2 would drop segments without the option once it was agreed. Deviation: they are
/// taken, for boxes that strip options would stall the connection. Resets need none in any case.
#[test]
fn missing_timestamps() {
    let mut peer = Peer::accepted(with_timestamps(), "mss 1000,TS");
    peer.run(
        "
        +0    < . 1:101(100) ack 1 <>
        +0    > . 1:1(0) ack 101 <TS>
        read 100
        +0    < R 101:101(0) <>
        state Closed
        ",
    );
}

/// RFC 9293 §3.10.7.4: acknowledging data never sent is answered by an ACK and changes nothing.
#[test]
fn acknowledgement_of_unsent_data() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        write 1000
        +0    > . 1:1001(1000) ack 1
        +10ms < . 1:1(0) ack 1002
        +0    > . 1001:1001(0) ack 1
        +0    < . 1:1(0) ack 1001
        ",
    );
    assert_eq!(peer.connection().stats(peer.now()).bytes_acked, 1000);
}

/// RFC 9293 §3.10.7.4: acknowledgements below SND.UNA are ignored, also their windows.
#[test]
fn old_acknowledgements_change_nothing() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        write 3000
        +0    > . 1:3001(3000) ack 1 each 1000
        +10ms < . 1:1(0) ack 3001 win 3000
        +0    < . 1:1(0) ack 1001 win 0
        write 2000
        +0    > . 3001:5001(2000) ack 1 each 1000
        ",
    );
}

/// RFC 2018 §4, RFC 2883: SACK blocks that make no sense (inverted, beyond what was sent, empty)
/// are ignored.
#[test]
fn absurd_sack_blocks_are_ignored() {
    let mut peer = Peer::accepted(crate::settings::with_sack(), "mss 1000,sackOK");
    peer.run(
        "
        write 3000
        +0    > . 1:3001(3000) ack 1 each 1000
        +10ms < . 1:1(0) ack 1 <sack 2001:1001 3001:9001 500000000:600000000>
        +0    < . 1:1(0) ack 1 <sack 1001:1001 4294967290:5 1:3000000000>
        +0    < . 1:1(0) ack 1 <sack 9001:10001>
        +0    > nothing
        +0    < . 1:1(0) ack 3001
        ",
    );
    let stats = peer.connection().stats(peer.now());
    assert_eq!(
        (stats.bytes_in_flight, stats.retransmitted_segments),
        (0, 0)
    );
}

/// A peer that acknowledges ahead of receipt in tiny steps gains nothing: growth counts bytes (RFC
/// 3465).
#[test]
fn divided_acknowledgements_grow_the_window_by_bytes() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    let before = peer.connection().stats(peer.now()).cwnd;
    peer.run("write 1000\n+0 > . 1:1001(1000) ack 1");
    for ack in (11..=1001).step_by(10) {
        peer.run(&format!("+100us < . 1:1(0) ack {ack}"));
    }
    assert!(peer.connection().stats(peer.now()).cwnd <= before + 1000);
}
