//! Somebody on the path who drops, copies, delays, cuts and rewrites segments, as a script says: four bytes a step, so that the
//! input of a fuzzer is a script and a failing one shrinks.
//!
//! Checksums are not in use here (the tests carry segments without), so whatever is rewritten is taken for genuine.

use std::fmt;
use std::time::Duration;

use tack_base::Instant;
use tack_wire::options::TcpOptions;
use tack_wire::tack::{Lists, ListsWriter, TackOption, TimingEcho};
use tack_wire::{Flags, Header, Segment};

use crate::model::encode;

/// Packets kept to be sent again.
const KEPT: usize = 32;

/// What becomes of a stream on a path with this in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Harm {
    /// Segments are lost, late, doubled or shorter: everything arrives all the same.
    Path,
    /// What an acknowledgement says beyond its number, or the window, is not what its sender said: everything arrives all the
    /// same, once it is.
    Words,
    /// Both ends may believe different things for good. The bytes that arrive are those that were written.
    State,
    /// Anything may arrive.
    Content,
}

/// What is done to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Nothing.
    Pass,
    /// It never arrives.
    Drop,
    /// So many in a row never arrive.
    DropRun(u8),
    /// It arrives so much later; others overtake it.
    Delay(Duration),
    /// It arrives now and once more so much later.
    Copy(Duration),
    /// The packet that came so many before arrives with it once more.
    Replay(u8),
    /// So many of its bytes of payload are cut off the end, and FIN with them.
    Cut(u16),
    /// A field is another one.
    Rewrite(Edit),
}

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
    Startup,
    NoBlocks,
    NoGaps,
    NoLists,
    FewerLists,
    Ack(i16),
    Timestamps { value: i8, echo: i8 },
    FarStamp(u8),
    SyncNumber(u8),
    SynOptions(u8, u8),
    Seq(i16),
    Flags(u8),
    Byte { at: u8, xor: u8 },
}

/// A step of a script: so many packets pass, then something is done to the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Step {
    skip: u8,
    what: u8,
    a: u8,
    b: u8,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} after {} {:?}",
            self.bytes(),
            self.skip,
            self.action()
        )
    }
}

impl From<[u8; 4]> for Step {
    fn from([skip, what, a, b]: [u8; 4]) -> Self {
        // Short waits are what most findings need.
        Self {
            skip: skip % 64,
            what,
            a,
            b,
        }
    }
}

impl Step {
    /// The bytes it is made from.
    pub fn bytes(&self) -> [u8; 4] {
        [self.skip, self.what, self.a, self.b]
    }

    /// What it does.
    pub fn action(&self) -> Action {
        let (a, b) = (self.a, self.b);
        let [signed_a, signed_b] = [a as i8, b as i8];
        let wide = u16::from_be_bytes([a, b]);
        let time = Duration::from_micros(u64::from(wide) * 8);
        let edit = match self.what {
            0..16 => return Action::Drop,
            16..32 => return Action::DropRun(a % 32),
            32..48 => return Action::Delay(time),
            48..60 => return Action::Copy(time),
            60..72 => return Action::Replay(a),
            72..84 => return Action::Cut(wide % 1500),
            84..96 => return Action::Pass,
            96..100 => Edit::Window(wide),
            100..103 => Edit::Ecn(a),
            103 => Edit::Push,
            104 => Edit::Urgent(wide),
            105..108 => Edit::NoOptions,
            108..116 => Edit::NoTack,
            116..118 => Edit::NoSack,
            118..120 => Edit::NoTimestamps,
            120..126 => Edit::Sack {
                block: a >> 6,
                start: (a << 2) as i8,
                end: signed_b,
            },
            126..130 => Edit::Stamp {
                number: signed_a,
                departure: signed_b,
            },
            130..132 => Edit::SyncEcho(a),
            132..136 => Edit::ReportNumber(a),
            136..140 => Edit::Largest(signed_a),
            140..142 => Edit::LargestDelay(a),
            142..146 => Edit::NoLoss,
            146..148 => Edit::EchoedDeparture(signed_a),
            148..150 => Edit::EchoedDelay(a),
            150 => Edit::NoEcho,
            151..153 => Edit::Rate(a),
            153..157 => Edit::Above(a),
            157..159 => Edit::Period(a),
            159 => Edit::LossRate(a),
            160..164 => Edit::BeforeGap(signed_a),
            164..168 => Edit::AfterGap(signed_a),
            168..171 => Edit::RttMin(a),
            171 => Edit::Startup,
            172..178 => Edit::NoBlocks,
            178..184 => Edit::NoGaps,
            184..188 => Edit::NoLists,
            188..192 => Edit::FewerLists,
            192..200 => Edit::Ack(wide as i16),
            200..204 => Edit::Timestamps {
                value: signed_a,
                echo: signed_b,
            },
            204..208 => Edit::FarStamp(a),
            208..212 => Edit::SyncNumber(a),
            212..216 => Edit::SynOptions(a, b),
            216..228 => Edit::Seq(wide as i16),
            228..236 => Edit::Flags(a),
            236.. => Edit::Byte { at: a, xor: b },
        };
        Action::Rewrite(edit)
    }

