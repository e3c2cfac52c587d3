//! The `[wired]` table: both directions of the path, and what is wrong with the hosts at its ends.

use std::time::Duration;

use tack_base::{Instant, Rate};
use tack_wire::Ecn;

use super::error::ScenarioError;
use super::files::Files;
use super::reader::Reader;
use super::units::QueueText;
use crate::impair::loss::{GilbertElliott, LossConfig};
use crate::impair::mark::MarkConfig;
use crate::impair::middlebox::{EcnFlags, IsnRewrite, MiddleboxConfig, StripFrom};
use crate::impair::order::OrderConfig;
use crate::impair::outage::{Blackout, SuspensionConfig};
use crate::link::{BottleneckConfig, Bound, LinkRate, Trace};
use crate::path::PathConfig;

/// The path between server and client, and the hosts' own faults.
#[derive(Clone, Debug, PartialEq)]
pub struct Wired {
    /// Server to client.
    pub forward: PathConfig,
    /// Client to server.
    pub reverse: PathConfig,
    /// The server.
    pub server: HostConfig,
    /// The client.
    pub client: HostConfig,
}

/// Properties of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostConfig {
    /// How much faster its clock runs than the other host's, parts per million.
    pub clock_skew_ppm: i64,
    /// Timers fire late by up to this much, uniformly drawn.
    pub late_timers: Duration,
    /// Packets are processed up to this long after they arrived, uniformly drawn, in order.
    pub late_processing: Duration,
    /// Probability that the network interface takes only a part of a batch, and the rest a
    /// millisecond later.
    pub short_sends: f64,
    /// Most segments that TCP hands over at once.
    pub batch: usize,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            clock_skew_ppm: 0,
            late_timers: Duration::ZERO,
            late_processing: Duration::ZERO,
            short_sends: 0.0,
            batch: 1,
        }
    }
}

const DEFAULT_RATE: Rate = Rate::from_bits_per_sec(1_000_000_000);
const DEFAULT_DELAY: Duration = Duration::from_millis(1);
const DEFAULT_QUEUE: QueueText = QueueText::Packets(1_000);
/// Longest propagation delay, one way.
pub(super) const LONGEST_DELAY: Duration = Duration::from_secs(3_600);

/// The direction of a key.
#[derive(Clone, Copy)]
enum Side {
    Forward,
    Reverse,
}

impl Side {
    fn key(self, key: &str) -> String {
        match self {
            Self::Forward => key.into(),
            Self::Reverse => format!("{key}_reverse"),
        }
    }
}

pub(super) fn read(mut table: Reader<'_>, files: Files<'_>) -> Result<Wired, ScenarioError> {
    let rate =
        read_rate(&mut table, Side::Forward, files)?.unwrap_or(LinkRate::Fixed(DEFAULT_RATE));
    let rate_reverse = read_rate(&mut table, Side::Reverse, files)?.unwrap_or_else(|| rate.clone());
    let delay = read_delay(&mut table, Side::Forward)?.unwrap_or(DEFAULT_DELAY);
    let delay_reverse = read_delay(&mut table, Side::Reverse)?.unwrap_or(delay);
    let queue = table.queue("queue")?.unwrap_or(DEFAULT_QUEUE);
    let queue_reverse = table.queue("queue_reverse")?.unwrap_or(queue);
    let round_trip = delay + delay_reverse;
    let bound = |queue, rate: &LinkRate| match queue {
        QueueText::Packets(packets) => Bound::Packets(packets as usize),
        QueueText::Bytes(bytes) => Bound::Bytes(bytes),
        QueueText::MilliBdp(thousandths) => {
            let bdp = u128::from(rate.average().bytes_in(round_trip));
            Bound::Bytes(u64::try_from(bdp * u128::from(thousandths) / 1_000).unwrap_or(u64::MAX))
        }
    };
    let isn = read_isn(&mut table)?;
    let forward = BottleneckConfig {
        queue: bound(queue, &rate),
        rate,
        delay,
    };
    let reverse = BottleneckConfig {
        queue: bound(queue_reverse, &rate_reverse),
        rate: rate_reverse,
        delay: delay_reverse,
    };
    let wired = Wired {
        forward: read_path(&mut table, Side::Forward, forward, isn)?,
        reverse: read_path(&mut table, Side::Reverse, reverse, isn)?,
        server: read_host(&mut table, Side::Forward)?,
        client: HostConfig {
            clock_skew_ppm: read_skew(&mut table)?,
            ..read_host(&mut table, Side::Reverse)?
        },
    };
    table.finish()?;
    Ok(wired)
}

