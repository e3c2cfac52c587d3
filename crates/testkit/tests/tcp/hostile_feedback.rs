//! Peers whose reports are well-formed lies, and segments of attackers who are not on the path
//! (docs/wire-format.md, "What a hostile peer can do"): the worst that they achieve is a slow
//! connection of their own.

use tack_tcp::{Algorithm, Config};
use tack_wire::tack::{DataStamp, ListsWriter, Report, Sync, TackOption};
use tack_wire::{Flags, SeqNum};

use crate::settings::{ms, secs};
use crate::tack_peer::{RTT_MS, TackPeer, echo, stamp, tack};

/// Payload of a full segment with a stamp.
pub(crate) const FULL: u32 = 1448;

/// A connection with ten full segments in flight, numbers 0 to 9, half a second after they left.
pub(crate) fn with_flight() -> TackPeer {
    let mut peer = TackPeer::new(tack());
    let left = peer.write(100_000);
    assert_eq!(left.len(), 10);
    assert_eq!(stamp(&left[9]).number, 9);
    peer.peer.wait(ms(RTT_MS));
    peer
}

/// Lists of these blocks and gaps.
pub(crate) fn lists(blocks: &[(u64, u64)], gaps: &[(u64, u64)]) -> Vec<u8> {
    let mut out = vec![0; 1400];
    let mut writer = ListsWriter::new(&mut out);
    for &(start, len) in blocks {
        assert!(writer.block(start..start + len));
    }
    for &(distance, count) in gaps {
        assert!(writer.gap(distance, count));
    }
    let len = writer.finish();
    out.truncate(len);
    out
}

/// A copy of an old report neither moves the window nor names losses nor measures anything.
#[test]
fn replayed_and_overtaken_reports() {
    let mut peer = with_flight();
    let gap = lists(&[(u64::from(FULL), u64::from(2 * FULL))], &[(3, 1)]);
    let old = Report {
        lists: true,
        ..peer.report(6)
    };
    let newer = Report {
        number: 1,
        ..peer.report(9)
    };
    // The newer one overtakes: it closes the window.
    let mut header = peer.header(1, 1 + 4 * FULL, Flags::ACK, Some(TackOption::Report(newer)));
    header.window = 100;
    peer.send(&header, &[]);
    peer.peer.take_output();
    let before = peer.stats();
    assert_eq!(before.snd_wnd, 100);
    for _ in 0..3 {
        peer.send_report(1 + 3 * FULL, old, &gap);
        peer.send_report(1 + 4 * FULL, Report { number: 1, ..newer }, &[]);
    }
    let after = peer.stats();
    assert!(peer.peer.take_output().is_empty());
    assert_eq!(after.acks_received, before.acks_received + 6);
    assert_eq!(
        (
            after.snd_wnd,
            after.retransmitted_segments,
            after.fast_recoveries,
            after.cwnd,
            after.min_rtt,
            after.srtt
        ),
        (100, 0, 0, before.cwnd, before.min_rtt, before.srtt)
    );
}

/// Every number is said to be lost, a thousand times a second, by a peer that claims a round trip
/// of a microsecond: what leaves again is what window and pacing let out, and no segment leaves
/// more often than the clock allows.
#[test]
fn losses_that_are_none() {
    for congestion in Algorithm::ALL {
        let mut peer = TackPeer::new(Config {
            congestion,
            ..tack()
        });
        let mut left = peer.write(1_000_000);
        let mut bytes = 0;
        let mut largest_window = 0;
        for _ in 0..1000 {
            peer.peer.wait(ms(1));
            let stats = peer.stats();
            largest_window = largest_window.max(stats.cwnd);
            let largest = left.last().map_or(9, |output| stamp(output).number);
            let departure = left.last().map_or(0, |output| stamp(output).departure);
            let report = Report {
                lists: largest > 0,
                timing: echo(departure, 999),
                rate: Some(u64::MAX),
                ..peer.report(largest)
            };
            let all = lists(&[], &[(u64::from(largest), u64::from(largest))]);
            peer.send_report(1, report, &all);
            let now = peer.peer.take_output();
            bytes += now.iter().map(|output| output.payload.len()).sum::<usize>();
            if !now.is_empty() {
                left = now
                    .into_iter()
                    .filter(|output| !output.payload.is_empty())
                    .collect();
            }
        }
        let stats = peer.stats();
        assert!(
            stats.retransmitted_segments > 0,
            "{congestion}: it can slow itself down"
        );
        assert!(
            stats.cwnd <= 10 * u64::from(FULL) && largest_window <= 10 * u64::from(FULL) + 1,
            "{congestion}: losses make no window: {largest_window}"
        );
        // Whatever a window holds, once each half of the shortest round trip believed; the reports
        // come each millisecond.
        assert!(
            bytes as u64 <= 1000 * 10 * u64::from(FULL),
            "{congestion}: {bytes} bytes"
        );
        assert_eq!(stats.bytes_acked, 0);
    }
}

