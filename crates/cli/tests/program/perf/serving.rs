//! Whom a server of tests lets in, and what it survives.

use std::net::UdpSocket;

use rustix::process::Signal;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{CLEAR_PORT, PORT, Server};
use crate::support::invitation::Waiting;
use crate::support::network::network;
use crate::support::{Running, finish, tack};

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
        b"tackperf\x02\0\0\0\0",
        b"tackperf\x03\xff\xff\xff\xff",
        b"tackperf\x03\0\0\0\x02{}",
        b"tackperf\x03\0\0\0\x04null",
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
    // A request above the limits is refused with a reason.
    let mut stream = control().await;
    let request = br#"{"direction":"up","streams":60000,"limit":{"millis":1},"congestion":"bbr","ack":"every","mss":null,"window":null}"#;
    stream.write_all(b"tackperf\x03").await.unwrap();
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
    stream.write_all(b"tackperf\x03").await.unwrap();
    stream
        .write_all(&(request.len() as u32).to_be_bytes())
        .await
        .unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; stream.read_u32().await.unwrap() as usize];
    stream.read_exact(&mut answer).await.unwrap();
    assert!(String::from_utf8_lossy(&answer).contains("accepted"));
    stream.reset();
    // Bytes that are not segments.
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
    for greeting in [&b"tackperf\x03\0\0\0\x02{}"[..], &[22, 3, 1, 0, 99, 1, 0]] {
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
    stream.write_all(b"tackperf\x02\0\0\0\0").await.unwrap();
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
fn a_kept_ticket_stays_and_only_a_code_that_was_used_is_replaced() {
    let cable = (&["10.79.14.1/24"][..], &["10.79.14.2/24"][..]);
    let Some(network) = network(2, |network| network.cable((0, cable.0), (1, cable.1))) else {
        return;
    };
    let states = tempfile::tempdir().unwrap();
    let tack = |host: usize, state: &str| {
        let mut command = network.tack(host);
        command.env("TACK_STATE_DIR", states.path().join(state));
        command.arg("perf");
        command
    };
    let mut serving = tack(0, "server");
    serving.args(["--server", "--listen", "0.0.0.0:0", "--keep"]);
    let (server, first) = Waiting::start(&mut serving);
    for (client, target) in [
        ("one", &[&first.address[..], "--code", &first.code][..]),
        ("two", &[&first.ticket[..]]),
        ("three", &[&first.ticket[..]]),
    ] {
        let mut test = tack(1, client);
        let ended = finish(test.args(target).args(["-n", "1K"]));
        assert_eq!(ended.code, Some(0), "{client}: {ended:?}");
    }
    let said = server.kill();
    assert!(!said.contains("tack1"), "the first ticket serves: {said}");
    let codes = said.matches(" --code ").count();
    assert_eq!(codes, 1, "one code was used: {said}");
}
