//! The scripts about retransmission timeouts: when they run out, and how they back off. No timer
//! runs out early, whatever a machine is busy with, so the least times are those of RFC 6298; the
//! most are far above. They are compared by the subject's own clock, its timestamps.

use std::time::Duration;

use super::play::at_once;
use super::player::Player;
use super::subject::{Opening, Settings, Who};
use crate::world::isolated;

/// A connection whose first SYNs get lost, and two segments to send.
const LOST_SYNS: &str = "
        * > SEW 0:0(0) <mss 1460,sackOK,TS,wscale *>
        +980ms..3s > S 0:0(0) <mss 1460,sackOK,TS,wscale *>
        +1980ms..3500ms > S 0:0(0) <mss 1460,sackOK,TS,wscale *>
        < S. 0:0(0) ack 1 win 65535 <mss 912,sackOK,TS>
        * > . 1:1(0) ack 1
        event Connected
        write 1800
        ";

/// Its first flight is one segment.
const FIRST_FLIGHT: &str = "
        * > . 1:901(900) ack 1
        +100ms > nothing
        < . 1:1(0) ack 901
        * > P. 901:1801(900) ack 1
        < . 1:1(0) ack 1801
        ";

/// RFC 9293 §3.8.1, RFC 6298 §2.1, §5.5: a SYN without an answer leaves again after a second, and
/// after twice the time then. It does not ask for ECN any more (RFC 3168 §6.1.1.1),
/// and the first flight is one segment (RFC 5681 §3.1).
#[test]
fn lost_syns_leave_again() {
    at_once(Opening::Active, &format!("{LOST_SYNS}{FIRST_FLIGHT}"));
}

/// The same for a SYN-ACK; a repeated SYN is answered by the same one (RFC 9293 §3.10.7.4).
#[test]
fn lost_syn_acks_leave_again() {
    at_once(
        Opening::Passive,
        "
        < S 0:0(0) win 65535 <mss 1000,sackOK,TS>
        * > S. 0:0(0) ack 1 <mss 1460,sackOK,TS>
        +980ms..3s > S. 0:0(0) ack 1 <mss 1460,sackOK,TS>
        +1980ms..3500ms > S. 0:0(0) ack 1 <mss 1460,sackOK,TS>
        < S 0:0(0) win 65535 <mss 1000,sackOK,TS>
        * > S. 0:0(0) ack 1 <mss 1460,sackOK,TS>
        < . 1:1(0) ack 1
        event Connected
        < P. 1:1001(1000) ack 1
        * > . 1:1(0) ack 1001
        read 1000
        ",
    );
}

/// RFC 6298 §2, §5.5: the first round trip takes 100 ms, and its variation is half of that. So the
/// first timeout is at least 300 ms, and each later one is twice as long. A connection without SACK
/// sends no tail loss probes (RFC 8985 §7.3).
#[test]
fn timeouts_back_off() {
    at_once(
        Opening::Passive,
        "
        < S 0:0(0) win 65535 <mss 1000,TS>
        * > S. 0:0(0) ack 1
        +100ms < . 1:1(0) ack 1
        event Connected
        write 500
        * > P. 1:501(500) ack 1
        +280ms..2s > P. 1:501(500) ack 1
        +580ms..3s > P. 1:501(500) ack 1
        +1180ms..4s > P. 1:501(500) ack 1
        < . 1:1(0) ack 501
        write 500
        * > P. 501:1001(500) ack 1
        < . 1:1(0) ack 1001
        ",
    );
}

/// The probe for a lost tail (RFC 8985 §7.2) brings new data 200 ms after the first flight. On a
/// loaded machine a player gets its turn late: it finds the probe beside the flight, and does not
/// take it for a part of that.
#[test]
fn a_probe_that_is_seen_beside_the_first_flight_left_after_it() {
    isolated(|| async {
        let mut player = Player::new(Who::Kernel, Opening::Active, Settings::default()).await;
        player.run(LOST_SYNS).await;
        std::thread::sleep(Duration::from_millis(170));
        player.run(FIRST_FLIGHT).await;
    });
}
