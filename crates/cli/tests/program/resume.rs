//! Transfers that are cut off: processes killed, paths broken, addresses changed. They go on where
//! they were, and no wrong byte ever has the name of the file.
//!
//! `TACK_LONG=1` kills 100 times and cuts the path for up to a minute.

use std::collections::HashMap;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Receiver, Running, finish, is_long, noise, tack};

pub(crate) const MIB: u64 = 1 << 20;

/// How both sides protect the transfer.
#[derive(Clone)]
pub(crate) enum Protection {
    /// They know each other's keys, which are in this folder.
    Encrypted(Arc<tempfile::TempDir>),
    Clear,
}

impl Protection {
    pub(crate) fn encrypted() -> Self {
        let states = tempfile::tempdir().unwrap();
        let run = |side: &str, arguments: &[&str]| {
            let state = states.path().join(side);
            let ended = finish(tack().args(arguments).arg("--state-dir").arg(state));
            assert_eq!(ended.code, Some(0), "{ended:?}");
            ended.stdout.trim().to_owned()
        };
        let (receiver, sender) = (run("receiver", &["id"]), run("sender", &["id"]));
        run("receiver", &["peers", "add", "sender", &sender]);
        run("sender", &["peers", "add", "receiver", &receiver]);
        Self::Encrypted(Arc::new(states))
    }

    /// A `tack` of this side, where there are keys.
    pub(crate) fn tack(&self, side: &str) -> Command {
        let mut command = tack();
        if let Self::Encrypted(states) = self {
            command.env("TACK_STATE_DIR", states.path().join(side));
        }
        command
    }

    /// A `tack recv` that waits, and shows no code: keys are enough.
    pub(crate) fn waiting_receiver(&self) -> Command {
        let mut command = self.command("recv");
        if let Self::Encrypted(_) = self {
            command.arg("--no-code");
        }
        command
    }

    pub(crate) fn command(&self, verb: &str) -> Command {
        let mut command = tack();
        command.args([verb, "--json"]);
        match self {
            Self::Encrypted(states) => {
                let side = if verb == "recv" { "receiver" } else { "sender" };
                command.arg("--state-dir").arg(states.path().join(side));
            }
            Self::Clear => _ = command.arg("--insecure"),
        }
        command
    }
}

/// A receiver that is started again where it was.
pub(crate) struct Inbox {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) address: SocketAddr,
    running: Option<Running>,
    pub(crate) protection: Protection,
    options: &'static [&'static str],
}

impl Inbox {
    pub(crate) fn start(protection: Protection) -> Self {
        Self::start_with(protection, &[])
    }

    pub(crate) fn start_with(protection: Protection, options: &'static [&'static str]) -> Self {
        let mut inbox = Self {
            dir: tempfile::tempdir().unwrap(),
            address: "127.0.0.1:0".parse().unwrap(),
            running: None,
            protection,
            options,
        };
        inbox.run();
        inbox
    }

    fn run(&mut self) {
        let mut command = self.protection.waiting_receiver();
        command
            .args(["--listen", &self.address.to_string(), "--dir"])
            .arg(self.dir.path())
            .args(self.options);
        let mut running = Running::start(&mut command);
        let first = running.line();
        assert_eq!(first["event"], "listening");
        self.address = first["address"].as_str().unwrap().parse().unwrap();
        self.running = Some(running);
    }

    fn kill_and_restart(&mut self) {
        // Killed and reaped when it is dropped.
        self.running = None;
        self.run();
    }

    /// Bytes in the unfinished file.
    pub(crate) fn part(&self) -> u64 {
        part(self.dir.path())
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("file")
    }
}

/// Bytes in the unfinished file of this folder.
pub(crate) fn part(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).unwrap().flatten();
    let parts = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".part"));
    parts
        .filter_map(|entry| entry.metadata().ok())
        .map(|found| found.len())
        .max()
        .unwrap_or(0)
}

fn sender(path: &Path, address: SocketAddr, options: &[&str]) -> Running {
    Running::start(
        tack()
            .args(["send", "--insecure", "--json"])
            .args(options)
            .arg(path)
            .arg(address.to_string()),
    )
}

