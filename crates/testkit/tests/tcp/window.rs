//! Flow control: windows, zero-window probes, silly windows, Nagle, autotuning.

use std::time::Duration;

use tack_tcp::Config;
use tack_testkit::{Model, Pair, Peer, Side};

use tack_wire::{Flags, Header};

use crate::settings::{ms, plain, secs, unpaced};
use crate::tack_peer::{TackPeer, tack};

/// RFC 9293 §3.8.6: no byte beyond the window.
#[test]
fn the_window_is_respected() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +0    < . 1:1(0) ack 1 win 2000
        write 5000
        +0    > . 1:2001(2000) ack 1 each 1000
        +10ms < . 1:1(0) ack 1001 win 2000
        +0    > . 2001:3001(1000) ack 1
        +0    < . 1:1(0) ack 2001 win 3000
        +0    > . 3001:5001(2000) ack 1 each 1000
        ",
    );
}

/// RFC 9293 §3.8.6.1 (MUST-36): a closed window is probed, first after an RTO, then at doubling
/// intervals; it never ends the connection while probes are answered.
#[test]
fn zero_window_is_probed_with_back_off() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run("+0 < . 1:1(0) ack 1 win 0\nwrite 3000\n+0 > nothing");
    let begin = peer.elapsed();
    let mut times = Vec::new();
    for _ in 0..8 {
        let probe = peer.next_output();
        assert!(
            probe.payload.len() <= 1,
            "a probe takes at most one byte of room: {probe:?}"
        );
        times.push(probe.at);
        peer.run("+1ms < . 1:1(0) ack 1 win 0");
    }
    let first = times[0] - begin;
    assert!((ms(200)..=secs(1)).contains(&first), "{first:?}");
    for pair in times.windows(3) {
        let (before, after) = (pair[1] - pair[0], pair[2] - pair[1]);
        assert!(
            after >= before * 2 - ms(5) || after >= secs(59),
            "{times:?}"
        );
    }
    // 20 minutes of closed window later the connection still lives and resumes at once.
    for _ in 0..20 {
        peer.wait(secs(60));
        peer.take_output();
        peer.run("+0 < . 1:1(0) ack 1 win 0");
    }
    peer.run("+0 < . 1:1(0) ack 1 win 3000\n+0 > . 1:3001(3000) ack 1 each 1000");
}

/// RFC 9293 §3.8.6.1: a peer that does not answer probes is given up at the user timeout.
#[test]
fn unanswered_probes_end_at_the_user_timeout() {
    let mut peer = Peer::accepted(
        Config {
            user_timeout: Some(secs(30)),
            ..plain()
        },
        "mss 1000",
    );
    peer.run("+0 < . 1:1(0) ack 1 win 0\nwrite 1000");
    peer.wait(secs(29));
    peer.take_output();
    peer.run("event nothing");
    peer.wait(secs(40));
    peer.take_output();
    peer.run("event Closed TimedOut");
}

/// RFC 5482: the user timeout runs while something waits, not while both sides have nothing to say.
/// Otherwise the first probe after a long silence would end a connection whose peer is well.
#[test]
fn silence_before_there_was_anything_to_ask_does_not_count() {
    let mut peer = Peer::accepted(
        Config {
            user_timeout: Some(secs(30)),
            ..plain()
        },
        "mss 1000",
    );
    peer.run("+0 < . 1:1(0) ack 1 win 0");
    peer.wait(secs(100));
    peer.run("write 1000");
    peer.wait(secs(10));
    peer.take_output();
    peer.run(
        "event nothing
        +0 < . 1:1(0) ack 1 win 3000
        +0 > P. 1:1001(1000) ack 1",
    );
}

/// RFC 9293 §3.8.6.1: the receiver answers a probe with its window, and takes the byte when there
/// is room.
#[test]
fn probes_are_answered() {
    let mut peer = Peer::accepted(
        Config {
            receive_buffer: 2000,
            ..plain()
        },
        "mss 1000",
    );
    peer.run(
        "
        +0    < . 1:2001(2000) ack 1 each 1000
        +0    > . 1:1(0) ack 1001 win 1000
        +0    > . 1:1(0) ack 2001 win 0
        +1s   < . 2001:2002(1) ack 1
        +0    > . 1:1(0) ack 2001 win 0
        +2s   < . 2000:2001(1) ack 1
        +0    > . 1:1(0) ack 2001 win 0
        read 2000
        +0    > . 1:1(0) ack 2001 win 2000
        +1s   < . 2001:2002(1) ack 1
        +0    > . 1:1(0) ack 2002
        read 1
        ",
    );
}

