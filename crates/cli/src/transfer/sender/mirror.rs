//! `--delete`: what the receiver has in the folders sent and the source does not is removed there,
//! once everything else went well.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::content::Contents;
use super::exclude::Excluded;
use super::options::{Options, Source};
use crate::transfer::buffers::Disconnected;
use crate::transfer::protocol::Request;

/// Asks for entries to remove, and requests their removal; a dry run only lists them.
pub(super) fn remove_extras(
    sources: &[Source],
    options: &Options,
    contents: &mut Contents<'_>,
) -> Result<(), Disconnected> {
    let confirmations = contents.confirmations;
    contents.out.flush()?;
    if !confirmations.wait_for_all()? {
        let why = "nothing is removed, because not everything could be read and stored";
        confirmations.note(Path::new("--delete"), why);
        return Ok(());
    }
    let mut folders = folders(sources, options);
    // The last path that stays: the folders around it follow, and stay, too.
    let mut kept = PathBuf::new();
    loop {
        confirmations.extras.ask();
        contents.out.frame(|bytes| Request::Extras.encode(bytes))?;
        contents.out.flush()?;
        let (reported, more) = confirmations.extras.reported()?;
        for extra in reported {
            let path = Path::new(OsStr::from_bytes(&extra.path));
            let place = if kept.starts_with(path) {
                None
            } else {
                folders
                    .iter_mut()
                    .find_map(|folder| folder.lacks(path, extra.is_dir))
            };
            match place {
                None => kept = path.to_owned(),
                Some(place) if options.dry_run => confirmations.would_remove(&place),
                Some(place) => {
                    confirmations.extras.remove(extra.number, place);
                    let request = Request::Remove(extra.number);
                    contents.out.frame(|bytes| request.encode(bytes))?;
                }
            }
        }
        contents.out.flush()?;
        confirmations.extras.wait_for_removals()?;
        if !more {
            return Ok(());
        }
    }
}

/// A folder that was sent.
struct Folder<'a> {
    root: &'a Path,
    /// The name of the folder at the receiver.
    name: &'a OsStr,
    exclude: Excluded,
}

fn folders<'a>(sources: &'a [Source], options: &Options) -> Vec<Folder<'a>> {
    let folder = |source: &'a Source| match source {
        // One that has gone meanwhile says nothing about what is in it.
        Source::Path { path, name } if path.is_dir() => Some(Folder {
            root: path,
            name,
            exclude: options.exclude.below(path),
        }),
        _ => None,
    };
    sources.iter().filter_map(folder).collect()
}

impl Folder<'_> {
    /// Where this would be here, if it is surely not here and nobody wants it left out of the
    /// transfer.
    fn lacks(&mut self, path: &Path, is_dir: bool) -> Option<PathBuf> {
        let below = path.strip_prefix(self.name).ok()?;
        let is_plain = below
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || below.as_os_str().is_empty() {
            return None;
        }
        let place = self.root.join(below);
        if self.exclude.leaves_out_below(&place, is_dir) {
            return None;
        }
        match place.symlink_metadata() {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Some(place)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::exclude::Exclude;
    use super::*;

    #[test]
    fn only_what_is_surely_not_here_is_removed_there() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("root");
        std::fs::create_dir_all(root.join("inner")).unwrap();
        std::fs::write(root.join("inner/here"), "x").unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("link")).unwrap();
        let exclude = Exclude::new(vec!["*.o".to_owned(), "/build/".to_owned()]).unwrap();
        let mut folder = Folder {
            root: &root,
            name: OsStr::new("sent"),
            exclude: exclude.below(&root),
        };
        for (path, is_dir, expected) in [
            ("sent/gone", false, true),
            ("sent/inner/gone", true, true),
            ("sent/inner/here/gone", false, true),
            ("sent/inner/here", false, false),
            ("sent/inner", true, false),
            ("sent/link", false, false),
            ("sent/x.o", false, false),
            ("sent/build", true, false),
            ("sent/build/x", false, false),
            ("sent", true, false),
            ("other/gone", false, false),
            ("sent/../gone", false, false),
            ("/sent/gone", false, false),
        ] {
            let lacks = folder.lacks(Path::new(path), is_dir);
            assert_eq!(lacks.is_some(), expected, "{path}");
        }
    }
}
