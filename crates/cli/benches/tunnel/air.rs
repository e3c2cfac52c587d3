//! What TACK gains over delayed acknowledgements on an emulated 802.11n link of 40 ms, for programs
//! in a tunnel and for `tack send`.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::{Background, free_port, run, wait_for_port};
use crate::sides::{Side, Sides};
use crate::{Amount, median};

const POLICIES: [&str; 2] = ["delayed:2", "tack"];

/// One emulated link in front of this UDP port, and where it listens.
fn air(sides: &Sides, to: &str) -> Result<(Background, String)> {
    let arguments = [
        "emulate",
        "--wifi",
        "802.11n",
        "--delay",
        "20ms",
        "--insecure",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--to",
        to,
    ];
    let mut command = sides.tack(Side::Client, &arguments);
    let (air, line) = Background::start_and_wait(&mut command, "\"listening\"")?;
    let listening: Value = serde_json::from_str(&line)?;
    let address = listening["address"].as_str().context("an address")?;
    Ok((air, address.to_owned()))
}

/// A server of HTTP that takes one upload after the other and keeps nothing.
fn upload_target() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = vec![0; 64 << 10];
            let mut head = Vec::new();
            let (mut left, mut answered) = (usize::MAX, false);
            while left > 0 {
                let Ok(len @ 1..) = stream.read(&mut bytes) else {
                    break;
                };
                if answered {
                    left = left.saturating_sub(len);
                    continue;
                }
                head.extend(&bytes[..len]);
                let Some(end) = head.windows(4).position(|it| it == b"\r\n\r\n") else {
                    continue;
                };
                answered = true;
                let text = String::from_utf8_lossy(&head[..end]).to_ascii_lowercase();
                let length = text
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.and_then(|it| it.parse().ok()).unwrap_or(0);
                left = length - (head.len() - end - 4).min(length);
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    Ok(address)
}

/// Mbit/s of `command`, which carries so many bytes.
fn rate(command: &mut Command, bytes: usize) -> Result<f64> {
    let began = Instant::now();
    run(command)?;
    Ok(bytes as f64 * 8.0 / 1e6 / began.elapsed().as_secs_f64())
}

/// A daemon of rsync that takes files into `inbox`, and its port.
fn rsync_daemon(folder: &Path) -> Result<(Background, SocketAddr)> {
    let port = free_port()?;
    let config = folder.join("rsyncd.conf");
    let inbox = folder.join("by-rsync");
    fs::create_dir_all(&inbox)?;
    fs::write(
        &config,
        format!(
            "use chroot = no\nreverse lookup = no\n[inbox]\npath = {}\nread only = no\nuid = {}\ngid = {}\n",
            inbox.display(),
            rustix::process::getuid().as_raw(),
            rustix::process::getgid().as_raw(),
        ),
    )?;
    let mut command = Command::new("rsync");
    command
        .args(["--daemon", "--no-detach", "--address=127.0.0.1"])
        .arg(format!("--port={port}"))
        .arg(format!("--config={}", config.display()));
    let daemon = Background::start(&mut command)?;
    wait_for_port(port)?;
    Ok((daemon, SocketAddr::from(([127, 0, 0, 1], port))))
}

/// Gains of `tack send`, curl and rsync, each uploading the same file.
pub(crate) fn gains(sides: &Sides, amount: Amount) -> Result<String> {
    let folder = sides.folder.path();
    let bytes = amount.mebibytes << 20;
    let noise: Vec<u8> = (0..bytes as u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 23) as u8)
        .collect();
    let file = folder.join("file");
    fs::write(&file, noise)?;
    let uploads = upload_target()?;
    let (_daemon, rsync) = rsync_daemon(folder)?;
    let names = ["tack send", "curl", "rsync"];
    let mut rates = [[vec![], vec![]], [vec![], vec![]], [vec![], vec![]]];
    for round in 0..amount.rounds {
        for (at, policy) in POLICIES.iter().enumerate() {
            let inbox = folder.join(format!("inbox-{round}-{at}"));
            let inbox = inbox.to_str().context("a path")?;
            let options = ["--ack", policy, "--receive", inbox];
            let (_serving, address) = sides.serve(&options, None)?;
            let (_air, near) = air(sides, &address)?;
            sides.introduce(&near)?;
            let (_a, to_uploads) = sides.forward(uploads, &["--ack", policy])?;
            let (_b, to_rsync) = sides.forward(rsync, &["--ack", policy])?;
            let path = file.to_str().context("a path")?;
            let mut send = sides.tack(
                Side::Client,
                &["send", "-q", path, "server:", "--ack", policy],
            );
            rates[0][at].push(rate(&mut send, bytes)?);
            let mut curl = Command::new("curl");
            curl.args([
                "-sS",
                "--fail",
                "--noproxy",
                "*",
                "-H",
                "Expect:",
                "-T",
                path,
            ])
            .arg(format!("http://{to_uploads}/file"));
            rates[1][at].push(rate(&mut curl, bytes)?);
            let mut push = Command::new("rsync");
            push.args(["--whole-file", "--ignore-times", path])
                .arg(format!("rsync://{to_rsync}/inbox/"));
            rates[2][at].push(rate(&mut push, bytes)?);
        }
    }
    let mut gains = Vec::new();
    let mut words = Vec::new();
    for (name, [delayed, tack]) in names.iter().zip(&mut rates) {
        let (delayed, tack) = (median(delayed), median(tack));
        gains.push((tack / delayed - 1.0) * 100.0);
        words.push(format!(
            "{name} {tack:.0} Mbit/s for {delayed:.0} with delayed:2 ({:+.1} %)",
            gains[gains.len() - 1]
        ));
    }
    Ok(format!(
        "{}; curl gains {:+.1} points more than tack send, rsync {:+.1} (wanted within 3)",
        words.join(", "),
        gains[1] - gains[0],
        gains[2] - gains[0],
    ))
}
