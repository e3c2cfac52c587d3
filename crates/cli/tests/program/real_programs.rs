//! The programs that people have, through tunnels: ssh, scp, rsync, git, curl and a WebSocket over
//! an emulated Wi-Fi, and what docs/tunnels.md says about a first one, as typed. In network
//! namespaces.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::network::{Network, network};
use crate::support::ssh;
use crate::support::{Ended, PATIENCE, Running, finish, is_long, noise, tack, tree};
use crate::tunnel::Service;

/// The machines: a laptop, what is between them, a desk computer with all the servers.
const LAPTOP: usize = 0;
const AIR: usize = 1;
const DESK: usize = 2;

/// Where the laptop finds the desk computer: at the other end of the Wi-Fi.
const FAR: &str = "10.78.1.1:7777";

struct World {
    network: Network,
    scratch: tempfile::TempDir,
}

impl World {
    /// # Errors
    /// In words, what this machine lacks.
    fn new(network: Network, programs: &[&str]) -> Result<Self, String> {
        if let Some(why) = tack_skip::lacks(programs) {
            return Err(why);
        }
        if ssh::sshd().is_none() {
            return Err("no sshd".into());
        }
        let scratch = tempfile::tempdir().unwrap();
        Ok(Self { network, scratch })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, content: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A `tack` of this machine, with the state of its user.
    fn tack(&self, host: usize, arguments: &[&str]) -> Command {
        let mut command = self.network.tack(host);
        command
            .args(arguments)
            .env("TACK_STATE_DIR", self.path(&format!("state-{host}")));
        command
    }

    /// A line of a shell of a machine, where `tack` is in the path, with these files in the place
    /// of those of the system.
    fn shell(&self, host: usize, files: &[(&str, &str)], line: &str) -> Command {
        let program = PathBuf::from(tack().get_program());
        let path = format!(
            "{}:{}",
            program.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let mut script = String::from("set -e\n");
        for (file, name) in files {
            script += &format!("mount --bind {} {file}\n", self.text(name));
        }
        script += line;
        let mut command = self.network.program(host, "sh");
        command
            .args(["-c", &script])
            .env("PATH", path)
            .env("HOME", self.path(&format!("home-{host}")))
            .env("TACK_STATE_DIR", self.path(&format!("state-{host}")))
            .current_dir(self.scratch.path());
        command
    }

    fn ok(&self, host: usize, line: &str) -> Ended {
        let ended = finish(&mut self.shell(host, &[], line));
        assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
        ended
    }

    /// Keys of both sides, each known to the other, and a server of ssh that takes one of them, at
    /// this address of a machine.
    fn sshd(&self, host: usize, files: &[(&str, &str)], at: &str, port: u16) -> Running {
        let line = ssh::server(self.scratch.path(), at, port);
        let command = &mut self.shell(host, files, &line);
        self.network.serving(host, command, (at, port))
    }

    /// Pairs the two sides by their keys.
    fn pair(&self, address: &str) {
        let key = |host| {
            finish(&mut self.tack(host, &["id"]))
                .stdout
                .trim()
                .to_owned()
        };
        let (laptop, desk) = (key(LAPTOP), key(DESK));
        finish(&mut self.tack(DESK, &["peers", "add", "laptop", &laptop]));
        let arguments = ["peers", "add", "desk", &desk, "--address", address];
        finish(&mut self.tack(LAPTOP, &arguments));
    }
}

fn equal(a: &Path, b: &Path) {
    let read =
        |path: &Path| fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(read(a) == read(b), "{} and {}", a.display(), b.display());
}

/// The files of a folder without their times, which git does not keep.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let found = tree(folder).into_iter();
    found
        .map(|(path, (_, _, content))| (path, content))
        .collect()
}

#[test]
fn programs_cross_the_air_and_their_bytes_are_the_same() {
    if !is_long() {
        return;
    }
    let machines = network(3, |network| {
        network.cable((LAPTOP, &["10.78.1.2/24"]), (AIR, &["10.78.1.1/24"]))?;
        network.cable((DESK, &["10.78.2.2/24"]), (AIR, &["10.78.2.1/24"]))?;
        network.host(DESK, "route add 10.78.1.0/24 via 10.78.2.1")
    });
    let Some(mut network) = machines else {
        return;
    };
    network.end_after(PATIENCE * 2);
    let programs = [
        "ssh",
        "scp",
        "rsync",
        "git",
        "curl",
        "python3",
        "ssh-keygen",
    ];
    let world = match World::new(network, &programs) {
        Ok(world) => world,
        Err(why) => return tack_skip::skipped(why),
    };
    let mut air = Running::start(&mut world.tack(
        AIR,
        &[
            "emulate",
            "--wifi",
            "802.11n",
            "--delay",
            "5ms",
            "--insecure",
            "--json",
            "--listen",
            FAR,
            "--to",
            "10.78.2.2:7777",
        ],
    ));
    assert_eq!(air.line()["event"], "listening");
    world.pair(FAR);
    let arguments = [
        "serve",
        "--target",
        "127.0.0.1:*",
        "--target",
        "localhost:*",
    ];
    let mut serving = Service::of(world.tack(DESK, &arguments));
    serving.line("serving tunnels at ");

    // ssh, scp, rsync and git, each by a ProxyCommand.
    let _sshd = world.sshd(DESK, &[], "127.0.0.1", 2222);
    let options = ssh::options(world.scratch.path());
    let ssh = format!("ssh {options} -p 2222 -o ProxyCommand='tack connect desk: %h:%p'");
    world.write("big", &noise(1, 3 << 20));
    for n in 0..20 {
        world.write(
            &format!("docs/{}/{n}", n % 3),
            &noise(n, n as usize * 7_919),
        );
    }
    let (big, there) = (world.text("big"), world.text("there"));
    fs::create_dir(&there).unwrap();
    world.ok(
        LAPTOP,
        &format!("{ssh} root@localhost 'cat > {there}/by-ssh' < {big}"),
    );
    equal(&world.path("big"), &world.path("there/by-ssh"));
    world.ok(
        LAPTOP,
        &format!("{ssh} root@localhost 'cat {big}' > by-ssh"),
    );
    equal(&world.path("big"), &world.path("by-ssh"));
    let status = finish(&mut world.shell(LAPTOP, &[], &format!("{ssh} root@localhost 'exit 42'")));
    assert_eq!(status.code, Some(42), "{status:?}");
    let scp = format!("scp {options} -P 2222 -o ProxyCommand='tack connect desk: %h:%p'");
    world.ok(
        LAPTOP,
        &format!("{scp} {big} root@localhost:{there}/by-scp"),
    );
    equal(&world.path("big"), &world.path("there/by-scp"));
    let by_ssh = format!("rsync -a -e \"{}\"", ssh.replace('"', "\\\""));
    world.ok(LAPTOP, &format!("{by_ssh} docs root@localhost:{there}/"));
    assert!(tree(&world.path("docs")) == tree(&world.path("there/docs")));
    let identity = "git config user.name me && git config user.email me@example.org";
    world.ok(
        DESK,
        &format!("git init -q --bare {there}/repo.git && git init -q work && cd work && {identity} \
                  && cp -r ../docs . && git add . && git commit -qm docs && git push -q {there}/repo.git HEAD:main"),
    );
    let git = format!("GIT_SSH_COMMAND=\"{}\" git", ssh.replace('"', "\\\""));
    world.ok(
        LAPTOP,
        &format!("{git} clone -q -b main ssh://root@localhost{there}/repo.git cloned"),
    );
    assert!(contents(&world.path("docs")) == contents(&world.path("cloned/docs")));
    world.ok(
        LAPTOP,
        &format!("cd cloned && {identity} && cp ../big . && git add big && git commit -qm big && {git} push -q"),
    );
    world.ok(
        DESK,
        &format!("git --git-dir {there}/repo.git show main:big > pushed"),
    );
    equal(&world.path("big"), &world.path("pushed"));

    // curl by a port, and by the proxy in both of its protocols.
    let serve_files = format!(
        "exec python3 -m http.server 8000 --bind 127.0.0.1 --directory {}",
        world.scratch.path().display()
    );
    let command = &mut world.shell(DESK, &[], &serve_files);
    let _http = world.network.serving(DESK, command, ("127.0.0.1", 8000));
    let forward = [
        "forward",
        "-L",
        "8080:127.0.0.1:8000",
        "-L",
        "8765:localhost:8765",
        "desk:",
    ];
    let mut forwarding = Service::of(world.tack(LAPTOP, &forward));
    forwarding.line(" leads to ");
    let mut proxy = Service::of(world.tack(LAPTOP, &["proxy", "desk:"]));
    proxy.line(" lead to ");
    for (name, how) in [
        ("forward", "http://localhost:8080/big"),
        (
            "socks",
            "--proxy socks5h://127.0.0.1:1080 http://localhost:8000/big",
        ),
        (
            "connect",
            "--proxy http://127.0.0.1:1080 --proxytunnel http://127.0.0.1:8000/big",
        ),
    ] {
        world.ok(
            LAPTOP,
            &format!("curl -sS --fail --noproxy none -o by-{name} {how}"),
        );
        equal(&world.path("big"), &world.path(&format!("by-{name}")));
    }
    let refused =
        "curl -sS --noproxy none --proxy http://127.0.0.1:1080 --proxytunnel http://10.78.2.2:1/";
    let ended = finish(&mut world.shell(LAPTOP, &[], refused));
    assert!(ended.stderr.contains("403"), "{ended:?}");

    web_socket(&world);

    // All of it went over the air.
    air.signal(rustix::process::Signal::INT);
    let summary = air.wait().json();
    let up = summary["up"]["delivered_bytes"].as_u64().unwrap();
    assert!(up > 6 << 20, "{summary}");
}

/// A WebSocket through the forwarded port: messages in both directions at once, of many lengths.
fn web_socket(world: &World) {
    const SERVER: &str = "\
import asyncio, websockets
async def echo(socket, path=None):
    async for message in socket:
        await socket.send(message)
async def main():
    async with websockets.serve(echo, 'localhost', 8765, max_size=None):
        await asyncio.Future()
asyncio.run(main())
";
    const CLIENT: &str = "\
import asyncio, websockets
async def main():
    messages = [bytes([n % 251]) * (n * n) for n in range(0, 700, 7)] + ['text \u{e4}']
    async with websockets.connect('ws://localhost:8765', max_size=None) as socket:
        async def say():
            for message in messages:
                await socket.send(message)
        saying = asyncio.create_task(say())
        for message in messages:
            assert await socket.recv() == message
        await saying
    print('equal', len(messages))
asyncio.run(main())
";
    let python = ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let looked = Command::new(python)
            .args(["-c", "import websockets"])
            .stderr(Stdio::null())
            .status();
        looked.is_ok_and(|status| status.success())
    });
    let Some(python) = python else {
        return tack_skip::skipped("the WebSocket: no websockets (Debian's python3-websockets)");
    };
    world.write("server.py", SERVER.as_bytes());
    world.write("client.py", CLIENT.as_bytes());
    let command = &mut world.shell(DESK, &[], &format!("exec {python} server.py"));
    let _server = world.network.serving(DESK, command, ("localhost", 8765));
    let ended = world.ok(LAPTOP, &format!("{python} client.py"));
    assert!(ended.stdout.contains("equal 101"), "{ended:?}");
}

