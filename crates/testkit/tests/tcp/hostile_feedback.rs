//! Peers that lie in TACK's reports (docs/wire-format.md, "What is invalid" and "What a hostile peer can do"): nothing they
//! say moves what it must not, and the worst that they achieve is a slow connection of their own.

use std::cell::Cell;
use std::rc::Rc;

use proptest::prelude::*;
use tack_base::Rate;
use tack_tcp::{Algorithm, CloseReason, Config, Stats};
use tack_testkit::peer::Output;
use tack_testkit::{Fate, Model, Pair, Side};
use tack_wire::tack::{DataStamp, ListsWriter, LossReport, Report, ReportKind, Sync, TackOption};
use tack_wire::{Flags, Header, SeqNum};

use crate::settings::{ms, secs};
use crate::tack_peer::{RTT_MS, TackPeer, echo, stamp, tack};

/// Payload of a full segment with a stamp.
const FULL: u32 = 1448;

/// A connection with ten full segments in flight, numbers 0 to 9, half a second after they left.
fn with_flight() -> TackPeer {
    let mut peer = TackPeer::new(tack());
    let left = peer.write(100_000);
    assert_eq!(left.len(), 10);
    assert_eq!(stamp(&left[9]).number, 9);
    peer.peer.wait(ms(RTT_MS));
    peer
}

