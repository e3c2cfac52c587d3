//! Two installations meet: with tickets, codes and keys, whichever of them sends, and with whoever
//! has none of these.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{self, Ended, finish, tack};

/// One person's installation, with folders of its own.
pub(crate) struct Side {
    home: tempfile::TempDir,
}

impl Side {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("inbox")).unwrap();
        Self { home }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn file(&self, name: &str, len: usize) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, vec![7; len]).unwrap();
        path
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tack();
        command
            .args(arguments)
            .arg("--state-dir")
            .arg(self.path("state"))
            .current_dir(self.home.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        finish(&mut self.command(arguments))
    }

    pub(crate) fn key(&self) -> String {
        self.run(&["id"]).stdout.trim().to_owned()
    }

    /// A `tack recv` on loopback.
    fn receive(&self, options: &[&str]) -> Waiting {
        let mut command = self.command(&["recv", "--dir", "inbox", "--listen", "127.0.0.1:0"]);
        Waiting::start(command.args(options))
    }

    fn received(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.path("inbox").join(name)).ok()
    }
}

/// A program that waits, and has shown how to reach it.
struct Waiting {
    child: Child,
    ticket: String,
    code: String,
    address: String,
    shown: String,
    rest: Option<std::thread::JoinHandle<String>>,
}

