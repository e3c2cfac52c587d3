//! Opening a connection.

use tack_tcp::Config;
use tack_testkit::Peer;

use crate::settings::{plain, unpaced};

/// RFC 9293 §3.5 figure 6; all options offered and agreed (RFC 7323 §2.2, §3.2; RFC 2018 §2; RFC
/// 3168 §6.1.1).
#[test]
fn active_open_offers_everything() {
    let mut peer = Peer::connecting(Config::default());
    peer.run(
        "
        +0    > SEW 0:0(0) win 65535 <mss 1460,sackOK,wscale 7,TS val * ecr 0>
        state SynSent
        +10ms < S.E 0:0(0) ack 1 win 65535 <mss 1400,sackOK,wscale 3,TS val 77 ecr *>
        +0    > . 1:1(0) ack 1 <TS val * ecr 77>
        state Established
        event Connected
        +0    < . 1:1(0) ack 1 win 1000
        +0    write 10
        +0    > P. 1:11(10) ack 1 ecn ect0
        ",
    );
    // RFC 7323 §2.2: the window of the SYN-ACK is not scaled, later ones are.
    let stats = peer.connection().stats(peer.now());
    assert_eq!(stats.snd_wnd, 8000);
}

/// RFC 9293 §3.5; what the peer offered is agreed.
#[test]
fn passive_open_agrees_to_what_was_offered() {
    let mut peer = Peer::listening(Config::default());
    peer.run(
        "
        +0    < SEW 0:0(0) win 65535 <mss 1400,sackOK,wscale 3,TS val 77 ecr 0>
        +0    > S.E 0:0(0) ack 1 win 65535 <mss 1460,sackOK,wscale 7,TS val * ecr 77>
        state SynReceived
        event nothing
        +10ms < . 1:1(0) ack 1
        state Established
        event Connected
        ",
    );
}

/// RFC 7323 §2.2, RFC 2018 §2: an option that the peer did not offer is not used, one not offered
/// by us is not accepted.
#[test]
fn options_absent_on_either_side_are_not_used() {
    let mut peer = Peer::listening(Config::default());
    peer.run(
        "
        +0    < S 0:0(0) win 500 <mss 1400>
        +0    > S. 0:0(0) ack 1 <mss 1460>
        +10ms < . 1:1(0) ack 1 win 500
        +0    < . 2:3(1) ack 1 win 500
        +0    > . 1:1(0) ack 1 <>
        ",
    );
    assert_eq!(peer.connection().stats(peer.now()).snd_wnd, 500);

    let mut peer = Peer::connecting(plain());
    peer.run(
        "
        +0    > S 0:0(0) <mss 1460>
        +10ms < S.E 0:0(0) ack 1 win 500 <mss 1400,sackOK,wscale 3,TS val 77 ecr 1>
        +0    > . 1:1(0) ack 1 <>
        +0    < . 1:1(0) ack 1 win 500
        +0    write 10
        +0    > P. 1:11(10) ack 1 ecn not <>
        ",
    );
    assert_eq!(peer.connection().stats(peer.now()).snd_wnd, 500);
}

/// RFC 9293 §3.1 (MUST-6, MUST-7): unknown options are skipped by their length.
#[test]
fn unknown_options_do_no_harm() {
    let mut peer = Peer::listening(unpaced());
    peer.run(
        "
        +0    < S 0:0(0) win 65535 <raw fe 04 ab cd,raw fd 02,mss 1000>
        +0    > S. 0:0(0) ack 1
        +10ms < . 1:1(0) ack 1 <raw 1e 0c 00 81 01 02 03 04 05 06 07 08>
        event Connected
        +0    write 1500
        +0    > . 1:1501(1500) ack 1 each 1000
        ",
    );
}

/// RFC 9293 §3.7.1 (MUST-15): without an MSS option the segment size is 536.
#[test]
fn absent_mss_means_536() {
    let mut peer = Peer::listening(plain());
    peer.run(
        "
        +0    < S 0:0(0) win 65535 <>
        +0    > S. 0:0(0) ack 1
        +10ms < . 1:1(0) ack 1
        +0    write 1000
        +0    > . 1:537(536) ack 1
        +0    > P. 537:1001(464) ack 1
        ",
    );
}

