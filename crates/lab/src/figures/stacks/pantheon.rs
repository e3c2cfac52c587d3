//! The paths that the Pantheon calibrated, together: each is one sample, so that few runs of each
//! decide.

use tack_stats::{Estimate, Finding};

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
        let has = |path: &Route| ways.iter().all(|way| measured.has(*path, *way));
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

    /// `words` begin after the names of the two ways.
    fn claim(
        &self,
        words: &str,
        of: fn(&Values) -> f64,
        finding: fn(&Estimate) -> Finding,
    ) -> Stated {
        let change = self.change(of);
        let [first, second] = self.ways.map(|way| WAYS[way].name);
        let each = |path: &Route| {
            let change = self.measured.change(*path, self.ways, of).mean;
            format!("{} {change:+.1} %", path.name)
        };
        let each: Vec<_> = self.paths.iter().map(each).collect();
        let claim = Claim::new(
            format!("The Pantheon's paths, {first} beside {second}: {words}"),
            "–",
            format!("{change} % on {} paths: {}", each.len(), each.join("; ")),
            self.measured
                .judged(&self.paths, &self.ways, finding(&change)),
        );
        Stated {
            claim,
            is_made: self.paths.len() >= LEAST,
        }
    }

    fn same_goodput(&self) -> Stated {
        self.claim("the same goodput, to 5 %", goodput, |change| {
            change.is_within(-GOODPUT..=GOODPUT)
        })
    }

    fn same_acks(&self) -> Stated {
        self.claim(
            "as many acknowledgements for each data packet, to 10 %",
            acks,
            |change| change.is_within(-ACKS..=ACKS),
        )
    }

    fn no_slower(&self) -> Stated {
        self.claim("no less goodput (by at most 2 %)", goodput, |change| {
            change.is_at_least(-2.0)
        })
    }

    fn half_the_acks(&self) -> Stated {
        self.claim("at most half as many acknowledgements", acks, |change| {
            change.is_at_most(-50.0)
        })
    }
}
