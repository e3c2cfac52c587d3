//! Watching a run: packets as they leave and arrive, and samples of every flow at an interval.

mod blocked;
mod capture;
mod qlog;
mod series;

use std::io;
use std::time::Duration;

use tack_base::Instant;
use tack_tcp::trace::TraceEvent;
use tack_wlan::Captured;

use crate::packet::Packet;
use crate::scenario::{Party, Scenario};

pub use blocked::Blocked;
pub use capture::Capture;
pub use qlog::{Qlog, ack_sent};
pub use series::Series;

/// A packet at a host's network interface.
#[derive(Clone, Copy, Debug)]
pub struct PacketEvent<'a> {
    /// When, in the run's time.
    pub at: Instant,
    /// The host whose interface the packet passes.
    pub host: Party,
    /// Whether the packet leaves the host or enters it.
    pub passing: Passing,
    /// The packet; its checksums may be blank.
    pub packet: &'a Packet,
}

/// Which way a packet passes an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// Out of the host.
    Out,
    /// Into the host.
    In,
}

/// State of one flow at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// When, in the run's time.
    pub at: Instant,
    /// Index of the flow.
    pub flow: usize,
    /// Payload delivered since the last sample, bits per second.
    pub goodput_bps: f64,
    /// Congestion window of the sender, bytes; zero for UDP.
    pub cwnd: u64,
    /// Bytes in flight; zero for UDP.
    pub bytes_in_flight: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Pacing rate, bits per second, where there is one.
    pub pacing_bps: Option<u64>,
    /// Packets that wait in the bottleneck queue of the flow's direction.
    pub queue_packets: usize,
}

/// Something that watches a run. It cannot change it.
pub trait Observer {
    /// The run of `scenario` is about to begin.
    fn on_start(&mut self, scenario: &Scenario) {
        let _ = scenario;
    }

    /// A packet passes an interface.
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let _ = event;
    }

    /// A PPDU goes on the air.
    fn on_radio(&mut self, captured: &Captured<Packet>) {
        let _ = captured;
    }

    /// Whether this observer wants [`Observer::on_radio`]. Asked once, before the run.
    fn wants_radio(&self) -> bool {
        false
    }

    /// How often this observer wants [`Observer::on_sample`]; `None` for never. Asked once, before
    /// the run.
    fn interval(&self) -> Option<Duration> {
        None
    }

    /// The state of one flow.
    fn on_sample(&mut self, sample: &Sample) {
        let _ = sample;
    }

    /// True when this observer wants [`Observer::on_trace`]. Asked once, before the run.
    fn wants_traces(&self) -> bool {
        false
    }

    /// Something happened inside the connection of `flow` at `host`.
    fn on_trace(&mut self, flow: usize, host: Party, event: &TraceEvent) {
        let _ = (flow, host, event);
    }

    /// The run is over: write out what is left.
    ///
    /// # Errors
    /// The first thing that went wrong with writing, during the run or now.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
