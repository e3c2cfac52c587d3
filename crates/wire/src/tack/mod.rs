//! The TACK option and the lists that travel in the data field of an acknowledgement.
//!
//! One experimental TCP option (kind 253, RFC 6994) in five shapes, told apart by their length and,
//! for acknowledgements, a type byte. Numbers are big-endian. `docs/wire-format.md` is the
//! specification.
//!
//! | shape | on | option length |
//! |---|---|---|
//! | [`TackSyn`] | SYN, SYN-ACK | 7 |
//! | [`DataStamp`] | segments that take sequence space | 12 |
//! | [`Sync`] | pure ACKs of the data sender | 20 |
//! | [`LossReport`] | pure ACKs, on a loss | 32 |
//! | [`Report`] | all other pure ACKs | 40 |

mod codec;
mod lists;
#[cfg(test)]
mod tests;

use core::fmt;

pub use lists::{Lists, ListsWriter, MalformedLists};

/// Kind of the option: experimental (RFC 4727).
pub const OPTION_KIND: u8 = 253;
/// The experiment identifier (RFC 6994), in the one place that names it. Not registered with IANA.
pub const EXPERIMENT_ID: u16 = 0x7ac4;
/// Version of the format, carried on SYNs; another version is another protocol.
pub const VERSION: u8 = 2;

const SYN_LEN: usize = 7;
const DATA_LEN: usize = 12;
const SYNC_LEN: usize = 20;
/// Length of the shortest option that is feedback ([`TackOption::is_feedback`]), bytes.
pub const FEEDBACK_LEN: usize = SYNC_LEN;
/// Length of the shortest option that may come with lists, bytes.
pub const LOSS_LEN: usize = 32;
const REPORT_LEN: usize = 40;

/// The option, whichever shape it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TackOption {
    /// The offer, and its acceptance.
    Syn(TackSyn),
    /// Number and departure of a segment that takes sequence space.
    Data(DataStamp),
    /// A TACK, or an IACK other than for loss.
    Report(Report),
    /// An IACK for loss.
    Loss(LossReport),
    /// What the data sender tells the data receiver.
    Sync(Sync),
}

/// Parameters of the side that sends it, as a receiver of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TackSyn {
    /// L: full-sized segments per acknowledgement where counting decides. 1 to 255.
    pub segments: u8,
    /// beta: acknowledgements per RTTmin where time decides. 2 to 255.
    pub beta: u8,
}

/// Stamp of one transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataStamp {
    /// PKT.SEQ: grows by one with every transmission.
    pub number: u32,
    /// Departure on the sender's clock, microseconds modulo 2^32.
    pub departure: u32,
}

/// Why a report was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ReportKind {
    /// The periodic acknowledgement.
    Tack = 0,
    /// The receive window closed or opened.
    Window = 1,
    /// Handshake, FIN, keep-alive answer, congestion mark, challenge.
    Event = 2,
    /// The acknowledgement frequency halved or doubled.
    Frequency = 3,
}

/// The timing echo: which segment had the least one-way delay, and how long ago it arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimingEcho {
    /// Its departure stamp.
    pub departure: u32,
    /// Microseconds from its arrival to the departure of the acknowledgement.
    pub delay: u32,
}

/// A TACK, or an IACK other than for loss. The cumulative acknowledgement and the window are in the
/// TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Why.
    pub kind: ReportKind,
    /// Lists follow in the data field.
    pub lists: bool,
    /// The segment with the largest PKT.SEQ brought only bytes that had been received before.
    pub repeated: bool,
    /// The low four bits of the number of the newest [`Sync`] received.
    pub sync_echo: u8,
    /// Loss rate of the data path, in 1/65536.
    pub loss_rate: u16,
    /// Number of this acknowledgement: grows by one with each that carries a report.
    pub number: u32,
    /// Largest PKT.SEQ received.
    pub largest: u32,
    /// Microseconds from its arrival to the departure of this acknowledgement.
    pub largest_delay: u32,
    /// Timing echo, where anything arrived since the last one.
    pub timing: Option<TimingEcho>,
    /// Delivery rate seen by the receiver, bytes per second (rounded down to 16), where measured.
    pub rate: Option<u64>,
    /// Bytes received above the cumulative acknowledgement.
    pub above: u32,
    /// Period of acknowledgements in force, microseconds.
    pub period: u32,
}

/// An IACK for loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossReport {
    /// Lists follow in the data field.
    pub lists: bool,
    /// Loss rate of the data path, in 1/65536.
    pub loss_rate: u16,
    /// Number of this acknowledgement.
    pub number: u32,
    /// Largest PKT.SEQ received.
    pub largest: u32,
    /// Microseconds from its arrival to the departure of this acknowledgement.
    pub largest_delay: u32,
    /// Bytes received above the cumulative acknowledgement.
    pub above: u32,
    /// The last PKT.SEQ received before the newest gap.
    pub before_gap: u32,
    /// The first PKT.SEQ received after it.
    pub after_gap: u32,
}

/// What the data sender tells the data receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sync {
    /// The sender probes for the path's capacity: acknowledge densely.
    pub startup: bool,
    /// Loss rate of the ACK path, in 1/65536.
    pub ack_loss_rate: u16,
    /// Number of this message: a smaller one is old.
    pub number: u32,
    /// RTTmin, microseconds.
    pub rtt_min: u32,
    /// The round trip as it is now, queues included, microseconds.
    pub rtt: u32,
}

impl TackOption {
    /// Length of the option, bytes.
    pub const fn len(&self) -> usize {
        match self {
            Self::Syn(_) => SYN_LEN,
            Self::Data(_) => DATA_LEN,
            Self::Report(_) => REPORT_LEN,
            Self::Loss(_) => LOSS_LEN,
            Self::Sync(_) => SYNC_LEN,
        }
    }

    /// Never: every shape has a length.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// True when lists follow in the data field.
    pub const fn has_lists(&self) -> bool {
        matches!(
            self,
            Self::Report(Report { lists: true, .. }) | Self::Loss(LossReport { lists: true, .. })
        )
    }

    /// True for the shapes that acknowledge or synchronise: their payload, if any, is outside the
    /// sequence space.
    pub const fn is_feedback(&self) -> bool {
        matches!(self, Self::Report(_) | Self::Loss(_) | Self::Sync(_))
    }
}

impl fmt::Display for TackOption {
    /// For traces: `tack data 7`, `tack report 3 of 7`, `tack loss 4 of 9 gap 5..8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syn(syn) => write!(f, "tack l={} beta={}", syn.segments, syn.beta),
            Self::Data(stamp) => write!(f, "tack data {}", stamp.number),
            Self::Sync(sync) => write!(f, "tack sync {} rttmin {}us", sync.number, sync.rtt_min),
            Self::Loss(loss) => write!(
                f,
                "tack loss {} of {} gap {}..{}",
                loss.number, loss.largest, loss.before_gap, loss.after_gap
            ),
            Self::Report(report) => {
                write!(f, "tack report {} of {}", report.number, report.largest)?;
                match report.kind {
                    ReportKind::Tack => Ok(()),
                    ReportKind::Window => f.write_str(" window"),
                    ReportKind::Event => f.write_str(" event"),
                    ReportKind::Frequency => f.write_str(" frequency"),
                }
            }
        }
    }
}
