//! Machines that have no address but those of their link, as two laptops on a cable, and one
//! without any network. In network namespaces, which take root and iproute2.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::PATIENCE;
use crate::support::finish;
use crate::support::invitation::{Invitation, Waiting};
use crate::support::network::{Network, network};

const WAITS: usize = 0;
const CONNECTS: usize = 1;

struct World {
    network: Network,
    scratch: tempfile::TempDir,
}

impl World {
    fn new(waits: &[&str], connects: &[&str]) -> Option<Self> {
        let mut network = network(2, |network| {
            // No second address beside the given one, from which answers might leave.
            let script = "echo 1 > /proc/sys/net/ipv6/conf/default/addr_gen_mode";
            for host in [WAITS, CONNECTS] {
                let run = network.command(host, "sh").args(["-c", script]).status();
                run.map_err(|error| error.to_string())?;
            }
            network.cable((WAITS, waits), (CONNECTS, connects))
        })?;
        network.end_after(PATIENCE);
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("file"), vec![7; 100_000]).unwrap();
        Some(Self { network, scratch })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn tack(&self, host: usize) -> Command {
        on(&self.network, host, self.scratch.path())
    }

    /// Sends the file to a receiver that waits for it, as `way` makes it of what that shows.
    fn carry(&self, way: impl Fn(&mut Command, &Invitation)) -> Invitation {
        let inbox = self.path("inbox");
        fs::create_dir(&inbox).unwrap();
        let mut receive = self.tack(WAITS);
        receive.args(["recv", "--once", "--dir"]).arg(&inbox);
        let (mut receiver, invitation) = Waiting::start(&mut receive);
        let mut send = self.tack(CONNECTS);
        send.arg("send").arg(self.path("file"));
        way(&mut send, &invitation);
        let sent = finish(&mut send);
        assert_eq!(sent.code, Some(0), "{}: {sent:?}", invitation.shown);
        assert!(receiver.child.wait().unwrap().success());
        let [stored, file] =
            [inbox.join("file"), self.path("file")].map(|path| fs::read(path).unwrap());
        assert!(stored == file, "wrong bytes");
        fs::remove_dir_all(&inbox).unwrap();
        invitation
    }
}

fn on(network: &Network, host: usize, scratch: &Path) -> Command {
    let mut command = network.tack(host);
    command.env("TACK_STATE_DIR", scratch.join(format!("state-{host}")));
    command
}

#[test]
fn machines_with_link_local_addresses_of_ipv6_meet_by_address_and_by_code() {
    let Some(world) = World::new(&["fe80::1/64"], &["fe80::2/64"]) else {
        return;
    };
    let by_address = world.carry(|send, shown| {
        let address = shown.address.replace("INTERFACE", "veth0");
        assert_eq!(address, "[fe80::1%veth0]:7777");
        send.args([&address, "--code", &shown.code, "--remember", "desk"]);
    });
    assert!(
        !by_address.shown.contains("anywhere"),
        "{}",
        by_address.shown
    );
    world.carry(|send, shown| {
        send.args([&shown.code[..], "--wait", "100s"]);
    });
    world.carry(|send, shown| {
        send.env("TACK_TICKET", &shown.ticket).arg("fe80::1%veth0");
    });
    // A known peer is found there, too.
    let listed = finish(world.tack(CONNECTS).args(["peers", "--json"]));
    let listed: Vec<_> = listed.stdout.lines().collect();
    assert!(
        listed.iter().any(|line| line.contains("\"fe80::1%veth0\"")),
        "{listed:?}"
    );
    let strange = finish(
        world
            .tack(CONNECTS)
            .args(["send"])
            .arg(world.path("file"))
            .arg("[fe80::1]:7777"),
    );
    assert_eq!(strange.code, Some(2), "{strange:?}");
    assert!(strange.stderr.contains("fe80::1%eth0"), "{strange:?}");
}

#[test]
fn machines_with_link_local_addresses_of_ipv4_meet_by_ticket_and_by_code() {
    let Some(world) = World::new(&["169.254.7.1/16"], &["169.254.7.2/16"]) else {
        return;
    };
    let shown = world.carry(|send, shown| {
        send.arg(&shown.ticket);
    });
    assert_eq!(shown.address, "169.254.7.1:7777");
    world.carry(|send, shown| {
        send.args([&shown.code[..], "--wait", "100s"]);
    });
}

#[test]
fn a_machine_without_a_network_says_so() {
    let Some(network) = network(1, |_| Ok(())) else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let mut receive = on(&network, 0, scratch.path());
    let (_receiver, invitation) =
        Waiting::start(receive.args(["recv", "--dir"]).arg(scratch.path()));
    let shown = &invitation.shown;
    assert!(shown.contains("no address on a network"), "{shown}");
    assert!(!shown.contains("anywhere"), "{shown}");
}
