//! What flows make their hosts do: connect, send datagrams, stop, resume.

use tack_base::Instant;
use tack_tcp::Config;

use super::datagram::SATURATION;
use super::flows::{CONNECT_PORT, Kind, LISTEN_PORT};
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
        let (local, peer) = (self.hosts[from].clock.local(now), self.hosts[from].peer());
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
        self.flows.ask(flow, now);
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
        self.flows.set_paused(flow, false);
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
        let host = self.flows.sender(flow);
        let addresses = self.hosts[host].addresses();
        loop {
            let state = &mut self.flows.list[flow];
            let Kind::Udp(datagrams) = &mut state.kind else {
                return;
            };
            if datagrams.is_complete() {
                self.flows.complete(flow);
                return;
            }
            if datagrams.is_saturating() {
                let room = self.paths[host].room_at(now, datagrams.packet_len(), SATURATION);
                if room > now {
                    self.kernel.schedule(room, Event::App(flow));
                    return;
                }
            }
            let (packet, next) = datagrams.send(flow, addresses, now);
            state.meter.datagrams += 1;
            self.emit(now, host, packet);
            if let Some(next) = next {
                self.kernel.schedule(next, Event::App(flow));
                return;
            }
        }
    }

    /// A datagram came to a host.
    pub(super) fn process_datagram(
        &mut self,
        now: Instant,
        host: usize,
        packet: &Packet,
    ) -> Result<(), Broken> {
        let transport = packet.transport();
        let half = |at: usize| u16::from_be_bytes([transport[at], transport[at + 1]]);
        let ports = (half(0), half(2));
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
        let Some((bytes, ack_is_due)) = datagrams.receive(packet) else {
            return Err(Broken {
                flow,
                host: super::PARTIES[host],
                what: "a datagram's bytes are not those sent".into(),
            });
        };
        state.meter.delivered += bytes as u64;
        state.meter.on_data(now.saturating_since(packet.sent), 0);
        if ack_is_due {
            let ack = datagrams.acknowledge(flow, self.hosts[host].addresses(), now);
            state.meter.datagram_acks.0 += 1;
            state.meter.datagram_acks.1 += (ack.len() - tack_wire::ip::IPV4_HEADER_LEN) as u64;
            self.emit(now, host, ack);
        }
        Ok(())
    }
}
