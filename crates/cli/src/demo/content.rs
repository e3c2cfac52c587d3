//! What is sent: the beginning of a file, or a file several times over.

use std::io::{self, Read};
use std::path::PathBuf;

use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::exit::Failure;

/// Bytes read at once.
const CHUNK: usize = 256 << 10;

/// A file as a stream of a chosen length.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    path: PathBuf,
    /// Length of the file.
    len: u64,
    /// Bytes to send.
    pub(crate) bytes: u64,
    repeats: Repeats,
}

/// Whether the file may be sent more than once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Repeats {
    Once,
    AsOftenAsFits,
}

impl Content {
    /// The file that was named, or this program.
    pub(crate) fn open(file: Option<&PathBuf>) -> Result<Self, Failure> {
        let (path, repeats) = match file {
            Some(path) => (path.clone(), Repeats::Once),
            None => {
                let path = std::env::current_exe()
                    .map_err(|error| Failure::failed("cannot find this program's file", error))?;
                (path, Repeats::AsOftenAsFits)
            }
        };
        let wrong = |why: String| Failure::usage(format!("{}: {why}", path.display()));
        let metadata = std::fs::metadata(&path).map_err(|error| wrong(error.to_string()))?;
        if !metadata.is_file() {
            return Err(wrong("is not a file".into()));
        }
        if metadata.len() == 0 {
            return Err(wrong("is empty; expected a file with content".into()));
        }
        Ok(Self {
            len: metadata.len(),
            bytes: metadata.len(),
            path,
            repeats,
        })
    }

    /// The most that could be sent.
    pub(crate) fn most(&self) -> u64 {
        match self.repeats {
            Repeats::Once => self.len,
            Repeats::AsOftenAsFits => 1 << 50,
        }
    }

    /// Settles how much is sent: at most `fits` bytes, whole copies where one fits.
    pub(crate) fn fit(&mut self, fits: u64) {
        self.bytes = match self.repeats {
            Repeats::AsOftenAsFits if fits >= self.len => fits / self.len * self.len,
            _ => fits.min(self.len),
        }
        .max(1);
    }

    /// `tack, 35.3 MiB, 4 times over`.
    pub(crate) fn describe(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        let (name, size) = (name.to_string_lossy(), indicatif::HumanBytes(self.len));
        match self.bytes {
            bytes if bytes == self.len => format!("{name}, {size}"),
            bytes if bytes < self.len => {
                format!(
                    "{name}, the first {} of {size}",
                    indicatif::HumanBytes(bytes)
                )
            }
            bytes => format!("{name}, {size}, sent {} times", bytes / self.len),
        }
    }

    /// The BLAKE3 hash of all that is sent.
    pub(crate) fn hash(&self) -> io::Result<blake3::Hash> {
        let mut hasher = blake3::Hasher::new();
        let mut left = self.bytes;
        while left > 0 {
            let before = left;
            let mut part = std::fs::File::open(&self.path)?.take(left);
            let mut chunk = vec![0; CHUNK];
            loop {
                let len = part.read(&mut chunk)?;
                if len == 0 {
                    break;
                }
                hasher.update(&chunk[..len]);
                left -= len as u64;
            }
            if left == before {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(hasher.finalize())
    }

    /// Hands all bytes to `write`, chunk by chunk.
    pub(crate) async fn write_to(
        &self,
        mut out: impl tokio::io::AsyncWrite + Unpin,
    ) -> io::Result<()> {
        use tokio::io::AsyncWriteExt;
        let mut file = tokio::fs::File::open(&self.path).await?;
        let mut chunk = vec![0; CHUNK];
        let (mut left, mut is_start) = (self.bytes, true);
        while left > 0 {
            let most = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let len = file.read(&mut chunk[..most]).await?;
            if len == 0 {
                // A file that has become empty would be read forever.
                if is_start {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                file.rewind().await?;
            } else {
                out.write_all(&chunk[..len]).await?;
                left -= len as u64;
            }
            is_start = len == 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(len: usize, repeats: Repeats) -> (tempfile::NamedTempFile, Content) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
        std::fs::write(file.path(), bytes).unwrap();
        let mut content = Content::open(Some(&file.path().to_owned())).unwrap();
        content.repeats = repeats;
        (file, content)
    }

    #[tokio::test]
    async fn what_is_sent_is_what_is_hashed() {
        for (repeats, fits, bytes) in [
            (Repeats::Once, 5_000_000, 700_000),
            (Repeats::Once, 1_000, 1_000),
            (Repeats::AsOftenAsFits, 2_200_000, 2_100_000),
            (Repeats::AsOftenAsFits, 300_000, 300_000),
        ] {
            let (_file, mut content) = content(700_000, repeats);
            content.fit(fits);
            assert_eq!(content.bytes, bytes);
            let mut sent = Vec::new();
            content.write_to(&mut sent).await.unwrap();
            assert_eq!(sent.len() as u64, bytes);
            assert_eq!(content.hash().unwrap(), blake3::hash(&sent));
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        for path in ["/", "/nowhere/at/all"] {
            assert!(Content::open(Some(&path.into())).is_err());
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Content::open(Some(&file.path().to_owned())).is_err());
        assert!(Content::open(None).is_ok(), "this program is a file");
    }
}
