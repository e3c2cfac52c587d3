//! Which combinations of the axes' values are points.

use tack_base::random::RandomStream;
use tack_sim::ScenarioError;
use tack_sim::scenario::Reader;

use super::axis::Axis;
use crate::table::Cell;

/// How points are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sampling {
    /// Every combination; the last axis changes fastest.
    Grid,
    /// Independent draws.
    Random {
        /// How many.
        points: u64,
        /// Of the draws.
        seed: u64,
    },
    /// Each axis is cut into as many equal parts as there are points, and each part is used once.
    LatinHypercube {
        /// How many.
        points: u64,
        /// Of the draws.
        seed: u64,
    },
}

/// The value of each axis: what is set, and its cells.
pub(super) type Combination = Vec<(String, Vec<Cell>)>;

/// Most points of a plan.
pub(super) const MOST_POINTS: u64 = 100_000;

impl Sampling {
    /// Reads `[sampling]`.
    pub(super) fn read(table: Option<Reader<'_>>) -> Result<Self, ScenarioError> {
        #[derive(Clone, Copy, PartialEq, Eq)]
        enum Method {
            Grid,
            Random,
            LatinHypercube,
        }
        let Some(mut table) = table else {
            return Ok(Self::Grid);
        };
        let methods = [
            ("grid", Method::Grid),
            ("random", Method::Random),
            ("latin-hypercube", Method::LatinHypercube),
        ];
        let method = table.choice("method", &methods)?.unwrap_or(Method::Grid);
        let points = table.integer("points", 1, MOST_POINTS)?;
        let seed = table.integer("seed", 0, i64::MAX as u64)?;
        if method == Method::Grid {
            for key in ["points", "seed"] {
                table.refuse(
                    key,
                    "a grid has every combination; method = \"random\" or \"latin-hypercube\" draws points",
                )?;
            }
            table.finish()?;
            return Ok(Self::Grid);
        }
        let Some(points) = points else {
            return Err(table.fail_table("needs the number of points, such as points = 500"));
        };
        table.finish()?;
        let seed = seed.unwrap_or(1);
        Ok(match method {
            Method::LatinHypercube => Self::LatinHypercube { points, seed },
            _ => Self::Random { points, seed },
        })
    }

    /// How many points there are before equal ones are left out; `None` above the limit.
    pub(super) fn count(self, axes: &[Axis]) -> Option<u64> {
        let count = match self {
            Self::Grid => axes.iter().try_fold(1_u64, |product, axis| {
                product.checked_mul(axis.len() as u64)
            })?,
            Self::Random { points, .. } | Self::LatinHypercube { points, .. } => points,
        };
        (count <= MOST_POINTS).then_some(count)
    }

    /// Calls `each` with each combination, in order.
    pub(super) fn combinations<E>(
        self,
        axes: &[Axis],
        mut each: impl FnMut(Combination) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Grid => {
                let mut indices = vec![0; axes.len()];
                loop {
                    let values = axes.iter().zip(&indices);
                    each(values.map(|(axis, index)| axis.at(*index)).collect())?;
                    let Some(place) = (0..axes.len())
                        .rev()
                        .find(|place| indices[*place] + 1 < axes[*place].len())
                    else {
                        return Ok(());
                    };
                    indices[place] += 1;
                    indices[place + 1..].fill(0);
                }
            }
            Self::Random { points, seed } => {
                // A stream for each axis: one more axis leaves the values of the others.
                let mut streams: Vec<_> = axes
                    .iter()
                    .map(|axis| RandomStream::new(seed, &axis.keys[0], 0))
                    .collect();
                for _ in 0..points {
                    let values = axes.iter().zip(&mut streams);
                    each(
                        values
                            .map(|(axis, stream)| axis.share(stream.unit()))
                            .collect(),
                    )?;
                }
                Ok(())
            }
            Self::LatinHypercube { points, seed } => {
                let shares: Vec<Vec<f64>> = axes
                    .iter()
                    .map(|axis| strata(points, RandomStream::new(seed, &axis.keys[0], 1)))
                    .collect();
                for point in 0..points as usize {
                    let values = axes.iter().zip(&shares);
                    each(
                        values
                            .map(|(axis, shares)| axis.share(shares[point]))
                            .collect(),
                    )?;
                }
                Ok(())
            }
        }
    }
}

/// A value in each of `count` equal parts of 0 to 1, in random order.
fn strata(count: u64, mut stream: RandomStream) -> Vec<f64> {
    let mut parts: Vec<u64> = (0..count).collect();
    for last in (1..parts.len()).rev() {
        parts.swap(last, stream.below(last as u64 + 1) as usize);
    }
    parts
        .into_iter()
        .map(|part| (part as f64 + stream.unit()) / count as f64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_used_once() {
        let mut shares = strata(50, RandomStream::new(1, "wired.delay", 1));
        assert!(!shares.is_sorted(), "in random order");
        shares.sort_by(f64::total_cmp);
        for (part, share) in shares.iter().enumerate() {
            assert_eq!((share * 50.0) as usize, part);
        }
    }
}
