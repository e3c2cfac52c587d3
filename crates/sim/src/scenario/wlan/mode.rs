//! The keys of `[wlan]` that say how frames are modulated: preamble, rate or MCS, streams, width,
//! guard interval.

use tack_base::Rate;
use tack_wlan::phy::{
    DsssRate, GuardInterval, Mode, ModeQuery, OfdmRate, Preamble, SigB, Standard, Width,
};

use super::super::error::ScenarioError;
use super::super::preset::Preset;
use super::super::reader::Reader;

const WIDTHS: [(&str, Width); 4] = [
    ("20MHz", Width::W20),
    ("40MHz", Width::W40),
    ("80MHz", Width::W80),
    ("160MHz", Width::W160),
];

const GUARDS: [(&str, GuardInterval); 4] = [
    ("400ns", GuardInterval::Ns400),
    ("800ns", GuardInterval::Ns800),
    ("1600ns", GuardInterval::Ns1600),
    ("3200ns", GuardInterval::Ns3200),
];

pub(super) fn read_preamble(
    table: &mut Reader<'_>,
    standard: Standard,
    preset: Option<Preset>,
) -> Result<Preamble, ScenarioError> {
    let choices = [("long", Preamble::Long), ("short", Preamble::Short)];
    let preamble = table.choice("preamble", &choices)?;
    if preamble.is_some() && standard != Standard::B {
        return Err(table.fail("preamble", "only 802.11b has a choice; leave it out"));
    }
    Ok(preamble
        .or(preset.map(Preset::preamble))
        .unwrap_or_default())
}

pub(super) fn read_mode(
    table: &mut Reader<'_>,
    standard: Standard,
    preset: Option<Preset>,
    preamble: Preamble,
) -> Result<Mode, ScenarioError> {
    let sig_b = table.choice(
        "vht_sig_b",
        &[("sent", SigB::Sent), ("omitted", SigB::Omitted)],
    )?;
    if sig_b.is_some() && standard != Standard::Ac {
        return Err(table.fail("vht_sig_b", "is a field of 802.11ac; leave it out"));
    }
    let query = ModeQuery {
        rate: table.rate("rate")?,
        mcs: table.integer("mcs", 0, 31)?.map(|mcs| mcs as u8),
        streams: table
            .integer("spatial_streams", 1, 8)?
            .map(|streams| streams as u8),
        width: table.choice("channel_width", &WIDTHS)?,
        guard: table.choice("guard_interval", &GUARDS)?,
        preamble,
        sig_b: sig_b.unwrap_or_default(),
    };
    if query.rate.is_some() && query.mcs.is_some() {
        return Err(table.fail("mcs", "give either rate or mcs, not both"));
    }
    let is_open = query.rate.is_none() && query.mcs.is_none();
    let query = match preset {
        Some(preset) if is_open => ModeQuery {
            rate: Some(preset.rate()),
            ..query
        },
        _ => query,
    };
    let usual = usual_width(standard);
    let found = query.find(standard);
    let in_usual_width = || {
        ModeQuery {
            width: usual,
            ..query
        }
        .find(standard)
    };
    // Several modes may have one rate: the usual width comes first, then the fewest streams.
    // Without rate and MCS, the fastest of one stream, or of as many as were given.
    let choice = if query.width.is_none() && usual.is_some() {
        let usual = in_usual_width();
        if usual.is_empty() { found } else { usual }
    } else {
        found
    };
    let streams = query.streams.unwrap_or(1);
    let mode = if query.rate.is_none() && query.mcs.is_none() {
        let wanted = choice.into_iter().filter(|mode| mode.streams() == streams);
        wanted.max_by_key(|mode| mode.rate())
    } else {
        choice.into_iter().next()
    };
    mode.ok_or_else(|| {
        let key = if query.mcs.is_some() { "mcs" } else { "rate" };
        table.fail(key, no_mode(standard, &query))
    })
}

fn usual_width(standard: Standard) -> Option<Width> {
    match standard {
        Standard::B | Standard::A | Standard::G => None,
        Standard::N => Some(Width::W40),
        Standard::Ac | Standard::Ax => Some(Width::W80),
    }
}

/// Says which rates there are.
fn no_mode(standard: Standard, query: &ModeQuery) -> String {
    let open = ModeQuery {
        rate: None,
        mcs: None,
        ..*query
    };
    let mut rates: Vec<u64> = open
        .find(standard)
        .iter()
        .map(|mode| mode.rate().bits_per_sec())
        .collect();
    rates.sort_unstable();
    rates.dedup();
    let near: Vec<String> = match query.rate {
        Some(rate) => {
            let mut by_distance = rates.clone();
            by_distance.sort_by_key(|bits| bits.abs_diff(rate.bits_per_sec()));
            by_distance.truncate(4);
            by_distance.sort_unstable();
            by_distance.iter().map(|bits| show(*bits)).collect()
        }
        None => Vec::new(),
    };
    if near.is_empty() {
        format!(
            "{} has no such mode with these streams, width and guard interval",
            standard.name()
        )
    } else {
        format!(
            "{} has no such rate with these streams, width and guard interval; near it are {}",
            standard.name(),
            near.join(", ")
        )
    }
}

pub(super) fn show(bits: u64) -> String {
    let tenths = (bits + 50_000) / 100_000;
    if tenths.is_multiple_of(10) {
        format!("{}Mbps", tenths / 10)
    } else {
        format!("{}.{}Mbps", tenths / 10, tenths % 10)
    }
}

/// A rate of control frames: of 802.11b for 802.11b, of OFDM for all others.
pub(super) fn control_mode(
    table: &Reader<'_>,
    key: &str,
    standard: Standard,
    preamble: Preamble,
    rate: Rate,
) -> Result<Mode, ScenarioError> {
    let (mode, choices) = if standard == Standard::B {
        let found = DsssRate::ALL.into_iter().find(|one| one.rate() == rate);
        let mode = found.map(|rate| Mode::Dsss(rate, rate.preamble(preamble)));
        (mode, "1Mbps, 2Mbps, 5.5Mbps, 11Mbps")
    } else {
        let found = OfdmRate::ALL.into_iter().find(|one| one.rate() == rate);
        let choices = "6Mbps, 9Mbps, 12Mbps, 18Mbps, 24Mbps, 36Mbps, 48Mbps, 54Mbps";
        (found.map(Mode::Ofdm), choices)
    };
    mode.ok_or_else(|| {
        table.fail(
            key,
            format!("is not a rate of control frames; one of: {choices}"),
        )
    })
}
