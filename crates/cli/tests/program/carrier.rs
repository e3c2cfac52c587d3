//! `--carrier tun`: two programs of one machine, each a host behind its own TUN device, with the
//! kernel as the router between them. In a network namespace, which takes root and iproute2.

use std::fs;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};

use crate::exec::FAR_V4;
use crate::proxy::{exchange, socks, socks_request};
use crate::support::invitation::Waiting;
use crate::support::network::{Network, network, within};
use crate::support::{Running, finish, noise};
use crate::tunnel::{Service, connect, echo};

/// The addresses of the two, in one family.
#[derive(Clone, Copy)]
struct Ends {
    here: &'static str,
    there: &'static str,
}

const FAMILIES: [Ends; 2] = [
    Ends {
        here: "10.77.1.2/24",
        there: "10.77.2.2/24",
    },
    Ends {
        here: "fd77:1::2/64",
        there: "fd77:2::2/64",
    },
];

impl Ends {
    /// The address of the other side, as a peer types it.
    fn peer(self) -> IpAddr {
        let (address, _) = self.there.split_once('/').unwrap();
        address.parse().unwrap()
    }

    /// The same, with a port.
    fn peer_at(self, port: u16) -> String {
        SocketAddr::new(self.peer(), port).to_string()
    }
}

/// Whether there are TUN devices; says so where there are none.
pub(crate) fn has_tun() -> bool {
    let opened = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun");
    if let Err(error) = &opened {
        tack_skip::skipped(format_args!("cannot open /dev/net/tun: {error}"));
    }
    opened.is_ok()
}

/// A machine that forwards, and may make devices. It has an address that is not that of a device.
fn router() -> Option<Network> {
    if !has_tun() {
        return None;
    }
    let network = network(1, |network| {
        network.host(0, &format!("addr add {FAR_V4}/32 dev lo"))
    })?;
    let mut forward = network.command(0, "sh");
    let done = forward
        .args([
            "-ec",
            "echo 1 > /proc/sys/net/ipv4/ip_forward
             echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
        ])
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
    for ends in FAMILIES {
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
        let (mut receiver, invitation) = Waiting::start(tun(&mut receive, ends.there));
        assert_eq!(invitation.address, ends.peer_at(7777));
        let shown = &invitation.shown;
        assert!(shown.contains("--carrier tun --tun-address"), "{shown}");
        let mut send = on("here");
        send.arg("send").arg(path("file")).arg(&invitation.ticket);
        let sent = finish(tun(&mut send, ends.here));
        assert_eq!(sent.code, Some(0), "{sent:?}");
        assert!(receiver.child.wait().unwrap().success());
        assert!(fs::read(path("inbox/file")).unwrap() == content);
        assert!(!devices(&network).contains("tun"), "{}", devices(&network));
    }
}

#[test]
fn tests_between_two_devices_use_tack_and_a_killed_server_leaves_no_device() {
    for ends in FAMILIES {
        let Some(network) = router() else { return };
        let mut serve = network.tack(0);
        serve.args(["perf", "--server", "--insecure", "--json"]);
        let mut server = Running::start(tun(&mut serve, ends.there));
        let first = server.line();
        assert_eq!(first["event"], "listening", "{first}");
        // The port is that of TCP, of which there are several behind one device.
        assert_eq!(first["address"], ends.peer_at(8226), "{first}");
        assert_eq!(first["addresses"][0], first["address"], "{first}");
        let peer = ends.peer().to_string();
        let mut test = network.tack(0);
        test.args(["perf", &peer, "--insecure", "--json", "-n", "4MiB"]);
        let ended = finish(tun(&mut test, ends.here));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let server_side = &ended.json()["server"][0]["transport"];
        assert!(
            server_side["acks_by_kind"]["tack"].as_u64().unwrap() > 0,
            "{server_side}"
        );
        assert_eq!(server_side["acks_by_kind"]["delayed"], 0);

        let mut doctor = network.tack(0);
        doctor.args(["doctor", &peer, "--insecure", "--json"]);
        doctor.args(["--time", "200ms", "--rounds", "1"]);
        let ended = finish(tun(&mut doctor, ends.here));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.json()["diagnosis"].is_object(), "{ended:?}");
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        assert!(!devices(&network).contains("tun"), "{}", devices(&network));
    }
}

