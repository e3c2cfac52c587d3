//! Where rules for any host do not lead: names whose address changes between two questions (DNS
//! rebinding), and addresses of the serving machine and of its networks, which are public as such.
//! In network namespaces, with an Internet and a DNS server of the test.

use std::fs;
use std::path::PathBuf;

use crate::support::network::{Network, network};
use crate::support::{Ended, PATIENCE, Running, finish};
use crate::tunnel::Service;

/// The machine that serves and connects, and the rest of the world.
const HERE: usize = 0;
const BEYOND: usize = 1;

/// Serves a word at port 9000 of each address.
const SERVE: &str = "\
import socket, sys, threading
def listen(address):
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    return socket.create_server((address, 9000), family=family)
def serve(listener):
    while True:
        stream, _ = listener.accept()
        stream.sendall(sys.argv[1].encode())
        stream.close()
listeners = [listen(address) for address in sys.argv[2:]]
print('ready', flush=True)
for listener in listeners:
    threading.Thread(target=serve, args=(listener,)).start()
";

/// Answers questions for `flips.example` with a public address and loopback in turn, and those for
/// `both.example` with both. It fails at `broken.example`, and others have no address.
const NAMES: &str = "\
import socket, struct
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
        elif b'flips' in query:
            addresses = [[public, loopback][count % 2]]
            count += 1
    flags = 0x8182 if b'broken' in query else 0x8180
    head = query[:2] + struct.pack('>HHHHH', flags, 1, len(addresses), 0, 0)
    records = b''.join(b'\\xc0\\x0c' + struct.pack('>HHIH', 1, 1, 0, 4) + it for it in addresses)
    dns.sendto(head + query[12:end] + records, peer)
";

/// Both machines, and a `tack serve` with a `tack` that knows it.
struct World {
    service: Service,
    _programs: Vec<Running>,
    scratch: tempfile::TempDir,
    network: Network,
}

impl World {
    /// `None` where this machine cannot have it, which is said. Words at addresses of the machine
    /// itself and of its network are `TRAP`, others `public`.
    fn new(rules: &[&str]) -> Option<Self> {
        if let Some(why) = tack_skip::lacks(&["python3"]) {
            tack_skip::skipped(why);
            return None;
        }
        let mut network = network(2, |network| {
            network.cable(
                (HERE, &["8.8.9.1/24", "2606:4700::1/64"]),
                (BEYOND, &["8.8.9.2/24", "2606:4700::2/64"]),
            )?;
            network.host(BEYOND, "addr add 8.8.8.8/32 dev lo")?;
            network.host(BEYOND, "addr add 2606:4700:1::8/128 dev lo")?;
            network.host(HERE, "route add default via 8.8.9.2")?;
            network.host(HERE, "-6 route add default via 2606:4700::2")
        })?;
        network.end_after(PATIENCE);
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name);
        fs::write(path("serve.py"), SERVE).unwrap();
        fs::write(path("names.py"), NAMES).unwrap();
        let resolver = "nameserver 127.0.0.53\noptions timeout:5\n";
        fs::write(path("resolv.conf"), resolver).unwrap();
        fs::write(path("nsswitch.conf"), "hosts: files dns\n").unwrap();
        let python = |host, script: &str, arguments: &[&str]| {
            let mut command = network.program(host, "python3");
            let mut running = Running::start(command.arg(path(script)).args(arguments));
            assert_eq!(running.text_line(), "ready\n");
            running
        };
        let trap = ["TRAP", "127.0.0.1", "8.8.9.1", "2606:4700::1"];
        let programs = vec![
            python(HERE, "names.py", &[]),
            python(HERE, "serve.py", &trap),
            python(BEYOND, "serve.py", &["TRAP", "8.8.9.2", "2606:4700::2"]),
            python(BEYOND, "serve.py", &["public", "8.8.8.8", "2606:4700:1::8"]),
        ];
        let state = |side: &str| path(&format!("state-{side}"));
        let tack = |side: &str, arguments: &[&str]| {
            let mut command = network.tack(HERE);
            finish(command.args(arguments).env("TACK_STATE_DIR", state(side)))
        };
        let key = |side: &str| tack(side, &["id"]).stdout.trim().to_owned();
        tack("server", &["peers", "add", "client", &key("client")]);
        let binding = format!(
            "mount --bind {} /etc/resolv.conf; mount --bind {} /etc/nsswitch.conf; exec \"$@\"",
            path("resolv.conf").display(),
            path("nsswitch.conf").display()
        );
        let mut serving = network.program(HERE, "sh");
        serving
            .args(["-c", &binding, "sh"])
            .arg(crate::support::tack().get_program())
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("TACK_STATE_DIR", state("server"));
        for rule in rules {
            serving.args(["--target", rule]);
        }
        let mut service = Service::of(serving);
        let line = service.line("serving tunnels at ");
        let address = line.split_whitespace().last().unwrap();
        let known = ["--address", address];
        let add = ["peers", "add", "server", &key("server")];
        tack("client", &[&add[..], &known].concat());
        Some(Self {
            service,
            _programs: programs,
            scratch,
            network,
        })
    }

    fn state(&self, side: &str) -> PathBuf {
        self.scratch.path().join(format!("state-{side}"))
    }

    /// A connection to port 9000 of this host: the word that it heard, or the refusal.
    fn reach(&self, host: &str) -> Result<String, String> {
        let target = format!("{host}:9000");
        let mut command = self.network.tack(HERE);
        command.args(["connect", "server:", &target]);
        command.env("TACK_STATE_DIR", self.state("client"));
        let Ended {
            code,
            stdout,
            stderr,
            ..
        } = finish(&mut command);
        match code {
            Some(0) => Ok(stdout),
            Some(3) => Err(stderr),
            code => panic!("{host}: {code:?} {stderr}"),
        }
    }

    fn is_public(&self, host: &str) -> bool {
        match self.reach(host) {
            Ok(word) => {
                assert_eq!(word, "public", "{host}");
                true
            }
            Err(words) => {
                assert!(words.contains("does not permit"), "{host}: {words}");
                false
            }
        }
    }
}

