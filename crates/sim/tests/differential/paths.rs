//! Random paths: a shape, something to do, and two to four faults at once.

use tack_base::random::RandomStream;

use super::draft::{Draft, Keys, pick, scaled, share};
use super::faults::{ECN_FAULTS, FAULTS, Fault, Shape, every_flow, micros};

pub(crate) const CONTROLLERS: [&str; 5] = ["new_reno", "cubic", "bbr", "vegas", "compound"];

/// The second of two flows begins no later than so many seconds after the first, and is as likely
/// to begin at any time until then.
pub(crate) const LATEST_BEGINNING: f64 = 1.5;

/// From this number on some of the paths with marks mark nearly everything. Paths before it stay
/// what they were when the documents had them.
const NEARLY_ALL_MARKED_FROM: u64 = 9_001;

/// What the flows of a path are judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A number of bytes: the time until the last one.
    Transfer,
    /// As much as possible: goodput.
    Bulk,
    /// Requests and responses in turn: how many.
    Requests,
    /// A video of less than the path's rate: how long the player stands still.
    Video,
}

/// One path, as a scenario in which the judged flows acknowledge by TACK.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) number: u64,
    pub(crate) toml: String,
    pub(crate) congestion: &'static str,
    pub(crate) work: Work,
    /// So many flows, from the first, are judged and run with either policy.
    pub(crate) judged: usize,
    /// Data goes both ways at once.
    pub(crate) both_ways: bool,
    /// Two flows share it.
    pub(crate) shared: bool,
    /// The second of them begins later than the first.
    pub(crate) begins_later: bool,
    /// One-way delay of the wire, microseconds.
    pub(crate) delay_us: u64,
    /// The judged flow has a neighbour that differs from it in nothing but how it acknowledges.
    pub(crate) has_alike_neighbour: bool,
    /// Round trip without queues, seconds.
    pub(crate) rtt: f64,
    /// How long the run may last, seconds.
    pub(crate) duration: f64,
    /// The faults, by name.
    pub(crate) faults: Vec<String>,
    /// Its ends ask for accurate ECN feedback.
    pub(crate) accurate_ecn: bool,
}

/// What paths are drawn of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Two to four of all faults; the ends do what is the default about ECN.
    All,
    /// One of the faults is one of ECN, and the ends have no ECN, or classic or accurate feedback.
    Ecn,
    /// One of the faults is a path whose MTU shrinks, and packets have up to 9,000 bytes.
    Mtu,
}

/// Path number `number` of all faults.
pub(crate) fn path(number: u64) -> Path {
    draw(number, Family::All)
}

