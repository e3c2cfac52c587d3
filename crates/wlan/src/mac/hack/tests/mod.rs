//! Two radios with a medium between them that loses what a test says.

use std::boxed::Box;
use std::sync::Arc;
use std::vec::Vec;

use tack_base::{Duration, Instant};

mod comparing;
mod contexts;
mod echoes;
mod filtered;
mod natives;
mod protection;
mod protocol;

use super::toy::{Toy, ToyCodec, ToyReader};
use super::{BoxedCodec, CodecFactory, Hack, HackConfig, HackStats, Variant};
use crate::frame::{AccessCategory, Class, Frame, Msdu, NodeId, Ppdu};
use crate::mac::access::BusyEnd;
use crate::mac::discipline::AckFilter;
use crate::mac::{MacConfig, Station};
use crate::phy::{GuardInterval, HtMode, Mode, OfdmRate, Preamble, Standard, Timing, Width};

const STA: NodeId = NodeId(1);
const INTERRUPT: Duration = Duration::from_micros(30);

/// What becomes of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Arrives,
    Lost,
    /// Only the first frame of it arrives.
    InPart,
    /// All but the first frame of it arrive.
    WithoutFirst,
}

fn config(standard: Standard) -> MacConfig {
    let mode = match standard {
        Standard::A => Mode::Ofdm(OfdmRate::R54),
        _ => Mode::Ht(HtMode::new(7, Width::W40, GuardInterval::Ns400).unwrap()),
    };
    let timing = Timing::new(standard, standard.band(), Preamble::Long);
    MacConfig {
        retry_limit: 3,
        ..MacConfig::new(standard, timing, mode)
    }
}

struct Pair {
    radios: [Station<Toy>; 2],
    now: Instant,
    /// The host's answer comes to the radio this long after the data came to the host.
    answer: Duration,
    /// On their way to a radio's queue.
    entering: Vec<(Instant, usize, Msdu<Toy>)>,
    /// Acknowledgements that came to each host, with flow and number.
    acks: [Vec<(u128, u32)>; 2],
    /// What responses of each radio carried.
    carried: [Vec<Vec<u8>>; 2],
    /// Acknowledgements have timestamps: so much more than their numbers.
    stamps: Option<u32>,
    /// The timestamp that data of each host echoes: the newest that came.
    newest: [Option<u32>; 2],
    /// Nothing is known about where rebuilt acknowledgements came from.
    forgets_originals: bool,
}

fn data(from: usize, number: u32) -> Msdu<Toy> {
    let payload = Toy {
        flow: 1 + from as u128,
        number,
        is_ack: false,
        stamp: None,
    };
    Msdu {
        src: NodeId(from as u16),
        dst: NodeId(1 - from as u16),
        len: 1_500,
        class: Class::Data,
        category: AccessCategory::BestEffort,
        payload: Some(payload),
    }
}

impl Pair {
    fn new(config: MacConfig, variant: Variant) -> Self {
        Self::with_queues(config, variant, 10_000)
    }

    /// Radios with queues of so many packets.
    fn with_queues(config: MacConfig, variant: Variant, queue: usize) -> Self {
        Self::with_codec(config, variant, queue, || Box::new(ToyCodec::default()))
    }

    /// Radios with queues of so many packets and another codec.
    fn with_codec(
        config: MacConfig,
        variant: Variant,
        queue: usize,
        codec: impl Fn() -> BoxedCodec<Toy> + Send + Sync + Copy + 'static,
    ) -> Self {
        let config = Arc::new(config);
        let radios = [NodeId::AP, STA].map(|id| {
            let mut station = Station::new(id, Arc::clone(&config), queue, None, 1);
            let factory = CodecFactory::new(codec);
            station.set_hack(Hack::new(HackConfig::new(variant), INTERRUPT, factory));
            station
        });
        Self {
            radios,
            now: Instant::from_micros(1_000),
            answer: Duration::from_micros(50),
            entering: Vec::new(),
            acks: [Vec::new(), Vec::new()],
            carried: [Vec::new(), Vec::new()],
            stamps: None,
            newest: [None; 2],
            forgets_originals: false,
        }
    }

