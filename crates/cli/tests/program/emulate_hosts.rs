//! `tack emulate --tun`: the kernel's TCP and programs that know nothing of it over emulated Wi-Fi.
//! Nothing here asserts a rate.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::emulate::{policies, realtime_is_given_or_refused};
use crate::support::{Ended, Running, finish, tack};

/// A running emulation with two stations.
struct Emulation {
    running: Running,
    name: String,
    ready: Value,
}

impl Emulation {
    /// Says why not, where there may be none.
    fn start(options: &[&str]) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-{number}", std::process::id());
        Self::start_as(name, options)
    }

    fn start_as(name: String, options: &[&str]) -> Option<Self> {
        let mut running = Running::start(
            tack()
                .args(["emulate", "--tun", "--json", "--stations", "2", "--name"])
                .arg(&name)
                .args(options),
        );
        let line = running.text_line();
        if line.is_empty() {
            let ended = running.wait();
            let why = ["CAP_SYS_ADMIN", "CAP_NET_ADMIN", "/dev/net/tun"];
            assert!(
                why.iter().any(|why| ended.stderr.contains(why)),
                "{ended:?}"
            );
            tack_skip::skipped(&ended.stderr);
            return None;
        }
        Some(Self {
            ready: serde_json::from_str(&line).unwrap(),
            running,
            name,
        })
    }

    fn exec(&self, host: &str, program: &[&str]) -> std::process::Command {
        let mut command = tack();
        command
            .args(["emulate", "exec", "--name", &self.name, host, "--"])
            .args(program);
        command
    }

    /// A shell's lines on a host, which must succeed.
    fn shell(&self, host: &str, lines: &str) -> Ended {
        let ended = finish(&mut self.exec(host, &["timeout", "60", "sh", "-c", lines]));
        assert_eq!(ended.code, Some(0), "{lines}: {ended:?}");
        ended
    }

    /// A transfer by iperf3 between a station and the server. iperf3 ends when all is handed to the
    /// kernel, and what was not sent by then is lost: not much of it with a small buffer.
    fn iperf3(&self, station: &str, options: &str) {
        let mut server = Running::start(&mut self.exec("server", &["iperf3", "-s", "-1"]));
        let client = format!("until iperf3 -c server -w 128K {options}; do sleep 0.1; done");
        self.shell(station, &client);
        assert_eq!(server.status().code(), Some(0));
    }

    /// A server of `tack perf` for one client.
    fn perf_server(&self, host: &str) -> Running {
        let tack = env!("CARGO_BIN_EXE_tack");
        let program = [
            tack,
            "perf",
            "--server",
            "--one-off",
            "--insecure",
            "--json",
        ];
        let mut command = self.exec(host, &program);
        Running::start(command.args(["--listen", "[::]:7779"]))
    }

    fn stop(self) -> Value {
        self.running.signal(Signal::INT);
        let ended = self.running.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.json()
    }
}

fn has_iperf3() -> bool {
    let missing = tack_skip::lacks(&["iperf3"]);
    if let Some(why) = &missing {
        tack_skip::skipped(why);
    }
    missing.is_none()
}

fn number(value: &Value, pointer: &str) -> f64 {
    let found = value.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("{pointer}: {value}"))
}

/// Flows of a protocol that carried a megabyte, by how they are counted: data and ACKs.
fn bulk(summary: &Value, protocol: &str) -> Vec<(Value, f64, f64)> {
    let flows = summary["flows"].as_array().unwrap().iter();
    flows
        .filter(|flow| flow["protocol"] == protocol)
        .filter_map(|flow| {
            let [up, down] = ["/up/bytes", "/down/bytes"].map(|way| number(flow, way));
            let (data, ack) = if up > down {
                ("up", "down")
            } else {
                ("down", "up")
            };
            let of = |way: &str, what: &str| number(flow, &format!("/{way}/{what}"));
            (up.max(down) > 1e6)
                .then(|| (flow["counted"].clone(), of(data, "data"), of(ack, "acks")))
        })
        .collect()
}

