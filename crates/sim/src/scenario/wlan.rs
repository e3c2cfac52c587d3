//! The `[wlan]` table: a wireless network behind the near end of the wired path.

mod mode;

use std::time::Duration;

use tack_base::Rate;
use tack_wlan::mac::config::{Agreements, MissedBlockAck, PPDU_MAX_TIME, WINDOW};
use tack_wlan::mac::discipline::AckFilter;
use tack_wlan::mac::{CwAdaptation, Protection};
use tack_wlan::phy::{
    Awgn, Band, DsssRate, ErrorModel, Mode, OfdmRate, Preamble, Standard, Timing,
};
use tack_wlan::world::{Beacons, Contenders, HostDelays, HostInterrupt, Offer};
use tack_wlan::{MacConfig, NodeId, WorldConfig};

use super::error::ScenarioError;
use super::hack::{self, HackCodec};
use super::preset::{self, Preset};
use super::reader::Reader;
use super::units::QueueText;
use mode::{control_mode, read_mode, read_preamble, show};

/// The wireless network.
#[derive(Clone, Debug, PartialEq)]
pub struct Wlan {
    /// Its settings.
    pub world: WorldConfig,
    /// Generation of 802.11.
    pub standard: Standard,
    /// Frequency band.
    pub band: Band,
    /// The filter of TCP acknowledgements in the queues of the access point and the stations.
    pub ack_filter: AckFilter,
    /// How TCP/HACK compresses.
    pub hack_codec: HackCodec,
}

/// Most stations, those of neighbours included: each is asked at every transmission.
const MOST_STATIONS: u64 = 1_000;

/// Packets of a neighbour come no faster, on average.
const SHORTEST_INTERVAL: Duration = Duration::from_micros(1);

const DEFAULT_QUEUE: usize = 1_000;

/// The default delays of a host: tens of microseconds for the interrupt and the softirq behind it,
/// and for the way through the driver to the queue. Both are longer than SIFS, so that what answers
/// the last frame of a PPDU is too late for its response.
const HOST: HostDelays = HostDelays {
    receive: Duration::from_micros(30),
    transmit: Duration::from_micros(20),
};

/// A host that takes longer is not a network card.
const SLOWEST_HOST: Duration = Duration::from_millis(100);

/// 100 time units of 1.024 ms, as nearly every access point has it.
const BEACON_INTERVAL: Duration = Duration::from_micros(102_400);

const STANDARDS: [(&str, Standard); 6] = [
    ("802.11b", Standard::B),
    ("802.11a", Standard::A),
    ("802.11g", Standard::G),
    ("802.11n", Standard::N),
    ("802.11ac", Standard::Ac),
    ("802.11ax", Standard::Ax),
];

/// The values of `ack_filter`.
pub const ACK_FILTERS: [(&str, AckFilter); 5] = [
    ("off", AckFilter::Off),
    ("paper", AckFilter::Paper),
    ("safe", AckFilter::Safe),
    ("cake", AckFilter::Cake),
    ("cake_aggressive", AckFilter::CakeAggressive),
];

const CW_ADAPTATIONS: [(&str, CwAdaptation); 2] = [
    ("standard", CwAdaptation::Standard),
    ("mimd", CwAdaptation::Mimd),
];

