//! Runs of `tack lab` in real time: one download at a time between two hosts of the emulator, by
//! the kernel's TCP (iperf3), by QUIC (quinn, from `bench/quinn`) or by this program.

mod counters;
mod outcome;
mod plan;
mod programs;
mod seldom;

use std::path::Path;

use tack_emulator::{Host, HostSettings, Hosts, Summary};
use tack_lab::{Point, Stack, Store, Values};

use crate::exit::Failure;
use counters::{Counters, Reading};
use outcome::{Outcome, usual};
use plan::{Plan, Trouble};
use programs::Pair;

/// How often a run that the machine spoilt is made, at most.
const ATTEMPTS: u32 = 3;

/// Longest datagram of QUIC that counts as an acknowledgement: one lists up to 64 ranges of what
/// came. Data fills its datagrams.
const SMALL: usize = 600;

/// Least share of the processors' time that is idle during a run which can be trusted: where there
/// is none, the programs wait for a processor, and the run says more of that than of the path.
const IDLE: f64 = 0.05;

/// Makes the runs that `store` lacks of `wanted`, one after the other, and those that were not
/// trusted. Returns how many failed.
///
/// # Errors
/// When results cannot be kept.
pub(super) fn run(
    store: &mut Store,
    wanted: &[&Point],
    mut progress: impl FnMut(usize, usize),
) -> Result<usize, Failure> {
    let is_done = |point: &Point| {
        let values = store.results().get(point);
        values.is_some_and(|values| values.get("trusted") >= 1.0)
    };
    let missing: Vec<Point> = wanted
        .iter()
        .filter(|point| !is_done(point))
        .map(|point| Point::clone(point))
        .collect();
    let folder = store.folder().join("scenarios");
    let mut failures = 0;
    for (done, point) in missing.iter().enumerate() {
        progress(done, missing.len());
        let name = format!(
            "{}, {}, seed {}",
            point.measure().name(),
            point.settings().join(" "),
            point.seed
        );
        match trusted(point, &folder) {
            Ok(values) => {
                if values.get("trusted") < 1.0 {
                    eprintln!("tack: NOT TRUSTED after {ATTEMPTS} runs: {name}");
                }
                store
                    .keep(point, values)
                    .map_err(|error| Failure::failed("cannot store the results", error))?;
            }
            Err(Trouble::Skipped(why)) => {
                eprintln!("tack: SKIPPED: {name}: {why}");
                let mut values = Values::default();
                values.insert("skipped", 1.0);
                store
                    .keep(point, values)
                    .map_err(|error| Failure::failed("cannot store the results", error))?;
            }
            Err(Trouble::Failed(why)) => {
                eprintln!("tack: {name}: {why}");
                failures += 1;
            }
        }
    }
    progress(missing.len(), missing.len());
    Ok(failures)
}

/// The values of the first run that can be trusted, or of the last one.
fn trusted(point: &Point, folder: &Path) -> Result<Values, Trouble> {
    let mut attempt = 1;
    loop {
        // A thread of its own: it moves between network namespaces, and ends where it ends.
        let result = std::thread::scope(|scope| scope.spawn(|| once(point, folder)).join());
        let mut values =
            result.map_err(|_| Trouble::Failed("the run ended by a panic".into()))??;
        if values.get("trusted") >= 1.0 || attempt == ATTEMPTS {
            values.insert("attempts", f64::from(attempt));
            return Ok(values);
        }
        attempt += 1;
    }
}

/// One run. Leaves the thread in another network namespace.
fn once(point: &Point, folder: &Path) -> Result<Values, Trouble> {
    let failed = |error: &dyn std::fmt::Display| Trouble::Failed(error.to_string());
    point.place(folder).map_err(|error| failed(&error))?;
    let scenario = point.scenario(folder).map_err(|error| failed(&error))?;
    let plan = Plan::of(point, &scenario)?;
    let program = plan.program()?;
    let has_radio = scenario.wlan.is_some();
    let mut settings = HostSettings::new(scenario);
    settings.seed = point.seed;
    settings.receive_offload = plan.has_receive_offload();
    settings.small_datagram = SMALL;
    settings.own_processor = !settings.receive_offload;
    let mut hosts = Hosts::start(settings).map_err(|error| match error {
        tack_emulator::StartError::Namespaces(_) | tack_emulator::StartError::Device { .. } => {
            Trouble::Skipped(error.to_string())
        }
        _ => failed(&error),
    })?;
    let samples = hosts.take_samples().ok_or_else(|| Trouble::no("sample"))?;
    let [server, station, ..] = hosts.hosts() else {
        return Err(Trouble::Failed("the emulation has no station".into()));
    };
    let handle = |host: &Host| host.namespace.try_clone().map_err(|error| failed(&error));
    // Where there is a radio, a program that asks would take time from the others.
    let is_asked = plan.stack.receiver().is_some() && plan.congestion == "bbr" && !has_radio;
    let watching = counters::watch(handle(server)?, handle(station)?, is_asked, samples);
    let before = Processors::now();
    let outcome = Pair { server, station }.download(&plan, &program)?;
    let idle = Processors::now().idle_since(before);
    let summary = hosts.stop().map_err(|error| failed(&error))?;
    let readings = watching
        .join()
        .map_err(|_| Trouble::Failed("a reader ended by a panic".into()))?;
    let mut values = values(&plan, &outcome, &readings, &summary)?;
    let is_trusted = summary.trust.ok && idle >= IDLE;
    if !is_trusted {
        let reasons = summary.trust.reasons.join("; ");
        eprintln!(
            "tack: a run was not trusted: the processors were idle for {:.1} %; {reasons}",
            idle * 100.0
        );
    }
    values.insert("processors_idle", idle);
    values.insert("trusted", f64::from(u8::from(is_trusted)));
    Ok(values)
}

