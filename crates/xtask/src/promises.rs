//! `cargo xtask promises`: each promise of `docs/security.md` names tests that exist.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::sources::{self, Source};

/// The page, and the head of the table in it.
const PAGE: &str = "docs/security.md";
const HEAD: &str = "| promise | test |";

pub(crate) fn check() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("xtask lies in crates/xtask")?;
    let page =
        fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let sources = sources::below(root, Path::new("crates"))?;
    let promises = promises(&page)?;
    let tests = tests(&sources);
    let mut wrong = Vec::new();
    for promise in &promises {
        if promise.tests.is_empty() {
            wrong.push(format!("\"{}\" names no test", promise.words));
        }
        for (name, file) in &promise.tests {
            match (tests.get(name), file) {
                (None, _) => wrong.push(format!("there is no test {name}")),
                (Some(places), Some(file))
                    if !places.iter().any(|place| place.starts_with(file)) =>
                {
                    wrong.push(format!("{name} is in {}, not in {file}", places.join(", ")));
                }
                _ => {}
            }
        }
    }
    if !wrong.is_empty() {
        bail!("{PAGE}: {}", wrong.join("; "));
    }
    let count: usize = promises.iter().map(|promise| promise.tests.len()).sum();
    crate::output::write(&format!("{} promises name {count} tests\n", promises.len()))?;
    Ok(())
}

/// A row of the table: what is promised, and each test with the file that it is said to be in.
struct Promise {
    words: String,
    tests: Vec<(String, Option<String>)>,
}

fn promises(page: &str) -> Result<Vec<Promise>> {
    let (_, table) = page
        .split_once(HEAD)
        .with_context(|| format!("{PAGE} has no table with the head {HEAD:?}"))?;
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let promises: Vec<Promise> = rows
        .filter_map(|row| {
            let mut cells = row.trim_matches('|').split('|');
            let (words, named) = (cells.next()?.trim(), cells.next()?);
            Some(Promise {
                words: words.to_owned(),
                tests: named_tests(named),
            })
        })
        .collect();
    if promises.is_empty() {
        bail!("the table of {PAGE} is empty");
    }
    Ok(promises)
}

/// Names in backquotes; a path among them, with a slash or a dot, is the file of those before it.
fn named_tests(cell: &str) -> Vec<(String, Option<String>)> {
    let mut found: Vec<(String, Option<String>)> = Vec::new();
    for quoted in cell.split('`').skip(1).step_by(2) {
        if quoted.contains(['/', '.']) {
            for (_, file) in found
                .iter_mut()
                .rev()
                .take_while(|(_, file)| file.is_none())
            {
                *file = Some(format!("crates/{quoted}"));
            }
        } else {
            found.push((quoted.to_owned(), None));
        }
    }
    found
}

/// The tests of the sources, and the files that they are in.
fn tests(sources: &[Source]) -> BTreeMap<String, Vec<String>> {
    let mut tests: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources {
        let mut is_test = false;
        for line in source.text.lines().map(str::trim) {
            let word = line.trim_start_matches("async ");
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some(rest) = word.strip_prefix("fn ").filter(|_| is_test) {
                let name = rest.split('(').next().unwrap_or_default();
                let place = source.path.display().to_string();
                tests.entry(name.to_owned()).or_default().push(place);
                is_test = false;
            } else if !line.starts_with('#') && !line.starts_with("//") {
                is_test = false;
            }
        }
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_this_workspace_keeps_its_word() {
        check().unwrap();
    }

    #[test]
    fn a_path_belongs_to_the_names_before_it() {
        let named = named_tests(" `a`, `b` (`cli/tests/x.rs`), `c` (`tack/tests/secure/`), `d` ");
        let file = |text: &str| Some(text.to_owned());
        assert_eq!(
            named,
            [
                ("a".into(), file("crates/cli/tests/x.rs")),
                ("b".into(), file("crates/cli/tests/x.rs")),
                ("c".into(), file("crates/tack/tests/secure/")),
                ("d".into(), None),
            ]
        );
    }

    #[test]
    fn only_tests_count_as_tests() {
        let source = Source {
            path: "crates/x.rs".into(),
            text: "fn helper() {}\n#[test]\n#[should_panic]\nfn one() {}\nfn other() {}\n#[tokio::test(start_paused = true)]\nasync fn two() {}\n"
                .into(),
        };
        let found = tests(&[source]);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn a_promise_is_a_row() {
        let page = "text\n| promise | test |\n|---|---|\n| p | `t_e_s_t` |\n| q | none |\n\n| other | table |\n";
        let found = promises(page).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].words.as_str(), found[0].tests.len()), ("p", 1));
        assert!(found[1].tests.is_empty());
        assert!(promises("no table").is_err());
    }
}