pub(super) fn read(mut table: Reader<'_>) -> Result<Wlan, ScenarioError> {
    let preset = table.choice("preset", &preset::NAMES)?;
    let standard = table.choice("standard", &STANDARDS)?;
    let standard = match (standard, preset) {
        (Some(standard), Some(preset)) if standard != preset.standard() => {
            let message = format!("the preset is for {}", preset.standard().name());
            return Err(table.fail("standard", message));
        }
        (standard, preset) => standard
            .or(preset.map(Preset::standard))
            .unwrap_or(Standard::N),
    };
    let band = table
        .choice("band", &[("2.4GHz", Band::Ghz2_4), ("5GHz", Band::Ghz5)])?
        .unwrap_or(standard.band());
    if band != standard.band() && !matches!(standard, Standard::N | Standard::Ax) {
        let message = format!("{} has no choice of bands; leave it out", standard.name());
        return Err(table.fail("band", message));
    }
    let preamble = read_preamble(&mut table, standard, preset)?;
    let data_mode = read_mode(&mut table, standard, preset, preamble)?;
    let mut timing = Timing::new(standard, band, preamble);
    if let Some(slot) = table.choice("slot", &[("short", 9), ("long", 20)])? {
        if standard != Standard::G {
            return Err(table.fail("slot", "only 802.11g has a choice of slots; leave it out"));
        }
        timing.slot = Duration::from_micros(slot);
    }
    let mut mac = MacConfig::new(standard, timing, data_mode);
    if let Some(preset) = preset {
        preset.apply(&mut mac);
    }
    read_mac(&mut table, standard, preamble, &mut mac)?;
    let stations = table.integer("stations", 1, MOST_STATIONS)?.unwrap_or(1) as u16;
    let mut world = WorldConfig::new(mac, stations);
    read_queues(&mut table, &mut world)?;
    let ack_filter = table.choice("ack_filter", &ACK_FILTERS)?;
    let hack_codec = hack::read(&mut table, &mut world)?;
    read_host(&mut table, &mut world)?;
    read_errors(&mut table, &mut world)?;
    read_neighbours(&mut table, standard, &mut world)?;
    table.finish()?;
    Ok(Wlan {
        world,
        standard,
        band,
        ack_filter: ack_filter.unwrap_or_default(),
        hack_codec,
    })
}

fn read_mac(
    table: &mut Reader<'_>,
    standard: Standard,
    preamble: Preamble,
    mac: &mut MacConfig,
) -> Result<(), ScenarioError> {
    if let Some(rate) = table.rate("control_rate")? {
        mac.control_mode = control_mode(table, "control_rate", standard, preamble, rate)?;
    }
    if let Some(text) = table.text("rts_threshold")? {
        mac.rts_threshold = match text.as_str() {
            "off" => None,
            _ => match super::units::size(&text).and_then(|size| u32::try_from(size).ok()) {
                Some(size) => Some(size),
                None => {
                    let message =
                        format!("{text:?}: write \"off\" or a frame size such as \"500B\"");
                    return Err(table.fail("rts_threshold", message));
                }
            },
        };
    }
    read_protection(table, standard, mac)?;
    if let Some(most) = table.integer("ampdu_max_bytes", 0, 6_500_631)? {
        if most > 0 && !standard.is_qos() {
            let message = format!("{} does not aggregate; leave it out", standard.name());
            return Err(table.fail("ampdu_max_bytes", message));
        }
        mac.ampdu.bytes = most as u32;
    }
    if let Some(most) = table.integer("ampdu_max_frames", 1, u64::from(WINDOW))? {
        mac.ampdu.frames = most as u16;
    }
    if let Some(longest) = table.duration("ampdu_max_airtime")? {
        if !standard.is_qos() {
            let message = format!("{} does not aggregate; leave it out", standard.name());
            return Err(table.fail("ampdu_max_airtime", message));
        }
        if longest.is_zero() || longest > PPDU_MAX_TIME {
            return Err(table.fail("ampdu_max_airtime", "must be above zero and at most 5484us"));
        }
        mac.ampdu.airtime = longest;
    }
    read_block_ack(table, standard, mac)?;
    if let Some(limit) = table.duration("txop_limit")? {
        // §9.4.2.28: a 16-bit field in units of 32 us.
        if limit > Duration::from_micros(32 * 65_535) {
            return Err(table.fail("txop_limit", "must be at most 2097.12ms"));
        }
        if !limit.is_zero() && !standard.is_qos() {
            let message = format!("{} has no TXOPs; leave it out", standard.name());
            return Err(table.fail("txop_limit", message));
        }
        mac.txop_limit = [limit; 4];
    }
    for (key, most) in [("cw_min", 32_767), ("cw_max", 32_767)] {
        if let Some(window) = table.integer(key, 0, most)? {
            if !(window + 1).is_power_of_two() {
                return Err(table.fail(
                    key,
                    "must be a power of two less one, such as 15 or 1023 (802.11 §9.4.2.28)",
                ));
            }
            for contention in &mut mac.contention {
                if key == "cw_min" {
                    contention.cw_min = window as u32;
                } else {
                    contention.cw_max = window as u32;
                }
            }
        }
    }
    if mac
        .contention
        .iter()
        .any(|contention| contention.cw_min > contention.cw_max)
    {
        return Err(table.fail("cw_min", "must not be above cw_max"));
    }
    if let Some(adaptation) = table.choice("cw_adaptation", &CW_ADAPTATIONS)? {
        for contention in &mut mac.contention {
            contention.adaptation = adaptation;
        }
    }
    if let Some(slots) = table.integer("aifsn", 2, 15)? {
        for contention in &mut mac.contention {
            contention.aifsn = slots as u32;
        }
    }
    if let Some(limit) = table.integer("retry_limit", 1, 255)? {
        mac.retry_limit = limit as u8;
    }
    Ok(())
}

