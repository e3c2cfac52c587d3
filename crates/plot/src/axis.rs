//! Axes: their ticks, and where values lie along them.

use crate::svg::{format_number, log_ticks, ticks, width_of};

/// How an axis is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scale {
    /// Evenly, with zero on it.
    #[default]
    Linear,
    /// By powers of ten. Points below zero are left out; points at zero have a place of their own
    /// before the first power, on horizontal axes alone.
    Log,
}

/// How much of an axis the place of zero takes before a logarithmic scale begins.
const ZERO: f64 = 0.07;

/// An axis from 0 to 1.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    has_zero: bool,
    pub(crate) ticks: Vec<f64>,
}

impl Axis {
    /// Covers `values`, with about `wanted` ticks at round numbers, and ends with ticks.
    pub(crate) fn new(scale: Scale, values: impl Iterator<Item = f64>, wanted: usize) -> Self {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let most = values.iter().copied().fold(0.0, f64::max);
        let ticks = match scale {
            Scale::Linear => ticks(values.iter().copied().fold(0.0, f64::min), most, wanted),
            Scale::Log => {
                let above = values.iter().copied().filter(|value| *value > 0.0);
                log_ticks(above.fold(f64::INFINITY, f64::min), most)
            }
        };
        Self {
            scale,
            low: ticks.first().copied().unwrap_or(0.0),
            high: ticks.last().copied().unwrap_or(1.0),
            has_zero: false,
            ticks,
        }
    }

    /// The same, but it ends with the last of the values.
    pub(crate) fn to_the_last(
        scale: Scale,
        values: impl Iterator<Item = f64> + Clone,
        wanted: usize,
    ) -> Self {
        let mut axis = Self::new(scale, values.clone(), wanted);
        let finite = values.filter(|value| value.is_finite());
        let most = finite.clone().fold(0.0, f64::max);
        match scale {
            Scale::Linear if most > axis.low => {
                axis.high = most;
                axis.ticks.retain(|tick| *tick <= most * 1.000_1);
            }
            Scale::Linear => {}
            Scale::Log => {
                if most > axis.low {
                    axis.high = most;
                    axis.ticks.retain(|tick| *tick <= most * 1.000_1);
                }
                axis.has_zero = finite.clone().any(|value| value == 0.0);
                if axis.has_zero {
                    axis.ticks.insert(0, 0.0);
                }
            }
        }
        axis
    }

    /// Whether `value` has a place.
    pub(crate) fn has(&self, value: f64) -> bool {
        match self.scale {
            Scale::Linear => value.is_finite(),
            Scale::Log => value.is_finite() && (value > 0.0 || (self.has_zero && value == 0.0)),
        }
    }

    /// Where `value` lies between the beginning, 0, and the end, 1; what has no place is at the
    /// beginning.
    pub(crate) fn share(&self, value: f64) -> f64 {
        if !self.has(value) {
            return 0.0;
        }
        match self.scale {
            Scale::Linear if self.high > self.low => (value - self.low) / (self.high - self.low),
            Scale::Log if self.high > self.low && value > 0.0 => {
                let share = (value / self.low).log10() / (self.high / self.low).log10();
                if self.has_zero {
                    ZERO + share * (1.0 - ZERO)
                } else {
                    share
                }
            }
            _ => 0.0,
        }
        .clamp(0.0, 1.0)
    }

    /// Whether `value` lies below the beginning of the scale.
    pub(crate) fn is_below(&self, value: f64) -> bool {
        value < self.low
    }

    /// Where the scale begins behind the place of zero, if there is one.
    pub(crate) fn gap(&self) -> Option<f64> {
        self.has_zero.then_some(ZERO / 2.0)
    }

    /// The ticks that have room for their numbers on an axis of so many units: all of them, or of
    /// each two that are too close the first.
    pub(crate) fn labelled(&self, ticks: &[f64], length: f64) -> Vec<(f64, String)> {
        let mut labelled: Vec<(f64, String)> = Vec::new();
        let mut end = f64::NEG_INFINITY;
        for tick in ticks {
            let text = tick_text(*tick);
            let (at, half) = (length * self.share(*tick), width_of(&text) / 2.0);
            if at - half >= end + 4.0 {
                end = at + half;
                labelled.push((*tick, text));
            }
        }
        labelled
    }
}

/// A tick's number, with all its digits where it is small: a power of ten is never "0".
pub(crate) fn tick_text(tick: f64) -> String {
    match tick.abs() {
        small if small > 0.0 && small < 0.01 => tick.to_string().replace('-', "−"),
        _ => format_number(tick),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ticks_have_their_digits() {
        let texts = [0.0, 1e-4, 0.001, 0.01, 0.5, -0.002, 10_000.0].map(tick_text);
        assert_eq!(
            texts,
            ["0", "0.0001", "0.001", "0.01", "0.5", "−0.002", "10,000"]
        );
    }

    #[test]
    fn a_logarithmic_axis_ends_with_its_last_point() {
        let axis = Axis::to_the_last(Scale::Log, [1.0, 1_024.0].into_iter(), 5);
        assert_eq!((axis.share(1.0), axis.share(1_024.0)), (0.0, 1.0));
        assert_eq!(axis.ticks.last(), Some(&1_000.0));
    }

    #[test]
    fn linear_axes_have_zero_and_what_lies_below_it() {
        let axis = Axis::new(Scale::Linear, [-3.0, 8.0].into_iter(), 5);
        assert_eq!((axis.low, axis.high), (-5.0, 10.0));
        assert!((axis.share(0.0) - 1.0 / 3.0).abs() < 1e-9);
        let axis = Axis::new(Scale::Linear, [4.0, 8.0].into_iter(), 5);
        assert_eq!(axis.low, 0.0);
    }

    #[test]
    fn zero_has_a_place_before_powers_of_ten() {
        let axis = Axis::to_the_last(Scale::Log, [0.0, 1.0, 100.0].into_iter(), 5);
        assert_eq!(axis.share(0.0), 0.0);
        assert_eq!((axis.share(1.0), axis.share(100.0)), (ZERO, 1.0));
        assert!(axis.ticks.starts_with(&[0.0, 1.0]));
        assert!(!Axis::new(Scale::Log, [0.0, 1.0].into_iter(), 5).has(0.0));
    }

    #[test]
    fn numbers_on_an_axis_do_not_touch() {
        let points: Vec<f64> = (0..11).map(|power| f64::from(1 << power)).collect();
        let axis = Axis::to_the_last(Scale::Log, points.iter().copied(), 5);
        assert_eq!(axis.labelled(&points, 2_000.0).len(), 11);
        assert!(axis.labelled(&points, 150.0).len() < 8);
    }
}
