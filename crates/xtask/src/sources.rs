//! The Rust sources of the workspace, and what in them is code and what is comment.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use walkdir::WalkDir;

/// One source file.
pub(crate) struct Source {
    /// Path below the workspace root.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Every `.rs` file below `folder` (itself below `root`), in path order.
pub(crate) fn below(root: &Path, folder: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let walk = WalkDir::new(root.join(folder)).sort_by_file_name();
    for entry in walk
        .into_iter()
        .filter_entry(|entry| entry.file_name() != "target")
    {
        let entry = entry?;
        if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "rs")
        {
            let text = fs::read_to_string(entry.path())
                .with_context(|| format!("cannot read {}", entry.path().display()))?;
            let path = entry
                .path()
                .strip_prefix(root)
                .unwrap_or(entry.path())
                .to_owned();
            sources.push(Source { path, text });
        }
    }
    Ok(sources)
}

/// The line cut at where its comment starts: (code, comment text without slashes).
///
/// Lines only, no lexer: two slashes inside a string count as a comment, which is fine for what is
/// looked for here. Block comments are not used in this workspace.
pub(crate) fn split_comment(line: &str) -> (&str, Option<&str>) {
    match line.find("//") {
        Some(at) => (
            &line[..at],
            Some(line[at..].trim_start_matches(['/', '!']).trim()),
        ),
        None => (line, None),
    }
}
