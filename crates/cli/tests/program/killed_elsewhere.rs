//! A connection is lost, and a system says so: the port of a killed program is closed, or there is
//! no route. The tests make network namespaces, so they need root and iproute2.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::resume::{MIB, part, source};
use crate::support::invitation::Waiting;
use crate::support::network::{Network, network};
use crate::support::{PATIENCE, Running};

/// The machines: the program of one waits and is killed, the other one connects.
const KILLED: usize = 0;
const CONNECTS: usize = 1;

/// Bytes of the file, and how fast they are sent: it takes a second.
const SIZE: u64 = 8 * MIB;
const RATE: &str = "60M";

/// After half of this the side that connects would give a silent peer up.
const TIMEOUT: &str = "60s";
/// Longer than the network takes to say it on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(15);

struct World {
    network: Network,
    scratch: tempfile::TempDir,
}

impl World {
    fn new() -> Option<Self> {
        let mut network = network(2, |network| {
            network.cable((KILLED, &["10.79.1.1/24"]), (CONNECTS, &["10.79.1.2/24"]))
        })?;
        network.end_after(PATIENCE);
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir(scratch.path().join("inbox")).unwrap();
        Some(Self { network, scratch })
    }

    fn tack(&self, host: usize, name: &str, options: &[&str]) -> Command {
        let mut command = self.network.tack(host);
        let state = self.scratch.path().join(format!("state-{host}"));
        command.env("TACK_STATE_DIR", state);
        command.args([name, "--timeout", TIMEOUT]);
        command.args(options);
        command
    }

    fn sender(&self, host: usize, file: &Path) -> Command {
        let mut command = self.tack(host, "send", &["--json", "--bwlimit", RATE]);
        command.arg(file);
        command
    }

    fn receiver(&self, host: usize) -> Command {
        let mut command = self.tack(host, "recv", &["--json", "--once", "--dir"]);
        command.arg(self.scratch.path().join("inbox"));
        command
    }
}

fn until_half_is_there(inbox: &Path) {
    while part(inbox) < SIZE / 2 {
        assert!(!inbox.join("file").exists(), "it was over before");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a bound on a real process takes a real clock"
)]
fn says_at_once(running: &Running, words: &str) {
    let began = Instant::now();
    running.until_said(words);
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
}

/// Kills the program that waits half-way, and starts it again once the other side has noticed.
fn killed_half_way(world: &World, content: &[u8], commands: [&dyn Fn() -> Command; 2]) {
    let [waits, connects] = commands;
    let (waiting, invitation) = Waiting::start(&mut waits());
    let connecting = Running::start(connects().arg(&invitation.ticket));
    let inbox = world.scratch.path().join("inbox");
    until_half_is_there(&inbox);
    waiting.kill();
    says_at_once(&connecting, "; reconnecting");
    let (mut again, _) = Waiting::start(&mut waits());
    let ended = connecting.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(fs::read(inbox.join("file")).unwrap() == content);
    assert!(again.child.wait().unwrap().success());
}

#[test]
fn a_receiver_that_is_killed_on_another_machine_is_noticed_at_once() {
    let Some(world) = World::new() else { return };
    let (_source, file, content) = source(SIZE);
    let sender = || world.sender(CONNECTS, &file);
    killed_half_way(&world, &content, [&|| world.receiver(KILLED), &sender]);
}

#[test]
fn a_sender_that_is_killed_on_another_machine_is_noticed_at_once() {
    let Some(world) = World::new() else { return };
    let (_source, file, content) = source(SIZE);
    let sender = || world.sender(KILLED, &file);
    let receiver = || {
        // It ends with the one transfer that it fetches.
        let mut command = world.tack(CONNECTS, "recv", &["--json", "--dir"]);
        command.arg(world.scratch.path().join("inbox"));
        command
    };
    killed_half_way(&world, &content, [&sender, &receiver]);
}

#[test]
fn a_machine_that_loses_its_network_says_so_and_goes_on_when_it_is_back() {
    let Some(world) = World::new() else { return };
    let (_source, file, content) = source(SIZE);
    let (mut waiting, invitation) = Waiting::start(&mut world.receiver(KILLED));
    let sending = Running::start(world.sender(CONNECTS, &file).arg(&invitation.ticket));
    let inbox = world.scratch.path().join("inbox");
    until_half_is_there(&inbox);
    world.network.host(CONNECTS, "link set veth0 down").unwrap();
    says_at_once(&sending, "no route to the peer; reconnecting");
    world.network.host(CONNECTS, "link set veth0 up").unwrap();
    let ended = sending.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(fs::read(inbox.join("file")).unwrap() == content);
    // It was not told that the sender had stopped.
    assert!(waiting.child.wait().unwrap().success());
}
