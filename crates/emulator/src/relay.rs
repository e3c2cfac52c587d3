//! The loop: take in what arrived, let the model catch up with the clock, send what came out, rest.
//!
//! One turn handles everything up to now. The kernel says when each datagram arrived, so the loop
//! need not be woken for one: it enters the model at its own time, however late it is read, as long
//! as the model has not passed that time. So turns are 20 µs apart at least (`pace.rs`), which
//! costs deliveries as much and saves most of the wake-ups.
//!
//! A peer that answers each datagram answers bunched deliveries in a bunch, so its answers contend
//! for the channel otherwise than in virtual time. With 100 µs between turns a transfer with
//! delayed acknowledgements was 5 % slower over 802.11n than in virtual time, with 20 µs 2.5 %, for
//! a quarter more of processor time.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tack_base::Instant;
use tack_io::{UdpReceiver, UdpSender};
use tack_sim::packet::{Inner, Packet};
use tack_sim::{Arrival, Network, Scenario};
use tack_wire::Ecn;
use tack_wire::checksum::PROTOCOL_UDP;
use tack_wlan::world::HostDelays;
use tack_wlan::{Capture, Class};
use tokio::sync::{mpsc, oneshot};

use crate::MAX_DATAGRAM;
use crate::clamp::clamped;
use crate::content::{Content, Counting};
use crate::figures::{Dropped, Sample, Summary, Totals};
use crate::flows::{FlowId, Flows, NoFlow};
use crate::lateness::{Meter, Trust};
use crate::pace::Pace;
use crate::running::Relaying;
use crate::settings::Settings;

/// Datagrams taken from one socket in a turn. More stay in the kernel's buffer, with their time.
const MOST_TAKEN: usize = 4_096;

/// The host behind the wired path.
const SERVER: usize = 0;

/// A datagram that arrived at one of the sockets.
#[derive(Debug)]
struct Incoming {
    at: Instant,
    flow: FlowId,
    direction: Direction,
    ecn: Ecn,
    payload: Bytes,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    Up,
    Down,
}

/// Carries datagrams until it is stopped.
pub(crate) struct Relay {
    pace: Pace,
    network: Network,
    /// Up to when the model has come.
    model: Instant,
    to: SocketAddr,
    sender: UdpSender,
    receiver: UdpReceiver,
    /// The socket was not seen writable yet.
    is_new: bool,
    /// When the latest datagram of a client arrived.
    latest: Instant,
    flows: Flows,
    inbox: Vec<Incoming>,
    /// How late datagrams left.
    meter: Meter,
    /// How late they entered the model.
    entries: Meter,
    dropped: Dropped,
    samples: mpsc::Sender<Sample>,
    stop: oneshot::Receiver<()>,
    name: String,
    seed: u64,
}

impl Relay {
    /// A relay between the sockets of `listen` and the address of `settings`. Must be called within
    /// a tokio runtime.
    pub(crate) fn new(
        settings: &Settings,
        (sender, receiver): (UdpSender, UdpReceiver),
        samples: mpsc::Sender<Sample>,
        stop: oneshot::Receiver<()>,
    ) -> io::Result<Self> {
        let mut scenario: Scenario = settings.scenario.clone();
        if let Some(wlan) = &mut scenario.wlan {
            // The hosts are real and add their own delays.
            wlan.world.host = HostDelays::default();
        }
        let network = Network::new(&scenario, settings.seed, Capture::Off);
        let stations = network.hosts() - 1;
        Ok(Self {
            pace: Pace::new(settings.sample_interval)?,
            network,
            model: Instant::ZERO,
            to: settings.to,
            sender,
            receiver,
            is_new: true,
            latest: Instant::ZERO,
            flows: Flows::new(settings.max_flows, stations, settings.to),
            inbox: Vec::new(),
            meter: Meter::new(),
            entries: Meter::new(),
            dropped: Dropped::default(),
            samples,
            stop,
            name: scenario.name.clone(),
            seed: settings.seed,
        })
    }

