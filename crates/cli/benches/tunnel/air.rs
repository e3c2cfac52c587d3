//! What TACK gains over delayed acknowledgements on an emulated 802.11n link of 40 ms, for programs
//! in a tunnel and for `tack send`.
//!
//! Each transfer has its own emulated link. The emulator says whether the machine kept up. A
//! transfer that is not to be trusted is repeated, and marked when that does not help.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::amount::Amount;
use crate::kernel::{self, Program};
use crate::link::{ATTEMPTS, LINK, Run, doubts, middle, rsync_config, serve_uploads};
use crate::process::{Background, free_port, run, wait_for_port};
use crate::sides::{Side, Sides};

const POLICIES: [&str; 2] = ["delayed:2", "tack"];
/// Points by which a program's gain may differ from that of `tack send`.
const WANTED: f64 = 3.0;
/// One emulated link in front of this UDP port, and where it listens.
pub(crate) fn air(sides: &Sides, to: &str) -> Result<(Background, String)> {
    let mut arguments = vec![
        "emulate",
        "--insecure",
        "--listen",
        "127.0.0.1:0",
        "--to",
        to,
    ];
    arguments.extend(LINK);
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
    std::thread::spawn(move || serve_uploads(&listener));
    Ok(address)
}

/// Repeats a transfer of so many bytes, each time over a new link, until a run is trusted.
/// `command` gets the address of the link.
fn measure(
    sides: &Sides,
    server: &str,
    bytes: usize,
    command: impl Fn(&Sides) -> Result<(Command, Option<Background>)>,
) -> Result<Run> {
    let bits = bytes as f64 * 8.0 / 1e6;
    let mut attempt = 1;
    loop {
        let (air, near) = air(sides, server)?;
        sides.introduce(&near)?;
        let (mut command, _tunnel) = command(sides)?;
        let began = Instant::now();
        run(&mut command)?;
        let rate = bits / began.elapsed().as_secs_f64();
        let doubts = doubts(air)?;
        if doubts.is_none() || attempt == ATTEMPTS {
            return Ok(Run { rate, doubts });
        }
        attempt += 1;
    }
}

fn missing(error: std::io::Error) -> std::io::Result<()> {
    match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

/// A daemon of rsync that takes files into `inbox`, and its port.
fn rsync_daemon(folder: &Path) -> Result<(Background, SocketAddr)> {
    let port = free_port()?;
    let config = folder.join("rsyncd.conf");
    let inbox = folder.join("by-rsync");
    fs::create_dir_all(&inbox)?;
    fs::write(&config, rsync_config(&inbox))?;
    let mut command = Command::new("rsync");
    command
        .args(["--daemon", "--no-detach", "--address=127.0.0.1"])
        .arg(format!("--port={port}"))
        .arg(format!("--config={}", config.display()));
    let daemon = Background::start(&mut command)?;
    wait_for_port(port)?;
    Ok((daemon, SocketAddr::from(([127, 0, 0, 1], port))))
}

/// A command that uploads `path` with the acknowledgements of `policy`, and the tunnel that it
/// needs.
type Upload<'a> = Box<dyn Fn(&Sides, &str) -> Result<(Command, Option<Background>)> + 'a>;

/// The programs that are compared.
fn uploads(path: &str, http: SocketAddr, rsync: SocketAddr) -> [(&'static str, Upload<'_>); 3] {
    let send: Upload<'_> = Box::new(move |sides, policy| {
        let arguments = ["send", "-q", path, "server:", "--ack", policy];
        Ok((sides.tack(Side::Client, &arguments), None))
    });
    let curl: Upload<'_> = Box::new(move |sides, policy| {
        let (tunnel, near) = sides.forward(http, &["--ack", policy])?;
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--fail", "--noproxy", "*", "-H", "Expect:"]);
        curl.args(["-T", path]).arg(format!("http://{near}/file"));
        Ok((curl, Some(tunnel)))
    });
    let push: Upload<'_> = Box::new(move |sides, policy| {
        let (tunnel, near) = sides.forward(rsync, &["--ack", policy])?;
        let mut push = Command::new("rsync");
        push.args(["--whole-file", "--ignore-times", path]);
        push.arg(format!("rsync://{near}/inbox/"));
        Ok((push, Some(tunnel)))
    });
    [("tack send", send), ("curl", curl), ("rsync", push)]
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
    let path = file.to_str().context("a path")?;
    let http = upload_target()?;
    let (_daemon, rsync) = rsync_daemon(folder)?;
    let programs = uploads(path, http, rsync);
    let mut runs = [(); 3].map(|()| [vec![], vec![]]);
    for round in 0..amount.rounds {
        for (at, policy) in POLICIES.iter().enumerate() {
            let inbox = folder.join(format!("inbox-{round}-{at}"));
            let inbox = inbox.to_str().context("a path")?;
            let options = ["--ack", policy, "--receive", inbox];
            let (_serving, address) = sides.serve(&options, None)?;
            for ((_, upload), runs) in programs.iter().zip(&mut runs) {
                let run = measure(sides, &address, bytes, |sides| {
                    // A file that has come before would be refused.
                    fs::remove_file(Path::new(inbox).join("file")).or_else(missing)?;
                    upload(sides, policy)
                })?;
                runs[at].push(run);
            }
            fs::remove_dir_all(inbox)?;
        }
    }
    let mut gains = Vec::new();
    let mut words = Vec::new();
    for ((name, _), [delayed, tack]) in programs.iter().zip(&runs) {
        let (slow, fast) = (middle(delayed), middle(tack));
        gains.push((fast / slow - 1.0) * 100.0);
        words.push(format!(
            "{name} {fast:.0} Mbit/s for {slow:.0} with delayed:2 ({:+.1} %)",
            gains[gains.len() - 1]
        ));
    }
    let (kernel, over_kernel) = over_kernel(sides, &file, bytes, amount.rounds);
    let all: Vec<_> = runs
        .iter()
        .flatten()
        .flatten()
        .chain(&over_kernel)
        .collect();
    let doubts: Vec<_> = all.iter().filter_map(|run| run.doubts.as_ref()).collect();
    let verdict = match doubts.first() {
        None => "each run is to be trusted".to_owned(),
        Some(first) => format!(
            "{} of {} runs are NOT TO BE TRUSTED after {ATTEMPTS} attempts ({first})",
            doubts.len(),
            all.len()
        ),
    };
    Ok(format!(
        "{}; curl gains {:+.1} points more than tack send, rsync {:+.1} (wanted within {WANTED}); {kernel}; \
         {verdict}",
        words.join(", "),
        gains[1] - gains[0],
        gains[2] - gains[0],
    ))
}

/// What curl and rsync reach over the kernel's TCP on such a link, without a tunnel, in words; and
/// the runs.
fn over_kernel(sides: &Sides, path: &Path, bytes: usize, rounds: usize) -> (String, Vec<Run>) {
    let mut all = Vec::new();
    let mut words = Vec::new();
    for (name, program) in [("curl", Program::Curl), ("rsync", Program::Rsync)] {
        let mut runs = Vec::new();
        let mut congestion = "";
        for _ in 0..rounds {
            match kernel::upload(sides, program, path, bytes) {
                Ok((run, used)) => {
                    congestion = used;
                    runs.push(run);
                }
                Err(error) => return (format!("SKIPPED: the kernel's TCP: {error:#}"), all),
            }
        }
        words.push(format!("{name} {:.0} Mbit/s ({congestion})", middle(&runs)));
        all.extend(runs);
    }
    let words = format!(
        "over the kernel's TCP, without tunnel, {}",
        words.join(" and ")
    );
    (words, all)
}
