//! The same transfer in virtual time: what the real one is compared with.

use std::time::Duration;

use tack::{AckKind, Algorithm};
use tack_emulator::AirSeconds;
use tack_sim::{Observer, Observers, Sample, Scenario};

use super::figures::{Figures, Point, Waits, limit};
use crate::exit::Failure;

/// Time between points of a series.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// Payload of a full segment over the UDP carrier: 1500 bytes less IP, UDP and TCP headers.
const MSS: u16 = 1_452;

/// The links of `links` with one flow from the server to the first station, for at most `duration`.
pub(crate) fn scenario(
    links: &Scenario,
    congestion: &Algorithm,
    ack: &AckKind,
    bytes: u64,
    duration: Duration,
) -> Result<Scenario, Failure> {
    // Read as any scenario is, so that the flow has the defaults of all flows.
    let settings = [
        format!("flow.0.congestion={congestion}"),
        format!("flow.0.ack={ack}"),
        format!("flow.0.bytes={bytes}B"),
        format!("flow.0.mss={MSS}"),
    ];
    let flow = Scenario::from_toml("flow", "[wlan]\n[[flow]]\n", &settings)
        .map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Scenario {
        flows: flow.flows,
        duration,
        warmup: Duration::ZERO,
        ..links.clone()
    })
}

/// Takes points of the one flow.
#[derive(Default)]
struct Points(Vec<Point>);

impl Observer for Points {
    fn interval(&self) -> Option<Duration> {
        Some(INTERVAL)
    }

    fn on_sample(&mut self, sample: &Sample) {
        self.0.push(Point {
            seconds: sample.at.as_secs_f64(),
            goodput_bps: sample.goodput_bps,
            queue: sample.queue_packets,
            acks_per_second: None,
        });
    }
}

/// A run in virtual time.
#[derive(Debug)]
pub(crate) struct VirtualRun {
    pub(crate) figures: Figures,
    /// Bytes delivered, which are all unless time ran out.
    pub(crate) delivered: u64,
}

/// Runs `scenario`.
pub(crate) fn run(scenario: &Scenario, seed: u64) -> Result<VirtualRun, Failure> {
    let mut points = Points::default();
    let report = tack_sim::run(scenario, seed, &mut Observers::default().with(&mut points))
        .map_err(|error| Failure::failed("the simulation failed", error))?;
    let (Some(flow), Some(wlan)) = (report.flows.first(), &report.wlan) else {
        return Err(Failure::plain("the simulation has no flow over Wi-Fi"));
    };
    let air = AirSeconds {
        data: wlan.airtime.data,
        ack: wlan.airtime.tcp_ack,
        control: wlan.airtime.control,
        collision: wlan.airtime.collision,
        access: wlan.airtime.access,
        idle: wlan.airtime.idle,
        neighbour: wlan.airtime.neighbour,
    };
    let waits = Waits {
        cwnd: flow.limited_by.cwnd,
        rwnd: flow.limited_by.rwnd,
        pacing: flow.limited_by.pacing,
        app: flow.limited_by.app,
    };
    Ok(VirtualRun {
        figures: Figures {
            goodput_bps: flow.goodput_bps,
            seconds: flow.completion_s.unwrap_or(report.virtual_seconds),
            data_segments: flow.data_segments,
            retransmitted_segments: flow.retransmitted_segments,
            acks: flow.acks,
            air,
            collisions: wlan.collisions,
            radios: wlan.into(),
            limited_by: limit(&air, waits),
            series: points.0,
        },
        delivered: flow.bytes_delivered,
    })
}
