//! How far the current file of a transfer is, for progress lines and events.

use std::path::{Path, PathBuf};

use super::names::printable;

/// The file whose content is on its way.
#[derive(Clone, Debug, Default)]
pub(crate) struct CurrentFile {
    pub(crate) path: PathBuf,
    /// Bytes; `None` where they are not known.
    pub(crate) size: Option<u64>,
    /// Bytes of it that passed, or that the receiver had.
    pub(crate) bytes: u64,
}

impl CurrentFile {
    pub(crate) fn new(path: &Path, size: Option<u64>) -> Self {
        Self {
            path: path.to_owned(),
            size,
            bytes: 0,
        }
    }

    /// What a progress line says beside its bar, which has the whole transfer: `3/10 NAME 45 %`.
    pub(crate) fn text(&self, files: u64, all: Option<u64>) -> String {
        let name = self.path.file_name().unwrap_or_default();
        let name = printable(&name.to_string_lossy());
        match (all.filter(|all| *all > 1), self.size) {
            (None, _) => name,
            (Some(all), Some(size)) if size > 0 => {
                let percent = u128::from(self.bytes.min(size)) * 100 / u128::from(size);
                format!("{files}/{all} {name} {percent} %")
            }
            (Some(all), _) => format!("{files}/{all} {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_counts_and_how_far_the_file_is() {
        let mut file = CurrentFile::new(Path::new("a/b"), Some(200));
        file.bytes = 90;
        assert_eq!(file.text(3, Some(10)), "3/10 b 45 %");
        // The bar says it.
        assert_eq!(file.text(0, Some(1)), "b");
        assert_eq!(file.text(0, None), "b");
        // A file that grew.
        file.bytes = 1_000;
        assert_eq!(file.text(3, Some(10)), "3/10 b 100 %");
        for size in [None, Some(0)] {
            let file = CurrentFile::new(Path::new("a/b"), size);
            assert_eq!(file.text(3, Some(10)), "3/10 b");
        }
    }
}
