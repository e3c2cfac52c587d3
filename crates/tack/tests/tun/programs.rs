//! Ordinary programs on the kernel's TCP at the other end: curl, nginx, socat, nc.

use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tack::{Endpoint, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::pattern::{check_stream, write_stream};
use crate::world::{host, ip, isolated, options};

/// A program that is killed when the test ends.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program in this namespace; `None`, and says so, where it is not installed.
fn start(name: &str, arguments: &[&str]) -> Option<Program> {
    let started = Command::new(name)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    match started {
        Ok(child) => Some(Program(child)),
        Err(error) => {
            tack_skip::skipped(format_args!("no {name}: {error}"));
            None
        }
    }
}

/// Connects once the program listens.
///
/// # Panics
/// If it ends before: with what it said.
async fn connect(endpoint: &Endpoint, program: &mut Program, address: SocketAddr) -> Stream {
    loop {
        match endpoint.connect(address).await {
            Ok(stream) => return stream,
            Err(error) => assert!(
                matches!(error, tack::ConnectError::Refused { .. }),
                "{error}"
            ),
        }
        if let Some(status) = program.0.try_wait().unwrap() {
            let mut said = String::new();
            if let Some(mut errors) = program.0.stderr.take() {
                errors.read_to_string(&mut said).unwrap();
            }
            panic!("the program at {address} ended: {status}: {said}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Three million bytes that repeat nowhere near.
fn content() -> Vec<u8> {
    (0..750_000_u32)
        .flat_map(|number| number.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect()
}

#[test]
fn a_file_from_nginx() {
    isolated(|| async {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), content()).unwrap();
        let config = format!(
            "daemon off; master_process off; pid {0}/pid; error_log {0}/errors;
             events {{}}
             http {{ access_log off; server {{ listen 10.77.0.1:8080; root {0}; }} }}",
            folder.path().display()
        );
        fs::write(path("config"), config).unwrap();
        let endpoint = host(options(0));
        let Some(mut nginx) = start("nginx", &["-c", path("config").to_str().unwrap()]) else {
            return;
        };
        let mut stream = connect(&endpoint, &mut nginx, "10.77.0.1:8080".parse().unwrap()).await;
        stream
            .write_all(b"GET /file HTTP/1.0\r\n\r\n")
            .await
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200"));
        assert!(answer.ends_with(&content()));
    });
}

#[test]
fn a_file_to_curl() {
    isolated(|| async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let endpoint = host(options(0));
        let listener = endpoint.listen(80).unwrap();
        for url in ["http://10.77.0.2/", "http://[fd77:0::2]/"] {
            let arguments = ["--silent", "--output", file.to_str().unwrap(), url];
            let Some(mut curl) = start("curl", &arguments) else {
                return;
            };
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).await.unwrap();
                request.extend(byte);
            }
            assert!(request.starts_with(b"GET / HTTP/1.1\r\n"));
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                content().len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&content()).await.unwrap();
            stream.shutdown().await.unwrap();
            stream.finished().await.unwrap();
            let status = loop {
                if let Some(status) = curl.0.try_wait().unwrap() {
                    break status;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            };
            assert!(status.success(), "{status}");
            assert_eq!(fs::read(&file).unwrap(), content());
        }
    });
}

/// nc as server and as client: it sends a file, and writes what it hears to another.
#[test]
fn files_to_and_from_nc() {
    isolated(|| async {
        let help = Command::new("nc").arg("-h").output();
        let is_known = |text: &[u8]| String::from_utf8_lossy(text).contains("-N");
        // Others have other options.
        if !help.is_ok_and(|help| is_known(&help.stdout) || is_known(&help.stderr)) {
            tack_skip::skipped("no nc of OpenBSD");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("sent"), content()).unwrap();
        let endpoint = host(options(0));
        let listener = endpoint.listen(80).unwrap();
        for (is_server, words) in [(true, "-l 10.77.0.1 9000"), (false, "10.77.0.2 80")] {
            let line = format!("exec nc -N {words} <sent >heard");
            let mut nc = Command::new("sh");
            let nc = nc.args(["-c", &line]).current_dir(folder.path()).spawn();
            let mut nc = Program(nc.unwrap());
            let stream = match is_server {
                true => connect(&endpoint, &mut nc, SocketAddr::new(ip("10.77.0.1"), 9000)).await,
                false => listener.accept().await.unwrap().0,
            };
            let (mut reader, mut writer) = stream.into_split();
            let mut heard = Vec::new();
            // A listening nc ends with what it hears.
            reader.read_to_end(&mut heard).await.unwrap();
            assert!(heard == content());
            write_stream(&mut writer, 5, 500_000).await;
            while nc.0.try_wait().unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let written = fs::read(path("heard")).unwrap();
            let mut written = &written[..];
            check_stream(&mut written, 5, 500_000).await;
        }
    });
}

#[test]
fn an_echo_through_socat() {
    isolated(|| async {
        let endpoint = host(options(0));
        let listen = "TCP-LISTEN:9000,bind=10.77.0.1,reuseaddr";
        let Some(mut socat) = start("socat", &[listen, "EXEC:cat"]) else {
            return;
        };
        let stream = connect(
            &endpoint,
            &mut socat,
            SocketAddr::new(ip("10.77.0.1"), 9000),
        )
        .await;
        let (mut reader, mut writer) = stream.into_split();
        tokio::join!(
            write_stream(&mut writer, 1, 500_000),
            check_stream(&mut reader, 1, 500_000)
        );
    });
}