/// Lists of ever more single bytes take no memory without bound: more blocks than segments nobody
/// has.
#[test]
fn blocks_of_single_bytes() {
    let mut peer = with_flight();
    for round in 0..200_u64 {
        let blocks: Vec<_> = (0..60)
            .rev()
            .map(|n| (2 + 2 * (round * 60 + n), 1))
            .take_while(|(start, _)| *start > 0)
            .filter(|(start, len)| start + len <= u64::from(10 * FULL))
            .collect();
        if blocks.is_empty() {
            break;
        }
        let report = Report {
            lists: true,
            ..peer.report(9)
        };
        peer.send_report(1, report, &lists(&blocks, &[]));
    }
    // Not one whole segment was reported: all of them are still in flight.
    assert_eq!(peer.stats().bytes_in_flight, u64::from(10 * FULL));
    // The whole of them still counts.
    let report = peer.report(9);
    peer.send_report(1 + 10 * FULL, report, &[]);
    assert_eq!(peer.stats().bytes_acked, u64::from(10 * FULL));
}

/// Echoes of departures that never were, held for times that cannot be, make no round trips.
#[test]
fn lying_echoes() {
    let mut peer = TackPeer::new(tack());
    let left = peer.write(100_000);
    peer.peer.wait(ms(RTT_MS));
    let before = peer.stats();
    let departure = stamp(&left[9]).departure;
    for (departure, delay) in [
        (departure + 1, 0),
        (departure.wrapping_add(1 << 31), 0),
        (departure + 30_000, 1000),
        (departure + 1_000_000, 0),
        (departure, 40_000),
        (departure, 40_001),
        (departure, u32::MAX),
    ] {
        let report = Report {
            timing: echo(departure, delay),
            // Nor does the newest segment tell anything, if it is said to have come before it left.
            largest_delay: 40_001,
            ..peer.report(9)
        };
        peer.send_report(1, report, &[]);
        let after = peer.stats();
        assert_eq!(
            (after.min_rtt, after.srtt, after.rttvar),
            (before.min_rtt, before.srtt, before.rttvar),
            "{departure} {delay}"
        );
    }
    assert_eq!(before.min_rtt, Some(ms(RTT_MS)));
}

/// Periods and round trips of nonsense: the retransmission timeout stays within a second of what
/// RFC 6298 says.
#[test]
fn lying_periods() {
    let mut peer = with_flight();
    let report = Report {
        period: u32::MAX,
        ..peer.report(0)
    };
    peer.send_report(1, report, &[]);
    peer.peer.take_output();
    // A probe or a timeout comes within 2 s, though a period of 71 minutes was claimed.
    peer.peer.wait(secs(2));
    assert!(!peer.peer.take_output().is_empty());
}

/// A data sender that floods and then is silent, having told of a round trip of no time: one
/// acknowledgement at most for each segment and few in the silence, all lists together as long as
/// what came, and gaps without end take no memory without end.
#[test]
fn floods_of_gaps_and_duplicates() {
    let mut peer = TackPeer::new(tack());
    peer.send_sync(1, 1, u16::MAX);
    let (mut answers, mut segments) = (0, 0);
    let (mut came, mut listed) = (0, 0);
    let mut number = 0_u32;
    for round in 0..3000_u32 {
        // Every second number is missing, and every byte but the first few comes again and again.
        number = number.wrapping_add(if round % 100 == 99 { 1 << 23 } else { 2 });
        let len = 1 + (round % 7) as usize;
        peer.send_data(1 + 10 * (round % 50), len, number);
        // And some of what was skipped comes late.
        peer.send_data(1 + 10 * (round % 50), 1, number.wrapping_sub(1 + round % 9));
        segments += 2;
        came += len + 1;
        for output in peer.peer.take_output() {
            listed += output.payload.len();
            answers += 1;
        }
    }
    assert!(
        answers <= segments,
        "{answers} answers to {segments} segments"
    );
    let begin = peer.peer.elapsed();
    for _ in 0..50 {
        peer.peer.wait(ms(1));
        for output in peer.peer.take_output() {
            listed += output.payload.len();
            answers += 1;
        }
    }
    assert_eq!(peer.peer.elapsed() - begin, ms(50));
    assert!(answers <= segments + 50, "{answers} of {segments}");
    // An empty pair of lists takes four bytes, whatever came.
    assert!(
        listed <= came + 4 * answers,
        "{listed} bytes listed, {came} came"
    );
}

