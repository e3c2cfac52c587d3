//! The table "Where a thing lives" of ARCHITECTURE.md names files that exist.

use std::path::Path;

use anyhow::{Result, bail};

/// The heading above the table.
const HEADING: &str = "## Where a thing lives";

/// Says how many places the table names, all of which exist below `crates/` of `root`.
///
/// # Errors
/// Which ones do not, or that there is no table.
pub(crate) fn check(root: &Path, architecture: &str) -> Result<usize> {
    let rows = rows(architecture);
    if rows.is_empty() {
        bail!("ARCHITECTURE.md has no table under {HEADING:?}");
    }
    let crates = root.join("crates");
    let mut places = 0;
    let mut missing = Vec::new();
    for row in rows {
        let spans: Vec<&str> = code_spans(row).filter(|span| is_path(span)).collect();
        // A file without a folder is in a folder that the same row names.
        let folders = spans.iter().filter_map(|span| span.rsplit_once('/'));
        let folders: Vec<&str> = folders.map(|(folder, _)| folder).collect();
        for span in spans {
            places += 1;
            let exists = match span.contains('/') {
                true => crates.join(span).exists(),
                false => folders
                    .iter()
                    .any(|folder| crates.join(folder).join(span).exists()),
            };
            if !exists {
                missing.push(span);
            }
        }
    }
    if !missing.is_empty() {
        bail!(
            "ARCHITECTURE.md names places below crates/ that do not exist: {}",
            missing.join(", ")
        );
    }
    Ok(places)
}

/// The second column of each row.
fn rows(architecture: &str) -> Vec<&str> {
    let lines = architecture
        .lines()
        .skip_while(|line| *line != HEADING)
        .skip(1)
        .take_while(|line| !line.starts_with("## "));
    let rows = lines.filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    // Two of them are the head and the line below it.
    rows.skip(2).map(|(_, place)| place).collect()
}

/// What stands between backquotes.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// A file or a folder; a pattern such as `figNUMBER_….rs` is not one.
fn is_path(span: &str) -> bool {
    let is_one = [".rs", ".py", ".html", "/"]
        .iter()
        .any(|end| span.ends_with(end));
    is_one && !span.contains('…') && !span.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# A\n\n## Where a thing lives\n\n| thing | place |\n| --- | --- |\n\
        | this check | `xtask/src/places.rs`, over `deps.rs` beside it |\n\
        | the wheel | `py/tests/check_wheel.py` |\n\
        | figures | `lab/src/figures/fig….rs` |\n\n## More\n\n| x | `no/such.rs` |\n";

    fn root() -> &'static Path {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        here.ancestors().nth(2).expect("xtask is in crates/xtask")
    }

    #[test]
    fn files_that_exist_pass() {
        assert_eq!(check(root(), TABLE).unwrap(), 3);
    }

    #[test]
    fn files_that_do_not_exist_are_named() {
        for (wrong, named) in [
            ("deps.rs", "gone.rs"),
            ("xtask/src/places.rs", "xtask/gone/"),
            ("py/tests/check_wheel.py", "py/tests/gone.py"),
        ] {
            let error = check(root(), &TABLE.replace(wrong, named)).unwrap_err();
            assert!(error.to_string().contains(named), "{error}");
        }
        assert!(check(root(), "# A\n").is_err());
    }

    #[test]
    fn the_table_of_this_workspace_is_true() {
        let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
        assert!(check(root(), &text).unwrap() > 100);
    }
}
