//! Which tests run: whether the long forms were asked for, and how a test says that it did not run,
//! because it needs a privilege, a device or a program that this machine lacks. For tests alone.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Whether the long forms of tests were asked for, by `TACK_LONG=1`, as CI does. Unset, empty and
/// `0` are the ordinary form.
pub fn is_long() -> bool {
    is_yes(std::env::var_os("TACK_LONG").as_deref())
}

fn is_yes(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

/// Says on standard error that the test which calls this, or a part of it, does not run, and why:
/// `SKIPPED NAME OF THE TEST: why`. It is seen although the test passes: libtest holds back what
/// `print!` and `eprint!` write, and nothing else.
pub fn skipped(why: impl Display) {
    let thread = std::thread::current();
    // libtest calls the thread of a test by its name; with one thread it has only "main".
    let test = thread.name().filter(|name| *name != "main");
    let why = why.to_string();
    let why = why.trim_end().replace('\n', "; ");
    let line = match test {
        Some(test) => format!("SKIPPED {test}: {why}\n"),
        None => format!("SKIPPED: {why}\n"),
    };
    // Without standard error there is nobody to tell.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The first of these programs that this machine lacks, in words: `no sshd`.
pub fn lacks(programs: &[&str]) -> Option<String> {
    let missing = programs.iter().find(|program| path_of(program).is_none());
    missing.map(|program| format!("no {program}"))
}

/// The file of a program in the folders of `PATH`.
pub fn path_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(program));
    found.find(|file| {
        let metadata = file.metadata();
        metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    #[test]
    #[ignore = "run by the other test"]
    fn one_that_does_not_run() {
        println!("held back");
        skipped("no unicorn:\nnone was found\n");
    }

    /// Tests that say it otherwise are not seen.
    #[test]
    fn every_test_says_it_by_this() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut folders = vec![crates.to_owned()];
        let mut files = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                // The output of benchmarks is not held back; a Python package has more folders.
                let is_other = ["benches", "target", ".venv"]
                    .iter()
                    .any(|it| path.ends_with(it));
                if path.is_dir() && !is_other {
                    folders.push(path);
                } else if path.extension().is_some_and(|it| it == "rs") {
                    files += 1;
                    let text = std::fs::read_to_string(&path).unwrap();
                    let words = text.split_whitespace().collect::<Vec<_>>().join("");
                    for printing in ["println!(", "print!("] {
                        let wrong = [printing, "\"", "SKIPPED"].concat();
                        assert!(!words.contains(&wrong), "{}", path.display());
                    }
                }
            }
        }
        assert!(files > 500, "{files}");
    }

    #[test]
    fn nothing_and_0_are_the_ordinary_form() {
        let is_yes = |value: &str| is_yes(Some(OsStr::new(value)));
        assert!(is_yes("1") && is_yes("yes"));
        assert!(!super::is_yes(None) && !is_yes("") && !is_yes("0"));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        assert_eq!(
            lacks(&["sh", "no-such-program", "other"]).unwrap(),
            "no no-such-program"
        );
        assert_eq!(lacks(&["sh", "cat"]), None);
        // A directory is not a program.
        assert_eq!(path_of(".."), None);
    }

    /// As `cargo test` runs it: without `--nocapture`.
    #[test]
    fn a_passing_test_is_seen_to_have_been_skipped() {
        let test = "tests::one_that_does_not_run";
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--test-threads=2"])
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{shown}{said}");
        assert!(
            shown.contains("1 passed") && !shown.contains("held back"),
            "{shown}"
        );
        let expected = format!("SKIPPED {test}: no unicorn:; none was found\n");
        assert_eq!(said, expected);
    }
}