/// An attacker off the path that guesses: neither data outside the window, nor impossible
/// acknowledgements, nor numbers far ahead make copies of the genuine data that follows, and no
/// foreign option ends TACK.
#[test]
fn blind_segments_move_no_numbers() {
    let mut peer = TackPeer::new(tack());
    for index in 0..4 {
        peer.send_data(1 + index * 1000, 1000, index);
    }
    let stamp = |number| {
        Some(TackOption::Data(DataStamp {
            number,
            departure: 7,
        }))
    };
    let sync = Sync {
        startup: false,
        ack_loss_rate: 0,
        number: 9,
        rtt_min: 1,
        rtt: 1,
    };
    for (seq, ack, option) in [
        (1_000_000_000, 1, stamp(1 << 30)),
        (3_000_000_000, 1, stamp(1 << 30)),
        (1, 2_000_000_000, stamp(1 << 30)),
        (3_000_000_000, 1, Some(TackOption::Sync(sync))),
        (3_000_000_000, 1, None),
    ] {
        let header = peer.header(seq, ack, Flags::ACK, option);
        peer.send(&header, b"guess");
    }
    peer.peer.take_output();
    for index in 4..50 {
        peer.send_data(1 + index * 1000, 1000, index);
    }
    let readable = peer.peer.with(|connection, _| connection.readable());
    assert_eq!(readable, 50_000);
    peer.peer.wait(ms(100));
    let answers = peer.peer.take_output();
    let last = answers.last().expect("data is acknowledged");
    assert!(
        matches!(&last.header.options.tack, Some(TackOption::Report(report)) if report.largest == 49),
        "{last:?}"
    );
}

/// Numbers start anew with three segments in a row whose numbers seem old, over a round trip, but
/// not with such that somebody outside the path made up.
#[test]
fn blind_segments_do_not_make_numbers_start_anew() {
    let mut peer = TackPeer::new(tack());
    let first = 1 << 20;
    peer.send_data(1, 1000, first);
    let old = Some(TackOption::Data(DataStamp {
        number: 5,
        departure: 7,
    }));
    for seq in [1_000_000_000, 2_000_000_000, 3_000_000_000, 1_500_000_000] {
        let header = peer.header(seq, 1, Flags::ACK, old);
        peer.send(&header, b"guess");
        peer.peer.wait(ms(RTT_MS));
    }
    peer.peer.take_output();
    peer.send_data(1001, 1000, first + 1);
    peer.send_data(2001, 1000, first + 2);
    peer.peer.wait(ms(100));
    let answers = peer.peer.take_output();
    let last = answers.last().expect("data is acknowledged");
    assert!(
        matches!(&last.header.options.tack, Some(TackOption::Report(report)) if report.largest == first + 2),
        "{last:?}"
    );
}

/// Syncs with a RTTmin of nothing, of a microsecond and of an hour, with every loss rate:
/// acknowledgements stay at most one for each segment, and data is delivered.
#[test]
fn lying_syncs() {
    for rtt_min in [0, 1, 1000, u32::MAX] {
        let mut peer = TackPeer::new(tack());
        let mut position = 1;
        let mut answers = 0;
        for number in 0..500_u32 {
            peer.send_sync(1, if number % 2 == 0 { rtt_min } else { 40_000 }, u16::MAX);
            let to_sync: usize = peer.peer.take_output().len();
            assert!(to_sync <= 1, "{to_sync} answers to a sync");
            peer.send_data(position, 1000, number);
            position += 1000;
            answers += peer.peer.take_output().len();
            peer.peer.wait(ms(1));
            answers += peer.peer.take_output().len();
            let read = peer
                .peer
                .with(|connection, now| connection.read(now, &mut [0; 2000]));
            assert_eq!(read, Ok(1000));
            answers += peer.peer.take_output().len();
        }
        assert!(
            answers <= 1000,
            "RTTmin {rtt_min}: {answers} answers to 500 segments"
        );
    }
}

