//! `tack exec` as a user without privileges has it: curl, git, rsync and a program of Python, which
//! know nothing of tunnels, in a network of their own. In network namespaces.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::observe::metrics::{parsed, scrape, values};
use crate::support::network::{Network, network, within};
use crate::support::{Ended, PATIENCE, Running, finish, noise, tack, tree};
use crate::tunnel::Service;

/// The machines.
pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;
/// What the client cannot reach itself.
pub(crate) const FAR_V4: &str = "10.9.9.9";
pub(crate) const FAR_V6: &str = "fd99::9";
/// A user without privileges: nobody.
const USER: &str = "65534";

pub(crate) const SERVER_PROGRAM: &str = include_str!("exec/server.py");
pub(crate) const CLIENT_PROGRAM: &str = include_str!("exec/client.py");

pub(crate) struct World {
    pub(crate) network: Network,
    pub(crate) scratch: tempfile::TempDir,
}

impl World {
    /// # Errors
    /// In words, what this machine lacks.
    pub(crate) fn new(network: Network, programs: &[&str]) -> Result<Self, String> {
        if let Some(why) = tack_skip::lacks(programs) {
            return Err(why);
        }
        let scratch = tempfile::tempdir().unwrap();
        let world = Self { network, scratch };
        for (name, content) in [
            ("server.py", SERVER_PROGRAM),
            ("client.py", CLIENT_PROGRAM),
            (
                "hosts",
                "10.9.9.9 www.test\nfd99::9 www.test\n127.0.0.1 localhost\n",
            ),
            ("tack", ""),
        ] {
            fs::write(world.path(name), content).unwrap();
        }
        fs::create_dir(world.path("www")).unwrap();
        fs::write(world.path("www/file"), noise(7, 3_000_000)).unwrap();
        // The user's files are the user's.
        world.ok("chmod 755 . && chmod -R a+rX . && mkdir home && chown 65534:65534 home");
        Ok(world)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn ok(&self, line: &str) {
        let mut command = Command::new("sh");
        command.args(["-ec", line]).current_dir(self.scratch.path());
        let ended = finish(&mut command);
        assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    }

    /// A line of root's shell on a host, where the files of the server are in place.
    pub(crate) fn shell(&self, host: usize, line: &str) -> Command {
        let script = format!(
            "set -e; mount --bind {} /etc/hosts; {line}",
            self.text("hosts")
        );
        let mut command = self.network.program(host, "sh");
        command
            .args(["-c", &script])
            .env("TACK_STATE_DIR", self.path(&format!("state-{host}")))
            .current_dir(self.scratch.path());
        command
    }

    /// A line of the shell of a user without privileges, who may open the device file, as on most
    /// machines, and finds `tack` in the folder.
    pub(crate) fn user(&self, line: &str) -> Command {
        self.user_after("", USER, line)
    }

    /// A line of this user's shell, after root has prepared the mounts.
    fn user_after(&self, prepare: &str, user: &str, line: &str) -> Command {
        let script = format!(
            "set -e
            {prepare}
            mount --bind {tack} {here}/tack
            mount -t tmpfs none /dev/net
            mknod -m 666 /dev/net/tun c 10 200
            exec setpriv --reuid={user} --regid={user} --clear-groups sh -c '{line}'",
            tack = PathBuf::from(tack().get_program()).display(),
            here = self.scratch.path().display(),
        );
        let mut command = self.network.program(CLIENT, "sh");
        command
            .args(["-c", &script])
            .env("HOME", self.path("home"))
            .env("TACK_STATE_DIR", self.path("home/state"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(self.path("home"));
        command
    }

    pub(crate) fn user_ok(&self, line: &str) -> Ended {
        let ended = finish(&mut self.user(line));
        assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
        ended
    }

    /// The program that is connected to.
    pub(crate) fn far_server(&self, host: usize) -> Running {
        let line = format!("exec python3 server.py www {FAR_V4} {FAR_V6}");
        let mut server = Running::start(&mut self.shell(host, &line));
        assert_eq!(server.text_line(), "ready\n");
        server
    }

    /// A `tack serve` on a host, which the key of its only client was told.
    pub(crate) fn serve(&self, host: usize, at: &str, client_key: &str) -> (Service, String) {
        let targets = format!(
            "--target \"www.test:*\" --target \"{FAR_V4}:*\" --target \"[{FAR_V6}]:*\" \
             --target nowhere.test:80"
        );
        self.serve_targets(host, at, client_key, &targets)
    }

    fn serve_targets(
        &self,
        host: usize,
        at: &str,
        client_key: &str,
        targets: &str,
    ) -> (Service, String) {
        let tack = PathBuf::from(tack().get_program());
        let tack = tack.display();
        let add = format!("{tack} peers add client {client_key}");
        assert_eq!(finish(&mut self.shell(host, &add)).code, Some(0));
        let line =
            format!("exec {tack} serve --listen {at} --metrics {METRICS} --verbose {targets}");
        let mut service = Service::of(self.shell(host, &line));
        service.line("serving tunnels at ");
        let id = finish(&mut self.shell(host, &format!("{tack} id")));
        (service, key_of(&id))
    }
}

/// A port of loopback where a server has its metrics.
const METRICS: u16 = 7070;

/// What the server on a host got from its client came in connections with TACK, all of it.
pub(crate) fn came_by_tack(world: &World, host: usize) {
    let (_, metrics) = within(&world.network.namespace(host), || {
        scrape(([127, 0, 0, 1], METRICS).into())
    });
    let sent = values(&parsed(&metrics), "tack_acks_sent_total");
    let of = |kind| {
        let named = sent
            .iter()
            .filter(|(labels, _)| labels.split(',').any(|it| it == kind));
        named.map(|(_, count)| count).sum::<f64>()
    };
    assert!(of("tack") > 0.0 && of("delayed") == 0.0, "{sent:?}");
}

/// The key in the output of `tack id`.
pub(crate) fn key_of(id: &Ended) -> String {
    let mut words = id.stdout.split_whitespace();
    let key = words
        .find(|word| word.len() > 45)
        .unwrap_or_else(|| panic!("{id:?}"));
    key.trim_end_matches([',', '.']).to_owned()
}

/// Two machines, and what is far of the second one.
pub(crate) fn two() -> Option<World> {
    let network = network(2, |network| {
        network.cable((CLIENT, &["10.5.0.1/24"]), (SERVER, &["10.5.0.2/24"]))?;
        network.host(SERVER, &format!("addr add {FAR_V4}/32 dev lo"))?;
        network.host(SERVER, &format!("addr add {FAR_V6}/128 dev lo nodad"))
    })?;
    let programs = ["curl", "git", "rsync", "python3", "setpriv"];
    let made = match fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
    {
        Ok(_) => World::new(network, &programs),
        Err(error) => Err(format!("cannot open /dev/net/tun: {error}")),
    };
    match made {
        Ok(mut world) => {
            world.network.end_after(PATIENCE);
            Some(world)
        }
        Err(why) => {
            tack_skip::skipped(why);
            None
        }
    }
}

/// Both ends know each other.
pub(crate) fn met(world: &World) -> Service {
    let key = key_of(&world.user_ok("../tack id"));
    let (service, server_key) = world.serve(SERVER, "10.5.0.2:7777", &key);
    world.user_ok(&format!(
        "../tack peers add server {server_key} --address 10.5.0.2:7777"
    ));
    service
}

#[test]
fn curl_git_rsync_and_python_run_without_root_and_all_they_reach_is_the_peers() {
    let Some(world) = two() else { return };
    let _service = met(&world);
    let _far = world.far_server(SERVER);
    world.ok(
        "git init -q -b main repository && cd repository && echo one > one && git add one && \
         git -c user.name=N -c user.email=n@test commit -qm one && chmod -R a+rX .",
    );
    world.ok("mkdir -p files/deep && cp www/file files/deep/ && chmod 640 files/deep/file");
    let conf = format!(
        "[files]\npath = {}\nuse chroot = no\nuid = 0\ngid = 0\n",
        world.text("files")
    );
    fs::write(world.path("rsyncd.conf"), conf).unwrap();
    let line = "exec rsync --daemon --no-detach --config=rsyncd.conf";
    let command = &mut world.shell(SERVER, line);
    let _rsync = world.network.serving(SERVER, command, (FAR_V4, 873));
    let mut git = world.shell(
        SERVER,
        "git config --global --add safe.directory \"*\"; \
         exec git daemon --export-all --base-path=. --reuseaddr",
    );
    let git = git.env("HOME", world.scratch.path());
    let _git = world.network.serving(SERVER, git, (FAR_V4, 9418));
    // Everything in one network.
    let line = format!(
        "exec ../tack exec server: -- sh -ec \"\
         id -u; \
         curl -sS -o got http://www.test/file; \
         curl -sS -o got6 http://[{FAR_V6}]/file; \
         git clone -q git://www.test/repository clone; \
         rsync -a rsync://www.test/files/ copy/; \
         python3 ../client.py {FAR_V4} {FAR_V6} www.test delayed\""
    );
    let ended = world.user_ok(&line);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    // It connects from the server's own address.
    assert_eq!(lines, [USER, "source 10.9.9.9", "done"], "{ended:?}");
    let served = fs::read(world.path("www/file")).unwrap();
    assert!(fs::read(world.path("home/got")).unwrap() == served);
    assert!(fs::read(world.path("home/got6")).unwrap() == served);
    assert_eq!(
        fs::read_to_string(world.path("home/clone/one")).unwrap(),
        "one\n"
    );
    assert_eq!(tree(&world.path("home/copy")), tree(&world.path("files")));
    // What a program cannot know, tack says; what it can, it does not.
    assert!(
        ended
            .stderr
            .contains("10.77.77.77:81: the other side does not permit"),
        "{ended:?}"
    );
    assert!(!ended.stderr.contains("connection refused"), "{ended:?}");
    came_by_tack(&world, SERVER);
}

#[test]
fn a_rule_for_a_name_permits_its_address_to_who_asked_for_the_name() {
    let Some(world) = two() else { return };
    let key = key_of(&world.user_ok("../tack id"));
    let (_service, server_key) =
        world.serve_targets(SERVER, "10.5.0.2:7777", &key, "--target www.test:7");
    world.user_ok(&format!(
        "../tack peers add server {server_key} --address 10.5.0.2:7777"
    ));
    let _far = world.far_server(SERVER);
    let script = "import socket\n\
                  def to(host):\n\
                  \x20   try:\n\
                  \x20       one = socket.create_connection((host, 7), 60)\n\
                  \x20       one.shutdown(1); print(one.recv(1))\n\
                  \x20   except OSError as error:\n\
                  \x20       print(error.errno)\n\
                  to(\"10.9.9.9\"); to(\"www.test\"); to(\"10.9.9.9\"); to(\"10.9.9.9\")\n";
    fs::write(world.path("script.py"), script).unwrap();
    let line = "exec ../tack exec -q server: -- python3 ../script.py";
    let ended = world.user_ok(line);
    let refused = rustix::io::Errno::HOSTUNREACH.raw_os_error().to_string();
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines, [&refused, "b''", "b''", "b''"], "{ended:?}");
    assert_eq!(ended.stderr, "");
}

#[test]
fn names_are_answered_over_tcp_as_well() {
    let Some(world) = two() else { return };
    let _service = met(&world);
    let script = "import socket, struct\n\
                  query = (b'\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0'\n\
                  \x20        b'\\x03www\\x04test\\0\\0\\x01\\0\\x01')\n\
                  lines = [line.split() for line in open('/etc/resolv.conf')]\n\
                  server = [line[1] for line in lines if line[:1] == ['nameserver']][0]\n\
                  one = socket.create_connection((server, 53), 60)\n\
                  for number in range(2):\n\
                  \x20   one.sendall(struct.pack('>H', len(query)) + query)\n\
                  \x20   length, = struct.unpack('>H', one.recv(2, socket.MSG_WAITALL))\n\
                  \x20   answer = one.recv(length, socket.MSG_WAITALL)\n\
                  \x20   code, count = answer[3] & 15, struct.unpack('>H', answer[6:8])[0]\n\
                  \x20   print(answer[:2] == query[:2], code, count)\n";
    fs::write(world.path("script.py"), script).unwrap();
    let ended = world.user_ok("exec ../tack exec -q server: -- python3 ../script.py");
    assert_eq!(ended.stdout, "True 0 1\nTrue 0 1\n", "{ended:?}");
}

#[test]
fn a_command_has_its_streams_signals_and_exit_code() {
    let Some(world) = two() else { return };
    let _service = met(&world);
    let code =
        |line: &str| finish(&mut world.user(&format!("exec ../tack exec server: -- {line}")));
    assert_eq!(code("sh -c \"exit 7\"").code, Some(7));
    assert_eq!(code("sh -c \"kill -9 \\$\\$\"").code, Some(128 + 9));
    let missing = code("./missing");
    assert_eq!(missing.code, Some(127));
    assert!(
        missing.stderr.contains("./missing: command not found"),
        "{missing:?}"
    );
    assert_eq!(code("../hosts").code, Some(126));
    // The descriptor of a ticket is not the command's.
    let line =
        "exec 9<../hosts; exec ../tack exec --ticket-fd 9 server: -- readlink /proc/self/fd/9";
    let passed = finish(&mut world.user(line));
    assert_eq!(
        (passed.code, &passed.stdout[..]),
        (Some(1), ""),
        "{passed:?}"
    );
    // Nobody answers at the peer, or nobody knows it: the command does not run.
    let unknown = finish(&mut world.user("exec ../tack exec nobody: -- touch ran"));
    assert_eq!(unknown.code, Some(125), "{unknown:?}");
    // Nor if there is no such descriptor.
    let line = "exec 9<&-; exec ../tack exec --ticket-fd 9 server: -- touch ran";
    let closed = finish(&mut world.user(line));
    assert_eq!(closed.code, Some(125), "{closed:?}");
    assert!(closed.stderr.contains("/dev/fd/9"), "{closed:?}");
    assert!(!world.path("home/ran").exists());

    let mut cat = world.user("exec ../tack exec server: -- cat");
    let mut cat = cat
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut cat.stdin.take().unwrap(), b"through").unwrap();
    let output = cat.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(0), &b"through"[..])
    );

    // A signal is the command's.
    let line = "exec ../tack exec server: -- sh -c \"trap \\\"echo told; exit 5\\\" USR1; \
                echo ready; while :; do sleep 0.05; done\"";
    let mut waiting = Running::start(&mut world.user(line));
    assert_eq!(waiting.text_line(), "ready\n");
    waiting.signal(Signal::USR1);
    assert_eq!(waiting.text_line(), "told\n");
    assert_eq!(waiting.status().code(), Some(5));

    // Killed, it takes the command along.
    let line = "exec ../tack exec server: -- sh -c \"echo \\$\\$; exec sleep 1000\"";
    let mut killed = Running::start(&mut world.user(line));
    let pid: i32 = killed.text_line().trim().parse().unwrap();
    killed.signal(Signal::KILL);
    assert_eq!(killed.status().code(), None);
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    while rustix::process::test_kill_process(pid).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// DHCP clients and systemd-resolved rename a new file over the old one, and may put a file where
/// the link to theirs was.
#[test]
fn names_stay_the_peers_when_the_machine_replaces_its_configuration() {
    let Some(world) = two() else { return };
    let _service = met(&world);
    world.ok(
        "mkdir -p etc/deep run; cp /etc/passwd etc; echo old > etc/other; echo in > etc/deep/file
        echo hosts: files > etc/nsswitch.conf; echo nameserver 192.0.2.1 > run/resolv.conf
        ln -s $PWD/run/resolv.conf etc/resolv.conf; ln -s ../etc/other etc/link",
    );
    let script = "look() {\n\
                  getent ahostsv4 www.test | head -n 1 | cut -d ' ' -f 1\n\
                  cd /etc; cat resolv.conf nsswitch.conf other link deep/file deep/../other\n\
                  cd \"$here\"; echo looked; }\n\
                  here=$PWD; look\n\
                  until [ -e ../one ]; do sleep 0.02; done; look\n\
                  until [ -e ../two ]; do sleep 0.02; done; look\n\
                  touch /etc/new 2>/dev/null || echo refused\n";
    fs::write(world.path("script.sh"), script).unwrap();
    world.ok("chmod -R a+rX etc run script.sh");
    let prepare = format!("mount --bind {} /etc", world.text("etc"));
    let line = "exec ../tack exec -q server: -- sh ../script.sh";
    let mut running = Running::start(&mut world.user_after(&prepare, USER, line));
    let mut look = |other: &str| {
        let lines = std::iter::from_fn(|| {
            let line = running.text_line();
            (line != "looked\n").then(|| line.trim_end().to_owned())
        });
        let servers = "nameserver 198.18.0.2";
        let expected = [
            FAR_V4,
            servers,
            "hosts: files dns",
            other,
            other,
            "in",
            other,
        ];
        assert_eq!(lines.take(20).collect::<Vec<_>>(), expected);
    };
    let replace = |name: &str, contents: &str| {
        fs::write(world.path("new"), contents).unwrap();
        fs::rename(world.path("new"), world.path(name)).unwrap();
    };
    look("old");
    replace("run/resolv.conf", "nameserver 192.0.2.2\n");
    replace("etc/nsswitch.conf", "hosts: files\n");
    replace("etc/other", "new\n");
    replace("one", "");
    look("new");
    replace("etc/resolv.conf", "nameserver 192.0.2.3\n");
    replace("two", "");
    look("new");
    assert_eq!(running.text_line(), "refused\n");
    assert_eq!(running.status().code(), Some(0));
    // Nothing of it is the machine's.
    let resolv = fs::read_to_string(world.path("etc/resolv.conf")).unwrap();
    assert_eq!(resolv, "nameserver 192.0.2.3\n");
    assert_eq!(fs::read_dir(world.path("etc")).unwrap().count(), 6);
}