/// More than the long form, by `TACK_FULL=1`.
fn is_full() -> bool {
    std::env::var_os("TACK_FULL").is_some_and(|value| value == "1")
}

pub(crate) fn source(size: u64) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("file");
    let content = noise(9, size as usize);
    fs::write(&path, &content).unwrap();
    (scratch, path, content)
}

/// Kills one side after the other at random points of a transfer. Where the sender `roams`, it
/// often has another address afterwards, or its path is cut for a moment.
fn killed_again_and_again(size: u64, kills: u64, roams: bool, protection: Protection) {
    let (_source, path, content) = source(size);
    let mut inbox = Inbox::start(protection);
    let relay = Relay::to(inbox.address);
    let address = relay.address;
    let send = |inbox: &Inbox| {
        let mut command = inbox.protection.command("send");
        command.args(["--bwlimit", "150M", "--retry", "60s", "--timeout", "4s"]);
        Running::start(command.arg(&path).arg(address.to_string()))
    };
    let mut sending = send(&inbox);
    // How much was there when the present sender began, and what happened to it since.
    let (mut began, mut losses) = (0, 0);
    let mut before = 0;
    let (mut arrived, mut passed, mut all_twice) = (0, 0, 0);
    for kill in 1..=kills {
        // At a random point of the next stretch, the last one so that something is left.
        let stretch = (size - 2 * MIB) / kills;
        let point = (kill - 1) * stretch + noise(kill, 8)[0] as u64 * stretch / 256;
        while inbox.part() < point && !inbox.file().exists() {
            let ended = sending.child.try_wait().unwrap();
            assert!(ended.is_none(), "after {kill} kills: {:?}", sending.wait());
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(!inbox.file().exists(), "half a file has its name");
        // What passed since the last kill, without what arrived since then, was sent twice: it was
        // lost with that kill, or is on its way now. Headers take at most a sixteenth. On a busy
        // machine more than usual may be on its way, so the bound of 1 MiB is one of their mean.
        let (there, all) = (inbox.part(), relay.forwarded.load(Ordering::Relaxed));
        let twice = (all - passed).saturating_sub(there.saturating_sub(arrived) * 17 / 16);
        eprintln!("kill {kill}: {twice} bytes more than arrived since the last one");
        assert!(twice <= 4 * MIB, "{twice} bytes before kill {kill}");
        all_twice += twice;
        (arrived, passed) = (there, all);
        if roams {
            match noise(kill + 2000, 8)[0] % 4 {
                0 => relay.cut_for(Duration::from_millis(100)),
                1 | 2 => {
                    relay.epoch.fetch_add(1, Ordering::Relaxed);
                    losses += 1;
                }
                _ => {}
            }
        }
        if noise(kill + 1000, 8)[0] < 128 {
            sending.child.kill().unwrap();
            sending.child.wait().unwrap();
            (began, losses) = (inbox.part(), 1);
            sending = send(&inbox);
        } else {
            inbox.kill_and_restart();
            losses += 1;
        }
        let now = inbox.part();
        assert!(now >= before, "{now} bytes after {before}");
        before = now;
    }
    assert!(all_twice <= kills * MIB, "{all_twice} bytes, {kills} kills");
    let ended = sending.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(fs::read(inbox.file()).unwrap() == content, "wrong bytes");
    assert_eq!(fs::read_dir(inbox.dir.path()).unwrap().count(), 1);
    let summary = ended.json();
    assert_eq!(summary["files"], 1);
    let carried = summary["carried_bytes"].as_u64().unwrap();
    let twice = carried.saturating_sub(size - began);
    eprintln!("{twice} bytes more than were missing, after {losses} losses of the last sender");
    // The group that was not complete, and what was on its way.
    assert!(twice <= losses * MIB, "{twice} bytes after {losses} losses");
}

#[test]
fn a_side_that_is_killed_goes_on_where_it_was() {
    let (size, kills) = if is_long() {
        (256 * MIB, 100)
    } else {
        (24 * MIB, 3)
    };
    killed_again_and_again(size, kills, false, Protection::Clear);
}

#[test]
fn a_side_that_is_killed_goes_on_with_encryption_too() {
    let (size, kills) = if is_long() {
        (256 * MIB, 100)
    } else {
        (8 * MIB, 2)
    };
    killed_again_and_again(size, kills, false, Protection::encrypted());
}

#[test]
fn a_side_that_is_killed_and_comes_back_from_elsewhere_goes_on() {
    let (size, kills) = match is_long() {
        _ if is_full() => (256 * MIB, 100),
        true => (96 * MIB, 30),
        false => (8 * MIB, 2),
    };
    killed_again_and_again(size, kills, true, Protection::encrypted());
}

/// At the speed of loopback. The receive window limits what is on its way to 384 KiB, and two
/// buffers of 256 KiB wait for a disk that is busy. A few kills may cost more, because a processor
/// that is busy makes the path look long.
fn killed_at_full_speed(protection: &Protection) {
    let (size, transfers) = if is_long() {
        (256 * MIB, 40)
    } else {
        (48 * MIB, 7)
    };
    let (_source, path, content) = source(size);
    let mut costs = Vec::new();
    let mut points = 0..4 * transfers;
    while costs.len() < transfers as usize {
        let draw = points
            .next()
            .expect("most transfers end before they are killed");
        let point = size / 8 + noise(draw, 8)[0] as u64 * size / 1024;
        let mut inbox = Inbox::start(protection.clone());
        let mut command = inbox.protection.command("send");
        command
            .args(["--retry", "60s", "--timeout", "4s"])
            .arg(&path);
        let sending = Running::start(command.arg(inbox.address.to_string()));
        while inbox.part() < point && !inbox.file().exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        inbox.running = None;
        let was_over = inbox.file().exists();
        inbox.run();
        let ended = sending.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(fs::read(inbox.file()).unwrap() == content, "wrong bytes");
        let carried = ended.json()["carried_bytes"].as_u64().unwrap();
        if was_over {
            eprintln!("the transfer was over before it was killed");
            continue;
        }
        assert!(carried >= size, "{carried} bytes carried");
        let cost = carried - size;
        eprintln!("transfer {draw}: {cost} bytes twice");
        costs.push(cost);
    }
    costs.sort_unstable();
    // All but one of seven, or five of forty.
    assert!(costs[(costs.len() - 1) * 7 / 8] <= MIB, "{costs:?}");
    assert!(costs[costs.len() - 1] <= 4 * MIB, "{costs:?}");
}

#[test]
fn a_kill_at_full_speed_costs_little() {
    killed_at_full_speed(&Protection::Clear);
}

#[test]
fn a_kill_at_full_speed_costs_little_with_encryption_too() {
    killed_at_full_speed(&Protection::encrypted());
}

#[test]
fn a_folder_goes_on_too() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("folder");
    for number in 0..40u64 {
        let dir = root.join(format!("d{}", number % 4));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(number.to_string()), noise(number, 300_000)).unwrap();
    }
    fs::write(root.join("d1/large"), noise(99, 5_000_000)).unwrap();
    let mut inbox = Inbox::start(Protection::Clear);
    let sending = sender(&root, inbox.address, &["--bwlimit", "80M"]);
    // Once some files are there.
    let arrived = |inbox: &Inbox| crate::support::tree(&inbox.dir.path().join("folder")).len();
    while !inbox.dir.path().join("folder").exists() || arrived(&inbox) < 10 {
        std::thread::sleep(Duration::from_millis(5));
    }
    inbox.kill_and_restart();
    let ended = sending.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let summary = ended.json();
    assert_eq!(
        summary["files"].as_u64().unwrap() + summary["unchanged"].as_u64().unwrap(),
        41,
        "each counts once: {summary}"
    );
    let stored = inbox.dir.path().join("folder");
    assert!(
        crate::support::tree(&root) == crate::support::tree(&stored),
        "they differ"
    );
}

