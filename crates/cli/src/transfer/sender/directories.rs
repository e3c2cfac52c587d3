//! Directories that were sent, as far as the receiver may still refuse them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Directories sent that the receiver may still refuse: as many are remembered. Waiting would not
/// do, because a directory that is stored gets no answer.
pub(super) const MAX_REMEMBERED: usize = 8192;

/// Directories sent. They are stored unless the receiver refuses them before it is finished.
#[derive(Debug, Default)]
pub(super) struct Directories {
    /// Number of directories sent and not refused so far.
    pub(super) sent: u64,
    paths: BTreeMap<u64, PathBuf>,
    /// How many of `sent` are no longer in `paths`.
    forgotten: u64,
}

impl Directories {
    pub(super) fn enter(&mut self, index: u64, path: &Path, active: &[(u64, PathBuf)]) {
        self.sent += 1;
        self.paths.insert(index, path.to_owned());
        if self.paths.len() > MAX_REMEMBERED {
            // The oldest that we are not in: of those, `active` knows the path.
            let in_it = |index: &u64| active.iter().any(|(active, _)| active == index);
            let oldest = self.paths.keys().copied().find(|index| !in_it(index));
            if let Some(oldest) = oldest {
                self.paths.remove(&oldest);
                self.forgotten += 1;
            }
        }
    }

    /// The path of one that is refused, as far as it is known; `None` when it is not a directory,
    /// or was refused before.
    pub(super) fn refuse(&mut self, index: u64) -> Option<PathBuf> {
        let path = match self.paths.remove(&index) {
            Some(path) => path,
            None => {
                self.forgotten = self.forgotten.checked_sub(1)?;
                let before = self.paths.range(index..).next();
                let before =
                    before.map_or_else(String::new, |(_, path)| path.display().to_string());
                PathBuf::from(format!("(a directory sent before {before})"))
            }
        };
        self.sent -= 1;
        Some(path)
    }
}
