//! Transfers whose path is cut for a time, or whose addresses change on the way.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::resume::{Inbox, MIB, Protection, Relay, source};
use crate::support::{Ended, Running, finish, is_long, noise};

/// Sends a file over a path on which `trouble` happens once half of it is there.
fn sent_through(size: u64, trouble: impl FnOnce(&Relay)) -> Ended {
    let mut trouble = Some(trouble);
    sent_through_all(size, "60M", &[size / 2], |relay, _| {
        if let Some(trouble) = trouble.take() {
            trouble(relay);
        }
    })
}

/// The same with trouble at each of several points, which are bytes at the receiver.
fn sent_through_all(
    size: u64,
    rate: &str,
    points: &[u64],
    mut trouble: impl FnMut(&Relay, usize),
) -> Ended {
    let (_source, path, content) = source(size);
    let inbox = Inbox::start(Protection::encrypted());
    let relay = Relay::to(inbox.address);
    let mut command = inbox.protection.command("send");
    command.args(["--bwlimit", rate, "--timeout", "4s"]);
    let sending = Running::start(command.arg(&path).arg(relay.address.to_string()));
    for (number, point) in points.iter().enumerate() {
        while inbox.part() < *point && !inbox.file().exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        trouble(&relay, number);
    }
    let ended = sending.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(fs::read(inbox.file()).unwrap() == content, "wrong bytes");
    assert_eq!(fs::read_dir(inbox.dir.path()).unwrap().count(), 1);
    let summary = ended.json();
    let losses = summary["reconnects"].as_u64().unwrap();
    let carried = summary["carried_bytes"].as_u64().unwrap();
    assert!(carried >= size, "{carried} bytes carried");
    let twice = carried - size;
    eprintln!("{twice} bytes twice, {losses} losses");
    assert!(twice <= losses * MIB, "{twice} bytes twice: {ended:?}");
    ended
}

/// Tests paths that are cut for so many milliseconds, all at the same time: they mostly wait.
pub(crate) fn each_cut(test: impl Fn(u64) + Sync) {
    let millis: &[u64] = if is_long() {
        &[100, 1_000, 3_000, 10_000, 30_000, 60_000]
    } else {
        &[100, 5_000]
    };
    let test = &test;
    std::thread::scope(|scope| {
        for cut in millis {
            scope.spawn(move || test(*cut));
        }
    });
}

#[test]
fn a_path_that_is_cut_for_a_time_is_survived() {
    each_cut(|cut| {
        let cut_off = |relay: &Relay| relay.cut_for(Duration::from_millis(cut));
        let ended = sent_through(8 * MIB, cut_off);
        let reconnects = ended.json()["reconnects"].as_u64().unwrap();
        // Longer than the sender waits for a word.
        assert!(cut < 3_000 || reconnects > 0, "{cut} ms: {ended:?}");
    });
}

#[test]
fn a_new_address_in_the_book_of_peers_is_used_at_the_next_attempt() {
    let size = 8 * MIB;
    let (_source, path, content) = source(size);
    let inbox = Inbox::start(Protection::encrypted());
    let [old, new] = [(), ()].map(|()| Relay::to(inbox.address));
    let peers = |relay: &Relay| {
        let run = |arguments: &[&str]| finish(inbox.protection.tack("sender").args(arguments));
        let listed = run(&["peers", "--json"]).json();
        let key = listed["key"].as_str().unwrap();
        let address = relay.address.to_string();
        let added = run(&["peers", "add", "receiver", key, "--address", &address]);
        assert_eq!(added.code, Some(0), "{added:?}");
    };
    peers(&old);
    let mut command = inbox.protection.command("send");
    command.args([
        "--bwlimit",
        "60M",
        "--timeout",
        "4s",
        "--connect-timeout",
        "2s",
    ]);
    let sending = Running::start(command.arg(&path).arg("receiver:"));
    while inbox.part() < size / 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    old.cut.store(true, Ordering::Relaxed);
    peers(&new);
    let ended = sending.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(fs::read(inbox.file()).unwrap() == content, "wrong bytes");
    let reconnects = ended.json()["reconnects"].as_u64().unwrap();
    assert!(reconnects > 0, "{ended:?}");
}

#[test]
fn an_address_that_changes_on_the_way_is_survived() {
    let ended = sent_through(8 * MIB, |relay| {
        relay.epoch.fetch_add(1, Ordering::Relaxed);
    });
    assert!(
        ended.json()["reconnects"].as_u64().unwrap() > 0,
        "{ended:?}"
    );
    assert!(ended.stderr.contains("reconnecting"), "{}", ended.stderr);
}

#[test]
fn a_path_that_is_cut_again_and_again_is_survived() {
    let (size, cuts) = if is_long() {
        (256 * MIB, 100)
    } else {
        (16 * MIB, 4)
    };
    let mut points: Vec<u64> = (0..cuts)
        .map(|cut| u64::from_le_bytes(noise(cut + 1, 8).try_into().unwrap()) % (size * 9 / 10))
        .collect();
    points.sort_unstable();
    // From 0.1 s on; one in five is longer than the sender waits for a word. After some the address
    // is another one.
    let ended = sent_through_all(size, "150M", &points, |relay, number| {
        let millis = if number % 5 == 4 {
            4_500
        } else {
            100 + 60 * (number as u64 % 5)
        };
        relay.cut_for(Duration::from_millis(millis));
        if number % 10 == 3 {
            relay.epoch.fetch_add(1, Ordering::Relaxed);
        }
    });
    let reconnects = ended.json()["reconnects"].as_u64().unwrap();
    assert!(reconnects > 0, "{ended:?}");
}