/// A UDP path that can be cut, and on which addresses change.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    pub(crate) cut: Arc<AtomicBool>,
    /// With each number, clients have other addresses at the far end.
    pub(crate) epoch: Arc<AtomicU64>,
    /// Bytes of datagrams that went to the receiver, whether it was there or not.
    forwarded: Arc<AtomicU64>,
    /// The same of datagrams that went back to clients.
    pub(crate) returned: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

const LOOK: Duration = Duration::from_millis(20);

impl Relay {
    pub(crate) fn to(receiver: SocketAddr) -> Self {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = near.local_addr().unwrap();
        near.set_read_timeout(Some(LOOK)).unwrap();
        let [cut, stop] = [(), ()].map(|()| Arc::new(AtomicBool::new(false)));
        let [epoch, forwarded, returned] = [(), (), ()].map(|()| Arc::new(AtomicU64::new(0)));
        let (cut_, stop_, epoch_) = (Arc::clone(&cut), Arc::clone(&stop), Arc::clone(&epoch));
        let (forwarded_, returned_) = (Arc::clone(&forwarded), Arc::clone(&returned));
        let thread = std::thread::spawn(move || {
            let mut far = HashMap::new();
            let mut datagram = [0; 65_536];
            while !stop_.load(Ordering::Relaxed) {
                let Ok((len, client)) = near.recv_from(&mut datagram) else {
                    continue;
                };
                if cut_.load(Ordering::Relaxed) {
                    continue;
                }
                let key = (client, epoch_.load(Ordering::Relaxed));
                let socket = far.entry(key).or_insert_with(|| {
                    let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
                    socket.connect(receiver).unwrap();
                    let (back, near) = (Arc::clone(&socket), near.try_clone().unwrap());
                    let (cut, stop) = (Arc::clone(&cut_), Arc::clone(&stop_));
                    let count = Arc::clone(&returned_);
                    std::thread::spawn(move || {
                        answers(&back, (&near, client), &cut, &count, &stop);
                    });
                    socket
                });
                forwarded_.fetch_add(len as u64, Ordering::Relaxed);
                // A receiver that is away is part of the test.
                let _ = socket.send(&datagram[..len]);
            }
        });
        Self {
            address,
            cut,
            epoch,
            forwarded,
            returned,
            stop,
            thread: Some(thread),
        }
    }
}