/// A peer that announces an absurd MSS gets small segments, not a header for each byte.
#[test]
fn absurd_mss_is_bounded() {
    for mss in [0, 1, 10] {
        let mut peer = Peer::accepted(plain(), &format!("mss {mss}"));
        peer.with(|connection, now| connection.write(now, &tack_testkit::pattern::bytes(0, 400)))
            .expect("there is room");
        assert!(peer.take_output().len() <= 8, "mss {mss}");
    }
}

/// RFC 9293 §3.5 figure 7: simultaneous open ends in one connection.
#[test]
fn simultaneous_open() {
    let mut peer = Peer::connecting(plain());
    peer.run(
        "
        +0    > S 0:0(0)
        +5ms  < S 0:0(0) win 65535 <mss 1000>
        +0    > S. 0:0(0) ack 1
        state SynReceived
        ",
    );
    // The peer's SYN-ACK repeats its SYN, which is below the window: at most an ACK answers it
    // (§3.10.7.4, first check).
    peer.wait(std::time::Duration::from_millis(5));
    peer.run("+0 < S. 0:0(0) ack 1 win 65535 <mss 1000>\n+0 > . 1:1(0) ack 1");
    peer.run(
        "
        +0    < . 1:1(0) ack 1
        state Established
        event Connected
        +0    write 10
        +0    > P. 1:11(10) ack 1
        ",
    );
}

/// RFC 6298 §2.1, §5.5: the SYN is repeated after 1, 2, 4, … s; RFC 3168 §6.1.1.1: repeated without
/// ECN. RFC 9293 §3.9.1.2: then the connection is given up.
#[test]
fn unanswered_syn_is_repeated_with_back_off_and_given_up() {
    let mut peer = Peer::connecting(Config {
        syn_retries: 4,
        ..Config::default()
    });
    peer.run(
        "
        @0s  > SEW 0:0(0)
        @1s  > S 0:0(0)
        @3s  > S 0:0(0)
        @7s  > S 0:0(0)
        @15s > S 0:0(0)
        @30.999s > nothing
        event nothing
        @31s > nothing
        event Closed TimedOut
        state Closed
        ",
    );
}

/// RFC 6298 §2.1: the same for the SYN-ACK.
#[test]
fn unanswered_syn_ack_is_repeated_with_back_off_and_given_up() {
    let mut peer = Peer::listening(Config {
        syn_retries: 3,
        ..plain()
    });
    peer.run(
        "
        @0s  < S 0:0(0) <mss 1000>
        @0s  > S. 0:0(0) ack 1
        @1s  > S. 0:0(0) ack 1
        @3s  > S. 0:0(0) ack 1
        @7s  > S. 0:0(0) ack 1
        @15s > nothing
        state Closed
        ",
    );
}

/// RFC 9293 §3.10.7.3: a reset that acknowledges the SYN refuses the connection, any other one is a
/// forgery (RFC 5961 §3).
#[test]
fn refused_by_a_reset_that_acknowledges_the_syn() {
    let mut peer = Peer::connecting(plain());
    peer.run(
        "
        +0    > S 0:0(0)
        +10ms < R 0:0(0)
        +0    < R. 0:0(0) ack 2
        +0    < R. 0:0(0) ack 0
        event nothing
        +0    < R. 0:0(0) ack 1
        event Closed Refused
        state Closed
        +10s  > nothing
        ",
    );
}

/// RFC 9293 §3.10.7.3: an acknowledgement of something never sent is answered by a reset, and the
/// SYN goes on.
#[test]
fn wrong_acknowledgement_of_the_syn_is_reset() {
    let mut peer = Peer::connecting(plain());
    peer.run(
        "
        +0    > S 0:0(0)
        +10ms < . 300:300(0) ack 91
        +0    > R 91:91(0)
        +0    < S. 300:300(0) ack 0 <mss 1000>
        +0    > R 0:0(0)
        state SynSent
        @1s   > S 0:0(0)
        +10ms < S. 0:0(0) ack 1 <mss 1000>
        +0    > . 1:1(0) ack 1
        event Connected
        ",
    );
}

