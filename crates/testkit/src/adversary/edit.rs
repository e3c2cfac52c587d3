//! What an adversary rewrites: fields of headers, of TACK's option, and the lists of reports.

use std::ops::Range;

use tack_wire::options::TcpOptions;
use tack_wire::tack::{Lists, ListsWriter, TackOption, TimingEcho};
use tack_wire::{Flags, Header};

use super::harm::Harm;

/// What is rewritten, with what value. Fields that the packet does not have stay as they are not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each is named after the field it changes")]
pub enum Edit {
    Window(u16),
    Ecn(u8),
    Push,
    Urgent(u16),
    NoOptions,
    NoTack,
    NoSack,
    NoTimestamps,
    Sack { block: u8, start: i8, end: i8 },
    Stamp { number: i8, departure: i8 },
    SyncEcho(u8),
    ReportNumber(u8),
    Largest(i8),
    LargestDelay(u8),
    NoLoss,
    EchoedDeparture(i8),
    EchoedDelay(u8),
    NoEcho,
    Rate(u8),
    Above(u8),
    Period(u8),
    LossRate(u8),
    BeforeGap(i8),
    AfterGap(i8),
    RttMin(u8),
    Rtt(u8),
    Startup,
    NoBlocks,
    NoGaps,
    NoLists,
    FewerLists,
    Gap { distance: u8, count: u8 },
    Block { start: u8, len: u8 },
    Ack(i16),
    Timestamps { value: i8, echo: i8 },
    FarStamp(u8),
    FarDeparture(u8),
    SyncNumber(u8),
    SynOptions(u8, u8),
    Seq(i16),
    Flags(u8),
    Byte { at: u8, xor: u8 },
}

impl Edit {
    pub(super) fn harm(self) -> Harm {
        match self {
            Self::Ack(_) | Self::Timestamps { .. } | Self::SyncNumber(_) | Self::SynOptions(..) => {
                Harm::State
            }
            Self::Seq(_) | Self::Flags(_) | Self::Byte { .. } => Harm::Content,
            _ => Harm::Words,
        }
    }

    pub(super) fn apply(self, header: &mut Header, payload: &mut Vec<u8>) {
        let syn = header.flags.syn();
        let shift = |number: &mut u32, by: i8| *number = number.wrapping_add_signed(by.into());
        // Microseconds up to more than an hour; numbers up to half around.
        let far = |exponent: u8| 1_u32.wrapping_shl(u32::from(exponent) % 32).wrapping_sub(1);
        match self {
            Self::Window(window) if !syn => header.window = window,
            Self::Ecn(bits) if !syn => {
                header.flags =
                    Flags(header.flags.0 ^ (u16::from(bits) & (Flags::ECE.0 | Flags::CWR.0)));
            }
            Self::Push => header.flags = Flags(header.flags.0 ^ Flags::PSH.0),
            Self::Urgent(pointer) if !syn => {
                header.flags = header.flags.with(Flags::URG);
                header.urgent = pointer;
            }
            Self::NoOptions if !syn => header.options = TcpOptions::default(),
            Self::NoTack if !syn => header.options.tack = None,
            Self::NoSack => header.options.sack.clear(),
            Self::NoTimestamps if !syn => header.options.timestamps = None,
            Self::Sack { block, start, end } => {
                if let Some(block) = header.options.sack.get_mut(usize::from(block)) {
                    shift(&mut block.start.0, start);
                    shift(&mut block.end.0, end);
                }
            }
            Self::Timestamps { value, echo } => {
                if let Some(timestamps) = &mut header.options.timestamps {
                    shift(&mut timestamps.value, value);
                    shift(&mut timestamps.echo, echo);
                }
            }
            Self::Gap { distance, count } => {
                let distance = u64::from(distance.max(1));
                let gap = (distance, u64::from(count).clamp(1, distance));
                list(header, payload, &[], &[gap]);
            }
            Self::Block { start, len } => {
                // In units that reach from within a segment to many of them.
                let start = u64::from(start) * 256 + 1;
                let block = start..start + u64::from(len) * 256 + 1;
                list(header, payload, &[block], &[]);
            }
            Self::NoBlocks => relist(header, payload, |_, is_block| !is_block),
            Self::NoGaps => relist(header, payload, |_, is_block| is_block),
            Self::NoLists => relist(header, payload, |_, _| false),
            Self::FewerLists => relist(header, payload, |index, _| index % 2 == 1),
            Self::Ack(by) => header.ack.0 = header.ack.0.wrapping_add_signed(by.into()),
            Self::Seq(by) => header.seq.0 = header.seq.0.wrapping_add_signed(by.into()),
            Self::Flags(xor) => header.flags = Flags(header.flags.0 ^ u16::from(xor)),
            Self::SynOptions(what, value) if syn => {
                let options = &mut header.options;
                match what % 5 {
                    0 => options.mss = Some(u16::from(value) * 16),
                    1 => options.window_scale = (value < 128).then_some(value % 15),
                    2 => options.sack_permitted = !options.sack_permitted,
                    3 => options.timestamps = None,
                    _ => options.tack = None,
                }
            }
            _ => self.apply_to_tack(header.options.tack.as_mut(), shift, far),
        }
    }

