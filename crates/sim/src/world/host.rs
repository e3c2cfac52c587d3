//! A host: its endpoint, its clock, its network interface, and what is wrong with them.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tack_base::Instant;
use tack_base::random::RandomStream;
use tack_base::time::nanos;
use tack_tcp::config::Carrier;
use tack_tcp::{Batch, Endpoint, EndpointConfig};
use tack_wire::checksum::PROTOCOL_TCP;
use tack_wire::ip::IPV4_HEADER_LEN;

use super::clock::Clock;
use crate::packet::Packet;
use crate::scenario::{HostConfig, Party};

/// How long an interface that took only part of a batch refuses the rest.
const SHORT_SEND_RETRY: Duration = Duration::from_millis(1);
/// Payloads are cut from chunks of this size: one allocation for many packets.
const CHUNK: usize = 64 << 10;

/// A packet that has arrived and is not processed yet.
#[derive(Debug)]
struct Arrived {
    at: Instant,
    processed: Instant,
    packet: Packet,
}

/// One of the hosts.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) endpoint: Endpoint,
    pub(super) clock: Clock,
    party: Party,
    address: Ipv4Addr,
    config: HostConfig,
    /// Waiting to be processed.
    inbox: VecDeque<Arrived>,
    processing: RandomStream,
    /// Refused by the interface, to be offered again.
    refused: VecDeque<Packet>,
    refused_until: Instant,
    short_sends: RandomStream,
    /// Segments with a departure in the future, in order of departure.
    held: VecDeque<(Instant, Packet)>,
    /// The endpoint's deadline, and when the timer will fire for it.
    deadline: Option<(Instant, Instant)>,
    lateness: RandomStream,
    scratch: Vec<u8>,
    chunk: BytesMut,
}

impl Host {
    pub(super) fn new(party: Party, config: HostConfig, seed: u64) -> Self {
        let index = party.index() as u64;
        let mut secrets = RandomStream::new(seed, "secret", index);
        let mut secret = [0; 16];
        secret[..8].copy_from_slice(&secrets.next_u64().to_le_bytes());
        secret[8..].copy_from_slice(&secrets.next_u64().to_le_bytes());
        Self {
            endpoint: Endpoint::new(EndpointConfig::new(secret)),
            clock: Clock::new(config.clock_skew_ppm),
            party,
            address: address(party),
            config,
            inbox: VecDeque::new(),
            processing: RandomStream::new(seed, "late_processing", index),
            refused: VecDeque::new(),
            refused_until: Instant::ZERO,
            short_sends: RandomStream::new(seed, "short_sends", index),
            held: VecDeque::new(),
            deadline: None,
            lateness: RandomStream::new(seed, "late_timers", index),
            scratch: Vec::new(),
            chunk: BytesMut::new(),
        }
    }

    /// Which host this is.
    pub(super) fn party(&self) -> Party {
        self.party
    }

    /// Source address of what this host sends.
    pub(super) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// True when segments leave when the endpoint says so.
    pub(super) fn paces(&self) -> bool {
        self.config.short_sends == 0.0
    }

    /// The properties of network interface and timers that TCP needs.
    pub(super) fn carrier(&self) -> Carrier {
        Carrier {
            timer_granularity: self.config.late_timers,
            max_batch: self.config.batch,
            overhead: IPV4_HEADER_LEN as u16,
        }
    }

    /// Packets are processed as they arrive; otherwise they are to [`Host::arrive`].
    #[inline]
    pub(super) fn is_prompt(&self) -> bool {
        self.config.late_processing.is_zero()
    }

    /// A packet arrives. Returns when it is processed.
    pub(super) fn arrive(&mut self, now: Instant, packet: Packet) -> Instant {
        let most = nanos(self.config.late_processing);
        let delay = Duration::from_nanos(self.processing.below(most + 1));
        let before = self.inbox.back();
        let before = before.map_or(Instant::ZERO, |last| last.processed);
        let processed = before.max(now + delay);
        self.inbox.push_back(Arrived {
            at: now,
            processed,
            packet,
        });
        processed
    }

    /// The next packet to process at `now`, with its arrival.
    pub(super) fn take_arrived(&mut self, now: Instant) -> Option<(Instant, Packet)> {
        if self.inbox.front()?.processed > now {
            return None;
        }
        self.inbox
            .pop_front()
            .map(|Arrived { at, packet, .. }| (at, packet))
    }

