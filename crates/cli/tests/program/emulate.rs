//! `tack emulate` as a program, on loopback. Nothing here asserts a rate.

use std::net::UdpSocket;

use crate::support::{self, Running, finish, tack};

/// A file goes through the relay: `tack send` and `tack recv` know nothing of it.
#[test]
fn programs_talk_through_the_relay() {
    let scratch = tempfile::tempdir().unwrap();
    let (inbox, file) = (scratch.path().join("inbox"), scratch.path().join("file"));
    let bytes: Vec<u8> = (0..700_000_u32).flat_map(|n| n.to_le_bytes()).collect();
    std::fs::write(&file, &bytes).unwrap();
    let mut receiver = Running::start(
        tack()
            .args([
                "recv",
                "--insecure",
                "--once",
                "--json",
                "--listen",
                "127.0.0.1:0",
                "--dir",
            ])
            .arg(&inbox),
    );
    let to = receiver.line()["address"].as_str().unwrap().to_owned();
    let mut relay = Running::start(tack().args([
        "emulate",
        "--wifi",
        "802.11ac",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &to,
    ]));
    let event = relay.line();
    assert_eq!(
        (&event["event"], &event["to"]),
        (&"listening".into(), &to.into())
    );
    let address = event["address"].as_str().unwrap();
    let sent = finish(tack().args(["send", "--insecure"]).arg(&file).arg(address));
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(receiver.wait().code, Some(0));
    assert!(std::fs::read(inbox.join("file")).unwrap() == bytes);
    relay.signal(rustix::process::Signal::INT);
    let ended = relay.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let summary = ended.json();
    let number = |pointer: &str| summary.pointer(pointer).and_then(|value| value.as_f64());
    assert_eq!(summary["flows"][0]["counted"], "tcp");
    assert!(number("/up/data").unwrap() >= 1_900.0, "{summary}");
    assert!(number("/down/acks").unwrap() > 0.0);
    assert!(number("/up/delivered_bytes").unwrap() >= bytes.len() as f64);
    let shares = summary["air_shares"].as_object().unwrap();
    let total: f64 = shares.values().map(|share| share.as_f64().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-6, "{total}");
    assert!(number("/lateness/deliveries").unwrap() > 1_900.0);
    let ok = summary["trust"]["ok"].as_bool().unwrap();
    assert_eq!(
        ok,
        summary["trust"]["reasons"].as_array().unwrap().is_empty()
    );
}

#[test]
fn a_relay_with_a_duration_ends_by_itself_and_says_so_in_words() {
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = far.local_addr().unwrap().to_string();
    let ended = finish(tack().args([
        "emulate",
        "--wifi",
        "tack-g",
        "--duration",
        "200ms",
        "--stations",
        "3",
        "--to",
        &to,
    ]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains("listening on 127.0.0.1:"),
        "{ended:?}"
    );
    for part in ["tack-g", "air: data 0.0 %", "nothing was delivered"] {
        assert!(ended.stdout.contains(part), "{part}: {ended:?}");
    }
}

#[test]
fn what_a_relay_cannot_do_is_refused_with_the_right_code() {
    let scratch = tempfile::tempdir().unwrap();
    let wired = scratch.path().join("wired.toml");
    std::fs::write(&wired, "[[flow]]\n").unwrap();
    let wired = wired.to_str().unwrap();
    for (arguments, code, reason) in [
        (
            &["emulate", "--to", "127.0.0.1:9"][..],
            2,
            "no Wi-Fi link given",
        ),
        (
            &["emulate", "--wifi", "802.11n", "--to", "127.0.0.1"],
            2,
            "has no port",
        ),
        (
            &["emulate", "--wifi", "802.11z", "--to", "127.0.0.1:9"],
            2,
            "802.11n",
        ),
        (
            &["emulate", "--scenario", wired, "--to", "127.0.0.1:9"],
            2,
            "[wlan]",
        ),
        (
            &["emulate", "--wifi", "802.11n", "--to", "192.0.2.1:9"],
            2,
            "is not on this machine",
        ),
        (
            &[
                "emulate",
                "--wifi",
                "802.11n",
                "--set",
                "wlan.rate=1Mbps",
                "--to",
                "127.0.0.1:9",
            ],
            2,
            "wlan.rate",
        ),
        (
            &[
                "emulate",
                "--wifi",
                "802.11n",
                "--delay",
                "20",
                "--to",
                "127.0.0.1:9",
            ],
            2,
            "\"20\" has no unit",
        ),
        (&["demo", "/nowhere/at/all"], 2, "/nowhere/at/all"),
        (&["demo", "/"], 2, "not a file"),
        (&["demo", "--seeds", "0"], 2, "--seeds"),
        (&["demo", "--compare", "tack"], 2, "2 to 4 mechanisms"),
        (
            &["demo", "--compare", "tack,delayed:2+hack=some"],
            2,
            "timestamp-echo",
        ),
        (&["demo", "--ack-filter", "best"], 2, "cake_aggressive"),
        (&["demo", "--hack", "always"], 2, "opportunistic"),
        (
            &[
                "emulate",
                "--scenario",
                wired,
                "--hack",
                "timer",
                "--to",
                "127.0.0.1:9",
            ],
            2,
            "--wifi",
        ),
        (
            &["demo", "--set", "wlan.hack_timer=1ms"],
            2,
            "no effect with hack",
        ),
    ] {
        let ended = finish(tack().args(arguments));
        assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(reason), "{arguments:?}: {ended:?}");
    }
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = finish(tack().args([
        "emulate",
        "--wifi",
        "802.11n",
        "--listen",
        &address,
        "--to",
        "127.0.0.1:9",
    ]));
    assert_eq!(ended.code, Some(3), "{ended:?}");
}

