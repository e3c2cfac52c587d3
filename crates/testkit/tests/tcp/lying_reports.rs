//! Receivers that lie by omission: their reports say less than they know. The receiver is whatever
//! sits at the other end; whatever it leaves out, the sender gets its data through by itself,
//! within a few retransmission timeouts of each loss.

use std::collections::VecDeque;
use std::time::Duration;

use tack_base::Rate;
use tack_tcp::{Algorithm, Config};
use tack_testkit::adversary::{list, relist};
use tack_testkit::{Fate, Model, Pair, Side};
use tack_wire::tack::Lists;
use tack_wire::{Header, TackOption};

use crate::settings::{ms, secs};

/// RTO of a path of 20 ms, as it is with TACK at most: its floor of 200 ms and the 40 ms that a
/// remainder may wait.
const RTO: Duration = ms(240);
/// A timeout that backed off three times: what no transfer may rest longer for.
const FEW_TIMEOUTS: Duration = ms(15 * 240);
type Lie = Box<dyn FnMut(&mut Header, &mut Vec<u8>)>;

/// Three in every hundred segments are lost, towards the receiver.
fn periodic() -> [Model; 2] {
    let forward = Model::default().judged(|packet| {
        let is_lost =
            !packet.segment.payload.is_empty() && [30, 31, 77].contains(&(packet.index % 100));
        if is_lost { Fate::Drop } else { Fate::Pass }
    });
    [forward, Model::default()]
}

/// Loss both ways, reordering and copies, on a path with a short queue.
fn random() -> [Model; 2] {
    let forward = Model {
        loss: 0.03,
        duplicate: 0.02,
        reorder: 0.05,
        reorder_by: ms(15),
        queue: 30,
        ..Model::wire(ms(10), Rate::from_bits_per_sec(8_000_000))
    };
    let backward = Model {
        loss: 0.05,
        ..Model::default()
    };
    [forward, backward]
}

/// Segments of full size are dropped silently.
fn black_hole() -> [Model; 2] {
    let forward = Model {
        mtu: 1400,
        ..Model::wire(ms(10), Rate::from_bits_per_sec(10_000_000))
    };
    [forward, Model::default()]
}

/// What is sent where.
struct Transfer {
    path: fn() -> [Model; 2],
    bytes: u64,
    /// One so small fills up behind a hole, and then nothing new can leave.
    receive_buffer: usize,
    seeds: u64,
}

const TRANSFERS: [Transfer; 7] = [
    Transfer {
        path: periodic,
        bytes: 300_000,
        receive_buffer: 6 << 20,
        seeds: 1,
    },
    Transfer {
        path: periodic,
        bytes: 300_000,
        receive_buffer: 40_000,
        seeds: 1,
    },
    Transfer {
        path: random,
        bytes: 300_000,
        receive_buffer: 6 << 20,
        seeds: 2,
    },
    Transfer {
        path: random,
        bytes: 300_000,
        receive_buffer: 40_000,
        seeds: 4,
    },
    Transfer {
        path: black_hole,
        bytes: 7_340,
        receive_buffer: 6 << 20,
        seeds: 1,
    },
    Transfer {
        path: black_hole,
        bytes: 12_000,
        receive_buffer: 6 << 20,
        seeds: 1,
    },
    Transfer {
        path: black_hole,
        bytes: 100_000,
        receive_buffer: 6 << 20,
        seeds: 1,
    },
];

