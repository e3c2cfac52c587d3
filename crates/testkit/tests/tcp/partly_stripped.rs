//! Boxes in the middle that take TACK's option off some segments and leave it on the others: TACK
//! goes on.

use std::cell::RefCell;
use std::rc::Rc;

use tack_base::Rate;
use tack_base::random::RandomStream;
use tack_tcp::{Algorithm, Config};
use tack_testkit::{Fate, Model, Pair, Side};
use tack_wire::{Header, Segment, TackOption};

use crate::settings::{ms, secs};

/// Which segments lose the option; SYNs never do.
#[derive(Clone, Copy, Debug)]
enum Strips {
    None,
    /// Each `n`th of a direction.
    Every(u32),
    /// This share, at random.
    Share(f64),
}

impl Strips {
    /// What does so in one direction.
    fn rewriter(self, seed: u64, direction: u64) -> impl FnMut(&mut Header) + 'static {
        let mut random = RandomStream::new(seed, "strips", direction);
        let mut seen = seed as u32;
        move |header| {
            if header.flags.syn() {
                return;
            }
            seen += 1;
            let is_hit = match self {
                Self::None => false,
                Self::Every(n) => seen.is_multiple_of(n),
                Self::Share(share) => random.chance(share),
            };
            if is_hit {
                header.options.tack = None;
            }
        }
    }
}

/// What leaves towards the box in one direction, in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    data: u32,
    stamped: u32,
    acks: u32,
    reports: u32,
}

impl Left {
    fn count(&mut self, segment: &Segment<'_>) {
        let header = &segment.header;
        if header.flags.syn() || header.flags.rst() {
            return;
        }
        match header.options.tack {
            Some(TackOption::Sync(_) | TackOption::Syn(_)) => {}
            Some(TackOption::Report(_) | TackOption::Loss(_)) => {
                self.acks += 1;
                self.reports += 1;
            }
            Some(TackOption::Data(_)) => {
                self.data += 1;
                self.stamped += 1;
            }
            None if segment.sequence_len() > 0 => self.data += 1,
            None => self.acks += 1,
        }
    }
}

/// A path with a round trip of 20 ms, and who sends on it.
#[derive(Clone, Copy, Debug)]
struct Path {
    rate_mbps: u64,
    /// Packets.
    queue: usize,
    both_send: bool,
}

const SLOW: Path = Path {
    rate_mbps: 8,
    queue: 40,
    both_send: false,
};
const FAST: Path = Path {
    rate_mbps: 100,
    queue: 200,
    both_send: false,
};

/// Time over which it is judged whether TACK is in use, milliseconds.
const INTERVAL_MS: u64 = 100;

/// When the second of two senders begins, milliseconds. Two flows that meet in both queues have
/// between 85 and 100 % of the goodput with either policy and without a box, by whether they halve
/// their windows together or in turn. So runs with different starts are judged together.
const STARTS_MS: [u64; 3] = [0, 300, 1_000];

/// What runs of bulk transfers came to.
#[derive(Debug, Default)]
struct Outcome {
    /// Bytes read at both ends, in each run.
    reads: Vec<u64>,
    /// Intervals in which a sender of data stamped less than nine tenths of its segments, and all.
    bare: u32,
    intervals: u32,
    /// Pure acknowledgements, those of them with a report, and segments sent again, of both sides.
    acks: u32,
    reports: u32,
    repeated: u64,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.reads.extend(other.reads);
        self.bare += other.bare;
        self.intervals += other.intervals;
        self.acks += other.acks;
        self.reports += other.reports;
        self.repeated += other.repeated;
    }

    fn read(&self) -> f64 {
        self.reads.iter().sum::<u64>() as f64
    }

    /// Standard error of [`read`](Self::read); 0 where there is one run.
    fn read_error(&self) -> f64 {
        let runs = self.reads.len() as f64;
        let mean = self.read() / runs;
        let squares: f64 = self
            .reads
            .iter()
            .map(|read| (*read as f64 - mean).powi(2))
            .sum();
        if self.reads.len() < 2 {
            0.0
        } else {
            (squares / (runs - 1.0) * runs).sqrt()
        }
    }

    /// True where this read less than `share` of what `other` did, by more than runs differ.
    fn falls_behind(&self, other: &Self, share: f64) -> bool {
        let missing = other.read() * share - self.read();
        missing > 2.0 * self.read_error().hypot(other.read_error())
    }
}

/// One run for a path with one sender, and one for each start of the second.
fn run(path: Path, strips: [Strips; 2], congestion: Algorithm, ack: &str, seconds: u64) -> Outcome {
    let starts = if path.both_send { &STARTS_MS[..] } else { &[0] };
    let mut sum = Outcome::default();
    for &start in starts {
        sum.add(run_once(path, start, strips, congestion, ack, seconds));
    }
    sum
}

