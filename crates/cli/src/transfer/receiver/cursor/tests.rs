//! Where a transfer may go, and which names it gets.

use super::*;

fn cursor(store: &Store) -> Cursor<'_> {
    Cursor::new(store, Holder::new(None), store.existing, false)
}

#[test]
fn directories_that_were_there_are_not_listed() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir(scratch.path().join("old")).unwrap();
    let store = Store::open(scratch.path(), Existing::Overwrite).unwrap();
    let mut cursor = cursor(&store);
    let entry = |name| Entry {
        name,
        mode: 0o755,
        modified: Modified::default(),
        size: None,
        data: 0,
    };
    for index in 0..100 {
        for name in [&b"old"[..], b"new"] {
            cursor.enter(index, &entry(name)).unwrap().unwrap();
            cursor.leave().unwrap().unwrap();
        }
    }
    assert_eq!(cursor.left.count(), 100, "only what was made");
    cursor
        .finish(false, |_, path, error| panic!("{path:?}: {error}"))
        .unwrap();
}

#[test]
fn links_stay_below_the_receiving_directory() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir(scratch.path().join("old")).unwrap();
    let store = Store::open(scratch.path(), Existing::Overwrite).unwrap();
    let mut cursor = cursor(&store);
    let entry = |name| Entry {
        name,
        mode: 0o755,
        modified: Modified::default(),
        size: None,
        data: 0,
    };
    assert!(cursor.stays_inside(b"file") && cursor.stays_inside(b"a//./b/"));
    for out in [&b""[..], b"..", b"../x", b"/etc", b"a/../../x", b"a/.."] {
        assert!(!cursor.stays_inside(out), "{out:?}");
    }
    cursor.enter(0, &entry(b"new")).unwrap().unwrap();
    cursor.enter(1, &entry(b"deeper")).unwrap().unwrap();
    assert!(cursor.stays_inside(b"../../file") && cursor.stays_inside(b".."));
    assert!(!cursor.stays_inside(b"../../../file"));
    cursor.leave().unwrap().unwrap();
    cursor.leave().unwrap().unwrap();
    // What was there may itself be a link, so that its parent is anywhere.
    cursor.enter(2, &entry(b"old")).unwrap().unwrap();
    assert!(!cursor.stays_inside(b"../file"));
    let link = |cursor: &mut Cursor<'_>, target: &[u8]| cursor.link(&entry(b"same"), target);
    let refused = link(&mut cursor, b"../file").unwrap_err();
    assert!(refused.message.contains("did not make"), "{refused:?}");
    // One that is there already is kept, and only the very same one.
    let place = scratch.path().join("old/same");
    std::os::unix::fs::symlink("../file", &place).unwrap();
    assert!(!link(&mut cursor, b"../file").unwrap());
    assert!(link(&mut cursor, b"../other").is_err());
    assert!(link(&mut cursor, b".././file").is_err());
    assert_eq!(std::fs::read_link(&place).unwrap(), Path::new("../file"));
    cursor.link(&entry(b"link"), b"file").unwrap();
    let found = std::fs::read_link(scratch.path().join("old/link")).unwrap();
    assert_eq!(found, Path::new("file"));
}

#[test]
fn a_name_belongs_to_the_transfer_that_began_first() {
    let scratch = tempfile::tempdir().unwrap();
    let store = Store::open(scratch.path(), Existing::Refuse).unwrap();
    let mut first = cursor(&store);
    // One of the same peer would wait until it is clear that the first lives.
    let other = Holder::new(Some([1; 32]));
    let mut second = Cursor::new(&store, other, store.existing, false);
    let entry = |name| Entry {
        name,
        mode: 0o755,
        modified: Modified::default(),
        size: Some(1),
        data: 1,
    };
    let offered = first.offer(&entry(b"wanted"), None).unwrap();
    let refused = second.offer(&entry(b"wanted"), None).unwrap_err();
    assert_eq!(refused.reason, Refusal::Exists);
    assert!(
        refused.message.contains("began before"),
        "{}",
        refused.message
    );
    assert!(second.link(&entry(b"wanted"), b"x").is_err());
    assert!(first.enter(0, &entry(b"wanted")).unwrap().is_err());
    drop(offered);
    assert!(second.offer(&entry(b"wanted"), None).is_ok());
}
