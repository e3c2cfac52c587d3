//! Transfers in which the receiver connects and the sender waits: either side is killed, the path
//! is cut, addresses change on the way. They go on where they were, as in the other direction
//! (`resume.rs` and `cuts.rs`).
//!
//! `TACK_LONG=1` kills 60 times and cuts the path for up to a minute.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::cuts::each_cut;
use crate::resume::{MIB, Protection, Relay, part, source};
use crate::support::{Ended, Running, is_long, noise};
use crate::terminal::AtTerminal;

/// A file that a sender offers who waits, and the folder that it is fetched into.
struct Offer {
    path: PathBuf,
    content: Vec<u8>,
    address: SocketAddr,
    inbox: tempfile::TempDir,
    protection: Protection,
    rate: &'static str,
    _source: tempfile::TempDir,
}

impl Offer {
    fn new(size: u64, rate: &'static str) -> Self {
        let (scratch, path, content) = source(size);
        Self {
            path,
            content,
            address: own_address(),
            inbox: tempfile::tempdir().unwrap(),
            protection: Protection::encrypted(),
            rate,
            _source: scratch,
        }
    }

    /// A sender that waits; the same address each time.
    fn sender(&self) -> Command {
        let mut command = self.protection.command("send");
        command.args([
            "--bwlimit",
            self.rate,
            "--listen",
            &self.address.to_string(),
        ]);
        command.arg(&self.path);
        command
    }

    fn receiver(&self, target: &[&str]) -> Command {
        let mut command = self.protection.command("recv");
        command.args(["--timeout", "4s", "--wait", "60s", "--dir"]);
        command.arg(self.inbox.path()).args(target);
        command
    }

    fn file(&self) -> PathBuf {
        self.inbox.path().join("file")
    }

    fn part(&self) -> u64 {
        part(self.inbox.path())
    }

