//! Two endpoints that know each other's address. Their owner has the clock and the network between
//! them: [`Pair`](crate::Pair) steps from event to event, the fuzz target
//! `connection_ops` does what its input says.

use std::net::SocketAddr;

use tack_base::Instant;
use tack_tcp::{Batch, Config, ConnectionId, Endpoint, EndpointConfig, Transmit};
use tack_wire::{Ecn, Segment};

use crate::side::Side;

/// Port that the server listens on.
pub const PORT: u16 = 7000;

/// More batches, events or timeouts than an endpoint has in one step: it goes on without end.
pub const SPIN: usize = 100_000;

/// The endpoints of the two hosts.
#[derive(Debug)]
pub struct Hosts {
    endpoints: [Endpoint; 2],
    /// Batches in a row, by side, since there was nothing to send.
    batches: [usize; 2],
    /// Most segments of a batch, by side.
    max_batch: [usize; 2],
}

impl Hosts {
    /// Endpoints without connections that send one segment at a time.
    pub fn new(configs: [EndpointConfig; 2]) -> Self {
        Self {
            endpoints: configs.map(Endpoint::new),
            batches: [0; 2],
            max_batch: [1, 1],
        }
    }

    /// The endpoint of a side.
    pub fn endpoint(&self, side: Side) -> &Endpoint {
        &self.endpoints[side as usize]
    }

    /// The endpoint of a side, to use its verbs.
    pub fn endpoint_mut(&mut self, side: Side) -> &mut Endpoint {
        &mut self.endpoints[side as usize]
    }

    /// A side sends up to `segments` in a batch from now on.
    pub fn set_max_batch(&mut self, side: Side, segments: usize) {
        self.max_batch[side as usize] = segments;
    }

    /// The server listens with `config`.
    ///
    /// # Panics
    /// When it listens already.
    pub fn listen(&mut self, config: &Config, backlog: usize) {
        self.endpoint_mut(Side::Server)
            .listen(PORT, config.clone(), backlog)
            .expect("nobody listens yet");
    }

    /// The client connects with `config`.
    ///
    /// # Panics
    /// When it has no free port.
    pub fn connect(&mut self, now: Instant, config: &Config) -> ConnectionId {
        let server = Side::Server.address();
        self.endpoint_mut(Side::Client)
            .connect(now, server, PORT, 0, config)
            .expect("there are free ports")
    }

    /// A segment from the other side, which arrived at `arrived` and is handled at `now`.
    pub fn handle_segment(
        &mut self,
        to: Side,
        now: Instant,
        arrived: Instant,
        segment: &Segment<'_>,
        ecn: Ecn,
    ) {
        let from = to.other().address();
        self.endpoint_mut(to)
            .handle_segment(now, arrived, from, segment, ecn);
    }

    /// The next batch that leaves a side, in `buffer`; `None` when there is none.
    ///
    /// # Panics
    /// When it is not for the other side, or not as long as it says, or when the side sends without
    /// end.
    pub fn poll_transmit(
        &mut self,
        from: Side,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        buffer.clear();
        let most = self.max_batch[from as usize];
        let batch =
            self.endpoints[from.index()].poll_transmit(now, &mut Batch::new(buffer, 0, most));
        let Some((peer, transmit)) = batch else {
            self.batches[from.index()] = 0;
            return None;
        };
        self.batches[from.index()] += 1;
        assert!(
            self.batches[from.index()] < SPIN,
            "{from:?} sends without end at {now}"
        );
        let segments = buffer.len().div_ceil(transmit.segment_size);
        assert_eq!(
            (peer, transmit.len, transmit.segments),
            (from.other().address(), buffer.len(), segments)
        );
        Some(transmit)
    }

    /// The next deadline of either.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        let deadlines = self.endpoints.iter_mut().filter_map(Endpoint::poll_timeout);
        deadlines.min()
    }
}

impl Side {
    /// The address of the host, as the other one sees it.
    pub fn address(self) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1 + self as u8], 0))
    }
}
