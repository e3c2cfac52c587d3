//! How fast a forwarded connection is beside `tack perf`, and which part of the processor time is
//! the tunnel's own.
//!
//! A forwarded byte passes through two connections of the kernel's TCP besides ours: from its
//! source to the tunnel, and from the tunnel to its sink. A plain relay has the same two and
//! nothing else, so that the difference is what the tunnel costs. Its measure is `tack perf`, whose
//! two ends encrypt and carry as much without them.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::amount::{Amount, median};
use crate::connections::{swallow, target};
use crate::iperf;
use crate::process::Background;
use crate::relay;
use crate::sides::{Side, Sides, processor_time, processor_time_of_children};

/// Bit/s that an issue of the project wants of what `tack perf` has.
const WANTED: f64 = 0.80;
/// Of what `tack perf` has: a rate at which no part lacks the processor.
const UNHURRIED: f64 = 0.5;
/// Processor time for a byte that may be the tunnel's own where the processors are said to be the
/// limit: of that of `tack perf` and of the plain relay together.
const EXCESS: f64 = 0.10;
/// Most processors that other programs may use in a run that gets a verdict. The benchmark counts
/// the starts of its own programs as theirs.
const OTHERS: f64 = 0.2;
/// Bytes of one write of the source.
pub(crate) const BLOCK: usize = 256 << 10;

/// What one transfer came to.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) bits_per_second: f64,
    /// Seconds of processor time for each GB, of each process that took part: of a forwarded
    /// connection source and sink, `tack forward`, `tack serve`; of `tack perf` client and server.
    pub(crate) costs: Vec<f64>,
}

impl Run {
    fn cost(&self) -> f64 {
        self.costs.iter().sum()
    }
}

/// Seconds of processor time for each of so many GB, between two looks.
fn costs(before: &[f64], after: &[f64], gigabytes: f64) -> Vec<f64> {
    let pairs = before.iter().zip(after);
    pairs
        .map(|(before, after)| (after - before) / gigabytes)
        .collect()
}

/// Sends to a target that swallows for so many seconds, as fast as it goes or at `rate` bit/s. The
/// costs are those of this process, which is source and sink, and of `others`.
pub(crate) fn pushed(
    to: SocketAddr,
    seconds: u64,
    rate: Option<f64>,
    others: &[&Background],
) -> Result<Run> {
    let processes = [std::process::id()];
    let processes = processes.into_iter().chain(others.iter().map(|o| o.id()));
    let spent = || -> Result<Vec<f64>> { processes.clone().map(processor_time).collect() };
    let before = spent()?;
    let mut stream = TcpStream::connect(to)?;
    let bytes = vec![7; BLOCK];
    let began = Instant::now();
    let mut sent = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        stream.write_all(&bytes)?;
        sent += bytes.len();
        if let Some(rate) = rate {
            let due = Duration::from_secs_f64(sent as f64 * 8.0 / rate);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
        }
    }
    stream.shutdown(Shutdown::Write)?;
    let mut all = [0; 8];
    stream.read_exact(&mut all)?;
    let took = began.elapsed().as_secs_f64();
    let all = u64::from_be_bytes(all);
    ensure!(all == sent as u64, "{all} bytes of {sent} arrived");
    Ok(Run {
        bits_per_second: all as f64 * 8.0 / took,
        costs: costs(&before, &spent()?, all as f64 / 1e9),
    })
}

/// A test of `tack perf`, of which `server` is the other end.
fn perf(
    sides: &Sides,
    (server, address): (&Background, &str),
    seconds: u64,
    rate: Option<f64>,
) -> Result<Run> {
    let time = format!("{seconds}s");
    let limit = rate.map(|rate| format!("{rate:.0}bps"));
    let mut arguments = vec!["perf", address, "--time", &time, "--json"];
    arguments.extend(limit.iter().flat_map(|limit| ["--bitrate", limit]));
    let spent = || anyhow::Ok([processor_time_of_children()?, processor_time(server.id())?]);
    let before = spent()?;
    let output = sides.tack(Side::Client, &arguments).output()?;
    let after = spent()?;
    let text = String::from_utf8(output.stdout)?;
    let last = text.lines().last().context("no result of tack perf")?;
    let result: Value = serde_json::from_str(last)?;
    let goodput = result["summary"]["up"]["goodput_bps"].as_f64();
    let bits_per_second = goodput.with_context(|| last.to_owned())?;
    Ok(Run {
        bits_per_second,
        costs: costs(&before, &after, bits_per_second * seconds as f64 / 8e9),
    })
}

