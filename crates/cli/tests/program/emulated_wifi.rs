//! As people use it: a folder goes from one machine to another over Wi-Fi, by code, by ticket and
//! by name, is resumed after kills, and updated. In network namespaces, which take root and
//! iproute2.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::invitation::Waiting;
use crate::support::network::{Network, network};
use crate::support::{PATIENCE, Running, finish, is_long, noise, tree};
use rustix::process::Signal;
use serde_json::Value;

/// The machines: a laptop, what is between them, a desk computer.
const LAPTOP: usize = 0;
const AIR: usize = 1;
const DESK: usize = 2;

/// Where the laptop finds the desk computer: at the other end of the Wi-Fi.
const FAR: &str = "10.78.1.1:7777";

/// The one way between them is the relay of `tack emulate`: nothing is forwarded beside it.
fn machines() -> Option<Network> {
    network(3, |network| {
        network.cable((LAPTOP, &["10.78.1.2/24"]), (AIR, &["10.78.1.1/24"]))?;
        network.cable((DESK, &["10.78.2.2/24"]), (AIR, &["10.78.2.1/24"]))?;
        network.host(DESK, "route add 10.78.1.0/24 via 10.78.2.1")
    })
}

struct World {
    network: Network,
    scratch: tempfile::TempDir,
}

impl World {
    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// A `tack` of this machine, with the state of its user.
    fn on(&self, host: usize) -> Command {
        let mut command = self.network.tack(host);
        command.env("TACK_STATE_DIR", self.path(&format!("state-{host}")));
        command
    }

    fn receiver(&self) -> Command {
        let mut command = self.on(DESK);
        command
            .args(["recv", "--update", "--dir"])
            .arg(self.path("inbox"));
        command
    }

    fn sender(&self, target: &[&str]) -> Command {
        let mut command = self.on(LAPTOP);
        command
            .args(["send", "--json", "--update"])
            .arg(self.path("docs"))
            .args(target);
        command
    }

    fn sent(&self, target: &[&str]) -> Value {
        let ended = finish(&mut self.sender(target));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let summary = ended.json();
        assert_eq!(self.tree("docs"), self.tree("inbox/docs"));
        summary
    }

    /// Waits until so many bytes of the unfinished file have arrived.
    fn await_arrived(&self, sender: &mut Running, bytes: u64) {
        while self.arrived() < bytes {
            if sender.child.try_wait().unwrap().is_some() {
                panic!("it ended before that: {:?}", sender.ended());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Bytes of the unfinished file at the receiver.
    fn arrived(&self) -> u64 {
        let entries = walkdir::WalkDir::new(self.path("inbox")).into_iter();
        // An entry may have been removed or renamed meanwhile.
        let parts = entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().ends_with(".part"));
        parts
            .filter_map(|entry| Some(entry.metadata().ok()?.len()))
            .max()
            .unwrap_or(0)
    }

    fn tree(&self, name: &str) -> Vec<(PathBuf, Vec<u8>)> {
        let found = tree(&self.path(name)).into_iter();
        found
            .map(|(path, (_, _, content))| (path, content))
            .collect()
    }
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[test]
fn a_folder_crosses_the_air_by_code_ticket_and_name_and_survives_kills() {
    // The sender is killed after 11 of 24 parts of the large file, the receiver after 16.
    let part: u64 = if is_long() { 1 << 20 } else { 1 << 19 };
    let big = 24 * part;
    const SMALL: usize = 40;
    let Some(mut network) = machines() else {
        return;
    };
    network.end_after(PATIENCE);
    let world = World {
        network,
        scratch: tempfile::tempdir().unwrap(),
    };
    fs::create_dir(world.path("inbox")).unwrap();
    for n in 0..SMALL {
        let path = world.path(&format!("docs/{}/{n}", n % 4));
        write(&path, &noise(n as u64, n * 997));
    }
    write(&world.path("docs/big"), &noise(99, big as usize));
    let mut air = Running::start(world.on(AIR).args([
        "emulate",
        "--wifi",
        "802.11n",
        "--insecure",
        "--json",
        "--listen",
        FAR,
        "--to",
        "10.78.2.2:7777",
    ]));
    assert_eq!(air.line()["event"], "listening");

    // By code; the sender is killed on the way. Slowly, so that there is a way.
    let (receiver, invitation) = Waiting::start(&mut world.receiver());
    let by_code = [
        FAR,
        "--code",
        &invitation.code,
        "--remember",
        "desk",
        "--bwlimit",
        "24Mbps",
    ];
    let mut sender = Running::start(&mut world.sender(&by_code));
    world.await_arrived(&mut sender, 11 * part);
    sender.signal(Signal::KILL);
    drop(sender);
    assert!(
        !world.path("inbox/docs/big").exists(),
        "half a file has its name"
    );

    // The same command again, although a code permits one meeting; now the receiver is killed on
    // the way, and comes back.
    let mut sender = Running::start(&mut world.sender(&by_code));
    world.await_arrived(&mut sender, 16 * part);
    drop(receiver);
    let mut again = world.receiver();
    let (_receiver, invitation) = Waiting::start(again.args(["--remember", "laptop"]));
    let ended = sender.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let resumed = ended.json();
    assert!(resumed["reconnects"].as_u64().unwrap() >= 1, "{resumed}");
    assert_eq!(resumed["failed"], 0, "{resumed}");
    // Small files may not have arrived before either: all that this command had to bring counts.
    let [carried, all] = ["carried_bytes", "bytes"].map(|figure| resumed[figure].as_u64().unwrap());
    assert!(carried <= all - 10 * part, "more was sent again: {resumed}");
    assert_eq!(world.tree("docs"), world.tree("inbox/docs"));

    // By ticket: one file changed, another is new.
    write(&world.path("docs/1/5"), b"changed");
    write(&world.path("docs/1/new"), b"new");
    let ticket = world.path("ticket");
    write(&ticket, invitation.ticket.as_bytes());
    let updated = world.sent(&[FAR, "--ticket-file", ticket.to_str().unwrap()]);
    assert_eq!(
        (&updated["files"], &updated["unchanged"]),
        (&2.into(), &SMALL.into()),
        "{updated}"
    );
    // By name, as both have kept the other: nothing to do.
    let again = world.sent(&["desk:"]);
    assert_eq!(
        (&again["files"], &again["unchanged"]),
        (&0.into(), &(SMALL + 2).into()),
        "{again}"
    );

    // All of it went over the air.
    air.signal(Signal::INT);
    let summary = air.wait().json();
    let up = summary["up"]["delivered_bytes"].as_u64().unwrap();
    assert!(up > big, "{summary}");
}
