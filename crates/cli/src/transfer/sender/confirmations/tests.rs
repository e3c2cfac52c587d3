//! Answers, and those that no receiver would give.

use super::*;
use crate::transfer::protocol::{Kept, Refusal};
use crate::transfer::report::Listing;

fn confirmations() -> Confirmations {
    Confirmations::new(Report::new(Listing::Files), Progress::hidden())
}

fn failures(report: &mut Report) -> serde_json::Value {
    let mut out = Vec::new();
    let summary = serde_json::json!({"failed": report.failed});
    report.write_json(&summary, &mut out).unwrap();
    serde_json::from_slice::<serde_json::Value>(&out).unwrap()["failures"].take()
}

#[test]
fn a_directory_left_long_ago_is_refused_by_its_name_and_is_not_stored() {
    let confirmations = confirmations();
    for name in ["a", "b", "c"] {
        confirmations.enter(Path::new(name));
        confirmations.leave();
    }
    confirmations
        .reject(1, Refusal::Exists, "it is there")
        .unwrap();
    assert!(confirmations.reject(1, Refusal::Exists, "again").is_err());
    confirmations.finish(0, 0).unwrap();
    let mut report = confirmations.take_report();
    assert_eq!((report.directories, report.failed), (2, 1));
    assert_eq!(failures(&mut report)[0]["path"], "b");
}

#[test]
fn what_falls_with_a_directory_is_counted_once_however_soon_we_hear() {
    // Heard before the file was sent, while it was sent, and after.
    for heard in 0..3 {
        let confirmations = confirmations();
        let refuse = |index, reason| confirmations.reject(index, reason, "").unwrap();
        confirmations.enter(Path::new("dir"));
        if heard == 0 {
            refuse(0, Refusal::Exists);
            assert!(confirmations.is_refused());
            confirmations.leave_out();
        } else {
            let index = confirmations.offer(Path::new("dir/file")).unwrap();
            if heard == 1 {
                refuse(0, Refusal::Exists);
                confirmations.abort_file(index, None);
            } else {
                confirmations.end_file(index, 1, [0; 32]);
            }
        }
        confirmations.leave();
        if heard == 2 {
            refuse(0, Refusal::Exists);
        }
        if heard > 0 {
            refuse(1, Refusal::Parent);
        }
        confirmations.finish(0, 0).unwrap();
        let mut report = confirmations.take_report();
        let counts = (report.directories, report.failed, report.within_refused);
        assert_eq!(counts, (0, 2, 1), "{heard}");
        assert_eq!(failures(&mut report).as_array().unwrap().len(), 1);
    }
}

#[test]
fn more_directories_than_are_remembered() {
    let confirmations = confirmations();
    confirmations.enter(Path::new("root"));
    for number in 0..MAX_REMEMBERED + 10 {
        confirmations.enter(Path::new(&format!("root/{number}")));
        confirmations.leave();
    }
    confirmations.reject(2, Refusal::Name, "").unwrap();
    confirmations.reject(0, Refusal::Storage, "").unwrap();
    confirmations.leave();
    confirmations.finish(0, 0).unwrap();
    let mut report = confirmations.take_report();
    assert_eq!(report.directories, MAX_REMEMBERED as u64 + 9);
    let failures = failures(&mut report);
    let path = failures[0]["path"].as_str().unwrap();
    assert_eq!(path, "(a directory sent before root/11)");
    assert_eq!(failures[1]["path"], "root");
}

#[test]
fn answers_to_what_was_never_asked_are_noticed() {
    let confirmations = confirmations();
    assert!(confirmations.want(0, 0).is_err());
    assert!(confirmations.have(0, Kept::Unchanged).is_err());
    assert!(confirmations.groups(0, vec![[0; 32]]).is_err());
    let index = confirmations.offer(Path::new("a")).unwrap();
    assert!(!confirmations.is_answered(index));
    confirmations.want(index, 5).unwrap();
    assert!(confirmations.want(index, 5).is_err(), "twice");
    assert_eq!(confirmations.verdict(index).unwrap(), Verdict::Wanted(5));
    // More values than asked for, and others.
    confirmations.ask(0, 2);
    assert!(confirmations.groups(0, vec![[0; 32]; 3]).is_err());
    confirmations.ask(0, 2);
    assert!(confirmations.groups(1, vec![[0; 32]; 2]).is_err());
    confirmations.ask(0, 2);
    confirmations.groups(0, vec![[1; 32]]).unwrap();
    let values = confirmations.values(index).unwrap();
    assert_eq!(values, Some((0, vec![[1; 32]])));
    // A link is never wanted, and a file that is wanted is not there.
    confirmations.link(Path::new("l"), b"t", [0; 32]).unwrap();
    assert!(confirmations.want(1, 0).is_err());
    assert!(confirmations.have(index, Kept::Unchanged).is_err());
}

#[test]
fn what_was_confirmed_before_a_reconnection_is_counted_once() {
    let confirmations = confirmations();
    let index = confirmations.offer(Path::new("a")).unwrap();
    confirmations.want(index, 0).unwrap();
    confirmations.end_file(index, 3, [1; 32]);
    confirmations.confirm(index, 3, &[1; 32], b"").unwrap();
    confirmations.fail(Path::new("gone"), "cannot be read");
    confirmations.begin_again(true);
    confirmations.fail(Path::new("gone"), "cannot be read");
    let index = confirmations.offer(Path::new("a")).unwrap();
    confirmations.have(index, Kept::Unchanged).unwrap();
    let index = confirmations.offer(Path::new("b")).unwrap();
    confirmations.have(index, Kept::Unchanged).unwrap();
    confirmations.finish(0, 0).unwrap();
    let report = confirmations.take_report();
    let counts = (
        report.files,
        report.unchanged,
        report.failed,
        report.reconnects,
    );
    assert_eq!(counts, (1, 1, 1, 1));
}