fn read_rate(
    table: &mut Reader<'_>,
    side: Side,
    files: Files<'_>,
) -> Result<Option<LinkRate>, ScenarioError> {
    let (rate_key, trace_key) = (side.key("rate"), side.key("trace"));
    let rate = table.rate(&rate_key)?.map(LinkRate::Fixed);
    let Some(mut trace) = table.table(&trace_key)? else {
        return Ok(rate);
    };
    if rate.is_some() {
        let message =
            format!("a trace gives the rate by itself: leave out either it or {rate_key}");
        return Err(table.fail(&trace_key, message));
    }
    let Some(file) = trace.text("file")? else {
        return Err(trace
            .fail_table("needs the key file: a Mahimahi trace, looked for beside the scenario"));
    };
    let text = files(&file).map_err(|message| trace.fail("file", message))?;
    let parsed =
        Trace::parse(&text).map_err(|error| trace.fail("file", format!("{file}: {error}")))?;
    trace.finish()?;
    Ok(Some(LinkRate::Trace(parsed)))
}

fn read_delay(table: &mut Reader<'_>, side: Side) -> Result<Option<Duration>, ScenarioError> {
    bounded(table, &side.key("delay"), LONGEST_DELAY)
}

/// A duration of at most `most`.
pub(super) fn bounded(
    table: &mut Reader<'_>,
    key: &str,
    most: Duration,
) -> Result<Option<Duration>, ScenarioError> {
    let duration = table.duration(key)?;
    if duration.is_some_and(|duration| duration > most) {
        return Err(table.fail(key, format!("must be at most {most:?}")));
    }
    Ok(duration)
}

fn read_path(
    table: &mut Reader<'_>,
    side: Side,
    bottleneck: BottleneckConfig,
    isn: IsnRewrite,
) -> Result<PathConfig, ScenarioError> {
    let delay_key = side.key("reorder_delay");
    let reorder = table.probability(&side.key("reorder"))?;
    let reorder_delay = bounded(table, &delay_key, LONGEST_DELAY)?;
    if reorder_delay.is_some() && reorder == 0.0 {
        return Err(table.fail(
            &delay_key,
            format!("has no effect without {} above zero", side.key("reorder")),
        ));
    }
    let middlebox = read_middlebox(table, side, isn)?;
    let mtu_key = side.key("mtu_black_hole");
    let mtu = table.integer(&mtu_key, 68, 65_535)?;
    let from_key = side.key("mtu_black_hole_from");
    let from = bounded(table, &from_key, LONGEST_DELAY)?;
    if from.is_some() && mtu.is_none() {
        return Err(table.fail(&from_key, format!("has no effect without {mtu_key}")));
    }
    Ok(PathConfig {
        bottleneck,
        loss: LossConfig {
            bernoulli: table.probability(&side.key("loss"))?,
            acks: table.probability(&side.key("ack_loss"))?,
            gilbert_elliott: read_gilbert_elliott(table, side)?,
        },
        order: OrderConfig {
            reorder,
            reorder_delay: reorder_delay.unwrap_or(OrderConfig::default().reorder_delay),
            duplicate: table.probability(&side.key("duplicate"))?,
        },
        corrupt: table.probability(&side.key("corrupt"))?,
        mark: MarkConfig {
            probability: table.probability(&side.key("ecn_mark"))?,
            threshold: read_threshold(table, side)?,
        },
        middlebox,
        blackouts: read_blackouts(table, side)?,
        suspension: read_suspension(table, side)?,
        mtu_black_hole: mtu.map(|mtu| mtu as usize),
        mtu_black_hole_from: Instant::ZERO + from.unwrap_or_default(),
    })
}

fn read_middlebox(
    table: &mut Reader<'_>,
    side: Side,
    isn: IsnRewrite,
) -> Result<MiddleboxConfig, ScenarioError> {
    let strip_key = side.key("strip_options");
    let strip = table.bytes_list(&strip_key)?;
    if strip.iter().any(|kind| *kind < 2) {
        return Err(table.fail(
            &strip_key,
            "kinds 0 and 1 are padding; list kinds from 2, such as 5 (SACK) or 8 (timestamps)",
        ));
    }
    let strip_from = read_strip_from(table, side, "strip_options", !strip.is_empty())?;
    let choices = [
        ("off", EcnFlags::None),
        ("ae", EcnFlags::Ae),
        ("cwr_ece", EcnFlags::CwrEce),
        ("all", EcnFlags::All),
    ];
    let clear = table.choice(&side.key("clear_ecn_flags"), &choices)?;
    let clear = clear.unwrap_or_default();
    let clear_from = read_strip_from(table, side, "clear_ecn_flags", clear != EcnFlags::None)?;
    let codepoints = [
        ("not_ect", Ecn::NotEct),
        ("ect1", Ecn::Ect1),
        ("ect0", Ecn::Ect0),
        ("ce", Ecn::Ce),
    ];
    Ok(MiddleboxConfig {
        strip,
        strip_from,
        clear,
        clear_from,
        ecn: table.choice(&side.key("ecn_rewrite"), &codepoints)?,
        isn,
    })
}

