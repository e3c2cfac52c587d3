//! tack against itself.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use tack::{Audits, Config, Endpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::contest::{Contestant, Outcome};
use crate::process::run_pair;

pub(crate) struct Tack {
    name: &'static str,
    congestion: &'static str,
    audits: Audits,
}

impl Tack {
    pub(crate) fn new(name: &'static str, congestion: &'static str, audits: Audits) -> Self {
        Self {
            name,
            congestion,
            audits,
        }
    }
}

impl Contestant for Tack {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prepare(&self) -> Result<(), String> {
        Ok(())
    }

    fn run(&self, time: Duration) -> Result<Outcome, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut receiver = Command::new(&own);
        receiver.arg("role=receiver");
        let mut sender = Command::new(&own);
        sender.args([
            "role=sender",
            self.congestion,
            &match self.audits {
                Audits::Every(segments) => segments.to_string(),
                _ => "none".to_owned(),
            },
            &time.as_millis().to_string(),
        ]);
        run_pair(receiver, sender)
    }
}

/// Plays one side, in a process of its own.
pub(crate) fn play(side: &str, mut args: impl Iterator<Item = String>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        match side {
            "receiver" => receive().await,
            "sender" => {
                let mut next = || {
                    args.next()
                        .expect("controller, audits, milliseconds, address")
                };
                let config = Config {
                    congestion: next().parse().expect("a controller's name"),
                    audit: next().parse().map_or(Audits::Never, Audits::Every),
                    ..Config::default()
                };
                let time = Duration::from_millis(next().parse().expect("milliseconds"));
                send(config, time, next().parse().expect("an address")).await;
            }
            other => panic!("no role {other}"),
        }
    });
}

async fn receive() {
    let listener = tack::Listener::bind("127.0.0.1:0").await.expect("a socket");
    println!("{}", listener.local_addr());
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let mut block = vec![0; 256 << 10];
    let mut bytes = stream.read(&mut block).await.expect("bytes") as u64;
    #[expect(clippy::disallowed_methods, reason = "a benchmark owns a clock")]
    let start = Instant::now();
    loop {
        match stream.read(&mut block).await.expect("bytes") {
            0 => break,
            len => bytes += len as u64,
        }
    }
    print_result(bytes, start.elapsed());
    drop(stream);
    let _ = listener.endpoint().shutdown(Duration::from_secs(5)).await;
}

async fn send(config: Config, time: Duration, peer: SocketAddr) {
    let endpoint = Endpoint::builder()
        .config(config)
        .build()
        .expect("a socket");
    let mut stream = endpoint.connect(peer).await.expect("a connection");
    let block = vec![0x5a; 256 << 10];
    #[expect(clippy::disallowed_methods, reason = "a benchmark owns a clock")]
    let start = Instant::now();
    let mut bytes = 0;
    while start.elapsed() < time {
        stream.write_all(&block).await.expect("room");
        bytes += block.len() as u64;
    }
    stream.shutdown().await.expect("an end");
    stream.finished().await.expect("acknowledgement");
    print_result(bytes, start.elapsed());
    if std::env::var_os("TACK_BENCH_STATS").is_some() {
        eprintln!("{:#?}\n{:#?}", stream.stats(), endpoint.carrier_stats());
    }
    drop(stream);
    let _ = endpoint.shutdown(Duration::from_secs(5)).await;
}

fn print_result(bytes: u64, time: Duration) {
    let (cpu, memory) = usage().unwrap_or_default();
    println!(
        "RESULT {bytes} {} {} {memory}",
        time.as_nanos(),
        cpu.as_micros()
    );
}

/// Processor time and peak resident memory of this process, where `/proc` tells.
fn usage() -> Option<(Duration, u64)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Fields 14 and 15 (user and system time, in ticks of 10 ms); the name in field 2 may hold spaces.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = peak.trim().strip_suffix(" kB")?.parse().ok()?;
    Some((Duration::from_millis(ticks * 10), kib << 10))
}
