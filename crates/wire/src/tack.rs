//! The TACK option and the lists that travel in the data field of an acknowledgement.
//!
//! One experimental TCP option (kind 253, RFC 6994) in four shapes, told apart by their length and, for
//! acknowledgements, a type byte. Numbers are big-endian. `docs/wire-format.md` is the specification.
//!
//! | shape | on | option length |
//! |---|---|---|
//! | [`TackSyn`] | SYN, SYN-ACK | 7 |
//! | [`DataStamp`] | segments that take sequence space | 12 |
//! | [`Sync`] | pure ACKs of the data sender | 16 |
//! | [`LossReport`] | pure ACKs, on a loss | 32 |
//! | [`Report`] | all other pure ACKs | 40 |

use core::fmt;
use core::ops::Range;

/// Kind of the option: experimental (RFC 4727).
pub const OPTION_KIND: u8 = 253;
/// The experiment identifier (RFC 6994), in the one place that names it. Not registered with IANA.
pub const EXPERIMENT_ID: u16 = 0x7ac4;
/// Version of the format, carried on SYNs; another version is another protocol.
pub const VERSION: u8 = 1;

const SYN_LEN: usize = 7;
const DATA_LEN: usize = 12;
const SYNC_LEN: usize = 16;
const LOSS_LEN: usize = 32;
const REPORT_LEN: usize = 40;

const TYPE_LOSS: u8 = 8;
const TYPE_SYNC: u8 = 9;

const FLAG_LISTS: u8 = 1;
const FLAG_TIMING: u8 = 2;
const FLAG_RATE: u8 = 4;
const FLAG_STARTUP: u8 = 1;

/// Unit of the delivery rate on the wire, bytes per second.
const RATE_UNIT: u64 = 16;

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

