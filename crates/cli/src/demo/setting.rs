//! What the demonstration runs.

/// What is run, in words, for table, page and JSON.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) link: String,
    pub(crate) content: String,
    pub(crate) congestion: String,
    pub(crate) bytes: u64,
    pub(crate) hash: String,
    /// What is compared.
    pub(crate) mechanisms: Vec<String>,
}