fn read_block_ack(
    table: &mut Reader<'_>,
    standard: Standard,
    mac: &mut MacConfig,
) -> Result<(), ScenarioError> {
    let choices = [
        ("request", MissedBlockAck::Request),
        ("resend", MissedBlockAck::Resend),
    ];
    let missed = table.choice("missed_block_ack", &choices)?;
    let choices = [
        ("established", Agreements::Established),
        ("negotiated", Agreements::Negotiated),
    ];
    let agreements = table.choice("block_ack_agreement", &choices)?;
    let timeout = table.text("reorder_timeout")?;
    for (key, is_given) in [
        ("block_ack_agreement", agreements.is_some()),
        ("missed_block_ack", missed.is_some()),
        ("reorder_timeout", timeout.is_some()),
    ] {
        if is_given && !standard.is_qos() {
            let message = format!("{} has no Block ACK; leave it out", standard.name());
            return Err(table.fail(key, message));
        }
    }
    mac.missed_block_ack = missed.unwrap_or_default();
    mac.agreements = agreements.unwrap_or_default();
    match timeout.as_deref() {
        None => {}
        Some("off") => mac.reorder_timeout = None,
        Some(text) => match super::units::duration(text) {
            Some(timeout) if timeout >= Duration::from_millis(1) => {
                mac.reorder_timeout = Some(timeout);
            }
            _ => {
                let message = format!(
                    "expected \"off\" or a time of at least 1ms, such as \"100ms\"; got {text:?}"
                );
                return Err(table.fail("reorder_timeout", message));
            }
        },
    }
    Ok(())
}

fn read_protection(
    table: &mut Reader<'_>,
    standard: Standard,
    mac: &mut MacConfig,
) -> Result<(), ScenarioError> {
    let choice = table.choice("protection", &[("off", false), ("cts_to_self", true)])?;
    let rate = table.rate("protection_rate")?;
    match choice {
        None => {}
        Some(false) => mac.protection = Protection::Off,
        Some(true) => {
            // Radios of 802.11b read 1 to 11 Mbit/s only, in the 2.4 GHz band.
            let dsss =
                rate.and_then(|rate| DsssRate::ALL.into_iter().find(|one| one.rate() == rate));
            let mode = match (rate, dsss) {
                (None, _) => Mode::Ofdm(OfdmRate::R6),
                (_, Some(rate)) if standard == Standard::G => {
                    Mode::Dsss(rate, rate.preamble(Preamble::Long))
                }
                (Some(rate), _) => {
                    control_mode(table, "protection_rate", standard, Preamble::Long, rate)?
                }
            };
            mac.protection = Protection::CtsToSelf(mode);
        }
    }
    if rate.is_some() && choice != Some(true) {
        let message = "has no effect without protection = \"cts_to_self\"";
        return Err(table.fail("protection_rate", message));
    }
    Ok(())
}

fn read_queues(table: &mut Reader<'_>, world: &mut WorldConfig) -> Result<(), ScenarioError> {
    let mut queue = |key: &str, default: usize| match table.queue(key)? {
        None => Ok(default),
        Some(QueueText::Packets(packets @ 1..=1_000_000)) => Ok(packets as usize),
        Some(_) => Err(table.fail(
            key,
            "a MAC queue counts packets; write \"1000p\" (1 to 1000000)",
        )),
    };
    let both = queue("queue", DEFAULT_QUEUE)?;
    world.ap_queue = queue("ap_queue", both)?;
    world.station_queue = queue("station_queue", both)?;
    Ok(())
}