/// Two users of a machine that know each other; one serves a target of the kernel, which sends back
/// what it gets.
struct Tunnel {
    _serving: Service,
    network: Network,
    scratch: tempfile::TempDir,
    ends: Ends,
    target: SocketAddr,
}

impl Tunnel {
    fn new(ends: Ends) -> Option<Self> {
        let network = router()?;
        let scratch = tempfile::tempdir().unwrap();
        let target = within(&network.namespace(0), || {
            let listener = TcpListener::bind((FAR_V4, 0)).unwrap();
            let address = listener.local_addr().unwrap();
            std::thread::spawn(move || {
                while let Ok((stream, _)) = listener.accept() {
                    echo(stream);
                }
            });
            address
        });
        let on = |user: &str, words: &str| {
            let mut command = network.tack(0);
            command.env("TACK_STATE_DIR", scratch.path().join(user));
            command.args(words.split(' '));
            command
        };
        let key = |user: &str| finish(&mut on(user, "id")).stdout.trim().to_owned();
        let add = format!("peers add client {}", key("here"));
        assert_eq!(finish(&mut on("there", &add)).code, Some(0));
        let (key, address) = (key("there"), ends.peer_at(7777));
        let add = format!("peers add server {key} --address {address}");
        assert_eq!(finish(&mut on("here", &add)).code, Some(0));
        let serve = format!("serve --target {target} --remote-listen 127.0.0.1:*");
        let mut serve = on("there", &serve);
        tun(&mut serve, ends.there);
        let mut serving = Service::of(serve);
        serving.line("serving tunnels at ");
        Some(Self {
            _serving: serving,
            network,
            scratch,
            ends,
            target,
        })
    }

    /// `tack` with these arguments. It opens a TUN device on this side of the network.
    fn here(&self, words: &str) -> Command {
        let mut command = self.network.tack(0);
        command.env("TACK_STATE_DIR", self.scratch.path().join("here"));
        command.args(words.split(' '));
        tun(&mut command, self.ends.here);
        command
    }

    /// A program that other programs connect to, and where it listens, as the line with `words`
    /// says.
    fn listening(&self, command: &str, words: &str) -> (Service, SocketAddr) {
        let mut service = Service::of(self.here(command));
        let line = service.line(words);
        let address = line.split_whitespace().find_map(|word| word.parse().ok());
        (service, address.unwrap_or_else(|| panic!("{line}")))
    }

    /// Does what a program of this machine does.
    fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        within(&self.network.namespace(0), work)
    }
}

#[test]
fn connect_reaches_a_target_of_the_kernel_between_two_devices() {
    for ends in FAMILIES {
        let Some(tunnel) = Tunnel::new(ends) else {
            return;
        };
        let mut connect = tunnel.here(&format!("connect server: {}", tunnel.target));
        let connect = connect.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut connecting = connect.spawn().unwrap();
        let mut input = connecting.stdin.take().unwrap();
        let bytes = noise(2, 300_000);
        let sent = bytes.clone();
        // The target ends its stream only after the end of ours.
        let writing = std::thread::spawn(move || input.write_all(&sent));
        let ended = connecting.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0));
        writing.join().unwrap().unwrap();
        assert!(ended.stdout == bytes, "{} bytes", ended.stdout.len());
    }
}

/// Forwards in one direction: -L listens on this side, -R on the serving side.
fn forwards(option: &str) {
    for ends in FAMILIES {
        let Some(tunnel) = Tunnel::new(ends) else {
            return;
        };
        let command = format!("forward {option} 0:{} server:", tunnel.target);
        let (_forward, address) = tunnel.listening(&command, " leads to ");
        tunnel.within(|| exchange(connect(address), &noise(3, 300_000)));
    }
}

#[test]
fn forwarded_connections_reach_a_target_between_two_devices() {
    forwards("-L");
}

