//! The figures of docs/ack-filter.md: uploads over 802.11b with and without filters of
//! acknowledgements.
//!
//! `ack_filter [SEEDS [DURATION]]` prints Markdown tables, means over the seeds: `ack_filter 1..3
//! 60s`.

use std::error::Error;

use rayon::prelude::*;
use tack_sim::{Observers, Report, Scenario, parse_seeds, run};

/// What is the same in every flow unless a table says otherwise: TCP of the time of ns-2.
const PLAIN: &str =
    "sack = false\ntimestamps = false\nbyte_counting = false\nwindow_pacing = 'off'\n";

/// The filters that most tables compare.
const FILTERS: [&str; 4] = ["off", "paper", "safe", "cake"];

/// Uploads of `stations` stations.
#[derive(Clone)]
struct Setup {
    stations: u16,
    /// Every MAC queue, packets.
    queue: u32,
    /// Receive window, segments.
    window: u32,
    filter: &'static str,
    /// Keys of `[wlan]` and of every flow.
    wlan: String,
    flow: String,
}

impl Setup {
    fn new(stations: u16, filter: &'static str) -> Self {
        Self {
            stations,
            queue: 250,
            window: 64,
            filter,
            wlan: "preamble = 'short'\ncontrol_rate = '1Mbps'\n".into(),
            flow: format!("{PLAIN}ack = 'every'\nmin_rto = '1s'\n"),
        }
    }

    fn with_wlan(mut self, keys: &str) -> Self {
        self.wlan += keys;
        self
    }

    fn scenario(&self, duration: &str) -> String {
        let Self {
            stations,
            queue,
            window,
            filter,
            wlan,
            flow,
        } = self;
        let mut text = format!(
            "duration = '{duration}'\nwarmup = '10s'\n[wired]\nrate = '100Mbps'\ndelay = '2ms'\n\
             [wlan]\nstandard = '802.11b'\nrate = '11Mbps'\nbeacon_interval = 'off'\n\
             stations = {stations}\nqueue = '{queue}p'\nack_filter = '{filter}'\n{wlan}"
        );
        let buffer = window * 1_460;
        for station in 0..*stations {
            text += &format!(
                "[[flow]]\nfrom = 'sta{station}'\nto = 'server'\nstart = '{}ms'\ncongestion = 'new_reno'\nmss = 1460\n\
                 receive_buffer = '{buffer}B'\nreceive_window = 'fixed'\n{flow}",
                100 * station
            );
        }
        text
    }
}

/// Means over runs.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    goodput: f64,
    jain: f64,
    queue: f64,
    collisions: f64,
    timeouts: f64,
}

impl Figures {
    fn of(report: &Report, seconds: f64) -> Option<Self> {
        let wlan = report.wlan.as_ref()?;
        let flows = || report.flows.iter().map(|flow| flow.goodput_bps);
        let sum: f64 = flows().sum();
        let squares: f64 = flows().map(|goodput| goodput * goodput).sum();
        let timeouts: u64 = report.flows.iter().map(|flow| flow.rto_count).sum();
        Some(Self {
            goodput: sum / 1e6,
            jain: sum * sum / (squares * report.flows.len() as f64),
            queue: wlan.ap_queue_max as f64,
            collisions: wlan.collisions as f64 / seconds,
            timeouts: timeouts as f64 / seconds,
        })
    }

    fn add(&mut self, other: &Self, weight: f64) {
        self.goodput += other.goodput * weight;
        self.jain += other.jain * weight;
        self.queue += other.queue * weight;
        self.collisions += other.collisions * weight;
        self.timeouts += other.timeouts * weight;
    }
}

type Failure = Box<dyn Error + Send + Sync>;