/// Lists of these blocks and gaps.
fn lists(blocks: &[(u64, u64)], gaps: &[(u64, u64)]) -> Vec<u8> {
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

/// What must be the same after a segment that was refused.
fn without_refusals(stats: Stats) -> Stats {
    Stats {
        dropped_segments: 0,
        invalid_reports: 0,
        ..stats
    }
}

/// `act` lets one segment arrive that has to be refused: counted, without an answer, and without a trace.
fn refused(what: &str, act: impl FnOnce(&mut TackPeer)) {
    let mut peer = with_flight();
    let before = peer.stats();
    act(&mut peer);
    let after = peer.stats();
    assert_eq!(
        (after.invalid_reports, after.dropped_segments),
        (before.invalid_reports + 1, before.dropped_segments + 1),
        "{what}"
    );
    assert_eq!(without_refusals(after), without_refusals(before), "{what}");
    assert!(peer.peer.take_output().is_empty(), "{what}");
    // And an honest report is still understood.
    let report = peer.report(9);
    peer.send_report(1 + 10 * FULL, report, &[]);
    assert_eq!(peer.stats().bytes_acked, u64::from(10 * FULL), "{what}");
}

#[test]
fn numbers_that_were_not_sent() {
    for largest in [10, 11, 1 << 20, u32::MAX - 1, 1 << 31, (1 << 31) + 9] {
        refused("largest", |peer| {
            let report = peer.report(largest);
            peer.send_report(1, report, &[]);
        });
    }
    for (before, after, largest) in [
        (3, 5, 10),
        (9, 10, 9),
        (3, 6, 5),
        (5, 5, 9),
        (6, 5, 9),
        (u32::MAX, 3, 9),
        (u32::MAX - 1, 3, 9),
    ] {
        refused("gap of a loss report", |peer| {
            let loss = LossReport {
                lists: false,
                loss_rate: 0,
                number: peer.number,
                largest,
                largest_delay: 0,
                above: 0,
                before_gap: before,
                after_gap: after,
            };
            peer.send_loss(1, loss, &[]);
        });
    }
    // Nine below 8 would be number -1; and nothing is missing where nothing came.
    for (largest, gap) in [
        (8, (9, 1)),
        (8, (u64::from(u32::MAX), 1)),
        (u32::MAX, (1, 1)),
    ] {
        refused("listed gap", |peer| {
            let report = Report {
                lists: true,
                ..peer.report(largest)
            };
            peer.send_report(1, report, &lists(&[], &[gap]));
        });
    }
}

#[test]
fn bytes_that_were_not_sent_or_cannot_have_arrived() {
    let beyond = u64::from(10 * FULL);
    for block in [
        (beyond, 1),
        (1, beyond),
        (u64::from(FULL), u64::from(u32::MAX)),
        (u64::from(u32::MAX), 1),
    ] {
        refused("block", |peer| {
            let report = Report {
                lists: true,
                ..peer.report(9)
            };
            peer.send_report(1, report, &lists(&[block], &[]));
        });
    }
    // Number 2 is the largest that came: the fourth segment is not here, nor is anything above.
    refused(
        "cumulative acknowledgement beyond the largest number",
        |peer| {
            let report = peer.report(2);
            peer.send_report(1 + 4 * FULL, report, &[]);
        },
    );
    refused("block beyond the largest number", |peer| {
        let report = Report {
            lists: true,
            ..peer.report(2)
        };
        let block = (u64::from(5 * FULL), u64::from(FULL));
        peer.send_report(1, report, &lists(&[block], &[]));
    });
    refused("acknowledgement of data while nothing came", |peer| {
        let report = peer.report(u32::MAX);
        peer.send_report(1 + FULL, report, &[]);
    });
}

#[test]
fn data_fields_that_are_no_lists() {
    let sound = lists(&[(u64::from(FULL), 10)], &[(2, 1)]);
    let mut fields = vec![
        Vec::new(),
        vec![0; 3],
        [&sound[..], &[0]].concat(),
        sound[..sound.len() - 1].to_vec(),
        vec![0xff; 1400],
        [&[0xff; 4][..], &[1; 1396]].concat(),
        [&[0, 2, 0, 0][..], &[10, 5, 7, 4]].concat(),
        [&[0, 2, 0, 0][..], &[5, 1, 10, 5]].concat(),
        [&[0, 0, 0, 2][..], &[2, 1, 4, 1]].concat(),
        [&[0, 0, 0, 1][..], &[2, 3]].concat(),
        [&[0, 1, 0, 0][..], &[5, 0]].concat(),
    ];
    fields.push([&[2, 188, 0, 0][..], &[1; 1396]].concat());
    for field in fields {
        refused(&format!("{field:?}"), |peer| {
            let report = Report {
                lists: true,
                ..peer.report(9)
            };
            peer.send_report(1, report, &field);
        });
    }
    refused("a field that no flag announces", |peer| {
        let report = peer.report(9);
        peer.send_report(1, report, &sound);
    });
    refused("a sync with a data field", |peer| {
        let sync = TackOption::Sync(Sync {
            startup: false,
            ack_loss_rate: 0,
            number: 1,
            rtt_min: 1,
        });
        let header = peer.header(1, 1, Flags::ACK, Some(sync));
        peer.send(&header, &[1, 2, 3]);
    });
    for flag in [Flags::FIN, Flags::SYN] {
        refused("a report that takes sequence space", |peer| {
            let report = TackOption::Report(peer.report(9));
            let header = peer.header(1, 1, Flags::ACK.with(flag), Some(report));
            peer.send(&header, &[]);
        });
    }
}

/// RFC 5961 §5.2 comes first, with or without a report: an acknowledgement of what was never sent is challenged.
#[test]
fn acknowledgements_of_data_that_was_not_sent() {
    let mut peer = with_flight();
    let before = peer.stats();
    let report = peer.report(9);
    peer.send_report(1 + 10 * FULL + 1, report, &[]);
    let after = peer.stats();
    assert_eq!(peer.peer.take_output().len(), 1, "one challenge");
    assert_eq!(after.dropped_segments, before.dropped_segments + 1);
    assert_eq!(
        (
            after.bytes_acked,
            after.cwnd,
            after.bytes_in_flight,
            after.srtt
        ),
        (0, before.cwnd, before.bytes_in_flight, before.srtt)
    );
    for _ in 0..1000 {
        peer.send_report(1 + 11 * FULL, report, &[]);
    }
    let challenges = peer.peer.take_output().len();
    assert!(challenges < 200, "{challenges} answers to 1000 lies");
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

/// Every number is said to be lost, a thousand times a second, by a peer that claims a round trip of a microsecond: what leaves
/// again is what window and pacing let out, and no segment leaves more often than the clock allows.
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
        // Whatever a window holds, once each half of the shortest round trip believed; the reports come each millisecond.
        assert!(
            bytes as u64 <= 1000 * 10 * u64::from(FULL),
            "{congestion}: {bytes} bytes"
        );
        assert_eq!(stats.bytes_acked, 0);
    }
}