/// Transfers both ways at once between two programs that know nothing of it: their acknowledgements
/// travel inside those of the link, and those that wait behind data are filtered.
#[test]
fn real_acknowledgements_are_compressed_and_filtered() {
    const BYTES: u64 = 4 << 20;
    let mut server = Running::start(tack().args([
        "perf",
        "--server",
        "--one-off",
        "--insecure",
        "--json",
        "--listen",
        "127.0.0.1:0",
    ]));
    let to = server.line()["address"].as_str().unwrap().to_owned();
    let mut relay = Running::start(tack().args([
        "emulate",
        "--wifi",
        "802.11n",
        "--hack",
        "more-data",
        "--ack-filter",
        "safe",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &to,
    ]));
    let address = relay.line()["address"].as_str().unwrap().to_owned();
    let bytes = BYTES.to_string();
    let test = finish(tack().args([
        "perf",
        &address,
        "--insecure",
        "--bidir",
        "--ack",
        "delayed:2",
        "--bytes",
        &bytes,
        "--json",
    ]));
    assert_eq!(test.code, Some(0), "{test:?}");
    assert_eq!(server.wait().code, Some(0));
    relay.signal(rustix::process::Signal::INT);
    let ended = relay.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let summary = ended.json();
    for direction in ["up", "down"] {
        let delivered = summary[direction]["delivered_bytes"].as_u64().unwrap();
        assert!(delivered >= BYTES, "{direction}: {summary}");
    }
    let wlan = &summary["wlan"];
    let count = |field: &str| wlan["hack"][field].as_u64().unwrap();
    assert!(
        count("compressed_acks") > 0 && count("rebuilt") > 0,
        "{wlan}"
    );
    assert_eq!(wlan["acks_in_link_acks"], count("rebuilt"));
    // Headers of 52 bytes and a UDP header around them become about ten.
    assert!(
        count("compressed_bytes") < count("original_bytes") / 3,
        "{wlan}"
    );
    for fault in ["crc_failures", "decode_failures", "differing"] {
        assert_eq!(count(fault), 0, "{wlan}");
    }
    assert!(wlan["acks_filtered"].as_u64().unwrap() > 0, "{wlan}");
}

