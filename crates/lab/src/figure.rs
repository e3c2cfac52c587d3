//! Figures: the plan of each, and the reduction of its results.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::Verdict;
use crate::claim::Claim;
use crate::point::Point;
use crate::recorded::Recorded;
use crate::results::Results;

/// How much of a figure is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The cells that say most, with few seeds: all figures within minutes.
    Quick,
    /// Every cell, with seeds enough for narrow intervals.
    Full,
}

/// An extent, seeds where the figure's own number is not wanted, and what the user brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Which cells are run.
    pub extent: Extent,
    /// How many seeds each cell gets; the figure decides unless given.
    pub seeds: Option<u64>,
    /// Recorded link traces, for the figures that use some.
    pub recorded: Option<Arc<Recorded>>,
    /// The parts of a figure in real time that are run; all where there are none. Claims are about
    /// whatever was measured.
    pub only: Vec<Only>,
    /// Of the figure in real time only paths with this in their name are run.
    pub path: Option<String>,
}

/// A part of the figure in real time: what some of its claims need, or a link. Parts of the same
/// kind add up, and of those of different kinds both must fit: [`Self::Gro`], [`Self::G`] and
/// [`Self::N`] together are the first one over two links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// This stack without TACK beside the kernel's TCP as it is.
    Gro,
    /// This stack without TACK, segment by segment, beside the kernel's TCP without receive
    /// offload.
    NoGro,
    /// The kernel's TCP without receive offload, to iperf3 and to a program that reads seldom.
    Reads,
    /// TACK beside the kernel's TCP and QUIC.
    Quic,
    /// The link of 802.11g.
    G,
    /// That of 802.11n.
    N,
    /// That of 802.11ac.
    Ac,
    /// Paths without a radio: one in the quick form, all in the full form.
    Wired,
    /// All paths that the Pantheon calibrated, in the quick form too.
    Pantheon,
}

impl Only {
    /// All: claims, then links.
    pub const ALL: [Self; 9] = [
        Self::Gro,
        Self::NoGro,
        Self::Reads,
        Self::Quic,
        Self::G,
        Self::N,
        Self::Ac,
        Self::Wired,
        Self::Pantheon,
    ];

    /// What `--only` calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gro => "gro",
            Self::NoGro => "no-gro",
            Self::Reads => "reads",
            Self::Quic => "quic",
            Self::G => "g",
            Self::N => "n",
            Self::Ac => "ac",
            Self::Wired => "wired",
            Self::Pantheon => "pantheon",
        }
    }

    /// Whether it is a link.
    pub(crate) const fn is_link(self) -> bool {
        matches!(
            self,
            Self::G | Self::N | Self::Ac | Self::Wired | Self::Pantheon
        )
    }
}

impl Depth {
    /// The quick form.
    pub const fn quick() -> Self {
        Self {
            extent: Extent::Quick,
            seeds: None,
            recorded: None,
            only: Vec::new(),
            path: None,
        }
    }

    /// The full form.
    pub const fn full() -> Self {
        Self {
            extent: Extent::Full,
            seeds: None,
            recorded: None,
            only: Vec::new(),
            path: None,
        }
    }

    /// One of two, by extent.
    pub(crate) fn pick<T>(&self, quick: T, full: T) -> T {
        match self.extent {
            Extent::Quick => quick,
            Extent::Full => full,
        }
    }

    /// Seeds of a cell: from 1, as many as asked for, else by extent.
    pub(crate) fn seeds(&self, quick: u64, full: u64) -> RangeInclusive<u64> {
        1..=self.seeds.unwrap_or(self.pick(quick, full))
    }

    /// The options of `tack lab run` that mean this.
    pub fn options(&self) -> String {
        let extent = self.pick("--quick", "--full");
        let mut options = extent.to_owned();
        if let Some(seeds) = self.seeds {
            options += &format!(" --seeds {seeds}");
        }
        if !self.only.is_empty() {
            let names: Vec<_> = self.only.iter().map(|part| part.name()).collect();
            options += &format!(" --only {}", names.join(","));
        }
        if let Some(path) = &self.path {
            options += &format!(" --path '{path}'");
        }
        options
    }

