//! Two machines on one network find each other by multicast DNS, and reach each other over IPv4 and
//! IPv6: in network namespaces, which take root and iproute2.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::invitation::Waiting;
use crate::support::network::{Network, network};
use crate::support::{Ended, finish};

/// Two machines on a cable.
fn cable() -> Option<Network> {
    network(2, |network| {
        network.cable(
            (0, &["10.77.0.1/24", "fd77::1/64"]),
            (1, &["10.77.0.2/24", "fd77::2/64"]),
        )
    })
}

/// A `tack` of the first or the second machine, with the state of its user.
fn on(network: &Network, host: usize, scratch: &Path) -> Command {
    let mut command = network.tack(host);
    command.env("TACK_STATE_DIR", scratch.join(format!("state-{host}")));
    command
}

#[test]
fn a_code_finds_the_other_machine_and_a_failed_search_says_what_was_tried() {
    let Some(network) = cable() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    fs::create_dir(path("inbox")).unwrap();
    fs::write(path("file"), vec![7; 100_000]).unwrap();

    let mut receive = on(&network, 0, scratch.path());
    receive.args(["recv", "--once", "--dir"]).arg(path("inbox"));
    let (mut receiver, invitation) = Waiting::start(&mut receive);
    assert_eq!(invitation.address, "10.77.0.1:7777");
    assert!(
        invitation.shown.contains("on this network"),
        "{}",
        invitation.shown
    );
    let send = |target: &str, wait: &str| -> Ended {
        let mut command = on(&network, 1, scratch.path());
        command.arg("send").arg(path("file"));
        finish(command.args([target, "--wait", wait]))
    };
    let sent = send(&invitation.code, "100s");
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(
        fs::read(path("inbox/file")).unwrap(),
        fs::read(path("file")).unwrap()
    );
    assert!(receiver.child.wait().unwrap().success());

    // Nobody waits any more.
    let lost = send("7-guitarist-orca", "1s");
    assert_eq!(lost.code, Some(3), "{lost:?}");
    for words in ["number 7", "10.77.0.2", "multicast DNS", "--code"] {
        assert!(lost.stderr.contains(words), "{words}: {lost:?}");
    }
}

#[test]
fn a_code_fetches_what_the_other_machine_offers() {
    let Some(network) = cable() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    fs::write(path("file"), vec![7; 100_000]).unwrap();
    let mut send = on(&network, 0, scratch.path());
    let (mut sender, invitation) = Waiting::start(send.arg("send").arg(path("file")));
    let mut receive = on(&network, 1, scratch.path());
    receive.args(["recv", &invitation.code, "--wait", "100s", "--dir"]);
    let received = finish(receive.arg(path("inbox")));
    assert_eq!(received.code, Some(0), "{received:?}");
    assert_eq!(
        fs::read(path("inbox/file")).unwrap(),
        fs::read(path("file")).unwrap()
    );
    assert!(sender.child.wait().unwrap().success());
}

#[test]
fn one_port_serves_both_families_and_a_test_beyond_the_machine_takes_a_secret() {
    let Some(network) = cable() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let mut serve = on(&network, 0, scratch.path());
    let (mut server, invitation) = Waiting::start(serve.args(["perf", "--server"]));
    let test = |target: &[&str]| -> Ended {
        let mut command = on(&network, 1, scratch.path());
        finish(command.args(["perf", "-n", "1MiB", "--json"]).args(target))
    };
    // A stranger hears what would help, and gets no test.
    for address in ["10.77.0.1", "fd77::1"] {
        let strange = test(&[address]);
        assert_eq!(strange.code, Some(1), "{strange:?}");
        assert!(strange.stderr.contains("is not known here"), "{strange:?}");
    }
    // By code over IPv6, which is kept, and then by name.
    let code = &invitation.code;
    let met = test(&["fd77::1", "--code", code, "--remember", "desk"]);
    assert_eq!(met.code, Some(0), "{met:?}");
    let measured = met.json();
    assert_eq!(measured["encrypted"], true);
    assert_eq!(measured["summary"]["up"]["bytes_received"], 1 << 20);
    let named = test(&["desk:", "--reverse"]);
    assert_eq!(named.code, Some(0), "{named:?}");
    // The code had its one attempt; another one takes its place. By ticket over IPv4.
    let next = server.next_code();
    assert_ne!(&next, code);
    let mut another = network.tack(1);
    another.env("TACK_STATE_DIR", scratch.path().join("state-of-another"));
    let spent = finish(another.args(["perf", "-n", "1MiB", "10.77.0.1", "--code", code]));
    assert_eq!(spent.code, Some(1), "{spent:?}");
    let by_ticket = test(&[&invitation.ticket]);
    assert_eq!(by_ticket.code, Some(0), "{by_ticket:?}");
    // On the machine itself nobody has to be known.
    let mut here = on(&network, 0, scratch.path());
    let here = finish(here.args(["perf", "127.0.0.1", "-n", "1MiB"]));
    assert_eq!(here.code, Some(0), "{here:?}");
}