/// Runs until `seconds` after the second sender began, `start_ms` after the first.
fn run_once(
    path: Path,
    start_ms: u64,
    strips: [Strips; 2],
    congestion: Algorithm,
    ack: &str,
    seconds: u64,
) -> Outcome {
    let config = Config {
        congestion,
        ack: ack.parse().expect("a policy"),
        user_timeout: None,
        time_wait: secs(600),
        ..Config::default()
    };
    let left = [0, 1].map(|_| Rc::new(RefCell::new(Left::default())));
    let model = |direction: usize| {
        let left = Rc::clone(&left[direction]);
        let rate = Rate::from_bits_per_sec(path.rate_mbps * 1_000_000);
        Model {
            queue: path.queue,
            ..Model::wire(ms(10), rate)
        }
        .judged(move |packet| {
            left.borrow_mut().count(packet.segment);
            Fate::Pass
        })
        .rewritten(strips[direction].rewriter(1, direction as u64))
    };
    let mut pair = Pair::open(1, &config, model(0), model(1));
    pair.establish(secs(10));
    pair.send(Side::Client, 1 << 40);
    pair.run_for(ms(start_ms));
    if path.both_send {
        pair.send(Side::Server, 1 << 40);
    }
    let senders = if path.both_send { 2 } else { 1 };
    let mut outcome = Outcome::default();
    for _ in 0..seconds * 1_000 / INTERVAL_MS {
        for left in &left {
            left.replace(Left::default());
        }
        pair.run_for(ms(INTERVAL_MS));
        let ways = [0, 1].map(|way| *left[way].borrow());
        for left in &ways[..senders] {
            outcome.bare += u32::from(left.stamped * 10 < left.data * 9);
            outcome.intervals += 1;
        }
        outcome.acks += ways.iter().map(|left| left.acks).sum::<u32>();
        outcome.reports += ways.iter().map(|left| left.reports).sum::<u32>();
    }
    outcome.reads = vec![pair.app(Side::Server).read + pair.app(Side::Client).read];
    for side in [Side::Client, Side::Server] {
        let stats = pair.connection(side).stats(pair.now());
        outcome.repeated += stats.retransmitted_segments;
    }
    outcome
}

/// What a box does, and in which directions.
fn boxes(kinds: &[Strips]) -> Vec<[Strips; 2]> {
    let ways = |kind: &Strips| {
        let none = Strips::None;
        [[*kind; 2], [*kind, none], [none, *kind]]
    };
    kinds.iter().flat_map(ways).collect()
}

/// Runs each box on `path` with TACK, and compares with `delayed:2`, which has no option to strip,
/// and with TACK without a box. TACK may be given up for `bare` of a hundred intervals.
fn demand_tack(path: Path, kinds: &[Strips], congestion: &[Algorithm], seconds: u64, bare: u32) {
    for &congestion in congestion {
        let clean = run(path, [Strips::None; 2], congestion, "tack", seconds);
        let plain = run(path, [Strips::None; 2], congestion, "delayed:2", seconds);
        for strips in boxes(kinds) {
            let tack = run(path, strips, congestion, "tack", seconds);
            let case = format!("{path:?}, {congestion}, {strips:?}: {tack:?}, {plain:?}");
            println!("{case}");
            assert!(tack.bare * 100 <= tack.intervals * bare, "{case}");
            // Without a box the two differ, too: Vegas leaves a window's room free.
            let expected = if plain.read() < clean.read() {
                &plain
            } else {
                &clean
            };
            assert!(!tack.falls_behind(expected, 0.96), "{case}, {clean:?}");
            assert!(tack.reports * 2 >= tack.acks, "{case}");
            let sends_one_way = !path.both_send;
            assert!(!sends_one_way || tack.acks < plain.acks, "{case}");
            // A controller that hears of no rate stays in its first phase, and loses a third.
            let segments = tack.read() as u64 / 1400;
            assert!(
                tack.repeated < 2 * plain.repeated + segments / 100,
                "{case}"
            );
        }
    }
}

const SOME: [Strips; 5] = [
    Strips::Every(3),
    Strips::Every(4),
    Strips::Every(10),
    Strips::Share(0.1),
    Strips::Share(0.25),
];
const HALF: [Strips; 2] = [Strips::Every(2), Strips::Share(0.5)];

fn controllers() -> Vec<Algorithm> {
    if crate::is_long() {
        Algorithm::ALL.into_iter().collect()
    } else {
        vec![Algorithm::default()]
    }
}

/// Up to a third of the segments loses it: no sender gives TACK up at any time.
#[test]
fn up_to_a_third_stripped_tack_goes_on() {
    demand_tack(SLOW, &SOME, &controllers(), 10, 0);
}

/// The same where a hundred segments come in an interval of acknowledgements, with losses.
#[test]
fn up_to_a_third_stripped_from_many_segments_tack_goes_on() {
    demand_tack(FAST, &SOME[..1], &[Algorithm::default()], 5, 0);
    if crate::is_long() {
        demand_tack(FAST, &SOME, &controllers(), 5, 0);
    }
}

/// Half of them do, and reports come one time of four where both directions do so. TACK goes on, or
/// comes back soon.
#[test]
fn half_of_the_segments_stripped_tack_goes_on() {
    demand_tack(SLOW, &HALF, &controllers(), 10, 20);
}

/// Data and acknowledgements of one sender share the box's count, and it may hit one kind for a
/// while: a sender may give TACK up once, for a second, and learns from it how much to expect.
#[test]
fn stripped_from_some_segments_of_two_senders_tack_goes_on() {
    let path = Path {
        both_send: true,
        ..SLOW
    };
    demand_tack(path, &SOME, &controllers(), 10, 10);
    demand_tack(path, &HALF, &controllers(), 10, 20);
}

/// Nineteen of twenty lose it: TACK is of no use, is left for plain TCP, and is tried ever less.
#[test]
fn nearly_all_stripped_it_is_plain_tcp() {
    let plain = run(
        SLOW,
        [Strips::None; 2],
        Algorithm::default(),
        "delayed:2",
        60,
    );
    for strips in boxes(&[Strips::Share(0.95)]) {
        let tack = run(SLOW, strips, Algorithm::default(), "tack", 60);
        println!("{strips:?}: {tack:?}, {plain:?}");
        assert!(tack.bare * 10 >= tack.intervals * 8, "{strips:?}: {tack:?}");
        assert!(!tack.falls_behind(&plain, 0.97), "{strips:?}: {tack:?}");
    }
}
