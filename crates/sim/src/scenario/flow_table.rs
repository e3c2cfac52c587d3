//! Reads a `[[flow]]` table.

use std::time::Duration;

use tack_base::Instant;
use tack_tcp::cc::Counting;
use tack_tcp::config::{AccurateEcn, WindowPacing};
use tack_tcp::{AckKind, Algorithm, Config, ParseAlgorithmError};
use tack_wlan::AccessCategory;

use super::error::ScenarioError;
use super::flow::{App, Flow, Party, TcpFlow, Transport, UdpFlow, UdpRate};
use super::reader::Reader;
use super::units;
use super::video::Video;
use super::wired::{LONGEST_DELAY, bounded};

const TCP_ONLY: [&str; 18] = [
    "congestion",
    "ack",
    "mss",
    "base_mss",
    "timestamps",
    "sack",
    "ecn",
    "accurate_ecn",
    "nagle",
    "receive_buffer",
    "least_receive_buffer",
    "send_buffer",
    "initial_window",
    "receive_window",
    "initial_rto",
    "min_rto",
    "window_pacing",
    "byte_counting",
];
const VIDEO_BYTES: &str =
    "has no effect for a video, whose frames have their own sizes; stop = \"…\" ends it";
const UDP_ONLY: [&str; 4] = ["rate", "payload", "ack_every", "ack_size"];

/// One end of a flow in a file: a host, or each station, which makes a flow for each.
const EACH: &str = "each";

/// Reads a `[[flow]]` table between the server and the client, or between the hosts of a network of
/// so many `stations`: one flow, or one for each station.
pub(super) fn read(
    mut table: Reader<'_>,
    id: usize,
    stations: Option<u16>,
) -> Result<Vec<Flow>, ScenarioError> {
    let is_each = |table: &mut Reader<'_>, key| {
        let text = table.text(key)?;
        Ok(text.as_deref() == Some(EACH))
    };
    let ends = [is_each(&mut table, "from")?, is_each(&mut table, "to")?];
    let stagger = table.duration("stagger")?;
    if ends == [false; 2] {
        if stagger.is_some() {
            return Err(table.fail(
                "stagger",
                "is for flows of each station: from or to = \"each\"",
            ));
        }
        return Ok(vec![read_one(table, id, stations, None)?]);
    }
    let key = if ends[0] { "from" } else { "to" };
    let Some(count) = stations else {
        return Err(table.fail(key, "\"each\" needs a wireless network: add a [wlan] table"));
    };
    if ends == [true; 2] {
        return Err(table.fail("to", "only one end can be \"each\""));
    }
    let each = Party::Station(0);
    let first = read_one(table, id, stations, Some((ends[0], each)))?;
    let flow = |number: u16| {
        let mut flow = first.clone();
        let end = if ends[0] {
            &mut flow.from
        } else {
            &mut flow.to
        };
        *end = Party::Station(number);
        let later = stagger.unwrap_or_default() * u32::from(number);
        flow.start = first.start.saturating_add(later);
        flow
    };
    // A flow between two stations makes sense for all but the other end.
    let other = if ends[0] { first.to } else { first.from };
    let others = (0..count).filter(|number| other != Party::Station(*number));
    Ok(others.map(flow).collect())
}

