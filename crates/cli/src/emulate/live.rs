//! What a running emulator shows on a terminal: airtime, rates, acknowledgements, queues, lateness.

use std::time::Duration;

use indicatif::ProgressBar;
use tack_base::Rate;
use tack_emulator::{AirSeconds, Sample, Totals};

use crate::progress;

/// Samples between two that are compared: rates over a second are readable.
const WINDOW: usize = 10;

/// Lines that are drawn over each other; nothing where standard error is not a terminal.
pub(crate) struct Display {
    bar: ProgressBar,
    recent: std::collections::VecDeque<Sample>,
}

impl Display {
    pub(crate) fn new() -> Self {
        let bar = progress::bar(None, "{msg}");
        bar.enable_steady_tick(Duration::from_millis(200));
        Self {
            bar,
            recent: std::collections::VecDeque::new(),
        }
    }

    /// Shows what happened since about a second ago.
    pub(crate) fn show(&mut self, sample: &Sample) {
        if self.bar.is_hidden() {
            return;
        }
        self.recent.push_back(*sample);
        if self.recent.len() > WINDOW + 1 {
            self.recent.pop_front();
        }
        if let (Some(first), Some(last)) = (self.recent.front(), self.recent.back()) {
            self.bar.set_message(lines(first, last));
        }
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The interval between two samples, in words.
fn lines(earlier: &Sample, later: &Sample) -> String {
    let seconds = (later.seconds - earlier.seconds).max(0.001);
    let way = |name: &str, before: &Totals, now: &Totals, queue: usize| {
        let per_second = |count: u64| count as f64 / seconds;
        format!(
            "{name:<5} {:>12}  {:>8.0} data/s  {:>8.0} acks/s  queue {queue}",
            rate(now.delivered_bytes - before.delivered_bytes, seconds),
            per_second(now.data - before.data),
            per_second(now.acks - before.acks),
        )
    };
    format!(
        "{:.0} s  {} flows  late by {:.2} ms (p99)\n{}\n{}\n{}",
        later.seconds,
        later.flows,
        later.lateness.p99_us as f64 / 1e3,
        air_line(&later.air.since(&earlier.air).shares()),
        way("up", &earlier.up, &later.up, later.station_queue),
        way("down", &earlier.down, &later.down, later.ap_queue),
    )
}

/// `air: data 61.2 %, acknowledgements 4.1 %, …` from shares.
pub(crate) fn air_line(shares: &AirSeconds) -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    format!(
        "air: data {}, acknowledgements {}, link control {}, collisions {}, access {}, idle {}",
        percent(shares.data),
        percent(shares.ack),
        percent(shares.control),
        percent(shares.collision),
        percent(shares.access),
        percent(shares.idle)
    )
}

/// Bytes over a time, as a rate for people.
pub(crate) fn rate(bytes: u64, seconds: f64) -> String {
    let bits = crate::printer::bits_per_second(bytes, seconds);
    Rate::from_bits_per_sec(bits as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_reads_as_rates() {
        let earlier = Sample {
            seconds: 1.0,
            ..Sample::default()
        };
        let later = Sample {
            seconds: 2.0,
            down: Totals {
                delivered_bytes: 1_250_000,
                data: 900,
                acks: 3,
                ..Totals::default()
            },
            air: AirSeconds {
                data: 0.5,
                idle: 0.5,
                ..AirSeconds::default()
            },
            flows: 1,
            ..earlier
        };
        let text = lines(&earlier, &later);
        assert!(
            text.contains("10.0 Mbit/s") && text.contains("900 data/s"),
            "{text}"
        );
        assert!(text.contains("data 50.0 %"), "{text}");
        assert_eq!(text.lines().count(), 4);
    }
}