/// The lines of the section of docs/tunnels.md about a first tunnel: those of the serving side, and
/// those of the other, up to the next heading.
fn documented_lines() -> (Vec<String>, Vec<String>) {
    let page = include_str!("../../../../docs/tunnels.md");
    let (_, section) = page.split_once("\n## A first tunnel\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let mut blocks = section.split("```").skip(1).step_by(2).map(|block| {
        let lines = block.lines();
        let lines = lines.map(|line| line.split("  #").next().unwrap().trim().to_owned());
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>()
    });
    let on_server = blocks.next().unwrap();
    (on_server, blocks.flatten().collect())
}

#[test]
fn the_first_tunnel_of_the_documentation_works_as_typed() {
    let machines = network(2, |network| {
        network.cable((0, &["10.79.1.2/24"]), (1, &["10.79.1.1/24"]))
    });
    let Some(mut network) = machines else {
        return;
    };
    network.end_after(PATIENCE);
    let programs = ["ssh", "curl", "python3", "ssh-keygen"];
    let world = match World::new(network, &programs) {
        Ok(world) => world,
        Err(why) => return tack_skip::skipped(why),
    };
    let (here, there) = (0, 1);
    for host in [here, there] {
        fs::create_dir(world.path(&format!("home-{host}"))).unwrap();
    }
    // What the reader has: a machine that is called nas, an account there, and a web server.
    world.write(
        "hosts",
        b"127.0.0.1 localhost\n::1 localhost\n10.79.1.1 nas\n",
    );
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    world.write(
        "passwd",
        format!("{passwd}me:x:0:0::/root:/bin/sh\n").as_bytes(),
    );
    let ssh_config = format!(
        "Host *\n  BatchMode yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile {}\n  IdentityFile {}\n",
        world.text("known"),
        world.text("user-key")
    );
    world.write("ssh_config", ssh_config.as_bytes());
    fs::set_permissions(world.path("ssh_config"), fs::Permissions::from_mode(0o644)).unwrap();
    let serving = [("/etc/hosts", "hosts"), ("/etc/passwd", "passwd")];
    let typing = [("/etc/ssh/ssh_config", "ssh_config")];
    let _sshd = world.sshd(there, &serving, "10.79.1.1", 22);
    world.write("site/index.html", b"the web server there");
    let _http = [("127.0.0.1", 8000), ("10.79.1.1", 80)].map(|(at, port)| {
        let site = format!(
            "exec python3 -m http.server {port} --bind {at} --directory {}",
            world.text("site")
        );
        let command = &mut world.shell(there, &[], &site);
        world.network.serving(there, command, (at, port))
    });

    let (on_server, elsewhere) = documented_lines();
    let [serve] = &on_server[..] else {
        panic!("{on_server:?}");
    };
    let mut service = Service::of(world.shell(there, &serving, serve));
    let line = service.line("tack1");
    let ticket = line
        .split_whitespace()
        .find(|word| word.starts_with("tack1"))
        .unwrap();
    let mut running = Vec::new();
    let mut executed = 0;
    for line in &elsewhere {
        let line = line.replace("TICKET", ticket);
        // Those that serve go on; the others end.
        if line.starts_with("tack forward ") || line.starts_with("tack proxy ") {
            let mut service = Service::of(world.shell(here, &typing, &line));
            service.line(" to ");
            running.push(service);
            continue;
        }
        executed += usize::from(line.starts_with("tack exec "));
        if line.starts_with("tack exec ") && !Path::new("/dev/net/tun").exists() {
            tack_skip::skipped(format_args!("{line}: no /dev/net/tun"));
            continue;
        }
        let typed = match line.starts_with("ssh ") {
            true => format!("{line} echo from the shell there"),
            false => line.clone(),
        };
        let ended = finish(&mut world.shell(here, &typing, &typed));
        assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
        if line.starts_with("ssh ") {
            assert_eq!(ended.stdout, "from the shell there\n", "{line}");
        }
        if line.contains("curl ") {
            assert_eq!(ended.stdout, "the web server there", "{line}");
        }
    }
    assert!(elsewhere.len() >= 7 && executed == 1, "{elsewhere:?}");
}
