//! What a sender sends, and how.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use walkdir::WalkDir;

use super::exclude::Exclude;
use crate::transfer::holes::data_len;

/// What to do about symbolic links below the paths named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Links {
    Skip,
    Follow,
    Keep,
}

/// One thing named on the command line, and the name it gets at the receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Path { path: PathBuf, name: OsString },
    StandardInput { name: OsString },
}

impl Source {
    /// The name at the receiver.
    pub(crate) fn name(&self) -> &OsStr {
        match self {
            Self::Path { name, .. } | Self::StandardInput { name } => name,
        }
    }
}

/// Options of a transfer.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) links: Links,
    /// Compare contents instead of sizes and times.
    pub(crate) checksum: bool,
    /// Dry run: send no content.
    pub(crate) dry_run: bool,
    /// Remove entries of the folders at the receiver that the sender does not have.
    pub(crate) delete: bool,
    pub(crate) exclude: Exclude,
}

/// Files below the sources and their bytes outside holes: what cannot be read now counts as
/// nothing. `None` for what is not known beforehand.
pub(crate) fn total(sources: &[Source], options: &Options) -> Option<(u64, u64)> {
    let (mut files, mut bytes) = (0u64, 0u64);
    for source in sources {
        let Source::Path { path, .. } = source else {
            return None;
        };
        let mut exclude = options.exclude.below(path);
        let walk = WalkDir::new(path)
            .follow_links(options.links == Links::Follow)
            .into_iter()
            .filter_entry(|entry| {
                entry.depth() == 0 || !exclude.leaves_out(entry.path(), entry.file_type().is_dir())
            });
        for entry in walk.flatten().filter(|entry| entry.file_type().is_file()) {
            files += 1;
            let len = (entry.metadata()).map_or(0, |metadata| data_len(entry.path(), &metadata));
            bytes = bytes.saturating_add(len);
        }
    }
    Some((files, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_excluded_does_not_count() {
        let scratch = tempfile::tempdir().unwrap();
        for (name, len) in [("a.o", 5), ("b.c", 4096), ("target/x", 7)] {
            let path = scratch.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, vec![1; len]).unwrap();
        }
        let patterns = vec!["*.o".to_owned(), "/target/".to_owned()];
        let options = Options {
            links: Links::Skip,
            checksum: false,
            dry_run: false,
            delete: false,
            exclude: Exclude::new(patterns).unwrap(),
        };
        let source = Source::Path {
            path: scratch.path().to_owned(),
            name: "x".into(),
        };
        let (files, _) = total(&[source], &options).unwrap();
        assert_eq!(files, 1);
    }
}