    /// Sends what the endpoint has and the interface takes: calls `send` with each packet that
    /// leaves now.
    pub(super) fn transmit(&mut self, now: Instant, mut send: impl FnMut(Packet)) {
        while self.held.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, packet)) = self.held.pop_front() else {
                break;
            };
            send(Packet {
                sent: now,
                ..packet
            });
        }
        if !self.refused.is_empty() {
            if now < self.refused_until {
                return;
            }
            for packet in self.refused.drain(..) {
                send(Packet {
                    sent: now,
                    ..packet
                });
            }
        }
        let local = self.clock.local(now);
        loop {
            self.scratch.clear();
            let mut batch = Batch::new(&mut self.scratch, 0, self.config.batch);
            let Some((peer, transmit)) = self.endpoint.poll_transmit(local, &mut batch) else {
                return;
            };
            // Connections are made between the addresses of hosts only.
            let IpAddr::V4(peer) = peer.ip() else {
                continue;
            };
            let departure = self.clock.global(transmit.departure);
            let taken = if self.short_sends.chance(self.config.short_sends) {
                self.short_sends.below(transmit.segments as u64) as usize
            } else {
                transmit.segments
            };
            for (number, segment) in self.scratch[..transmit.len]
                .chunks(transmit.segment_size)
                .enumerate()
            {
                let header_len = usize::from(segment[12] >> 4) * 4;
                let (header, payload) = segment.split_at(header_len);
                let payload = share(&mut self.chunk, payload);
                let packet = Packet::new(
                    (self.address, peer),
                    PROTOCOL_TCP,
                    transmit.ecn,
                    header,
                    payload,
                    now,
                );
                if number >= taken {
                    self.refused.push_back(packet);
                } else if departure > now {
                    let place = self.held.partition_point(|(at, _)| *at <= departure);
                    self.held.insert(place, (departure, packet));
                } else {
                    send(packet);
                }
            }
            if taken < transmit.segments {
                self.refused_until = now + SHORT_SEND_RETRY;
                return;
            }
        }
    }

    /// When the host next has something to do by itself: a timer of the endpoint, or something to
    /// send.
    pub(super) fn next_wake(&mut self, now: Instant) -> Option<Instant> {
        self.arm(now);
        let timer = self.deadline.map(|(_, fires)| fires);
        if self.held.is_empty() && self.refused.is_empty() {
            return timer;
        }
        let interface = [
            self.held.front().map(|(at, _)| *at),
            (!self.refused.is_empty()).then_some(self.refused_until),
        ];
        interface.into_iter().flatten().chain(timer).min()
    }

    /// Keeps the timer in step with the endpoint's deadline; how late it fires is drawn once a
    /// deadline.
    fn arm(&mut self, now: Instant) {
        let Some(deadline) = self.endpoint.poll_timeout() else {
            self.deadline = None;
            return;
        };
        if self.deadline.is_some_and(|(known, _)| known == deadline) {
            return;
        }
        let mut fires = self.clock.global(deadline).max(now);
        if !self.config.late_timers.is_zero() {
            let most = nanos(self.config.late_timers);
            fires += Duration::from_nanos(self.lateness.below(most + 1));
        }
        self.deadline = Some((deadline, fires));
    }

    /// Runs the endpoint's timers when theirs has fired.
    pub(super) fn wake(&mut self, now: Instant) {
        if self.deadline.is_some_and(|(_, fires)| fires <= now) {
            self.deadline = None;
            self.endpoint.handle_timeout(self.clock.local(now));
        }
    }
}

/// The address of a host: those of stations follow the client's, in a network with room for all of
/// them.
pub(super) fn address(party: Party) -> Ipv4Addr {
    let [.., high, low] = (party.index() as u32 + 1).to_be_bytes();
    Ipv4Addr::new(10, 0, high, low)
}

/// The host with this address, by its index.
pub(super) fn host_at(address: Ipv4Addr) -> usize {
    let [.., high, low] = address.octets();
    usize::from(u16::from_be_bytes([high, low])).saturating_sub(1)
}

/// A carrier address.
pub(super) fn carrier(address: Ipv4Addr) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(address), 0)
}

/// Copies `payload` into shared memory.
#[inline]
fn share(chunk: &mut BytesMut, payload: &[u8]) -> Bytes {
    if payload.is_empty() {
        return Bytes::new();
    }
    if chunk.capacity() < payload.len() {
        // Takes the old chunk again when every packet cut from it is gone.
        chunk.reserve(CHUNK.max(payload.len()));
    }
    chunk.extend_from_slice(payload);
    chunk.split().freeze()
}