/// A TACK, or an IACK other than for loss. The cumulative acknowledgement and the window are in the TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Why.
    pub kind: ReportKind,
    /// Lists follow in the data field.
    pub lists: bool,
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

    /// Reads the body of an option of kind 253 (what follows kind and length); `None` when it is another experiment,
    /// another version, or of no known shape.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let (id, body) = body.split_first_chunk::<2>()?;
        if u16::from_be_bytes(*id) != EXPERIMENT_ID {
            return None;
        }
        match body.len() + 4 {
            SYN_LEN if body[0] == VERSION && body[1] > 0 && body[2] > 1 => {
                Some(Self::Syn(TackSyn {
                    segments: body[1],
                    beta: body[2],
                }))
            }
            DATA_LEN => Some(Self::Data(DataStamp {
                number: word(body, 0),
                departure: word(body, 4),
            })),
            SYNC_LEN if body[0] == TYPE_SYNC => Some(Self::Sync(Sync {
                startup: body[1] & FLAG_STARTUP != 0,
                ack_loss_rate: half(body, 2),
                number: word(body, 4),
                rtt_min: word(body, 8),
            })),
            LOSS_LEN if body[0] == TYPE_LOSS => Some(Self::Loss(LossReport {
                lists: body[1] & FLAG_LISTS != 0,
                loss_rate: half(body, 2),
                number: word(body, 4),
                largest: word(body, 8),
                largest_delay: word(body, 12),
                above: word(body, 16),
                before_gap: word(body, 20),
                after_gap: word(body, 24),
            })),
            REPORT_LEN => {
                let kind = match body[0] {
                    0 => ReportKind::Tack,
                    1 => ReportKind::Window,
                    2 => ReportKind::Event,
                    3 => ReportKind::Frequency,
                    _ => return None,
                };
                Some(Self::Report(Report {
                    kind,
                    lists: body[1] & FLAG_LISTS != 0,
                    sync_echo: body[1] >> 4,
                    loss_rate: half(body, 2),
                    number: word(body, 4),
                    largest: word(body, 8),
                    largest_delay: word(body, 12),
                    timing: (body[1] & FLAG_TIMING != 0).then(|| TimingEcho {
                        departure: word(body, 16),
                        delay: word(body, 20),
                    }),
                    rate: (body[1] & FLAG_RATE != 0).then(|| u64::from(word(body, 24)) * RATE_UNIT),
                    above: word(body, 28),
                    period: word(body, 32),
                }))
            }
            _ => None,
        }
    }

    /// Writes the option, kind and length included, to the start of `out`; returns [`TackOption::len`].
    ///
    /// # Panics
    /// When `out` is shorter than that.
    pub fn emit(&self, out: &mut [u8]) -> usize {
        let len = self.len();
        let out = &mut out[..len];
        out.fill(0);
        out[0] = OPTION_KIND;
        out[1] = len as u8;
        out[2..4].copy_from_slice(&EXPERIMENT_ID.to_be_bytes());
        let body = &mut out[4..];
        let put = |body: &mut [u8], at: usize, value: u32| {
            body[at..at + 4].copy_from_slice(&value.to_be_bytes())
        };
        match self {
            Self::Syn(syn) => body.copy_from_slice(&[VERSION, syn.segments, syn.beta]),
            Self::Data(stamp) => {
                put(body, 0, stamp.number);
                put(body, 4, stamp.departure);
            }
            Self::Sync(sync) => {
                body[0] = TYPE_SYNC;
                body[1] = if sync.startup { FLAG_STARTUP } else { 0 };
                body[2..4].copy_from_slice(&sync.ack_loss_rate.to_be_bytes());
                put(body, 4, sync.number);
                put(body, 8, sync.rtt_min);
            }
            Self::Loss(report) => {
                body[0] = TYPE_LOSS;
                body[1] = if report.lists { FLAG_LISTS } else { 0 };
                body[2..4].copy_from_slice(&report.loss_rate.to_be_bytes());
                let words = [
                    report.number,
                    report.largest,
                    report.largest_delay,
                    report.above,
                    report.before_gap,
                    report.after_gap,
                ];
                for (index, value) in words.into_iter().enumerate() {
                    put(body, 4 + 4 * index, value);
                }
            }
            Self::Report(report) => {
                let timing = report.timing.unwrap_or(TimingEcho {
                    departure: 0,
                    delay: 0,
                });
                let rate = report
                    .rate
                    .map(|rate| u32::try_from(rate / RATE_UNIT).unwrap_or(u32::MAX));
                body[0] = report.kind as u8;
                body[1] = if report.lists { FLAG_LISTS } else { 0 }
                    | if report.timing.is_some() {
                        FLAG_TIMING
                    } else {
                        0
                    }
                    | if rate.is_some() { FLAG_RATE } else { 0 }
                    | report.sync_echo << 4;
                body[2..4].copy_from_slice(&report.loss_rate.to_be_bytes());
                let words = [
                    report.number,
                    report.largest,
                    report.largest_delay,
                    timing.departure,
                    timing.delay,
                    rate.unwrap_or(0),
                    report.above,
                    report.period,
                ];
                for (index, value) in words.into_iter().enumerate() {
                    put(body, 4 + 4 * index, value);
                }
            }
        }
        len
    }

    /// True when lists follow in the data field.
    pub const fn has_lists(&self) -> bool {
        matches!(
            self,
            Self::Report(Report { lists: true, .. }) | Self::Loss(LossReport { lists: true, .. })
        )
    }

    /// True for the shapes that acknowledge or synchronise: their payload, if any, is outside the sequence space.
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

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Why a data field is not a pair of lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedLists;

/// The two lists of a data field. Everything is relative, so that middleboxes that shift sequence
/// numbers do no harm: blocks received are given in bytes above the cumulative acknowledgement, gaps in
/// packet numbers below the largest one received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lists<'a> {
    blocks: &'a [u8],
    gaps: &'a [u8],
}

/// Builds a data field.
#[derive(Debug)]
pub struct ListsWriter<'a> {
    out: &'a mut [u8],
    at: usize,
    blocks: u16,
    gaps: u16,
}

/// Bytes of the two counts at the start.
const COUNTS: usize = 4;

