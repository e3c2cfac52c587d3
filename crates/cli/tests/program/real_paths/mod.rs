//! The random search of `crates/sim/tests/differential/` over two real endpoints: the same paths
//! and the same judgement, but UDP sockets, tokio and the machine's clock at both ends, and the
//! emulator's links between them.
//!
//! The emulator has a wireless link on every path: a path of wires alone gets 802.11ac in front of
//! them, which is faster than any wire that is taken here. What the emulator cannot do to real
//! datagrams, or what a real host does by itself, is left out: paths with such faults are passed
//! over.
//!
//! The quick form is a test of a few short transfers: each ends, with the right bytes, and no
//! sender stalls. The long form takes numbers of paths and also compares speed, retransmissions and
//! acknowledgements, on paths where the machine kept up; a path that differs is run four times
//! more, and the medians decide:
//!
//! ```text
//! TACK_REAL_SEARCH=1..99 cargo test --release -p tack-cli --test program real_paths -- --nocapture
//! ```

#![allow(
    dead_code,
    reason = "the search of the simulator uses more of what is shared"
)]

#[path = "../../../../sim/tests/differential/draft.rs"]
mod draft;
#[path = "../../../../sim/tests/differential/faults.rs"]
mod faults;
#[path = "../../../../sim/tests/differential/figures.rs"]
mod figures;
#[path = "../../../../sim/tests/differential/judge.rs"]
mod judge;
#[path = "../../../../sim/tests/differential/paths.rs"]
mod paths;
mod run;

use std::time::Duration;

use tack_sim::{Scenario, parse_seeds};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use figures::Figures;
use judge::{Flag, judge};
use paths::{Path, Work, path};
use run::{Outcome, measure};

/// The policy that every path is also run with.
const PLAIN: &str = "delayed:2";
/// Fastest wire that is taken, bits per second: both ends, and the emulator between them, must keep
/// up on a small machine that does other things.
const FASTEST: f64 = 40e6;
/// Faults that rewrite TCP headers, which the emulator carries unread, or that the simulator's
/// hosts make: real ones have their own.
const LEFT_OUT: [&str; 5] = ["Strip", "Isn", "Skew", "Lateness", "ShortSends"];
/// Where the quick form begins to look for paths, and how many of them it takes.
const QUICK_FROM: u64 = 90_001;
const QUICK: usize = 4;
/// Paths that the long form runs at a time.
const AT_A_TIME: usize = 2;
/// Further runs of a path that differs in its first one.
const FURTHER: u64 = 4;

/// The path's links and flow, as the emulator takes them; `None` where it cannot.
fn links(path: &Path, ack: &str) -> Option<Scenario> {
    let is_left_out = |fault: &String| LEFT_OUT.iter().any(|name| fault.starts_with(name));
    if path.shared || path.both_ways || path.work == Work::Video {
        return None;
    }
    if path.faults.iter().any(is_left_out) || path.toml.contains("bulk:pause") {
        return None;
    }
    let mut overrides = vec![format!("flow.0.ack={ack}")];
    let is_wired = !path.toml.contains("[wlan]");
    if is_wired {
        overrides.push("wlan.preset=tack-ac".into());
    }
    let scenario = Scenario::from_toml("path", &path.toml, &overrides)
        .unwrap_or_else(|error| panic!("{error}\n{}", path.toml));
    let rate = scenario
        .wired
        .forward
        .bottleneck
        .rate
        .average()
        .bits_per_sec() as f64;
    let is_slow = match is_wired {
        true => rate <= FASTEST,
        false => !path.toml.contains("tack-n"),
    };
    is_slow.then_some(scenario)
}

/// A path that was run with both policies.
struct Verdict {
    path: Path,
    flags: Vec<Flag>,
    tack: Figures,
    plain: Figures,
    /// The machine did not keep up: speed and counts were not compared.
    is_doubtful: bool,
}

impl Verdict {
    fn print(&self) {
        let names: Vec<_> = self.flags.iter().map(ToString::to_string).collect();
        println!(
            "# ---- path {}: {}{} ({:?}, {}; {})\n{}{}{}",
            self.path.number,
            names.join(", "),
            if self.is_doubtful {
                " the machine did not keep up"
            } else {
                ""
            },
            self.path.work,
            self.path.congestion,
            self.path.faults.join(" "),
            self.tack.line("tack"),
            self.plain.line(PLAIN),
            if self.flags.is_empty() {
                ""
            } else {
                &self.path.toml
            },
        );
    }
}

