//! What the application sees: verbs, events, backpressure (RFC 9293 §3.9.1).

use tack_tcp::{CloseReason, Config, Event, ReadError, WriteError};
use tack_testkit::{Peer, pattern};

use crate::settings::{plain, secs};

/// Writes before the handshake are blocked; `Writable` tells when to come back.
#[test]
fn writing_before_the_handshake() {
    let mut peer = Peer::connecting(plain());
    peer.run("+0 > S 0:0(0)");
    assert_eq!(
        peer.with(|connection, now| connection.write(now, b"early")),
        Err(WriteError::Blocked)
    );
    assert_eq!(peer.connection().writable(), 0);
    peer.run("+10ms < S. 0:0(0) ack 1 <mss 1000>\n+0 > . 1:1(0) ack 1\nevent Connected\nevent Writable\nwrite 10\n+0 > P. 1:11(10) ack 1");
}

/// A full buffer takes less than offered, then blocks, and tells once there is room worth the
/// while.
#[test]
fn a_full_send_buffer_pushes_back() {
    let mut peer = Peer::accepted(
        Config {
            send_buffer: 20_000,
            ..plain()
        },
        "mss 1000",
    );
    while peer.next_event().is_some() {}
    let data = pattern::bytes(0, 30_000);
    assert_eq!(
        peer.with(|connection, now| connection.write(now, &data)),
        Ok(20_000)
    );
    assert_eq!(
        peer.with(|connection, now| connection.write(now, &data[20_000..])),
        Err(WriteError::Blocked)
    );
    assert_eq!(peer.connection().writable(), 0);
    peer.take_output();
    assert_eq!(peer.next_event(), None);
    peer.wait(crate::settings::ms(10));
    peer.arrives(". 1:1(0) ack 10001");
    assert_eq!(peer.next_event(), Some(Event::Writable));
    assert_eq!(peer.connection().writable(), 10_000);
    assert_eq!(
        peer.with(|connection, now| connection.write(now, &data[20_000..])),
        Ok(10_000)
    );
}

/// A read takes all there is room for, however the bytes lie in memory.
#[test]
fn a_read_takes_all_that_fits() {
    const LEN: usize = 300_000;
    let config = Config {
        receive_buffer: 1 << 20,
        initial_receive_buffer: 1 << 20,
        ..plain()
    };
    let mut peer = Peer::accepted(config, "mss 1000,wscale 7");
    for at in 0..LEN / 1000 {
        let from = at * 1000 + 1;
        peer.arrives(&format!(". {from}:{}(1000) ack 1", from + 1000));
    }
    assert_eq!(peer.connection().readable(), LEN);
    let mut data = vec![0; LEN + 1];
    assert_eq!(
        peer.with(|connection, now| connection.read(now, &mut data)),
        Ok(LEN)
    );
    assert_eq!(peer.connection().readable(), 0);
}

/// `Readable` comes when data comes, and the data stays readable after a reset; then the reset
/// shows.
#[test]
fn data_before_a_reset_can_be_read() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +0    < . 1:501(500) ack 1
        +0    > . 1:1(0) ack 501
        event Readable
        +0    < R 501:501(0)
        event Closed Reset
        read 500
        ",
    );
    let result = peer.with(|connection, now| connection.read(now, &mut [0; 10]));
    assert_eq!(result, Err(ReadError::Closed(CloseReason::Reset)));
    let result = peer.with(|connection, now| connection.write(now, b"x"));
    assert_eq!(result, Err(WriteError::Closed(CloseReason::Reset)));
}

/// `finish` is final and idempotent; reading goes on.
#[test]
fn finish_is_final() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run("write 10\n+0 > P. 1:11(10) ack 1\nfinish\n+0 > F. 11:11(0) ack 1\nfinish\nfinish");
    assert_eq!(
        peer.with(|connection, now| connection.write(now, b"x")),
        Err(WriteError::Finished)
    );
    peer.run("+10ms < . 1:101(100) ack 12\n+0 > . 12:12(0) ack 101\nread 100\nevent Finished");
}

/// `peek` shows what `consume` drops, in place and in order, also where the ring wraps.
#[test]
fn peek_and_consume() {
    let mut peer = Peer::accepted(
        Config {
            receive_buffer: 5_000,
            ..plain()
        },
        "mss 1000",
    );
    let mut position = 0_u64;
    for round in 0..50_u64 {
        // What lay beyond the window comes again.
        let seq = 1 + position + peer.connection().readable() as u64;
        peer.arrives(&format!(". {seq}:{}(1000) ack 1", seq + 1000));
        peer.wait(secs(1));
        peer.take_output();
        let (a, b) = peer.connection().peek();
        let seen = [a, b].concat();
        assert_eq!(seen.len(), peer.connection().readable());
        assert_eq!(pattern::mismatch(position, &seen), None, "round {round}");
        // Not everything at once, so that the ring is entered at every offset.
        let take = seen.len().min(700 + (round as usize * 37) % 500);
        peer.with(|connection, now| connection.consume(now, take));
        position += take as u64;
    }
    assert!(position > 30_000, "{position}");
}

/// RFC 9293 §3.9.1 (SEND): PSH on what empties the queue, and only there.
#[test]
fn push_marks_the_end_of_what_was_written() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    let data = pattern::bytes(0, 2500);
    assert_eq!(
        peer.with(|connection, now| connection.write(now, &data)),
        Ok(2500)
    );
    let pushed: Vec<_> = peer
        .take_output()
        .iter()
        .map(|output| output.header.flags.psh())
        .collect();
    assert_eq!(pushed, [false, false, true]);
}

/// Idle connections hold next to no memory: a server can have many.
#[test]
fn idle_connections_are_small() {
    let mut peer = Peer::accepted(Config::default(), "mss 1000,sackOK,TS,wscale 7");
    assert_eq!(peer.connection().buffer_memory(), 0);
    peer.run("+0 < . 1:11(10) ack 1");
    peer.wait(secs(1));
    peer.take_output();
    assert!(
        peer.connection().buffer_memory() <= 64 << 10,
        "{}",
        peer.connection().buffer_memory()
    );
}

/// No event follows `Closed`, whatever arrives.
#[test]
fn closed_is_the_last_event() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run("abort\n* > R. 1:1(0) ack 1");
    while let Some(event) = peer.next_event() {
        if matches!(event, Event::Closed(_)) {
            break;
        }
    }
    for segment in [
        ". 1:101(100) ack 1",
        "F. 1:1(0) ack 1",
        "S 0:0(0)",
        "R 1:1(0)",
    ] {
        peer.arrives(segment);
        assert_eq!(peer.next_event(), None, "{segment}");
    }
    assert_eq!(peer.next_timer(), None);
}
