//! The wireless network against ns-3, Bianchi's model and closed forms.
//!
//! `cargo test --release -p tack-sim --test runs wlan_validation -- --ignored`
//! writes
//! `docs/validation/wlan.md`. The other tests keep the bounds named there;
//! `TACK_LONG=1` checks every row, as CI does.

mod models;
mod reference;
mod text;

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use self::models::{Prediction, bianchi, closed_form};
use self::reference::{Effort, Row, rows};
use self::text::{COLUMNS, FAIRNESS, HEAD, SPEED, heading};
use tack_sim::{Observers, Scenario};

use crate::run::run;

/// Whether a row is checked in this form of the tests. The long form checks every row. The ordinary
/// form leaves out:
///
/// * rates of 300 Mbit/s and more;
/// * most lengths of A-MPDUs, and 4 and 8 segments for an ACK;
/// * CUBIC in downloads, which does as NewReno does, but for 2 segments for an ACK;
/// * 802.11g but for CUBIC, because it does as 802.11a does;
/// * uploads, downloads of several stations, EDCA and noise;
/// * rows that take dozens of runs, because Block ACK agreements come about or are settled.
fn is_checked(row: &Row) -> bool {
    let is_fast = row.rate.parse::<f64>().expect("Mbit/s") >= 300.0;
    let is_kept = match row.family() {
        'a' => !is_fast && (row.ampdu == 0 || row.case == "a_udp_dl"),
        'b' => {
            let is_cubic = row.congestion() == Some("cubic");
            let is_g = row.standard == "802.11g";
            let is_between = [4, 8].contains(&row.segments_per_ack());
            !is_fast
                && !is_between
                && (!is_cubic || row.segments_per_ack() == 2)
                && (!is_g || is_cubic)
        }
        'd'..='f' => false,
        _ => !is_fast,
    };
    crate::is_long() || is_kept && !row.is_settled()
}

/// What one row came to.
#[derive(Clone, Copy, Debug, Default)]
struct Ours {
    goodput: f64,
    collision: f64,
    /// Data frames in a PPDU.
    frames: f64,
    jain: f64,
}

/// How far ours may be from the reference.
#[derive(Clone, Copy, Debug)]
struct Bound {
    goodput: f64,
    collision: Option<f64>,
    jain: Option<f64>,
}

impl Bound {
    const fn goodput(goodput: f64) -> Self {
        Self {
            goodput,
            collision: None,
            jain: None,
        }
    }
}

fn bound(row: &Row) -> Option<Bound> {
    match row.family() {
        'a' | 'c' => Some(Bound {
            collision: Some(0.02),
            ..Bound::goodput(0.03)
        }),
        // With aggregation runs of a few seconds scatter by more than a percent: the long ones are
        // the reference.
        'b' if row.ampdu > 0 && !row.case.ends_with("_long") => None,
        // Two versions of BBR are two controllers.
        'b' if row.congestion() == Some("bbr") => None,
        'b' => Some(Bound::goodput(0.05)),
        // Who gets through in a full queue is a matter of chance, and most rows are of one run.
        'd' => Some(Bound {
            jain: Some(0.25),
            ..Bound::goodput(0.10)
        }),
        'e' => Some(Bound::goodput(0.10)),
        'f' => Some(Bound {
            jain: Some(0.10),
            // The counter of the reference counts failures of A-MPDUs twice. Settled rows were
            // counted on the air.
            collision: (row.is_udp() && (row.ampdu == 0 || row.is_settled())).then_some(0.02),
            ..Bound::goodput(if row.is_udp() { 0.015 } else { 0.03 })
        }),
        _ => None,
    }
}

fn measure_scenario(row: &Row, text: &str) -> Ours {
    let scenario = Scenario::from_toml("row.toml", text, &[]).expect("a right scenario");
    let effort = row.effort();
    let mut ours = Ours::default();
    for seed in 1..=effort.seeds {
        let report = run(&scenario, seed, &mut Observers::default()).expect("a run without faults");
        let wlan = report.wlan.as_ref().expect("a wireless network");
        let share = 1.0 / effort.seeds as f64;
        ours.goodput += share
            * report
                .flows
                .iter()
                .map(|flow| flow.goodput_bps)
                .sum::<f64>()
            / 1e6;
        // Frames lost to noise count as the reference counts them: unanswered is collided.
        ours.collision += share * wlan.unanswered_probability;
        ours.frames += share * wlan.mpdus_per_ppdu;
        ours.jain += share * report.fairness();
        let airtime = wlan.airtime;
        let total = airtime.data
            + airtime.tcp_ack
            + airtime.control
            + airtime.collision
            + airtime.access
            + airtime.idle;
        assert!(
            (total - 1.0).abs() < 1e-9,
            "shares of airtime add up to {total}"
        );
    }
    ours
}

