//! Holes of sparse files, found in the source.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// Bytes of a file that lie in blocks; the rest of it are holes. Some file systems count what they
/// compress or have yet to allocate: an estimate.
pub(crate) fn allocated(metadata: &std::fs::Metadata) -> u64 {
    metadata.blocks().saturating_mul(512).min(metadata.len())
}

/// Bytes of the file at `path` outside its holes: what is sent of it. A file that cannot be read
/// counts by its blocks.
pub(crate) fn data_len(path: &Path, metadata: &std::fs::Metadata) -> u64 {
    let (allocated, size) = (allocated(metadata), metadata.len());
    if allocated == size {
        return size;
    }
    let counted = || {
        let file = File::open(path)?;
        let (mut at, mut data) = (0, 0_u64);
        while at < size {
            let (hole, run) = next_extent(&file, at, size - at)?;
            if hole + run == 0 {
                break;
            }
            at += hole + run;
            data += run;
        }
        io::Result::Ok(data)
    };
    counted().unwrap_or(allocated)
}

/// How many bytes of `file` from `at` on are a hole, and how many behind that are data; the file is
/// then at the data. `left` bytes follow `at` at most.
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

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use super::*;

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

    #[test]
    fn what_is_sent_of_a_sparse_file_is_counted() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(64 << 20).unwrap();
        file.seek(SeekFrom::Start(32 << 20)).unwrap();
        file.write_all(&[7; 5000]).unwrap();
        // Some file systems allocate its block later.
        let metadata = file.as_file().metadata().unwrap();
        let counted = data_len(file.path(), &metadata);
        assert!((5000..=1 << 20).contains(&counted), "{counted}");
        let whole = data_len(Path::new("/nowhere"), &metadata);
        assert_eq!(whole, allocated(&metadata));
    }
}
