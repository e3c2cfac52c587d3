//! What is left out of the folders sent: patterns of the command line, and of ignore files.

use std::fs;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Ignore files of a folder, the one that counts more first.
const NAMES: [&str; 2] = [".ignore", ".gitignore"];

/// Longest ignore file that is read, bytes.
const MAX_LEN: u64 = 1 << 20;

/// Patterns of entries to leave out, as in `.gitignore`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exclude {
    patterns: Vec<String>,
    /// The ignore files in the folders count, too.
    ignore_files: bool,
}

impl Exclude {
    /// # Errors
    /// The pattern that is malformed, and how.
    pub(crate) fn new(patterns: Vec<String>) -> Result<Self, String> {
        let exclude = Self {
            patterns,
            ignore_files: false,
        };
        exclude.build(Path::new("/"))?;
        Ok(exclude)
    }

    /// With the ignore files in the folders, if `wanted`.
    pub(crate) fn with_ignore_files(mut self, wanted: bool) -> Self {
        self.ignore_files = wanted;
        self
    }

    fn build(&self, root: &Path) -> Result<Gitignore, String> {
        let mut builder = GitignoreBuilder::new(root);
        for pattern in &self.patterns {
            let added = builder.add_line(None, pattern);
            added.map_err(|error| format!("{pattern:?}: {error}"))?;
        }
        builder.build().map_err(|error| error.to_string())
    }

    /// What is left out of the folder `root`.
    pub(crate) fn below(&self, root: &Path) -> Excluded {
        Excluded {
            // new() has tried them.
            patterns: self.build(root).unwrap_or_else(|_| Gitignore::empty()),
            root: root.to_owned(),
            folders: self.ignore_files.then(Vec::new),
            faults: Vec::new(),
        }
    }
}

/// What is left out of one folder.
#[derive(Debug)]
pub(crate) struct Excluded {
    patterns: Gitignore,
    root: PathBuf,
    /// The folders around the last path, the outermost first; `None` if ignore files do not count.
    folders: Option<Vec<Folder>>,
    /// Ignore files that could not be read or understood, and why.
    faults: Vec<(PathBuf, String)>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Those of [`NAMES`] that are there, in that order.
    patterns: Vec<Gitignore>,
}

impl Excluded {
    /// True if the entry at `path` is left out, of whose folders none is.
    ///
    /// The patterns of the command line count most, then those of the folder that is nearest.
    pub(crate) fn leaves_out(&mut self, path: &Path, is_dir: bool) -> bool {
        match self.patterns.matched(path, is_dir) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
        self.enter(path);
        let folders = self.folders.iter().flatten().rev();
        for patterns in folders.flat_map(|folder| &folder.patterns) {
            match patterns.matched(path, is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }

    /// True if the entry at `path`, or a folder around it, is left out.
    pub(crate) fn leaves_out_below(&mut self, path: &Path, is_dir: bool) -> bool {
        let mut around: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|folder| *folder != self.root)
            .filter(|folder| folder.starts_with(&self.root))
            .collect();
        around.reverse();
        around
            .into_iter()
            .any(|folder| self.leaves_out(folder, true))
            || self.leaves_out(path, is_dir)
    }

    /// The next ignore file that could not be read or understood, and why.
    pub(crate) fn next_fault(&mut self) -> Option<(PathBuf, String)> {
        self.faults.pop()
    }

    /// Reads the ignore files of the folders around `path`, unless that was done for the last one.
    fn enter(&mut self, path: &Path) {
        let Some(folders) = &mut self.folders else {
            return;
        };
        while folders
            .last()
            .is_some_and(|folder| path == folder.path || !path.starts_with(&folder.path))
        {
            folders.pop();
        }
        let mut missing: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|folder| folder.starts_with(&self.root))
            .take_while(|folder| folders.last().is_none_or(|last| last.path != *folder))
            .collect();
        while let Some(path) = missing.pop() {
            let found = NAMES.map(|name| read(path, name, &mut self.faults));
            folders.push(Folder {
                path: path.to_owned(),
                patterns: found.into_iter().flatten().collect(),
            });
        }
    }
}

