//! `--carrier tun`: two programs of one machine, each a host behind its own TUN device, with the
//! kernel as the router between them. In a network namespace, which takes root and iproute2.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::invitation::Waiting;
use crate::support::network::{Network, network, within};
use crate::support::{Running, finish, noise};
use crate::tunnel::Service;

/// Where the two are.
const HERE: &str = "10.77.1.2/24";
const THERE: &str = "10.77.2.2/24";

/// A machine that forwards, and may make devices.
fn router() -> Option<Network> {
    if let Err(error) = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
    {
        tack_skip::skipped(format_args!("cannot open /dev/net/tun: {error}"));
        return None;
    }
    let network = network(1, |_| Ok(()))?;
    let mut forward = network.command(0, "sh");
    let done = forward
        .args(["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
        .status();
    assert!(done.unwrap().success());
    Some(network)
}

fn tun<'a>(command: &'a mut Command, address: &str) -> &'a mut Command {
    command.args(["--carrier", "tun", "--tun-address", address])
}

fn devices(network: &Network) -> String {
    let listed = network.command(0, "ip").args(["-o", "link"]).output();
    String::from_utf8(listed.unwrap().stdout).unwrap()
}

#[test]
fn a_file_travels_encrypted_between_two_devices_which_are_gone_afterwards() {
    let Some(network) = router() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    fs::create_dir(path("inbox")).unwrap();
    let content = noise(1, 3_000_000);
    fs::write(path("file"), &content).unwrap();
    let on = |user: &str| {
        let mut command = network.tack(0);
        command.env("TACK_STATE_DIR", path(user));
        command
    };

    let mut receive = on("there");
    receive.args(["recv", "--once", "--dir"]).arg(path("inbox"));
    let (mut receiver, invitation) = Waiting::start(tun(&mut receive, THERE));
    assert_eq!(invitation.address, "10.77.2.2:7777");
    let shown = &invitation.shown;
    assert!(shown.contains("--carrier tun --tun-address"), "{shown}");
    let mut send = on("here");
    send.arg("send").arg(path("file")).arg(&invitation.ticket);
    let sent = finish(tun(&mut send, HERE));
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(receiver.child.wait().unwrap().success());
    assert_eq!(fs::read(path("inbox/file")).unwrap(), content);
    assert!(!devices(&network).contains("tun"), "{}", devices(&network));
}

#[test]
fn a_test_between_two_devices_uses_tack_and_a_killed_server_leaves_no_device() {
    let Some(network) = router() else { return };
    let mut serve = network.tack(0);
    serve.args(["perf", "--server", "--insecure", "--json"]);
    let mut server = Running::start(tun(&mut serve, THERE));
    let first = server.line();
    assert_eq!(first["event"], "listening", "{first}");
    // The port is that of TCP, of which there are several behind one device.
    assert_eq!(first["address"], "10.77.2.2:8226", "{first}");
    assert_eq!(first["addresses"][0], first["address"], "{first}");
    let mut test = network.tack(0);
    test.args(["perf", "10.77.2.2", "--insecure", "--json", "-n", "4MiB"]);
    let ended = finish(tun(&mut test, HERE));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let server_side = &ended.json()["server"][0]["transport"];
    assert!(
        server_side["acks_by_kind"]["tack"].as_u64().unwrap() > 0,
        "{server_side}"
    );
    assert_eq!(server_side["acks_by_kind"]["delayed"], 0);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    assert!(!devices(&network).contains("tun"), "{}", devices(&network));
}

#[test]
fn a_tunnel_between_two_devices_reaches_a_target_of_the_kernel() {
    let Some(network) = router() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let on = |user: &str, words: &str| {
        let mut command = network.tack(0);
        command.env("TACK_STATE_DIR", scratch.path().join(user));
        command.args(words.split(' '));
        command
    };
    let key = |user: &str| finish(&mut on(user, "id")).stdout.trim().to_owned();
    let add = format!("peers add client {}", key("here"));
    assert_eq!(finish(&mut on("there", &add)).code, Some(0));
    let add = format!("peers add server {} --address 10.77.2.2:7777", key("there"));
    assert_eq!(finish(&mut on("here", &add)).code, Some(0));
    let listener = within(&network.namespace(0), || {
        std::net::TcpListener::bind("127.0.0.1:0").unwrap()
    });
    let target = listener.local_addr().unwrap();
    let mut serve = on("there", &format!("serve --target {target}"));
    tun(&mut serve, THERE);
    let mut serving = Service::of(serve);
    serving.line("serving tunnels at ");
    let mut connect = on("here", &format!("connect server: {target}"));
    let connect = tun(&mut connect, HERE).stdin(Stdio::piped());
    let mut connecting = connect.stdout(Stdio::piped()).spawn().unwrap();
    let mut input = connecting.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"asked").unwrap();
    drop(input);
    let (mut near, _) = listener.accept().unwrap();
    let mut asked = String::new();
    std::io::Read::read_to_string(&mut near, &mut asked).unwrap();
    assert_eq!(asked, "asked");
    std::io::Write::write_all(&mut near, b"answered").unwrap();
    drop(near);
    let ended = connecting.wait_with_output().unwrap();
    assert_eq!(
        (ended.status.code(), &ended.stdout[..]),
        (Some(0), &b"answered"[..])
    );
}

#[test]
fn what_is_missing_is_named() {
    let Some(network) = router() else { return };
    let mut command = network.tack(0);
    let ended = finish(command.args(["perf", "--server", "--insecure", "--carrier", "tun"]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--tun-address"), "{ended:?}");

    // Root without capabilities.
    if let Some(why) = tack_skip::lacks(&["setpriv"]) {
        return tack_skip::skipped(format_args!("root without capabilities: {why}"));
    }
    let program = network.tack(0);
    let mut words: Vec<_> = program.get_args().map(ToOwned::to_owned).collect();
    let at = words.len() - 1;
    let wrapper = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
    words.splice(at..at, wrapper.map(Into::into));
    let mut command = Command::new("ip");
    command.args(words).stdin(Stdio::null());
    command.args(["perf", "--server", "--insecure"]);
    let ended = finish(tun(&mut command, THERE));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("CAP_NET_ADMIN"), "{ended:?}");
}
