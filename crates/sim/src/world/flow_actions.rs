//! Actions of flows at their hosts: connect, send datagrams, stop, resume.

use tack_base::Instant;
use tack_tcp::Config;

use super::World;
use super::event::{Broken, Event};
use super::flows::Kind;
use super::host::carrier;
use super::ports::{connect_port, listen_port};
use crate::packet::Packet;

/// When a flow sends its next datagram.
enum Next {
    /// Then; a saturating flow at once.
    At(Instant),
    /// When the path has room for it, or, at a time that nobody knows, its radio.
    Room(Option<Instant>),
    /// It is over, or something else starts it again.
    Never,
}

impl World<'_, '_> {
    /// A flow begins.
    pub(super) fn start(&mut self, now: Instant, flow: usize) -> Result<(), Broken> {
        let (from, to) = (self.flows.sender(flow), self.flows.receiver(flow));
        let config = match &self.flows.list[flow].kind {
            Kind::Udp(_) => return self.act(now, flow),
            Kind::Tcp(stream) => &stream.flow.config,
        };
        let [connecting, listening] = [from, to].map(|host| Config {
            carrier: self.hosts[host].carrier(),
            ..config.clone()
        });
        let (listen_port, connect_port) = (listen_port(flow), connect_port(flow));
        // Every flow has ports of its own and starts once.
        self.hosts[to]
            .endpoint
            .listen(listen_port, listening, 1)
            .expect("the port is free");
        let local = self.hosts[from].clock.local(now);
        let peer = carrier(self.hosts[to].address());
        let id = self.hosts[from]
            .endpoint
            .connect(local, peer, listen_port, connect_port, &connecting)
            .expect("the ports are free");
        self.flows.connect(flow, from, id);
        self.service(now, from)
    }

    /// The application of a flow does the next thing by itself.
    pub(super) fn act(&mut self, now: Instant, flow: usize) -> Result<(), Broken> {
        if matches!(self.flows.list[flow].kind, Kind::Udp(_)) {
            self.send_datagrams(now, flow);
            return Ok(());
        }
        if let Some(at) = self.flows.ask(flow, now) {
            self.kernel.schedule(at, Event::App(flow));
        }
        self.drive(now, flow, 0)
    }

    /// A flow's sender comes to its end.
    pub(super) fn stop(&mut self, now: Instant, flow: usize) -> Result<(), Broken> {
        self.flows.stop(flow);
        if matches!(self.flows.list[flow].kind, Kind::Udp(_)) {
            self.flows.complete(flow);
            return Ok(());
        }
        self.drive(now, flow, 0)?;
        self.drive(now, flow, 1)
    }

    /// The receiver of a flow reads again.
    pub(super) fn resume(&mut self, now: Instant, flow: usize) -> Result<(), Broken> {
        self.flows.set_paused(flow, now, false);
        self.drive(now, flow, 1)
    }

    /// Lets the application on one side of a TCP flow do what it can, and its host what follows.
    fn drive(&mut self, now: Instant, flow: usize, side: usize) -> Result<(), Broken> {
        let host = if side == 0 {
            self.flows.sender(flow)
        } else {
            self.flows.receiver(flow)
        };
        let Kind::Tcp(stream) = &self.flows.list[flow].kind else {
            return Ok(());
        };
        if let Some(id) = stream.ids[side] {
            self.tell(now, host, id)?;
            self.service(now, host)?;
        }
        Ok(())
    }

    /// Sends the datagrams that are due, and comes back for the next.
    fn send_datagrams(&mut self, now: Instant, flow: usize) {
        let state = &self.flows.list[flow];
        if state.is_saturating() {
            let (host, category) = (state.parties[0].index(), state.category);
            self.waiting[host][category as usize].push_back(flow);
            self.fill(now, host);
            return;
        }
        loop {
            match self.send_datagram(now, flow) {
                Next::At(next) if next > now => {
                    self.kernel.schedule(next, Event::App(flow));
                    return;
                }
                Next::At(_) => {}
                Next::Room(_) | Next::Never => return,
            }
        }
    }

