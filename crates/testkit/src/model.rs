//! One direction of a network that misbehaves on demand.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use tack_base::random::RandomStream;
use tack_base::{Instant, Rate};
use tack_wire::{Ecn, Header, Segment};

use crate::adversary::Adversary;
use crate::segment::encode;

/// What happens to one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It passes.
    Pass,
    /// It is lost.
    Drop,
    /// It passes, so much later than it would have; others may overtake it.
    Delay(Duration),
    /// It passes, but does not arrive before this moment; whatever is held keeps its order.
    Hold(Instant),
    /// It passes twice.
    Duplicate,
    /// It passes with a congestion mark, if it can carry one.
    Mark,
}

/// A packet on its way, as a [`Model::judge`] sees it.
#[derive(Debug)]
pub struct Packet<'a> {
    /// How many packets went this way before it.
    pub index: u64,
    /// When it entered.
    pub now: Instant,
    /// What it carries.
    pub segment: &'a Segment<'a>,
    /// Its ECN codepoint.
    pub ecn: Ecn,
}

/// Decides over packets one by one.
pub type Judge = Box<dyn FnMut(&Packet<'_>) -> Fate>;

/// Changes segments on the way, header and payload, as boxes in the middle do.
pub type Rewriter = Box<dyn FnMut(&mut Header, &mut Vec<u8>)>;

/// Properties of one direction. The default is a wire of 10 ms without faults.
pub struct Model {
    /// Propagation delay.
    pub delay: Duration,
    /// Serialisation rate, 20 bytes of IP header counted in; `None` is infinite.
    pub rate: Option<Rate>,
    /// Packets that may wait for serialisation; more are lost.
    pub queue: usize,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that a packet passes twice.
    pub duplicate: f64,
    /// Probability that a packet is delayed by up to `reorder_by` more.
    pub reorder: f64,
    /// Largest extra delay of reordered packets.
    pub reorder_by: Duration,
    /// Probability that an ECN-capable packet is marked.
    pub mark: f64,
    /// Longest packet that passes, IP header included; longer ones are dropped silently.
    pub mtu: usize,
    /// Times during which everything is lost.
    pub blackouts: Vec<Range<Instant>>,
    /// The receiving host looks at packets so much later than they arrived.
    pub late: Duration,
    /// Has the last word on packets that would pass.
    pub judge: Option<Judge>,
    /// Changes those that pass.
    pub rewriter: Option<Rewriter>,
    /// Changes packets before everything else on the path.
    pub adversary: Option<Adversary>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(10),
            rate: None,
            queue: 1000,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_by: Duration::from_millis(5),
            mark: 0.0,
            mtu: 1500,
            blackouts: Vec::new(),
            late: Duration::ZERO,
            judge: None,
            rewriter: None,
            adversary: None,
        }
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "delay {:?} rate {:?} queue {} loss {} duplicate {} reorder {} by {:?} mark {} mtu {} late {:?}",
            self.delay,
            self.rate,
            self.queue,
            self.loss,
            self.duplicate,
            self.reorder,
            self.reorder_by,
            self.mark,
            self.mtu,
            self.late
        )
    }
}

impl Model {
    /// A wire with this one-way delay and this rate, without faults.
    pub fn wire(delay: Duration, rate: Rate) -> Self {
        Self {
            delay,
            rate: Some(rate),
            ..Self::default()
        }
    }

    /// The same, with a box in the middle that changes headers.
    #[must_use]
    pub fn rewritten(self, mut rewriter: impl FnMut(&mut Header) + 'static) -> Self {
        self.edited(move |header, _| rewriter(header))
    }

    /// The same, with a box that changes headers and payload.
    #[must_use]
    pub fn edited(mut self, rewriter: impl FnMut(&mut Header, &mut Vec<u8>) + 'static) -> Self {
        self.rewriter = Some(Box::new(rewriter));
        self
    }

