//! What can be wrong with a path or its ends. Each fault writes keys that no other fault of the
//! same side writes.

use std::fmt::Write as _;

use tack_base::random::RandomStream;

use super::draft::{Draft, pick, scaled, share};

/// What the faults need to know of the path that they spoil.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Bottleneck, bits per second.
    pub(crate) rate: f64,
    /// Round trip without queues, seconds.
    pub(crate) rtt: f64,
    /// Time in which something happens, seconds: faults with a beginning begin in it.
    pub(crate) busy: f64,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Loss,
    AckLoss,
    Bursts,
    Reorder,
    Duplicate,
    Corrupt,
    Blackout,
    LostHandshake,
    Suspension,
    BlackHole,
    Marks,
    Strip,
    Isn,
    TinyQueue,
    HugeQueue,
    SmallReceiveBuffer,
    SmallSendBuffer,
    Skew,
    Lateness,
    ShortSends,
    SlowReverse,
    NoSack,
    NoTimestamps,
    SmallSegments,
    EcnRewrite,
    EcnFlags,
    Narrowing,
}

/// Faults of ECN: one of them is on each path of the search for those. [`FAULTS`] has no other than
/// marks, so that the paths drawn from it stay what they were.
pub(crate) const ECN_FAULTS: [Fault; 4] = [
    Fault::Marks,
    Fault::Marks,
    Fault::EcnRewrite,
    Fault::EcnFlags,
];

/// All others; what is listed twice is drawn twice as often.
pub(crate) const FAULTS: [Fault; 29] = [
    Fault::Loss,
    Fault::Loss,
    Fault::AckLoss,
    Fault::Bursts,
    Fault::Reorder,
    Fault::Reorder,
    Fault::Duplicate,
    Fault::Corrupt,
    Fault::Blackout,
    Fault::Blackout,
    Fault::LostHandshake,
    Fault::LostHandshake,
    Fault::Suspension,
    Fault::BlackHole,
    Fault::BlackHole,
    Fault::Marks,
    Fault::Strip,
    Fault::Isn,
    Fault::TinyQueue,
    Fault::HugeQueue,
    Fault::SmallReceiveBuffer,
    Fault::SmallSendBuffer,
    Fault::Skew,
    Fault::Lateness,
    Fault::ShortSends,
    Fault::SlowReverse,
    Fault::NoSack,
    Fault::NoTimestamps,
    Fault::SmallSegments,
];