/// Several runs of one thing.
#[derive(Default)]
pub(crate) struct Runs(pub(crate) Vec<Run>);

impl Runs {
    fn add(&mut self, run: Run) {
        self.0.push(run);
    }

    pub(crate) fn gigabits(&self) -> f64 {
        let mut all: Vec<_> = self.0.iter().map(|run| run.bits_per_second).collect();
        median(&mut all) / 1e9
    }

    pub(crate) fn cost(&self) -> f64 {
        median(&mut self.0.iter().map(Run::cost).collect::<Vec<_>>())
    }

    /// Processors in use: at most as many as there are.
    fn used(&self) -> f64 {
        let used = |run: &Run| run.cost() * run.bits_per_second / 8e9;
        median(&mut self.0.iter().map(used).collect::<Vec<_>>())
    }

    /// The cost of each process.
    fn part_costs(&self) -> Vec<f64> {
        let count = self.0.first().map_or(0, |run| run.costs.len());
        let part =
            |n: usize| median(&mut self.0.iter().map(|run| run.costs[n]).collect::<Vec<_>>());
        (0..count).map(part).collect()
    }

    /// The cost of the process that costs most.
    fn highest_part(&self) -> f64 {
        self.part_costs().into_iter().fold(0.0, f64::max)
    }

    /// The cost of each process, in words.
    fn parts(&self) -> String {
        let parts = self.part_costs();
        let parts: Vec<_> = parts.iter().map(|part| format!("{part:.2}")).collect();
        parts.join(" + ")
    }

    /// The median of what each has of the one of `other` beside it.
    pub(crate) fn ratio(&self, other: &Self) -> f64 {
        let pairs = self.0.iter().zip(&other.0);
        let mut all: Vec<_> = pairs
            .map(|(a, b)| a.bits_per_second / b.bits_per_second)
            .collect();
        median(&mut all)
    }
}

/// A forwarded connection beside `tack perf`, which is encrypted, and beside the kernel's TCP
/// without anything between and through a plain relay: each as fast as it goes, all at half the
/// rate of `tack perf`, for which the processors suffice, and the first two at the highest rate at
/// which a forwarded connection should have the wanted share.
pub(crate) fn throughput(sides: &Sides, amount: Amount) -> Result<String> {
    let mut server = sides.tack(
        Side::Server,
        &["perf", "--server", "--listen", "127.0.0.1:0", "--json"],
    );
    let (server, line) = Background::start_and_wait(&mut server, "\"listening\"")?;
    let listening: Value = serde_json::from_str(&line)?;
    let address = listening["address"].as_str().context("an address")?;
    let target = target(swallow)?;
    let (serving, _) = sides.serve(&[], None)?;
    let (forwarding, near) = sides.forward(target, &[])?;
    let (relaying, relayed) = relay::start(target)?;
    // In turns; without the relay and a direct connection where they are not asked for.
    let measure = |rate: Option<f64>, plain: bool| -> Result<[Runs; 4]> {
        let mut runs: [Runs; 4] = Default::default();
        for _ in 0..amount.rounds {
            let [of_perf, forwarded, of_relay, direct] = &mut runs;
            of_perf.add(perf(sides, (&server, address), amount.seconds, rate)?);
            let ends = [&forwarding, &serving];
            forwarded.add(pushed(near, amount.seconds, rate, &ends)?);
            if plain {
                of_relay.add(pushed(relayed, amount.seconds, rate, &[&relaying])?);
                direct.add(pushed(target, amount.seconds, rate, &[])?);
            }
        }
        Ok(runs)
    };
    let (before, began) = (busy()?, Instant::now());
    let [perf, forwarded, relayed, direct] = measure(None, true)?;
    let spent = |runs: &Runs| runs.used() * (amount.seconds * runs.0.len() as u64) as f64;
    let ours: f64 = [&perf, &forwarded, &relayed, &direct]
        .map(spent)
        .iter()
        .sum();
    let others = (busy()? - before - ours) / began.elapsed().as_secs_f64();
    let processors = std::thread::available_parallelism()?.get() as f64;
    let mut words = vec![
        format!(
            "forwarded {:.2} Gbit/s, tack perf (encrypted) {:.2}, ratio {:.2} (wanted {WANTED:.2}); the kernel's TCP \
             through a plain relay {:.2}, without one {:.2}; {}",
            forwarded.gigabits(),
            perf.gigabits(),
            forwarded.ratio(&perf),
            relayed.gigabits(),
            direct.gigabits(),
            shares(&perf, &forwarded, &relayed),
        ),
        judgement(&perf, &forwarded, &relayed, (processors, others)),
    ];
    let highest = forwarded.gigabits() / WANTED;
    let unhurried = UNHURRIED * perf.gigabits();
    let [perf, forwarded, relayed, _] = measure(Some(unhurried * 1e9), true)?;
    words.push(format!(
        "at {unhurried:.2} Gbit/s, {UNHURRIED} of what tack perf has, for which the processors suffice: forwarded \
         {:.2} Gbit/s, tack perf {:.2}, ratio {:.2}; {}",
        forwarded.gigabits(),
        perf.gigabits(),
        forwarded.ratio(&perf),
        shares(&perf, &forwarded, &relayed),
    ));
    let [perf, forwarded, ..] = measure(Some(highest * 1e9), false)?;
    words.push(format!(
        "at {highest:.1} Gbit/s, {WANTED:.2} of which is what was forwarded as fast as it goes: forwarded {:.2} \
         Gbit/s, tack perf {:.2}, ratio {:.2}",
        forwarded.gigabits(),
        perf.gigabits(),
        forwarded.ratio(&perf),
    ));
    let mut iperf = Runs::default();
    for _ in 0..amount.rounds {
        let run = iperf::run(amount.seconds, BLOCK)?;
        iperf.0.extend(run.map(|(bits_per_second, cost)| Run {
            bits_per_second,
            costs: vec![cost],
        }));
    }
    if !iperf.0.is_empty() {
        words.push(format!(
            "iperf3 with writes of as many bytes, without relay: {:.2} Gbit/s, {:.2} s of processor time for a GB; \
             our source and sink {:.2} Gbit/s, {:.2} s",
            iperf.gigabits(),
            iperf.cost(),
            direct.gigabits(),
            direct.cost(),
        ));
    }
    Ok(words.join("\n  "))
}

