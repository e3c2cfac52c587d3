//! Files that a scenario names.

/// Gives the text of a file by the name that stands in the scenario, or says why not, with the
/// path.
pub type Files<'a> = &'a dyn Fn(&str) -> Result<String, String>;