impl Fault {
    /// Writes the fault into `draft`: with `side` `_reverse` on the way from client to server,
    /// where the fault has a way.
    pub(crate) fn write(
        self,
        side: &str,
        shape: Shape,
        random: &mut RandomStream,
        draft: &mut Draft,
    ) {
        let wired = &mut draft.wired;
        match self {
            Self::Loss => wired.set(format!("loss{side}"), share(scaled(random, 0.001, 6))),
            Self::AckLoss => wired.set(format!("ack_loss{side}"), share(scaled(random, 0.01, 5))),
            Self::Bursts => {
                let _ = writeln!(
                    draft.tables,
                    "[wired.gilbert_elliott{side}]\ngood_to_bad = {}\nbad_to_good = {}\nloss_bad = {}",
                    share(scaled(random, 0.0005, 5)),
                    share(scaled(random, 0.05, 4)),
                    share(0.3 + random.unit()),
                );
            }
            Self::Reorder => {
                wired.set(format!("reorder{side}"), share(scaled(random, 0.005, 6)));
                let delay = shape.rtt * scaled(random, 0.02, 6);
                wired.text(format!("reorder_delay{side}"), micros(delay));
            }
            Self::Duplicate => {
                let often = if random.chance(0.2) {
                    1.0
                } else {
                    scaled(random, 0.005, 6)
                };
                wired.set(format!("duplicate{side}"), share(often));
            }
            Self::Corrupt => wired.set(format!("corrupt{side}"), share(scaled(random, 0.0005, 5))),
            Self::Blackout => {
                let start = shape.busy * random.unit();
                blackout(&mut draft.tables, side, start, scaled(random, 0.05, 5));
            }
            Self::LostHandshake => {
                // SYN or SYN-ACK, by side; or what follows them: the handshake's last segment and
                // the first data.
                let start = if side.is_empty() && random.chance(0.5) {
                    shape.rtt * 0.6
                } else {
                    0.0
                };
                blackout(
                    &mut draft.tables,
                    side,
                    start,
                    shape.rtt * scaled(random, 0.6, 3),
                );
            }
            Self::Suspension => {
                let _ = writeln!(
                    draft.tables,
                    "[wired.suspension{side}]\nstart = \"{}\"\nperiod = \"{}\"\nduration = \"{}\"\nduration_max = \"{}\"",
                    micros(random.unit()),
                    micros(0.7 + random.unit()),
                    micros(scaled(random, 0.01, 4)),
                    micros(0.35),
                );
            }
            Self::BlackHole => wired.set(format!("mtu_black_hole{side}"), 600 + random.below(900)),
            Self::Marks => {
                if random.chance(0.5) {
                    let packets = 1 + random.below(50);
                    wired.text(format!("ecn_threshold{side}"), format!("{packets}p"));
                } else {
                    wired.set(format!("ecn_mark{side}"), share(scaled(random, 0.002, 6)));
                }
            }
            Self::Strip => {
                let kinds = pick(random, &["[5]", "[8]", "[5, 8]", "[2]", "[4]", "[253]"]);
                let from = pick(random, &["all", "syn", "rest"]);
                wired.set(format!("strip_options{side}"), kinds);
                wired.text(format!("strip_options_from{side}"), from);
            }
            Self::Isn => wired.text("isn_rewrite", pick(random, &["with_sack", "without_sack"])),
            Self::TinyQueue => {
                wired.text(format!("queue{side}"), format!("{}p", 2 + random.below(12)))
            }
            Self::HugeQueue => {
                let fits = shape.rate * shape.rtt / 8.0 / 1_500.0;
                let packets = (fits * scaled(random, 3.0, 2)).max(50.0) as u64;
                wired.text(format!("queue{side}"), format!("{packets}p"));
            }
            Self::SmallReceiveBuffer => buffer(draft, "receive_buffer", random, shape),
            Self::SmallSendBuffer => buffer(draft, "send_buffer", random, shape),
            Self::Skew => wired.set("clock_skew_ppm", random.below(2_001) as i64 - 1_000),
            Self::Lateness => {
                wired.text(
                    format!("late_timers{side}"),
                    micros(scaled(random, 0.0002, 5)),
                );
                wired.text(
                    format!("late_processing{side}"),
                    micros(scaled(random, 0.0002, 5)),
                );
            }
            Self::ShortSends => {
                wired.set(format!("short_sends{side}"), share(scaled(random, 0.01, 5)));
                wired.set(format!("batch{side}"), pick(random, &[4, 16, 64]));
            }
            Self::SlowReverse => {
                let slower = scaled(random, 4.0, 5);
                let kbps = (shape.rate / 1e3 / slower).max(64.0) as u64;
                wired.text("rate_reverse", format!("{kbps}kbps"));
            }
            Self::NoSack => every_flow(draft, "sack", "false"),
            Self::NoTimestamps => every_flow(draft, "timestamps", "false"),
            Self::EcnRewrite => {
                let codepoints = ["not_ect", "not_ect", "ect0", "ect1", "ce"];
                wired.text(format!("ecn_rewrite{side}"), pick(random, &codepoints));
            }
            Self::EcnFlags => {
                let flags = pick(random, &["all", "ae", "cwr_ece"]);
                let from = pick(random, &["all", "syn", "rest"]);
                wired.text(format!("clear_ecn_flags{side}"), flags);
                wired.text(format!("clear_ecn_flags_from{side}"), from);
            }
            Self::Narrowing => {
                wired.set(format!("mtu_black_hole{side}"), 600 + random.below(8_300));
                let start = shape.busy * random.unit();
                wired.text(format!("mtu_black_hole_from{side}"), micros(start));
            }
            Self::SmallSegments => every_flow(draft, "mss", pick(random, &["536", "1000", "1220"])),
        }
    }
}

pub(crate) fn every_flow(draft: &mut Draft, key: &str, value: &str) {
    for flow in &mut draft.flows {
        flow.set(key, value);
    }
}

/// A buffer from a tenth of what the path holds up to about three times that, never less than two
/// segments.
fn buffer(draft: &mut Draft, key: &str, random: &mut RandomStream, shape: Shape) {
    let bytes = shape.rate / 8.0 * shape.rtt * scaled(random, 0.1, 5);
    let bytes = (bytes as u64).max(4_096);
    every_flow(draft, key, &format!("\"{bytes}B\""));
}

fn blackout(tables: &mut String, side: &str, start: f64, length: f64) {
    let (start, length) = (micros(start), micros(length));
    let _ = writeln!(
        tables,
        "[[wired.blackout{side}]]\nstart = \"{start}\"\nduration = \"{length}\""
    );
}

/// Seconds as a duration of whole microseconds, at least one.
pub(crate) fn micros(seconds: f64) -> String {
    format!("{}us", ((seconds * 1e6) as u64).max(1))
}
