//! Names beside a taken one (`--rename`), and how the files that have them are recognised.

use std::os::fd::AsFd;

use rustix::fs::{Stat, XattrFlags};
use rustix::io::Errno;

/// How many names beside a taken one are tried.
pub(super) const MOST_BESIDE: u32 = 10_000;

/// `name.1.txt` for `name.txt`, within the longest name that file systems keep.
pub(super) fn beside(name: &[u8], number: u32) -> Vec<u8> {
    let dot = name.iter().rposition(|byte| *byte == b'.');
    // A name that begins with its only dot has no ending; neither has one with a very long one.
    let dot = dot.filter(|dot| (1..name.len()).contains(dot) && name.len() - dot <= 16);
    let (stem, ending) = name.split_at(dot.unwrap_or(name.len()));
    let number = format!(".{number}");
    let room = 255 - number.len() - ending.len();
    let mut len = stem.len().min(room);
    // Not within a character of UTF-8.
    while len > 0 && stem.get(len).is_some_and(|byte| byte & 0xc0 == 0x80) {
        len -= 1;
    }
    [&stem[..len], number.as_bytes(), ending].concat()
}

/// An extended attribute of a renamed file. Its value is a hash of the name that was offered.
const RENAMED_FROM: &str = "user.tack.renamed-from";

fn mark(name: &[u8]) -> [u8; 16] {
    let mut mark = [0; 16];
    let mut hasher = blake3::Hasher::new_derive_key("tack 2026 file renamed from");
    hasher.update(name).finalize_xof().fill(&mut mark);
    mark
}

/// Notes that the file gets a name beside `name`. A file system that keeps no such notes has only
/// the consequence that names decide alone.
pub(super) fn note_renamed_from(file: impl AsFd, name: &[u8]) {
    let _ = rustix::fs::fsetxattr(file, RENAMED_FROM, &mark(name), XattrFlags::empty());
}

/// Whether the file got a name beside `name`. A file of somebody else may have such a name as well,
/// and the same size and time. On a file system that keeps no notes it is taken for true.
pub(super) fn was_renamed_from(file: impl AsFd, name: &[u8]) -> bool {
    let mut found = [0; 17];
    match rustix::fs::fgetxattr(file, RENAMED_FROM, &mut found) {
        Ok(len) => found[..len] == mark(name),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => true,
        Err(_) => false,
    }
}

/// Whether a file that must not be read may have got its name from us: it is ours.
pub(super) fn may_be_ours(found: &Stat) -> bool {
    found.st_uid == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_beside_a_taken_one_keeps_its_ending_and_fits() {
        for (name, wanted) in [
            (&b"a.txt"[..], &b"a.1.txt"[..]),
            (b"a", b"a.1"),
            (b".hidden", b".hidden.1"),
            (b"a.tar.gz", b"a.tar.1.gz"),
        ] {
            assert_eq!(beside(name, 1), wanted);
        }
        let long = "\u{e9}".repeat(127) + "x";
        let other = beside(long.as_bytes(), 10_000);
        assert!(other.len() <= 255);
        assert!(std::str::from_utf8(&other).is_ok(), "{other:?}");
    }

    #[test]
    fn a_renamed_file_is_known_by_its_own_name() {
        let scratch = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(scratch.path().join("a.1.txt")).unwrap();
        note_renamed_from(&file, b"a.txt");
        assert!(was_renamed_from(&file, b"a.txt"));
        let other = std::fs::File::create(scratch.path().join("b.1.txt")).unwrap();
        let keeps_notes = rustix::fs::fgetxattr(&file, RENAMED_FROM, &mut [0; 17]).is_ok();
        if keeps_notes {
            assert!(!was_renamed_from(&file, b"a.1.txt"));
            assert!(!was_renamed_from(&other, b"b.txt"));
        }
    }
}
