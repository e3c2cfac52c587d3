//! The emulated link of the rows over Wi-Fi: 802.11n and 20 ms of wire each way. What its verdict
//! says of a run, and the servers that take what is uploaded over it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::amount::median;
use crate::process::Background;

/// The emulated link.
pub(crate) const LINK: [&str; 6] = [
    "--wifi",
    "802.11n",
    "--delay",
    "20ms",
    "--realtime",
    "--json",
];
/// How often a transfer is made until the emulator trusts it.
pub(crate) const ATTEMPTS: usize = 3;

/// Takes one upload after the other.
pub(crate) fn serve_uploads(listener: &TcpListener) {
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
}

/// Mbit/s of a transfer, and why it is not to be trusted, if it is not.
pub(crate) struct Run {
    pub(crate) rate: f64,
    pub(crate) doubts: Option<String>,
}

/// Ends an emulated link, and reads its verdict on what it carried.
pub(crate) fn doubts(air: Background) -> Result<Option<String>> {
    let last = air.interrupt()?;
    let summary: Value = serde_json::from_str(&last).with_context(|| last.clone())?;
    let trust = &summary["trust"];
    match trust["ok"].as_bool().with_context(|| last.clone())? {
        true => Ok(None),
        false => Ok(Some(trust["reasons"].to_string())),
    }
}

/// The median of the runs that are to be trusted; of all where none is.
pub(crate) fn middle(runs: &[Run]) -> f64 {
    let rates = |trusted: bool| {
        let wanted = runs.iter().filter(|run| !trusted || run.doubts.is_none());
        wanted.map(|run| run.rate).collect::<Vec<_>>()
    };
    let mut trusted = rates(true);
    if trusted.is_empty() {
        trusted = rates(false);
    }
    median(&mut trusted)
}

/// The configuration of a daemon of rsync that takes files into `inbox`.
pub(crate) fn rsync_config(inbox: &Path) -> String {
    format!(
        "use chroot = no\nreverse lookup = no\n[inbox]\npath = {}\nread only = no\nuid = {}\ngid = {}\n",
        inbox.display(),
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    )
}
