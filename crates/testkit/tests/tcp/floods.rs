//! Peers that send much and say little: copies, data outside the window, one hole after the other.
//! What they draw and what they make the connection remember is bounded, and the stream goes on
//! when they become honest.

use tack_tcp::Config;
use tack_testkit::{Peer, pattern};
use tack_wire::Flags;
use tack_wire::tack::{DataStamp, TackOption};

use crate::settings::{ms, with_sack};
use crate::tack_peer::{TackPeer, tack};

/// Answers that leave at once; from then on each 5 ms one more does, and one for what waits.
const AT_ONCE: usize = 64;
/// Most answers to a flood of 100 ms, with some for what comes at its end.
const MOST: usize = AT_ONCE + 2 * 20 + 4;

fn legacy(config: Config) -> TackPeer {
    TackPeer::answering(config, false)
}

/// Lets `copies` segments arrive within 100 ms, as `send` makes them. Returns how many answers
/// left.
fn flood(peer: &mut TackPeer, copies: u32, mut send: impl FnMut(&mut TackPeer, u32)) -> usize {
    let mut answers = 0;
    for copy in 0..copies {
        send(peer, copy);
        if copy % (copies / 100) == 0 {
            peer.peer.wait(ms(1));
        }
        answers += peer.peer.take_output().len();
    }
    answers
}

#[test]
fn a_flood_of_copies_is_not_answered_one_by_one() {
    for mut peer in [TackPeer::new(tack()), legacy(tack())] {
        peer.send_data(1, 1000, 0);
        peer.peer.take_output();
        // The first ones are: a peer that retransmitted needlessly learns of each.
        for copy in 1..30 {
            peer.send_data(1, 1000, copy);
            let answers = peer.peer.take_output();
            assert_eq!(answers.len(), 1, "copy {copy}");
        }
        let answers = flood(&mut peer, 10_000, |peer, copy| {
            peer.send_data(1, 1000, 30 + copy);
        });
        assert!(
            (10..=MOST).contains(&answers),
            "{answers} answers to 10,000 copies"
        );
        // What waits for an answer gets it, and after a quiet moment at once.
        peer.peer.wait(ms(500));
        peer.peer.take_output();
        peer.send_data(1, 1000, 20_000);
        assert_eq!(peer.peer.take_output().len(), 1);
    }
}

#[test]
fn a_flood_of_data_outside_the_window_is_not_answered_one_by_one() {
    for mut peer in [TackPeer::new(tack()), legacy(tack())] {
        let answers = flood(&mut peer, 10_000, |peer, copy| {
            let stamp = TackOption::Data(DataStamp {
                number: copy,
                departure: 0,
            });
            let far = 1_000_000_000 + copy;
            let header = peer.header(far, 1, Flags::ACK, Some(stamp));
            peer.send(&header, &[1; 100]);
        });
        assert!(
            (AT_ONCE..=MOST).contains(&answers),
            "{answers} answers to 10,000 segments"
        );
    }
}

/// 30,000 holes of one byte in a window of 64 KiB: no more of them are remembered than segments fit
/// into it, what is not remembered is not acknowledged, and the stream is what the peer sent when
/// it has filled them.
#[test]
fn holes_of_one_byte_are_bounded_and_can_be_filled() {
    const WINDOW: u32 = 64 << 10;
    let config = Config {
        receive_buffer: WINDOW as usize,
        initial_receive_buffer: WINDOW as usize,
        ..tack()
    };
    for mut peer in [TackPeer::new(config.clone()), legacy(config)] {
        for hole in 0..30_000 {
            peer.send_data(2 + 2 * hole, 1, hole);
        }
        assert!(peer.peer.connection().blocked_bytes() <= 128);
        peer.peer.take_output();
        for (number, at) in (0..WINDOW / 1000).enumerate() {
            peer.send_data(1 + 1000 * at, 1000, 30_000 + number as u32);
        }
        let len = (WINDOW / 1000 * 1000) as usize;
        let mut stream = vec![0; len];
        let read = peer
            .peer
            .with(|connection, now| connection.read(now, &mut stream));
        assert_eq!(read, Ok(len));
        assert!(stream == pattern::bytes(0, len));
    }
}

/// SACK blocks of single bytes: nothing is taken for delivered, and what is honest counts after
/// them as before.
#[test]
fn sack_blocks_of_single_bytes_deliver_nothing() {
    let mut peer = Peer::accepted(with_sack(), "mss 1000,sackOK");
    let data = pattern::bytes(0, 10_000);
    peer.with(|connection, now| connection.write(now, &data).expect("room"));
    let left: usize = peer
        .take_output()
        .iter()
        .map(|output| output.payload.len())
        .sum();
    assert_eq!(left, 10_000);
    for at in (2..9_990).step_by(6) {
        let blocks = format!("{}:{} {}:{}", at, at + 1, at + 3, at + 4);
        peer.arrives(&format!(". 1:1(0) ack 1 <sack {blocks}>"));
    }
    let stats = peer.connection().stats(peer.now());
    assert_eq!(stats.bytes_in_flight, 10_000);
    assert_eq!(stats.retransmitted_segments, 0);
    peer.arrives(". 1:1(0) ack 1 <sack 1001:5001>");
    let stats = peer.connection().stats(peer.now());
    assert!(stats.bytes_in_flight <= 6_000, "{}", stats.bytes_in_flight);
}
