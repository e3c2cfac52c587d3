//! How late deliveries were, and whether a run may be believed.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use tack_base::Instant;

/// A delivery is late if it happens more than this after its time in the model, and an entry if
/// the model has come so much further: a tenth of a short Wi-Fi round trip.
pub const LATE: Duration = Duration::from_millis(2);

/// A run is unreliable if more than this share of its deliveries, or of its entries, was
/// late.
pub const LATE_SHARE: f64 = 0.01;

/// Longest lateness that is resolved, microseconds.
const MOST_MICROS: u64 = 60_000_000;

/// How late deliveries (or entries) were, microseconds after their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Number of deliveries, or of entries.
    pub deliveries: u64,
    /// Median lateness, microseconds.
    pub p50_us: u64,
    /// 99th percentile of the lateness, microseconds.
    pub p99_us: u64,
    /// Maximum lateness, microseconds.
    pub max_us: u64,
    /// Share of deliveries, or entries, more than [`LATE`] late, 0 to 1.
    pub late_share: f64,
}

/// Whether the results of a run are reliable, or the machine was too slow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trust {
    /// True when the machine kept up.
    pub ok: bool,
    /// Why the run is unreliable; empty if it is reliable.
    pub reasons: Vec<String>,
}

/// Takes lateness down.
#[derive(Debug)]
pub(crate) struct Meter {
    micros: Histogram<u64>,
    late: u64,
    max: u64,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self {
            micros: Histogram::new_with_bounds(1, MOST_MICROS, 2)
                .expect("the bounds of the histogram are in order"),
            late: 0,
            max: 0,
        }
    }

    /// What was due `at` happened `now`.
    pub(crate) fn record(&mut self, now: Instant, at: Instant) {
        let lateness = now.saturating_since(at);
        let micros = u64::try_from(lateness.as_micros()).unwrap_or(u64::MAX);
        self.micros.saturating_record(micros);
        self.max = self.max.max(micros);
        self.late += u64::from(lateness > LATE);
    }

    pub(crate) fn figures(&self) -> Lateness {
        let deliveries = self.micros.len();
        Lateness {
            deliveries,
            p50_us: self.micros.value_at_quantile(0.5).min(self.max),
            p99_us: self.micros.value_at_quantile(0.99).min(self.max),
            max_us: self.max,
            late_share: self.late as f64 / deliveries.max(1) as f64,
        }
    }
}

impl Trust {
    /// The verdict on a run whose deliveries and entries were so late, and of which the kernel
    /// dropped `drops` datagrams before the model had them and `refused` after.
    pub(crate) fn judge(
        deliveries: &Lateness,
        entries: &Lateness,
        drops: u64,
        refused: u64,
    ) -> Self {
        let mut reasons = Vec::new();
        for (lateness, what) in [
            (deliveries, "deliveries came"),
            (entries, "datagrams entered the model"),
        ] {
            if lateness.late_share > LATE_SHARE {
                reasons.push(format!(
                    "{:.1} % of {what} more than {} ms late (up to {:.1} ms); at most {} % may",
                    lateness.late_share * 100.0,
                    LATE.as_millis(),
                    lateness.max_us as f64 / 1e3,
                    LATE_SHARE * 100.0
                ));
            }
        }
        if drops > 0 {
            reasons.push(format!(
                "the kernel dropped {drops} datagrams before the emulator could take them"
            ));
        }
        if refused > 0 {
            reasons.push(format!(
                "the kernel refused {refused} datagrams that the model had delivered"
            ));
        }
        Self {
            ok: reasons.is_empty(),
            reasons,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_late_delivery_in_a_hundred_is_the_limit() {
        let mut meter = Meter::new();
        let due = Instant::from_millis(1_000);
        for _ in 0..99 {
            meter.record(due + Duration::from_micros(100), due);
        }
        meter.record(due + Duration::from_millis(30), due);
        let figures = meter.figures();
        assert_eq!(figures.deliveries, 100);
        assert!((99..=101).contains(&figures.p50_us), "{figures:?}");
        assert_eq!(figures.max_us, 30_000);
        assert!((figures.late_share - 0.01).abs() < 1e-9);
        let none = Lateness::default();
        assert!(Trust::judge(&figures, &figures, 0, 0).ok);
        meter.record(due + Duration::from_millis(3), due);
        let trust = Trust::judge(&none, &meter.figures(), 0, 0);
        assert!(
            trust.reasons[0].starts_with("2.0 % of datagrams entered"),
            "{trust:?}"
        );
        let trust = Trust::judge(&meter.figures(), &none, 0, 0);
        assert!(!trust.ok);
        assert!(
            trust.reasons[0].starts_with("2.0 % of deliveries"),
            "{trust:?}"
        );
    }

    #[test]
    fn losses_outside_the_model_are_never_trusted() {
        let figures = Lateness::default();
        assert!(Trust::judge(&figures, &figures, 0, 0).ok);
        assert_eq!(Trust::judge(&figures, &figures, 1, 0).reasons.len(), 1);
        assert_eq!(Trust::judge(&figures, &figures, 1, 1).reasons.len(), 2);
        assert_eq!(Meter::new().figures(), figures);
    }
}