    fn apply_to_tack(
        self,
        option: Option<&mut TackOption>,
        shift: impl Fn(&mut u32, i8),
        far: impl Fn(u8) -> u32,
    ) {
        match (self, option) {
            (Self::Stamp { number, departure }, Some(TackOption::Data(stamp))) => {
                shift(&mut stamp.number, number);
                shift(&mut stamp.departure, departure);
            }
            (Self::FarStamp(exponent), Some(TackOption::Data(stamp))) => {
                stamp.number = stamp.number.wrapping_add(far(exponent));
            }
            (Self::FarDeparture(exponent), Some(TackOption::Data(stamp))) => {
                stamp.departure = stamp.departure.wrapping_add(far(exponent));
            }
            (Self::SyncNumber(exponent), Some(TackOption::Sync(sync))) => {
                sync.number = sync.number.wrapping_add(far(exponent));
            }
            (Self::RttMin(exponent), Some(TackOption::Sync(sync))) => sync.rtt_min = far(exponent),
            (Self::Rtt(exponent), Some(TackOption::Sync(sync))) => sync.rtt = far(exponent),
            (Self::Startup, Some(TackOption::Sync(sync))) => sync.startup = !sync.startup,
            (Self::LossRate(rate), Some(TackOption::Sync(sync))) => {
                sync.ack_loss_rate = u16::from(rate) << 8;
            }
            (edit, Some(TackOption::Report(report))) => match edit {
                Self::SyncEcho(echo) => report.sync_echo = echo & 0xf,
                Self::ReportNumber(exponent) => {
                    report.number = report.number.wrapping_add(far(exponent));
                }
                Self::Largest(by) => shift(&mut report.largest, by),
                Self::LargestDelay(exponent) => report.largest_delay = far(exponent),
                Self::EchoedDeparture(by) => {
                    if let Some(TimingEcho { departure, .. }) = &mut report.timing {
                        shift(departure, by);
                    }
                }
                Self::EchoedDelay(exponent) => {
                    if let Some(TimingEcho { delay, .. }) = &mut report.timing {
                        *delay = far(exponent);
                    }
                }
                Self::NoEcho => report.timing = None,
                Self::Rate(exponent) => {
                    report.rate = (exponent < 128).then(|| 16_u64 << (exponent % 32));
                }
                Self::Above(exponent) => report.above = far(exponent),
                Self::Period(exponent) => report.period = far(exponent),
                Self::LossRate(rate) => report.loss_rate = u16::from(rate) << 8,
                _ => {}
            },
            (edit, Some(TackOption::Loss(loss))) => match edit {
                Self::ReportNumber(exponent) => {
                    loss.number = loss.number.wrapping_add(far(exponent));
                }
                Self::Largest(by) => shift(&mut loss.largest, by),
                Self::LargestDelay(exponent) => loss.largest_delay = far(exponent),
                Self::Above(exponent) => loss.above = far(exponent),
                Self::LossRate(rate) => loss.loss_rate = u16::from(rate) << 8,
                Self::BeforeGap(by) => shift(&mut loss.before_gap, by),
                Self::AfterGap(by) => shift(&mut loss.after_gap, by),
                // The smallest that can be said: one gap is claimed, and nothing is in it.
                Self::NoLoss => loss.before_gap = loss.after_gap.wrapping_sub(1),
                _ => {}
            },
            _ => {}
        }
    }
}

/// Keeps those entries of a report's lists for which `keep` says so, given their place in their
/// list and whether they are blocks. The empty segment that is left without lists starts where the
/// peer stands.
pub fn relist(
    header: &mut Header,
    payload: &mut Vec<u8>,
    mut keep: impl FnMut(usize, bool) -> bool,
) {
    let is_report = header
        .options
        .tack
        .is_some_and(|option| option.is_feedback());
    let Some(lists) = Lists::parse(payload).ok().filter(|_| is_report) else {
        return;
    };
    let blocks = lists.blocks().enumerate();
    let blocks: Vec<_> = blocks.filter(|(index, _)| keep(*index, true)).collect();
    let gaps = lists.gaps().enumerate();
    let gaps: Vec<_> = gaps.filter(|(index, _)| keep(*index, false)).collect();
    let blocks: Vec<_> = blocks.into_iter().map(|(_, block)| block).collect();
    let gaps: Vec<_> = gaps.into_iter().map(|(_, gap)| gap).collect();
    list(header, payload, &blocks, &gaps);
}

/// Has a report list these blocks, as bytes above its cumulative acknowledgement, and these gaps,
/// as distance and count. Other segments stay as they are.
pub fn list(
    header: &mut Header,
    payload: &mut Vec<u8>,
    blocks: &[Range<u64>],
    gaps: &[(u64, u64)],
) {
    let has_lists = match &mut header.options.tack {
        Some(TackOption::Report(report)) => &mut report.lists,
        Some(TackOption::Loss(loss)) => &mut loss.lists,
        _ => return,
    };
    let mut out = [0; 1400];
    let mut writer = ListsWriter::new(&mut out);
    for block in blocks {
        writer.block(block.clone());
    }
    for &(distance, count) in gaps {
        writer.gap(distance, count);
    }
    let len = writer.finish();
    *has_lists = len > 0;
    // Lists lie below the peer's SND.UNA, whatever their length.
    header.seq = header.seq + payload.len() as u32 - len as u32;
    *payload = out[..len].to_vec();
}