/// Reads one flow. `each` says which end is each station, true for `from`, and what stands for it.
fn read_one(
    mut table: Reader<'_>,
    id: usize,
    stations: Option<u16>,
    each: Option<(bool, Party)>,
) -> Result<Flow, ScenarioError> {
    let mut read_end = |key: &str| match each {
        Some((is_from, party)) if is_from == (key == "from") => Ok(Some(party)),
        _ => read_party(&mut table, key, stations),
    };
    let from = read_end("from")?.unwrap_or(Party::Server);
    let other = match (from, stations) {
        (Party::Server, None) => Party::Client,
        (Party::Server, Some(_)) => Party::Station(0),
        (Party::Client | Party::Station(_), _) => Party::Server,
    };
    let to = read_end("to")?.unwrap_or(other);
    if from == to && each.is_none() {
        let message = format!(
            "flow {id} goes from {0} to {0}; the ends must differ",
            from.name()
        );
        return Err(table.fail("to", message));
    }
    let start = table.duration("start")?.unwrap_or_default();
    let stop = table.duration("stop")?;
    if stop.is_some_and(|stop| stop <= start) {
        return Err(table.fail("stop", "must be later than start"));
    }
    let bytes = table.size("bytes")?;
    if bytes == Some(0) {
        return Err(table.fail("bytes", "must be above zero"));
    }
    if bytes.is_some() && stop.is_some() {
        return Err(table.fail("stop", "give either stop or bytes, not both"));
    }
    let extra_delay = bounded(&mut table, "extra_delay", LONGEST_DELAY)?.unwrap_or_default();
    let category = read_category(&mut table, stations)?;
    let is_udp = table
        .choice("transport", &[("tcp", false), ("udp", true)])?
        .unwrap_or(false);
    let transport = if is_udp {
        for key in TCP_ONLY {
            table.refuse(key, "has no effect for transport = \"udp\"; leave it out")?;
        }
        let udp = read_udp(&mut table)?;
        if udp.video.is_some() && bytes.is_some() {
            return Err(table.fail("bytes", VIDEO_BYTES));
        }
        Transport::Udp(udp)
    } else {
        for key in UDP_ONLY {
            table.refuse(
                key,
                "is for transport = \"udp\"; TCP finds its own rate and segment size (mss)",
            )?;
        }
        Transport::Tcp(Box::new(read_tcp(&mut table)?))
    };
    if let Transport::Tcp(tcp) = &transport {
        match tcp.app {
            App::Request { .. } if bytes.is_some() => {
                return Err(table.fail(
                    "bytes",
                    "has no effect for a request app, whose exchanges have their own sizes",
                ));
            }
            App::Video(_) if bytes.is_some() => return Err(table.fail("bytes", VIDEO_BYTES)),
            App::Duplex if bytes.is_none() && stop.is_none() => {
                return Err(table.fail("app", "duplex needs bytes (for each side) or stop"));
            }
            _ => {}
        }
    }
    table.finish()?;
    Ok(Flow {
        from,
        to,
        start,
        stop,
        bytes,
        extra_delay,
        category,
        transport,
    })
}

fn read_category(
    table: &mut Reader<'_>,
    stations: Option<u16>,
) -> Result<AccessCategory, ScenarioError> {
    let choices = [
        ("background", AccessCategory::Background),
        ("best_effort", AccessCategory::BestEffort),
        ("video", AccessCategory::Video),
        ("voice", AccessCategory::Voice),
    ];
    let category = table.choice("access_category", &choices)?;
    if category.is_some() && stations.is_none() {
        return Err(table.fail(
            "access_category",
            "has no effect without a wireless network; add a [wlan] table or leave it out",
        ));
    }
    Ok(category.unwrap_or_default())
}

fn read_party(
    table: &mut Reader<'_>,
    key: &str,
    stations: Option<u16>,
) -> Result<Option<Party>, ScenarioError> {
    let Some(name) = table.text(key)? else {
        return Ok(None);
    };
    let number = name
        .strip_prefix("sta")
        .and_then(|number| number.parse::<u16>().ok());
    let (party, hosts) = match (name.as_str(), stations) {
        ("server", _) => return Ok(Some(Party::Server)),
        ("client", None) => return Ok(Some(Party::Client)),
        (_, None) if number.is_some() => {
            let message =
                format!("{name:?} needs a wireless network: add a [wlan] table, or use client");
            return Err(table.fail(key, message));
        }
        (_, None) => (None, "server, client".into()),
        (_, Some(1)) => (number, "server, sta0".into()),
        (_, Some(count)) => (number, format!("server, sta0 to sta{}", count - 1)),
    };
    match party {
        Some(number) if stations.is_some_and(|count| number < count) => {
            Ok(Some(Party::Station(number)))
        }
        _ => Err(table.fail(key, format!("{name:?} is not a host; one of: {hosts}"))),
    }
}

