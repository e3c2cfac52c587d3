//! The loop between the devices of hosts: as the relay's between sockets, with IP packets.
//!
//! A TUN device has no timestamps: a packet enters the model when it is read. What it waited before
//! is not known, but is at most the time by which the turn began too late.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tack_base::Instant;
use tack_io::{TunReceiver, TunSender};
use tack_sim::packet::Packet;
use tack_sim::{Arrival, Network, Scenario};
use tack_wlan::Capture;
use tack_wlan::world::{HostDelays, HostInterrupt};
use tokio::sync::{mpsc, oneshot};

use super::coalesce::Train;
use super::connections::Connections;
use super::namespaces::{self, Connected};
use super::packets::{self, Refused};
use super::settings::{HostSettings, host_v4};
use crate::figures::{Dropped, Sample, Summary};
use crate::lateness::{Meter, Trust};
use crate::pace::Pace;
use crate::running::Relaying;

/// Packets taken from one device in a turn. More stay in the kernel's queue.
const MOST_TAKEN: usize = 1_024;

/// The host behind the wired path.
const SERVER: usize = 0;

/// The other end of a host's device.
struct Port {
    sender: TunSender,
    receiver: TunReceiver,
    namespace: tack_io::namespace::Namespace,
    device: &'static str,
    /// On its way to the kernel.
    train: Train,
}

/// Carries packets until it is stopped.
pub(super) struct Bridge {
    pace: Pace,
    network: Network,
    /// Up to when the model has come.
    model: Instant,
    ports: Vec<Port>,
    /// Read in this turn: from which host, and what.
    inbox: Vec<(usize, Packet)>,
    /// A packet as the kernel has it.
    outgoing: Vec<u8>,
    receive_offload: bool,
    connections: Connections,
    meter: Meter,
    entries: Meter,
    dropped: Dropped,
    samples: mpsc::Sender<Sample>,
    stop: oneshot::Receiver<()>,
    name: String,
    seed: u64,
}

/// How many hosts a scenario has: the server and the stations.
pub(super) fn hosts(scenario: &Scenario, seed: u64) -> usize {
    Network::new(scenario, seed, Capture::Off).hosts()
}

impl Bridge {
    /// A bridge between `hosts`. Their namespaces are kept as long as it runs.
    pub(super) fn new(
        settings: &HostSettings,
        hosts: Vec<Connected>,
        samples: mpsc::Sender<Sample>,
        stop: oneshot::Receiver<()>,
    ) -> io::Result<(Self, Vec<super::Host>)> {
        let mut scenario = settings.scenario.clone();
        if let Some(wlan) = &mut scenario.wlan {
            // The hosts are real and add their own delays.
            wlan.world.host = HostDelays::default();
            if settings.receive_offload {
                wlan.world.interrupt = HostInterrupt::Ppdu;
            }
        }
        let mut ports = Vec::new();
        let mut all = Vec::new();
        for connected in hosts {
            ports.push(Port {
                sender: connected.sender,
                receiver: connected.receiver,
                namespace: connected.host.namespace.try_clone()?,
                device: connected.host.device,
                train: Train::default(),
            });
            all.push(connected.host);
        }
        let bridge = Self {
            pace: Pace::new(settings.sample_interval)?,
            network: Network::new(&scenario, settings.seed, Capture::Off),
            model: Instant::ZERO,
            ports,
            inbox: Vec::new(),
            outgoing: Vec::new(),
            receive_offload: settings.receive_offload,
            connections: Connections::new(settings.max_flows, settings.small_datagram),
            meter: Meter::new(),
            entries: Meter::new(),
            dropped: Dropped::default(),
            samples,
            stop,
            name: scenario.name,
            seed: settings.seed,
        };
        Ok((bridge, all))
    }

    /// Everything up to now.
    fn turn(&mut self, cx: &mut Context<'_>) {
        let late = self.pace.overslept(self.pace.clock.now());
        for host in 0..self.ports.len() {
            self.take(host, cx);
        }
        let now = self.pace.clock.now();
        // In the order in which they were read, which is that of their instants for each host.
        self.inbox.sort_by_key(|(_, packet)| packet.sent);
        let mut inbox = std::mem::take(&mut self.inbox);
        for (host, mut packet) in inbox.drain(..) {
            self.pass_to(packet.sent);
            self.entries.record(packet.sent + late, packet.sent);
            self.connections.enter(self.model, host, &mut packet);
            self.network.send(self.model, host, packet);
        }
        self.inbox = inbox;
        self.pass_to(now);
        while let Some(arrival) = self.network.poll_arrival() {
            self.deliver(arrival);
        }
        for host in 0..self.ports.len() {
            self.flush(host);
        }
        if self.pace.is_sample_due(self.model) {
            let sample = self.sample();
            // A slow reader misses samples.
            let _full = self.samples.try_send(sample);
        }
    }