    /// With timestamps: that of acknowledgement 0 is `first`.
    fn stamped(mut self, first: u32) -> Self {
        self.stamps = Some(first);
        self
    }

    /// With a filter at each queue.
    fn filtered(mut self, filter: AckFilter) -> Self {
        for radio in &mut self.radios {
            radio.set_discipline(|_| filter.discipline(ToyReader));
        }
        self
    }

    /// A context for the acknowledgements of each radio, by one native one.
    fn ready(config: MacConfig, variant: Variant) -> Self {
        Self::new(config, variant).made_ready()
    }

    fn made_ready(self) -> Self {
        let mut pair = self;
        for from in [0, 1] {
            pair.ack(from, 0);
            pair.run(20, |_, _| Fate::Arrives);
        }
        assert_eq!(pair.stats(1).native + pair.stats(0).native, 2);
        pair
    }

    fn stats(&self, at: usize) -> &HackStats {
        self.radios[at].hack_stats().unwrap()
    }

    /// The access point gets data to send.
    fn send(&mut self, from: usize, numbers: core::ops::Range<u32>) {
        for number in numbers {
            let to = NodeId(1 - from as u16);
            let mut msdu = data(from, number);
            if let Some(toy) = &mut msdu.payload {
                toy.stamp = self.newest[from];
            }
            self.radios[from].enqueue(self.now, to, msdu).unwrap();
        }
    }

    /// The host of a radio acknowledges.
    fn ack(&mut self, from: usize, number: u32) {
        self.acknowledge(from, Self::ack_of(from, number));
    }

    fn with_stamp(&self, mut msdu: Msdu<Toy>) -> Msdu<Toy> {
        if let Some(toy) = &mut msdu.payload {
            toy.stamp = self.stamps.map(|first| first.wrapping_add(toy.number));
        }
        msdu
    }

    /// The host of a radio acknowledges something of this flow.
    fn ack_flow(&mut self, from: usize, flow: u128, number: u32) {
        let mut msdu = Self::ack_of(from, number);
        if let Some(toy) = &mut msdu.payload {
            toy.flow = flow;
        }
        self.acknowledge(from, msdu);
    }

    fn acknowledge(&mut self, from: usize, msdu: Msdu<Toy>) {
        let to = NodeId(1 - from as u16);
        let msdu = self.with_stamp(msdu);
        self.radios[from].enqueue(self.now, to, msdu).unwrap();
    }

    fn ack_of(from: usize, number: u32) -> Msdu<Toy> {
        let mut msdu = data(1 - from, number);
        (msdu.src, msdu.dst) = (msdu.dst, msdu.src);
        msdu.class = Class::TransportAck;
        msdu.len = 52;
        if let Some(toy) = &mut msdu.payload {
            toy.is_ack = true;
        }
        msdu
    }

    /// When something happens next.
    fn next(&self) -> Option<Instant> {
        let entry = self.entering.iter().map(|(at, ..)| *at).min();
        let wakes = self.radios.iter().filter_map(Station::poll_timeout);
        wakes.chain(entry).min()
    }

    /// What hosts have answered comes to the radios.
    fn enter(&mut self) {
        self.entering.sort_by_key(|(at, ..)| *at);
        while let Some((due, ..)) = self.entering.first()
            && *due <= self.now
        {
            let (_, at, msdu) = self.entering.remove(0);
            let to = NodeId(1 - at as u16);
            self.radios[at].enqueue(self.now, to, msdu).unwrap();
        }
    }

    /// Frames that have waited too long for one before them go to the hosts.
    fn release(&mut self) {
        for at in [0, 1] {
            let mut released = Vec::new();
            if self.radios[at].holds_overdue(self.now) {
                self.radios[at].release_overdue(self.now, |msdu| released.push(msdu));
            }
            for msdu in released {
                self.deliver(at, msdu);
            }
        }
    }

