//! Claims of figures, in words and checked.

use tack_stats::Finding;

/// A statement of the paper, with its number and ours, and whether it holds here.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The statement.
    pub words: String,
    /// The paper's number.
    pub paper: String,
    /// Ours, with its confidence interval where it has one.
    pub ours: String,
    finding: Finding,
    calibrated: bool,
    deviation: Option<Deviation>,
}

/// A known difference from the paper.
#[derive(Clone, Debug, PartialEq)]
struct Deviation {
    reason: String,
    /// Whether the numbers are where the reason puts them.
    as_known: Finding,
    is_explained: bool,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// It holds.
    Pass,
    /// It holds because parameters were chosen so that it does: it confirms nothing.
    Calibrated,
    /// It does not hold, for a known reason, and the numbers are where that reason puts them.
    Deviation(&'a str),
    /// It does not hold, and why is not known: what was measured about it.
    Unexplained(&'a str),
    /// The interval has the claim's bound within it, so that more runs have to decide: what the
    /// means say.
    Inconclusive(&'a str),
    /// It does not hold.
    Fail,
}

impl Claim {
    /// A claim that holds as far as `finding` says.
    pub fn new(
        words: impl Into<String>,
        paper: impl Into<String>,
        ours: impl Into<String>,
        finding: impl Into<Finding>,
    ) -> Self {
        Self {
            words: words.into(),
            paper: paper.into(),
            ours: ours.into(),
            finding: finding.into(),
            calibrated: false,
            deviation: None,
        }
    }

    /// Excuses a claim that is refuted for `reason`, as long as the numbers are `as_known`.
    #[must_use]
    pub fn or(self, reason: impl Into<String>, as_known: impl Into<Finding>) -> Self {
        self.or_deviation(reason.into(), as_known.into(), true)
    }

    /// Lets a claim be refuted without a reason, as long as the numbers are `as_known`: `measured`
    /// says what was found out, and what was not.
    #[must_use]
    pub fn or_unexplained(self, measured: impl Into<String>, as_known: impl Into<Finding>) -> Self {
        self.or_deviation(measured.into(), as_known.into(), false)
    }

    fn or_deviation(mut self, reason: String, as_known: Finding, is_explained: bool) -> Self {
        self.deviation = Some(Deviation {
            reason,
            as_known,
            is_explained,
        });
        self
    }

    /// Says that parameters were chosen so that the claim holds.
    #[must_use]
    pub fn calibrated(mut self) -> Self {
        self.calibrated = true;
        self
    }

    /// What was found, apart from excuses.
    pub(crate) const fn finding(&self) -> Finding {
        self.finding
    }

    /// What became of it. An interval that does not decide comes first: neither a mean nor an
    /// excuse replaces it.
    pub fn verdict(&self) -> Verdict<'_> {
        let Finding { holds, is_decided } = self.finding;
        match &self.deviation {
            _ if !is_decided => Verdict::Inconclusive(match holds {
                true => "By its mean the claim holds.",
                false => "By its mean the claim does not hold.",
            }),
            _ if holds && self.calibrated => Verdict::Calibrated,
            _ if holds => Verdict::Pass,
            Some(deviation) if !deviation.as_known.is_decided => Verdict::Inconclusive(
                "The claim does not hold. Whether its reason does is not decided.",
            ),
            Some(deviation) if !deviation.as_known.holds => Verdict::Fail,
            Some(deviation) if deviation.is_explained => Verdict::Deviation(&deviation.reason),
            Some(deviation) => Verdict::Unexplained(&deviation.reason),
            None => Verdict::Fail,
        }
    }
}

impl<'a> Verdict<'a> {
    /// Every verdict, without its reason, from the best.
    pub const ALL: [Verdict<'static>; 6] = [
        Verdict::Pass,
        Verdict::Calibrated,
        Verdict::Deviation(""),
        Verdict::Unexplained(""),
        Verdict::Inconclusive(""),
        Verdict::Fail,
    ];

    /// Its name, in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Calibrated => "calibrated",
            Self::Deviation(_) => "deviation",
            Self::Unexplained(_) => "unexplained",
            Self::Inconclusive(_) => "inconclusive",
            Self::Fail => "fail",
        }
    }

    /// Why the claim does not hold, or is not decided, as far as that is known; else empty.
    pub fn reason(self) -> &'a str {
        match self {
            Self::Deviation(reason) | Self::Unexplained(reason) | Self::Inconclusive(reason) => {
                reason
            }
            Self::Pass | Self::Calibrated | Self::Fail => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tack_stats::Estimate;

    /// An estimate that is surely positive, perhaps, perhaps not, surely not.
    fn estimates() -> [Estimate; 4] {
        [(2.0, 1.0), (0.5, 1.0), (-0.5, 1.0), (-2.0, 1.0)].map(|(mean, half_width)| Estimate {
            mean,
            half_width,
            count: 3,
        })
    }

    fn findings() -> [Finding; 4] {
        estimates().map(|one| one.is_above(0.0))
    }

    fn claim(finding: impl Into<Finding>) -> Claim {
        Claim::new("faster", "2", "1", finding)
    }

    #[test]
    fn an_excuse_counts_only_within_its_bounds() {
        assert_eq!(claim(true).verdict(), Verdict::Pass);
        assert_eq!(claim(false).verdict(), Verdict::Fail);
        assert_eq!(claim(true).or("ideal air", false).verdict(), Verdict::Pass);
        assert_eq!(
            claim(false).or("ideal air", true).verdict(),
            Verdict::Deviation("ideal air")
        );
        assert_eq!(claim(false).or("ideal air", false).verdict(), Verdict::Fail);
    }

    #[test]
    fn an_interval_that_does_not_decide_neither_passes_nor_fails() {
        let verdicts = findings().map(|finding| claim(finding).verdict().name());
        assert_eq!(verdicts, ["pass", "inconclusive", "inconclusive", "fail"]);
        let [_, rather, rather_not, _] = findings();
        assert_ne!(
            claim(rather).verdict().reason(),
            claim(rather_not).verdict().reason()
        );
    }

    #[test]
    fn nothing_excuses_what_is_not_decided() {
        for finding in &findings()[1..3] {
            for claim in [
                claim(*finding).or("ideal air", true),
                claim(*finding).or("ideal air", false),
                claim(*finding).or_unexplained("not the air", true),
                claim(*finding).calibrated(),
            ] {
                assert_eq!(claim.verdict().name(), "inconclusive");
            }
        }
    }

    #[test]
    fn an_excuse_that_is_not_decided_excuses_nothing() {
        let names = findings().map(|reason| claim(false).or("air", reason).verdict().name());
        assert_eq!(names, ["deviation", "inconclusive", "inconclusive", "fail"]);
    }

    #[test]
    fn a_difference_without_a_reason_is_called_so() {
        let verdict = |as_known: bool| {
            let claim = claim(false).or_unexplained("not the air", as_known);
            claim.verdict().name()
        };
        assert_eq!((verdict(true), verdict(false)), ("unexplained", "fail"));
    }

    #[test]
    fn what_was_calibrated_passes_nothing_and_may_fail() {
        let claim = |holds: bool| claim(holds).calibrated();
        assert_eq!(claim(true).verdict(), Verdict::Calibrated);
        assert_eq!(claim(false).verdict(), Verdict::Fail);
    }
}