    /// Whether a part of this kind is run.
    pub(crate) fn has(&self, part: Only) -> bool {
        let mut alike = self.only.iter().filter(|it| it.is_link() == part.is_link());
        let fits = |it: &Only| *it == part || (*it, part) == (Only::Pantheon, Only::Wired);
        alike.clone().next().is_none() || alike.any(fits)
    }
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// "TACK: Improving Wireless Transport Performance by Taming Acknowledgments" (SIGCOMM 2020).
    Tack,
    /// "TCP/HACK: Hierarchical acknowledgment" (ATC 2014).
    Hack,
    /// "On the cross-layer impact of TCP ACK thinning on IEEE 802.11 wireless MAC dynamics" (VTC
    /// 2006).
    Filter,
    /// None of them: all mechanisms on the same medium.
    Joint,
    /// Nor this: other transports on the same links.
    Stacks,
}

impl Paper {
    /// All, in reading order.
    pub const ALL: [Self; 5] = [
        Self::Tack,
        Self::Hack,
        Self::Filter,
        Self::Joint,
        Self::Stacks,
    ];

    /// What it is called in headings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tack => "TACK",
            Self::Hack => "TCP/HACK",
            Self::Filter => "ACK filtering",
            Self::Joint => "All mechanisms",
            Self::Stacks => "Other transports",
        }
    }

    /// What the names of its figures begin with.
    fn prefix(self) -> &'static str {
        match self {
            Self::Tack | Self::Joint | Self::Stacks => "",
            Self::Hack => "hack",
            Self::Filter => "filter",
        }
    }
}

/// A figure of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Which paper it is of.
    pub paper: Paper,
    /// What it is called: as in the paper of TACK (`5b`), with the name of the mechanism before it
    /// for the others (`hack10`, `filter6`).
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What is measured, how, and what differs from the paper's set-up.
    pub about: &'static str,
    pub(crate) plan: fn(&Depth) -> Vec<Point>,
    pub(crate) reduce: fn(&Depth, &Results) -> Outcome,
}

impl Figure {
    /// Its heading without its title: `Figure 5b`, `TCP/HACK, table 2`.
    pub fn heading(&self) -> String {
        let number = self.id.strip_prefix(self.paper.prefix()).unwrap_or(self.id);
        let number = match (number, number.strip_prefix("table")) {
            ("cross", _) => "cross-validation".into(),
            (_, Some(number)) => format!("table {number}"),
            (_, None) => format!("figure {number}"),
        };
        match self.paper {
            Paper::Tack => format!("Figure {}", self.id),
            Paper::Joint | Paper::Stacks => self.paper.name().into(),
            Paper::Hack | Paper::Filter => format!("{}, {number}", self.paper.name()),
        }
    }

