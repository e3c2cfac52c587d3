//! Holes of sparse files: found in the source, and counted into hashes as the zeros that they read as.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// Bytes of a file that lie in blocks; the rest of it are holes. Some file systems count what they compress or have yet
/// to allocate: an estimate.
pub(crate) fn allocated(metadata: &std::fs::Metadata) -> u64 {
    metadata.blocks().saturating_mul(512).min(metadata.len())
}

/// How many bytes of `file` from `at` on are a hole, and how many behind that are data; the file is then at the data.
/// `left` bytes follow `at` at most.
pub(crate) fn next_extent(file: &File, at: u64, left: u64) -> io::Result<(u64, u64)> {
    let end = at.saturating_add(left);
    let data = match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => data.min(end),
        // Nothing but a hole up to the end.
        Err(Errno::NXIO) => return Ok((left, 0)),
        // A file system that does not tell.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => {
            rustix::fs::seek(file, SeekFrom::Start(at))?;
            return Ok((0, left));
        }
        Err(error) => return Err(error.into()),
    };
    let hole = match rustix::fs::seek(file, SeekFrom::Hole(data)) {
        Ok(hole) => hole.clamp(data, end),
        Err(_) => end,
    };
    rustix::fs::seek(file, SeekFrom::Start(data))?;
    Ok((data - at, hole - data))
}

/// Feeds `len` zeros to `hasher`.
pub(crate) fn hash_zeros(hasher: &mut blake3::Hasher, mut len: u64) {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    while len > 0 {
        let amount = usize::try_from(len).unwrap_or(usize::MAX).min(ZEROS.len());
        hasher.update(&ZEROS[..amount]);
        len -= amount as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use super::*;

    #[test]
    fn zeros_are_hashed_as_if_they_were_there() {
        for len in [0, 1, 65_536, 200_000] {
            let mut hasher = blake3::Hasher::new();
            hash_zeros(&mut hasher, len as u64);
            assert_eq!(hasher.finalize(), blake3::hash(&vec![0; len]));
        }
    }

    #[test]
    fn extents_cover_the_file_whatever_the_file_system_tells() {
        let mut file = tempfile::tempfile().unwrap();
        file.seek(SeekFrom::Start(1 << 20)).unwrap();
        file.write_all(&[7; 5000]).unwrap();
        let size = (3 << 20) + 5;
        file.set_len(size).unwrap();
        let (mut at, mut data) = (0, 0);
        while at < size {
            let (hole, run) = next_extent(&file, at, size - at).unwrap();
            assert!(hole + run > 0);
            at += hole + run;
            data += run;
        }
        assert_eq!(at, size);
        assert!(data >= 5000);
    }
}
