//! Comments are at most 100 columns wide. rustfmt wraps code, but leaves comments as they are.

use std::path::Path;

use anyhow::Result;

use crate::sources;

/// The width that rustfmt gives code.
const WIDTH: usize = 100;

/// Folders with sources that are ours.
const FOLDERS: [&str; 3] = ["crates", "fuzz", "bench"];

/// The lines below `root` that are nothing but a comment and are too wide.
///
/// # Errors
/// When a source cannot be read.
pub(crate) fn problems(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for folder in FOLDERS {
        for source in sources::below(root, Path::new(folder))? {
            for (line, width) in too_wide(&source.text) {
                problems.push(format!(
                    "{}:{line}: this comment has {width} columns; wrap it at {WIDTH}",
                    source.path.display()
                ));
            }
        }
    }
    Ok(problems)
}

/// Number and width of each line that is a comment wider than [`WIDTH`]. A comment behind code is
/// left to rustfmt.
fn too_wide(text: &str) -> impl Iterator<Item = (usize, usize)> {
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.trim_start().starts_with("//"))
        .map(|(number, line)| (number, line.chars().count()))
        .filter(|(_, width)| *width > WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_that_is_too_wide_is_found() {
        let fits = |slashes: &str| format!("{slashes} {}", "ü".repeat(WIDTH - slashes.len() - 1));
        let mut text = String::from("fn f() {}\n");
        for slashes in ["//", "///", "//!", "    //"] {
            text.push_str(&format!("{}\n", fits(slashes)));
        }
        assert_eq!(too_wide(&text).next(), None);
        for slashes in ["//", "///", "//!", "    //"] {
            let text = format!("{text}{}a\n", fits(slashes));
            assert_eq!(too_wide(&text).collect::<Vec<_>>(), [(6, WIDTH + 1)]);
        }
    }

    #[test]
    fn wide_code_is_not_a_comment() {
        let code = format!("const TEXT: &str = \"{}\"; // why", "a".repeat(WIDTH));
        assert_eq!(too_wide(&code).next(), None);
    }

    #[test]
    fn the_comments_of_this_workspace_fit() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().nth(2).expect("xtask is in crates/xtask");
        assert_eq!(problems(root).unwrap(), Vec::<String>::new());
    }
}
