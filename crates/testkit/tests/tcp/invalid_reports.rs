//! Reports that are invalid (docs/wire-format.md, "What is invalid"): the segment is counted and
//! refused, without an answer and without a trace.

use tack_tcp::Stats;
use tack_wire::Flags;
use tack_wire::tack::{LossReport, Report, Sync, TackOption};

use crate::hostile_feedback::{FULL, lists, with_flight};
use crate::tack_peer::TackPeer;

/// What must be the same after a segment that was refused.
fn without_refusals(mut stats: Stats) -> Stats {
    stats.dropped_segments = 0;
    stats.invalid_reports = 0;
    stats
}

/// `act` lets one segment arrive that has to be refused: counted, without an answer, and without a
/// trace.
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
            rtt: 1,
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

/// RFC 5961 §5.2 comes first, with or without a report: an acknowledgement of what was never sent
/// is challenged.
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