    /// Where clients send to.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.sender.local_addr()
    }

    /// Everything up to now.
    fn turn(&mut self, cx: &mut Context<'_>) {
        let now = self.pace.clock.now();
        self.take_from_clients(cx);
        self.take_from_far_side(cx);
        if self.await_sockets(cx).is_pending() {
            return;
        }
        // Each socket's are in order already.
        self.inbox.sort_by_key(|incoming| incoming.at);
        let mut inbox = std::mem::take(&mut self.inbox);
        for incoming in inbox.drain(..) {
            self.pass_to(incoming.at);
            self.enter(incoming);
        }
        self.inbox = inbox;
        self.pass_to(now);
        while let Some(arrival) = self.network.poll_arrival() {
            self.deliver(&arrival);
        }
        self.flush(cx);
        if self.pace.is_sample_due(self.model) {
            let sample = self.sample();
            // A slow reader misses samples.
            let _full = self.samples.try_send(sample);
        }
    }

    /// Ready when every socket has been seen writable once. The runtime learns that of a new socket
    /// only when it looks next; until then the socket takes nothing, so time has to wait.
    fn await_sockets(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut all = Poll::Ready(());
        if self.is_new {
            self.is_new = self.sender.poll_writable(cx).is_pending();
        }
        for flow in self.flows.iter_mut().filter(|flow| flow.is_new) {
            flow.is_new = flow.sender.poll_writable(cx).is_pending();
            if flow.is_new {
                all = Poll::Pending;
            }
        }
        if self.is_new { Poll::Pending } else { all }
    }

    /// Lets time pass in the model.
    fn pass_to(&mut self, now: Instant) {
        self.model = self.model.max(now);
        self.network.handle_timeout(self.model);
    }

    fn take_from_clients(&mut self, cx: &mut Context<'_>) {
        let Self {
            pace: Pace { clock, .. },
            receiver,
            latest,
            flows,
            inbox,
            dropped,
            ..
        } = self;
        let mut taken = 0;
        while taken < MOST_TAKEN && receiver.poll_readable(cx).is_ready() {
            let Ok(received) = receiver.receive(clock) else {
                // An error that lasts must not keep the turn from ending.
                taken += 1;
                continue;
            };
            for datagrams in received {
                // The clock that stamps is not the clock that is read: what came later must not
                // look earlier.
                *latest = datagrams.arrived.max(*latest);
                for datagram in datagrams.datagrams() {
                    taken += 1;
                    if !fits(datagram) {
                        dropped.unfit += 1;
                        continue;
                    }
                    let flow = match flows.of_client(*latest, datagrams.peer, datagram) {
                        Ok(flow) => flow,
                        Err(NoFlow::Full) => {
                            dropped.table_full += 1;
                            continue;
                        }
                        Err(NoFlow::Socket) => {
                            dropped.no_socket += 1;
                            continue;
                        }
                    };
                    flow.touch(*latest);
                    inbox.push(Incoming {
                        at: *latest,
                        flow: flow.id,
                        direction: Direction::Up,
                        ecn: datagrams.ecn,
                        payload: Bytes::copy_from_slice(datagram),
                    });
                }
            }
        }
    }

    fn take_from_far_side(&mut self, cx: &mut Context<'_>) {
        let Self {
            pace: Pace { clock, .. },
            flows,
            inbox,
            dropped,
            to,
            ..
        } = self;
        for flow in flows.iter_mut() {
            let mut taken = 0;
            while taken < MOST_TAKEN && flow.receiver.poll_readable(cx).is_ready() {
                let Ok(received) = flow.receiver.receive(clock) else {
                    taken += 1;
                    continue;
                };
                for datagrams in received {
                    flow.latest = datagrams.arrived.max(flow.latest);
                    for datagram in datagrams.datagrams() {
                        taken += 1;
                        if datagrams.peer != *to {
                            dropped.unknown_sources += 1;
                        } else if !fits(datagram) {
                            dropped.unfit += 1;
                        } else {
                            inbox.push(Incoming {
                                at: flow.latest,
                                flow: flow.id,
                                direction: Direction::Down,
                                ecn: datagrams.ecn,
                                payload: Bytes::copy_from_slice(datagram),
                            });
                        }
                    }
                }
            }
        }
    }

    /// A datagram enters the model now.
    fn enter(&mut self, incoming: Incoming) {
        let Some(flow) = self.flows.get_mut(incoming.flow) else {
            self.dropped.stale += 1;
            return;
        };
        self.entries.record(self.model, incoming.at);
        let counting = flow.counting;
        let content = counting.content(&incoming.payload);
        flow.touch(incoming.at);
        let mut ports = incoming.flow.to_bytes();
        let (from, to, totals) = match incoming.direction {
            Direction::Up => (flow.host, SERVER, &mut flow.up),
            Direction::Down => {
                ports.rotate_left(2);
                (SERVER, flow.host, &mut flow.down)
            }
        };
        count(totals, content, incoming.payload.len());
        let payload = match content {
            // A SYN, for example.
            Content::Other => clamped(incoming.payload),
            _ => incoming.payload,
        };
        let mut transport = [0; 8];
        transport[..4].copy_from_slice(&ports);
        transport[4..6].copy_from_slice(&(8 + payload.len() as u16).to_be_bytes());
        let mut packet = Packet::new(
            (Network::address(from), Network::address(to)),
            PROTOCOL_UDP,
            incoming.ecn,
            &transport,
            payload,
            incoming.at,
        );
        packet.declared = Some(match content {
            Content::Ack => Class::TransportAck,
            Content::Data | Content::Other | Content::Malformed => Class::Data,
        });
        // What filters and TCP/HACK may look into. A small datagram may be anything.
        if counting == Counting::Tcp && content != Content::Malformed {
            packet.inner = Inner::Segment;
        }
        self.network.send(self.model, from, packet);
    }

    /// A datagram has come out of the model.
    fn deliver(&mut self, arrival: &Arrival) {
        let packet = &arrival.packet;
        if !packet.verify_checksums() {
            self.dropped.damaged += 1;
            return;
        }
        let way = usize::from(arrival.host != SERVER);
        let mut id = packet.transport().first_chunk().copied();
        if let Some(ports) = id.as_mut().filter(|_| way == 1) {
            ports.rotate_left(2);
        }
        let Some(flow) = id.and_then(|id| self.flows.get_mut(FlowId::from_bytes(id))) else {
            self.dropped.stale += 1;
            return;
        };
        let (ecn, payload) = (packet.ecn(), &packet.payload);
        if !flow.outgoing[way].takes(ecn, payload) {
            let sent = if way == 0 {
                flow.flush_up(self.to, &self.pace.clock, &mut self.meter)
            } else {
                flow.flush_down(&mut self.sender, &self.pace.clock, &mut self.meter)
            };
            // A socket that is full when a whole batch waits for it already takes no more.
            self.dropped.refused += sent + flow.outgoing[way].discard();
        }
        flow.outgoing[way].push(arrival.at, ecn, payload);
    }

    /// Sends what came out. What a full socket does not take is tried again when there is room.
    fn flush(&mut self, cx: &mut Context<'_>) {
        for flow in self.flows.iter_mut() {
            loop {
                self.dropped.refused += flow.flush_up(self.to, &self.pace.clock, &mut self.meter);
                if flow.outgoing[0].is_empty() || flow.sender.poll_writable(cx).is_pending() {
                    break;
                }
            }
            loop {
                let sender = &mut self.sender;
                self.dropped.refused += flow.flush_down(sender, &self.pace.clock, &mut self.meter);
                if flow.outgoing[1].is_empty() || sender.poll_writable(cx).is_pending() {
                    break;
                }
            }
        }
    }

    fn sample(&mut self) -> Sample {
        let [up, down] = self.flows.totals();
        let hosts = self.network.hosts();
        Sample {
            seconds: self.model.as_secs_f64(),
            air: self.network.airtime().into(),
            up,
            down,
            collisions: self.network.collisions(),
            ap_queue: self.network.backlog(self.model, SERVER),
            station_queue: (1..hosts)
                .map(|host| self.network.backlog(self.model, host))
                .sum(),
            flows: self.flows.len(),
            lateness: self.meter.figures(),
        }
    }
}

