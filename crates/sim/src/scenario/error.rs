//! Errors in scenarios, with their places.

use std::fmt;

/// A scenario that cannot be run. Names file, line, key and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// File name as given, or `--set` for an override.
    pub source: String,
    /// Line, counted from 1; `None` for an override and for a key that is missing altogether.
    pub line: Option<usize>,
    /// Dotted key, such as `flow.0.ack`; empty when the whole file cannot be read.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ScenarioError {}