/// Path number `number` of `family`.
pub(crate) fn draw(number: u64, family: Family) -> Path {
    let name = match family {
        Family::All => "path",
        Family::Ecn => "ecn-path",
        Family::Mtu => "mtu-path",
    };
    let mut random = RandomStream::new(number, name, 0);
    let random = &mut random;
    let congestion = CONTROLLERS[(number % 5) as usize];
    let is_wireless = random.chance(0.1);
    let mut draft = Draft::default();
    let (mbps, rtt) = if is_wireless {
        wireless(random, &mut draft)
    } else {
        wired(random, &mut draft)
    };
    let mut flow = Keys::default();
    flow.text("congestion", congestion);
    flow.text("ack", "tack");
    if is_wireless && random.chance(0.3) {
        flow.text("from", "sta0");
        flow.text("to", "server");
    }
    let rate = mbps * 1e6;
    let (work, duration, busy) = work(random, rate, rtt, &mut flow);
    let mut judged = 1;
    let mut has_alike_neighbour = false;
    let mut begins_later = false;
    draft.flows.push(flow.clone());
    if work == Work::Bulk && random.chance(0.3) {
        if random.chance(0.5) {
            // A neighbour that acknowledges by delay in both runs: what differs is the share beside
            // it.
            flow.text("ack", "delayed:2");
            has_alike_neighbour = true;
        } else {
            judged = 2;
        }
        if random.chance(0.5) {
            flow.text("start", micros(LATEST_BEGINNING * random.unit()));
            begins_later = true;
            has_alike_neighbour = false;
        }
        if random.chance(0.3) {
            flow.text("extra_delay", micros(0.5 * rtt * scaled(random, 0.25, 4)));
            has_alike_neighbour = false;
        }
        draft.flows.push(flow);
    }
    let shape = Shape { rate, rtt, busy };
    let mut drawn = Vec::new();
    let mut accurate_ecn = false;
    if family == Family::Ecn {
        accurate_ecn = feedback(random, &mut draft);
        let side = pick(random, &SIDES);
        let fault = pick(random, &ECN_FAULTS);
        fault.write(side, shape, random, &mut draft);
        if fault == Fault::Marks && number >= NEARLY_ALL_MARKED_FROM {
            mark_nearly_all(number, side, &mut draft);
        }
        drawn.push((fault, side));
    }
    if family == Family::Mtu {
        large_packets(random, &mut draft);
        let side = pick(random, &SIDES);
        Fault::Narrowing.write(side, shape, random, &mut draft);
        drawn.push((Fault::Narrowing, side));
    }
    let faults = spoil(random, shape, &mut draft, drawn);
    draft.head.text("name", format!("{name}-{number}"));
    draft.head.set("seed", number);
    draft.head.text("duration", micros(duration));
    let toml = draft.to_toml();
    Path {
        number,
        both_ways: toml.contains("app = \"duplex\""),
        shared: draft.flows.len() > 1,
        begins_later,
        delay_us: draft.delay_us,
        toml,
        congestion,
        work,
        judged,
        has_alike_neighbour,
        rtt,
        duration,
        faults,
        accurate_ecn,
    }
}

/// What the ends do about ECN: half of them ask for accurate feedback. Returns whether these do.
fn feedback(random: &mut RandomStream, draft: &mut Draft) -> bool {
    match random.below(6) {
        0 => every_flow(draft, "ecn", "false"),
        1 | 2 => {}
        _ => {
            every_flow(draft, "accurate_ecn", "\"offer\"");
            return true;
        }
    }
    false
}

/// As over UDP: the ends take packets of 9,000 bytes, and two thirds of them begin with what each
/// path carries and probe for more.
fn large_packets(random: &mut RandomStream, draft: &mut Draft) {
    every_flow(draft, "mss", "8960");
    if random.below(3) > 0 {
        every_flow(draft, "base_mss", "1160");
    }
}

/// Half of the paths with marks mark all that may be marked, or all but 0.1 to 26 %. Numbers of
/// their own, so that the other faults stay what they were.
fn mark_nearly_all(number: u64, side: &str, draft: &mut Draft) {
    let mut random = RandomStream::new(number, "nearly-all-marked", 0);
    let often = match random.below(6) {
        0 => 1.0,
        1 | 2 => 1.0 - scaled(&mut random, 0.001, 8).min(0.5),
        _ => return,
    };
    draft.wired.set(format!("ecn_mark{side}"), share(often));
}

/// Ends of the keys of the two ways: from server to client, and back.
const SIDES: [&str; 2] = ["", "_reverse"];

/// From 1 Mbit/s to 256 Mbit/s and from 1 ms to 160 ms. Returns Mbit/s and the round trip in
/// seconds.
fn wired(random: &mut RandomStream, draft: &mut Draft) -> (f64, f64) {
    let kbps = scaled(random, 1_000.0, 8) as u64;
    let packets = |delay: f64| kbps as f64 * 125.0 * 2.0 * delay / 1_500.0;
    let mut delay = scaled(random, 0.0005, 7);
    // Otherwise a third of the paths would hold less than a few packets.
    if packets(delay) < 4.0 && random.chance(0.7) {
        delay = scaled(random, 0.005, 4);
    }
    draft.wired.text("rate", format!("{kbps}kbps"));
    draft.wired.text("delay", micros(delay));
    draft.delay_us = (delay * 1e6) as u64;
    let share = pick(random, &[0.5, 1.0, 1.0, 2.0]);
    let queue = match (random.chance(0.2), share * packets(delay)) {
        (true, _) => "1000p".into(),
        // A queue of no more than a packet or two is a fault of its own.
        (false, fits) if fits < 5.0 => "5p".into(),
        (false, _) => format!("{share:.1}bdp"),
    };
    draft.wired.text("queue", queue);
    (kbps as f64 / 1e3, 2.0 * delay)
}