/// The patterns of an ignore file, if it is there. A line that is malformed has no effect.
fn read(folder: &Path, name: &str, faults: &mut Vec<(PathBuf, String)>) -> Option<Gitignore> {
    let path = folder.join(name);
    let metadata = fs::metadata(&path).ok()?;
    // To read a pipe might take for ever.
    if !metadata.is_file() {
        return None;
    }
    if metadata.len() > MAX_LEN {
        let why = format!("not read as an ignore file: longer than {MAX_LEN} bytes");
        faults.push((path, why));
        return None;
    }
    let text = match fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => {
            faults.push((path, format!("cannot be read as an ignore file: {error}")));
            return None;
        }
    };
    let mut builder = GitignoreBuilder::new(folder);
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        if let Err(error) = builder.add_line(None, line) {
            faults.push((
                path.clone(),
                format!("line {number} has no effect: {error}"),
            ));
        }
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let scratch = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = scratch.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        scratch
    }

    #[test]
    fn malformed_patterns_are_refused() {
        assert!(Exclude::new(vec!["a{b".to_owned()]).is_err());
    }

    #[test]
    fn the_nearest_ignore_file_counts_and_the_command_line_counts_more() {
        let scratch = tree(&[
            (".gitignore", "*.o\n/target/\n# comment\n*.log\n"),
            ("keep/.gitignore", "!*.o\n"),
            ("keep/.ignore", "x.o\n"),
            ("keep/deep/.gitignore", "/only\n"),
            ("other/.gitignore", "!*.log\n"),
        ]);
        let root = scratch.path();
        let exclude = Exclude::new(vec!["!wanted.o".to_owned(), "b.c".to_owned()]).unwrap();
        let mut plain = exclude.below(root);
        let mut excluded = exclude.with_ignore_files(true).below(root);
        for (path, is_dir, expected) in [
            ("a.o", false, true),
            ("wanted.o", false, false),
            ("a.c", false, false),
            ("b.c", false, true),
            ("target", true, true),
            ("target", false, false),
            ("keep", true, false),
            ("keep/a.o", false, false),
            ("keep/x.o", false, true),
            ("keep/deep/only", false, true),
            ("keep/deep/more/only", false, false),
            ("keep/deep/more/a.o", false, false),
            // Back up, and in a folder whose name begins as another one's.
            ("keep2/a.o", false, true),
            ("other/a.log", false, false),
            ("other/a.o", false, true),
            ("a.log", false, true),
        ] {
            let path = root.join(path);
            assert_eq!(excluded.leaves_out(&path, is_dir), expected, "{path:?}");
            let by_command_line = path.ends_with("b.c");
            assert_eq!(plain.leaves_out(&path, is_dir), by_command_line, "{path:?}");
        }
        for (path, expected) in [
            ("target/a/b", true),
            ("keep/target/a", false),
            ("keep/gone/a.o", false),
            ("gone/a.o", true),
            ("b.c/x", true),
        ] {
            let path = root.join(path);
            assert_eq!(
                excluded.leaves_out_below(&path, false),
                expected,
                "{path:?}"
            );
        }
        assert_eq!(excluded.next_fault(), None);
    }

    #[test]
    fn ignore_files_that_are_no_good_are_told() {
        let scratch = tree(&[(".gitignore", "a{b\n*.o\n"), ("deep/.ignore", "x")]);
        let big = fs::File::create(scratch.path().join("deep/.gitignore")).unwrap();
        big.set_len(MAX_LEN + 1).unwrap();
        fs::create_dir_all(scratch.path().join("folder/.gitignore")).unwrap();
        let exclude = Exclude::default().with_ignore_files(true);
        let mut excluded = exclude.below(scratch.path());
        assert!(excluded.leaves_out(&scratch.path().join("a.o"), false));
        let (path, why) = excluded.next_fault().unwrap();
        assert!(path.ends_with(".gitignore") && why.starts_with("line 1 has no effect"));
        assert!(excluded.leaves_out(&scratch.path().join("deep/x"), false));
        let (_, why) = excluded.next_fault().unwrap();
        assert!(why.contains("longer than"), "{why}");
        assert!(!excluded.leaves_out(&scratch.path().join("folder/x"), false));
        assert_eq!(excluded.next_fault(), None);
    }
}