/// Rows of one set-up, which the reference measured more than once, are measured once.
fn measure_all(rows: &[Row]) -> Vec<Ours> {
    let mut set_ups: Vec<(String, Effort, &Row)> = Vec::new();
    let mut which = Vec::new();
    for row in rows {
        let (text, effort) = (row.scenario(), row.effort());
        let known = set_ups
            .iter()
            .position(|(other, others, _)| *other == text && *others == effort);
        which.push(known.unwrap_or(set_ups.len()));
        if known.is_none() {
            set_ups.push((text, effort, row));
        }
    }
    let measured = in_parallel(&set_ups, |(text, _, row)| measure_scenario(row, text));
    which.into_iter().map(|index| measured[index]).collect()
}

fn in_parallel<T: Sync, R: Clone + Default + Send>(
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![R::default(); items.len()]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = work(item);
                    results.lock().expect("no panic held it")[index] = result;
                }
            });
        }
    });
    results.into_inner().expect("no panic held it")
}

fn relative(ours: f64, reference: f64) -> f64 {
    ours / reference - 1.0
}

/// What is out of bounds.
fn faults(row: &Row, ours: &Ours) -> Vec<String> {
    let Some(bound) = bound(row) else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    let difference = relative(ours.goodput, row.goodput);
    if difference.abs() > bound.goodput {
        faults.push(format!(
            "goodput {:.3} is {:+.1} % from {:.3}",
            ours.goodput,
            100.0 * difference,
            row.goodput
        ));
    }
    if let Some(most) = bound.collision
        && (ours.collision - row.collision).abs() > most
    {
        faults.push(format!(
            "collision probability {:.4}, not {:.4}",
            ours.collision, row.collision
        ));
    }
    if let Some(most) = bound.jain
        && (ours.jain - row.jain).abs() > most
    {
        faults.push(format!(
            "fairness index {:.3}, not {:.3}",
            ours.jain, row.jain
        ));
    }
    faults
}

fn check(wanted: impl Fn(&Row) -> bool) -> Vec<(Row, Ours)> {
    let rows: Vec<_> = rows()
        .into_iter()
        .filter(|row| wanted(row) && is_checked(row))
        .collect();
    assert!(!rows.is_empty());
    let mut all = Vec::new();
    let measured = measure_all(&rows);
    for (row, ours) in rows.iter().zip(&measured) {
        println!(
            "{} {} {} n={} {} q={} {}: {ours:?}, reference {:.3} {:.4} {:.3}",
            row.case,
            row.standard,
            row.rate,
            row.stations,
            row.ack_policy,
            row.queue,
            row.ampdu,
            row.goodput,
            row.collision,
            row.jain
        );
        for fault in faults(row, ours) {
            all.push(format!(
                "{} {} {} n={} {} q={}: {fault}",
                row.case, row.standard, row.rate, row.stations, row.ack_policy, row.queue
            ));
        }
    }
    assert!(
        all.is_empty(),
        "{} out of bounds:\n{}",
        all.len(),
        all.join("\n")
    );
    rows.into_iter().zip(measured).collect()
}

#[test]
fn saturated_udp_of_one_station() {
    check(|row| row.family() == 'a');
}

#[test]
fn saturated_udp_of_many_stations() {
    check(|row| row.family() == 'c');
}

#[test]
fn tcp_downloads() {
    check(|row| row.family() == 'b' && bound(row).is_some());
}

/// What the reference runs need beyond windows and delayed acknowledgements (fixed windows, no
/// pacing, their timeouts) makes no difference worth a bound: windows grow as needed, and pacing
/// fills A-MPDUs.
#[test]
fn tcp_downloads_with_plain_settings() {
    const PECULIAR: [&str; 5] = [
        "receive_window",
        "window_pacing",
        "ecn",
        "initial_rto",
        "min_rto",
    ];
    let rows: Vec<_> = rows()
        .into_iter()
        .filter(|row| row.case == "b_tcp_dl_rwnd_long" && is_checked(row))
        .collect();
    assert_eq!(rows.len(), if crate::is_long() { 7 } else { 1 });
    let measured = in_parallel(&rows, |row| {
        let text = row.scenario();
        let plain: Vec<_> = text
            .lines()
            .filter(|line| !PECULIAR.iter().any(|key| line.starts_with(key)))
            .collect();
        measure_scenario(row, &plain.join("\n"))
    });
    for (row, ours) in rows.iter().zip(&measured) {
        assert_eq!(faults(row, ours), [""; 0], "{row:?}");
    }
}