    /// Waits until so much has arrived.
    fn await_part(&self, point: u64, sides: &mut [&mut Running]) {
        while self.part() < point && !self.file().exists() {
            for side in &mut *sides {
                if side.child.try_wait().unwrap().is_some() {
                    panic!("it ended before that: {:?}", side.ended());
                }
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Both sides have ended well, and everything is there once.
    fn check(&self, sender: &Ended, receiver: &Ended) {
        for ended in [sender, receiver] {
            assert_eq!(ended.code, Some(0), "{sender:?} {receiver:?}");
        }
        assert!(
            fs::read(self.file()).unwrap() == self.content,
            "wrong bytes"
        );
        assert_eq!(fs::read_dir(self.inbox.path()).unwrap().count(), 1);
    }
}

/// A port of loopback that no other program gets, also while its own is being started again.
fn own_address() -> SocketAddr {
    static COUNT: AtomicU8 = AtomicU8::new(100);
    let [high, low] = (std::process::id() as u16).to_be_bytes();
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    ([127, number, high, low], 7777).into()
}

fn figure(summary: &Value, name: &str) -> u64 {
    let value = summary[name].as_u64();
    value.unwrap_or_else(|| panic!("no {name}: {summary}"))
}

#[test]
fn either_side_may_be_killed_and_the_same_command_goes_on() {
    let (size, kills) = if is_long() {
        (256 * MIB, 60)
    } else {
        (8 * MIB, 2)
    };
    let offer = Offer::new(size, "150M");
    let relay = Relay::to(offer.address);
    let target = relay.address.to_string();
    let mut sender = Running::start(offer.sender().args(["--timeout", "4s"]));
    let mut receiver = Running::start(&mut offer.receiver(&[&target]));
    // How much was there when the present sender began, and how often it lost its connection.
    let (mut began, mut losses) = (0, 0);
    let (mut arrived, mut passed, mut all_twice) = (0, 0, 0);
    for kill in 1..=kills {
        let stretch = (size - 2 * MIB) / kills;
        let point = (kill - 1) * stretch + noise(kill, 8)[0] as u64 * stretch / 256;
        offer.await_part(point, &mut [&mut sender, &mut receiver]);
        assert!(!offer.file().exists(), "half a file has its name");
        // As in the other direction (`resume.rs`).
        let (there, all) = (offer.part(), relay.returned.load(Ordering::Relaxed));
        let twice = (all - passed).saturating_sub(there.saturating_sub(arrived) * 17 / 16);
        eprintln!("kill {kill}: {twice} bytes more than arrived since the last one");
        assert!(twice <= 4 * MIB, "{twice} bytes before kill {kill}");
        all_twice += twice;
        (arrived, passed) = (there, all);
        if kill % 2 == 1 {
            sender.signal(Signal::KILL);
            sender.child.wait().unwrap();
            (began, losses) = (offer.part(), 1);
            sender = Running::start(offer.sender().args(["--timeout", "4s"]));
        } else {
            receiver.signal(Signal::KILL);
            receiver.child.wait().unwrap();
            losses += 1;
            receiver = Running::start(&mut offer.receiver(&[&target]));
        }
    }
    assert!(all_twice <= kills * MIB, "{all_twice} bytes, {kills} kills");
    let (sender, receiver) = (sender.wait(), receiver.wait());
    offer.check(&sender, &receiver);
    let twice = figure(&sender.json(), "carried_bytes").saturating_sub(size - began);
    eprintln!("{twice} bytes more than were missing, after {losses} losses of the last sender");
    assert!(twice <= losses * MIB, "{twice} bytes after {losses} losses");
}

/// Fetches a file over a path on which `trouble` happens once half of it is there, from a sender
/// with these options. What both sides said.
fn fetched_through(options: &[&str], trouble: impl FnOnce(&Relay)) -> (Ended, Ended) {
    let size = 8 * MIB;
    let offer = Offer::new(size, "60M");
    let relay = Relay::to(offer.address);
    let mut sender = Running::start(offer.sender().args(options));
    let target = relay.address.to_string();
    let mut receiver = Running::start(&mut offer.receiver(&[&target]));
    offer.await_part(size / 2, &mut [&mut sender, &mut receiver]);
    trouble(&relay);
    let (sender, receiver) = (sender.wait(), receiver.wait());
    offer.check(&sender, &receiver);
    let summary = sender.json();
    let losses = figure(&summary, "reconnects");
    let twice = figure(&summary, "carried_bytes") - size;
    eprintln!("{twice} bytes twice, {losses} losses");
    assert!(twice <= losses * MIB, "{twice} bytes twice: {sender:?}");
    (sender, receiver)
}

/// The words of both sides about a connection that was lost.
fn check_words(sender: &Ended, receiver: &Ended) {
    assert!(figure(&sender.json(), "reconnects") > 0, "{sender:?}");
    let said = &sender.stderr;
    assert!(
        said.contains("; waiting for the receiver to come back"),
        "{said}"
    );
    let said = &receiver.stderr;
    assert!(said.contains("; reconnecting"), "{said}");
    let lines = receiver.stdout.lines().map(serde_json::from_str::<Value>);
    let events: Vec<Value> = lines.map(Result::unwrap).collect();
    let is = |name: &'static str| move |event: &&Value| event["event"] == name;
    assert!(
        events.iter().any(|event| is("interrupted")(&event)),
        "{events:?}"
    );
    let mut progress = events.iter().filter(is("progress"));
    let lost = progress.find(|event| event["reconnecting"] == true);
    let lost = lost.unwrap_or_else(|| panic!("{events:?}"));
    assert!(figure(lost, "bytes") > 0, "{lost}");
    assert!(
        lost["silent_seconds"].is_f64() && lost["peer"].is_string(),
        "{lost}"
    );
}

#[test]
fn a_path_that_is_cut_for_a_time_is_survived() {
    each_cut(|cut| {
        let cut_off = |relay: &Relay| relay.cut_for(Duration::from_millis(cut));
        let (sender, receiver) = fetched_through(&["--timeout", "4s"], cut_off);
        // Longer than both sides wait for a word.
        if cut >= 3_000 {
            check_words(&sender, &receiver);
        }
    });
}

#[test]
fn an_address_of_the_receiver_that_changes_on_the_way_is_survived() {
    // A sender that waits for a word much longer than it takes the receiver to come back.
    let (sender, receiver) = fetched_through(&["--timeout", "60s"], |relay| {
        relay.epoch.fetch_add(1, Ordering::Relaxed);
    });
    check_words(&sender, &receiver);
    let said = &sender.stderr;
    assert!(said.contains("the receiver has made another one"), "{said}");
}

/// By code, which permits one meeting: the receiver comes back with its key. On a terminal.
#[test]
fn both_progress_lines_say_what_is_done_about_a_lost_connection() {
    let offer = Offer::new(8 * MIB, "40M");
    let relay = Relay::to(offer.address);
    let mut command = crate::support::tack();
    command.args(["send", "--bwlimit", offer.rate, "--timeout", "4s"]);
    command.args(["--listen", &offer.address.to_string()]);
    let mut sender = AtTerminal::start(command.arg(&offer.path));
    let code = sender.see("code", |text| {
        let (_, rest) = text.split_once("--code")?;
        let (line, _) = rest.split_once('\n')?;
        line.split_whitespace().next().map(str::to_owned)
    });
    let mut command = crate::support::tack();
    command.args(["recv", "--timeout", "4s", "--code", &code, "--state-dir"]);
    command.arg(offer.inbox.path().join("state"));
    command.arg("--dir").arg(offer.inbox.path());
    let mut receiver = AtTerminal::start(command.arg(relay.address.to_string()));
    offer.await_part(2 * MIB, &mut []);
    relay.cut.store(true, Ordering::Relaxed);
    let says = |words: &'static str| move |text: &str| text.contains(words).then_some(());
    receiver.see("stall", |text| {
        let (_, rest) = text.split_once("stalled for ")?;
        rest.contains(" s, reconnecting").then_some(())
    });
    let waits = " s, waiting for the receiver to come back";
    sender.see("wait", says(waits));
    relay.cut.store(false, Ordering::Relaxed);
    for side in [&mut receiver, &mut sender] {
        assert_eq!(side.child.wait().unwrap().code(), Some(0));
    }
    assert!(
        fs::read(offer.file()).unwrap() == offer.content,
        "wrong bytes"
    );
}

/// What a receiver says at the end whose sender was stopped once a part of a file was there.
fn fetched_of_one_that_stops(options: &[&str], signal: Signal) -> Ended {
    let offer = Offer::new(8 * MIB, "60M");
    let mut sender = Running::start(offer.sender().args(["--timeout", "4s"]));
    let target = offer.address.to_string();
    let mut receiver = Running::start(offer.receiver(&[&target]).args(options));
    offer.await_part(2 * MIB, &mut [&mut sender, &mut receiver]);
    sender.signal(signal);
    let ended = receiver.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(!offer.file().exists(), "half a file has its name");
    ended
}

#[test]
fn a_receiver_gives_up_and_says_how_to_go_on() {
    std::thread::scope(|scope| {
        for (options, signal) in [
            // In order: nobody is waited for long.
            (&[][..], Signal::INT),
            (&["--reconnect", "1s"], Signal::KILL),
        ] {
            scope.spawn(move || {
                let ended = fetched_of_one_that_stops(options, signal);
                let said = &ended.stderr;
                assert!(said.contains("; reconnecting"), "{said}");
                assert!(
                    said.contains("the same command given again goes on"),
                    "{said}"
                );
            });
        }
        scope.spawn(|| {
            let ended = fetched_of_one_that_stops(&["--reconnect", "0s"], Signal::KILL);
            assert!(!ended.stderr.contains("reconnecting"), "{}", ended.stderr);
        });
    });
}