impl<'a> Lists<'a> {
    /// Checks a whole data field: counts, lengths, no empty, overlapping or disordered entries, nothing left over.
    ///
    /// # Errors
    /// [`MalformedLists`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, MalformedLists> {
        let (counts, rest) = bytes.split_first_chunk::<COUNTS>().ok_or(MalformedLists)?;
        let (blocks, gaps) = (half(counts, 0), half(counts, 2));
        // Blocks come highest first, gaps lowest number first: both descend in what they are relative to.
        let after_blocks = Self::check(rest, blocks, |entry| entry)?;
        let after_gaps = Self::check(after_blocks, gaps, |entry| {
            // A gap reaches from `distance` below the largest number up: it ends at distance − length.
            entry.start.saturating_sub(entry.end - entry.start)..entry.start
        })?;
        if !after_gaps.is_empty() {
            return Err(MalformedLists);
        }
        let split = rest.len() - after_blocks.len();
        Ok(Self {
            blocks: &rest[..split],
            gaps: after_blocks,
        })
    }

    fn check(
        mut rest: &'a [u8],
        count: u16,
        covered: impl Fn(Range<u64>) -> Range<u64>,
    ) -> Result<&'a [u8], MalformedLists> {
        let mut below = u64::MAX;
        for _ in 0..count {
            let (start, tail) = read_varint(rest).ok_or(MalformedLists)?;
            let (len, tail) = read_varint(tail).ok_or(MalformedLists)?;
            rest = tail;
            if start == 0 || len == 0 {
                return Err(MalformedLists);
            }
            let range = covered(start..start + len);
            if range.is_empty() || range.end > below || range.end - range.start != len {
                return Err(MalformedLists);
            }
            below = range.start;
        }
        Ok(rest)
    }

    /// Blocks received, highest first: byte offsets above the cumulative acknowledgement (at least 1).
    pub fn blocks(&self) -> impl Iterator<Item = Range<u64>> + 'a {
        entries(self.blocks).map(|(start, len)| start..start + len)
    }

    /// Gaps, lowest number first: (distance of the first missing number below the largest received, count).
    pub fn gaps(&self) -> impl Iterator<Item = (u64, u64)> + 'a {
        entries(self.gaps)
    }
}

fn entries(mut bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    core::iter::from_fn(move || {
        let (start, rest) = read_varint(bytes)?;
        let (len, rest) = read_varint(rest)?;
        bytes = rest;
        Some((start, len))
    })
}

impl<'a> ListsWriter<'a> {
    /// Writes into `out`, at most to its end. Blocks first, then gaps.
    ///
    /// # Panics
    /// When `out` is shorter than four bytes.
    pub fn new(out: &'a mut [u8]) -> Self {
        out[..COUNTS].fill(0);
        Self {
            out,
            at: COUNTS,
            blocks: 0,
            gaps: 0,
        }
    }

    /// Adds a block received: offsets above the cumulative acknowledgement, below the block before. False when it does
    /// not fit.
    pub fn block(&mut self, offsets: Range<u64>) -> bool {
        debug_assert_eq!(self.gaps, 0, "blocks come before gaps");
        let fits = self.put(offsets.start, offsets.end - offsets.start);
        self.blocks += u16::from(fits);
        fits
    }

    /// Adds a gap: distance of its first number below the largest received, and how many numbers are missing. False
    /// when it does not fit.
    pub fn gap(&mut self, distance: u64, count: u64) -> bool {
        let fits = self.put(distance, count);
        self.gaps += u16::from(fits);
        fits
    }

    fn put(&mut self, start: u64, len: u64) -> bool {
        let size = varint_len(start) + varint_len(len);
        if self.at + size > self.out.len() {
            return false;
        }
        for value in [start, len] {
            self.at += write_varint(value, &mut self.out[self.at..]);
        }
        true
    }

    /// Length of the data field; zero when nothing was added.
    pub fn finish(self) -> usize {
        if self.blocks == 0 && self.gaps == 0 {
            return 0;
        }
        self.out[0..2].copy_from_slice(&self.blocks.to_be_bytes());
        self.out[2..4].copy_from_slice(&self.gaps.to_be_bytes());
        self.at
    }
}

/// Largest value in the lists: nothing in a window is farther away.
const MAX_VALUE: u64 = u32::MAX as u64;

/// Seven bits a byte, lowest first, the high bit says that more follow. At most five bytes.
fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return (value <= MAX_VALUE).then(|| (value, &bytes[index + 1..]));
        }
    }
    None
}