impl Relaying for Relay {
    fn summary(mut self) -> io::Result<Summary> {
        let [up, down] = self.flows.totals();
        let listening = crate::kernel_drops(self.sender.local_addr()).unwrap_or(0);
        self.dropped.kernel = listening + self.flows.kernel_drops();
        let lateness = self.meter.figures();
        let entry_lateness = self.entries.figures();
        Ok(Summary {
            name: self.name,
            seed: self.seed,
            seconds: self.model.as_secs_f64(),
            air_shares: crate::AirSeconds::from(self.network.airtime()).shares(),
            up,
            down,
            flows: self.flows.iter().map(|flow| flow.figures()).collect(),
            flows_seen: self.flows.seen,
            trust: Trust::judge(
                &lateness,
                &entry_lateness,
                self.dropped.kernel,
                self.dropped.refused,
            ),
            dropped: self.dropped,
            wired: self.network.wired_report(),
            wlan: self.network.wlan_report(),
            lateness,
            entry_lateness,
        })
    }
}

fn fits(datagram: &[u8]) -> bool {
    (1..=MAX_DATAGRAM).contains(&datagram.len())
}

fn count(totals: &mut Totals, content: Content, len: usize) {
    totals.datagrams += 1;
    totals.bytes += len as u64;
    match content {
        Content::Ack => totals.acks += 1,
        Content::Data => totals.data += 1,
        Content::Other | Content::Malformed => {}
    }
}

impl Future for Relay {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let relay = &mut *self;
        // The handle is dropped: nobody will read the summary.
        if Pin::new(&mut relay.stop).poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        relay.pace.rest();
        relay.turn(cx);
        let next = relay.network.poll_timeout();
        relay.pace.wait(cx, next)
    }
}
