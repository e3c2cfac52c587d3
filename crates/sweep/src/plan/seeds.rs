//! Seeds of a point, and when they are enough.

use tack_sim::ScenarioError;
use tack_sim::parse_seeds;
use tack_sim::scenario::{Reader, Value};

use tack_stats::Estimate;

/// Which seeds each point is run with.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Seeds {
    /// These.
    Fixed(Vec<u64>),
    /// As many as an interval needs.
    Until(Rule),
}

/// Runs seeds 1, 2, … until the 95 % interval of a column's mean is narrow.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Rule {
    /// The column.
    pub(crate) column: String,
    /// Half the interval, in parts of the mean, at most.
    pub(crate) within: f64,
    /// Seeds that are always run, at least 2.
    pub(crate) min: u64,
    /// Seeds that are never exceeded.
    pub(crate) max: u64,
}

/// Most seeds of a point.
const MOST: u64 = 100_000;

impl Seeds {
    /// Reads `seeds` of a plan: a number, a text as `--seeds` takes it, a list, or a table.
    pub(super) fn read(plan: &mut Reader<'_>) -> Result<Self, ScenarioError> {
        const FORMS: &str = "expected a number of seeds (5), a text (\"1..5\"), a list ([1, 5, 9]), or a \
                             table [seeds] with column, within, min and max";
        let Some(item) = plan.item("seeds").cloned() else {
            return Ok(Self::Fixed(vec![1]));
        };
        let wrong = |plan: &Reader<'_>| plan.fail("seeds", FORMS);
        let seeds = match &item.value {
            Value::Integer(count) => match u64::try_from(*count) {
                Ok(count @ 1..=MOST) => (1..=count).collect(),
                _ => {
                    return Err(
                        plan.fail("seeds", format!("expected 1 to {MOST} seeds, got {count}"))
                    );
                }
            },
            Value::Text(text) => {
                parse_seeds(text).map_err(|error| plan.fail("seeds", error.to_string()))?
            }
            Value::Array(items) => {
                let seeds = items.iter().map(|item| match item.value {
                    Value::Integer(seed) => u64::try_from(seed).ok(),
                    _ => None,
                });
                let seeds: Option<Vec<u64>> = seeds.collect();
                seeds.ok_or_else(|| wrong(plan))?
            }
            Value::Table(_) => {
                let Some(table) = plan.table("seeds")? else {
                    return Err(wrong(plan));
                };
                return Rule::read(table).map(Self::Until);
            }
            _ => return Err(wrong(plan)),
        };
        if seeds.is_empty() || seeds.len() as u64 > MOST {
            return Err(plan.fail(
                "seeds",
                format!("expected 1 to {MOST} seeds, got {}", seeds.len()),
            ));
        }
        if let Some(seed) = seeds.iter().find(|seed| i64::try_from(**seed).is_err()) {
            return Err(plan.fail("seeds", format!("{seed} is more than 63 bits")));
        }
        let mut sorted = seeds.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() < seeds.len() {
            return Err(plan.fail("seeds", "a seed stands there twice"));
        }
        Ok(Self::Fixed(seeds))
    }

    /// Seed number `index` of a point.
    pub(crate) fn at(&self, index: usize) -> Option<u64> {
        match self {
            Self::Fixed(seeds) => seeds.get(index).copied(),
            Self::Until(rule) => Some(index as u64 + 1).filter(|seed| *seed <= rule.max),
        }
    }

    /// How many seeds a point has at least, and at most.
    pub(crate) fn bounds(&self) -> (usize, usize) {
        match self {
            Self::Fixed(seeds) => (seeds.len(), seeds.len()),
            Self::Until(rule) => (rule.min as usize, rule.max as usize),
        }
    }

    /// How many seeds a point needs. `measured` gives what the column has for a seed by its number:
    /// `None` for one that was not run yet, and not a number where the run has no value.
    pub(crate) fn needed(&self, measured: impl Fn(usize) -> Option<f64>) -> usize {
        match self {
            Self::Fixed(seeds) => seeds.len(),
            Self::Until(rule) => rule.needed(measured),
        }
    }
}

impl Rule {
    fn read(mut table: Reader<'_>) -> Result<Self, ScenarioError> {
        let Some(column) = table.text("column")? else {
            return Err(table.fail_table(
                "needs the column whose interval is to become narrow, such as column = \"goodput_bps\"",
            ));
        };
        let Some(text) = table.text("within")? else {
            return Err(
                table.fail_table("needs the width of the interval, such as within = \"2%\"")
            );
        };
        let percent = text.trim().strip_suffix('%').map(str::trim_end);
        let percent = percent.and_then(|number| number.parse::<f64>().ok());
        let Some(percent) = percent.filter(|percent| (0.01..=100.0).contains(percent)) else {
            return Err(table.fail(
                "within",
                format!("{text:?} is not a percentage from 0.01% to 100%; write it like \"2%\""),
            ));
        };
        let min = table.integer("min", 2, MOST)?.unwrap_or(3);
        let max = table.integer("max", 2, MOST)?.unwrap_or(min.max(30));
        if max < min {
            return Err(table.fail("max", format!("must be at least min, which is {min}")));
        }
        table.finish()?;
        Ok(Self {
            column,
            within: percent / 100.0,
            min,
            max,
        })
    }

    /// A pure function of the values in the order of their seeds, so that neither the order in
    /// which runs end nor an interruption changes which seeds are run.
    fn needed(&self, measured: impl Fn(usize) -> Option<f64>) -> usize {
        let (mut count, max) = (self.min as usize, self.max as usize);
        loop {
            let values: Option<Vec<f64>> = (0..count).map(&measured).collect();
            let Some(values) = values else {
                return count;
            };
            let estimate = Estimate::of(&values);
            let allowed = self.within * estimate.mean.abs();
            if estimate.half_width <= allowed || count >= max {
                return count;
            }
            // The width falls with the root of the number. At most twice as many at once: the
            // first spread is a rough one.
            let ratio = estimate.half_width / allowed;
            let guess = (count as f64 * ratio * ratio).ceil();
            let guess = if guess.is_finite() { guess as usize } else { 0 };
            count = guess.clamp(count + 1, 2 * count).min(max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> Rule {
        Rule {
            column: "goodput_bps".into(),
            within: 0.1,
            min: 3,
            max: 20,
        }
    }

    #[test]
    fn equal_values_need_no_more_seeds() {
        assert_eq!(rule().needed(|_| None), 3);
        assert_eq!(rule().needed(|index| (index < 2).then_some(5.0)), 3);
        assert_eq!(rule().needed(|_| Some(5.0)), 3);
    }

    #[test]
    fn spread_values_need_more_up_to_the_limit() {
        let spread = |index: usize| 10.0 + (index % 2) as f64;
        let first = rule().needed(|index| (index < 3).then(|| spread(index)));
        assert!((4..=6).contains(&first), "{first}");
        let all = rule().needed(|index| Some(spread(index)));
        assert!(all >= first && all < 20, "{all}");
        let values: Vec<f64> = (0..all).map(spread).collect();
        let estimate = Estimate::of(&values);
        assert!(estimate.half_width <= 0.1 * estimate.mean);
        assert_eq!(rule().needed(|index| Some((index % 2) as f64)), 20);
        assert_eq!(
            rule().needed(|_| Some(f64::NAN)),
            20,
            "no value, no interval"
        );
    }
}