/// Transfers over paths with losses, towards a receiver that changes its reports as `lie` says, for
/// each controller. `made` makes a lie afresh. None hangs: all of them are run before any
/// complaint.
fn outlive(name: &str, made: fn() -> Lie) {
    let mut complaints = Vec::new();
    for congestion in Algorithm::ALL {
        for (index, transfer) in TRANSFERS.iter().enumerate() {
            for seed in 0..transfer.seeds {
                if let Err(why) = transfer.run(seed, congestion, made()) {
                    complaints.push(format!(
                        "{name}, {congestion}, transfer {index}, seed {seed}: {why}"
                    ));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

impl Transfer {
    /// Each hole is filled within a few timeouts: progress never rests longer.
    fn run(&self, seed: u64, congestion: Algorithm, lie: Lie) -> Result<(), String> {
        let config = Config {
            congestion,
            ack: "tack".parse().expect("a policy"),
            receive_buffer: self.receive_buffer,
            initial_receive_buffer: self.receive_buffer.min(64 << 10),
            user_timeout: None,
            time_wait: secs(600),
            ..Config::default()
        };
        let [forward, mut backward] = (self.path)();
        backward.rewriter = Some(lie);
        let mut pair = Pair::open(seed, &config, forward, backward);
        pair.establish(secs(20));
        pair.send(Side::Client, self.bytes);
        pair.finish(Side::Client);
        pair.finish(Side::Server);
        while !pair.app(Side::Server).ended {
            let before = acknowledged(&pair);
            let moved = pair.run_until(FEW_TIMEOUTS, |pair| {
                acknowledged(pair) != before || pair.app(Side::Server).ended
            });
            let (elapsed, read) = (pair.elapsed(), pair.app(Side::Server).read);
            if !moved {
                return Err(format!(
                    "no more than {read} bytes arrived until {elapsed:?}"
                ));
            }
            // Some ten losses: even if each cost several timeouts it were less.
            if elapsed > RTO * 100 {
                return Err(format!(
                    "no more than {read} bytes arrived within {elapsed:?}"
                ));
            }
        }
        Ok(())
    }
}

fn acknowledged(pair: &Pair) -> u64 {
    pair.connection(Side::Client).stats(pair.now()).bytes_acked
}

/// The option of a report or of a loss.
fn is_report(header: &Header) -> bool {
    matches!(
        header.options.tack,
        Some(TackOption::Report(_) | TackOption::Loss(_))
    )
}

fn is_loss(header: &Header) -> bool {
    matches!(header.options.tack, Some(TackOption::Loss(_)))
}

/// A report that names a loss becomes one that names none, and says as much else as before.
fn conceal(header: &mut Header) {
    if let Some(TackOption::Loss(loss)) = &mut header.options.tack {
        loss.before_gap = loss.after_gap.wrapping_sub(1);
    }
}

fn no_gaps(header: &mut Header, payload: &mut Vec<u8>) {
    conceal(header);
    relist(header, payload, |_, is_block| is_block);
}

/// The honest one, to see that the bounds are those of the lies.
#[test]
fn honest_reports() {
    outlive("honest", || Box::new(|_, _| {}));
}

#[test]
fn the_oldest_gap_is_forgotten() {
    outlive("forgotten", || {
        Box::new(|header, payload| {
            conceal(header);
            relist(header, payload, |index, is_block| is_block || index > 0);
        })
    });
}

#[test]
fn losses_are_never_reported() {
    outlive("no losses", || Box::new(no_gaps));
}

#[test]
fn what_arrived_above_a_hole_is_never_reported() {
    outlive("no blocks", || {
        Box::new(|header, payload| relist(header, payload, |_, is_block| !is_block))
    });
}

/// Neither losses nor blocks, nor how much waits: the cumulative acknowledgement, and figures.
#[test]
fn only_the_cumulative_acknowledgement_is_reported() {
    outlive("cumulative", || {
        Box::new(|header, payload| {
            conceal(header);
            relist(header, payload, |_, _| false);
            match &mut header.options.tack {
                Some(TackOption::Report(report)) => {
                    report.above = 0;
                    report.timing = None;
                    report.rate = None;
                }
                Some(TackOption::Loss(loss)) => loss.above = 0,
                _ => {}
            }
        })
    });
}

/// Numbers that a report calls lost.
type Gaps = Vec<(u32, u32)>;

/// What a report lists as lost, as the first number and how many.
fn gaps(header: &Header, payload: &[u8]) -> Gaps {
    let (Some(TackOption::Report(report)), Ok(lists)) =
        (header.options.tack, Lists::parse(payload))
    else {
        return Vec::new();
    };
    let number = |distance: u64| report.largest.wrapping_sub(distance as u32);
    let listed = lists.gaps();
    listed
        .map(|(distance, count)| (number(distance), count as u32))
        .collect()
}

/// The report lists these, and nothing else.
fn say(header: &mut Header, payload: &mut Vec<u8>, gaps: &Gaps) {
    let Some(TackOption::Report(report)) = header.options.tack else {
        return;
    };
    let listed = gaps.iter().map(|(number, count)| {
        let distance = report.largest.wrapping_sub(*number);
        (distance.into(), (*count).into())
    });
    list(header, payload, &[], &listed.collect::<Vec<_>>());
}

/// From the first losses on the receiver names those, and no others, in each report.
#[test]
fn the_list_of_losses_freezes() {
    outlive("frozen", || {
        let mut frozen = Gaps::new();
        Box::new(move |header, payload| {
            conceal(header);
            if frozen.is_empty() {
                frozen = gaps(header, payload);
            }
            say(header, payload, &frozen);
        })
    });
}

/// Each report lists the losses that one long before it did.
#[test]
fn old_lists_are_repeated() {
    outlive("old", || {
        let mut old = VecDeque::new();
        Box::new(move |header, payload| {
            conceal(header);
            old.push_back(gaps(header, payload));
            let listed = if old.len() > 16 {
                old.pop_front()
            } else {
                None
            };
            say(header, payload, &listed.unwrap_or_default());
        })
    });
}

/// From the tenth report on there is none: acknowledgements come without.
#[test]
fn reports_stop() {
    outlive("stopped", || {
        let mut reports = 0;
        Box::new(move |header, payload| {
            reports += u32::from(is_report(header));
            if is_report(header) && reports >= 10 {
                relist(header, payload, |_, _| false);
                header.options.tack = None;
            }
        })
    });
}

/// One report in eight is what it was, the others name nothing.
#[test]
fn losses_are_reported_now_and_then() {
    outlive("now and then", || {
        let mut reports = 0_u64;
        Box::new(move |header, payload| {
            reports += u64::from(is_report(header));
            if !reports.is_multiple_of(8) {
                conceal(header);
                relist(header, payload, |_, _| false);
            }
        })
    });
}

/// The same gap in each report, whatever happens to it.
#[test]
fn one_gap_is_claimed_for_ever() {
    outlive("one gap", || {
        Box::new(|header, payload| {
            no_gaps(header, payload);
            if let Some(TackOption::Loss(loss)) = &mut header.options.tack
                && loss.largest != u32::MAX
                && loss.largest > 8
            {
                (loss.before_gap, loss.after_gap) = (5, 7);
            }
        })
    });
}

/// One acknowledgement in five has lost its option on the way; one with lists then looks like bytes
/// that came before.
#[test]
fn options_are_missing_now_and_then() {
    outlive("now and then without", || {
        let mut count = 0_u64;
        Box::new(move |header, _| {
            count += u64::from(is_report(header));
            if count % 5 == 2 && is_report(header) {
                header.options.tack = None;
            }
        })
    });
}

/// Loss reports alone get lost, and what periodic ones list of losses.
#[test]
fn loss_reports_are_lost() {
    outlive("loss reports", || {
        Box::new(|header, payload| {
            if is_loss(header) {
                no_gaps(header, payload);
            } else {
                relist(header, payload, |_, is_block| is_block);
            }
        })
    });
}

/// The receiver falls silent for two seconds in the middle: what was sent before, and what got
/// lost, comes through after it.
#[test]
fn reports_stop_for_a_while() {
    for congestion in Algorithm::ALL {
        let config = Config {
            congestion,
            ack: "tack".parse().expect("a policy"),
            user_timeout: None,
            ..Config::default()
        };
        let forward = Model {
            loss: 0.02,
            ..Model::default()
        };
        let mut pair = Pair::open(3, &config, forward, Model::default());
        pair.establish(secs(5));
        let now = pair.now();
        pair.model(Side::Server)
            .blackouts
            .push(now + ms(60)..now + ms(2060));
        pair.send(Side::Client, 300_000);
        pair.finish(Side::Client);
        // The timeout has backed off to at most twice the silence when it is over.
        let done = pair.run_until(ms(2060) * 2 + RTO * 20, |pair| pair.app(Side::Server).ended);
        let app = pair.app(Side::Server).clone();
        assert!(done, "{congestion}: {app:?}\n{}", pair.trace());
    }
}

/// Which figures of a report are those of an old one.
#[derive(Clone, Copy)]
struct Old {
    largest: bool,
    timing: bool,
}

/// From the seventh report on these figures are those of that one; lists and cumulative
/// acknowledgements go on.
fn repeat_figures(old: Old) -> Lie {
    let mut reports = 0;
    let mut first = None;
    Box::new(move |header, _| {
        if let Some(TackOption::Report(report)) = &mut header.options.tack {
            reports += 1;
            if reports > 6 {
                let first = *first.get_or_insert(*report);
                if old.timing {
                    report.timing = first.timing;
                }
                if old.largest {
                    (report.largest, report.largest_delay) = (first.largest, first.largest_delay);
                }
            }
        }
    })
}

#[test]
fn old_timing_is_repeated() {
    outlive("old timing", || {
        repeat_figures(Old {
            largest: false,
            timing: true,
        })
    });
}

#[test]
fn old_figures_are_repeated() {
    outlive("old figures", || {
        repeat_figures(Old {
            largest: true,
            timing: true,
        })
    });
}

/// The newest number does not grow any more, and nothing tells of times.
#[test]
fn the_newest_number_freezes_and_times_are_missing() {
    outlive("frozen number", || {
        let mut acknowledgements = 0;
        let mut largest = None;
        Box::new(move |header, _| {
            acknowledgements += 1;
            if acknowledgements > 6
                && let Some(TackOption::Report(report)) = &mut header.options.tack
            {
                report.largest = *largest.get_or_insert(report.largest);
                report.timing = None;
            }
        })
    });
}

/// The same, and nothing is told of losses, of blocks, and of how much waits.
#[test]
fn nothing_but_the_cumulative_acknowledgement_is_new() {
    outlive("frozen", || {
        let mut acknowledgements = 0;
        let mut largest = None;
        Box::new(move |header, payload| {
            acknowledgements += 1;
            if acknowledgements <= 6 || header.flags.syn() {
                return;
            }
            relist(header, payload, |_, _| false);
            match &mut header.options.tack {
                Some(TackOption::Report(report)) => {
                    report.largest = *largest.get_or_insert(report.largest);
                    report.timing = None;
                    report.above = 0;
                }
                Some(TackOption::Loss(_)) => header.options.tack = None,
                _ => {}
            }
        })
    });
}

/// A whole old report with each new number.
#[test]
fn an_old_report_is_sent_as_new() {
    outlive("old report", || {
        let mut reports = 0;
        let mut old = None;
        Box::new(move |header, payload| {
            relist(header, payload, |_, _| false);
            match &mut header.options.tack {
                Some(TackOption::Loss(_)) => header.options.tack = None,
                Some(TackOption::Report(report)) => {
                    reports += 1;
                    if reports > 6 {
                        let number = report.number;
                        *report = *old.get_or_insert(*report);
                        report.number = number;
                        report.lists = false;
                    }
                }
                _ => {}
            }
        })
    });
}
