//! One connection over loopback, as fast as it goes, beside quinn and the kernel's TCP in the same
//! run.
//!
//! `cargo bench -p tack --bench throughput -- [--seconds N] [--rounds N] [--only
//! tack,quinn,kernel]`, where a name stands for all that begin with it.
//!
//! Each side is a process of its own with one thread, as an application would be. Everything moves
//! in packets of 1,500 bytes: tack and quinn in UDP payloads of 1,472 (quinn and `tack tls`
//! encrypt), the kernel over a veth pair with TSO, GSO and GRO off. What cannot run is reported as
//! skipped with the reason. The contestants take turns, so that a busy machine is busy for all.

mod contest;
mod kernel;
mod process;
mod quinn;
mod tack_pair;

use std::time::Duration;

use contest::{Contestant, Outcome};
use tack::Audits;
use tack_pair::Content::{Clear, Encrypted};
use tack_pair::{Content, Tack};

/// As often as a listener audits by default. The sender connects here, and would not.
const AUDITS: Audits = Audits::Every(4096);

struct Options {
    seconds: u64,
    rounds: usize,
    only: Option<Vec<String>>,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            seconds: 4,
            rounds: 3,
            only: None,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} wants a value"));
            match arg.as_str() {
                // What cargo adds.
                "--bench" => {}
                "--seconds" => {
                    options.seconds = value()?
                        .parse()
                        .map_err(|error| format!("--seconds: {error}"))?
                }
                "--rounds" => {
                    options.rounds = value()?
                        .parse()
                        .map_err(|error| format!("--rounds: {error}"))?
                }
                "--only" => options.only = Some(value()?.split(',').map(str::to_owned).collect()),
                other => {
                    return Err(format!(
                        "unknown argument {other}; known: --seconds, --rounds, --only"
                    ));
                }
            }
        }
        Ok(options)
    }

    fn wants(&self, name: &str) -> bool {
        self.only
            .as_ref()
            .is_none_or(|only| only.iter().any(|wanted| name.starts_with(wanted)))
    }
}

fn tack(
    name: &'static str,
    content: Content,
    congestion: &'static str,
    audits: Audits,
) -> Box<dyn Contestant> {
    Box::new(Tack::new(name, content, congestion, audits))
}

fn main() {
    // The benchmark starts itself again for each side of a connection.
    if let Some(role) = std::env::args().nth(1)
        && let Some(side) = role.strip_prefix("role=")
    {
        tack_pair::play(side, std::env::args().skip(2));
        return;
    }
    // `cargo test --all-targets` starts benchmarks too, without this argument.
    if !std::env::args().any(|arg| arg == "--bench") {
        println!("to measure: cargo bench -p tack --bench throughput");
        return;
    }
    let options = Options::parse(std::env::args().skip(1)).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(2);
    });
    let time = Duration::from_secs(options.seconds.max(1));
    let contestants: Vec<Box<dyn Contestant>> = vec![
        tack("tack bbr", Clear, "bbr", Audits::Never),
        tack("tack audits", Clear, "bbr", AUDITS),
        tack("tack cubic", Clear, "cubic", Audits::Never),
        tack("tack tls", Encrypted, "bbr", Audits::Never),
        tack("tack tls cubic", Encrypted, "cubic", Audits::Never),
        Box::new(quinn::Quinn),
        Box::new(kernel::Kernel),
    ];
    let mut results: Vec<(&str, Vec<Outcome>)> = Vec::new();
    let mut skipped = Vec::new();
    for contestant in contestants
        .iter()
        .filter(|contestant| options.wants(contestant.name()))
    {
        match contestant.prepare() {
            Ok(()) => results.push((contestant.name(), Vec::new())),
            Err(reason) => skipped.push((contestant.name(), reason)),
        }
    }
    for round in 0..options.rounds.max(1) {
        results.retain_mut(|(name, outcomes)| {
            let contestant = contestants
                .iter()
                .find(|contestant| contestant.name() == *name)
                .expect("listed above");
            match contestant.run(time) {
                Ok(outcome) => {
                    println!("round {}: {name:<14} {outcome}", round + 1);
                    outcomes.push(outcome);
                    true
                }
                Err(reason) => {
                    skipped.push((name, reason));
                    false
                }
            }
        });
    }
    contest::report(&results, &skipped);
}