    /// Sends one datagram of `flow` if it may. Returns when to try again.
    fn send_datagram(&mut self, now: Instant, flow: usize) -> Next {
        let (host, to) = (self.flows.sender(flow), self.flows.receiver(flow));
        let addresses = (self.hosts[host].address(), self.hosts[to].address());
        let category = self.flows.list[flow].category;
        let senders = (category, self.flows.saturating(host, category));
        let state = &mut self.flows.list[flow];
        let Kind::Udp(datagrams) = &mut state.kind else {
            return Next::Never;
        };
        if datagrams.is_complete() {
            self.flows.complete(flow);
            return Next::Never;
        }
        if datagrams.is_saturating() {
            match self
                .network
                .room(now, host, datagrams.packet_len(), senders)
            {
                Some(room) if room <= now => {}
                room => return Next::Room(room),
            }
        }
        let payload = datagrams.payload();
        if let Some(video) = &mut datagrams.video {
            let (ready, next) = video.make(now, payload);
            if !ready {
                return next.map_or(Next::Never, Next::At);
            }
        }
        let (packet, next) = datagrams.send(flow, addresses, now);
        state.meter.datagrams += 1;
        self.emit(now, host, packet);
        Next::At(next.unwrap_or(now))
    }

    /// Radios may have room again: the flows that wait for it send in turn, a datagram each. A
    /// station has room when a packet has left it; whether the access point has depends on what
    /// is on the wired path too.
    pub(super) fn saturate(&mut self, now: Instant) {
        while let Some(host) = self.network.poll_departure() {
            if host > 0 {
                self.fill(now, host);
            }
        }
        self.fill(now, 0);
    }

    /// Lets the saturating flows of `host` send in turn while there is room.
    pub(super) fn fill(&mut self, now: Instant, host: usize) {
        let mut again = None;
        for category in 0..self.waiting[host].len() {
            while let Some(flow) = self.waiting[host][category].pop_front() {
                match self.send_datagram(now, flow) {
                    Next::At(_) => self.waiting[host][category].push_back(flow),
                    // Nor is there room for the others, which wait for the same queue.
                    Next::Room(at) => {
                        self.waiting[host][category].push_front(flow);
                        again = again.into_iter().chain(at).min();
                        break;
                    }
                    Next::Never => {}
                }
            }
        }
        if let Some(slot) = self.fills.get(host) {
            self.kernel.set(*slot, again);
        }
    }

    /// A datagram came to a host.
    pub(super) fn process_datagram(
        &mut self,
        now: Instant,
        host: usize,
        packet: &Packet,
    ) -> Result<(), Broken> {
        let ports = packet.ports();
        let Some(flow) = self.flows.by_ports(ports) else {
            return Ok(());
        };
        let state = &mut self.flows.list[flow];
        let Kind::Udp(datagrams) = &mut state.kind else {
            return Ok(());
        };
        if ports.0 < ports.1 {
            // From the port listened on: an acknowledgement, whose use is the airtime it takes.
            return Ok(());
        }
        let Some((bytes, ack_is_due)) = datagrams.receive(now, packet) else {
            return Err(Broken {
                flow,
                host: self.hosts[host].party(),
                what: "a datagram's bytes are not those sent".into(),
            });
        };
        state.meter.delivered += bytes as u64;
        state.meter.on_data(now.saturating_since(packet.sent), 0);
        if ack_is_due {
            let addresses = (packet.dst(), packet.src());
            let ack = datagrams.acknowledge(flow, addresses, now);
            state.meter.datagram_acks.0 += 1;
            state.meter.datagram_acks.1 += (ack.len() - tack_wire::ip::IPV4_HEADER_LEN) as u64;
            self.emit(now, host, ack);
        }
        Ok(())
    }
}