/// Without agreement the options mean nothing: acknowledgements are plain, and lists are bytes that
/// came before.
#[test]
fn options_without_negotiation() {
    let mut peer = TackPeer::answering(tack(), false);
    let left = peer.write(100_000);
    assert!(
        left.iter()
            .all(|output| output.header.options.tack.is_none())
    );
    let full = left[0].payload.len() as u32;
    peer.peer.wait(ms(RTT_MS));
    let report = Report {
        lists: true,
        ..peer.report(9)
    };
    // Lists in their place: an old duplicate, which draws an acknowledgement and nothing else.
    peer.send_report(1, report, &lists(&[], &[(9, 9)]));
    let answers = peer.peer.take_output();
    assert!(answers.iter().all(|output| output.payload.is_empty()));
    assert_eq!(peer.stats().retransmitted_segments, 0);
    // Without lists: a plain acknowledgement.
    let report = peer.report(1 << 20);
    peer.send_report(1 + 2 * full, report, &[]);
    assert_eq!(peer.stats().bytes_acked, u64::from(2 * full));
    assert_eq!(peer.stats().invalid_reports, 0);
    // Stamps on its data and syncs neither help nor harm.
    peer.send_sync(1 + 2 * full, 1, u16::MAX);
    peer.send_data(1, 1000, 77);
    peer.peer.wait(ms(100));
    let read = peer
        .peer
        .with(|connection, now| connection.read(now, &mut [0; 2000]));
    assert_eq!(read, Ok(1000));
    let acks = peer.peer.take_output();
    assert!(
        acks.iter()
            .all(|output| output.header.options.tack.is_none())
    );
}

/// Lists where data should be, with all that a data segment has.
#[test]
pub(crate) fn lists_with_data() {
    let mut peer = with_flight();
    // Under a stamp they are data like any other bytes: never read as lists.
    let field = lists(&[], &[(9, 9)]);
    let number = peer.next_data;
    peer.send_data(1, field.len(), number);
    assert_eq!(peer.stats().retransmitted_segments, 0);
    // Under a report they are not data, whatever the sequence number.
    let report = Report {
        lists: true,
        ..peer.report(9)
    };
    let mut header = peer.header(
        1 + field.len() as u32,
        1,
        Flags::ACK,
        Some(TackOption::Report(report)),
    );
    for seq in [1, 2, 100, 5000] {
        header.seq = SeqNum(2_000_000) + seq;
        peer.send(&header, &field);
    }
    let readable = peer.peer.with(|connection, _| connection.readable());
    assert_eq!(readable, field.len(), "only what came as data");
}

/// Each half timeout a report says that one more segment above the first one arrived: only the
/// cumulative acknowledgement restarts the retransmission timer (RFC 6298 §5.3). It runs out after
/// the first timeout, and up to three that retransmissions of the head are given.
#[test]
fn reports_without_cumulative_progress_do_not_keep_the_timeout_away() {
    for congestion in Algorithm::ALL {
        let mut peer = TackPeer::new(Config {
            congestion,
            ..tack()
        });
        let departure = peer
            .write(1_000_000)
            .last()
            .map_or(0, |last| stamp(last).departure);
        let first = peer.peer.elapsed();
        let step = peer.stats().rto / 2;
        for arrived in 1..=9 {
            peer.peer.wait(step);
            if peer.stats().rto_count > 0 {
                break;
            }
            let report = Report {
                lists: true,
                timing: echo(departure, 0),
                ..peer.report(arrived)
            };
            let above = lists(&[(u64::from(FULL), u64::from(arrived * FULL))], &[]);
            peer.send_report(1, report, &above);
            peer.peer.take_output();
        }
        let stats = peer.stats();
        assert_eq!(stats.bytes_acked, 0);
        let waited = peer.peer.elapsed() - first;
        assert!(
            stats.rto_count > 0,
            "{congestion}: no timeout in {waited:?}"
        );
    }
}
