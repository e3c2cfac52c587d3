//! Groups that a sender may ask for and send, and those that it may not.

use std::path::Path;

use std::os::unix::fs::{FileExt, PermissionsExt};

use super::*;
use crate::transfer::groups::value;
use crate::transfer::protocol::Modified;
use crate::transfer::receiver::existing::Existing;
use crate::transfer::receiver::holder::Holder;
use crate::transfer::receiver::reserved::Names;

const SIZE: u64 = 5 * GROUP + 7;

fn bytes(len: u64) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

/// A file of `SIZE` of which `here` bytes are in its part.
fn content(here: u64) -> (tempfile::TempDir, Content) {
    let scratch = tempfile::tempdir().unwrap();
    let part = part::name(&[0; 32], "file".as_ref());
    let part = scratch.path().join(part);
    std::fs::write(&part, bytes(here)).unwrap();
    std::fs::set_permissions(part, std::fs::Permissions::from_mode(0o600)).unwrap();
    let content = begun(scratch.path(), LocalCopy::Part, here);
    (scratch, content)
}

/// The file in this directory, once the sender was told of `listed` bytes of it.
fn begun(dir: &Path, here: LocalCopy, listed: u64) -> Content {
    let store = Store::open(dir, Existing::Refuse).unwrap();
    let part = part::name(&[0; 32], "file".as_ref());
    let wanted = Wanted {
        path: "file".into(),
        mode: 0o644,
        modified: Modified::default(),
        size: Some(SIZE),
        data: SIZE,
        existing: Existing::Refuse,
        listed,
        here,
        part: Some(part),
        reservation: None,
    };
    Content::begin(0, Box::new(wanted), &store).unwrap()
}

fn hash() -> Hash {
    *blake3::hash(&bytes(SIZE)).as_bytes()
}

#[test]
fn groups_that_are_here_need_not_come() {
    let (_scratch, mut content) = content(3 * GROUP + 5);
    let values = content.query(0, 128).unwrap().unwrap();
    assert_eq!(values.len(), 3, "only whole groups");
    let all = bytes(SIZE);
    for (number, chunk) in (0..).zip(all.chunks(GROUP as usize)).take(3) {
        assert_eq!(values[number as usize], value(number, chunk));
    }
    // One that is here comes all the same, and then those that are not.
    content.seek(1).unwrap();
    content
        .data(&all[GROUP as usize..2 * GROUP as usize])
        .unwrap();
    content.seek(3).unwrap();
    content.data(&all[3 * GROUP as usize..]).unwrap();
    let (complete, size) = content.end(hash()).unwrap();
    assert!(matches!(complete, Complete::Stored(_)));
    assert_eq!(size, SIZE);
}

#[test]
fn queries_follow_each_other_where_fewer_groups_are_here_than_were_asked_for() {
    let (_scratch, mut content) = content(3 * GROUP);
    assert_eq!(content.query(0, 2).unwrap().unwrap().len(), 2);
    assert_eq!(content.query(2, 2).unwrap().unwrap().len(), 1);
    assert_eq!(content.query(4, 2).unwrap().unwrap().len(), 0);
    content.seek(3).unwrap();
    content.data(&bytes(SIZE)[3 * GROUP as usize..]).unwrap();
    assert!(content.end(hash()).is_ok());
}

#[test]
fn what_has_gone_since_the_offer_comes_as_a_whole() {
    let forms: [(LocalCopy, Option<&[u8]>); 4] = [
        (LocalCopy::Old, Some(b"")),
        (LocalCopy::Old, Some(b"shorter than a group")),
        (LocalCopy::Old, None),
        (LocalCopy::Part, None),
    ];
    for (here, left) in forms {
        let scratch = tempfile::tempdir().unwrap();
        if let Some(left) = left {
            std::fs::write(scratch.path().join("file"), left).unwrap();
        }
        let mut content = begun(scratch.path(), here, 3 * GROUP);
        // The sender asks for what it was told of, two queries ahead.
        assert!(content.query(0, 2).unwrap().unwrap().is_empty());
        assert!(content.query(2, 1).unwrap().unwrap().is_empty());
        content.data(&bytes(SIZE)[..]).unwrap();
        let (complete, size) = content.end(hash()).unwrap();
        let Complete::Stored(staged) = complete else {
            panic!("nothing of it was here");
        };
        let mut stored = vec![0; size as usize];
        staged.file().read_exact_at(&mut stored, 0).unwrap();
        assert!(stored == bytes(SIZE), "{here:?}");
    }
}