/// ssh refuses files of users that it does not know, and inside root is one. Other users than
/// nobody see root's files as nobody's.
#[test]
fn ssh_reads_the_configuration_of_the_system() {
    if let Some(why) = tack_skip::lacks(&["ssh"]) {
        return tack_skip::skipped(why);
    }
    let Some(world) = two() else { return };
    let _service = met(&world);
    fs::write(world.path("passwd"), "user:x:1000:1000::/:/bin/sh\n").unwrap();
    world.ok("chmod a+r passwd; chown -R 1000:1000 home");
    let prepare = format!(
        "mount --bind {} /etc/passwd
        mount -t tmpfs none /etc/ssh
        mkdir /etc/ssh/ssh_config.d
        echo Include /etc/ssh/ssh_config.d/*.conf > /etc/ssh/ssh_config
        echo User included > /etc/ssh/ssh_config.d/one.conf
        ln -s /etc/ssh/elsewhere /etc/ssh/ssh_config.d/two.conf
        echo Port 4022 > /etc/ssh/elsewhere
        chmod 644 /etc/ssh/elsewhere /etc/ssh/ssh_config.d/one.conf
        chmod -R a+rX /etc/ssh",
        world.text("passwd")
    );
    let line = "exec ../tack exec server: -- ssh -G www.test";
    let ended = finish(&mut world.user_after(&prepare, "1000", line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for option in ["user included", "port 4022"] {
        assert!(ended.stdout.lines().any(|line| line == option), "{ended:?}");
    }
    // What others may write, it still refuses.
    let prepare = format!("{prepare}\nchmod 666 /etc/ssh/ssh_config.d/one.conf");
    let ended = finish(&mut world.user_after(&prepare, "1000", line));
    assert_eq!(ended.code, Some(255), "{ended:?}");
    assert!(ended.stderr.contains("Bad owner"), "{ended:?}");
}

/// What a machine may lack is named, with what would change it, and the command does not run.
#[test]
fn without_user_namespaces_or_tun_devices_it_says_so() {
    let Some(world) = two() else { return };
    let _service = met(&world);
    let attempt = |prepare: &str| {
        let line = "exec ../tack exec server: -- touch ran";
        let ended = finish(&mut world.user_after(prepare, USER, line));
        assert_eq!(ended.code, Some(125), "{ended:?}");
        assert!(!world.path("home/ran").exists());
        ended.stderr
    };
    let missing = attempt("mknod() { :; }");
    assert!(missing.contains("module tun"), "{missing}");
    let forbidden = attempt("mknod() { command mknod -m 600 /dev/net/tun c 10 200; }");
    assert!(forbidden.contains("mode 0666"), "{forbidden}");
    // A namespace in which there can be no other; the machine keeps its own limit.
    let wrapper = format!(
        "#!/bin/sh\n\
         exec /usr/bin/setpriv $1 $2 $3 unshare --user --map-user={USER} --map-group={USER} \
         --keep-caps sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"' \
         sh \"$4\" \"$5\" \"$6\"\n"
    );
    fs::create_dir(world.path("bin")).unwrap();
    fs::write(world.path("bin/setpriv"), wrapper).unwrap();
    world.ok("chmod -R a+rX bin; chmod a+x bin/setpriv");
    let limited = attempt(&format!("PATH={}:$PATH", world.text("bin")));
    assert!(limited.contains("user.max_user_namespaces=0"), "{limited}");
}