#[test]
fn the_kernels_tcp_and_tack_work_over_the_air() {
    let Some(emulation) = Emulation::start(&["--wifi", "802.11ac"]) else {
        return;
    };
    let hosts = emulation.ready["hosts"].as_array().unwrap();
    let names: Vec<_> = hosts
        .iter()
        .map(|host| host["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["server", "sta0", "sta1"]);

    // The namespace, its devices and names, and how a program ended.
    let seen = emulation.shell(
        "sta1",
        "cat /etc/hosts; ls /sys/class/net; cat /sys/class/net/wlan0/mtu",
    );
    for part in ["10.0.0.1 server", "fd74:6163:6b00::3 sta1", "wlan0\n1500"] {
        assert!(seen.stdout.contains(part), "{seen:?}");
    }
    let failing = finish(&mut emulation.exec("sta0", &["sh", "-c", "exit 7"]));
    assert_eq!(failing.code, Some(7));
    for (program, code, words) in [
        (
            &["no-such-program"][..],
            127,
            "no-such-program: command not found",
        ),
        (&["/etc/hosts"], 126, "cannot run /etc/hosts: "),
        (&["sh", "-c", "kill -9 $$"], 128 + 9, ""),
    ] {
        let ended = finish(&mut emulation.exec("sta0", program));
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
    let unknown = finish(&mut emulation.exec("sta2", &["true"]));
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown
            .stderr
            .contains("expected one of server, sta0, sta1"),
        "{unknown:?}"
    );

    // TCP-TACK, in UDP, between two stations.
    let mut server = emulation.perf_server("sta1");
    let client = format!(
        "until {} perf -c sta1 --insecure -n 2M; do sleep 0.1; done",
        env!("CARGO_BIN_EXE_tack")
    );
    emulation.shell("sta0", &client);
    assert_eq!(server.status().code(), Some(0));

    if !has_iperf3() {
        return;
    }
    emulation.iperf3("sta0", "-4 -R -n 2M -C cubic");
    emulation.iperf3("sta1", "-6 -n 2M");
    let summary = emulation.stop();
    let tcp = bulk(&summary, "tcp");
    assert_eq!(tcp.len(), 2, "{summary}");
    for (counted, data, acks) in tcp {
        assert_eq!(counted, "tcp");
        assert!(data >= 690.0, "{data}");
        // One for two segments, for all that receive offload puts together, and for each one while
        // it recovers.
        assert!((0.01 * data..=1.1 * data).contains(&acks), "{data} {acks}");
    }
    let [(counted, data, acks)] = &bulk(&summary, "udp")[..] else {
        panic!("{summary}");
    };
    assert_eq!(counted, "tcp");
    assert!(
        *data >= 1_400.0 && *acks > 0.0 && *acks < 0.3 * data,
        "{data} {acks}"
    );
    assert_eq!(number(&summary, "/dropped/no_host"), 0.0, "{summary}");
    assert_eq!(number(&summary, "/dropped/unfit"), 0.0);
    let shares = summary["air_shares"].as_object().unwrap();
    assert!(shares["data"].as_f64().unwrap() > 0.0 && shares["ack"].as_f64().unwrap() > 0.0);
    assert!(summary["trust"]["ok"].is_boolean());
}

/// Tells how much the device of a host has sent, as often as it is asked.
struct Sent(Running);

impl Sent {
    fn of(emulation: &Emulation, host: &str) -> Self {
        let lines = "while read -r _; do cat /sys/class/net/wlan0/statistics/tx_bytes; done";
        let mut command = emulation.exec(host, &["sh", "-c", lines]);
        Self(Running::start(command.stdin(Stdio::piped())))
    }

    fn bytes(&mut self) -> u64 {
        let mut questions = self.0.child.stdin.as_ref().unwrap();
        questions.write_all(b"\n").unwrap();
        self.0.text_line().trim().parse().unwrap()
    }
}

/// Two stations send at once, one by TACK and the other by the kernel's TCP: each of them moves
/// bytes while the other does.
#[test]
fn the_kernels_tcp_and_tack_share_the_air() {
    if !has_iperf3() {
        return;
    }
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let known = std::fs::read_to_string(file).unwrap();
    for algorithm in ["cubic", "bbr"] {
        if known.split_whitespace().all(|name| name != algorithm) {
            tack_skip::skipped(format!("the kernel has no {algorithm}"));
            continue;
        }
        let Some(emulation) = Emulation::start(&["--wifi", "802.11ac"]) else {
            return;
        };
        share_the_air(&emulation, algorithm);
        emulation.stop();
    }
}

fn share_the_air(emulation: &Emulation, algorithm: &str) {
    const PAUSE: Duration = Duration::from_millis(100);
    /// More than handshakes and acknowledgements.
    const MOVED: u64 = 20_000;

    let mut stations = ["sta0", "sta1"].map(|host| Sent::of(emulation, host));
    let mut server = emulation.perf_server("server");
    assert_eq!(server.line()["event"], "listening");
    let tack = env!("CARGO_BIN_EXE_tack");
    // It is interrupted sooner.
    let program = [tack, "perf", "-c", "server", "--insecure", "--json"];
    let mut command = emulation.exec("sta0", &program);
    let mut perf = Running::start(command.args(["-t", "60s"]));
    while stations[0].bytes() < MOVED {
        if perf.child.try_wait().unwrap().is_some() {
            panic!("it moves nothing: {:?}", perf.ended());
        }
        std::thread::sleep(PAUSE);
    }

    let _server = Running::start(&mut emulation.exec("server", &["iperf3", "-s", "-1"]));
    // A client that finds no server says so, and ends with 0.
    let listens = "until ss -Hltn 'sport = :5201' | grep -q .; do sleep 0.05; done";
    let waits = ["timeout", "60", "sh", "-c", listens];
    assert_eq!(finish(&mut emulation.exec("server", &waits)).code, Some(0));
    let program = format!("timeout 60 iperf3 -c server -t 2 -J -C {algorithm}");
    let program: Vec<_> = program.split(' ').collect();
    let mut iperf3 = Running::start(&mut emulation.exec("sta1", &program));
    let mut samples = vec![stations.each_mut().map(Sent::bytes)];
    while iperf3.child.try_wait().unwrap().is_none() {
        std::thread::sleep(PAUSE);
        samples.push(stations.each_mut().map(Sent::bytes));
    }
    let both_moved = |pair: &&[[u64; 2]]| (0..2).all(|host| pair[1][host] - pair[0][host] > MOVED);
    let shared = samples.windows(2).filter(both_moved).count();
    let ended = iperf3.ended();
    assert!(
        shared >= 3,
        "{algorithm}: {shared} of {samples:?}, {ended:?}"
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(number(&result, "/end/sum_received/bytes") > 0.0, "{result}");
    assert!(perf.child.try_wait().unwrap().is_none(), "it ended sooner");
    perf.signal(Signal::INT);
    let ended = perf.ended();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let result = ended.json();
    let intervals = result["intervals"].as_array().unwrap();
    let moved = intervals
        .iter()
        .filter_map(|it| it.pointer("/streams/0/bytes")?.as_u64());
    assert!(moved.sum::<u64>() > MOVED, "{result}");
}

/// What radios do about acknowledgements they do about those of the kernel: TCP/HACK rebuilds each
/// one, and a filter drops some.
#[test]
fn filters_and_hack_act_on_acks_of_the_kernel() {
    if !has_iperf3() {
        return;
    }
    for (option, value) in [("--hack", "more-data"), ("--ack-filter", "safe")] {
        let Some(emulation) = Emulation::start(&["--wifi", "tack-g", "--no-gro", option, value])
        else {
            return;
        };
        emulation.iperf3("sta0", "-4 -R -n 2M -C cubic");
        let summary = emulation.stop();
        if option == "--hack" {
            assert!(number(&summary, "/wlan/hack/rebuilt") > 0.0, "{summary}");
            for failure in ["differing", "crc_failures", "decode_failures"] {
                assert_eq!(
                    number(&summary, &format!("/wlan/hack/{failure}")),
                    0.0,
                    "{failure}"
                );
            }
        } else {
            assert!(number(&summary, "/wlan/acks_filtered") > 0.0, "{summary}");
        }
    }
}

#[test]
fn a_shell_is_on_its_host_and_ends_with_its_exit_code() {
    let Some(emulation) = Emulation::start(&["--wifi", "802.11n"]) else {
        return;
    };
    let mut command = tack();
    command.args(["emulate", "shell", "--name", &emulation.name, "sta0"]);
    let mut shell = Running::start(command.env("SHELL", "/bin/sh").stdin(Stdio::piped()));
    let mut keyboard = shell.child.stdin.take().unwrap();
    keyboard
        .write_all(b"echo $TACK_EMULATE_HOST; ip -4 -o address show dev wlan0; exit 7\n")
        .unwrap();
    let ended = shell.wait();
    assert_eq!(ended.code, Some(7), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(
        lines[0] == "sta0" && lines[1].contains(" 10.0.0.2/"),
        "{ended:?}"
    );
    emulation.stop();
}

/// Killed, it leaves nothing: the programs on its hosts end, and its name is free.
#[test]
fn nothing_is_left_when_it_is_killed() {
    let Some(emulation) = Emulation::start(&["--wifi", "802.11n"]) else {
        return;
    };
    let twice = finish(tack().args([
        "emulate",
        "--tun",
        "--wifi",
        "802.11n",
        "--name",
        &emulation.name,
    ]));
    assert_eq!(twice.code, Some(2), "{twice:?}");
    assert!(twice.stderr.contains("choose another --name"), "{twice:?}");

    let waiting = "echo $$; exec sleep 100";
    let mut orphaned = Running::start(&mut emulation.exec("sta1", &["sh", "-c", waiting]));
    let orphan: i32 = orphaned.text_line().trim().parse().unwrap();
    orphaned.signal(Signal::KILL);
    let _killed = orphaned.status();
    let mut program = Running::start(&mut emulation.exec("sta0", &["sh", "-c", waiting]));
    let pid: i32 = program.text_line().trim().parse().unwrap();
    emulation.running.signal(Signal::KILL);
    let ended = program.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("the emulation has ended"),
        "{ended:?}"
    );
    for pid in [pid, orphan] {
        // Whose parent has gone is reaped by somebody else, soon.
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(status.is_empty() || status.contains(") Z "), "{status}");
    }
    let Some(again) = Emulation::start_as(emulation.name.clone(), &["--wifi", "802.11n"]) else {
        panic!("the name is not free");
    };
    again.stop();
    let gone = finish(&mut emulation.exec("sta0", &["true"]));
    assert_eq!(gone.code, Some(2), "{gone:?}");
    assert!(gone.stderr.contains("no emulation called"), "{gone:?}");
}

#[test]
fn realtime_of_hosts_is_given_or_refused_with_a_warning() {
    realtime_is_given_or_refused(|| {
        let emulation = Emulation::start(&["--wifi", "802.11n", "--realtime"])?;
        let policies = policies(&emulation.running);
        emulation.running.signal(Signal::INT);
        Some((policies, emulation.running.wait()))
    });
}

#[test]
fn without_privileges_it_says_what_it_takes() {
    use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

    // What this thread gives up, programs that it starts do not have. Without the privilege to give
    // it up there is nothing to give up.
    let _unprivileged = remove_capability_from_bounding_set(CapabilitySet::SYS_ADMIN);
    let ended = finish(tack().args(["emulate", "--tun", "--wifi", "802.11n"]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for part in ["network namespaces", "root", "CAP_SYS_ADMIN"] {
        assert!(ended.stderr.contains(part), "{ended:?}");
    }
}

/// A program of Python, which is another user.
fn stranger(program: &str, name: &str) -> std::process::Command {
    let become_other = "
import os, socket, sys
offered = os.open('/proc/self/ns/net', os.O_RDONLY)
os.setgroups([])
os.setresgid(1000, 1000, 1000)
os.setresuid(1000, 1000, 1000)
";
    let mut command = std::process::Command::new("python3");
    command
        .args(["-c", &format!("{become_other}{program}")])
        .arg(format!("tack-emulate-{name}"))
        .stdin(std::process::Stdio::null());
    command
}

/// Another user takes the name, and offers a network of its own: nothing runs there.
#[test]
fn an_emulation_of_another_user_is_not_entered() {
    let name = format!("stranger-{}", std::process::id());
    let program = "
listener = socket.socket(socket.AF_UNIX)
listener.bind('\\0' + sys.argv[1])
listener.listen()
print('ready', flush=True)
stream, _ = listener.accept()
try:
    stream.recv(64)
    socket.send_fds(stream, [b'\\0'], [offered])
    stream.sendall(b'127.0.0.1 localhost\\0')
    stream.recv(1)
except OSError:
    pass
";
    if !rustix::process::geteuid().is_root() {
        return tack_skip::skipped("it takes root to be two users");
    }
    if let Some(why) = tack_skip::lacks(&["python3"]) {
        return tack_skip::skipped(why);
    }
    let mut listening = Running::start(&mut stranger(program, &name));
    assert_eq!(listening.text_line(), "ready\n");
    let args = [
        "emulate", "exec", "--name", &name, "sta0", "--", "echo", "inside",
    ];
    let ended = finish(tack().args(args));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains("belongs to user 1000"), "{ended:?}");
    assert_eq!(listening.status().code(), Some(0));
}

/// Another user is told at once, before it has asked for anything, and silent clients of our own
/// keep nobody out.
#[test]
fn silent_clients_keep_nobody_out_of_an_emulation() {
    if let Some(why) = tack_skip::lacks(&["python3"]) {
        return tack_skip::skipped(why);
    }
    let Some(emulation) = Emulation::start(&["--wifi", "802.11n"]) else {
        return;
    };
    let program = "
stream = socket.socket(socket.AF_UNIX)
stream.connect('\\0' + sys.argv[1])
print(stream.makefile('rb').read())
";
    let told = finish(&mut stranger(program, &emulation.name));
    assert!(told.stdout.contains("belongs to another user"), "{told:?}");

    let address = SocketAddr::from_abstract_name(format!("tack-emulate-{}", emulation.name));
    let address = address.unwrap();
    let silent: Vec<_> = (0..8)
        .map(|_| UnixStream::connect_addr(&address).unwrap())
        .collect();
    let ended = finish(&mut emulation.exec("sta0", &["echo", "inside"]));
    assert_eq!(ended.stdout, "inside\n", "{ended:?}");
    drop(silent);
    emulation.stop();
}