/// The rule for loopback is for those who ask for its address: who owns `flips.example` does not
/// get there.
#[test]
fn a_name_that_changes_its_address_leads_to_no_private_target() {
    let Some(world) = World::new(&["*:*", "127.0.0.0/8:9000"]) else {
        return;
    };
    let reached = (0..12).filter(|_| world.is_public("flips.example")).count();
    assert!(
        (1..12).contains(&reached),
        "{reached} of 12: the addresses changed"
    );
    // Of two addresses the permitted one is used.
    assert!(world.is_public("both.example"));
    assert_eq!(world.reach("127.0.0.1"), Ok("TRAP".into()), "named");
    for (name, words) in [
        ("none.example", "finds no address of this name"),
        ("broken.example", "gets no answer about this name"),
    ] {
        let said = world.reach(name).unwrap_err();
        assert!(said.contains(words), "{name}: {said}");
    }
}

#[test]
fn any_host_is_neither_the_serving_machine_nor_its_neighbour() {
    let Some(mut world) = World::new(&["*:*"]) else {
        return;
    };
    for host in ["8.8.8.8", "[2606:4700:1::8]"] {
        assert!(world.is_public(host), "{host} is behind a router");
    }
    for host in [
        "8.8.9.1",
        "8.8.9.2",
        "8.8.9.255",
        "[2606:4700::1]",
        "[2606:4700::2]",
        "[::ffff:8.8.9.1]",
        // 6to4 and NAT64 of the machine's own address.
        "[2002:808:901::1]",
        "[64:ff9b::808:901]",
    ] {
        assert!(!world.is_public(host), "{host}");
    }
    // An address that the machine gets while it serves.
    world
        .network
        .host(HERE, "addr add 9.9.9.9/32 dev lo")
        .unwrap();
    assert!(!world.is_public("9.9.9.9"));
    assert!(world.service.child.try_wait().unwrap().is_none());
}