fn read_udp(table: &mut Reader<'_>) -> Result<UdpFlow, ScenarioError> {
    let rate = match table.text("rate")?.as_deref() {
        None | Some("saturate") => UdpRate::Saturate,
        Some(text) => match units::rate(text).filter(|rate| !rate.is_zero()) {
            Some(rate) => UdpRate::Fixed(rate),
            None => {
                let message = format!(
                    "{text:?} is not a rate; write \"saturate\" or a rate like \"100Mbps\""
                );
                return Err(table.fail("rate", message));
            }
        },
    };
    let video = match table.text("app")? {
        None => None,
        Some(text) => match text.split_once(':').unwrap_or((&text, "")) {
            ("video", rest) => Some(read_video(table, &text, rest)?),
            _ => {
                let message = format!(
                    "{text:?}: a UDP flow has datagrams at its rate (leave app out), or app = \"video:…\""
                );
                return Err(table.fail("app", message));
            }
        },
    };
    if video.is_some() {
        table.refuse("rate", "a video has its own: app = \"video:rate=…\"")?;
    }
    Ok(UdpFlow {
        video,
        rate,
        payload: table.integer("payload", 16, 65_507)?.unwrap_or(1_472) as usize,
        ack_every: table.integer("ack_every", 0, 1_000_000)?.unwrap_or(0),
        ack_size: table.integer("ack_size", 44, 1_500)?.unwrap_or(64) as usize,
    })
}

fn read_tcp(table: &mut Reader<'_>) -> Result<TcpFlow, ScenarioError> {
    // What the others are compared with; an experiment with TACK names it.
    let mut config = Config {
        ack: AckKind::delayed(2),
        ..Config::default()
    };
    if let Some(name) = table.text("congestion")? {
        config.congestion = name
            .parse()
            .map_err(|error: ParseAlgorithmError| table.fail("congestion", error.to_string()))?;
    }
    if let Some(name) = table.text("ack")? {
        config.ack = match name.parse::<AckKind>() {
            Ok(kind) => kind,
            Err(error) => return Err(table.fail("ack", error.to_string())),
        };
    }
    config.mss = table
        .integer("mss", 88, 65_475)?
        .map_or(config.mss, |mss| mss as u16);
    config.base_mss = table
        .integer("base_mss", 88, u64::from(config.mss))?
        .map(|mss| mss as u16);
    config.timestamps = table.boolean("timestamps")?.unwrap_or(config.timestamps);
    config.sack = table.boolean("sack")?.unwrap_or(config.sack);
    config.ecn = table.boolean("ecn")?.unwrap_or(config.ecn);
    let accurates = [
        ("off", AccurateEcn::Off),
        ("accept", AccurateEcn::Accept),
        ("offer", AccurateEcn::Offer),
    ];
    if let Some(accurate) = table.choice("accurate_ecn", &accurates)? {
        if !config.ecn {
            return Err(table.fail("accurate_ecn", "has no effect with ecn = false"));
        }
        config.accurate_ecn = accurate;
    }
    config.nagle = table.boolean("nagle")?.unwrap_or(config.nagle);
    config.receive_buffer = read_buffer(table, "receive_buffer", config.receive_buffer)?;
    let least = read_buffer(table, "least_receive_buffer", usize::MAX)?;
    config.least_receive_buffer = (least < usize::MAX).then_some(least);
    if config.least_receive_buffer > Some(config.receive_buffer) {
        return Err(table.fail("least_receive_buffer", "must be at most receive_buffer"));
    }
    config.send_buffer = read_buffer(table, "send_buffer", config.send_buffer)?;
    if let Some(first) = table.duration("initial_rto")? {
        if first < Duration::from_millis(1) || first > config.max_rto {
            return Err(table.fail("initial_rto", "must be from 1ms to 60s"));
        }
        config.initial_rto = first;
    }
    if let Some(least) = table.duration("min_rto")? {
        if least < Duration::from_millis(1) || least > config.max_rto {
            return Err(table.fail("min_rto", "must be from 1ms to 60s"));
        }
        config.min_rto = least;
    }
    let windows = [("autotuned", false), ("fixed", true)];
    if table.choice("receive_window", &windows)? == Some(true) {
        if config.least_receive_buffer.is_some() {
            return Err(table.fail(
                "receive_window",
                "a fixed one does not shrink; leave least_receive_buffer out",
            ));
        }
        config.initial_receive_buffer = config.receive_buffer;
    }
    let pacings = [("on", WindowPacing::On), ("off", WindowPacing::Off)];
    if let Some(pacing) = table.choice("window_pacing", &pacings)? {
        if matches!(config.congestion, Algorithm::Bbr(_)) {
            return Err(table.fail("window_pacing", "BBR paces by itself; leave it out"));
        }
        config.window_pacing = pacing;
    }
    if let Some(counts_bytes) = table.boolean("byte_counting")? {
        if config.congestion != Algorithm::NewReno {
            let message = "is a choice of new_reno only; leave it out";
            return Err(table.fail("byte_counting", message));
        }
        if !counts_bytes {
            config.counting = Counting::Acknowledgements;
        }
    }
    config.initial_window_segments = table
        .integer("initial_window", 1, 1_000)?
        .map_or(config.initial_window_segments, |segments| segments as u32);
    Ok(TcpFlow {
        app: read_app(table)?,
        config,
    })
}