/// Lists of ever more single bytes take no memory without bound: more blocks than segments nobody has.
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

/// Periods and round trips of nonsense: the retransmission timeout stays within a second of what RFC 6298 says.
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

/// A data sender that floods and then is silent, having told of a round trip of no time: one acknowledgement at most for each
/// segment and few in the silence, all lists together as long as what came, and gaps without end take no memory without end.
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

/// Who is not on the path and guesses: neither data outside the window, nor impossible acknowledgements, nor numbers far ahead
/// make copies of the genuine data that follows, and no foreign option ends TACK.
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

/// Syncs with a RTTmin of nothing, of a microsecond and of an hour, with every loss rate: acknowledgements stay at most one for
/// each segment, and data is delivered.
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

/// Without agreement the options mean nothing: acknowledgements are plain, and lists are bytes that came before.
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
fn lists_with_data() {
    let mut peer = with_flight();
    // Under a stamp they are data like any other bytes: never read as lists.
    let field = lists(&[], &[(9, 9)]);
    let number = peer.next_data;
    peer.send_data(1, field.len(), number);
    assert_eq!(peer.stats().retransmitted_segments, 0);
    // Under a report they are no data, whatever the sequence number.
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

const OPTIMISTIC: &str = "acknowledged before it came";

/// What one receiver does to the headers of its acknowledgements.
type Lie = fn(&mut Header, &Seen);

/// What it saw of the sender, as it would on the wire.
#[derive(Debug, Default)]
struct Seen {
    /// End of the newest segment that left the sender, and its PKT.SEQ.
    end: Cell<u32>,
    number: Cell<u32>,
}

/// Bytes that the liar's application got in ten seconds over 10 Mbit/s and 40 ms, and bytes that the sender sent for it.
fn goodput(congestion: Algorithm, lie: Lie) -> (u64, u64) {
    let mut pair = ten_seconds(congestion, None, lie);
    let read = pair.app(Side::Server).read;
    let sent = pair.connection(Side::Client).stats(pair.now()).data_bytes;
    (read, sent)
}

/// Ten seconds over 10 Mbit/s and 40 ms.
fn ten_seconds(congestion: Algorithm, audit: Option<u32>, lie: Lie) -> Pair {
    let seen = Rc::new(Seen::default());
    let (sender, receiver) = (seen.clone(), seen);
    let mut forward =
        Model::wire(ms(20), Rate::from_bits_per_sec(10_000_000)).judged(move |packet| {
            if let Some(TackOption::Data(stamp)) = packet.segment.header.options.tack {
                let end = packet.segment.header.seq + packet.segment.payload.len() as u32;
                sender.end.set(end.0);
                sender.number.set(stamp.number);
            }
            Fate::Pass
        });
    forward.queue = 34;
    let backward = Model {
        delay: ms(20),
        ..Model::default()
    }
    .rewritten(move |header| {
        if !header.flags.syn() {
            lie(header, &receiver);
        }
    });
    let config = Config {
        congestion,
        ack: "tack".parse().expect("a policy"),
        audit,
        ..Config::default()
    };
    let mut pair = Pair::open(1, &config, forward, backward);
    pair.establish(secs(5));
    pair.send(Side::Client, 1 << 30);
    pair.run_for(secs(10));
    pair
}

fn report_of(header: &mut Header) -> Option<&mut Report> {
    match &mut header.options.tack {
        Some(TackOption::Report(report)) => Some(report),
        _ => None,
    }
}

/// Nothing that left is ever missing, for this receiver.
fn optimist(header: &mut Header, seen: &Seen) {
    let end = SeqNum(seen.end.get());
    if end.0 == 0 || !end.after(header.ack) {
        return;
    }
    header.ack = end;
    match &mut header.options.tack {
        Some(TackOption::Report(report)) => {
            report.largest = seen.number.get();
            report.lists = false;
            report.above = 0;
            report.rate = Some(u64::MAX);
        }
        Some(TackOption::Loss(_)) => header.options.tack = None,
        _ => {}
    }
}

/// Whatever a receiver says of rates, times, losses and periods, it gets no more than an honest one, for any controller.
#[test]
fn lies_gain_nothing() {
    let lies: [(&str, Lie); 11] = [
        ("all that left has come, unnamed", |header, seen| {
            let above = seen.end.get().wrapping_sub(header.ack.0);
            if let Some(report) = report_of(header)
                && above < 1 << 30
            {
                report.above = above;
            }
        }),
        ("a rate beyond everything", |header, _| {
            if let Some(report) = report_of(header) {
                report.rate = Some(u64::MAX);
            }
        }),
        (
            "a rate beyond everything, for the first of a batch",
            |header, seen| {
                let back = header.ack.0.wrapping_sub(1) % 14_480;
                if let Some(report) = report_of(header) {
                    report.rate = Some(u64::MAX);
                    // As if the rest of the batch had not come yet.
                    if seen.number.get() > 20 && back > 1448 {
                        report.largest = report.largest.wrapping_sub(back / 1448 - 1);
                        header.ack = header.ack - (back - 1448);
                    }
                }
            },
        ),
        ("no rate", |header, _| {
            if let Some(report) = report_of(header) {
                report.rate = Some(0);
            }
        }),
        ("arrived long ago", |header, _| {
            if let Some(report) = report_of(header) {
                report.largest_delay += 39_000;
                if let Some(timing) = &mut report.timing {
                    timing.delay += 39_000;
                }
            }
        }),
        ("arrived this moment", |header, _| {
            if let Some(report) = report_of(header) {
                report.largest_delay = 0;
                if let Some(timing) = &mut report.timing {
                    timing.delay = 0;
                }
            }
        }),
        ("echoes of nothing", |header, _| {
            if let Some(report) = report_of(header)
                && let Some(timing) = &mut report.timing
            {
                timing.departure ^= 0x0000_5a5a;
            }
        }),
        ("the longest period", |header, _| {
            if let Some(report) = report_of(header) {
                report.period = u32::MAX;
            }
        }),
        ("no period", |header, _| {
            if let Some(report) = report_of(header) {
                report.period = 0;
            }
        }),
        ("no loss reports", |header, _| {
            if let Some(TackOption::Loss(loss)) = &mut header.options.tack {
                loss.before_gap = loss.after_gap.wrapping_sub(1);
            }
        }),
        // What got lost is not sent again, so the stream stops at the first loss.
        (OPTIMISTIC, optimist),
    ];
    for congestion in Algorithm::ALL {
        let (honest, honestly_sent) = goodput(congestion, |_, _| {});
        assert!(honest > 8_000_000, "{congestion}: {honest}");
        for (what, lie) in lies {
            let (got, sent) = goodput(congestion, lie);
            println!("{congestion}, {what}: {got} bytes of {sent}, honest {honest}");
            // Who acknowledges what it did not get can hide congestion, as with every TCP; other lies only make
            // it lose more of what it sends.
            assert!(
                what == OPTIMISTIC || sent <= honestly_sent + honestly_sent / 4,
                "{congestion}, {what}: {sent} bytes left, {honestly_sent} for an honest peer"
            );
            // Two per cent: that much is luck of the queue.
            assert!(
                got <= honest + honest / 50,
                "{congestion}, {what}: {got} is more than {honest}"
            );
        }
    }
}

/// A segment that was kept back cannot be acknowledged: who does so all the same is found out, soon. An honest peer loses
/// next to nothing by it.
#[test]
fn audits_find_out_who_acknowledges_what_did_not_come() {
    for congestion in Algorithm::ALL {
        let mut pair = ten_seconds(congestion, Some(50), optimist);
        let closed = pair.app(Side::Client).closed();
        assert_eq!(closed, Some(CloseReason::Dishonest), "{congestion}");
        // Seventy-five segments at most lie between two audits.
        let sent = pair.packets[0];
        assert!(sent < 1000, "{congestion}: {sent} packets");

        let (honest, _) = goodput(congestion, |_, _| {});
        let mut pair = ten_seconds(congestion, Some(200), |_, _| {});
        let stats = pair.connection(Side::Client).stats(pair.now());
        let read = pair.app(Side::Server).read;
        println!(
            "{congestion}: {read} with {} audits, {honest} without",
            stats.audits
        );
        assert!(stats.audits > 30, "{congestion}: {stats:?}");
        assert!(read > honest / 100 * 97, "{congestion}: {read}, {honest}");
        assert_eq!(stats.rto_count, 0, "{congestion}");
    }
}

/// One thing that a hostile peer sends.
#[derive(Clone, Debug)]
enum Hostile {
    Report {
        kind: u8,
        ack: i16,
        largest: i16,
        number: i8,
        delays: (u32, u32),
        echo: Option<i16>,
        rate: Option<u64>,
        period: u32,
        window: u16,
        blocks: Vec<(u16, u16)>,
        gaps: Vec<(u8, u8)>,
        cut: u8,
    },
    Loss {
        ack: i16,
        largest: i16,
        number: i8,
        gap: (i16, i16),
    },
    Sync {
        rtt_min: u32,
        loss: u16,
        skip: i8,
    },
    Data {
        at: i16,
        len: u8,
        number: i32,
        fin: bool,
    },
    Plain {
        ack: i16,
        window: u16,
    },
    Write(u16),
    Wait(u16),
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let report = (
        (any::<u8>(), -3000_i16..3000, -30_i16..3, -2_i8..4),
        (
            any::<(u32, u32)>(),
            any::<Option<i16>>(),
            any::<Option<u64>>(),
        ),
        (any::<u32>(), any::<u16>(), 0_u8..40),
        proptest::collection::vec((0_u16..6000, 1_u16..3000), 0..6),
        proptest::collection::vec((1_u8..40, 1_u8..6), 0..4),
    )
        .prop_map(
            |(
                (kind, ack, largest, number),
                (delays, echo, rate),
                (period, window, cut),
                blocks,
                gaps,
            )| {
                Hostile::Report {
                    kind,
                    ack,
                    largest,
                    number,
                    delays,
                    echo,
                    rate,
                    period,
                    window,
                    blocks,
                    gaps,
                    cut,
                }
            },
        );
    prop_oneof![
        4 => report,
        1 => (-3000_i16..3000, -30_i16..3, -2_i8..4, (-30_i16..3, -30_i16..3))
            .prop_map(|(ack, largest, number, gap)| Hostile::Loss { ack, largest, number, gap }),
        1 => any::<(u32, u16, i8)>().prop_map(|(rtt_min, loss, skip)| Hostile::Sync { rtt_min, loss, skip }),
        2 => (-50_i16..300, any::<u8>(), prop_oneof![3 => -20_i32..20, 1 => any::<i32>()], any::<bool>())
            .prop_map(|(at, len, number, fin)| Hostile::Data { at, len, number, fin: fin && len > 250 }),
        1 => (-3000_i16..3000, any::<u16>()).prop_map(|(ack, window)| Hostile::Plain { ack, window }),
        1 => (1_u16..20_000).prop_map(Hostile::Write),
        2 => (0_u16..3000).prop_map(Hostile::Wait),
    ]
}

/// Where the connection stands, as its peer sees it.
#[derive(Debug, Default)]
struct Track {
    acked: u32,
    largest: u32,
    departure: u32,
    received: u32,
}

fn perform(peer: &mut TackPeer, track: &mut Track, act: &Hostile) {
    match act {
        Hostile::Report {
            kind,
            ack,
            largest,
            number,
            delays,
            echo: echoed,
            rate,
            period,
            window,
            blocks,
            gaps,
            cut,
        } => {
            let mut out = vec![0; 200];
            let mut writer = ListsWriter::new(&mut out);
            for &(start, len) in blocks {
                writer.block(u64::from(start)..u64::from(start) + u64::from(len));
            }
            for &(distance, count) in gaps {
                writer.gap(distance.into(), count.into());
            }
            let len = writer.finish();
            out.truncate(len.saturating_sub(usize::from(cut / 20)));
            let report = Report {
                kind: [
                    ReportKind::Tack,
                    ReportKind::Window,
                    ReportKind::Event,
                    ReportKind::Frequency,
                ][usize::from(kind % 4)],
                lists: !out.is_empty() ^ (*cut == 7),
                number: peer.number.wrapping_add_signed((*number).into()),
                largest_delay: delays.0,
                timing: echoed.and_then(|off| {
                    echo(track.departure.wrapping_add_signed(off.into()), delays.1)
                }),
                rate: *rate,
                period: *period,
                ..peer.report(track.largest.wrapping_add_signed((*largest).into()))
            };
            let ack = track.acked.wrapping_add_signed((*ack).into());
            let mut header = peer.header(
                track.received.wrapping_sub(out.len() as u32),
                ack,
                Flags::ACK,
                Some(TackOption::Report(report)),
            );
            header.window = *window;
            peer.send(&header, &out);
            peer.number = peer.number.max(report.number.wrapping_add(1));
        }
        Hostile::Loss {
            ack,
            largest,
            number,
            gap,
        } => {
            let near = |off: i16| track.largest.wrapping_add_signed(off.into());
            let loss = LossReport {
                lists: false,
                loss_rate: 0,
                number: peer.number.wrapping_add_signed((*number).into()),
                largest: near(*largest),
                largest_delay: 0,
                above: 0,
                before_gap: near(gap.0),
                after_gap: near(gap.1),
            };
            peer.send_loss(track.acked.wrapping_add_signed((*ack).into()), loss, &[]);
        }
        Hostile::Sync {
            rtt_min,
            loss,
            skip,
        } => {
            peer.sync = peer.sync.wrapping_add_signed((*skip).into());
            if peer.sync == u32::MAX {
                peer.sync = 0;
            }
            peer.send_sync(track.acked, *rtt_min, *loss);
        }
        Hostile::Data {
            at,
            len,
            number,
            fin,
        } => {
            let position = track.received.wrapping_add_signed((*at).into()).max(1);
            let number = peer.next_data.wrapping_add_signed(*number);
            if *fin {
                let stamp = TackOption::Data(tack_wire::tack::DataStamp {
                    number,
                    departure: 0,
                });
                let header = peer.header(
                    position,
                    track.acked,
                    Flags::ACK.with(Flags::FIN),
                    Some(stamp),
                );
                peer.send(&header, &[]);
            } else {
                peer.send_data(position, usize::from(*len), number);
            }
        }
        Hostile::Plain { ack, window } => {
            let ack = track.acked.wrapping_add_signed((*ack).into());
            let mut header = peer.header(track.received, ack, Flags::ACK, None);
            header.window = *window;
            peer.send(&header, &[]);
        }
        Hostile::Write(len) => {
            for output in peer.write(usize::from(*len)) {
                track.see(&output);
            }
        }
        Hostile::Wait(micros) => peer
            .peer
            .wait(std::time::Duration::from_micros(u64::from(*micros) * 10)),
    }
}

impl Track {
    /// Something left; true when it is an acknowledgement and nothing else.
    fn see(&mut self, output: &Output) -> bool {
        match output.header.options.tack {
            Some(TackOption::Data(stamp)) => {
                (self.largest, self.departure) = (stamp.number, stamp.departure);
                false
            }
            Some(TackOption::Sync(_)) => false,
            Some(TackOption::Report(_) | TackOption::Loss(_)) => true,
            // After a fallback data has no stamp.
            _ => output.payload.is_empty() && !output.header.flags.fin(),
        }
    }
}

proptest! {
    /// Anything near the truth, in any order: invariants hold after each segment (the peer checks them), one segment draws one
    /// acknowledgement at most, and whatever leaves is the stream that was written.
    #[test]
    fn hostile_peers(acts in proptest::collection::vec(hostile(), 1..120), choice in 0..Algorithm::ALL.len()) {
        let mut peer = TackPeer::new(Config { congestion: Algorithm::ALL[choice], ..tack() });
        let mut track = Track { acked: 1, received: 1, ..Track::default() };
        for output in peer.write(20_000) {
            track.see(&output);
        }
        for act in &acts {
            perform(&mut peer, &mut track, act);
            let mut answers = 0;
            for output in peer.peer.take_output() {
                answers += u32::from(track.see(&output));
            }
            if !matches!(act, Hostile::Wait(_)) {
                prop_assert!(answers <= 1, "{answers} acknowledgements after {act:?}");
            }
            track.acked = 1 + peer.stats().bytes_acked as u32;
            let mut buf = [0; 4096];
            if let Ok(len) = peer.peer.with(|connection, now| connection.read(now, &mut buf)) {
                track.received += len as u32;
            }
            peer.peer.take_output();
        }
    }
}