/// One run with each policy, one after the other, so that they do not take each other's processor.
async fn both(path: &Path, seed: u64) -> [Outcome; 2] {
    let run = |ack| measure(path, links(path, ack).expect("it was taken"), seed);
    [run("tack").await, run(PLAIN).await]
}

/// Flags that hold however busy the machine is.
fn is_sure(flag: Flag) -> bool {
    matches!(flag, Flag::Broken | Flag::Stall | Flag::Hang)
}

/// Runs a path once with each policy, and `further` times more if it differs then.
async fn search(path: Path, further: u64) -> Verdict {
    let mut runs: [Vec<Figures>; 2] = [Vec::new(), Vec::new()];
    let mut is_doubtful = false;
    for nth in 0..=further {
        let [tack, plain] = both(&path, path.number + 1_000_000 * nth).await;
        let flags = judge(&path, &tack.figures, &plain.figures);
        let is_trusted = tack.is_trusted && plain.is_trusted;
        let is_certain = flags
            .iter()
            .any(|flag| flag.is_certain(&path, &tack.figures, &plain.figures));
        if is_certain || (nth == 0 && (flags.is_empty() || !is_trusted)) {
            let flags = flags
                .into_iter()
                .filter(|flag| is_trusted || is_sure(*flag));
            return Verdict {
                flags: flags.collect(),
                path,
                tack: tack.figures,
                plain: plain.figures,
                is_doubtful: !is_trusted,
            };
        }
        is_doubtful |= !is_trusted;
        runs[0].push(tack.figures);
        runs[1].push(plain.figures);
    }
    let [tack, plain] = runs.map(|runs| Figures::median(&runs));
    let mut flags = judge(&path, &tack, &plain);
    flags.retain(|flag| !is_doubtful || is_sure(*flag));
    Verdict {
        path,
        flags,
        tack,
        plain,
        is_doubtful,
    }
}

/// Runs paths, so many at a time.
async fn search_all(paths: Vec<Path>, at_a_time: usize, further: u64) -> Vec<Verdict> {
    let mut left = paths.into_iter();
    let (mut running, mut verdicts) = (JoinSet::new(), Vec::new());
    loop {
        while running.len() < at_a_time
            && let Some(path) = left.next()
        {
            running.spawn(search(path, further));
        }
        let Some(verdict) = running.join_next().await else {
            return verdicts;
        };
        let verdict = verdict.expect("no run panics");
        verdict.print();
        verdicts.push(verdict);
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

fn is_usable(path: &Path) -> bool {
    links(path, "tack").is_some()
}

/// A transfer that takes a second or two where nothing goes wrong.
fn is_short(path: &Path) -> bool {
    let Some(links) = links(path, "tack").filter(|_| path.work == Work::Transfer) else {
        return false;
    };
    let bits = links.flows[0]
        .bytes
        .map_or(f64::MAX, |bytes| 8.0 * bytes as f64);
    let rate = (links.wired.forward.bottleneck.rate.average().bits_per_sec() as f64).min(5e6);
    (0.2..1.5).contains(&(bits / rate))
}

/// Short transfers over paths with two to four faults at once, between real sockets: all end, with
/// the right bytes, and no sender stands still while its path delivers. With numbers of paths, a
/// comparison with the plain policy as well.
#[test]
fn transfers_over_real_sockets_live_through_several_faults_at_once() {
    let asked = std::env::var("TACK_REAL_SEARCH").ok();
    let paths: Vec<_> = match &asked {
        Some(numbers) => {
            let numbers = parse_seeds(numbers).expect("TACK_REAL_SEARCH names paths");
            numbers.into_iter().map(path).filter(is_usable).collect()
        }
        None => (QUICK_FROM..)
            .map(path)
            .filter(is_short)
            .take(QUICK)
            .collect(),
    };
    let is_long = asked.is_some();
    let (at_a_time, further) = if is_long {
        (AT_A_TIME, FURTHER)
    } else {
        (QUICK, 0)
    };
    let begin = tokio::time::Instant::now();
    let verdicts = runtime().block_on(search_all(paths, at_a_time, further));
    let doubtful = verdicts.iter().filter(|verdict| verdict.is_doubtful);
    println!(
        "# {} paths in {:.0?}; on {} of them the machine did not keep up",
        verdicts.len(),
        Duration::from_secs(begin.elapsed().as_secs()),
        doubtful.count()
    );
    // What depends on the machine is for people to look at.
    let flagged: Vec<_> = verdicts
        .iter()
        .filter(|verdict| verdict.flags.iter().any(|flag| is_long || is_sure(*flag)))
        .map(|verdict| verdict.path.number)
        .collect();
    assert!(flagged.is_empty(), "paths {flagged:?} are flagged");
}
