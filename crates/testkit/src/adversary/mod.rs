//! An attacker on the path that drops, copies, delays, cuts and rewrites segments as a script says:
//! four bytes a step, so that the input of a fuzzer is a script and a failing one shrinks.
//!
//! Checksums are not in use here (the tests carry segments without), so whatever is rewritten is
//! taken for genuine.

mod edit;
mod harm;

use std::fmt;
use std::time::Duration;

use tack_base::Instant;
use tack_wire::{Flags, Header, Segment};

pub use self::edit::{Edit, list, relist};
pub use self::harm::Harm;
use crate::segment::encode;

/// Packets kept to be sent again.
const KEPT: usize = 32;

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
            130 => Edit::SyncEcho(a),
            131 => Edit::FarDeparture(a),
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
            168..170 => Edit::RttMin(a),
            170 => Edit::Rtt(a),
            171 => Edit::Startup,
            172..176 => Edit::NoBlocks,
            176..180 => Edit::NoGaps,
            180..183 => Edit::NoLists,
            183..186 => Edit::FewerLists,
            186..189 => Edit::Gap {
                distance: a,
                count: b,
            },
            189..192 => Edit::Block { start: a, len: b },
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

/// An attacker that follows a script on one direction of a path, and then stops.
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
    /// An attacker with this script.
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
                // Truncated lists are malformed: the report counts as lost.
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
                // Other ports belong to another connection, and a malformed segment does not
                // arrive.
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