/// Runs every set-up with every seed.
fn measure(setups: &[Setup], seeds: &[u64], duration: &str) -> Result<Vec<Figures>, Failure> {
    let runs: Vec<_> = setups
        .iter()
        .flat_map(|setup| seeds.iter().map(move |seed| (setup, *seed)))
        .collect();
    let figures = runs
        .par_iter()
        .map(|(setup, seed)| -> Result<Figures, Failure> {
            let text = setup.scenario(duration);
            let scenario = Scenario::from_toml("ack_filter.toml", &text, &[])?;
            let report = run(&scenario, *seed, &mut Observers::default())?;
            let seconds = (scenario.duration - scenario.warmup).as_secs_f64();
            Figures::of(&report, seconds).ok_or_else(|| "no wireless network".into())
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mean = |runs: &[Figures]| {
        let mut mean = Figures::default();
        for run in runs {
            mean.add(run, 1.0 / runs.len() as f64);
        }
        mean
    };
    Ok(figures.chunks(seeds.len()).map(mean).collect())
}

fn line(cells: impl IntoIterator<Item = String>) {
    let cells: Vec<_> = cells.into_iter().collect();
    println!("| {} |", cells.join(" | "));
}

/// A table: a row for each number of stations, a column for each variant.
fn table(
    (title, corner): (&str, &str),
    rows: &[(String, Vec<Setup>)],
    columns: &[&str],
    (seeds, duration): (&[u64], &str),
    show: impl Fn(&Figures) -> String,
) -> Result<(), Failure> {
    println!("\n{title}\n");
    line([corner].iter().chain(columns).map(|name| (*name).into()));
    line(std::iter::repeat_n("---".into(), columns.len() + 1));
    for (name, setups) in rows {
        let figures = measure(setups, seeds, duration)?;
        line(std::iter::once(name.clone()).chain(figures.iter().map(&show)));
    }
    Ok(())
}

fn goodput(figures: &Figures) -> String {
    format!("{:.2}", figures.goodput)
}

fn all(figures: &Figures) -> String {
    let Figures {
        goodput,
        jain,
        queue,
        collisions,
        timeouts,
    } = figures;
    format!("{goodput:.2}, {jain:.3}, {queue:.0}, {collisions:.0}, {timeouts:.2}")
}

const STATIONS: [u16; 7] = [2, 5, 10, 13, 17, 20, 30];

fn by_stations(variant: impl Fn(Setup) -> Setup) -> Vec<(String, Vec<Setup>)> {
    STATIONS
        .iter()
        .map(|stations| {
            let setups = FILTERS.map(|filter| variant(Setup::new(*stations, filter)));
            (stations.to_string(), setups.into())
        })
        .collect()
}

/// Off and paper for each of `variants`.
fn pairs<V: Copy>(
    stations: &[u16],
    variants: &[V],
    make: impl Fn(Setup, V) -> Setup,
) -> Vec<(String, Vec<Setup>)> {
    stations
        .iter()
        .map(|stations| {
            let setups = variants
                .iter()
                .flat_map(|variant| {
                    ["off", "paper"].map(|filter| make(Setup::new(*stations, filter), *variant))
                })
                .collect();
            (stations.to_string(), setups)
        })
        .collect()
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let seeds = parse_seeds(arguments.next().as_deref().unwrap_or("1..3"))?;
    let duration = arguments.next().unwrap_or_else(|| "60s".into());
    let runs = (&*seeds, &*duration);
    let five = "goodput (Mbit/s), Jain index, longest access point queue, collisions a second, timeouts a second";
    table(
        (&format!("Queues of 250, by filter: {five}"), "stations"),
        &by_stations(|setup| setup),
        &FILTERS,
        runs,
        all,
    )?;
    table(
        (
            &format!("Queues of 250, MIMD, by filter: {five}"),
            "stations",
        ),
        &by_stations(|setup| setup.with_wlan("cw_adaptation = 'mimd'\n")),
        &FILTERS,
        runs,
        all,
    )?;
    table(
        (&format!("Queues of 50, by filter: {five}"), "stations"),
        &by_stations(|setup| Setup { queue: 50, ..setup }),
        &FILTERS,
        runs,
        all,
    )?;
    table(
        ("Smallest contention window: goodput, Mbit/s", "stations"),
        &pairs(&STATIONS, &[31, 63, 127, 255], |setup, window| {
            setup.with_wlan(&format!("cw_min = {window}\n"))
        }),
        &[
            "31 off", "paper", "63 off", "paper", "127 off", "paper", "255 off", "paper",
        ],
        runs,
        goodput,
    )?;
    table(
        (
            "Delayed acknowledgements, smallest contention window: goodput, Mbit/s",
            "stations",
        ),
        &pairs(&STATIONS, &[31, 63, 127], |setup, window| Setup {
            flow: format!("{PLAIN}ack = 'delayed:2'\nmin_rto = '1s'\n"),
            ..setup.with_wlan(&format!("cw_min = {window}\n"))
        }),
        &["31 off", "paper", "63 off", "paper", "127 off", "paper"],
        runs,
        goodput,
    )?;
    table(
        ("Receive window, segments: goodput, Mbit/s", "stations"),
        &pairs(&STATIONS, &[20, 42, 128], |setup, window| Setup {
            window,
            ..setup
        }),
        &["20 off", "paper", "42 off", "paper", "128 off", "paper"],
        runs,
        goodput,
    )?;
    table(
        ("ACKs at 2 Mbit/s: goodput, Mbit/s", "stations"),
        &pairs(&STATIONS, &["standard", "mimd"], |setup, adaptation| {
            Setup {
                wlan: format!("preamble = 'short'\ncw_adaptation = '{adaptation}'\n"),
                ..setup
            }
        }),
        &["standard off", "paper", "MIMD off", "paper"],
        runs,
        goodput,
    )?;
    table(
        (
            &format!("Ten stations, queues of 50, by timeout and counting, off and paper: {five}"),
            "least RTO",
        ),
        &["1s", "200ms"].map(|rto| {
            let setups = [false, true].into_iter().flat_map(|counts_bytes| {
                let counting = format!("byte_counting = {counts_bytes}");
                let plain = PLAIN.replace("byte_counting = false", &counting);
                let flow = format!("{plain}ack = 'every'\nmin_rto = '{rto}'\n");
                ["off", "paper"].map(|filter| Setup {
                    queue: 50,
                    flow: flow.clone(),
                    ..Setup::new(10, filter)
                })
            });
            (rto.to_owned(), setups.collect())
        }),
        &["ACK counting, off", "paper", "byte counting, off", "paper"],
        runs,
        all,
    )?;
    table(
        (
            "TCP with SACK, timestamps, byte counting and pacing, ACKs at 2 Mbit/s: goodput, Mbit/s",
            "stations",
        ),
        &by_stations(|setup| Setup {
            wlan: "preamble = 'short'\n".into(),
            flow: "ack = 'every'\nmin_rto = '1s'\n".into(),
            ..setup
        }),
        &FILTERS,
        runs,
        goodput,
    )
}
