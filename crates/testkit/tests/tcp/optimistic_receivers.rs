//! Receivers that acknowledge what did not come, for a rate that they do not have
//! (docs/wire-format.md, "What a hostile peer can do"): what they gain, and how audits find them
//! out.

use std::cell::Cell;
use std::rc::Rc;

use tack_base::Rate;
use tack_tcp::config::Audits;
use tack_tcp::{Algorithm, CloseReason, Config};
use tack_testkit::{Fate, Model, Pair, Side};
use tack_wire::tack::{Report, TackOption};
use tack_wire::{Header, SeqNum};

use crate::settings::{ms, secs};

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

/// Bytes that the liar's application got in ten seconds over 10 Mbit/s and 40 ms, and bytes that
/// the sender sent for it.
fn goodput(congestion: Algorithm, lie: Lie) -> (u64, u64) {
    let mut pair = ten_seconds(congestion, Audits::Never, lie);
    let read = pair.app(Side::Server).read;
    let sent = pair.connection(Side::Client).stats(pair.now()).data_bytes;
    (read, sent)
}

/// Ten seconds over 10 Mbit/s and 40 ms.
fn ten_seconds(congestion: Algorithm, audit: Audits, lie: Lie) -> Pair {
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

/// Whatever a receiver says of rates, times, losses and periods, it gets no more than an honest
/// one, for any controller. (Long form: all controllers.)
#[test]
fn lies_gain_nothing() {
    let lies: [(&str, Lie); 11] = [
        (
            "everything sent has come, without blocks",
            |header, seen| {
                let above = seen.end.get().wrapping_sub(header.ack.0);
                if let Some(report) = report_of(header)
                    && above < 1 << 30
                {
                    report.above = above;
                }
            },
        ),
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
    for &congestion in crate::algorithms() {
        let (honest, honestly_sent) = goodput(congestion, |_, _| {});
        assert!(honest > 8_000_000, "{congestion}: {honest}");
        for (what, lie) in lies {
            let (got, sent) = goodput(congestion, lie);
            println!("{congestion}, {what}: {got} bytes of {sent}, honest {honest}");
            // Who acknowledges what it did not get can hide congestion, as with every TCP; other
            // lies only make it lose more of what it sends.
            assert!(
                what == OPTIMISTIC || sent <= honestly_sent + honestly_sent / 4,
                "{congestion}, {what}: {sent} bytes left, {honestly_sent} for an honest peer"
            );
            // Two per cent: that much is luck of the queue. Who hides the delay from a controller
            // that follows it gets what that leaves of the link: three.
            let follows_delay = matches!(congestion, Algorithm::Vegas | Algorithm::Compound);
            let luck = if what == "arrived long ago" && follows_delay {
                honest * 3 / 100
            } else {
                honest / 50
            };
            assert!(
                got <= honest + luck,
                "{congestion}, {what}: {got} is more than {honest}"
            );
        }
    }
}

/// A segment that was kept back cannot be acknowledged: who does so all the same is found out,
/// soon. An honest peer loses next to nothing by it.
#[test]
fn audits_find_out_who_acknowledges_what_did_not_come() {
    for congestion in Algorithm::ALL {
        let mut pair = ten_seconds(congestion, Audits::Every(50), optimist);
        let closed = pair.app(Side::Client).closed();
        assert_eq!(closed, Some(CloseReason::Dishonest), "{congestion}");
        // Seventy-five segments at most lie between two audits.
        let sent = pair.packets[0];
        assert!(sent < 1000, "{congestion}: {sent} packets");

        let (honest, _) = goodput(congestion, |_, _| {});
        let mut pair = ten_seconds(congestion, Audits::Every(200), |_, _| {});
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

/// A hole holds the receive window up. Where the window limits, each audit stops the sender for
/// about a round trip.
#[test]
fn audits_cost_little_where_the_receive_window_limits() {
    let bytes = 25_000_000;
    // bdp: 0.5 MB.
    let took = |audit, congestion, receive_buffer| {
        let mut backward = Model::wire(ms(20), Rate::from_bits_per_sec(100_000_000));
        backward.queue = 340;
        let forward = Model {
            delay: ms(20),
            ..Model::default()
        };
        let config = Config {
            audit,
            congestion,
            receive_buffer,
            ..Config::default()
        };
        let mut pair = Pair::open(1, &config, forward, backward);
        pair.establish(secs(5));
        pair.send(Side::Server, bytes);
        pair.run_until(secs(60), |pair| pair.app(Side::Client).read == bytes);
        let audits = pair.connection(Side::Server).stats(pair.now()).audits;
        (pair.elapsed().as_secs_f64(), audits)
    };
    for congestion in Algorithm::ALL.into_iter().take(3) {
        for receive_buffer in [250_000, 500_000, 750_000, 2_000_000] {
            let (audited, audits) = took(Audits::default(), congestion, receive_buffer);
            let (free, _) = took(Audits::Never, congestion, receive_buffer);
            println!(
                "{congestion} {receive_buffer} {audits} audits {:.4}",
                audited / free
            );
            // Where the window has no room for a hole, audits are rare.
            assert!(audits > 0 || receive_buffer < 2_000_000);
            assert!(audited < 1.01 * free, "{congestion} {receive_buffer}");
        }
    }
}

/// A server audits who connects to it, without being told to: what that costs an honest client is
/// not felt, and the other kind is found out.
#[test]
fn listeners_audit_by_default() {
    let served = |audit, bytes: u64, delay, queue, receive_buffer, lie: Lie| {
        let seen = Rc::new(Seen::default());
        let (sender, receiver) = (seen.clone(), seen);
        let mut backward =
            Model::wire(delay, Rate::from_bits_per_sec(100_000_000)).judged(move |packet| {
                if let Some(TackOption::Data(stamp)) = packet.segment.header.options.tack {
                    let end = packet.segment.header.seq + packet.segment.payload.len() as u32;
                    sender.end.set(end.0);
                    sender.number.set(stamp.number);
                }
                Fate::Pass
            });
        backward.queue = queue;
        let forward = Model {
            delay,
            ..Model::default()
        }
        .rewritten(move |header| {
            if !header.flags.syn() {
                lie(header, &receiver);
            }
        });
        let config = Config {
            audit,
            receive_buffer,
            ..Config::default()
        };
        let mut pair = Pair::open(1, &config, forward, backward);
        pair.establish(secs(5));
        pair.send(Side::Server, bytes);
        pair.run_until(secs(60), |pair| {
            pair.app(Side::Client).read == bytes || pair.app(Side::Server).closed().is_some()
        });
        pair
    };
    let bytes = 100_000_000;
    let ample = 64 << 20;
    let [mut audited, mut trusted] = [Audits::default(), Audits::Never]
        .map(|audit| served(audit, bytes, ms(20), 340, ample, |_, _| {}));
    let (cost, free) = (audited.elapsed(), trusted.elapsed());
    assert_eq!(audited.app(Side::Client).read, bytes);
    assert_eq!(trusted.app(Side::Client).read, bytes);
    let audits = audited.connection(Side::Server).stats(audited.now()).audits;
    println!("{cost:?} with {audits} audits, {free:?} without");
    assert!(audits > 10, "{audits}");
    assert!(cost.as_secs_f64() < 1.01 * free.as_secs_f64());
    // What got lost would stop this one by itself, sooner.
    let mut pair = served(Audits::default(), bytes, ms(20), 1_000_000, ample, optimist);
    let closed = pair.app(Side::Server).closed();
    assert_eq!(closed, Some(CloseReason::Dishonest));
}