    /// The worst that it can do.
    pub fn harm(&self) -> Harm {
        match self.action() {
            Action::Rewrite(edit) => edit.harm(),
            _ => Harm::Path,
        }
    }
}

impl Edit {
    fn harm(self) -> Harm {
        match self {
            Self::Ack(_) | Self::Timestamps { .. } | Self::SyncNumber(_) | Self::SynOptions(..) => {
                Harm::State
            }
            Self::Seq(_) | Self::Flags(_) | Self::Byte { .. } => Harm::Content,
            _ => Harm::Words,
        }
    }

    fn apply(self, header: &mut Header, payload: &mut Vec<u8>) {
        let syn = header.flags.syn();
        let shift = |number: &mut u32, by: i8| *number = number.wrapping_add_signed(by.into());
        // Microseconds up to more than an hour; numbers up to half around.
        let far = |exponent: u8| 1_u32.wrapping_shl(u32::from(exponent) % 32).wrapping_sub(1);
        match self {
            Self::Window(window) if !syn => header.window = window,
            Self::Ecn(bits) if !syn => {
                header.flags = Flags(header.flags.0 ^ (bits & (Flags::ECE.0 | Flags::CWR.0)));
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
            Self::NoBlocks => relist(header, payload, |_, is_block| !is_block),
            Self::NoGaps => relist(header, payload, |_, is_block| is_block),
            Self::NoLists => relist(header, payload, |_, _| false),
            Self::FewerLists => relist(header, payload, |index, _| index % 2 == 1),
            Self::Ack(by) => header.ack.0 = header.ack.0.wrapping_add_signed(by.into()),
            Self::Seq(by) => header.seq.0 = header.seq.0.wrapping_add_signed(by.into()),
            Self::Flags(xor) => header.flags = Flags(header.flags.0 ^ xor),
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
            (Self::SyncNumber(exponent), Some(TackOption::Sync(sync))) => {
                sync.number = sync.number.wrapping_add(far(exponent));
            }
            (Self::RttMin(exponent), Some(TackOption::Sync(sync))) => sync.rtt_min = far(exponent),
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

/// Keeps those entries of a report's lists for which `keep` says so, given their place in their list and whether they are
/// blocks. The empty segment that is left without lists starts where the peer stands.
pub fn relist(
    header: &mut Header,
    payload: &mut Vec<u8>,
    mut keep: impl FnMut(usize, bool) -> bool,
) {
    let has_lists = match &mut header.options.tack {
        Some(TackOption::Report(report)) => &mut report.lists,
        Some(TackOption::Loss(loss)) => &mut loss.lists,
        _ => return,
    };
    let Ok(lists) = Lists::parse(payload) else {
        return;
    };
    let mut out = vec![0; payload.len() + 4];
    let mut writer = ListsWriter::new(&mut out);
    for (index, block) in lists.blocks().enumerate() {
        if keep(index, true) {
            writer.block(block);
        }
    }
    for (index, (distance, count)) in lists.gaps().enumerate() {
        if keep(index, false) {
            writer.gap(distance, count);
        }
    }
    let len = writer.finish();
    out.truncate(len);
    *has_lists = len > 0;
    // Lists lie below the peer's SND.UNA, whatever their length.
    header.seq = header.seq + payload.len() as u32 - len as u32;
    *payload = out;
}

/// Who follows a script on one direction of a path, and then is gone.
#[derive(Debug)]
pub struct Adversary {
    script: Vec<Step>,
    next: usize,
    skipped: u8,
    dropping: u8,
    kept: Vec<Vec<u8>>,
    last_deed: Option<Instant>,
}

impl Adversary {
    /// Who will do this.
    pub fn new(script: Vec<Step>) -> Self {
        Self {
            script,
            next: 0,
            skipped: 0,
            dropping: 0,
            kept: Vec::new(),
            last_deed: None,
        }
    }

    /// Leaves: what is left of the script is not done.
    pub fn leave(&mut self) {
        self.next = self.script.len();
        self.dropping = 0;
    }

    /// Nothing is left of the script.
    pub fn is_done(&self) -> bool {
        self.next == self.script.len() && self.dropping == 0
    }

    /// When it last did anything.
    pub fn last_deed(&self) -> Option<Instant> {
        self.last_deed
    }

    /// Some segments may arrive with other fields than they left with.
    pub(crate) fn rewrites(&self) -> bool {
        self.script.iter().any(|step| step.harm() > Harm::Path)
    }

    /// A packet comes by: what goes on instead, each so much later.
    pub(crate) fn meet(&mut self, now: Instant, bytes: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        if self.is_done() {
            return vec![(Duration::ZERO, bytes.to_vec())];
        }
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        self.kept.push(bytes.to_vec());
        if self.dropping > 0 {
            self.dropping -= 1;
            self.last_deed = Some(now);
            return Vec::new();
        }
        let step = self.script[self.next];
        if self.skipped < step.skip {
            self.skipped += 1;
            return vec![(Duration::ZERO, bytes.to_vec())];
        }
        self.skipped = 0;
        self.next += 1;
        self.last_deed = Some(now);
        let pass = (Duration::ZERO, bytes.to_vec());
        match step.action() {
            Action::Pass => vec![pass],
            Action::Drop => Vec::new(),
            Action::DropRun(more) => {
                self.dropping = more;
                Vec::new()
            }
            Action::Delay(by) => vec![(by, pass.1)],
            Action::Copy(by) => vec![(by, pass.1.clone()), pass],
            Action::Replay(back) => {
                let index = self.kept.len() - 1 - usize::from(back) % self.kept.len();
                vec![(Duration::ZERO, self.kept[index].clone()), pass]
            }
            Action::Cut(len) => changed(bytes, |header, payload| {
                let lists = header.options.tack.is_some_and(|option| option.has_lists());
                // Lists in part are no lists: that is a report that got lost.
                let rest = payload.len().saturating_sub(len.into());
                if !lists && rest < payload.len() {
                    payload.truncate(rest);
                    header.flags = Flags(header.flags.0 & !Flags::FIN.0);
                }
            }),
            Action::Rewrite(Edit::Byte { at, xor }) => {
                let mut bytes = pass.1;
                let at = usize::from(at) % bytes.len().min(60);
                bytes[at] ^= xor;
                // Ports are another connection's business, and what is no segment any more does not arrive.
                let genuine = at >= 4 && Segment::parse(&bytes).is_ok();
                if genuine {
                    vec![(Duration::ZERO, bytes)]
                } else {
                    Vec::new()
                }
            }
            Action::Rewrite(edit) => changed(bytes, |header, payload| edit.apply(header, payload)),
        }
    }
}

fn changed(
    bytes: &[u8],
    change: impl FnOnce(&mut Header, &mut Vec<u8>),
) -> Vec<(Duration, Vec<u8>)> {
    let segment = Segment::parse(bytes).expect("endpoints send segments");
    let (mut header, mut payload) = (segment.header.clone(), segment.payload.to_vec());
    change(&mut header, &mut payload);
    vec![(Duration::ZERO, encode(&header, &payload))]
}
