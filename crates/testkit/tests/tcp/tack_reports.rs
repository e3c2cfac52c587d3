//! Which acknowledgement a receiver with TACK sends on which event, and what it looks like
//! (docs/wire-format.md, "When what is sent").

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tack_tcp::Config;
use tack_testkit::peer::Output;
use tack_testkit::{Fate, Model, Pair};
use tack_wire::tack::{DataStamp, Report, ReportKind, TackOption};
use tack_wire::{Ecn, Flags};

use crate::settings::{ms, secs};
use crate::tack_peer::{TackPeer, tack};

/// Data that is acknowledged already, so that what follows is about the event alone.
fn settled(config: Config) -> TackPeer {
    let mut peer = TackPeer::new(config);
    peer.send_sync(1, 40_000, 0);
    peer.send_data(1, 1000, 0);
    peer.send_data(1001, 1000, 1);
    peer.peer.wait(ms(200));
    let left = peer.peer.take_output();
    assert!(left.last().is_some_and(|output| output.payload.is_empty()));
    peer
}

/// The one segment that left is a report.
fn report(left: &[Output]) -> Report {
    let [output] = left else {
        panic!("{left:?}");
    };
    match output.header.options.tack {
        Some(TackOption::Report(report)) => report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_end_of_the_handshake_is_reported() {
    let peer = TackPeer::new(tack());
    let answer = peer.answer.expect("the handshake is complete");
    let first = report(&[answer]);
    assert_eq!(
        (first.kind, first.number, first.largest, first.sync_echo),
        (ReportKind::Event, 0, u32::MAX, 0)
    );
    assert_eq!((first.timing, first.rate, first.lists), (None, None, false));
}

/// Neither timestamps nor SACK blocks beside TACK, whatever was offered; a reset carries nothing.
#[test]
fn no_other_options_leave() {
    let mut peer = settled(Config {
        timestamps: true,
        ..tack()
    });
    peer.send_data(5001, 1000, 4);
    let mut left = peer.peer.take_output();
    left.extend(peer.write(10_000));
    peer.peer.with(|connection, now| connection.abort(now));
    left.extend(peer.peer.take_output());
    assert!(left.len() > 3);
    for output in left {
        let options = &output.header.options;
        assert!(options.timestamps.is_none() && options.sack.is_empty());
        assert_eq!(options.tack.is_none(), output.header.flags.rst());
    }
}

#[test]
fn a_fin_is_reported_at_once() {
    let mut peer = settled(tack());
    let stamp = TackOption::Data(DataStamp {
        number: 2,
        departure: 0,
    });
    let header = peer.header(2001, 1, Flags::ACK.with(Flags::FIN), Some(stamp));
    peer.send(&header, &[]);
    assert_eq!(report(&peer.peer.take_output()).kind, ReportKind::Event);
}

/// RFC 3168 §6.1.3 has every acknowledgement echo the mark; the first one does not wait.
#[test]
fn the_first_congestion_mark_is_reported_at_once() {
    let mut peer = settled(Config {
        ecn: true,
        ..tack()
    });
    for number in 2..5 {
        let stamp = TackOption::Data(DataStamp {
            number,
            departure: 0,
        });
        let position = 1 + 1000 * number;
        let header = peer.header(position, 1, Flags::ACK, Some(stamp));
        let data = tack_testkit::pattern::bytes(u64::from(position - 1), 1000);
        peer.send_marked(&header, &data, Ecn::Ce);
        let left = peer.peer.take_output();
        if number == 2 {
            assert_eq!(report(&left).kind, ReportKind::Event);
            assert!(left[0].header.flags.contains(Flags::ECE));
        } else {
            assert!(left.is_empty(), "{number}: {left:?}");
        }
    }
}

/// RFC 9293 §3.8.4: a probe comes with an old sequence number and without the option.
#[test]
fn a_keep_alive_probe_is_answered_by_a_report() {
    let mut peer = settled(tack());
    let header = peer.header(2000, 1, Flags::ACK, None);
    peer.send(&header, &[]);
    assert_eq!(report(&peer.peer.take_output()).kind, ReportKind::Event);
}

/// Bytes or numbers that came before show that the sender waits for word.
#[test]
fn probes_and_needless_retransmissions_are_answered_at_once() {
    let mut peer = settled(tack());
    // A tail loss probe: old bytes, new number.
    peer.send_data(1001, 1000, 2);
    let probed = report(&peer.peer.take_output());
    assert_eq!(probed.largest, 2);
    // A window probe: one new byte, old number.
    peer.send_data(2001, 1, 2);
    assert_eq!(report(&peer.peer.take_output()).kind, ReportKind::Event);
}

#[test]
fn a_window_is_reported_when_it_closes_and_when_it_opens() {
    let mut peer = settled(Config {
        receive_buffer: 20_000,
        initial_receive_buffer: 20_000,
        ..tack()
    });
    let mut closed = None;
    for number in 2..20 {
        peer.send_data(1 + 1000 * number, 1000, number);
        for output in peer.peer.take_output() {
            if let Some(TackOption::Report(report)) = output.header.options.tack
                && report.kind == ReportKind::Window
            {
                closed = Some((number, output.header.window));
            }
        }
    }
    let (number, window) = closed.expect("a nearly full buffer is reported");
    assert!(number >= 17 && window < 3000, "{number}: {window}");
    peer.peer.wait(secs(1));
    peer.peer.take_output();
    let read = peer
        .peer
        .with(|connection, now| connection.read(now, &mut vec![0; 15_000]));
    assert_eq!(read, Ok(15_000));
    let opened = peer.peer.take_output();
    assert_eq!(report(&opened).kind, ReportKind::Window);
    assert!(opened[0].header.window > 10_000);
}

/// One report for a gap, however many numbers it has, and none before it has settled.
#[test]
fn a_gap_is_reported_once_and_at_once() {
    let mut peer = settled(tack());
    peer.send_data(7001, 1000, 7);
    let left = peer.peer.take_output();
    let [output] = &left[..] else {
        panic!("{left:?}");
    };
    let Some(TackOption::Loss(loss)) = output.header.options.tack else {
        panic!("{output:?}");
    };
    assert_eq!((loss.before_gap, loss.after_gap, loss.largest), (1, 7, 7));
    assert_eq!(loss.above, 1000);
    for number in 8..10 {
        peer.send_data(1 + 1000 * number, 1000, number);
        let left = peer.peer.take_output();
        assert!(
            left.iter()
                .all(|output| !matches!(output.header.options.tack, Some(TackOption::Loss(_)))),
            "{left:?}"
        );
    }
    // With a settling time of a quarter of RTTmin, it is the clock that tells.
    let mut peer = settled(Config {
        ack: "tack:settle=0.25".parse().expect("a policy"),
        ..tack()
    });
    peer.send_data(7001, 1000, 7);
    let is_loss = |output: &Output| matches!(output.header.options.tack, Some(TackOption::Loss(_)));
    assert!(!peer.peer.take_output().iter().any(is_loss));
    peer.peer.wait(Duration::from_micros(9_999));
    assert!(!peer.peer.take_output().iter().any(is_loss));
    peer.peer.wait(Duration::from_micros(1));
    assert!(peer.peer.take_output().iter().any(is_loss));
}

/// The period is sent at once when it halves or doubles, and with the next report otherwise.
#[test]
fn a_period_that_halves_or_doubles_is_announced() {
    let mut peer = settled(tack());
    peer.send_sync(1, 50_000, 0);
    assert!(peer.peer.take_output().is_empty());
    peer.send_sync(1, 20_000, 0);
    let announced = report(&peer.peer.take_output());
    assert_eq!(
        (announced.kind, announced.period),
        (ReportKind::Frequency, 5_000)
    );
    assert_eq!(announced.sync_echo, 3);
    peer.send_sync(1, 80_000, 0);
    let announced = report(&peer.peer.take_output());
    assert_eq!(
        (announced.kind, announced.period),
        (ReportKind::Frequency, 20_000)
    );
    // An old sync, overtaken, changes nothing.
    peer.sync = 2;
    peer.send_sync(1, 1_000, 0);
    assert!(peer.peer.take_output().is_empty());
}

/// A copy of a segment from before sequence numbers wrapped fits into the window, but its PKT.SEQ
/// tells.
#[test]
fn segments_from_another_time_are_dropped() {
    let mut peer = settled(tack());
    peer.send_data(2001, 1000, 1 << 20);
    peer.peer.take_output();
    for (position, number, taken) in [
        (3001, 0, false),
        // As far behind as anything in flight can be.
        (3001, 1, true),
        (4001, (1 << 20) + 1, true),
        (5001, 1, false),
        (5001, 1_u32.wrapping_sub(1 << 20), false),
    ] {
        let before = peer.peer.connection().readable();
        peer.send_data(position, 1000, number);
        let after = peer.peer.connection().readable();
        assert_eq!(after > before, taken, "number {number}");
        assert!(
            taken || !peer.peer.take_output().is_empty(),
            "it is answered"
        );
    }
}

/// One side wants TACK and the other does not know it: plain TCP, with all that it has, whoever
/// opens.
#[test]
fn towards_a_peer_without_tack_nothing_is_different() {
    let plain = Config {
        ack: "delayed:2".parse().expect("a policy"),
        time_wait: secs(600),
        ..Config::default()
    };
    let wants = Config {
        ack: "tack".parse().expect("a policy"),
        ..plain.clone()
    };
    let packets = |client: &Config, server: &Config| {
        let seen = Rc::new(Cell::new((0, 0)));
        let counts = seen.clone();
        let forward = Model::default().judged(move |packet| {
            let options = &packet.segment.header.options;
            let (ours, stamped) = counts.get();
            let later = !packet.segment.header.flags.syn();
            counts.set((
                ours + u32::from(later && options.tack.is_some()),
                stamped + u32::from(later && options.timestamps.is_some()),
            ));
            Fate::Pass
        });
        let mut pair = Pair::new(1, forward, Model::default());
        pair.listen(server);
        pair.connect(client);
        pair.transfer(300_000, 300_000, secs(60));
        (pair.packets, seen.get())
    };
    let (legacy, (ours, stamped)) = packets(&plain, &plain);
    assert!(ours == 0 && stamped > 100);
    assert_eq!(packets(&wants, &plain), (legacy, (0, stamped)));
    assert_eq!(packets(&plain, &wants), (legacy, (0, stamped)));
    let (_, (ours, stamped)) = packets(&wants, &wants);
    assert!(ours > 100 && stamped == 0);
}