fn wireless(random: &mut RandomStream, draft: &mut Draft) -> (f64, f64) {
    let (preset, mbps) = pick(
        random,
        &[("tack-b", 5.0), ("tack-g", 20.0), ("tack-n", 150.0)],
    );
    draft.wlan.text("preset", preset);
    if random.chance(0.5) {
        let errors = share(scaled(random, 0.01, 4));
        draft.wlan.set("frame_error_rate", errors);
    }
    let delay = scaled(random, 0.0005, 6);
    draft.wired.text("rate", "1Gbps");
    draft.wired.text("delay", micros(delay));
    draft.delay_us = (delay * 1e6) as u64;
    (mbps, 2.0 * delay + 0.002)
}

/// Gives the flow something to do. Returns what it is, how long the run may last, and how long it
/// should be busy.
fn work(random: &mut RandomStream, rate: f64, rtt: f64, flow: &mut Keys) -> (Work, f64, f64) {
    // Long enough for faults that last seconds and for windows to grow, and no more bytes than that
    // takes.
    let long = (40e6 * 8.0 / rate).clamp(6.0, 12.0) + 20.0 * rtt;
    match random.below(20) {
        0..=9 => {
            let most = if rate < 4e6 { 10 } else { 12 };
            let bytes = scaled(random, 1_000.0, most) as u64;
            flow.text("bytes", format!("{bytes}B"));
            if random.chance(0.1) {
                flow.text("app", "duplex");
            }
            let ideal = bytes as f64 * 8.0 / rate + 4.0 * rtt;
            (Work::Transfer, 300.0, ideal)
        }
        10..=16 => {
            if random.chance(0.1) {
                let pause = long * 0.5 * random.unit();
                let resume = pause + scaled(random, 0.1, 5);
                let pauses = format!("bulk:pause={},resume={}", micros(pause), micros(resume));
                flow.text("app", pauses);
            }
            (Work::Bulk, long, 0.6 * long)
        }
        17..=18 => {
            let request = scaled(random, 100.0, 8) as u64;
            let response = scaled(random, 100.0, 11) as u64;
            let gap = if random.chance(0.5) {
                format!(",gap={}", micros(scaled(random, 0.001, 7)))
            } else {
                String::new()
            };
            flow.text("app", format!("request:{request}B,{response}B{gap}"));
            (Work::Requests, 10.0, 6.0)
        }
        _ => {
            let kbps = (rate / 1e3 * (0.2 + 0.4 * random.unit())) as u64;
            let peak = kbps * 3 / 2;
            flow.text(
                "app",
                format!("video:fps=30,rate={kbps}kbps,peak={peak}kbps,buffer=300ms"),
            );
            (Work::Video, 10.0, 6.0)
        }
    }
}

/// Writes faults until there are two to four different ones with those `drawn` before; the same on
/// the two ways count as two. Returns their names.
fn spoil(
    random: &mut RandomStream,
    shape: Shape,
    draft: &mut Draft,
    mut drawn: Vec<(Fault, &'static str)>,
) -> Vec<String> {
    let many = 2 + random.below(3) as usize;
    // A rarer few of the 29 exclude each other: the loop ends, whatever is drawn.
    for _ in 0..64 {
        if drawn.len() == many {
            break;
        }
        let fault = pick(random, &FAULTS);
        let side = pick(random, &SIDES);
        let alike = |other: Fault| {
            matches!(
                (fault, other),
                (
                    Fault::TinyQueue | Fault::HugeQueue,
                    Fault::TinyQueue | Fault::HugeQueue
                ) | (Fault::BlackHole | Fault::SmallSegments, Fault::Narrowing)
            )
        };
        if drawn
            .iter()
            .any(|(other, at)| alike(*other) || *other == fault && *at == side)
        {
            continue;
        }
        fault.write(side, shape, random, draft);
        drawn.push((fault, side));
    }
    let name = |(fault, side): &(Fault, &str)| format!("{fault:?}{side}");
    drawn.iter().map(name).collect()
}
