//! What a sender does not have is removed.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::cursor::Cursor;
use super::mirror::Extra;
use super::refused::Refused;

impl Cursor<'_> {
    /// Removes a reported entry; a directory only if it is empty.
    pub(super) fn remove(&mut self, extra: &Extra) -> Result<(), Refused> {
        let storage = |error: io::Error| Refused::storage(&error);
        let above = extra.path.parent().unwrap_or(&extra.path);
        let name = extra.path.file_name().unwrap_or_default();
        let dir = self.store.dir(above).map_err(storage)?;
        let _reserved = self.reserve_in(&dir, name.as_bytes())?;
        let flags = if extra.is_dir {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        match rustix::fs::unlinkat(dir.as_fd(), name, flags) {
            // Gone, whoever did it.
            Ok(()) | Err(Errno::NOENT) => {
                self.changed = true;
                Ok(())
            }
            Err(error) => Err(storage(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::existing::Existing;
    use super::super::holder::Holder;
    use super::super::mirror::Mirror;
    use super::super::store::Store;
    use super::*;
    use cap_std::ambient_authority;
    use cap_std::fs::Dir;

    #[test]
    fn only_what_did_not_come_is_told_and_contents_come_first() {
        let scratch = tempfile::tempdir().unwrap();
        let inner = scratch.path().join("folder");
        std::fs::create_dir_all(inner.join("old/deep")).unwrap();
        for name in ["kept", "gone", "old/a", "old/deep/b", ".tack-0.part"] {
            std::fs::write(inner.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("/", inner.join("old/link")).unwrap();
        let root = Dir::open_ambient_dir(scratch.path(), ambient_authority()).unwrap();
        let mut mirror = Mirror::new();
        mirror.enter(true);
        mirror.see(b"kept");
        mirror.see(b"new");
        let dir = root.open_dir("folder").unwrap();
        mirror.leave(&dir, Path::new("folder")).unwrap();
        let mut extras = mirror.extras().unwrap();
        let (told, more) = extras.tell(&root).unwrap();
        assert!(!more);
        let place = |path: &str| {
            let path = Path::new("folder").join(path);
            told.iter().position(|(_, extra)| extra.path == path)
        };
        assert_eq!(told.len(), 6, "{told:?}");
        assert!(place("old/deep/b") < place("old/deep") && place("old/deep") < place("old"));
        assert!(place("gone").is_some() && place("old/link").is_some());
        let store = Store::open(scratch.path(), Existing::Overwrite).unwrap();
        let mut cursor = Cursor::new(&store, Holder::new(None), store.existing, false);
        for (number, extra) in told {
            assert_eq!(extras.take(number), Some(extra.clone()));
            assert_eq!(extras.take(number), None, "once");
            cursor.remove(&extra).unwrap();
        }
        assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 2);
    }
}
