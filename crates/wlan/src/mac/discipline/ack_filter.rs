//! Which filter of TCP acknowledgements a queue has.

use alloc::boxed::Box;

use super::cake::{CakeFilter, Thinning};
use super::paper::PaperFilter;
use super::safe::SafeFilter;
use super::{BoxedDiscipline, Fifo, SegmentReader};

/// A filter of TCP acknowledgements. None of them touches packets with TACK's option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AckFilter {
    /// None: first in, first out.
    #[default]
    Off,
    /// That of the paper: [`PaperFilter`].
    Paper,
    /// That which loses no information: [`SafeFilter`].
    Safe,
    /// That of Linux's `sch_cake`, conservative: [`CakeFilter`].
    Cake,
    /// That of Linux's `sch_cake`, aggressive.
    CakeAggressive,
}

impl AckFilter {
    /// The discipline of a queue with this filter, which reads packets by `reader`.
    pub fn discipline<M, R>(self, reader: R) -> BoxedDiscipline<M>
    where
        R: SegmentReader<M> + 'static,
    {
        match self {
            Self::Off => Box::new(Fifo),
            Self::Paper => Box::new(PaperFilter::new(reader)),
            Self::Safe => Box::new(SafeFilter::new(reader)),
            Self::Cake => Box::new(CakeFilter::new(reader, Thinning::Conservative)),
            Self::CakeAggressive => Box::new(CakeFilter::new(reader, Thinning::Aggressive)),
        }
    }
}
