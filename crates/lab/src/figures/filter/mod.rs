//! The figures of the paper on ACK filtering over IEEE 802.11 (VTC 2006).

pub(super) mod fig10_delayed_acks;
pub(super) mod fig4_5_queue;
pub(super) mod fig6_throughput;
pub(super) mod fig7_contention;
pub(super) mod fig8_contention_window;
pub(super) mod fig9_adaptive_window;
mod goodput;

use crate::figure::Depth;
use crate::measure::Values;
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::UPLOADS;
use tack_stats::Estimate;

/// Seconds that are measured of each run.
const SECONDS: f64 = 40.0;

/// Queues and radios of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setup {
    /// Stations that upload.
    stations: usize,
    /// Capacity of the MAC queues, packets.
    queue: u32,
    /// The paper's filter in all of them.
    is_filtered: bool,
    /// Smallest contention window, slots.
    cw_min: u32,
    /// The contention window doubles and halves.
    is_mimd: bool,
    /// Acknowledgements for every second segment.
    is_delayed: bool,
    /// Window of TCP, segments.
    window: u32,
    /// No frame is given up.
    is_persistent: bool,
}

impl Setup {
    const fn new(stations: usize, queue: u32, is_filtered: bool) -> Self {
        Self {
            stations,
            queue,
            is_filtered,
            cw_min: 31,
            is_mimd: false,
            is_delayed: false,
            window: 64,
            is_persistent: false,
        }
    }

    fn cell(self) -> Cell {
        let mut cell = Cell::new(&UPLOADS)
            .set(format!("wlan.stations={}", self.stations))
            .set(format!("wlan.queue={}p", self.queue))
            .set(format!("wlan.cw_min={}", self.cw_min))
            .set(format!("flow.0.receive_buffer={}B", self.window * 1_460));
        if self.is_filtered {
            cell = cell.set("wlan.ack_filter=paper");
        }
        if self.is_mimd {
            cell = cell.set("wlan.cw_adaptation=mimd");
        }
        if self.is_persistent {
            cell = cell
                .set("wlan.retry_limit=255")
                .set("wlan.station_queue=1000p");
        }
        if self.is_delayed {
            cell = cell.set("flow.0.ack=delayed:2");
        }
        cell
    }

    fn points(self, depth: &Depth) -> impl Iterator<Item = Point> {
        let cell = self.cell();
        seeds(depth, self.stations).map(move |seed| cell.at(seed))
    }

    /// The mean over seeds of what `read` says.
    fn estimate(self, depth: &Depth, results: &Results, read: impl Fn(&Values) -> f64) -> Estimate {
        results.estimate(&self.cell(), seeds(depth, self.stations), read)
    }

    /// Goodput of all flows, Mbit/s.
    fn goodput(self, depth: &Depth, results: &Results) -> Estimate {
        self.estimate(depth, results, |values| total(values, self.stations))
    }
}

/// Runs of thirty stations differ most, and gains are least there.
fn seeds(depth: &Depth, stations: usize) -> std::ops::RangeInclusive<u64> {
    depth.seeds(if stations < 30 { 3 } else { 5 }, 8)
}

/// Goodput of each flow, Mbit/s.
fn shares(values: &Values, stations: usize) -> Vec<f64> {
    (0..stations)
        .map(|flow| values.get(&format!("flows.{flow}.goodput_bps")) / 1e6)
        .collect()
}

fn total(values: &Values, stations: usize) -> f64 {
    shares(values, stations).iter().sum()
}

/// `read` of the second set-up less `read` of the first, seed by seed.
fn difference(
    depth: &Depth,
    results: &Results,
    setups: [Setup; 2],
    read: impl Fn(&Values, usize) -> f64,
) -> Estimate {
    let cells = setups.map(Setup::cell);
    let counts = setups.map(|setup| setup.stations);
    let seeds = seeds(depth, counts[0].min(counts[1]));
    results.paired([&cells[0], &cells[1]], seeds, |first, second| {
        read(second, counts[1]) - read(first, counts[0])
    })
}