    /// Lets up to `most` PPDUs go on the air.
    fn run(&mut self, most: usize, mut fate: impl FnMut(usize, &Ppdu<Toy>) -> Fate) {
        let mut sent = 0;
        while sent < most {
            let Some(next) = self.next() else {
                break;
            };
            self.now = self.now.max(next);
            self.enter();
            self.release();
            for from in [0, 1] {
                if let Some(ppdu) = self.radios[from].handle_timeout(self.now) {
                    let fate = fate(from, &ppdu);
                    self.transmit(from, ppdu, fate);
                    sent += 1;
                    break;
                }
            }
        }
    }

    fn transmit(&mut self, from: usize, mut ppdu: Ppdu<Toy>, fate: Fate) {
        let to = 1 - from;
        if !ppdu.frame.carried().is_empty() {
            self.carried[from].push(ppdu.frame.carried().to_vec());
        }
        for radio in &mut self.radios {
            radio.on_busy(self.now);
        }
        let header = self.now + Duration::from_micros(20);
        self.radios[to].on_reception_start(header);
        let end = self.now + ppdu.airtime;
        // What is due meanwhile.
        while let Some(due) = self.next().filter(|due| *due < end) {
            self.now = self.now.max(due);
            self.enter();
            self.release();
            for radio in &mut self.radios {
                let ppdu = radio.handle_timeout(self.now);
                assert!(ppdu.is_none(), "the medium is busy");
            }
        }
        self.now = end;
        self.radios[from].on_transmitted(end, &ppdu);
        self.radios[from].on_idle(end, BusyEnd::Frame);
        let mut delivered = Vec::new();
        let radio = &mut self.radios[to];
        let source = ppdu.from;
        let is_single = match &ppdu.frame {
            Frame::Data(data) => data.mpdus.len() == 1,
            _ => true,
        };
        if fate == Fate::Lost || fate == Fate::WithoutFirst && is_single {
            radio.on_reception_error(end);
        } else if let Frame::Data(data) = &mut ppdu.frame {
            radio.on_data_header(end, source, data, 0);
            let read = match fate {
                Fate::InPart => 0..1,
                Fate::WithoutFirst => 1..data.mpdus.len(),
                _ => 0..data.mpdus.len(),
            };
            for mpdu in &mut data.mpdus[read] {
                radio.receive_mpdu(end, source, mpdu, |msdu| delivered.push(msdu));
            }
            radio.finish_data(end, &ppdu);
        } else {
            radio.receive_control(end, &ppdu, |msdu| delivered.push(msdu));
            while let Some(mut ack) = self.radios[to].poll_rebuilt() {
                let original = self.radios[from].original(NodeId(to as u16), ack.msn);
                let original = original.filter(|_| !self.forgets_originals).copied();
                self.radios[to].compare_rebuilt(&mut ack, original.as_ref());
                delivered.push(ack.msdu);
            }
        }
        self.radios[to].on_idle(end, BusyEnd::Frame);
        for msdu in delivered {
            self.deliver(to, msdu);
        }
    }

    fn deliver(&mut self, to: usize, msdu: Msdu<Toy>) {
        let toy = msdu.payload.unwrap();
        if toy.is_ack {
            self.acks[to].push((toy.flow, toy.number));
            self.newest[to] = toy.stamp;
        } else {
            let answer = self.with_stamp(Self::ack_of(to, toy.number + 1));
            self.entering.push((self.now + self.answer, to, answer));
        }
    }

    fn assert_right(&self) {
        for at in [0, 1] {
            let stats = self.stats(at);
            let wrong = [stats.crc_failures, stats.decode_failures, stats.differing];
            assert_eq!(wrong, [0; 3]);
        }
    }

    /// The numbers acknowledged at a host.
    fn numbers(&self, at: usize) -> Vec<u32> {
        self.acks[at].iter().map(|(_, number)| *number).collect()
    }
}

fn is_response(ppdu: &Ppdu<Toy>) -> bool {
    matches!(ppdu.frame, Frame::Ack { .. } | Frame::BlockAck { .. })
}

/// Batches of four: what answers the first rides on the Block ACK of the second, what answers the
/// last goes as it is.
fn fours(standard: Standard) -> MacConfig {
    let mut config = config(standard);
    config.ampdu.frames = 4;
    config
}