    /// Segments may arrive otherwise than they left: the two ends need not speak of the same
    /// numbers.
    pub(crate) fn rewrites(&self) -> bool {
        self.rewriter.is_some() || self.adversary.as_ref().is_some_and(Adversary::rewrites)
    }

    /// The same, with a judge.
    #[must_use]
    pub fn judged(mut self, judge: impl FnMut(&Packet<'_>) -> Fate + 'static) -> Self {
        self.judge = Some(Box::new(judge));
        self
    }
}

/// The segment changed.
fn rewrite(segment: &Segment<'_>, rewriter: &mut Rewriter) -> Vec<u8> {
    let mut header = segment.header.clone();
    let mut payload = segment.payload.to_vec();
    rewriter(&mut header, &mut payload);
    encode(&header, &payload)
}

/// A packet that will arrive.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) at: Instant,
    pub(crate) bytes: Vec<u8>,
    pub(crate) ecn: Ecn,
}

/// A direction in operation.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) model: Model,
    random: RandomStream,
    index: u64,
    /// When the last packet will have been serialised.
    free: Instant,
}

impl Link {
    pub(crate) fn new(model: Model, random: RandomStream) -> Self {
        Self {
            model,
            random,
            index: 0,
            free: Instant::ZERO,
        }
    }

    /// A packet enters. What comes out arrives as said; nothing when it is lost.
    pub(crate) fn send(&mut self, now: Instant, bytes: &[u8], ecn: Ecn) -> Vec<Delivery> {
        let Some(mut adversary) = self.model.adversary.take() else {
            return self.carry(now, bytes, ecn);
        };
        let mut deliveries = Vec::new();
        for (later, bytes) in adversary.meet(now, bytes) {
            let carried = self.carry(now, &bytes, ecn);
            deliveries.extend(carried.into_iter().map(|delivery| Delivery {
                at: delivery.at + later,
                ..delivery
            }));
        }
        self.model.adversary = Some(adversary);
        deliveries
    }

    fn carry(&mut self, now: Instant, bytes: &[u8], ecn: Ecn) -> Vec<Delivery> {
        // Drawn for each packet, whatever becomes of it: a fault more or less shifts no other.
        let [loss, duplicate, reorder, by, mark] = std::array::from_fn(|_| self.random.unit());
        let model = &mut self.model;
        let index = self.index;
        self.index += 1;
        let len = bytes.len() + 20;
        let mut leaves = now;
        if let Some(rate) = model.rate {
            let backlog = self.free.saturating_since(now);
            if rate.bytes_in(backlog) > (model.queue * 1500) as u64 {
                return Vec::new();
            }
            leaves = self.free.max(now) + rate.time_for(len as u64);
            self.free = leaves;
        }
        if len > model.mtu
            || loss < model.loss
            || model.blackouts.iter().any(|times| times.contains(&now))
        {
            return Vec::new();
        }
        let segment = Segment::parse(bytes).expect("endpoints send segments");
        let verdict = model.judge.as_mut().map_or(Fate::Pass, |judge| {
            judge(&Packet {
                index,
                now,
                segment: &segment,
                ecn,
            })
        });
        let mut at = leaves + model.delay;
        let mut copies = 1 + usize::from(duplicate < model.duplicate);
        if reorder < model.reorder {
            at += model.reorder_by.mul_f64(by);
        }
        let mut marked = mark < model.mark;
        match verdict {
            Fate::Pass => {}
            Fate::Drop => return Vec::new(),
            Fate::Delay(extra) => at += extra,
            Fate::Hold(until) => at = at.max(until),
            Fate::Duplicate => copies = 2,
            Fate::Mark => marked = true,
        }
        let ecn = if marked && ecn != Ecn::NotEct {
            Ecn::Ce
        } else {
            ecn
        };
        let bytes = match &mut model.rewriter {
            Some(rewriter) => rewrite(&segment, rewriter),
            None => bytes.to_vec(),
        };
        (0..copies)
            .map(|_| Delivery {
                at,
                bytes: bytes.clone(),
                ecn,
            })
            .collect()
    }
}
