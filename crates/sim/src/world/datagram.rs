//! UDP flows: datagrams at a rate, and an acknowledgement for every so many.

use std::net::Ipv4Addr;

use bytes::Bytes;
use tack_base::Instant;
use tack_wire::Ecn;
use tack_wire::checksum::PROTOCOL_UDP;
use tack_wire::ip::IPV4_HEADER_LEN;

use super::ports::{connect_port, listen_port};
use super::stream::Pattern;
use super::video::{self, Source};
use crate::link::RateServer;
use crate::packet::{Packet, UDP_HEADER_LEN};
use crate::scenario::{UdpFlow, UdpRate};

/// UDP payload starts with the datagram's number.
const NUMBER_LEN: usize = 8;

/// Most datagrams that a saturating sender keeps in the bottleneck's queue.
pub(super) const SATURATION: usize = 64;

/// Both ends of a UDP flow.
#[derive(Debug)]
pub(super) struct Datagrams {
    flow: UdpFlow,
    /// Datagrams to send in all.
    limit: u64,
    pattern: Pattern,
    /// Spaces datagrams at a fixed rate.
    spacing: Option<RateServer>,
    sent: u64,
    received: u64,
    stopped: bool,
    pub(super) video: Option<Box<video::Datagrams>>,
}

impl Datagrams {
    pub(super) fn new(
        flow: UdpFlow,
        bytes: Option<u64>,
        source: Option<Source>,
        pattern: Pattern,
    ) -> Self {
        Self {
            limit: bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(flow.payload as u64)),
            spacing: match (flow.video, flow.rate) {
                (Some(video), _) => Some(RateServer::new(video.peak)),
                (None, UdpRate::Saturate) => None,
                (None, UdpRate::Fixed(rate)) => Some(RateServer::new(rate)),
            },
            flow,
            pattern,
            sent: 0,
            received: 0,
            stopped: false,
            video: source.map(|source| Box::new(video::Datagrams::new(source))),
        }
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    /// True when everything was sent.
    pub(super) fn is_complete(&self) -> bool {
        self.stopped || self.sent >= self.limit
    }

    /// True for a sender without a rate of its own.
    pub(super) fn is_saturating(&self) -> bool {
        self.spacing.is_none()
    }

    /// IP packet length of a datagram.
    pub(super) fn packet_len(&self) -> usize {
        IPV4_HEADER_LEN + UDP_HEADER_LEN + self.flow.payload
    }

    /// UDP payload of a datagram, bytes.
    pub(super) fn payload(&self) -> u64 {
        self.flow.payload as u64
    }

    /// How acknowledgements are made, in the words of scenarios.
    pub(super) fn ack_name(&self) -> Option<String> {
        (self.flow.ack_every > 0).then(|| {
            format!(
                "ack_every={},ack_size={}",
                self.flow.ack_every, self.flow.ack_size
            )
        })
    }

    /// The next datagram; with a fixed rate also when the one after it is due.
    pub(super) fn send(
        &mut self,
        flow: usize,
        addresses: (Ipv4Addr, Ipv4Addr),
        now: Instant,
    ) -> (Packet, Option<Instant>) {
        let body = self.flow.payload - NUMBER_LEN;
        let payload = self.pattern.share(self.sent * body as u64, body);
        let ports = (connect_port(flow), listen_port(flow));
        let packet = datagram(addresses, ports, self.sent, payload, now);
        self.sent += 1;
        let next = self.spacing.as_mut().map(|spacing| {
            let turn = spacing.preview(now, self.flow.payload);
            spacing.commit(&turn);
            turn.end
        });
        if let Some(video) = &mut self.video
            && !video.leave()
        {
            // The next frame says when.
            return (packet, Some(now));
        }
        (packet, next)
    }

    /// A datagram came. `None` when its bytes are not those sent; otherwise its UDP payload length
    /// and whether an acknowledgement is due.
    pub(super) fn receive(&mut self, now: Instant, packet: &Packet) -> Option<(usize, bool)> {
        let number = packet.transport().get(UDP_HEADER_LEN..)?.try_into().ok()?;
        let body = self.flow.payload - NUMBER_LEN;
        let number = u64::from_be_bytes(number);
        let position = number.checked_mul(body as u64)?;
        if packet.payload.len() != body || !self.pattern.matches(position, &packet.payload) {
            return None;
        }
        self.received += 1;
        if let Some(video) = &mut self.video {
            video.receive(now, number);
        }
        let is_due = self.flow.ack_every > 0 && self.received.is_multiple_of(self.flow.ack_every);
        Some((self.flow.payload, is_due))
    }

    /// An acknowledgement.
    pub(super) fn acknowledge(
        &self,
        flow: usize,
        addresses: (Ipv4Addr, Ipv4Addr),
        now: Instant,
    ) -> Packet {
        static ZEROS: [u8; 1_500] = [0; 1_500];
        let body = self.flow.ack_size - IPV4_HEADER_LEN - UDP_HEADER_LEN - NUMBER_LEN;
        let ports = (listen_port(flow), connect_port(flow));
        datagram(
            addresses,
            ports,
            self.received,
            Bytes::from_static(&ZEROS[..body]),
            now,
        )
    }
}

fn datagram(
    addresses: (Ipv4Addr, Ipv4Addr),
    ports: (u16, u16),
    number: u64,
    payload: Bytes,
    now: Instant,
) -> Packet {
    let len = (UDP_HEADER_LEN + NUMBER_LEN + payload.len()) as u16;
    let mut head = [0; UDP_HEADER_LEN + NUMBER_LEN];
    head[0..2].copy_from_slice(&ports.0.to_be_bytes());
    head[2..4].copy_from_slice(&ports.1.to_be_bytes());
    head[4..6].copy_from_slice(&len.to_be_bytes());
    head[8..].copy_from_slice(&number.to_be_bytes());
    Packet::new(addresses, PROTOCOL_UDP, Ecn::NotEct, &head, payload, now)
}
