//! The stack of a host: packets enter it, applications get events, and segments leave.

use tack_base::Instant;
use tack_tcp::ConnectionId;
use tack_wire::Segment;
use tack_wire::checksum::{PROTOCOL_TCP, PROTOCOL_UDP};

use super::World;
use super::event::{Broken, Event};
use super::observers::{Checks, observe};
use super::{host, watch};
use crate::observe::Passing;
use crate::packet::Packet;

impl World<'_, '_> {
    #[inline]
    pub(super) fn arrive(
        &mut self,
        now: Instant,
        host: usize,
        packet: Packet,
    ) -> Result<(), Broken> {
        self.see(now, host, Passing::In, &packet);
        if self.hosts[host].is_prompt() {
            return self.process(now, now, host, &packet);
        }
        let later = self.hosts[host].arrive(now, packet);
        self.kernel.schedule(later, Event::Process(host));
        Ok(())
    }

    /// A host's stack takes a packet from its interface.
    pub(super) fn process(
        &mut self,
        now: Instant,
        arrived: Instant,
        host: usize,
        packet: &Packet,
    ) -> Result<(), Broken> {
        if !packet.verify_checksums() {
            self.checksum_drops += 1;
            return Ok(());
        }
        match packet.protocol() {
            PROTOCOL_TCP => self.process_segment(now, arrived, host, packet),
            PROTOCOL_UDP => self.process_datagram(now, host, packet),
            _ => Ok(()),
        }
    }

    #[inline]
    fn process_segment(
        &mut self,
        now: Instant,
        arrived: Instant,
        host: usize,
        packet: &Packet,
    ) -> Result<(), Broken> {
        let Ok(mut segment) = Segment::parse(packet.transport()) else {
            return Ok(());
        };
        segment.payload = &packet.payload;
        let stall = self
            .flows
            .note_progress(host, now, &segment, now.nanos_since(packet.sent));
        if self.observers.checks == Checks::EveryEvent {
            stall?;
            self.flows.note_received(host, &segment.header);
        }
        let peer = host::carrier(packet.src());
        let clock = self.hosts[host].clock;
        let (local, arrived_local) = (clock.local(now), clock.local(arrived));
        let ports = (segment.header.src_port, segment.header.dst_port);
        let taker = self.hosts[host].endpoint.handle_segment(
            local,
            arrived_local,
            peer,
            &segment,
            packet.ecn(),
        );
        if let (Some(id), Some(flow)) = (taker, self.flows.by_ports(ports)) {
            self.flows.adopt(flow, host, id, &mut self.hosts);
            if !packet.payload.is_empty() && !watch::is_feedback(&segment.header) {
                self.flows.on_data(
                    flow,
                    host,
                    &self.hosts,
                    arrived.saturating_since(packet.sent),
                );
            }
            // TIME-WAIT raises no event, but the end of a run waits for it.
            if self.flows.is_closing(flow) {
                self.tell(now, host, id)?;
            }
        }
        self.service(now, host)
    }

    /// Lets a host do all that it can now: tell its applications, send, and set its timer.
    pub(super) fn service(&mut self, now: Instant, host: usize) -> Result<(), Broken> {
        loop {
            while let Some(id) = self.hosts[host].endpoint.poll_ready() {
                self.tell(now, host, id)?;
            }
            if self.observers.checks == Checks::EveryEvent {
                self.flows.note_rates(host, &self.hosts[host], now);
            }
            self.transmit(now, host)?;
            // Some events come to light only when there is nothing left to send.
            let Some(id) = self.hosts[host].endpoint.poll_ready() else {
                break;
            };
            self.tell(now, host, id)?;
        }
        if self.observers.checks == Checks::EveryEvent {
            self.flows.check_books(host, &mut self.hosts[host])?;
        }
        if self.traces {
            let observers = &mut self.observers.list;
            self.flows
                .drain_traces(host, &mut self.hosts[host], |flow, party, event| {
                    for observer in observers.iter_mut() {
                        observer.on_trace(flow, party, event);
                    }
                });
        }
        let wake = self.hosts[host].next_wake(now);
        self.kernel.set(self.wakes[host], wake);
        Ok(())
    }

    fn transmit(&mut self, now: Instant, host: usize) -> Result<(), Broken> {
        let Self {
            hosts,
            network,
            hash,
            observers,
            flows,
            ..
        } = self;
        let local = hosts[host].clock.local(now);
        let party = hosts[host].party();
        let mut outcome = Ok(());
        hosts[host].transmit(now, |mut packet| {
            flows.mark(&mut packet);
            observe(now, (host, party), Passing::Out, &packet, hash, observers);
            let checks_all = observers.checks == Checks::EveryEvent;
            let stall = flows.note_sent(host, now, &packet, || {
                !network.is_too_large(now, host, &packet)
            });
            if checks_all
                && outcome.is_ok()
                && let Ok(segment) = Segment::parse(packet.transport())
            {
                let payload = packet.payload.len();
                outcome =
                    stall.and_then(|()| flows.check_sent(host, local, &segment.header, payload));
            }
            network.send(now, host, packet);
        });
        self.expect();
        outcome
    }

    /// Passes a packet that is not TCP's from a host into its path.
    pub(super) fn emit(&mut self, now: Instant, host: usize, mut packet: Packet) {
        self.flows.mark(&mut packet);
        self.see(now, host, Passing::Out, &packet);
        self.network.send(now, host, packet);
        self.expect();
    }

    /// Connection `id` of `host` has events.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        host: usize,
        id: ConnectionId,
    ) -> Result<(), Broken> {
        let local = self.hosts[host].clock.local(now);
        let Some(connection) = self.hosts[host].endpoint.get_mut(id) else {
            return Ok(());
        };
        let mut closed = None;
        while let Some(event) = connection.poll_event() {
            if let tack_tcp::Event::Closed(reason) = event {
                closed = Some(reason);
            }
        }
        let Some((flow, side)) = self.flows.by_connection(host, id) else {
            return Ok(());
        };
        let wake = self.flows.drive(flow, side, now, local, connection)?;
        if let Some(reason) = closed {
            let stats = connection.stats(local);
            self.flows.on_closed(flow, side, reason, stats);
        }
        if let Some(at) = wake {
            self.kernel.schedule(at, Event::App(flow));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn see(&mut self, now: Instant, host: usize, passing: Passing, packet: &Packet) {
        let who = (host, self.hosts[host].party());
        observe(now, who, passing, packet, &mut self.hash, self.observers);
    }
}