    /// Lets time pass in the model.
    fn pass_to(&mut self, now: Instant) {
        self.model = self.model.max(now);
        self.network.handle_timeout(self.model);
    }

    /// Reads what a host has sent.
    fn take(&mut self, host: usize, cx: &mut Context<'_>) {
        let Self {
            pace: Pace { clock, .. },
            ports,
            inbox,
            dropped,
            ..
        } = self;
        let hosts = ports.len();
        let Some(Port { receiver, .. }) = ports.get_mut(host) else {
            return;
        };
        let mut taken = 0;
        while taken < MOST_TAKEN && receiver.poll_readable(cx).is_ready() {
            let Ok(received) = receiver.receive(clock) else {
                // An error that lasts must not keep the turn from ending.
                taken += 1;
                continue;
            };
            for packet in received {
                taken += 1;
                match packets::read(packet.bytes, host, hosts, packet.arrived) {
                    Ok(packet) => inbox.push((host, packet)),
                    Err(Refused::Unfit) => dropped.unfit += 1,
                    Err(Refused::NoHost) => dropped.no_host += 1,
                }
            }
        }
    }

    /// A packet has come out of the model.
    fn deliver(&mut self, arrival: Arrival) {
        let Arrival { at, host, packet } = arrival;
        if !packet.verify_checksums() {
            self.dropped.damaged += 1;
            return;
        }
        let from = host_v4(packet.src(), self.ports.len()).unwrap_or(SERVER);
        let Some(port) = self.ports.get_mut(host) else {
            return;
        };
        self.connections.deliver(&packet, from);
        self.outgoing.clear();
        packets::write(packet, &mut self.outgoing);
        if !port.train.add(at, &self.outgoing, self.receive_offload) {
            self.flush(host);
            let train = &mut self.ports[host].train;
            train.add(at, &self.outgoing, self.receive_offload);
        }
    }

    /// Sends what waits for a host.
    fn flush(&mut self, host: usize) {
        let Port { sender, train, .. } = &mut self.ports[host];
        let (at, segments) = (train.at(), train.segments());
        if train.send(sender).is_err() {
            self.dropped.refused += segments as u64;
        }
        let now = self.pace.clock.now();
        for _ in 0..segments {
            self.meter.record(now, at);
        }
    }

    fn sample(&mut self) -> Sample {
        Sample {
            seconds: self.model.as_secs_f64(),
            air: self.network.airtime().into(),
            up: self.connections.up,
            down: self.connections.down,
            collisions: self.network.collisions(),
            ap_queue: self.network.backlog(self.model, SERVER),
            station_queue: (1..self.ports.len())
                .map(|host| self.network.backlog(self.model, host))
                .sum(),
            flows: self.connections.len(),
            lateness: self.meter.figures(),
        }
    }
}

impl Relaying for Bridge {
    fn summary(mut self) -> io::Result<Summary> {
        // The thread is about to end, so it may stay where it is.
        for port in &self.ports {
            let drops = namespaces::drops(&port.namespace, port.device)?;
            self.dropped.kernel += drops.sent;
            self.dropped.refused += drops.received;
        }
        let lateness = self.meter.figures();
        let entry_lateness = self.entries.figures();
        Ok(Summary {
            name: self.name,
            seed: self.seed,
            seconds: self.model.as_secs_f64(),
            air_shares: crate::AirSeconds::from(self.network.airtime()).shares(),
            up: self.connections.up,
            down: self.connections.down,
            flows: self.connections.figures(),
            flows_seen: self.connections.seen,
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

impl Future for Bridge {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let bridge = &mut *self;
        // The handle is dropped: nobody will read the summary.
        if Pin::new(&mut bridge.stop).poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        bridge.pace.rest();
        bridge.turn(cx);
        let next = bridge.network.poll_timeout();
        bridge.pace.wait(cx, next)
    }
}