/// RFC 9293 §3.10.7.4 (ACK in SYN-RECEIVED): a wrong acknowledgement is answered by a reset; the
/// connection waits on.
#[test]
fn wrong_acknowledgement_of_the_syn_ack_is_reset() {
    let mut peer = Peer::listening(plain());
    peer.run(
        "
        +0    < S 0:0(0) <mss 1000>
        +0    > S. 0:0(0) ack 1
        +10ms < . 1:1(0) ack 91
        +0    > R 91:91(0)
        state SynReceived
        +0    < . 1:1(0) ack 1
        event Connected
        ",
    );
}

/// RFC 9293 §3.10.7.4: a reset in SYN-RECEIVED ends a passively opened connection.
#[test]
fn half_open_connection_is_reset() {
    let mut peer = Peer::listening(plain());
    peer.run(
        "
        +0    < S 0:0(0) <mss 1000>
        +0    > S. 0:0(0) ack 1
        +10ms < R 1:1(0)
        state Closed
        +10s  > nothing
        ",
    );
}

/// A repeated SYN (our SYN-ACK was lost) is answered at once, not only when our timer runs out.
#[test]
fn repeated_syn_is_answered() {
    let mut peer = Peer::listening(plain());
    peer.run("+0 < S 0:0(0) <mss 1000>\n+0 > S. 0:0(0) ack 1");
    peer.wait(std::time::Duration::from_millis(500));
    peer.run("+0 < S 0:0(0) <mss 1000>\n+0 > S. 0:0(0) ack 1");
    peer.run("+10ms < . 1:1(0) ack 1\nevent Connected");
}

/// RFC 9293 §3.5: the acknowledgement that completes the handshake may carry data, and a FIN.
#[test]
fn data_and_fin_with_the_last_acknowledgement() {
    let mut peer = Peer::listening(plain());
    peer.run(
        "
        +0    < S 0:0(0) <mss 1000>
        +0    > S. 0:0(0) ack 1
        +10ms < FP. 1:101(100) ack 1
        +0    > . 1:1(0) ack 102
        event Connected
        event Readable
        read 100
        eof
        state CloseWait
        ",
    );
}

/// A lost last acknowledgement: the repeated SYN-ACK is acknowledged again (RFC 9293 §3.10.7.4,
/// first check).
#[test]
fn repeated_syn_ack_is_acknowledged_again() {
    let mut peer = Peer::connected(plain(), "mss 1000");
    peer.run(
        "
        +1s   < S. 0:0(0) ack 1 <mss 1000>
        +0    > . 1:1(0) ack 1
        state Established
        ",
    );
}

/// Data written before the handshake is complete is refused as `Blocked`, and `Writable` tells when
/// to come back; `finish` before it sends the FIN after it (RFC 9293 §3.10.4).
#[test]
fn finish_before_the_handshake_is_complete() {
    let mut peer = Peer::connecting(plain());
    peer.run(
        "
        +0    > S 0:0(0)
        finish
        +10ms < S. 0:0(0) ack 1 <mss 1000>
        +0    > F. 1:1(0) ack 1
        state FinWait1
        ",
    );
}

/// RFC 6298 §5.7, RFC 6928 §2: after a lost SYN the RTO is at least 3 s, and the first window one
/// segment.
#[test]
fn a_lost_syn_makes_the_start_cautious() {
    let mut peer = Peer::connecting(plain());
    peer.run(
        "
        @0s   > S 0:0(0)
        @1s   > S 0:0(0)
        +10ms < S. 0:0(0) ack 1 <mss 1000>
        +0    > . 1:1(0) ack 1
        event Connected
        ",
    );
    let stats = peer.connection().stats(peer.now());
    assert_eq!((stats.cwnd, stats.rto.as_secs()), (1000, 3));
}
