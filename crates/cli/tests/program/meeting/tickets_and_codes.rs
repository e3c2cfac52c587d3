//! Tickets and codes: whom they let in, for how long, and what is said of wrong ones.

use std::fs;

use super::{Side, Waiting, text};
use crate::support::finish;

#[test]
fn a_ticket_lets_one_installation_in_for_one_transfer() {
    let (alice, bob, eve) = (Side::new(), Side::new(), Side::new());
    let written = alice.path("ticket");
    let receiver = alice.receive(&["--write-ticket", text(&written)]);
    assert_eq!(
        fs::read_to_string(&written).unwrap().trim(),
        receiver.ticket
    );
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(&written).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let file = bob.file("file", 100_000);
    let sent = bob.run(&["send", text(&file), "--ticket-file", text(&written)]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(alice.received("file").unwrap(), fs::read(&file).unwrap());
    // It did its work: for nobody else, and not once more.
    for side in [&bob, &eve] {
        let other = side.file("other", 1);
        let refused = side.run(&["send", text(&other), &receiver.ticket]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(
            refused.stderr.contains("does not know this ticket"),
            "{refused:?}"
        );
    }
    assert!(alice.received("other").is_none());
    let ticket = receiver.ticket.clone();
    let said = receiver.kill();
    assert!(
        said.contains(": it showed a ticket") && said.contains("tack: refused "),
        "{said}"
    );
    // Secrets are nowhere but where they belong.
    let stored = fs::read_to_string(alice.path("state").join("invitations.json")).unwrap();
    assert!(!sent.stdout.contains(&ticket) && !stored.contains(&ticket));
}

#[test]
fn a_ticket_from_the_environment_or_standard_input_is_as_good() {
    let (alice, bob) = (Side::new(), Side::new());
    let receiver = alice.receive(&["--keep"]);
    let file = bob.file("by-environment", 10);
    let mut command = bob.command(&["send", text(&file)]);
    let sent = finish(command.env("TACK_TICKET", &receiver.ticket));
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let (file, ticket) = (bob.file("by-input", 10), bob.path("ticket"));
    fs::write(&ticket, &receiver.ticket).unwrap();
    let mut command = bob.command(&["send", text(&file), "-"]);
    let sent = finish(command.stdin(fs::File::open(&ticket).unwrap()));
    assert_eq!(sent.code, Some(0), "{sent:?}");
    // With --keep others may use it, too.
    let eve = Side::new();
    let file = eve.file("by-another", 10);
    let sent = eve.run(&["send", text(&file), &receiver.ticket.to_uppercase()]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    for name in ["by-environment", "by-input", "by-another"] {
        assert!(alice.received(name).is_some(), "{name}");
    }
    let said = receiver.kill();
    assert!(
        !said.contains("tack1"),
        "the ticket is as good as before: {said}"
    );
}

#[test]
fn a_code_works_by_address_and_wrong_words_are_told_to_both_sides() {
    let (alice, bob) = (Side::new(), Side::new());
    let receiver = alice.receive(&["--once"]);
    let file = bob.file("file", 10);
    let address = receiver.address.clone();
    let sent = bob.run(&["send", text(&file), &address, "--code", &receiver.code]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(sent.stderr.contains("--remember NAME"), "{sent:?}");
    let (code, said) = receiver.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(alice.received("file").is_some());

    let receiver = alice.receive(&["--once"]);
    let number = receiver.code.split('-').next().unwrap();
    let words = if receiver.code.contains("hurricane") {
        "tobacco-tiger"
    } else {
        "hurricane-tiger"
    };
    let wrong = format!("{number}-{words}");
    let other = bob.file("other", 10);
    let target = ["send", text(&other), &receiver.address, "--code"];
    let refused = bob.run(&[&target[..], &[&wrong]].concat());
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("mistyped, or somebody"),
        "{refused:?}"
    );
    // The right one comes too late.
    let burnt = bob.run(&[&target[..], &[&receiver.code]].concat());
    assert_eq!(burnt.code, Some(1), "{burnt:?}");
    assert!(burnt.stderr.contains("one attempt"), "{burnt:?}");
    // The ticket is as good as before.
    let sent = bob.run(&["send", text(&other), &receiver.ticket]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let (code, said) = receiver.end();
    assert_eq!(code, Some(0));
    assert!(
        said.contains("a typo, or somebody tried to guess it"),
        "{said}"
    );
    assert!(said.contains("the code is used up"), "{said}");
}

#[test]
fn a_ticket_outlives_the_program_that_issued_it() {
    let (alice, bob) = (Side::new(), Side::new());
    let receiver = alice.receive(&["--no-code"]);
    let ticket = receiver.ticket.clone();
    let address = receiver
        .shown
        .lines()
        .next()
        .unwrap()
        .split_whitespace()
        .nth(2)
        .unwrap();
    let address = address.trim_end_matches(',').to_owned();
    receiver.kill();
    let mut command = alice.command(&["recv", "--dir", "inbox", "--no-code", "--listen", &address]);
    let _again = Waiting::start(&mut command);
    let sent = bob.run(&["send", text(&bob.file("late", 10)), &ticket]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(alice.received("late").is_some());
}

#[test]
fn a_code_that_was_used_is_good_at_the_new_address_of_the_same_installation() {
    let (alice, bob) = (Side::new(), Side::new());
    let receiver = alice.receive(&[]);
    let code = receiver.code.clone();
    let file = bob.file("file", 5000);
    let send = |options: &[&str], address: &str| {
        let command = ["send", text(&file), address, "--code", &code];
        bob.run(&[&command[..], options].concat())
    };
    // It uses the code, and leaves the transfer to come.
    let listed = send(&["--dry-run"], &receiver.address);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    receiver.kill();
    let moved = alice.receive(&[]);
    let sent = send(&[], &moved.address);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(alice.received("file").is_some());
}

#[test]
fn an_expired_ticket_is_told_as_that() {
    let (alice, bob) = (Side::new(), Side::new());
    let receiver = alice.receive(&["--ticket-lifetime", "1ms"]);
    let refused = bob.run(&["send", text(&bob.file("late", 10)), &receiver.ticket]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("has expired"), "{refused:?}");
}

#[test]
fn a_ticket_serves_until_its_transfer_is_whole() {
    let (alice, bob) = (Side::new(), Side::new());
    let file = bob.file("file", 5000);
    let receiver = alice.receive(&["--once"]);
    // What would be sent is only listed: the transfer is still to come, for --once, too.
    let listed = bob.run(&["send", "--dry-run", text(&file), &receiver.ticket]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert_eq!(alice.received("file"), None);
    let sent = bob.run(&["send", text(&file), &receiver.ticket]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(receiver.end().0, Some(0));
    assert!(alice.received("file").is_some());
    // A part of it was refused: the same command may be given again.
    let folder = bob.path("folder");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).unwrap();
    fs::write(folder.join("inside"), b"words").unwrap();
    let receiver = alice.receive(&[]);
    for _ in 0..2 {
        let sent = bob.run(&["send", text(&folder), &receiver.ticket]);
        assert_eq!(sent.code, Some(4), "{sent:?}");
    }
    fs::remove_file(folder.join("link")).unwrap();
    let sent = bob.run(&["send", text(&folder), &receiver.ticket]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let spent = bob.run(&["send", text(&folder), &receiver.ticket]);
    assert_eq!(spent.code, Some(1), "{spent:?}");
}
