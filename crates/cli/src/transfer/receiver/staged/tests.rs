//! What becomes of a file on its way.

use super::super::part;
use super::*;
use cap_std::ambient_authority;
use std::os::unix::fs::PermissionsExt;

fn scratch() -> (tempfile::TempDir, Arc<Dir>) {
    let scratch = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient_dir(scratch.path(), ambient_authority()).unwrap();
    (scratch, Arc::new(dir))
}

fn both(dir: &Arc<Dir>) -> [Staged; 2] {
    [
        Staged::create(dir).unwrap(),
        Staged::create_named(dir).unwrap(),
    ]
}

#[test]
fn a_dropped_file_leaves_nothing() {
    let (scratch, dir) = scratch();
    for mut staged in both(&dir) {
        staged.write(&mut &b"half"[..]).unwrap();
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn a_full_disk_leaves_only_parts_that_were_there_before() {
    let (scratch, dir) = scratch();
    let open = || part::open(&dir, ".tack-x.part").unwrap().unwrap();
    let count = || std::fs::read_dir(scratch.path()).unwrap().count();
    let group = vec![1; GROUP as usize];
    let is_full = || io::Result::<()>::Err(io::ErrorKind::StorageFull.into());
    let mut begun = open();
    begun.write(&mut &group[..]).unwrap();
    assert!(begun.noted(is_full()).is_err());
    drop(begun);
    assert_eq!(count(), 0);
    let mut begun = open();
    begun.write(&mut &group[..]).unwrap();
    let other = io::Result::<()>::Err(io::ErrorKind::Other.into());
    assert!(begun.noted(other).is_err());
    drop(begun);
    assert_eq!(count(), 1);
    let mut resumed = open();
    assert!(resumed.noted(is_full()).is_err());
    drop(resumed);
    assert_eq!(count(), 1);
}

#[test]
fn the_umask_is_read_from_the_process_status() {
    assert_eq!(
        umask_in("Name:\ttack\nUmask:\t0027\nState:\tR\n"),
        Some(0o027)
    );
    assert_eq!(umask_in("Name:\ttack\n"), None);
    assert_eq!(permitted(0o6777).as_raw_mode(), 0o777 & !umask());
}

#[test]
fn commit_names_the_file_and_keeps_mode_and_time() {
    let (scratch, dir) = scratch();
    for (number, mut staged) in both(&dir).into_iter().enumerate() {
        let name = format!("file{number}");
        staged.write(&mut &b"whole"[..]).unwrap();
        let modified = Modified {
            seconds: 1_000_000_007,
            nanos: 5_000,
        };
        staged
            .commit(name.as_bytes(), 5, 0o6751, modified, Existing::Refuse)
            .unwrap();
        let path = scratch.path().join(name);
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(
            metadata.permissions().mode() & 0o7777,
            0o751 & !umask(),
            "no set-user-ID"
        );
        let age = metadata
            .modified()
            .unwrap()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        assert_eq!(age, std::time::Duration::new(1_000_000_007, 5_000));
    }
    assert_eq!(
        std::fs::read_dir(scratch.path()).unwrap().count(),
        2,
        "no temporary names left"
    );
}

#[test]
fn holes_stay_holes_also_at_the_end() {
    use std::os::unix::fs::MetadataExt;
    let (scratch, dir) = scratch();
    for (number, mut staged) in both(&dir).into_iter().enumerate() {
        staged.skip(8 << 20).unwrap();
        staged.write(&mut &b"x"[..]).unwrap();
        staged.skip(8 << 20).unwrap();
        let name = number.to_string();
        staged
            .commit(
                name.as_bytes(),
                (16 << 20) + 1,
                0o644,
                Modified::default(),
                Existing::Refuse,
            )
            .unwrap();
        let metadata = std::fs::metadata(scratch.path().join(name)).unwrap();
        assert_eq!(metadata.len(), (16 << 20) + 1);
        assert!(metadata.blocks() * 512 < 1 << 20, "{}", metadata.blocks());
    }
}

#[test]
fn a_taken_name_is_refused_or_replaced() {
    let (scratch, dir) = scratch();
    for (number, staged) in both(&dir).into_iter().enumerate() {
        let path = scratch.path().join(number.to_string());
        std::fs::write(&path, "old").unwrap();
        let name = number.to_string();
        let refused = staged.commit(
            name.as_bytes(),
            0,
            0o644,
            Modified::default(),
            Existing::Refuse,
        );
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
    }
    for (number, mut staged) in both(&dir).into_iter().enumerate() {
        staged.write(&mut &b"new"[..]).unwrap();
        staged
            .commit(
                number.to_string().as_bytes(),
                3,
                0o644,
                Modified::default(),
                Existing::Overwrite,
            )
            .unwrap();
        assert_eq!(
            std::fs::read(scratch.path().join(number.to_string())).unwrap(),
            b"new"
        );
    }
    assert_eq!(
        std::fs::read_dir(scratch.path()).unwrap().count(),
        2,
        "no temporary names left"
    );
}

#[test]
fn a_renamed_file_leaves_what_is_there() {
    let (scratch, dir) = scratch();
    std::fs::write(scratch.path().join("a.txt"), "old").unwrap();
    for (number, mut staged) in (1..).zip(both(&dir)) {
        staged.write(&mut &b"new"[..]).unwrap();
        let name = staged
            .commit(b"a.txt", 3, 0o644, Modified::default(), Existing::Rename)
            .unwrap();
        assert_eq!(name, Some(format!("a.{number}.txt").into_bytes()));
    }
    let old = std::fs::read(scratch.path().join("a.txt")).unwrap();
    assert_eq!(old, b"old");
}