fn read_buffer(table: &mut Reader<'_>, key: &str, default: usize) -> Result<usize, ScenarioError> {
    // RFC 7323 §2.3: a window is at most 2^30 bytes.
    match table.size(key)? {
        None => Ok(default),
        Some(size @ 2_048..=0x4000_0000) => Ok(size as usize),
        Some(_) => Err(table.fail(key, "must be from 2KiB to 1GiB")),
    }
}

fn read_app(table: &mut Reader<'_>) -> Result<App, ScenarioError> {
    let Some(text) = table.text("app")? else {
        return Ok(App::Bulk { pauses: Vec::new() });
    };
    let (name, rest) = text.split_once(':').unwrap_or((&text, ""));
    match name {
        "bulk" => match read_pauses(rest) {
            Some(pauses) => Ok(App::Bulk { pauses }),
            None => Err(table.fail(
                "app",
                format!("{text:?}: after bulk: come pairs like pause=1s,resume=3s, each later than the one before"),
            )),
        },
        "duplex" if rest.is_empty() => Ok(App::Duplex),
        "request" => read_request(rest).ok_or_else(|| {
            table.fail(
                "app",
                format!("{text:?}: write request:1KiB,1KiB or request:1KiB,1KiB,gap=10ms (sizes of request and response)"),
            )
        }),
        "video" => read_video(table, &text, rest).map(App::Video),
        _ => Err(table.fail("app", format!("{text:?} is not an app; one of: bulk, bulk:pause=…,resume=…, duplex, request:…, video, video:…"))),
    }
}

fn read_video(table: &mut Reader<'_>, text: &str, rest: &str) -> Result<Video, ScenarioError> {
    Video::read(rest).ok_or_else(|| table.fail("app", format!("{text:?}: {}", Video::FORM)))
}

fn read_pauses(text: &str) -> Option<Vec<(Instant, Instant)>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let mut pauses = Vec::new();
    let mut last = Duration::ZERO;
    let mut parts = text.split(',');
    while let Some(pause) = parts.next() {
        let pause = units::duration(pause.strip_prefix("pause=")?)?;
        let resume = match parts.next() {
            // A pause without an end lasts to the end of the run.
            None => Duration::from_secs(u64::MAX / 2_000_000_000),
            Some(resume) => units::duration(resume.strip_prefix("resume=")?)?,
        };
        if pause < last || resume <= pause {
            return None;
        }
        last = resume;
        pauses.push((Instant::ZERO + pause, Instant::ZERO + resume));
    }
    Some(pauses)
}

fn read_request(text: &str) -> Option<App> {
    let mut parts = text.split(',');
    let request = units::size(parts.next()?).filter(|size| *size > 0)?;
    let response = units::size(parts.next()?).filter(|size| *size > 0)?;
    let gap = match parts.next() {
        None => Duration::ZERO,
        Some(gap) => units::duration(gap.strip_prefix("gap=")?)?,
    };
    parts.next().is_none().then_some(App::Request {
        request,
        response,
        gap,
    })
}