/// `--trace` names a file from where the program runs, and the path delivers as it says.
#[test]
fn a_recorded_rate_is_that_of_the_path() {
    let scratch = tempfile::tempdir().unwrap();
    // One packet every 12 ms: 1 Mbit/s.
    let slow: String = (1..=100).map(|n| format!("{}\n", 12 * n)).collect();
    std::fs::write(scratch.path().join("slow.trace"), slow).unwrap();
    std::fs::write(scratch.path().join("file"), vec![7; 60_000]).unwrap();
    let rates = |options: &[&str]| -> Vec<f64> {
        let mut command = tack();
        command.current_dir(scratch.path());
        let ended = finish(command.args(["demo", "file", "--json"]).args(options));
        assert!(ended.code == Some(0), "{ended:?}");
        let json = ended.json();
        let runs = json["runs"].as_array().unwrap().iter();
        runs.map(|run| run["virtual_time"]["goodput_bps"].as_f64().unwrap())
            .collect()
    };
    // The path alone, in virtual time: a packet's headers take their part of it.
    let traced = rates(&["--trace", "slow.trace"]);
    assert!(traced.len() == 2 && traced.iter().all(|rate| (1e5..1e6).contains(rate)));
    assert!(rates(&["--rate", "10Mbps"]).iter().all(|rate| *rate > 1e6));

    // Its only packet leaves long after the test.
    std::fs::write(scratch.path().join("late.trace"), "100000\n").unwrap();
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = far.local_addr().unwrap().to_string();
    let near = UdpSocket::bind("127.0.0.1:0").unwrap();
    for (options, arrives) in [(&["--trace", "late.trace"][..], false), (&[], true)] {
        let mut command = tack();
        command.current_dir(scratch.path());
        command.args(["emulate", "--wifi", "802.11n", "--json"]);
        let listen = ["--listen", "127.0.0.1:0", "--to", &to];
        let mut relay = Running::start(command.args(listen).args(options));
        let address = relay.line()["address"].as_str().unwrap().to_owned();
        near.send_to(b"hello", &address).unwrap();
        if arrives {
            assert_eq!(far.recv(&mut [0; 8]).unwrap(), 5);
        } else {
            far.set_read_timeout(Some(std::time::Duration::from_millis(300)))
                .unwrap();
            assert!(far.recv(&mut [0; 8]).is_err(), "the trace holds it back");
            far.set_read_timeout(Some(std::time::Duration::from_secs(30)))
                .unwrap();
        }
        relay.signal(rustix::process::Signal::INT);
        let ended = relay.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }

    for (command, options, reason) in [
        ("demo", &["--trace", "gone.trace"][..], "gone.trace"),
        (
            "emulate",
            &["--trace", "gone.trace", "--to", &to],
            "gone.trace",
        ),
        (
            "demo",
            &["--trace", "slow.trace", "--rate", "1Mbps"],
            "cannot be used with",
        ),
        ("emulate", &["--trace", "file", "--to", &to], "file"),
    ] {
        let mut program = tack();
        program
            .current_dir(scratch.path())
            .args([command, "--wifi", "802.11n"]);
        let ended = finish(program.args(options));
        assert_eq!(ended.code, Some(2), "{command} {options:?}: {ended:?}");
        assert!(
            ended.stderr.contains(reason),
            "{command} {options:?}: {ended:?}"
        );
    }
}

#[test]
fn a_scenario_without_flows_is_links_enough_and_trust_may_be_required() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("links.toml");
    std::fs::write(&file, "[wlan]\nstandard = '802.11n'\n").unwrap();
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = sink.local_addr().unwrap().to_string();
    let ended = finish(
        tack()
            .arg("emulate")
            .arg("--scenario")
            .arg(&file)
            .args([
                "--to",
                &to,
                "--duration",
                "100ms",
                "--json",
                "--require-trust",
            ])
            .args(["--rate", "50M", "--loss", "1%"]),
    );
    let trusted = ended.json()["trust"]["ok"] == true;
    let code = if trusted { 0 } else { 6 };
    assert_eq!(ended.code, Some(code), "{ended:?}");
}

