//! The paths that the Pantheon calibrated, together: each is one sample, so that few runs of each
//! decide the mean over them. How many paths are outside of a bound by themselves is said beside it.

use std::ops::RangeInclusive;

use tack_stats::Estimate;

use super::legacy::{ACKS, GOODPUT, PAIRS};
use super::measured::{Measured, Stated, acks, goodput};
use super::ways::{
    KERNEL_BBR, QUINN_BBR, QUINN_CUBIC, QUINN_FEWER, QUINN_FEWER_BBR, Route, TACK, WAYS, pantheon,
};
use crate::claim::Claim;
use crate::measure::Values;

/// With fewer paths nothing is claimed about them together.
const LEAST: usize = 9;

pub(super) fn claims(measured: &Measured<'_>) -> Vec<Stated> {
    let mut claims = Vec::new();
    for pair in &PAIRS {
        for ways in [pair.joined, pair.single] {
            let compared = Compared::new(measured, ways);
            claims.extend([compared.same_goodput(), compared.same_acks()]);
        }
    }
    for ways in [
        [TACK, KERNEL_BBR],
        [TACK, QUINN_BBR],
        [QUINN_FEWER, QUINN_CUBIC],
        [QUINN_FEWER_BBR, QUINN_BBR],
    ] {
        let compared = Compared::new(measured, ways);
        claims.extend([compared.no_slower(), compared.half_the_acks()]);
    }
    claims
}

/// Two ways on the paths where both were run.
struct Compared<'a> {
    measured: &'a Measured<'a>,
    ways: [usize; 2],
    paths: Vec<Route>,
}

impl<'a> Compared<'a> {
    fn new(measured: &'a Measured<'a>, ways: [usize; 2]) -> Self {
        // Some seed of both.
        let has = |path: &Route| {
            let both = measured.compare(*path, ways, |_, _| 1.0);
            both.mean == 1.0
        };
        Self {
            measured,
            ways,
            paths: pantheon().filter(has).collect(),
        }
    }

    /// By how many percent the first way has more, path by path.
    fn change(&self, of: fn(&Values) -> f64) -> Estimate {
        let each = self.paths.iter();
        let each = each.map(|path| self.measured.change(*path, self.ways, of).mean);
        Estimate::of(&each.collect::<Vec<_>>())
    }

    /// That the change of `of`, on the mean over the paths, is within `bounds`, percent. `words` say
    /// that of the first way beside the second one.
    fn claim(&self, words: &str, of: fn(&Values) -> f64, bounds: RangeInclusive<f64>) -> Stated {
        let change = self.change(of);
        let [first, second] = self.ways.map(|way| WAYS[way].name);
        let each = self.paths.iter();
        let each = each.map(|path| (path.name, self.measured.change(*path, self.ways, of).mean));
        let outside: Vec<_> = each
            .filter(|(_, change)| !bounds.contains(change))
            .map(|(name, change)| format!("{name} {change:+.1} %"))
            .collect();
        let finding = change.is_within(bounds);
        let claim = Claim::new(
            format!(
                "The Pantheon's paths, {first} beside {second}: on the mean over them, {words}"
            ),
            "–",
            format!(
                "{change} % over {} paths; outside by themselves {}: {}",
                self.paths.len(),
                outside.len(),
                outside.join("; ")
            ),
            self.measured.judged(&self.paths, &self.ways, finding),
        );
        Stated {
            claim,
            is_made: self.paths.len() >= LEAST,
        }
    }

    fn same_goodput(&self) -> Stated {
        let words = format!("the same goodput, to {GOODPUT} %");
        self.claim(&words, goodput, -GOODPUT..=GOODPUT)
    }

    fn same_acks(&self) -> Stated {
        let words = format!("as many acknowledgements for each data packet, to {ACKS} %");
        self.claim(&words, acks, -ACKS..=ACKS)
    }

    fn no_slower(&self) -> Stated {
        let words = "no less goodput (by at most 2 %)";
        self.claim(words, goodput, -2.0..=f64::INFINITY)
    }

    fn half_the_acks(&self) -> Stated {
        let words = "at most half as many acknowledgements";
        self.claim(words, acks, f64::NEG_INFINITY..=-50.0)
    }
}