/// RFC 9293 §3.8.6.2.1: the sender does not fill a slightly open window with a small segment, until
/// the override timer.
#[test]
fn sender_avoids_silly_windows() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +0    < . 1:1(0) ack 1 win 4000
        write 8000
        +0    > . 1:4001(4000) ack 1 each 1000
        +10ms < . 1:1(0) ack 4001 win 100
        +50ms > nothing
        +0    < . 1:1(0) ack 4001 win 999
        +50ms > nothing
        +0    < . 1:1(0) ack 4001 win 1000
        +0    > . 4001:5001(1000) ack 1
        +10ms < . 1:1(0) ack 5001 win 300
        *     > . 5001:5301(300) ack 1
        ",
    );
}

/// RFC 9293 §3.8.6.2.2: the receiver opens its window by no less than a segment or half the buffer.
#[test]
fn receiver_avoids_silly_windows() {
    let mut peer = Peer::accepted(
        Config {
            receive_buffer: 4000,
            ..plain()
        },
        "mss 1000",
    );
    peer.run("+0 < . 1:4001(4000) ack 1 each 1000\n+0 > . 1:1(0) ack 1001\n+0 > . 1:1(0) ack 2001\n+0 > . 1:1(0) ack 3001\n+0 > . 1:1(0) ack 4001 win 0");
    let mut buf = [0; 100];
    let mut read = 0;
    let update = loop {
        read += peer
            .with(|connection, now| connection.read(now, &mut buf))
            .expect("there is more");
        if let Some(update) = peer.take_output().pop() {
            break update;
        }
    };
    assert!((1000..=2000).contains(&read), "{read}");
    assert_eq!(usize::from(update.header.window), read);
}

/// RFC 9293 §3.8.6.2.2: a window that opens from zero is announced without being asked.
#[test]
fn window_update_is_sent_when_the_window_reopens() {
    let mut peer = Peer::accepted(
        Config {
            receive_buffer: 8000,
            ..plain()
        },
        "mss 1000",
    );
    for at in 0..8 {
        peer.run(&format!(
            "+0 < . {}:{}(1000) ack 1\n+0 > . 1:1(0) ack {} win {}",
            1 + at * 1000,
            1001 + at * 1000,
            1001 + at * 1000,
            7000 - at * 1000
        ));
    }
    peer.run("read 8000\n+0 > . 1:1(0) ack 8001 win 8000");
}

/// RFC 9293 §3.7.4: Nagle's algorithm holds a small segment while anything is unacknowledged;
/// without it nothing waits.
#[test]
fn nagle() {
    let mut peer = Peer::accepted(
        Config {
            nagle: true,
            ..plain()
        },
        "mss 1000",
    );
    peer.run(
        "
        write 10
        +0    > P. 1:11(10) ack 1
        write 10
        write 10
        +0    > nothing
        +10ms < . 1:1(0) ack 11
        +0    > P. 11:31(20) ack 1
        write 1500
        +0    > . 31:1031(1000) ack 1
        +10ms < . 1:1(0) ack 1031
        +0    > P. 1031:1531(500) ack 1
        ",
    );
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run("write 10\n+0 > P. 1:11(10) ack 1\nwrite 10\n+0 > P. 11:21(10) ack 1");
}

/// Nagle does not hold the end of a stream back.
#[test]
fn nagle_lets_the_tail_go_with_the_fin() {
    let mut peer = Peer::accepted(
        Config {
            nagle: true,
            ..plain()
        },
        "mss 1000",
    );
    peer.run("write 10\n+0 > P. 1:11(10) ack 1\nwrite 10\nfinish\n+0 > FP. 11:21(10) ack 1");
}

/// A receiver that stops reading stalls the sender: the sender's memory is bounded by its buffer,
/// the receiver's by its own, and everything resumes.
#[test]
fn a_receiver_that_stops_reading_stalls_the_sender() {
    let config = Config {
        receive_buffer: 200_000,
        send_buffer: 300_000,
        ..Config::default()
    };
    let mut pair = Pair::open(1, &config, Model::default(), Model::default());
    pair.establish(secs(1));
    pair.set_reading(Side::Server, false);
    pair.send(Side::Client, 10_000_000);
    pair.run_for(secs(60));
    let written = pair.app(Side::Client).written;
    assert!(written <= 500_000 + 1460, "{written}");
    for side in [Side::Client, Side::Server] {
        let memory = pair.connection(side).buffer_memory();
        assert!(memory <= 1 << 20, "{side:?}: {memory}");
    }
    assert!((60_000..=200_000).contains(&pair.connection(Side::Server).readable()));
    pair.set_reading(Side::Server, true);
    assert!(pair.run_until(secs(60), |pair| pair.app(Side::Server).read == 10_000_000));
}