/// Times of all processors together, in ticks (proc_stat(5)).
#[derive(Clone, Copy, Default)]
struct Processors {
    idle: f64,
    all: f64,
}

impl Processors {
    fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        Self::of(stat.lines().next().unwrap_or_default())
    }

    /// From `cpu user nice system idle iowait irq softirq steal …`.
    fn of(line: &str) -> Self {
        let ticks = line.split_whitespace().skip(1).take(8);
        let ticks: Vec<f64> = ticks.filter_map(|ticks| ticks.parse().ok()).collect();
        Self {
            idle: ticks.iter().skip(3).take(2).sum(),
            all: ticks.iter().sum(),
        }
    }

    /// The share that was idle, 0 to 1.
    fn idle_since(self, before: Self) -> f64 {
        (self.idle - before.idle) / (self.all - before.all).max(1.0)
    }
}

/// The numbers of a run: what the programs say, and what the emulator and the receiving kernel saw
/// from the end of the warm-up to the end.
fn values(
    plan: &Plan,
    outcome: &Outcome,
    readings: &[Reading],
    summary: &Summary,
) -> Result<Values, Trouble> {
    let first = readings
        .iter()
        .find(|reading| reading.sample.down.data > 10);
    let begin = first.map_or(0.0, |reading| reading.sample.seconds) + plan.omit.as_secs_f64();
    let end = begin + plan.length.as_secs_f64();
    let within =
        |reading: &&Reading| reading.sample.seconds >= begin && reading.sample.seconds <= end;
    let (Some(earlier), Some(later)) = (
        readings.iter().find(within),
        readings.iter().rev().find(within),
    ) else {
        return Err(Trouble::no("sample of the run"));
    };
    let counters = later.counters.since(&earlier.counters);
    let of_kernel = readings.iter().filter(within);
    let of_kernel = usual(of_kernel.map(|reading| reading.bbr_min_rtt));
    let [low, high] = match plan.stack {
        Stack::Tack(_) | Stack::TackWithoutGso => outcome.cc_min_rtt,
        _ => of_kernel,
    };
    let (earlier, later) = (earlier.sample, later.sample);
    let seconds = later.seconds - earlier.seconds;
    let data = (later.down.data - earlier.down.data) as f64;
    let arrived = (later.down.delivered - earlier.down.delivered) as f64;
    let acks = (later.up.acks - earlier.up.acks) as f64;
    let back = (later.up.delivered_bytes - earlier.up.delivered_bytes) as f64;
    let widening = (later.up.acks_widening - earlier.up.acks_widening) as f64;
    let air = later.air.since(&earlier.air).shares();
    let mut values = Values::default();
    for (name, value) in [
        ("goodput_bps", outcome.goodput),
        ("acks_per_data", acks / arrived),
        (
            "bytes_per_packet",
            outcome.goodput / 8.0 * seconds / arrived,
        ),
        ("data", data),
        ("arrived", arrived),
        ("acks", acks),
        ("seconds", seconds),
        ("back.bytes_per_s", back / seconds),
        (
            "back.bytes_per_packet",
            back / ((later.up.delivered - earlier.up.delivered) as f64).max(1.0),
        ),
        ("sender.rtt_ms", outcome.rtt * 1e3),
        ("sender.min_rtt_ms", outcome.min_rtt * 1e3),
        ("sender.cc_min_rtt_p10_ms", low * 1e3),
        ("sender.cc_min_rtt_p90_ms", high * 1e3),
        ("sender.window_bps", outcome.window_rate),
        ("sender.window_bytes", outcome.window),
        ("sender.blocked", outcome.blocked),
        ("acks_said", outcome.acks),
        ("air.data", air.data),
        ("air.ack", air.ack),
        ("air.control", air.control),
        ("air.collision", air.collision),
        ("air.access", air.access),
        ("air.idle", air.idle),
        ("late_share", summary.lateness.late_share),
        ("late_p99_us", summary.lateness.p99_us as f64),
        ("entry_late_share", summary.entry_lateness.late_share),
        ("skipped", 0.0),
    ] {
        values.insert(name, value);
    }
    for (name, share) in outcome.limited {
        values.insert(format!("limited.{name}"), share);
    }
    match plan.stack {
        Stack::Kernel(_) | Stack::KernelPaced(_) | Stack::KernelWithoutGso => {
            let Counters {
                again,
                out_of_order,
                ..
            } = counters;
            values.insert("sender.lost_share", again / data);
            // What was sent again fills holes, and is acknowledged at once as well.
            values.insert("disordered", (out_of_order + again) / arrived);
            values.insert("tcp.packets", counters.packets / arrived);
            values.insert("tcp.merged", counters.merged / arrived);
            values.insert("tcp.delayed", counters.delayed / arrived);
            values.insert("tcp.compressed", counters.compressed / arrived);
            values.insert("tcp.widening", widening / arrived);
        }
        Stack::Tack(_) | Stack::TackWithoutGso => {
            values.insert("batches", outcome.batches);
            values.insert("sender.lost_share", outcome.lost / data);
            values.insert("disordered", disordered(outcome, acks, arrived));
        }
        Stack::Quinn(_) => values.insert("sender.lost_share", outcome.lost / data),
    }
    Ok(values)
}