/// What limits a forwarded connection. That it is the processors is said only where it follows from
/// what was measured: a tunnel that costs nothing beside what `tack perf` and a plain relay cost
/// could not have the wanted share with the same use of the processors, and this one costs hardly
/// more. There is no verdict while other programs run, because the scheduler then gives more time
/// to the side that has more processes.
fn judgement(
    perf: &Runs,
    forwarded: &Runs,
    relayed: &Runs,
    (processors, others): (f64, f64),
) -> String {
    let least = perf.cost() + relayed.cost();
    let bound = perf.cost() / least;
    let excess = forwarded.cost() / least - 1.0;
    let verdict = if others > OTHERS {
        "no verdict, since other programs run"
    } else if forwarded.ratio(perf) >= WANTED {
        "reached"
    } else if bound < WANTED && excess <= EXCESS {
        "missed, and the processors are the limit"
    } else {
        "missed, and the processors are NOT shown to be the limit"
    };
    format!(
        "{verdict}: of {processors} processors other programs used {others:.2}, the forwarded connection {:.2}, \
         tack perf {:.2}; with the same \
         use a tunnel that costs what tack perf and the relay cost has {bound:.2}, one that costs what this one does \
         {:.2}; it costs {:.0} % more than these two (at most {:.0} % for that verdict); with all processors in use \
         the former has {:.2}, this one {:.2}; with a processor for each process, and no more, {:.2}",
        forwarded.used(),
        perf.used(),
        perf.cost() / forwarded.cost(),
        100.0 * excess,
        100.0 * EXCESS,
        (processors / least * 8.0 / perf.gigabits()).min(1.0),
        (processors / forwarded.cost() * 8.0 / perf.gigabits()).min(1.0),
        (perf.highest_part() / forwarded.highest_part()).min(1.0),
    )
}

/// Seconds that processors were busy since the machine started.
fn busy() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().context("no processors")?;
    let values = line.split_whitespace().skip(1);
    let mut values: Vec<f64> = values.map(str::parse).collect::<Result<_, _>>()?;
    // All but idle and iowait, up to softirq (proc(5)); a tick is 10 ms.
    values.truncate(7);
    Ok((values.iter().sum::<f64>() - values[3] - values[4]) / 100.0)
}

/// Whose processor time it is.
fn shares(perf: &Runs, forwarded: &Runs, relayed: &Runs) -> String {
    let own = (forwarded.cost() - relayed.cost()) / perf.cost();
    format!(
        "processor time for a GB: tack perf {:.2} s (client and server {}), the kernel's TCP through a plain relay \
         {:.2} (source with sink, relay: {}), forwarded {:.2} (source with sink, tack forward, tack serve: {}), \
         which without the relay's is {own:.2} of tack perf's",
        perf.cost(),
        perf.parts(),
        relayed.cost(),
        relayed.parts(),
        forwarded.cost(),
        forwarded.parts(),
    )
}
