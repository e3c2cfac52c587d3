//! One bottleneck in virtual time, to drive controllers with acknowledgements as they really come.
//!
//! Flows with endless data share a link with a drop-tail queue and, if asked, random loss. Senders
//! pace, detect loss by three later deliveries, shape recovery by PRR (RFC 6937) where the
//! controller wants it, take delivery-rate samples (draft-ietf-ccwg-bbr §4.1) and time out;
//! receivers acknowledge every second segment, and at once when segments are missing. Selective
//! acknowledgement is perfect: an ACK names the transmissions that arrived.
//!
//! Sparse feedback, if asked: receivers acknowledge by the clock, report the smallest RTT of an
//! interval and measure the delivery rate; a gap is reported at once, and slow start is
//! acknowledged as without.

mod receiver;
mod sender;

use core::cmp::Reverse;
use core::time::Duration;

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;

use tack_base::random::RandomStream;
use tack_base::{Instant, Rate};

use super::{Algorithm, Init};
use receiver::Decision;
use sender::Flow;
pub(super) use sender::Point;

/// Payload of every segment, bytes.
pub(super) const MSS: u64 = 1448;
/// The same on the wire.
const WIRE: u64 = 1500;

/// The path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) rate: Rate,
    /// From when on the rate is another one; in order.
    pub(super) steps: &'static [(Instant, Rate)],
    pub(super) rtt: Duration,
    /// Capacity of the queue, bytes on the wire.
    pub(super) buffer: u64,
    /// Probability that a segment is lost beyond the queue.
    pub(super) loss: f64,
    /// Largest extra delay of an acknowledgement.
    pub(super) jitter: Duration,
    /// From then on the link drops everything, for so long.
    pub(super) blackout: Option<(Instant, Duration)>,
}

impl Path {
    /// 100 Mbit/s, 40 ms, a queue of one bandwidth-delay product, no random loss.
    pub(super) fn standard() -> Self {
        let (rate, rtt) = (
            Rate::from_bits_per_sec(100_000_000),
            Duration::from_millis(40),
        );
        Self {
            rate,
            steps: &[],
            rtt,
            buffer: rate.bytes_in(rtt),
            loss: 0.0,
            jitter: Duration::from_micros(500),
            blackout: None,
        }
    }

    /// Payload bytes per second when the link is never idle.
    fn capacity(&self) -> f64 {
        self.rate.bytes_per_sec() as f64 * MSS as f64 / WIRE as f64
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Start(usize),
    /// The link finished sending its head packet.
    Served,
    Arrival(usize, u64),
    AckTimer(usize, u64),
    AckArrival(usize, AckPacket),
    Pace(usize),
    RetransmissionTimer(usize),
}

/// An acknowledgement.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct AckPacket {
    /// Next segment expected.
    cumulative: u64,
    /// The transmissions that arrived since the last one, and how long they waited for this.
    arrived: Vec<(u64, Duration)>,
    /// Delivery rate, where the receiver measures it.
    rate: Option<Rate>,
}

/// The whole world: a link and the flows that share it.
#[derive(Debug)]
pub(super) struct Simulation {
    path: Path,
    now: Instant,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    inserted: u64,
    queue: VecDeque<(usize, u64)>,
    queued: u64,
    loss: RandomStream,
    jitter: RandomStream,
    seed: u64,
    feedback_interval: Duration,
    pub(super) flows: Vec<Flow>,
}

impl Simulation {
    pub(super) fn new(path: Path, seed: u64) -> Self {
        Self {
            path,
            now: Instant::ZERO,
            events: BinaryHeap::new(),
            inserted: 0,
            queue: VecDeque::new(),
            queued: 0,
            loss: RandomStream::new(seed, "loss", 0),
            jitter: RandomStream::new(seed, "jitter", 0),
            seed,
            feedback_interval: Duration::ZERO,
            flows: Vec::new(),
        }
    }

    /// Lets the flows added from here on be acknowledged `beta` times a round trip.
    pub(super) fn sparse(mut self, beta: u32) -> Self {
        self.feedback_interval = self.path.rtt / beta;
        self
    }

    /// Adds a flow that starts at `at`.
    pub(super) fn flow(mut self, algorithm: Algorithm, at: Instant) -> Self {
        let index = self.flows.len();
        let mut controller = algorithm.build(&Init {
            now: at,
            mss: MSS,
            initial_window: 10 * MSS,
            rtt: Some(self.path.rtt),
            seed: self.seed.wrapping_mul(1000) + index as u64,
            counting: crate::cc::Counting::Bytes,
        });
        controller.on_feedback_interval(self.feedback_interval);
        self.flows
            .push(Flow::new(controller, self.feedback_interval));
        self.schedule(at, Event::Start(index));
        self
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.events.push(Reverse((at, self.inserted, event)));
        self.inserted += 1;
    }

