//! Brings what happens to the checks of the connection that it concerns.

use tack_base::Instant;
use tack_base::time::Nanos;
use tack_tcp::trace::{TraceDetail, TraceEvent};
use tack_wire::{Flags, Header, Segment};

use super::check::{self, WireObserver};
use super::event::Broken;
use super::flows::{Flows, Kind};
use super::host::Host;
use crate::packet::Packet;
use crate::scenario::Party;

/// One side of a connection.
struct Observed<'a> {
    flow: usize,
    party: Party,
    observer: &'a mut WireObserver,
}

impl Flows {
    /// The side of a connection that is at `host`, by its ports.
    fn observed(&mut self, host: usize, ports: (u16, u16)) -> Option<Observed<'_>> {
        let flow = self.by_ports(ports)?;
        let state = &mut self.list[flow];
        let side = state.side_of(host);
        match &mut state.kind {
            Kind::Tcp(stream) => Some(Observed {
                flow,
                party: state.parties[side],
                observer: &mut stream.observers[side],
            }),
            Kind::Udp(_) => None,
        }
    }

    /// Checks a segment that leaves `host`, whose clock shows `local`.
    pub(super) fn check_sent(
        &mut self,
        host: usize,
        local: Instant,
        header: &Header,
        payload: usize,
    ) -> Result<(), Broken> {
        match self.observed(host, (header.src_port, header.dst_port)) {
            None => Ok(()),
            Some(side) => {
                let checked = side.observer.on_sent(local, header, payload);
                checked.map_err(|what| Broken {
                    flow: side.flow,
                    host: side.party,
                    what,
                })
            }
        }
    }

    /// Takes note of a segment that `host` is about to process.
    pub(super) fn note_received(&mut self, host: usize, header: &Header) {
        if let Some(side) = self.observed(host, (header.src_port, header.dst_port)) {
            side.observer.on_received(header);
        }
    }

    /// A packet of a segment leaves `host`, which the path takes (`fits`) or which is too large for
    /// it. Says when the sender has stalled.
    #[inline]
    pub(super) fn note_sent(
        &mut self,
        host: usize,
        now: Instant,
        packet: &Packet,
        fits: impl FnOnce() -> bool,
    ) -> Result<(), Broken> {
        let Some(flow) = self.by_ports(packet.ports()) else {
            return Ok(());
        };
        let state = &mut self.list[flow];
        let side = state.side_of(host);
        let Kind::Tcp(stream) = &mut state.kind else {
            return Ok(());
        };
        stream.progress[1 - side].on_answered();
        let transport = packet.transport();
        let (Some(flags), Some(seq)) = (Segment::flags(transport), Segment::seq(transport)) else {
            return Ok(());
        };
        let mut payload = packet.payload.len();
        if payload > 0 && packet.is_tack_feedback() {
            payload = 0;
        }
        let len = sequence_len(flags, payload);
        if len == 0 || flags.rst() || stream.is_given_up() {
            return Ok(());
        }
        let stall = stream.check_progress(side, now);
        stream.progress[side].on_sent(now, seq, len, fits());
        match stall {
            None => Ok(()),
            Some(what) => Err(Broken {
                flow,
                host: state.parties[side],
                what,
            }),
        }
    }

    /// A segment arrived at `host` after `delay`. Says when its sender or its receiver has stalled.
    pub(super) fn note_progress(
        &mut self,
        host: usize,
        now: Instant,
        segment: &Segment<'_>,
        delay: Nanos,
    ) -> Result<(), Broken> {
        let header = &segment.header;
        let Some(flow) = self.by_ports((header.src_port, header.dst_port)) else {
            return Ok(());
        };
        let state = &mut self.list[flow];
        let side = state.side_of(host);
        let Kind::Tcp(stream) = &mut state.kind else {
            return Ok(());
        };
        if stream.is_given_up() {
            return Ok(());
        }
        let mut stall = None;
        if numbers(header, segment.payload.len()) > 0 {
            stall = stream
                .check_progress(1 - side, now)
                .map(|what| (1 - side, what));
            stream.progress[1 - side].on_delivered(delay);
        }
        if stall.is_none() && header.flags.ack() && !header.flags.rst() {
            stall = stream.check_progress(side, now).map(|what| (side, what));
            stream.progress[side].on_acknowledged(now, header.ack, delay);
        }
        match stall {
            None => Ok(()),
            Some((side, what)) => Err(Broken {
                flow,
                host: state.parties[side],
                what,
            }),
        }
    }

    /// The run ends.
    pub(super) fn end_progress(&mut self, now: Instant) -> Result<(), Broken> {
        (0..self.list.len())
            .flat_map(|flow| [(flow, 0), (flow, 1)])
            .map(|(flow, side)| self.check_stall(flow, side, now))
            .fold(Ok(()), Result::and)
    }

    /// Checks one side's progress up to `now`.
    fn check_stall(&mut self, flow: usize, side: usize, now: Instant) -> Result<(), Broken> {
        let state = &mut self.list[flow];
        let Kind::Tcp(stream) = &mut state.kind else {
            return Ok(());
        };
        if stream.is_given_up() {
            return Ok(());
        }
        match stream.check_progress(side, now) {
            None => Ok(()),
            Some(what) => Err(Broken {
                flow,
                host: state.parties[side],
                what,
            }),
        }
    }

    /// Takes note of the rates at which the connections of `host` pace.
    pub(super) fn note_rates(&mut self, index: usize, host: &Host, now: Instant) {
        let local = host.clock.local(now);
        for state in self.list.iter_mut().filter(|flow| flow.involves(index)) {
            let side = state.side_of(index);
            let Kind::Tcp(stream) = &mut state.kind else {
                continue;
            };
            let Some(connection) = stream.ids[side].and_then(|id| host.endpoint.get(id)) else {
                continue;
            };
            // What an interface refuses leaves later, in one burst that no pacer chose.
            let rate = connection.pacing_rate().filter(|_| host.paces());
            let mss = u64::from(connection.stats(local).mss);
            stream.observers[side].set_rate(local, rate, mss, host.carrier());
        }
    }

    /// Brings what the connections of `host` traced to `each`, with the flow and the host's name.
    /// Times are the host's.
    pub(super) fn drain_traces(
        &mut self,
        index: usize,
        host: &mut Host,
        mut each: impl FnMut(usize, Party, &TraceEvent),
    ) {
        for (flow, state) in self.list.iter().enumerate() {
            let side = state.side_of(index);
            let Kind::Tcp(stream) = &state.kind else {
                continue;
            };
            let Some(id) = stream.ids[side] else {
                continue;
            };
            // Switched on again each time, which costs nothing: a connection that is new is not
            // missed.
            while let Some(event) = host.endpoint.poll_trace(id, TraceDetail::Decisions) {
                each(flow, state.parties[side], &event);
            }
        }
    }

    /// Checks the books of every connection of `host`.
    pub(super) fn check_books(&mut self, index: usize, host: &mut Host) -> Result<(), Broken> {
        let deadline = host.endpoint.poll_timeout();
        for (flow, state) in self.list.iter_mut().enumerate() {
            if !state.involves(index) {
                continue;
            }
            let side = state.side_of(index);
            let Kind::Tcp(stream) = &mut state.kind else {
                continue;
            };
            let Some(connection) = stream.ids[side].and_then(|id| host.endpoint.get(id)) else {
                continue;
            };
            let events = &mut stream.unaudited[side];
            check::books(connection, deadline, events).map_err(|what| Broken {
                flow,
                host: state.parties[side],
                what,
            })?;
        }
        Ok(())
    }
}

/// Sequence numbers that a segment takes: the lists of a TACK report take none.
fn numbers(header: &Header, payload: usize) -> u32 {
    sequence_len(header.flags, if is_feedback(header) { 0 } else { payload })
}

#[inline]
fn sequence_len(flags: Flags, payload: usize) -> u32 {
    payload as u32 + u32::from(flags.syn()) + u32::from(flags.fin())
}

/// The payload, if any, is the lists of a TACK report.
pub(super) fn is_feedback(header: &Header) -> bool {
    header
        .options
        .tack
        .is_some_and(|option| option.is_feedback())
}