#[test]
fn a_port_of_the_serving_side_leads_to_a_target_between_two_devices() {
    forwards("-R");
}

#[test]
fn the_proxy_reaches_a_target_between_two_devices() {
    for ends in FAMILIES {
        let Some(tunnel) = Tunnel::new(ends) else {
            return;
        };
        let command = "proxy server: --listen 127.0.0.1:0";
        let (_proxy, address) = tunnel.listening(command, " lead to ");
        tunnel.within(|| {
            let (stream, code, _) = socks(address, &socks_request(1, tunnel.target));
            assert_eq!(code, 0);
            exchange(stream, &noise(4, 300_000));
        });
    }
}

/// The command's device and the carrier's are two.
#[test]
fn a_command_reaches_a_target_between_two_devices() {
    if let Some(why) = tack_skip::lacks(&["python3"]) {
        return tack_skip::skipped(why);
    }
    for ends in FAMILIES {
        let Some(tunnel) = Tunnel::new(ends) else {
            return;
        };
        let (host, port) = (tunnel.target.ip(), tunnel.target.port());
        let script = format!(
            "import socket\n\
             one = socket.create_connection(('{host}', {port}), 60)\n\
             one.sendall(b'asked'); one.shutdown(socket.SHUT_WR)\n\
             print(one.makefile('rb').read())\n"
        );
        let mut exec = tunnel.here("exec server:");
        let ended = finish(exec.args(["--", "python3", "-c", &script]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.stdout, "b'asked'\n", "{ended:?}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let Some(network) = router() else { return };
    let state = tempfile::tempdir().unwrap();
    // Nothing is waited for: another attempt would fail, too.
    for (line, code) in [
        ("perf --server --insecure", 2),
        ("perf 10.77.2.2 --insecure", 2),
        ("perf 10.77.2.2", 2),
        ("doctor 10.77.2.2", 2),
        ("recv", 2),
        ("send /etc/hosts 10.77.2.2 --wait 5s", 2),
        ("send /etc/hosts 10.77.2.2 --insecure", 2),
        ("serve --target 10.9.9.9:9", 2),
        ("connect 10.77.2.2 10.9.9.9:9 --wait 5s", 2),
        ("forward -L 0:10.9.9.9:9 10.77.2.2", 2),
        ("proxy --listen 127.0.0.1:0 10.77.2.2", 2),
        ("gateway --interface lo 10.77.2.2", 2),
        ("exec --carrier tun 10.77.2.2 -- true", 125),
    ] {
        let mut command = network.tack(0);
        command.env("TACK_STATE_DIR", state.path());
        command.args(line.split(' '));
        if !line.starts_with("exec") {
            command.args(["--carrier", "tun"]);
        }
        let ended = finish(&mut command);
        assert_eq!(ended.code, Some(code), "{line}: {ended:?}");
        let wanted = "--carrier tun needs --tun-address";
        assert!(ended.stderr.contains(wanted), "{line}: {ended:?}");
    }

    // Root without capabilities.
    if let Some(why) = tack_skip::lacks(&["setpriv"]) {
        return tack_skip::skipped(format_args!("root without capabilities: {why}"));
    }
    let program = network.tack(0);
    let mut words: Vec<_> = program.get_args().map(ToOwned::to_owned).collect();
    let at = words.len() - 1;
    let wrapper = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
    words.splice(at..at, wrapper.map(Into::into));
    for line in [
        "perf --server --insecure",
        "connect 10.77.2.2 10.9.9.9:9 --wait 5s",
    ] {
        let mut command = Command::new("ip");
        command.args(&words).stdin(Stdio::null());
        command.env("TACK_STATE_DIR", state.path());
        command.args(line.split(' '));
        let ended = finish(tun(&mut command, FAMILIES[0].here));
        assert_eq!(ended.code, Some(3), "{line}: {ended:?}");
        assert!(ended.stderr.contains("CAP_NET_ADMIN"), "{line}: {ended:?}");
        assert!(!ended.stderr.contains("waiting"), "{line}: {ended:?}");
    }
}
