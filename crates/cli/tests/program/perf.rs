//! `tack perf` as two processes on loopback.

use std::net::{SocketAddr, UdpSocket};

use crate::support::{Ended, Running, finish, tack};
use rustix::process::Signal;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The TCP ports of encrypted tests and of those in clear text.
const PORT: u16 = tack::DEFAULT_PORT + 3;
const CLEAR_PORT: u16 = tack::DEFAULT_PORT + 1;

struct Server {
    running: Running,
    address: SocketAddr,
    /// What server and clients are told about encryption.
    mode: &'static [&'static str],
}

impl Server {
    fn start(options: &[&str]) -> Self {
        Self::start_in(&[], options)
    }

    /// In clear text.
    fn clear(options: &[&str]) -> Self {
        Self::start_in(&["--insecure"], options)
    }

    fn start_in(mode: &'static [&'static str], options: &[&str]) -> Self {
        let mut command = tack();
        command
            .args(["perf", "--server", "--listen", "127.0.0.1:0", "--json"])
            .args(mode)
            .args(options);
        let mut running = Running::start(&mut command);
        let first = running.line();
        assert_eq!(first["encrypted"], mode.is_empty());
        let address = first["address"].as_str().unwrap().parse().unwrap();
        Self {
            running,
            address,
            mode,
        }
    }

    fn test(&self, options: &[&str]) -> Ended {
        finish(
            tack()
                .arg("perf")
                .arg(self.address.to_string())
                .args(self.mode)
                .args(options),
        )
    }

    fn json(&self, options: &[&str]) -> Value {
        let ended = self.test(&[options, &["--json"]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.json()
    }
}

#[test]
fn a_test_is_encrypted_unless_it_is_to_be_clear() {
    let mut server = Server::start(&[]);
    let test = server.json(&["--bytes", "1MiB"]);
    assert_eq!(test["encrypted"], true);
    assert_eq!(test["key_exchange"], "X25519MLKEM768");
    let cipher = test["cipher"].as_str().unwrap();
    assert!(cipher.starts_with("TLS13_"), "{cipher}");
    let served = server.running.line();
    assert_eq!(
        (&served["encrypted"], &served["ok"]),
        (&true.into(), &true.into())
    );
    let said = server.test(&["--bytes", "1MiB"]).stdout;
    assert!(said.contains(&format!("encrypted ({cipher})")), "{said}");

    let mut server = Server::clear(&[]);
    let test = server.json(&["--bytes", "1MiB"]);
    assert_eq!(
        (&test["encrypted"], &test["cipher"]),
        (&false.into(), &Value::Null)
    );
    assert_eq!(server.running.line()["encrypted"], false);
    let said = server.test(&["--bytes", "1MiB"]).stdout;
    assert!(said.contains("in clear text"), "{said}");
}

#[test]
fn clear_text_and_encryption_never_meet() {
    for (server, mode, expected) in [
        (
            Server::start(&[]),
            &["--insecure"][..],
            "--server --insecure`",
        ),
        (
            Server::clear(&[]),
            &[],
            "or one in clear text; expected `tack perf --server`",
        ),
    ] {
        let address = server.address.to_string();
        let ended = finish(tack().args(["perf", &address, "-n", "1K"]).args(mode));
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}

#[test]
fn both_directions_move_the_bytes_asked_for() {
    const SIZE: u64 = 8 << 20;
    let server = Server::start(&[]);
    let up = server.json(&["--bytes", "8MiB"]);
    assert_eq!(up["summary"]["up"]["bytes_received"], SIZE);
    assert_eq!(up["summary"]["down"], Value::Null);
    let down = server.json(&["--bytes", "8MiB", "--reverse"]);
    assert_eq!(down["summary"]["down"]["bytes_received"], SIZE);
    assert_eq!(down["summary"]["up"], Value::Null);
    let both = server.json(&["--bytes", "8MiB", "--bidir"]);
    for (test, direction) in [(&up, "up"), (&down, "down"), (&both, "up"), (&both, "down")] {
        let summary = &test["summary"][direction];
        assert_eq!(
            (&summary["bytes_sent"], &summary["bytes_received"]),
            (&SIZE.into(), &SIZE.into())
        );
        assert!(summary["goodput_bps"].as_f64().unwrap() > 0.0);
        assert!(summary["data_segments"].as_u64().unwrap() >= SIZE / 1460);
        assert!(summary["acks_sent"].as_u64().unwrap() > 0);
        assert!(summary["srtt_us"].as_f64().unwrap() >= summary["min_rtt_us"].as_f64().unwrap());
        let limited = summary["limited"].as_object().unwrap();
        assert!(limited.contains_key(summary["limited_by"].as_str().unwrap()));
    }
}

#[test]
fn parallel_connections_with_settings_of_their_own() {
    let server = Server::start(&[]);
    let test = server.json(&[
        "--parallel",
        "3",
        "--time",
        "500ms",
        "--interval",
        "100ms",
        "--congestion",
        "cubic",
        "--ack",
        "delayed:8",
        "--mss",
        "1000",
        "--window",
        "256KiB",
    ]);
    assert_eq!(test["request"]["congestion"], "cubic");
    let (client, server_side) = (
        test["client"].as_array().unwrap(),
        test["server"].as_array().unwrap(),
    );
    assert_eq!((client.len(), server_side.len()), (3, 3));
    for (sender, receiver) in client.iter().zip(server_side) {
        assert_eq!(sender["sent"], receiver["received"]);
        assert!(sender["sent"].as_u64().unwrap() > 0);
        // The segment size asked for, less what options take of it.
        let mss = sender["transport"]["mss"].as_u64().unwrap();
        assert!((900..=1000).contains(&mss), "{mss}");
    }
    let intervals = test["intervals"].as_array().unwrap();
    assert!(!intervals.is_empty());
    assert_eq!(intervals[0]["streams"].as_array().unwrap().len(), 3);
    assert!(
        intervals
            .windows(2)
            .all(|pair| pair[0]["end"] == pair[1]["start"])
    );
}

/// Bytes of all intervals, of one role.
fn sum(test: &Value, role: &str) -> u64 {
    let intervals = test["intervals"].as_array().unwrap().iter();
    let rows = intervals.flat_map(|interval| interval["streams"].as_array().unwrap());
    rows.filter(|row| row["role"] == role)
        .map(|row| row["bytes"].as_u64().unwrap())
        .sum()
}

#[test]
fn intervals_cover_the_whole_test() {
    let server = Server::start(&[]);
    // Ticks within the test, a tick at its very end, and none at all.
    for interval in ["200ms", "300ms", "20s"] {
        let test = server.json(&[
            "--time",
            "600ms",
            "--interval",
            interval,
            "--bidir",
            "-P",
            "2",
        ]);
        let last = test["intervals"].as_array().unwrap().last().unwrap();
        assert!(last["end"].as_f64().unwrap() >= 0.6, "{interval}: {last}");
        let (up, down) = (&test["summary"]["up"], &test["summary"]["down"]);
        assert_eq!(sum(&test, "sender"), up["bytes_sent"], "{interval}");
        assert_eq!(sum(&test, "receiver"), down["bytes_received"], "{interval}");
    }
    let test = server.json(&["--bytes", "1MiB", "--interval", "0s"]);
    assert_eq!(
        test["intervals"].as_array().unwrap().len(),
        0,
        "none were asked for"
    );
}

/// Seconds of the shortest interval.
fn shortest(test: &Value) -> f64 {
    let intervals = test["intervals"].as_array().unwrap().iter();
    let length =
        |interval: &Value| interval["end"].as_f64().unwrap() - interval["start"].as_f64().unwrap();
    intervals.map(length).fold(f64::MAX, f64::min)
}

#[test]
fn the_last_interval_has_its_true_length_and_every_interval_its_rows() {
    let (encrypted, clear) = (Server::start(&[]), Server::clear(&[]));
    for (server, options) in [
        (&encrypted, &[][..]),
        (&encrypted, &["-R"]),
        (&encrypted, &["-P", "3"]),
        (&clear, &["-P", "3"]),
        (&clear, &["-u", "-b", "5M"]),
    ] {
        let options = [&["-t", "500ms", "-i", "250ms"], options].concat();
        let test = server.json(&options);
        let (summary, role, bytes) = match options.contains(&"-R") {
            true => (&test["summary"]["down"], "receiver", "bytes_received"),
            false => (&test["summary"]["up"], "sender", "bytes_sent"),
        };
        assert_eq!(sum(&test, role), summary[bytes], "{options:?}");
        // No tail of microseconds with a rate that no path has.
        assert!(shortest(&test) > 0.005, "{options:?}: {test}");
        for interval in test["intervals"].as_array().unwrap() {
            assert!(
                !interval["streams"].as_array().unwrap().is_empty(),
                "{options:?}: {interval}"
            );
        }
    }
}

/// A test of so many bytes ends when it ends: what comes soon after a look belongs to the interval
/// before it, and no interval has bytes and no length.
#[test]
fn a_test_of_so_many_bytes_has_no_interval_without_length() {
    let server = Server::start(&[]);
    for (interval, options) in [
        ("10ms", &["-n", "2M", "-b", "160M"][..]),
        ("1ms", &["-n", "64K"]),
        ("10ms", &["-k", "50"]),
    ] {
        let options = [options, &["-i", interval]].concat();
        let tenth = match interval {
            "10ms" => 0.001,
            _ => 0.000_1,
        };
        for _ in 0..5 {
            let test = server.json(&options);
            let summary = &test["summary"]["up"];
            assert_eq!(sum(&test, "sender"), summary["bytes_sent"], "{options:?}");
            assert!(shortest(&test) > 0.9 * tenth, "{options:?}: {test}");
        }
    }
}

/// The server alone sends datagrams: it says that it has sent all before it sends its results.
#[test]
fn datagrams_from_the_server_end() {
    let kinds = [
        &["-u", "-R", "-b", "20M", "-t", "200ms"][..],
        &["-u", "-R", "-k", "40"],
    ];
    // Several servers at the same time: their tests mostly wait.
    std::thread::scope(|scope| {
        for options in [kinds, kinds, kinds].into_iter().flatten() {
            scope.spawn(move || {
                let server = Server::clear(&[]);
                for _ in 0..2 {
                    let test = server.json(options);
                    let down = &test["summary"]["down"];
                    assert!(
                        down["bytes_received"].as_u64().unwrap() > 0,
                        "{options:?}: {test}"
                    );
                }
            });
        }
    });
}

#[test]
fn a_test_with_datagrams_counts_loss_and_jitter() {
    let server = Server::clear(&[]);
    let test = server.json(&[
        "-u", "-b", "2M", "-t", "400ms", "-l", "500", "-P", "2", "--bidir",
    ]);
    for direction in ["up", "down"] {
        let summary = &test["summary"][direction];
        let loss = &summary["datagrams"];
        let number = |name: &str| loss[name].as_f64().unwrap_or(f64::NAN);
        // 2 Mbit/s for 400 ms in datagrams of 500 bytes are 200 a stream.
        assert!((350.0..=450.0).contains(&number("sent")), "{loss}");
        assert_eq!(
            number("sent"),
            number("received") + number("lost"),
            "{loss}"
        );
        assert!(number("jitter_us") >= 0.0 && number("out_of_order") >= 0.0);
        assert_eq!(summary["bytes_sent"].as_f64(), Some(number("sent") * 500.0));
    }
    let said = server.test(&["-u", "-k", "20", "-b", "0"]).stdout;
    assert!(
        said.contains("of 20 datagrams lost") && said.contains("jitter"),
        "{said}"
    );
}

#[test]
fn what_is_omitted_is_shown_and_not_counted() {
    let (encrypted, clear) = (Server::start(&[]), Server::clear(&[]));
    for (server, direction) in [(&encrypted, "--bidir"), (&clear, "--bidir"), (&clear, "-u")] {
        let options = [
            "-O", "300ms", "-t", "300ms", "-i", "100ms", "-b", "8M", direction,
        ];
        let test = server.json(&options);
        let up = &test["summary"]["up"];
        // 8 Mbit/s for 300 ms, and not for 600.
        let sent = up["bytes_sent"].as_f64().unwrap();
        assert!((200e3..450e3).contains(&sent), "{sent}");
        let intervals = test["intervals"].as_array().unwrap();
        let counted = serde_json::json!({
            "intervals": intervals.iter().filter(|interval| interval["omitted"] == false).collect::<Vec<_>>()
        });
        assert!(intervals.iter().any(|interval| interval["omitted"] == true));
        assert_eq!(sum(&counted, "sender"), up["bytes_sent"]);
    }
    let said = encrypted
        .test(&["-O", "100ms", "-t", "100ms", "-i", "100ms"])
        .stdout;
    assert!(said.contains("(omitted)"), "{said}");
}

#[test]
fn a_bitrate_holds_for_connections() {
    let server = Server::start(&[]);
    let test = server.json(&["-b", "4M", "-t", "500ms"]);
    let sent = test["summary"]["up"]["bytes_sent"].as_f64().unwrap();
    // 250 kB, and a piece of 10 ms more at most.
    assert!((100e3..=256e3).contains(&sent), "{sent}");
}

#[test]
fn a_thousand_connections_at_once() {
    let server = Server::start(&[]);
    let test = server.json(&[
        "-P",
        "1024",
        "-n",
        "2K",
        "-i",
        "0",
        "--connect-timeout",
        "60s",
    ]);
    assert_eq!(test["summary"]["up"]["bytes_received"], 1024 * 2048);
    assert_eq!(test["server"].as_array().unwrap().len(), 1024);
}

#[test]
fn the_servers_view_comes_on_request() {
    let server = Server::start(&[]);
    let test = server.json(&["-t", "300ms", "-i", "100ms", "--get-server-output"]);
    let output = &test["server_output"]["json"];
    let there = serde_json::json!({"intervals": output});
    assert_eq!(
        sum(&there, "receiver"),
        test["summary"]["up"]["bytes_received"]
    );
    let said = server
        .test(&["-t", "200ms", "-i", "100ms", "--get-server-output"])
        .stdout;
    let (_, text) = said.split_once("server:").expect(&said);
    assert!(text.contains("receive"), "{said}");
}

#[test]
fn iperf3s_spellings_run_a_test_between_chosen_addresses() {
    let mut running =
        Running::start(tack().args(["perf", "-s", "-B", "127.0.0.1", "-p", "0", "-J", "-1"]));
    let address: SocketAddr = running.line()["address"].as_str().unwrap().parse().unwrap();
    let port = address.port().to_string();
    let ended = finish(tack().args([
        "perf",
        "-c",
        "localhost",
        "-4",
        "-p",
        &port,
        "-B",
        "127.0.0.2",
        "-P",
        "2",
        "-R",
        "-n",
        "1M",
        "-J",
    ]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json()["summary"]["down"]["bytes_received"], 2 << 20);
    let served = running.line();
    let peer: SocketAddr = served["peer"].as_str().unwrap().parse().unwrap();
    assert_eq!(peer.ip().to_string(), "127.0.0.2");
    assert_eq!(running.wait().code, Some(0));
    let ended = finish(tack().args(["perf", "-c", "127.0.0.1", "-6"]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("no IPv6 address"), "{}", ended.stderr);
}

#[test]
fn a_public_server_has_limits_and_names_them() {
    let server = Server::clear(&[
        "--max-clients",
        "1",
        "--max-duration",
        "20s",
        "--max-bytes",
        "3MB",
    ]);
    for (options, limit) in [
        (&["-t", "21s"][..], "up to 20s"),
        (&["-n", "4MB"], "3000000 bytes"),
        (&["-t", "10s"], "--max-bytes"),
        (&["-u", "-b", "0", "-t", "10s", "-R"], "--max-bytes"),
    ] {
        let ended = server.test(options);
        assert_eq!(ended.code, Some(1), "{options:?}: {ended:?}");
        assert!(
            ended.stderr.contains(limit),
            "{options:?}: {}",
            ended.stderr
        );
    }
    let brief = Server::start(&["--max-duration", "300ms"]).test(&["-n", "1T", "-b", "1M"]);
    assert_eq!(brief.code, Some(1), "{brief:?}");
    assert!(brief.stderr.contains("--max-duration"), "{}", brief.stderr);
    let address = server.address.to_string();
    let mut first = Running::start(tack().args([
        "perf",
        &address,
        "--insecure",
        "-t",
        "15s",
        "-b",
        "8K",
        "-i",
        "50ms",
    ]));
    // The heads of its columns come when its test has begun.
    first.text_line();
    let second = server.test(&["-n", "1K"]);
    assert_eq!(second.code, Some(5), "{second:?}");
    assert!(second.stderr.contains("--max-clients"), "{}", second.stderr);
    first.signal(Signal::TERM);
    assert_eq!(first.wait().code, Some(143));
}

#[test]
fn a_policy_that_is_asked_for_shows() {
    let server = Server::start(&[]);
    let test = |options: &[&str], coalesce: &str| {
        let test = server.json(&[&["--bytes", "8MiB"], options].concat());
        assert_eq!(test["request"]["coalesce"], coalesce, "{options:?}");
        let receiver = &test["server"][0]["transport"];
        let figure = |name: &str| receiver[name].as_f64().unwrap();
        figure("segments_received") / figure("acks_sent")
    };
    test(&[], "on");
    let every = test(&["--ack", "every"], "off");
    assert!(every < 1.2, "{every} segments an acknowledgement");
    let delayed = test(&["--ack", "delayed:8"], "off");
    assert!(delayed > 4.0, "{delayed} segments an acknowledgement");
    test(&["--ack", "every", "--coalesce", "on"], "on");
    let said = server.test(&["--bytes", "1MiB"]).stdout;
    assert!(said.contains("--coalesce off"), "{said}");
}

#[test]
fn a_server_prints_an_object_a_test() {
    let mut server = Server::start(&[]);
    server.json(&["--bytes", "1MB", "-P", "2", "--congestion", "cubic"]);
    let served = server.running.line();
    assert_eq!(
        (&served["event"], &served["ok"]),
        (&"test".into(), &true.into())
    );
    assert_eq!(served["bytes_received"], 2_000_000);
    assert_eq!(served["flows"].as_array().unwrap().len(), 2);
    assert_eq!(served["request"]["congestion"], "cubic");
    // The other way round, the client says why it failed; a stranger asks for nothing.
    for (mut server, port, complaint) in [
        (server, PORT, "does not encrypt"),
        (Server::clear(&[]), CLEAR_PORT, "tack perf"),
    ] {
        let stranger = tokio::runtime::Runtime::new().unwrap().block_on(async {
            let endpoint = tack::Endpoint::builder().build().unwrap();
            let stream = endpoint.connect(server.address).port(port);
            let mut stream = stream.await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
            stream.shutdown().await.unwrap();
            server.running.line()
        });
        assert_eq!(stranger["ok"], false);
        assert_eq!(stranger["request"], Value::Null);
        let error = stranger["error"].as_str().unwrap();
        assert!(error.contains(complaint), "{stranger}");
    }
}

#[test]
fn lines_for_people() {
    let server = Server::start(&[]);
    let ended = server.test(&["--time", "500ms", "--interval", "200ms", "--bidir"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in [
        "role",
        "send",
        "receive",
        "0.00-",
        "bit/s",
        "up: limited by",
        "down: limited by",
        "processors:",
    ] {
        assert!(
            ended.stdout.contains(part),
            "{part} is missing in\n{}",
            ended.stdout
        );
    }
}

#[test]
fn one_off_ends_the_server() {
    let server = Server::start(&["--one-off"]);
    server.json(&["--bytes", "1MB"]);
    assert_eq!(server.running.wait().code, Some(0));
}

#[tokio::test]
async fn the_server_survives_bad_clients() {
    let server = Server::clear(&[]);
    let control = async || {
        let endpoint = tack::Endpoint::builder().build().unwrap();
        let connect = endpoint.connect(server.address).port(CLEAR_PORT);
        connect.await.unwrap()
    };
    for greeting in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"tackperf\x01\0\0\0\0",
        b"tackperf\x02\xff\xff\xff\xff",
        b"tackperf\x02\0\0\0\x02{}",
        b"tackperf\x02\0\0\0\x04null",
    ] {
        let mut stream = control().await;
        stream.write_all(greeting).await.unwrap();
        let mut answer = Vec::new();
        // However it ends, it ends.
        let _ = stream.read_to_end(&mut answer).await;
        assert!(
            !String::from_utf8_lossy(&answer).contains("accepted"),
            "{greeting:?}"
        );
    }
    // A request beyond all measure is refused with a reason.
    let mut stream = control().await;
    let request = br#"{"direction":"up","streams":60000,"limit":{"millis":1},"congestion":"bbr","ack":"every","mss":null,"window":null}"#;
    stream.write_all(b"tackperf\x02").await.unwrap();
    stream
        .write_all(&(request.len() as u32).to_be_bytes())
        .await
        .unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(
        String::from_utf8_lossy(&answer[4..]).contains("refused"),
        "{answer:?}"
    );
    // A client that asks for a test and goes away.
    let mut stream = control().await;
    let request = String::from_utf8_lossy(request).replace("60000", "2");
    stream.write_all(b"tackperf\x02").await.unwrap();
    stream
        .write_all(&(request.len() as u32).to_be_bytes())
        .await
        .unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; stream.read_u32().await.unwrap() as usize];
    stream.read_exact(&mut answer).await.unwrap();
    assert!(String::from_utf8_lossy(&answer).contains("accepted"));
    stream.reset();
    // Bytes that are no segments at all.
    let noise = UdpSocket::bind("127.0.0.1:0").unwrap();
    for len in [0, 1, 19, 20, 60, 1400] {
        noise.send_to(&vec![0xff; len], server.address).unwrap();
    }
    let test = tokio::task::spawn_blocking(move || {
        let test = server.json(&["--bytes", "1MB"]);
        server.running.signal(Signal::TERM);
        (test, server.running.wait())
    });
    let (test, ended) = test.await.unwrap();
    assert_eq!(test["summary"]["up"]["bytes_received"], 1_000_000);
    assert!(ended.code.is_some());
}

#[tokio::test]
async fn an_encrypting_server_survives_bad_clients() {
    let mut server = Server::start(&[]);
    let endpoint = tack::Endpoint::builder().build().unwrap();
    let control = || endpoint.connect(server.address).port(PORT);
    // Clear text, and half a handshake.
    for greeting in [&b"tackperf\x02\0\0\0\x02{}"[..], &[22, 3, 1, 0, 99, 1, 0]] {
        let mut stream = control().await.unwrap();
        stream.write_all(greeting).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(
            answer.is_empty() || tack::secure::is_tls(answer[0]),
            "{answer:?}"
        );
    }
    // A proper handshake, and then nothing that a client says.
    let mut stream = control()
        .any_key(b"tack-perf/2")
        .identity(tack::secure::Identity::generate().unwrap())
        .await
        .unwrap();
    stream.write_all(b"tackperf\x01\0\0\0\0").await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert_eq!(answer, b"");
    for _ in 0..3 {
        assert_eq!(server.running.line()["ok"], false);
    }
    let test = tokio::task::spawn_blocking(move || server.json(&["--bytes", "1MB"]));
    let test = test.await.unwrap();
    assert_eq!(test["summary"]["up"]["bytes_received"], 1_000_000);
}

#[test]
fn a_killed_server_is_noticed() {
    let mut server = Server::start(&[]);
    let client = Running::start(tack().arg("perf").arg(server.address.to_string()).args([
        "--bytes",
        "1TB",
        "--interval",
        "0s",
    ]));
    std::thread::sleep(std::time::Duration::from_millis(500));
    server.running.child.kill().unwrap();
    server.running.child.wait().unwrap();
    let ended = client.wait();
    assert!(matches!(ended.code, Some(1 | 3)), "{ended:?}");
    assert!(!ended.stderr.is_empty());
}

#[test]
fn wrong_usage_is_said_before_anything_happens() {
    for (arguments, complaint) in [
        (&["perf"][..], "expected an address, a ticket"),
        (&["perf", "laptop:", "--insecure"], "takes an address"),
        (&["perf", "--server", "127.0.0.1"], "cannot be used with"),
        (
            &["perf", "127.0.0.1", "--bidir", "--reverse"],
            "cannot be used with",
        ),
        (
            &["perf", "127.0.0.1", "--ack", "sometimes"],
            "one of: every",
        ),
        (&["perf", "127.0.0.1", "--time", "soon"], "duration"),
        (&["perf", "127.0.0.1", "--window", "100GiB"], "window"),
        (
            &["perf", "127.0.0.1", "-u"],
            "UDP tests (-u) are not encrypted",
        ),
    ] {
        let ended = finish(tack().args(arguments));
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(
            ended.stderr.contains(complaint),
            "{arguments:?}: {}",
            ended.stderr
        );
        assert_eq!(ended.stdout, "");
    }
}