/// Autotuning (dynamic right-sizing): the window grows with the application's pace until it carries
/// rate × RTT, and not beyond the cap.
#[test]
fn the_receive_window_grows_to_what_the_path_needs() {
    let wire = || Model::wire(ms(50), tack_base::Rate::from_bits_per_sec(100_000_000));
    let config = Config {
        receive_buffer: 4 << 20,
        send_buffer: 8 << 20,
        ..unpaced()
    };
    let mut pair = Pair::open(1, &config, wire(), wire());
    pair.establish(secs(1));
    assert!(
        pair.connection(Side::Server)
            .stats(pair.now())
            .receive_buffer
            <= 128 << 10
    );
    pair.send(Side::Client, 60_000_000);
    assert!(
        pair.run_until(secs(20), |pair| pair.app(Side::Server).read == 60_000_000),
        "{:?}",
        pair.elapsed()
    );
    let buffer = pair
        .connection(Side::Server)
        .stats(pair.now())
        .receive_buffer;
    // 100 Mbit/s over 100 ms are 1.25 MB.
    assert!((1_250_000..=4 << 20).contains(&buffer), "{buffer}");
    // 60 MB take 4.8 s at that rate: slow start and headers on top, no more.
    assert!(
        pair.elapsed() < Duration::from_secs(7),
        "{:?}",
        pair.elapsed()
    );
}

/// RFC 7323 §2.3: without window scaling everything works within 64 KiB.
#[test]
fn without_window_scaling_windows_stop_at_64_kib() {
    let config = Config {
        window_scaling: false,
        ..unpaced()
    };
    let mut pair = Pair::open(1, &config, Model::default(), Model::default());
    pair.transfer(3_000_000, 100_000, secs(30));
}

/// RFC 7323 §2.3: the largest windows, scaled by 14.
#[test]
fn the_largest_scale() {
    let mut peer = Peer::connecting(Config {
        receive_buffer: 1 << 30,
        ..Config::default()
    });
    peer.run(
        "
        +0    > SEW 0:0(0) win 65535 <mss 1460,sackOK,wscale 14,TS>
        +10ms < S. 0:0(0) ack 1 win 65535 <mss 1400,wscale 255>
        +0    > . 1:1(0) ack 1
        +0    < . 1:1(0) ack 1 win 65535
        ",
    );
    assert_eq!(peer.connection().stats(peer.now()).snd_wnd, 65535 << 14);
}

/// RFC 9293 §3.8.6 (MUST-34): a peer that shrinks its window does not confuse the sender: what was
/// sent stays sent.
#[test]
fn a_peer_that_shrinks_its_window() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        write 5000
        +0    > . 1:5001(5000) ack 1 each 1000
        +10ms < . 1:1(0) ack 1001 win 1000
        +0    < . 1:1(0) ack 2001 win 0
        +0    > nothing
        +0    < . 1:1(0) ack 5001 win 2000
        write 1000
        +0    > . 5001:6001(1000) ack 1
        ",
    );
}

/// A copy of old data whose option was taken off looks like a report that lost its own: what it
/// acknowledges is heard, and the window of its time does not close the one of today (RFC 9293
/// §3.10.7.4).
#[test]
fn a_late_copy_without_its_option_does_not_close_the_window() {
    let mut peer = TackPeer::new(tack());
    peer.send_data(1, 1000, 0);
    peer.send_data(1001, 1000, 1);
    peer.peer.wait(ms(100));
    assert!(!peer.peer.take_output().is_empty(), "both are acknowledged");
    let old = Header {
        window: 0,
        ..peer.header(1, 1, Flags::ACK, None)
    };
    let update = |window| Header {
        window,
        ..peer.header(2001, 1, Flags::ACK, None)
    };
    let [closed, open] = [update(0), update(3000)];
    peer.send(&closed, &[]);
    assert!(peer.write(1000).iter().all(|out| out.payload.is_empty()));
    peer.send(&open, &[]);
    let first: usize = peer
        .peer
        .take_output()
        .iter()
        .map(|out| out.payload.len())
        .sum();
    assert_eq!(first, 1000);
    peer.send(&old, &[0; 1000]);
    let second: usize = peer.write(1000).iter().map(|out| out.payload.len()).sum();
    assert_eq!(second, 1000);
}