#[test]
fn a_part_is_free_before_its_name_is() {
    // In a process without other tests: a program that one of them starts holds, until it is
    // executed, the locks of all files that are open here.
    const ALONE: &str = "TACK_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let (_crate, module) = module_path!().split_once("::").unwrap();
        let name = format!("{module}::a_part_is_free_before_its_name_is");
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && shown.contains("1 passed"),
            "{shown}"
        );
        return;
    }
    let names = Arc::new(Names::default());
    let holder = Holder::new(None);
    let reserve = || names.reserve((1, 2), b"file", &holder);
    for _ in 0..50 {
        let (_scratch, mut content) = content(GROUP);
        content.wanted.reservation = Some(reserve().unwrap());
        let (dir, part) = (
            Arc::clone(&content.dir),
            content.wanted.part.clone().unwrap(),
        );
        std::thread::scope(|scope| {
            let next = scope.spawn(|| {
                loop {
                    if let Ok(_reservation) = reserve() {
                        return part::open(&dir, &part).unwrap().is_some();
                    }
                }
            });
            drop(content);
            assert!(next.join().unwrap());
        });
    }
}

#[test]
fn a_part_that_is_complete_needs_nothing_but_the_hash() {
    let (_scratch, mut complete) = content(SIZE);
    assert_eq!(complete.query(0, 128).unwrap().unwrap().len(), 6);
    assert!(complete.end(hash()).is_ok());
    let (scratch, mut wrong) = content(SIZE);
    wrong.query(0, 128).unwrap().unwrap();
    let refused = wrong.end([1; 32]).unwrap_err();
    assert_eq!(refused.reason, Refusal::Corrupt);
    drop(wrong);
    let left = std::fs::read_dir(scratch.path()).unwrap().count();
    assert_eq!(left, 0, "what does not lead to the file is not kept");
}

#[test]
fn groups_out_of_order_or_never_told_are_violations() {
    let group = bytes(GROUP);
    let (_scratch, mut content) = content(3 * GROUP);
    assert_eq!(
        content.query(1, 1),
        Err(Violation::Group(1)),
        "not the first"
    );
    content.query(0, 2).unwrap().unwrap();
    assert_eq!(content.query(0, 2), Err(Violation::Group(0)), "again");
    assert_eq!(content.seek(6), Err(Violation::Group(6)), "beyond the end");
    content.seek(1).unwrap();
    content.data(&group[..10]).unwrap();
    assert_eq!(content.seek(2), Err(Violation::Group(2)), "half a group");
    assert_eq!(
        content.query(2, 1),
        Err(Violation::Group(2)),
        "within a group"
    );
    content.data(&group[10..]).unwrap();
    assert_eq!(content.seek(1), Err(Violation::Group(1)), "back");
    // Of group 2 nothing was told, so nobody knows that it is right.
    assert_eq!(content.seek(3), Err(Violation::Group(2)));
}

#[test]
fn what_is_missing_at_the_end_is_noticed() {
    let (_scratch, mut content) = content(3 * GROUP);
    content.query(0, 128).unwrap().unwrap();
    let refused = content.end(hash()).unwrap_err();
    assert_eq!(refused.reason, Refusal::Corrupt);
}

#[test]
fn a_file_has_no_more_bytes_than_announced() {
    let (_scratch, mut content) = content(0);
    assert_eq!(
        content.query(0, 1),
        Err(Violation::Group(0)),
        "nothing is here"
    );
    content.data(&bytes(SIZE)[..]).unwrap();
    assert_eq!(content.data(&[1][..]).unwrap_err().reason, Refusal::Corrupt);
}

#[test]
fn a_hole_clears_what_was_there() {
    let (_scratch, mut content) = content(SIZE);
    content.hole(GROUP).unwrap();
    content.data(&bytes(SIZE)[GROUP as usize..]).unwrap();
    let mut expected = vec![0; GROUP as usize];
    expected.extend_from_slice(&bytes(SIZE)[GROUP as usize..]);
    let hash = *blake3::hash(&expected).as_bytes();
    let (complete, _) = content.end(hash).unwrap();
    let Complete::Stored(staged) = complete else {
        panic!("it is new");
    };
    let mut first = vec![1; GROUP as usize];
    staged.file().read_exact_at(&mut first, 0).unwrap();
    assert!(first.iter().all(|byte| *byte == 0));
}
