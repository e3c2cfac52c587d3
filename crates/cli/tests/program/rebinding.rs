//! A name whose address changes between two questions (DNS rebinding): a serving side that permits
//! public hosts is asked for it again and again. In a network namespace with a DNS server of the
//! test.

use std::fs;
use std::process::Command;

use crate::support::network::network;
use crate::support::{PATIENCE, Running, finish};
use crate::tunnel::Service;

/// Answers questions for `flips.example` with a public address and loopback in turn, and those for
/// `both.example` with both; serves a word at each of the two addresses.
const SERVERS: &str = "\
import socket, struct, threading
def serve(address, word):
    listener = socket.create_server((address, 9000))
    while True:
        stream, _ = listener.accept()
        stream.sendall(word)
        stream.close()
for address, word in [('8.8.8.8', b'public'), ('127.0.0.1', b'TRAP')]:
    threading.Thread(target=serve, args=(address, word), daemon=True).start()
dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
dns.bind(('127.0.0.53', 53))
print('ready', flush=True)
count = 0
while True:
    query, peer = dns.recvfrom(512)
    end = query.index(b'\\0', 12) + 5
    kind = struct.unpack('>H', query[end - 4:end - 2])[0]
    addresses = []
    if kind == 1:
        public, loopback = bytes([8, 8, 8, 8]), bytes([127, 0, 0, 1])
        if b'both' in query:
            addresses = [loopback, public]
        else:
            addresses = [[public, loopback][count % 2]]
            count += 1
    head = query[:2] + struct.pack('>HHHHH', 0x8180, 1, len(addresses), 0, 0)
    records = b''.join(b'\\xc0\\x0c' + struct.pack('>HHIH', 1, 1, 0, 4) + it for it in addresses)
    dns.sendto(head + query[12:end] + records, peer)
";

#[test]
fn a_name_that_changes_its_address_leads_to_no_private_target() {
    let Some(mut network) = network(1, |network| network.host(0, "addr add 8.8.8.8/32 dev lo"))
    else {
        return;
    };
    network.end_after(PATIENCE);
    let looked = Command::new("python3").arg("--version").output();
    if !looked.is_ok_and(|output| output.status.success()) {
        return println!("SKIPPED: no python3");
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    fs::write(path("servers.py"), SERVERS).unwrap();
    fs::write(
        path("resolv.conf"),
        "nameserver 127.0.0.53\noptions timeout:5\n",
    )
    .unwrap();
    fs::write(path("nsswitch.conf"), "hosts: files dns\n").unwrap();
    let mut servers = network.program(0, "python3");
    let mut servers = Running::start(servers.arg(path("servers.py")));
    assert_eq!(servers.text_line(), "ready\n");
    let tack = |side: &str, arguments: &[&str]| {
        let mut command = network.tack(0);
        command.args(arguments).env("TACK_STATE_DIR", path(side));
        command
    };
    let key = |side: &str| finish(&mut tack(side, &["id"])).stdout.trim().to_owned();
    finish(&mut tack(
        "server",
        &["peers", "add", "client", &key("client")],
    ));
    let binding = format!(
        "mount --bind {} /etc/resolv.conf; mount --bind {} /etc/nsswitch.conf; exec \"$@\"",
        path("resolv.conf").display(),
        path("nsswitch.conf").display()
    );
    let mut serving = network.program(0, "sh");
    serving
        .args(["-c", &binding, "sh"])
        .arg(crate::support::tack().get_program())
        .args(["serve", "--listen", "127.0.0.1:0", "--target", "*:*"])
        .env("TACK_STATE_DIR", path("server"));
    let mut service = Service::of(serving);
    let line = service.line("serving tunnels at ");
    let address = line.split_whitespace().last().unwrap();
    let add = [
        "peers",
        "add",
        "server",
        &key("server"),
        "--address",
        address,
    ];
    finish(&mut tack("client", &add));
    let reach = |name: &str| {
        let target = format!("{name}:9000");
        let ended = finish(&mut tack("client", &["connect", "server:", &target]));
        assert!(!ended.stdout.contains("TRAP"), "{ended:?}");
        if ended.code == Some(0) {
            assert_eq!(ended.stdout, "public");
        } else {
            assert_eq!(ended.code, Some(3), "{ended:?}");
            assert!(ended.stderr.contains("does not permit"), "{ended:?}");
        }
        ended.code == Some(0)
    };
    let reached = (0..12).filter(|_| reach("flips.example")).count();
    assert!(
        (1..12).contains(&reached),
        "{reached} of 12: the addresses changed"
    );
    // Of two addresses the permitted one is used.
    assert!(reach("both.example"));
}
