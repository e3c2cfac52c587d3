//! Crates with `doctest = false` have no examples that rustdoc would run: to look for them takes
//! `cargo test` a second for each crate.

use std::path::Path;

use anyhow::Result;

use crate::sources;

/// Tags of a code block that leave it a block of Rust, as rustdoc reads them.
const RUST: [&str; 6] = [
    "rust",
    "should_panic",
    "no_run",
    "ignore",
    "test_harness",
    "compile_fail",
];

/// The examples in the sources below `folder`, itself below `root`, of a crate whose examples are
/// not run.
///
/// # Errors
/// When a source cannot be read.
pub(crate) fn problems(root: &Path, folder: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for source in sources::below(root, folder)? {
        for line in examples(&source.text) {
            problems.push(format!(
                "{}:{line}: nothing runs this example; take `doctest = false` out of the crate's Cargo.toml, \
                 or begin the block with ```text",
                source.path.display()
            ));
        }
    }
    Ok(problems)
}

/// Numbers of the lines at which an example begins: a fence without the name of another language, a
/// block indented by four columns after an empty line, or a page that is read from elsewhere.
fn examples(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    let mut is_list = false;
    // Whether the line before was empty or no documentation.
    let mut is_apart = true;
    for (number, line) in (1..).zip(text.lines()) {
        let Some(doc) = documentation(line.trim_start()) else {
            (is_fenced, is_list, is_apart) = (false, false, true);
            if line.contains("doc = include_str!") {
                found.push(number);
            }
            continue;
        };
        let words = doc.trim_start();
        if let Some(info) = words.strip_prefix("```").or(words.strip_prefix("~~~")) {
            if !is_fenced && is_rust(info) {
                found.push(number);
            }
            is_fenced = !is_fenced;
        } else if !is_fenced && !words.is_empty() {
            let indent = doc.len() - words.len();
            if indent >= 4 && is_apart && !is_list {
                found.push(number);
            }
            if indent < 4 {
                let is_item = words.starts_with(|first: char| first.is_ascii_digit())
                    || ["- ", "* ", "+ "]
                        .iter()
                        .any(|mark| words.starts_with(mark));
                is_list = is_item || is_list && indent > 0;
            }
        }
        is_apart = words.is_empty();
    }
    found
}

/// What a line of documentation says, without the slashes and the column behind them.
fn documentation(line: &str) -> Option<&str> {
    let text = match line.strip_prefix("//!") {
        Some(text) => text,
        None => line
            .strip_prefix("///")
            .filter(|text| !text.starts_with('/'))?,
    };
    Some(text.strip_prefix(' ').unwrap_or(text))
}

fn is_rust(info: &str) -> bool {
    let info = info.trim_matches('`');
    let mut tags = info
        .split([',', ' ', '\t'])
        .filter(|tag| !tag.is_empty())
        .peekable();
    tags.peek().is_none()
        || tags.any(|tag| {
            RUST.contains(&tag) || tag.starts_with("ignore-") || tag.starts_with("edition")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_that_nothing_would_run_are_found() {
        let cases = [
            "/// Adds.\n///\n/// ```\n/// assert!(true);\n/// ```\nfn f() {}\n",
            "//! Adds.\n//!\n//! ```no_run\n//! f();\n//! ```\n",
            "//! Adds.\n//!\n//! ~~~ rust,ignore\n//! f();\n//! ~~~\n",
            "//! Adds.\n//!\n//!     assert!(true);\n",
            "use a;\n\n#![doc = include_str!(\"../README.md\")]\n",
            "//! ```text\n//! ```\n    /// ```\n    /// f();\n    /// ```\n",
        ];
        for text in cases {
            assert_eq!(examples(text), [3], "{text}");
        }
    }

    #[test]
    fn other_blocks_are_no_examples() {
        let cases = [
            "//! ```text\n//! a\n//!\n//!     b\n//! ```\n//! and ``` within a line\n",
            "//! - one\n//!\n//!     still of the list\n//! - two\n",
            "//! A line\n//!     that goes on.\n",
            "//// ```\n// ```\nlet a = \"```\";\n",
            "//! ```toml\n//! a = 1\n//! ```\n",
        ];
        for text in cases {
            assert_eq!(examples(text), [0; 0], "{text}");
        }
    }
}