    /// Whether `name` means this figure: `5b` is also `5(b)`, `Fig. 5(b)` and `figure 5B`. Figure
    /// 12 is the drawing of figure 13's topology.
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let number = name
            .strip_prefix("figure")
            .or_else(|| name.strip_prefix("fig"))
            .unwrap_or(&name);
        let number: String = number
            .chars()
            .filter(|character| !matches!(character, '.' | ' ' | '(' | ')' | '-'))
            .collect();
        number.eq_ignore_ascii_case(self.id)
            || (self.id == "13" && matches!(number.as_str(), "12" | "12/13"))
    }

    /// The runs it wants, each once.
    pub fn plan(&self, depth: &Depth) -> Vec<Point> {
        let mut seen = BTreeSet::new();
        let mut plan = (self.plan)(depth);
        plan.retain(|point| seen.insert(point.key()));
        plan
    }

    /// Whether its runs take place in real time.
    pub fn is_real_time(&self) -> bool {
        self.paper == Paper::Stacks
    }

    /// Whether its report can be made: every run has been done, or, in real time, some. Claims
    /// whose runs are missing then are named, not made.
    pub fn is_reported(&self, depth: &Depth, results: &Results) -> bool {
        let plan = self.plan(depth);
        match self.is_real_time() {
            true => plan.iter().any(|point| results.has(point)),
            false => plan.iter().all(|point| results.has(point)),
        }
    }

    /// Whether every run it wants has been done.
    pub fn is_complete(&self, depth: &Depth, results: &Results) -> bool {
        self.plan(depth).iter().all(|point| results.has(point))
    }

    /// Plots, numbers and claims from results. A missing result is NaN, and fails its claims.
    pub fn reduce(&self, depth: &Depth, results: &Results) -> Outcome {
        (self.reduce)(depth, results)
    }
}

/// The results of a figure, reduced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// In reading order.
    pub plots: Vec<Plot>,
    /// Checked, in reading order.
    pub claims: Vec<Claim>,
    /// Every number behind the plots.
    pub numbers: Table,
    /// Further tables, of parts of a figure that are listed apart.
    pub further: Vec<Table>,
    /// What was not measured, and how it can be.
    pub notes: Vec<String>,
}

/// A plot with its caption.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The plot, drawn.
    pub svg: tack_plot::Svg,
    /// What to see.
    pub caption: String,
}

/// Numbers as texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Which part of the figure it is of, where it has several.
    pub part: &'static str,
    /// Names of the columns.
    pub head: Vec<String>,
    /// Rows as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(head: [&str; N]) -> Self {
        Self {
            head: head.map(String::from).to_vec(),
            ..Self::default()
        }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }
}

impl Outcome {
    /// Every table, the one of all numbers first.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        std::iter::once(&self.numbers).chain(&self.further)
    }

    /// Claims that do not hold and have no excuse.
    pub fn failures(&self) -> impl Iterator<Item = &Claim> {
        self.claims
            .iter()
            .filter(|claim| claim.verdict() == Verdict::Fail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FIGURES;

    #[test]
    fn without_results_no_claim_holds() {
        for figure in FIGURES {
            for depth in [Depth::quick(), Depth::full()] {
                let outcome = figure.reduce(&depth, &Results::default());
                assert!(!outcome.claims.is_empty(), "{}", figure.id);
                if figure.plan(&depth).is_empty() {
                    // A closed form, which needs no run.
                    continue;
                }
                for claim in outcome.claims {
                    assert_eq!(
                        claim.verdict(),
                        Verdict::Fail,
                        "{}: {}",
                        figure.id,
                        claim.words
                    );
                }
            }
        }
    }

    #[test]
    fn a_plan_has_each_run_once() {
        for figure in FIGURES {
            let plan = figure.plan(&Depth::quick());
            let keys: BTreeSet<_> = plan.iter().map(Point::key).collect();
            assert_eq!(keys.len(), plan.len(), "{}", figure.id);
        }
    }

    #[test]
    fn figures_have_several_names() {
        let called = |name: &str| -> Vec<_> {
            FIGURES
                .iter()
                .filter(|figure| figure.is_called(name))
                .map(|figure| figure.id)
                .collect()
        };
        for name in ["5b", "5(b)", "5B", "Fig. 5(b)", "figure 5b", "fig5b"] {
            assert_eq!(called(name), ["5b"], "{name}");
        }
        assert_eq!(called("12"), ["13"]);
        assert_eq!(called("12/13"), ["13"]);
        assert_eq!(called("s1"), ["S1"]);
        for name in ["", "fig", "2", "5", "5bb", "(1)1a"] {
            assert!(called(name).is_empty(), "{name}");
        }
        for figure in FIGURES {
            assert_eq!(called(figure.id), [figure.id]);
        }
    }
}
