//! What flows make their hosts do: connect, send datagrams, stop, resume.

use tack_base::Instant;
use tack_tcp::Config;

use super::flows::{CONNECT_PORT, Kind, LISTEN_PORT};
use super::host::carrier;
use super::{Broken, Event, World};
use crate::packet::Packet;

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
        let (listen_port, connect_port) = (LISTEN_PORT + flow as u16, CONNECT_PORT + flow as u16);
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
        while let Some(next) = self.send_datagram(now, flow) {
            if next > now {
                self.kernel.schedule(next, Event::App(flow));
                return;
            }
        }
    }

    /// Sends one datagram of `flow` if it may. Returns when to try again; `None` when the flow is over, or waits for room in
    /// a radio's queue.
    fn send_datagram(&mut self, now: Instant, flow: usize) -> Option<Instant> {
        let (host, to) = (self.flows.sender(flow), self.flows.receiver(flow));
        let addresses = (self.hosts[host].address(), self.hosts[to].address());
        let category = self.flows.list[flow].category;
        let senders = (category, self.flows.saturating(host, category));
        let state = &mut self.flows.list[flow];
        let Kind::Udp(datagrams) = &mut state.kind else {
            return None;
        };
        if datagrams.is_complete() {
            self.flows.complete(flow);
            return None;
        }
        if datagrams.is_saturating() {
            match self
                .network
                .room(now, host, datagrams.packet_len(), senders)
            {
                None => {
                    self.waiting.push(flow);
                    return None;
                }
                Some(room) if room > now => return Some(room),
                Some(_) => {}
            }
        }
        let payload = datagrams.payload();
        if let Some(video) = &mut datagrams.video {
            let (ready, next) = video.make(now, payload);
            if !ready {
                return next;
            }
        }
        let (packet, next) = datagrams.send(flow, addresses, now);
        state.meter.datagrams += 1;
        self.emit(now, host, packet);
        Some(next.unwrap_or(now))
    }

    /// Radios may have room again: the flows that wait for it send in turn, a datagram each.
    pub(super) fn saturate(&mut self, now: Instant) {
        let mut turn = std::mem::take(&mut self.waiting);
        while !turn.is_empty() {
            let mut again = Vec::with_capacity(turn.len());
            for flow in turn {
                match self.send_datagram(now, flow) {
                    Some(next) if next > now => self.kernel.schedule(next, Event::App(flow)),
                    Some(_) => again.push(flow),
                    None => {}
                }
            }
            turn = again;
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