fn write_varint(mut value: u64, out: &mut [u8]) -> usize {
    value = value.min(MAX_VALUE);
    let mut at = 0;
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

fn varint_len(value: u64) -> usize {
    let bits = 64 - value.min(MAX_VALUE).leading_zeros() as usize;
    bits.div_ceil(7).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn report() -> impl Strategy<Value = TackOption> {
        (any::<[u32; 8]>(), any::<[bool; 3]>(), 0_u8..4, any::<u16>()).prop_map(
            |(w, [lists, timing, rate], kind, loss)| {
                TackOption::Report(Report {
                    kind: [
                        ReportKind::Tack,
                        ReportKind::Window,
                        ReportKind::Event,
                        ReportKind::Frequency,
                    ][kind as usize],
                    lists,
                    sync_echo: loss as u8 & 0xf,
                    loss_rate: loss,
                    number: w[0],
                    largest: w[1],
                    largest_delay: w[2],
                    timing: timing.then_some(TimingEcho {
                        departure: w[3],
                        delay: w[4],
                    }),
                    rate: rate.then_some(u64::from(w[5]) * RATE_UNIT),
                    above: w[6],
                    period: w[7],
                })
            },
        )
    }

    fn option() -> impl Strategy<Value = TackOption> {
        prop_oneof![
            (1_u8.., 2_u8..)
                .prop_map(|(segments, beta)| TackOption::Syn(TackSyn { segments, beta })),
            any::<(u32, u32)>()
                .prop_map(|(number, departure)| TackOption::Data(DataStamp { number, departure })),
            any::<(bool, u16, u32, u32)>().prop_map(|(startup, ack_loss_rate, number, rtt_min)| {
                TackOption::Sync(Sync {
                    startup,
                    ack_loss_rate,
                    number,
                    rtt_min,
                })
            }),
            any::<(bool, u16, [u32; 6])>().prop_map(|(lists, loss_rate, w)| TackOption::Loss(
                LossReport {
                    lists,
                    loss_rate,
                    number: w[0],
                    largest: w[1],
                    largest_delay: w[2],
                    above: w[3],
                    before_gap: w[4],
                    after_gap: w[5],
                }
            )),
            report(),
        ]
    }

    proptest! {
        #[test]
        fn every_shape_reads_back(option in option()) {
            let mut bytes = [0xff; REPORT_LEN];
            let len = option.emit(&mut bytes);
            prop_assert_eq!(usize::from(bytes[1]), len);
            prop_assert_eq!(TackOption::parse(&bytes[2..len]), Some(option));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = TackOption::parse(&bytes);
            if let Ok(lists) = Lists::parse(&bytes) {
                let blocks: Vec<_> = lists.blocks().collect();
                prop_assert!(blocks.windows(2).all(|pair| pair[1].end <= pair[0].start));
                prop_assert!(lists.gaps().all(|(distance, count)| count <= distance));
            }
        }

        #[test]
        fn lists_read_back(steps in proptest::collection::vec((1_u64..5000, 1_u64..5000), 1..40), room in 8_usize..300) {
            // Ascending disjoint ranges, listed from the top.
            let mut at = 1;
            let mut ranges: Vec<Range<u64>> = steps.iter().map(|(gap, len)| {
                let start = at + gap;
                at = start + len;
                start..at
            }).collect();
            ranges.reverse();
            let mut out = std::vec![0; room];
            let mut writer = ListsWriter::new(&mut out);
            let blocks: Vec<_> = ranges.iter().take(20).take_while(|range| writer.block((*range).clone())).cloned().collect();
            let gaps: Vec<_> = ranges.iter().map(|range| (range.end, range.end - range.start))
                .take_while(|(distance, count)| writer.gap(*distance, *count)).collect();
            let len = writer.finish();
            if len > 0 {
                let lists = Lists::parse(&out[..len]).expect("our own lists parse");
                prop_assert_eq!(lists.blocks().collect::<Vec<_>>(), blocks);
                prop_assert_eq!(lists.gaps().collect::<Vec<_>>(), gaps);
            }
        }
    }

    #[test]
    fn overlapping_empty_and_trailing_lists_are_refused() {
        assert!(Lists::parse(&[0, 1, 0, 0, 5, 1]).is_ok());
        assert!(Lists::parse(&[0, 1, 0, 0, 5, 0]).is_err(), "an empty block");
        assert!(
            Lists::parse(&[0, 2, 0, 0, 5, 9, 4, 3]).is_err(),
            "overlapping blocks"
        );
        assert!(
            Lists::parse(&[0, 2, 0, 0, 5, 1, 9, 1]).is_err(),
            "ascending blocks"
        );
        assert!(
            Lists::parse(&[0, 0, 0, 1, 3, 4]).is_err(),
            "a gap beyond the largest number"
        );
        assert!(
            Lists::parse(&[0, 1, 0, 0, 5, 1, 7]).is_err(),
            "something left over"
        );
        assert!(
            Lists::parse(&[255, 255, 255, 255, 1, 1]).is_err(),
            "counts without entries"
        );
    }
}
