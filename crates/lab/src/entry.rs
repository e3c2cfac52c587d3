//! A figure together with what was measured of it.

use crate::figure::{Depth, Figure, Outcome};

/// A figure, and what was measured of it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The figure.
    pub figure: Figure,
    /// How deep it was measured.
    pub depth: Depth,
    /// What came of it; `None` when it has not been run.
    pub outcome: Option<Outcome>,
}

impl Entry {
    /// The command that measures it.
    pub(crate) fn command(&self) -> String {
        let plan = self.figure.plan(&self.depth);
        let traces = if plan.iter().any(crate::Point::needs_recordings) {
            " --traces DIR"
        } else {
            ""
        };
        let options = self.depth.options();
        format!("tack lab run {} {options}{traces}", self.figure.id)
    }
}
