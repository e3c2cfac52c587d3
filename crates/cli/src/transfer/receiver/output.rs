//! Standard output in place of a directory: one file goes there, as it comes.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cap_std::fs::Dir;

use super::refused::Refused;
use super::staged::Staged;
use crate::transfer::protocol::Refusal;

/// Where the content of the one file goes.
#[derive(Debug)]
pub(super) struct Output {
    file: File,
    taken: AtomicBool,
}

impl Output {
    /// Standard output.
    pub(super) fn standard() -> io::Result<Self> {
        let fd = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self::to(fd.into()))
    }

    fn to(file: File) -> Self {
        let taken = AtomicBool::new(false);
        Self { file, taken }
    }

    /// For the first file that comes, whatever becomes of it: its bytes cannot be taken back.
    pub(super) fn stage(&self, dir: &Arc<Dir>) -> Result<Staged, Refused> {
        if self.taken.swap(true, Ordering::Relaxed) {
            return Err(Refused::new(
                Refusal::Exists,
                "standard output takes only one file, and one was already written to it, at least in part",
            ));
        }
        let file = self.file.try_clone();
        let file = file.map_err(|error| Refused::storage(&error))?;
        Ok(Staged::streaming(file, dir))
    }

    /// Why an entry that is not a file is refused.
    pub(super) fn refuse<T>(&self) -> Result<T, Refused> {
        Err(Refused::new(
            Refusal::Name,
            "standard output takes one file, and no folders and links",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::protocol::Modified;
    use cap_std::ambient_authority;
    use std::io::{Read, Seek};

    #[test]
    fn one_file_is_written_in_order_and_holes_are_zeros() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(scratch.path(), ambient_authority()).unwrap();
        let dir = Arc::new(dir);
        let mut file = tempfile::tempfile().unwrap();
        let output = Output::to(file.try_clone().unwrap());
        let mut staged = output.stage(&dir).unwrap();
        staged.write(&mut &b"ab"[..]).unwrap();
        staged.skip(100_000).unwrap();
        staged.write(&mut &b"cd"[..]).unwrap();
        let existing = super::super::existing::Existing::Refuse;
        let modified = Modified::default();
        staged
            .commit(b"name", 100_004, 0o600, modified, existing)
            .unwrap();
        assert!(output.stage(&dir).is_err(), "one file");
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        assert!(bytes.len() == 100_004 && bytes.starts_with(b"ab\0") && bytes.ends_with(b"\0cd"));
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
}