/// Acknowledgements of disorder of this program for each packet that arrived within the run's time,
/// of `acks` that the emulator saw then. The program's own counts are also of what arrives later,
/// while the sender's buffer drains.
fn disordered(outcome: &Outcome, acks: f64, arrived: f64) -> f64 {
    outcome.disordered / outcome.acks * acks / arrived
}

#[cfg(test)]
mod tests {
    use tack_lab::{Depth, Measure, Only, REAL_TIME, Receiver};

    use super::*;

    /// The shortest form of a run: the kernel's CUBIC over 802.11g, to either kind of receiver.
    #[test]
    fn the_kernels_tcp_is_measured_over_the_emulated_air() {
        let plan = REAL_TIME[0].plan(&Depth {
            only: vec![Only::G, Only::Ac, Only::Pantheon],
            ..Depth::quick()
        });
        for stack in [
            Stack::Kernel(Receiver::Offloaded),
            Stack::Kernel(Receiver::OffloadedSeldomRead),
            Stack::Kernel(Receiver::SeldomRead),
            Stack::KernelPaced(Receiver::Offloaded),
            Stack::KernelPaced(Receiver::SeldomRead),
            Stack::KernelWithoutGso,
        ] {
            let measure = Measure::RealTime(stack);
            let mut points = plan.iter().filter(|point| point.measure() == measure);
            let mut point = points.next().unwrap().clone();
            point.cell = point.cell.set("warmup=0s").set("duration=1s");
            let folder = tempfile::tempdir().unwrap();
            // Whether the machine keeps up does not matter here.
            let run =
                std::thread::scope(|scope| scope.spawn(|| once(&point, folder.path())).join());
            let values = match run.unwrap() {
                Ok(values) => values,
                Err(Trouble::Skipped(why)) => {
                    tack_skip::skipped(why);
                    return;
                }
                Err(Trouble::Failed(why)) => panic!("{stack:?}: {why}"),
            };
            let always = ["goodput_bps", "acks_per_data", "tcp.packets"];
            // Policers have no air.
            let has_air = stack != Stack::KernelWithoutGso;
            let of_air = ["air.data", "air.ack"].into_iter().filter(|_| has_air);
            for name in always.into_iter().chain(of_air) {
                assert!(values.get(name) > 0.0, "{stack:?}: {name}: {values:?}");
            }
            assert!(values.get("disordered") >= 0.0, "{values:?}");
        }
    }

    #[test]
    fn disorder_after_the_run_does_not_count() {
        let outcome = |disordered, acks| Outcome {
            disordered,
            acks,
            ..Outcome::of(1e6)
        };
        assert_eq!(disordered(&outcome(10.0, 40.0), 20.0, 40.0), 0.125);
        assert!(disordered(&outcome(0.0, 0.0), 20.0, 40.0).is_nan());
    }

    #[test]
    fn idle_time_is_a_share_of_all() {
        let before = Processors::of("cpu  100 0 50 800 50 0 0 0 0 0");
        let after = Processors::of("cpu  150 0 100 890 60 0 0 0 0 0");
        assert!((after.idle_since(before) - 0.5).abs() < 1e-9);
        assert!((0.0..=1.0).contains(&Processors::now().idle_since(Processors::default())));
    }
}