fn read_host(table: &mut Reader<'_>, world: &mut WorldConfig) -> Result<(), ScenarioError> {
    let interrupts = [
        ("frame", HostInterrupt::Frame),
        ("ppdu", HostInterrupt::Ppdu),
    ];
    // Where a host heard of each frame as it ends, most acknowledgements of a batch would ride on
    // its own Block ACK.
    let usual = if world.hack.is_on() {
        HostInterrupt::Ppdu
    } else {
        HostInterrupt::Frame
    };
    world.interrupt = table
        .choice("host_interrupt", &interrupts)?
        .unwrap_or(usual);
    let mut delay = |key: &str, default: Duration| match table.duration(key)? {
        Some(delay) if delay > SLOWEST_HOST => Err(table.fail(key, "must be at most 100ms")),
        delay => Ok(delay.unwrap_or(default)),
    };
    world.host = HostDelays {
        receive: delay("host_receive_delay", HOST.receive)?,
        transmit: delay("host_transmit_delay", HOST.transmit)?,
    };
    Ok(())
}

fn read_errors(table: &mut Reader<'_>, world: &mut WorldConfig) -> Result<(), ScenarioError> {
    let rate = table.probability("frame_error_rate")?;
    if rate > 0.0 {
        world.error = ErrorModel::Rate(rate);
    }
    let Some(mut model) = table.table("error_model")? else {
        return Ok(());
    };
    if rate > 0.0 {
        return Err(table.fail(
            "error_model",
            "give either frame_error_rate or an error model, not both",
        ));
    }
    let Some(snr) = model.number("snr_db", -20.0, 80.0)? else {
        return Err(model.fail_table("needs the key snr_db: a signal-to-noise ratio such as 25.0"));
    };
    world.error = ErrorModel::Awgn(Awgn::new(snr));
    let own = model.numbers("station_snr_db", -20.0, 80.0)?;
    if own.len() > usize::from(world.stations) {
        let message = format!("there are {} stations only", world.stations);
        return Err(model.fail("station_snr_db", message));
    }
    for (number, snr) in own.into_iter().enumerate() {
        let node = NodeId(number as u16 + 1);
        world
            .station_errors
            .push((node, ErrorModel::Awgn(Awgn::new(snr))));
    }
    model.finish()
}

fn read_neighbours(
    table: &mut Reader<'_>,
    standard: Standard,
    world: &mut WorldConfig,
) -> Result<(), ScenarioError> {
    let most = MOST_STATIONS - u64::from(world.stations).min(MOST_STATIONS);
    let contenders = table.integer("contenders", 0, most)?.unwrap_or(0);
    let payload = table.integer("contender_payload", 1, 2_264)?;
    let rate = table.rate("contender_rate")?;
    for (key, is_given) in [
        ("contender_payload", payload.is_some()),
        ("contender_rate", rate.is_some()),
    ] {
        if is_given && contenders == 0 {
            return Err(table.fail(key, "has no effect without contenders"));
        }
    }
    let payload = payload.unwrap_or(1_472);
    world.contenders = Contenders {
        stations: contenders as u16,
        // IPv4 and UDP headers.
        packet: payload as u32 + 28,
        offer: match rate.map(|rate| rate.time_for(payload)) {
            None => Offer::Saturated,
            Some(interval) if interval >= SHORTEST_INTERVAL => Offer::Poisson { interval },
            Some(_) => {
                let most = Rate::from_bytes_over(payload, SHORTEST_INTERVAL);
                let message = format!(
                    "is more than any of these radios carries; at most {}, or leave it out for saturated ones",
                    show(most.bits_per_sec())
                );
                return Err(table.fail("contender_rate", message));
            }
        },
    };
    world.beacons = match table.text("beacon_interval")?.as_deref() {
        Some("off") => None,
        None => Some(Beacons::usual(standard, BEACON_INTERVAL)),
        Some(text) => match super::units::duration(text) {
            Some(interval) if interval >= Duration::from_millis(1) => {
                Some(Beacons::usual(standard, interval))
            }
            _ => {
                let message = format!(
                    "{text:?}: write \"off\" or an interval of at least 1ms, such as \"102.4ms\""
                );
                return Err(table.fail("beacon_interval", message));
            }
        },
    };
    for pair in table.texts("hidden")? {
        let number = |name: &str| {
            let number = name.strip_prefix("sta")?.parse::<u16>().ok()?;
            (number < world.stations).then_some(NodeId(number + 1))
        };
        let ends = pair.split_once('-');
        let ends = ends.and_then(|(one, other)| Some((number(one)?, number(other)?)));
        match ends {
            Some((one, other)) if one != other => world.hidden.push((one, other)),
            _ => {
                let message = format!(
                    "{pair:?}: write pairs of stations that do not hear each other, such as \"sta0-sta1\""
                );
                return Err(table.fail("hidden", message));
            }
        }
    }
    Ok(())
}
