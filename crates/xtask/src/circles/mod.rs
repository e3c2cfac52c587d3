//! Circles of files: files of one crate that need each other, so that none is understood alone.
//!
//! A file needs another if its code outside tests names an item of it, in a `use` or in a path.
//! Re-exports are followed to the file that defines the item. A parent that re-exports its
//! children's items does not need them; it does if its own code names them. Methods that a child
//! adds to its parent's type are not seen: no path names them.

mod graph;
mod modules;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use graph::{Edge, Graph};
use modules::Modules;

/// The imports that close circles today, one a line: `file -> file`. The list may only get shorter.
const KNOWN: &str = include_str!("known.txt");

/// What is wrong with the circles of the crates with these roots, which are below `root`.
pub(crate) fn problems(root: &Path, crate_roots: &[PathBuf]) -> Result<Vec<String>> {
    problems_beyond(KNOWN, root, crate_roots)
}

fn problems_beyond(known: &str, root: &Path, crate_roots: &[PathBuf]) -> Result<Vec<String>> {
    let known = read_known(known);
    let mut problems = Vec::new();
    let mut closing = BTreeSet::new();
    for crate_root in crate_roots {
        let graph = Graph::of(&Modules::read(crate_root)?);
        for circle in graph.circles() {
            let edges: Vec<&Edge> = graph
                .needs
                .keys()
                .filter(|(from, to)| {
                    circle.contains(from.as_path()) && circle.contains(to.as_path())
                })
                .collect();
            let relative: Vec<Edge> = edges
                .iter()
                .map(|(from, to)| (below(root, from), below(root, to)))
                .collect();
            if relative.iter().any(|edge| !known.contains(edge)) {
                problems.push(describe(root, &graph, &circle, &edges, &known));
            }
            closing.extend(relative);
        }
    }
    for (from, to) in known.difference(&closing) {
        problems.push(format!(
            "crates/xtask/src/circles/known.txt: remove the line `{} -> {}`, which closes no circle any more",
            from.display(),
            to.display()
        ));
    }
    Ok(problems)
}

/// A circle in words, with the first place of each import in it.
fn describe(
    root: &Path,
    graph: &Graph,
    circle: &BTreeSet<&Path>,
    edges: &[&Edge],
    known: &BTreeSet<Edge>,
) -> String {
    let mut text = format!("{} files need each other:", circle.len());
    for &edge in edges {
        let (from, to) = (below(root, &edge.0), below(root, &edge.1));
        let (line, path) = &graph.needs[edge][0];
        let new = if known.contains(&(from.clone(), to.clone())) {
            ""
        } else {
            " (new)"
        };
        let _ = write!(
            text,
            "\n    {}:{line} names {path} of {}{new}",
            from.display(),
            to.display()
        );
    }
    text
}

fn below(root: &Path, file: &Path) -> PathBuf {
    file.strip_prefix(root).unwrap_or(file).to_owned()
}

fn read_known(text: &str) -> BTreeSet<Edge> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" -> "))
        .map(|(from, to)| (from.into(), to.into()))
        .collect()
}

#[cfg(test)]
mod tests;