/// Figures, order and fairness of uploads, by one set of runs.
#[test]
fn tcp_uploads() {
    if !crate::is_long() {
        return;
    }
    let rows = check(|row| row.family() == 'd');
    // Where the reference differs clearly between two set-ups of as many stations, ours differs the
    // same way.
    for (row, ours) in &rows {
        for (other, theirs) in &rows {
            let by = relative(other.goodput, row.goodput);
            if row.stations == other.stations && by > 0.04 {
                let so = relative(theirs.goodput, ours.goodput);
                assert!(
                    so > by / 2.0,
                    "{} n={} q={} {} against {} q={} {}: {so:.3}, not {by:.3}",
                    row.case,
                    row.stations,
                    row.queue,
                    row.ack_policy,
                    other.case,
                    other.queue,
                    other.ack_policy
                );
            }
        }
    }
    // A queue that overflows with ACKs is unfair: it keeps newcomers out.
    let jain = |stations, queue| {
        let found = rows.iter().find(|(row, _)| {
            row.case == "d_tcp_ul"
                && row.stations == stations
                && row.queue == queue
                && row.segments_per_ack() == 1
        });
        found.expect("a row").1.jain
    };
    assert!(jain(20, 50) < 0.5 && jain(10, 50) < 0.75);
    assert!(jain(20, 50) < jain(10, 50) && jain(10, 50) < jain(5, 50));
    assert!(jain(10, 250) > 0.95 && jain(20, 250) > 0.75);
}

#[test]
fn tcp_downloads_of_several_stations() {
    if !crate::is_long() {
        return;
    }
    check(|row| row.family() == 'e');
}

/// Contention by the rules of EDCA, which count backoff slots in another way than those of DCF.
#[test]
fn contention_under_edca() {
    if !crate::is_long() {
        return;
    }
    check(|row| row.case.starts_with("f_edca"));
}

/// (Long form: 48 runs for each row.)
#[test]
fn frames_lost_to_noise() {
    if !crate::is_long() {
        return;
    }
    check(|row| row.case.starts_with("f_fer"));
}

#[test]
#[ignore = "writes docs/validation/wlan.md"]
fn write_the_table() {
    let rows = rows();
    let measured = measure_all(&rows);
    let mut text = String::from(HEAD);
    let mut family = ' ';
    for (row, ours) in rows.iter().zip(&measured) {
        if row.family() != family {
            family = row.family();
            text.push_str(heading(family));
            text.push_str(COLUMNS);
        }
        write_row(&mut text, row, ours);
    }
    write_fairness(&mut text, &rows);
    text.push_str(SPEED);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validation/wlan.md");
    std::fs::create_dir_all(std::path::Path::new(path).parent().expect("a folder"))
        .expect("a folder");
    std::fs::write(path, text).expect("the table is written");
    let out: Vec<_> = rows
        .iter()
        .zip(&measured)
        .flat_map(|(row, ours)| faults(row, ours))
        .collect();
    assert!(out.is_empty(), "{out:?}");
}

fn write_row(text: &mut String, row: &Row, ours: &Ours) {
    let closed = if row.stations == 1 {
        format!("{:.2}", closed_form(row))
    } else {
        "–".into()
    };
    let model = if row.is_udp() && row.family() == 'c' {
        Some(bianchi(row))
    } else {
        None
    };
    let (model_goodput, model_collision) = match model {
        Some(Prediction { goodput, collision }) => {
            (format!("{goodput:.2}"), format!("{collision:.3}"))
        }
        None => ("–".into(), "–".into()),
    };
    let allowed = bound(row).map_or_else(
        || "–".into(),
        |bound| format!("{} %", 100.0 * bound.goodput),
    );
    writeln!(
        text,
        "| {} | {} {} | {} | {} | {} | {} | {} | {:.2} | {:.2} | {:+.1} % | {allowed} | {closed} | {model_goodput} | {:.3} | {:.3} | {model_collision} | {:.1} | {:.1} | {:.2} | {:.2} |",
        row.case, row.standard.trim_start_matches("802."), row.rate, row.stations, row.congestion().unwrap_or("udp"),
        row.ack_policy, row.queue, row.ampdu, ours.goodput, row.goodput, 100.0 * relative(ours.goodput, row.goodput),
        ours.collision, row.collision, ours.frames, row.frames, ours.jain, row.jain,
    )
    .expect("text grows");
}

/// Fairness of uploads by when their flows begin, over the queue that overflows.
fn write_fairness(text: &mut String, rows: &[Row]) {
    let wanted: Vec<_> = rows
        .iter()
        .filter(|row| row.family() == 'd' && row.queue == 50 && row.stations >= 5)
        .collect();
    let runs: Vec<_> = wanted
        .iter()
        .flat_map(|row| SPACINGS.map(|spacing| (*row, spacing)))
        .collect();
    let measured = in_parallel(&runs, |(row, spacing)| {
        measure_scenario(row, &row.scenario_spaced(*spacing)).jain
    });
    text.push_str(FAIRNESS);
    for (row, indexes) in wanted.iter().zip(measured.chunks(SPACINGS.len())) {
        write!(
            text,
            "| {} | {} | {} |",
            row.case, row.stations, row.ack_policy
        )
        .expect("text grows");
        for jain in indexes {
            write!(text, " {jain:.2} |").expect("text grows");
        }
        writeln!(text, " {:.2} |", row.jain).expect("text grows");
    }
}

/// Milliseconds between the beginnings of flows.
const SPACINGS: [u32; 5] = [0, 20, 50, 100, 200];