/// Of a path that loses half of all packets each way, both ways lose some.
#[test]
fn the_wired_path_loses_packets_each_way() {
    const ANSWERS: usize = 30;
    let host = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = host.local_addr().unwrap().to_string();
    let mut relay = Running::start(tack().args([
        "emulate", "--wifi", "802.11n", "--loss", "50%", "--json", "--to", &to,
    ]));
    let listening = relay.line();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = listening["address"].as_str().unwrap();
    client.connect(address).unwrap();
    for socket in [&host, &client] {
        socket
            .set_read_timeout(Some(std::time::Duration::from_millis(20)))
            .unwrap();
    }
    let (mut buffer, mut answers) = ([0; 100], 0);
    for _ in 0..1_000 {
        client.send(&[7; 100]).unwrap();
        if let Ok((len, from)) = host.recv_from(&mut buffer) {
            host.send_to(&buffer[..len], from).unwrap();
            answers += usize::from(client.recv(&mut buffer).is_ok());
        }
        if answers == ANSWERS {
            break;
        }
    }
    assert_eq!(answers, ANSWERS);
    relay.signal(rustix::process::Signal::INT);
    let ended = relay.wait();
    let wired = &ended.json()["wired"];
    for way in ["forward", "reverse"] {
        assert!(wired[way]["lost"].as_u64() > Some(0), "{way}: {wired}");
    }
}

/// The policies of the threads of a program (sched(7)).
#[cfg(target_os = "linux")]
pub(crate) fn policies(program: &Running) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", program.pid())).unwrap();
    threads
        .map(|thread| {
            let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
            // proc_pid_stat(5): field 41; the second one ends with the last parenthesis.
            let (_, fields) = stat.rsplit_once(") ").unwrap();
            fields.split(' ').nth(41 - 3).unwrap().parse().unwrap()
        })
        .collect()
}

#[cfg(target_os = "linux")]
#[test]
fn realtime_is_given_or_refused_with_a_warning() {
    realtime_is_given_or_refused(|| {
        let mut relay = Running::start(tack().args([
            "emulate",
            "--realtime",
            "--wifi",
            "802.11n",
            "--json",
            "--listen",
            "127.0.0.1:0",
            "--to",
            "127.0.0.1:9",
        ]));
        assert_eq!(relay.line()["event"], "listening");
        let policies = policies(&relay);
        relay.signal(rustix::process::Signal::INT);
        Some((policies, relay.wait()))
    });
}

/// `--realtime` gives all threads real-time priority, or says that the system refuses and what it
/// takes. Both, where this test has the privilege and can start a program without it. `run` runs
/// a program with `--realtime`, and returns the policies of its threads and what it said, or
/// `None` where it cannot run.
#[cfg(target_os = "linux")]
pub(crate) fn realtime_is_given_or_refused(run: impl Fn() -> Option<(Vec<u32>, support::Ended)>) {
    use rustix::process::{Resource, Rlimit, setrlimit};
    use rustix::thread::{
        CapabilitySet, capabilities, capability_is_in_bounding_set,
        remove_capability_from_bounding_set,
    };

    const ROUND_ROBIN: u32 = 2;
    const WARNING: &str = "--realtime: the system gives no real-time priority";
    let is_privileged =
        capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE));
    let Some((policies, ended)) = run() else {
        return;
    };
    assert!(!policies.is_empty());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    if ended.stderr.contains(WARNING) {
        tack_skip::skipped(format_args!(
            "priority that is given; this system refuses it: {}",
            ended.stderr
        ));
        assert!(policies.iter().all(|policy| *policy == 0), "{policies:?}");
    } else {
        assert!(
            policies.iter().all(|policy| *policy == ROUND_ROBIN),
            "{policies:?}"
        );
    }
    // What this thread gives up, programs that it starts do not have.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Rtprio, none).unwrap();
    if is_privileged {
        let removed = remove_capability_from_bounding_set(CapabilitySet::SYS_NICE);
        if removed.is_err() || capability_is_in_bounding_set(CapabilitySet::SYS_NICE) != Ok(false) {
            tack_skip::skipped("priority that is refused; CAP_SYS_NICE cannot be given up");
            return;
        }
    }
    let Some((policies, ended)) = run() else {
        return;
    };
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(policies.iter().all(|policy| *policy == 0), "{policies:?}");
    for part in [
        WARNING,
        "root, CAP_SYS_NICE or `ulimit -r 10`",
        "Going on without it",
    ] {
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
}