impl Relay {
    pub(crate) fn cut_for(&self, time: Duration) {
        self.cut.store(true, Ordering::Relaxed);
        std::thread::sleep(time);
        self.cut.store(false, Ordering::Relaxed);
    }
}

fn answers(
    back: &UdpSocket,
    (near, client): (&UdpSocket, SocketAddr),
    cut: &AtomicBool,
    count: &AtomicU64,
    stop: &AtomicBool,
) {
    back.set_read_timeout(Some(LOOK)).unwrap();
    let mut datagram = [0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        if let Ok(len) = back.recv(&mut datagram)
            && !cut.load(Ordering::Relaxed)
        {
            count.fetch_add(len as u64, Ordering::Relaxed);
            let _ = near.send_to(&datagram[..len], client);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// Kills a sender once so many bytes are with the receiver.
fn kill_at(bytes: u64, sender: &mut Running, receiver: &Receiver) {
    let part = || {
        let entries = fs::read_dir(receiver.dir.path()).unwrap().flatten();
        entries.map(|entry| entry.metadata().unwrap().len()).max()
    };
    while part() < Some(bytes) {
        std::thread::sleep(Duration::from_millis(5));
    }
    sender.child.kill().unwrap();
    sender.child.wait().unwrap();
}

#[test]
fn who_waits_for_a_return_takes_the_transfer_that_goes_on() {
    let (_source, path, content) = source(8 * MIB);
    let receiver = Receiver::start(&["--once"]);
    let mut first = sender(&path, receiver.address, &["--bwlimit", "60M"]);
    kill_at(3 * MIB, &mut first, &receiver);
    let ended = sender(&path, receiver.address, &["--retry", "60s"]).wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let carried = ended.json()["carried_bytes"].as_u64().unwrap();
    assert!(carried <= 6 * MIB, "{carried}");
    assert!(fs::read(receiver.path("file")).unwrap() == content);
    let mut running = receiver.running;
    let events = [running.line(), running.line()].map(|line| line["event"].clone());
    assert_eq!(events, ["interrupted", "transfer"]);
    assert_eq!(running.wait().code, Some(0));
}

#[test]
fn a_source_that_changes_after_a_kill_is_stored_as_it_is_now() {
    let (_source, path, mut content) = source(8 * MIB);
    let receiver = Receiver::start(&[]);
    let mut first = sender(&path, receiver.address, &["--bwlimit", "60M"]);
    kill_at(3 * MIB, &mut first, &receiver);
    // A group that the receiver has, and one that it has not.
    for place in [MIB + 5, 6 * MIB + 5] {
        content[place as usize] ^= 0xff;
    }
    fs::write(&path, &content).unwrap();
    let ended = sender(&path, receiver.address, &["--retry", "60s"]).wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(fs::read(receiver.path("file")).unwrap() == content);
    let carried = ended.json()["carried_bytes"].as_u64().unwrap();
    assert!(carried < 7 * MIB, "{carried}");
}

/// Stops one side once half of a file is there, until the other one has given it up, and lets it go
/// on.
fn asleep_and_woken(
    side: impl Fn(&Inbox, &Running) -> i32,
    given_up: fn(&mut Inbox, &mut Running),
) {
    let (_source, path, content) = source(8 * MIB);
    let mut inbox = Inbox::start_with(Protection::encrypted(), &["--timeout", "3s"]);
    let mut command = inbox.protection.command("send");
    command.args(["--bwlimit", "60M", "--timeout", "3s"]);
    let mut sending = Running::start(command.arg(&path).arg(inbox.address.to_string()));
    while inbox.part() < 4 * MIB {
        std::thread::sleep(Duration::from_millis(5));
    }
    let asleep = Pid::from_raw(side(&inbox, &sending)).unwrap();
    kill_process(asleep, Signal::STOP).unwrap();
    let before = inbox.part();
    given_up(&mut inbox, &mut sending);
    kill_process(asleep, Signal::CONT).unwrap();
    let ended = sending.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(before < 8 * MIB, "it was over before");
    assert!(fs::read(inbox.file()).unwrap() == content, "wrong bytes");
    assert_eq!(fs::read_dir(inbox.dir.path()).unwrap().count(), 1);
    let summary = ended.json();
    assert!(summary["reconnects"].as_u64().unwrap() > 0, "{summary}");
    let carried = summary["carried_bytes"].as_u64().unwrap();
    assert!(
        carried <= 9 * MIB,
        "{carried} bytes: more than 1 MiB was sent again"
    );
}

#[test]
fn a_receiver_that_was_asleep_goes_on_where_it_was() {
    let receiver = |inbox: &Inbox, _: &Running| inbox.running.as_ref().unwrap().pid();
    asleep_and_woken(receiver, |_, sending| {
        loop {
            let line = sending.text_line();
            let event: serde_json::Value = serde_json::from_str(&line).unwrap();
            if event["reconnecting"] == true {
                break;
            }
        }
    });
}

#[test]
fn a_sender_that_was_asleep_goes_on_where_it_was() {
    let sender = |_: &Inbox, sending: &Running| sending.pid();
    asleep_and_woken(sender, |inbox, _| {
        let event = inbox.running.as_mut().unwrap().line();
        assert_eq!(event["event"], "interrupted", "{event}");
    });
}

#[test]
fn patience_ends() {
    let (_source, path, _) = source(8 * MIB);
    let mut inbox = Inbox::start(Protection::Clear);
    let options = ["--bwlimit", "60M", "--reconnect", "1s"];
    let sending = sender(&path, inbox.address, &options);
    while inbox.part() < MIB {
        std::thread::sleep(Duration::from_millis(5));
    }
    inbox.running = None;
    let ended = sending.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.json()["ok"], false);
    let words = "the same command given again goes on where this one was";
    assert!(ended.stderr.contains(words), "{ended:?}");
}