    /// Lets `until` come.
    pub(super) fn run(mut self, until: Instant) -> Self {
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at > until {
                break;
            }
            self.now = at;
            self.handle(event);
        }
        self
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Start(flow) => self.send(flow),
            Event::Served => self.served(),
            Event::Arrival(flow, tx) => self.arrival(flow, tx),
            Event::AckTimer(flow, epoch) => {
                if self.flows[flow].receiver.ack_epoch == epoch {
                    self.acknowledge(flow);
                }
            }
            Event::AckArrival(flow, packet) => {
                self.flows[flow].receive_ack(now, &packet);
                self.send(flow);
            }
            Event::Pace(flow) => {
                self.flows[flow].pacing_armed = false;
                self.send(flow);
            }
            Event::RetransmissionTimer(flow) => {
                self.flows[flow].rto_armed = false;
                if self.flows[flow].rto_at <= now {
                    self.flows[flow].on_retransmission_timeout(now);
                    self.send(flow);
                }
                self.arm_rto(flow);
            }
        }
    }

    fn send(&mut self, index: usize) {
        let now = self.now;
        loop {
            let flow = &mut self.flows[index];
            if !flow.window_allows() {
                flow.cwnd_limited_until = flow.next_segment;
                break;
            }
            if flow.next_departure > now {
                if !flow.pacing_armed {
                    flow.pacing_armed = true;
                    let at = flow.next_departure;
                    self.schedule(at, Event::Pace(index));
                }
                break;
            }
            let tx = flow.transmit(now);
            flow.next_departure = now + flow.pacing_rate().time_for(MSS);
            if flow.rto_at == Instant::FAR_FUTURE {
                flow.rto_at = now + flow.rto();
            }
            self.enqueue(index, tx);
        }
        self.arm_rto(index);
    }

    fn arm_rto(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if !flow.rto_armed && flow.rto_at != Instant::FAR_FUTURE {
            flow.rto_armed = true;
            let at = flow.rto_at.max(self.now);
            self.schedule(at, Event::RetransmissionTimer(index));
        }
    }

    fn enqueue(&mut self, flow: usize, tx: u64) {
        if self.queued >= self.path.buffer {
            return;
        }
        self.queue.push_back((flow, tx));
        self.queued += WIRE;
        if self.queue.len() == 1 {
            let at = self.now + self.rate().time_for(WIRE);
            self.schedule(at, Event::Served);
        }
    }

    /// The link's rate at the moment.
    fn rate(&self) -> Rate {
        let steps = self.path.steps.iter().rev();
        steps
            .into_iter()
            .find(|(from, _)| *from <= self.now)
            .map_or(self.path.rate, |(_, rate)| *rate)
    }

    fn served(&mut self) {
        let Some((flow, tx)) = self.queue.pop_front() else {
            return;
        };
        self.queued -= WIRE;
        let dark = self
            .path
            .blackout
            .is_some_and(|(from, length)| self.now >= from && self.now < from + length);
        if !dark && !self.loss.chance(self.path.loss) {
            let at = self.now + self.path.rtt / 2;
            self.schedule(at, Event::Arrival(flow, tx));
        }
        if !self.queue.is_empty() {
            let at = self.now + self.rate().time_for(WIRE);
            self.schedule(at, Event::Served);
        }
    }

    fn arrival(&mut self, index: usize, tx: u64) {
        let flow = &mut self.flows[index];
        // Segments are found by the log; one that was given up and repaired meanwhile is a
        // duplicate.
        let segment = flow.log.get(&tx).map(|transmission| transmission.segment);
        let dense = flow.controller.in_slow_start();
        match flow.receiver.arrival(self.now, tx, segment, dense) {
            Decision::Now => self.acknowledge(index),
            Decision::At(at) => {
                flow.receiver.ack_epoch += 1;
                let epoch = flow.receiver.ack_epoch;
                self.schedule(at, Event::AckTimer(index, epoch));
            }
            Decision::Wait => {}
        }
    }

    fn acknowledge(&mut self, index: usize) {
        let receiver = &mut self.flows[index].receiver;
        let packet = receiver.acknowledge(self.now);
        let jitter = self.jitter.below(tack_base::time::nanos(self.path.jitter));
        let at =
            (self.now + self.path.rtt / 2 + Duration::from_nanos(jitter)).max(receiver.last_ack_at);
        receiver.last_ack_at = at;
        self.schedule(at, Event::AckArrival(index, packet));
    }

    /// Payload bytes that a flow received in a time span.
    pub(super) fn received(&self, flow: usize, from: Instant, to: Instant) -> u64 {
        let received = &self.flows[flow].receiver.received;
        received
            .iter()
            .filter(|(at, _)| *at >= from && *at < to)
            .map(|(_, bytes)| bytes)
            .sum()
    }

    /// Acknowledgements that a flow caused.
    pub(super) fn acknowledgements(&self, flow: usize) -> u64 {
        self.flows[flow].receiver.acknowledgements
    }

    /// Part of the link's capacity that all flows together used.
    pub(super) fn utilisation(&self, from: Instant, to: Instant) -> f64 {
        let bytes: u64 = (0..self.flows.len())
            .map(|flow| self.received(flow, from, to))
            .sum();
        bytes as f64 / (self.path.capacity() * to.saturating_since(from).as_secs_f64())
    }

    /// Jain's fairness index of what the flows received.
    pub(super) fn jain(&self, from: Instant, to: Instant) -> f64 {
        let shares: Vec<f64> = (0..self.flows.len())
            .map(|flow| self.received(flow, from, to) as f64)
            .collect();
        let sum: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        sum * sum / (shares.len() as f64 * squares)
    }
}
