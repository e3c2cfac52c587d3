//! Machines whose addresses change while a transfer is under way, on the side that connects and on
//! the side that waits. In network namespaces, which take root and iproute2.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::resume::{MIB, part, source};
use crate::support::invitation::{Invitation, Waiting};
use crate::support::network::{Network, network};
use crate::support::{Ended, PATIENCE, Running, finish};

/// The machines: one waits, the other one connects.
const WAITS: usize = 0;
const CONNECTS: usize = 1;

/// Bytes of the file, and how fast they are sent: it takes a second.
const SIZE: u64 = 8 * MIB;
const RATE: &str = "60M";

/// Two machines on one cable, the file of one of them, and an empty folder.
struct World {
    network: Network,
    scratch: tempfile::TempDir,
    file: PathBuf,
    content: Vec<u8>,
    _source: tempfile::TempDir,
}

impl World {
    fn new() -> Option<Self> {
        let mut network = network(2, |network| {
            network.cable((WAITS, &["10.79.0.1/24"]), (CONNECTS, &["10.79.0.2/24"]))
        })?;
        network.end_after(PATIENCE);
        let (source, file, content) = source(SIZE);
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir(scratch.path().join("inbox")).unwrap();
        Some(Self {
            network,
            scratch,
            file,
            content,
            _source: source,
        })
    }

    fn tack(&self, host: usize) -> Command {
        let mut command = self.network.tack(host);
        let state = self.scratch.path().join(format!("state-{host}"));
        command.env("TACK_STATE_DIR", state);
        command
    }

    fn sender(&self, host: usize) -> Command {
        let mut command = self.tack(host);
        command.args(["send", "--json", "--timeout", "4s", "--bwlimit", RATE]);
        command.arg(&self.file);
        command
    }

    fn receiver(&self, host: usize) -> Command {
        let mut command = self.tack(host);
        command.args(["recv", "--json", "--timeout", "4s", "--dir"]);
        command.arg(self.scratch.path().join("inbox"));
        command
    }

    /// Waits until half of the file has arrived, and gives a machine another address then.
    fn moves_on_the_way(&self, host: usize, from: &str, to: &[&str]) {
        let line = format!("addr del {from} dev veth0");
        self.changes_on_the_way(host, &[&[&line[..]], to].concat());
    }

    /// Waits until half of the file has arrived, and changes the network of a machine then.
    fn changes_on_the_way(&self, host: usize, lines: &[&str]) {
        let inbox = self.scratch.path().join("inbox");
        while part(&inbox) < SIZE / 2 {
            assert!(!inbox.join("file").exists(), "it was over before");
            std::thread::sleep(Duration::from_millis(5));
        }
        for line in lines {
            self.network.host(host, line).unwrap();
        }
    }

    /// The side that connects has ended well after it lost a connection, and the file is there.
    fn check(&self, connects: &Ended) {
        assert_eq!(connects.code, Some(0), "{connects:?}");
        assert!(connects.stderr.contains("; reconnecting"), "{connects:?}");
        let stored = fs::read(self.scratch.path().join("inbox/file")).unwrap();
        assert!(stored == self.content, "wrong bytes");
    }
}

fn ways(invitation: &Invitation) -> [[&str; 3]; 2] {
    let code = &invitation.code[..];
    [
        ["10.79.0.1", "--code", code],
        [&invitation.ticket, "--connect-timeout", "2s"],
    ]
}

#[test]
fn a_sender_whose_address_changes_goes_on_from_the_new_one() {
    let Some(world) = World::new() else { return };
    let (_receiver, invitation) = Waiting::start(&mut world.receiver(WAITS));
    let [by_code, _] = ways(&invitation);
    let sender = Running::start(world.sender(CONNECTS).args(by_code));
    // Another address of the same network.
    let to = ["addr add 10.79.0.3/24 dev veth0"];
    world.moves_on_the_way(CONNECTS, "10.79.0.2/24", &to);
    let ended = sender.wait();
    world.check(&ended);
    let carried = ended.json()["carried_bytes"].as_u64().unwrap();
    assert!(carried <= SIZE + MIB, "{carried} bytes");
}

#[test]
fn a_receiver_that_changes_networks_goes_on_from_the_new_one() {
    let Some(world) = World::new() else { return };
    let (mut sender, invitation) = Waiting::start(&mut world.sender(WAITS));
    let [by_code, _] = ways(&invitation);
    let receiver = Running::start(world.receiver(CONNECTS).args(by_code));
    // Both machines reach each other's network over this cable.
    let back = "route add 10.80.0.0/24 dev veth0";
    world.network.host(WAITS, back).unwrap();
    let to = [
        "addr add 10.80.0.2/24 dev veth0",
        "route add 10.79.0.0/24 dev veth0",
    ];
    world.moves_on_the_way(CONNECTS, "10.79.0.2/24", &to);
    world.check(&receiver.wait());
    assert!(sender.child.wait().unwrap().success());
}

/// There is always an address to send from, and the sender's system answers with resets that it
/// knows of no connection from the new one.
#[test]
fn a_receiver_of_one_transfer_stays_when_its_address_changes() {
    let Some(world) = World::new() else { return };
    let (mut receiver, invitation) = Waiting::start(world.receiver(WAITS).arg("--once"));
    let [_, by_ticket] = ways(&invitation);
    let sender = Running::start(world.sender(CONNECTS).args(by_ticket));
    // Of another length, lest it goes with the old one.
    let lines = [
        "addr add 10.79.0.9/25 dev veth0",
        "addr del 10.79.0.1/24 dev veth0",
    ];
    world.changes_on_the_way(WAITS, &lines);
    world.check(&sender.wait());
    assert!(receiver.child.wait().unwrap().success());
}

/// The side that connects knows the old address only: the other one says on the network where it is
/// now.
#[test]
fn a_waiting_side_whose_address_changes_is_found_on_the_same_network() {
    let to = ["addr add 10.79.0.9/24 dev veth0"];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let Some(world) = World::new() else { return };
            let (_receiver, invitation) = Waiting::start(&mut world.receiver(WAITS));
            let [_, by_ticket] = ways(&invitation);
            let sender = Running::start(world.sender(CONNECTS).args(by_ticket));
            world.moves_on_the_way(WAITS, "10.79.0.1/24", &to);
            world.check(&sender.wait());
        });
        scope.spawn(|| {
            let Some(world) = World::new() else { return };
            let run = |host, arguments: &[&str]| {
                let ended = finish(world.tack(host).args(arguments));
                assert_eq!(ended.code, Some(0), "{ended:?}");
                ended
            };
            let key = |host| run(host, &["id"]).stdout.trim().to_owned();
            let known = ["--address", "10.79.0.1"];
            run(
                CONNECTS,
                &[&["peers", "add", "desk", &key(WAITS)], &known[..]].concat(),
            );
            run(WAITS, &["peers", "add", "laptop", &key(CONNECTS)]);
            let (mut sender, _) = Waiting::start(&mut world.sender(WAITS));
            let receiver = Running::start(world.receiver(CONNECTS).arg("desk:"));
            world.moves_on_the_way(WAITS, "10.79.0.1/24", &to);
            world.check(&receiver.wait());
            assert!(sender.child.wait().unwrap().success());
            // The next command by name finds it at once.
            let listed = run(CONNECTS, &["peers", "--json"]).json();
            assert_eq!(listed["addresses"][0], "10.79.0.9", "{listed}");
        });
    });
}