/// Of which segments a middlebox takes what the key `name` says. `is_on` is whether that is
/// anything.
fn read_strip_from(
    table: &mut Reader<'_>,
    side: Side,
    name: &str,
    is_on: bool,
) -> Result<StripFrom, ScenarioError> {
    let froms = [
        ("all", StripFrom::All),
        ("syn", StripFrom::Syn),
        ("rest", StripFrom::Rest),
    ];
    let key = side.key(&format!("{name}_from"));
    let from = table.choice(&key, &froms)?;
    if from.is_some() && !is_on {
        let message = format!("has no effect without {}", side.key(name));
        return Err(table.fail(&key, message));
    }
    Ok(from.unwrap_or_default())
}

fn read_threshold(table: &mut Reader<'_>, side: Side) -> Result<Option<Bound>, ScenarioError> {
    let key = side.key("ecn_threshold");
    match table.queue(&key)? {
        None => Ok(None),
        Some(QueueText::Packets(packets)) => Ok(Some(Bound::Packets(packets as usize))),
        Some(QueueText::Bytes(bytes)) => Ok(Some(Bound::Bytes(bytes))),
        Some(QueueText::MilliBdp(_)) => {
            Err(table.fail(&key, "give packets (\"20p\") or bytes (\"30KiB\")"))
        }
    }
}

fn read_gilbert_elliott(
    table: &mut Reader<'_>,
    side: Side,
) -> Result<Option<GilbertElliott>, ScenarioError> {
    let Some(mut chain) = table.table(&side.key("gilbert_elliott"))? else {
        return Ok(None);
    };
    for key in ["good_to_bad", "bad_to_good"] {
        if !chain.has(key) {
            return Err(chain.fail_table(format!("needs the key {key}: a probability per packet")));
        }
    }
    let read = GilbertElliott {
        good_to_bad: chain.probability("good_to_bad")?,
        bad_to_good: chain.probability("bad_to_good")?,
        loss_good: chain.probability("loss_good")?,
        loss_bad: if chain.has("loss_bad") {
            chain.probability("loss_bad")?
        } else {
            1.0
        },
    };
    chain.finish()?;
    Ok(Some(read))
}

fn read_blackouts(table: &mut Reader<'_>, side: Side) -> Result<Vec<Blackout>, ScenarioError> {
    let mut blackouts = Vec::new();
    for mut blackout in table.tables(&side.key("blackout"))? {
        let (Some(start), Some(duration)) =
            (blackout.duration("start")?, blackout.duration("duration")?)
        else {
            return Err(blackout.fail_table(
                "needs the keys start and duration, such as start = \"3s\", duration = \"1s\"",
            ));
        };
        blackout.finish()?;
        blackouts.push(Blackout {
            start: Instant::ZERO + start,
            duration,
        });
    }
    Ok(blackouts)
}

fn read_suspension(
    table: &mut Reader<'_>,
    side: Side,
) -> Result<Option<SuspensionConfig>, ScenarioError> {
    let Some(mut suspension) = table.table(&side.key("suspension"))? else {
        return Ok(None);
    };
    let period = suspension
        .duration("period")?
        .unwrap_or(Duration::from_secs(1));
    let shortest = suspension
        .duration("duration")?
        .unwrap_or(Duration::from_millis(100));
    let longest = suspension.duration("duration_max")?;
    let start = suspension.duration("start")?.unwrap_or(period);
    if longest.is_some_and(|longest| longest < shortest) {
        return Err(suspension.fail("duration_max", "must not be below duration"));
    }
    let longest = longest.unwrap_or(shortest);
    if longest >= period || shortest.is_zero() {
        return Err(suspension.fail_table(format!(
            "suspensions of {shortest:?} to {longest:?} must be above zero and shorter than their period of {period:?}"
        )));
    }
    suspension.finish()?;
    Ok(Some(SuspensionConfig {
        start: Instant::ZERO + start,
        period,
        shortest,
        longest,
    }))
}

fn read_isn(table: &mut Reader<'_>) -> Result<IsnRewrite, ScenarioError> {
    let choices = [
        ("off", IsnRewrite::Off),
        ("with_sack", IsnRewrite::WithSack),
        ("without_sack", IsnRewrite::WithoutSack),
    ];
    Ok(table.choice("isn_rewrite", &choices)?.unwrap_or_default())
}

fn read_skew(table: &mut Reader<'_>) -> Result<i64, ScenarioError> {
    // Quartz is within 100 ppm; a hundred times that is beyond any host.
    Ok(table
        .number("clock_skew_ppm", -10_000.0, 10_000.0)?
        .map_or(0, |skew| skew.round() as i64))
}

fn read_host(table: &mut Reader<'_>, side: Side) -> Result<HostConfig, ScenarioError> {
    let longest = Duration::from_secs(10);
    Ok(HostConfig {
        clock_skew_ppm: 0,
        late_timers: bounded(table, &side.key("late_timers"), longest)?.unwrap_or_default(),
        late_processing: bounded(table, &side.key("late_processing"), longest)?.unwrap_or_default(),
        short_sends: table.probability(&side.key("short_sends"))?,
        batch: table.integer(&side.key("batch"), 1, 64)?.unwrap_or(1) as usize,
    })
}