impl Waiting {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut waiting = Self {
            child,
            ticket: String::new(),
            code: String::new(),
            address: String::new(),
            shown: String::new(),
            rest: None,
        };
        while waiting.ticket.is_empty() {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "{}", waiting.shown);
            let words: Vec<&str> = line.split_whitespace().collect();
            if let Some(at) = words.iter().position(|word| *word == "--code") {
                waiting.address = words[at - 1].to_owned();
                waiting.code = words[at + 1].to_owned();
            }
            if let Some(ticket) = words.iter().find(|word| word.starts_with("tack1")) {
                waiting.ticket = (*ticket).to_owned();
            }
            waiting.shown.push_str(&line);
        }
        waiting.rest = Some(std::thread::spawn(move || {
            let mut rest = String::new();
            let _ = lines.read_to_string(&mut rest);
            rest
        }));
        waiting
    }

    /// Its exit code, and what it said after it had shown how to reach it.
    fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        (code, self.rest.take().unwrap().join().unwrap())
    }

    /// Kills it, and returns what it said.
    fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.rest.take().unwrap().join().unwrap()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

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
fn the_side_that_receives_may_be_the_one_that_connects() {
    let (alice, bob) = (Side::new(), Side::new());
    let file = alice.file("file", 100_000);
    let sender =
        Waiting::start(&mut alice.command(&["send", text(&file), "--listen", "127.0.0.1:0"]));
    // A peer that wants the same gets an error that says so, and uses nothing up.
    let refused = bob.run(&["send", text(&bob.file("x", 1)), &sender.ticket]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("one has to send"), "{refused:?}");
    let received = bob.run(&["recv", &sender.ticket, "--dir", "inbox"]);
    assert_eq!(received.code, Some(0), "{received:?}");
    assert_eq!(bob.received("file").unwrap(), fs::read(&file).unwrap());
    let (code, said) = sender.end();
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

    alice.run(&["id", "rotate", "--forget"]);
    let known = bob.run(&["peers", "--json"]).json()["key"].clone();
    let _receiver = restart(&[]);
    let refused = bob.run(&["send", text(&bob.file("c", 1)), "alice:"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for words in [
        "another key",
        "set up anew",
        "impersonates it",
        "nothing was sent",
    ] {
        assert!(refused.stderr.contains(words), "{words}: {refused:?}");
    }
    assert!(alice.received("c").is_none());
    assert_eq!(bob.run(&["peers", "--json"]).json()["key"], known);
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

#[tokio::test]
async fn peers_that_say_nothing_keep_nobody_out() {
    use tack::secure::Identity;
    let (alice, bob) = (Side::new(), Side::new());
    let receiver = alice.receive(&[]);
    let identity = Identity::generate().unwrap();
    let endpoint = tack::Endpoint::builder()
        .identity(identity)
        .build()
        .unwrap();
    // More than there is room for.
    let mut connecting = tokio::task::JoinSet::new();
    for _ in 0..80 {
        let (endpoint, address) = (endpoint.clone(), receiver.address.clone());
        connecting
            .spawn(async move { endpoint.connect(address.as_str()).any_key(b"tack/1").await });
    }
    let silent = connecting.join_all().await;
    assert!(silent.iter().all(Result::is_ok), "{silent:?}");
    let sent = tokio::task::spawn_blocking(move || {
        let sent = bob.run(&["send", text(&bob.file("file", 10)), &receiver.ticket]);
        drop(receiver);
        sent
    });
    let sent = sent.await.unwrap();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(alice.received("file").is_some());
    drop(silent);
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
fn clear_text_and_encryption_recognise_each_other_and_never_mix() {
    let (alice, bob) = (Side::new(), Side::new());
    let file = bob.file("file", 10);
    // Encrypted here, clear text there.
    let clear = support::Receiver::start(&[]);
    let address = clear.address.to_string();
    bob.run(&["peers", "add", "alice", &alice.key(), "--address", &address]);
    let refused = bob.run(&["send", text(&file), "alice:", "--connect-timeout", "30s"]);
    assert!(
        refused.code == Some(1) || refused.code == Some(3),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("clear text"), "{refused:?}");
    // And the other way round.
    let receiver = alice.receive(&[]);
    let refused = bob.run(&["send", "--insecure", text(&file), &receiver.address]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("the other side encrypts"),
        "{refused:?}"
    );
    assert!(!refused.stderr.contains("--insecure"), "{refused:?}");
    assert!(alice.received("file").is_none());
    let said = receiver.kill();
    assert!(
        said.contains("clear text") && !said.contains("insecure"),
        "{said}"
    );
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

#[test]
fn a_look_at_the_key_is_not_told_as_a_refusal() {
    let (alice, bob) = (Side::new(), Side::new());
    alice.run(&["peers", "add", "bob", &bob.key()]);
    bob.run(&["peers", "add", "alice", &alice.key()]);
    let receiver = alice.receive(&[]);
    let file = bob.file("file", 100);
    let sent = bob.run(&["send", text(&file), &receiver.address]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let said = receiver.kill();
    assert!(!said.contains("refused"), "{said}");
}

#[test]
fn whoever_has_a_name_may_start_first() {
    let (alice, bob) = (Side::new(), Side::new());
    let file = bob.file("file", 100);
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    bob.run(&["peers", "add", "alice", &alice.key(), "--address", &address]);
    alice.run(&["peers", "add", "bob", &bob.key()]);
    let mut sender = bob
        .command(&["send", text(&file), "alice:"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(sender.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for it"), "{line}");
    let mut receiver = alice.command(&["recv", "--once", "--dir", "inbox", "--listen", &address]);
    let (code, _) = Waiting::start(&mut receiver).end();
    assert_eq!(code, Some(0));
    assert_eq!(sender.wait().unwrap().code(), Some(0));
    assert_eq!(alice.received("file"), Some(vec![7; 100]));
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "two figures for the same real time are compared"
)]
fn the_wait_for_a_peer_is_not_part_of_the_transfer() {
    let (alice, bob) = (Side::new(), Side::new());
    let file = bob.file("file", 100);
    let mut command = bob.command(&["send", "--json", "--listen", "127.0.0.1:0", text(&file)]);
    let mut sender = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(sender.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("tack1") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0);
    }
    let ticket = line
        .split_whitespace()
        .find(|word| word.starts_with("tack1"));
    // Longer than the transfer takes, and no bound on anything but the figure below.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let began = std::time::SystemTime::now();
    let received = alice.run(&["recv", "--dir", "inbox", ticket.unwrap()]);
    assert_eq!(received.code, Some(0), "{received:?}");
    let output = sender.wait_with_output().unwrap();
    let took = began.elapsed().unwrap().as_secs_f64();
    let output = String::from_utf8(output.stdout).unwrap();
    let summary: serde_json::Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    let seconds = summary["seconds"].as_f64().unwrap();
    assert!(seconds <= took, "{seconds} s of {took} s");
}
