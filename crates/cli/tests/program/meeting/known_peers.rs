//! Peers that are known by their keys, under names that each side gives them.

use std::fs;
use std::os::unix::fs::symlink;

use super::{Side, Waiting, text};

#[test]
fn a_name_that_belongs_to_another_key_is_told_before_anything_moves() {
    let (alice, bob) = (Side::new(), Side::new());
    let stranger = Side::new().key();
    let added = bob.run(&["peers", "add", "alice", &stranger]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let receiver = alice.receive(&["--once", "--no-code"]);
    let file = bob.file("file", 10);
    let target = ["send", text(&file), &receiver.ticket];
    let refused = bob.run(&[&target[..], &["--remember", "alice"]].concat());
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("alice: is known by another key"),
        "{refused:?}"
    );
    assert!(alice.received("file").is_none());
    // The ticket serves the same installation still. With --quiet nothing is said.
    let sent = bob.run(&[&target[..], &["--quiet"]].concat());
    assert_eq!((sent.code, &sent.stderr[..]), (Some(0), ""), "{sent:?}");
    assert!(alice.received("file").is_some());
    let (code, said) = receiver.end();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn known_peers_need_nothing_else_until_they_are_removed() {
    let (alice, bob) = (Side::new(), Side::new());
    // The first meeting: each keeps the other under a name.
    let receiver = alice.receive(&["--remember", "bob", "--no-code"]);
    let file = bob.file("first", 10);
    let sent = bob.run(&["send", text(&file), &receiver.ticket, "--remember", "alice"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let listed = bob.run(&["peers", "--json"]).json();
    assert_eq!(
        (&listed["name"], &listed["key"]),
        (&"alice:".into(), &alice.key().into())
    );
    let listed = alice.run(&["peers", "--json"]).json();
    assert_eq!(
        (&listed["name"], &listed["key"]),
        (&"bob:".into(), &bob.key().into())
    );
    // Another name for a peer that has one changes nothing, and keeps nobody from sending.
    let again = bob.run(&[
        "send",
        text(&bob.file("again", 10)),
        "alice:",
        "--remember",
        "friend",
    ]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(
        again.stderr.contains("known already, as alice:") && again.stderr.contains("peers rename"),
        "{again:?}"
    );
    assert!(alice.received("again").is_some());
    let listed = bob.run(&["peers", "--json"]);
    assert!(!listed.stdout.contains("friend"), "{listed:?}");
    // By name, and by address alone.
    let address = listed_address(&bob);
    for (name, target) in [("second", "alice:"), ("third", &address)] {
        let sent = bob.run(&["send", text(&bob.file(name, 10)), target]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
        assert!(alice.received(name).is_some());
    }
    // A stranger gets no further, and learns what would help.
    let eve = Side::new();
    let strange = eve.run(&["send", text(&eve.file("evil", 1)), &address]);
    assert_eq!(strange.code, Some(1), "{strange:?}");
    assert!(strange.stderr.contains("is not known here"), "{strange:?}");
    eve.run(&["peers", "add", "alice", &alice.key(), "--address", &address]);
    let strange = eve.run(&["send", text(&eve.file("evil", 1)), "alice:"]);
    assert_eq!(strange.code, Some(1), "{strange:?}");
    assert!(
        strange
            .stderr
            .contains("does not know this installation's key"),
        "{strange:?}"
    );
    assert!(alice.received("evil").is_none());
    // A removed peer is a stranger from then on.
    alice.run(&["peers", "remove", "bob:"]);
    let removed = bob.run(&["send", text(&bob.file("fourth", 10)), "alice:"]);
    assert_eq!(removed.code, Some(1), "{removed:?}");
    assert!(alice.received("fourth").is_none());
}

/// Where the one peer of `side` was met.
fn listed_address(side: &Side) -> String {
    let listed = side.run(&["peers", "--json"]).json();
    listed["addresses"][0].as_str().unwrap().to_owned()
}

#[test]
fn a_rotated_key_is_accepted_and_a_changed_one_is_not() {
    let (alice, bob) = (Side::new(), Side::new());
    let receiver = alice.receive(&["--remember", "bob", "--no-code"]);
    let sent = bob.run(&[
        "send",
        text(&bob.file("a", 1)),
        &receiver.ticket,
        "--remember",
        "alice",
    ]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    fs::create_dir_all(bob.path("docs/inner")).unwrap();
    bob.file("docs/file", 1);
    symlink("../file", bob.path("docs/inner/link")).unwrap();
    let sent = bob.run(&["send", text(&bob.path("docs")), "alice:"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    drop(receiver);
    for side in [&alice, &bob] {
        assert_eq!(side.run(&["id", "rotate"]).code, Some(0));
    }
    let address = listed_address(&bob);
    let restart = |options: &[&str]| {
        let mut command = alice.command(&["recv", "--dir", "inbox", "--no-code"]);
        Waiting::start(command.args(["--listen", &address]).args(options))
    };
    let receiver = restart(&["--overwrite"]);
    let sent = bob.run(&["send", text(&bob.file("b", 1)), "alice:"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(alice.received("b").is_some());
    // A link that goes up through a folder made for the old key is there, and stays.
    let docs = bob.path("docs");
    let send = ["send", text(&docs), "alice:", "--json"];
    let sent = bob.run(&send);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(sent.json()["unchanged"], 2, "{sent:?}");
    symlink("../a", bob.path("docs/inner/other")).unwrap();
    let sent = bob.run(&send);
    assert_eq!(sent.code, Some(4), "{sent:?}");
    assert!(sent.stdout.contains("did not make"), "{sent:?}");
    assert_eq!(bob.run(&["peers", "--json"]).json()["key"], alice.key());
    assert_eq!(alice.run(&["peers", "--json"]).json()["key"], bob.key());
    drop(receiver);
    // Who types the address follows the key, too.
    alice.run(&["id", "rotate"]);
    let receiver = restart(&[]);
    let sent = bob.run(&["send", text(&bob.file("d", 1)), &address]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(bob.run(&["peers", "--json"]).json()["key"], alice.key());
    drop(receiver);

    alice.run(&["id", "rotate", "--forget"]);
    let known = bob.run(&["peers", "--json"]).json()["key"].clone();
    let _receiver = restart(&[]);
    for target in ["alice:", &address] {
        let refused = bob.run(&["send", text(&bob.file("c", 1)), target]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        for words in [
            "alice: has another key",
            "set up anew",
            "impersonates it",
            "nothing was sent",
        ] {
            assert!(refused.stderr.contains(words), "{words}: {refused:?}");
        }
    }
    assert!(alice.received("c").is_none());
    assert_eq!(bob.run(&["peers", "--json"]).json()["key"], known);
}

#[test]
fn a_look_at_the_key_is_not_told_as_a_refusal() {
    let (alice, bob) = (Side::new(), Side::new());
    alice.run(&["peers", "add", "bob", &bob.key()]);
    bob.run(&["peers", "add", "alice", &alice.key()]);
    let receiver = alice.receive(&[]);
    let receiver_address = receiver.address.clone();
    let file = bob.file("file", 100);
    let sent = bob.run(&["send", text(&file), &receiver_address]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let said = receiver.kill();
    assert!(!said.contains("refused"), "{said}");
    // Added by its key alone, it can be reached by its name from now on.
    assert_eq!(listed_address(&bob), receiver_address);
}
