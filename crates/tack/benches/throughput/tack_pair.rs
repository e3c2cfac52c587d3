//! tack against itself, in clear text and encrypted.

use std::process::Command;
use std::time::{Duration, Instant};

use tack::secure::{Admission, Identity, SecureListenOptions};
use tack::{Audits, Config, Endpoint, Stats};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::contest::{Contestant, Outcome};
use crate::process::run_pair;

const ALPN: &[u8] = b"tack-throughput/1";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Clear,
    /// TLS 1.3, both sides with a key.
    Encrypted,
}

impl Content {
    fn word(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Encrypted => "encrypted",
        }
    }

    fn parse(word: &str) -> Self {
        match word {
            "clear" => Self::Clear,
            "encrypted" => Self::Encrypted,
            other => panic!("no content {other}"),
        }
    }
}

pub(crate) struct Tack {
    name: &'static str,
    content: Content,
    congestion: &'static str,
    audits: Audits,
}

impl Tack {
    pub(crate) fn new(
        name: &'static str,
        content: Content,
        congestion: &'static str,
        audits: Audits,
    ) -> Self {
        Self {
            name,
            content,
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
        receiver.args(["role=receiver", self.content.word()]);
        let mut sender = Command::new(&own);
        sender.args([
            "role=sender",
            self.content.word(),
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
    let mut next = || {
        args.next()
            .expect("content, controller, audits, milliseconds, address, key")
    };
    let content = Content::parse(&next());
    runtime.block_on(async {
        match side {
            "receiver" => receive(content).await,
            "sender" => {
                let config = Config {
                    congestion: next().parse().expect("a controller's name"),
                    audit: next().parse().map_or(Audits::Never, Audits::Every),
                    ..Config::default()
                };
                let time = Duration::from_millis(next().parse().expect("milliseconds"));
                let key = (content == Content::Encrypted).then(&mut next);
                send(config, time, &next(), key).await;
            }
            other => panic!("no role {other}"),
        }
    });
}

async fn receive(content: Content) {
    let identity = Identity::generate().expect("random bytes");
    let builder = Endpoint::builder().identity(identity.clone());
    let endpoint = builder.build().expect("a socket");
    let address = endpoint.local_addr();
    match content {
        Content::Clear => {
            let listener = endpoint.listen(tack::DEFAULT_PORT).expect("a port");
            println!("{address}");
            let (stream, _) = listener.accept().await.expect("a connection");
            drain(stream).await;
        }
        Content::Encrypted => {
            let options = SecureListenOptions::new(ALPN, |_, _| Admission::Admit);
            let listener = endpoint
                .listen_secure(tack::DEFAULT_PORT, options)
                .expect("a port");
            println!("{} {address}", identity.public_key());
            let (mut stream, _) = listener.accept().await.expect("a connection");
            stream.shutdown().await.expect("an end");
            drain(stream).await;
        }
    }
    let _ = endpoint.shutdown(Duration::from_secs(5)).await;
}

async fn drain(mut stream: impl AsyncRead + Unpin) {
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
}

async fn send(config: Config, time: Duration, peer: &str, key: Option<String>) {
    let endpoint = Endpoint::builder()
        .config(config)
        .identity(Identity::generate().expect("random bytes"))
        .build()
        .expect("a socket");
    let connect = endpoint.connect(peer);
    match key {
        None => {
            let mut stream = connect.await.expect("a connection");
            let (bytes, start) = fill(&mut stream, time).await;
            stream.finished().await.expect("acknowledgement");
            tell(bytes, start, &stream.stats(), &endpoint);
        }
        Some(key) => {
            let connect = connect.expecting(key.parse().expect("a key"), ALPN);
            let mut stream = connect.await.expect("a connection");
            let (bytes, start) = fill(&mut stream, time).await;
            stream.finished().await.expect("acknowledgement");
            tell(bytes, start, &stream.stats(), &endpoint);
        }
    }
    let _ = endpoint.shutdown(Duration::from_secs(5)).await;
}

/// Writes for `time`, and ends the stream: how many bytes, and when the first was written.
async fn fill(stream: &mut (impl AsyncWrite + Unpin), time: Duration) -> (u64, Instant) {
    let block = vec![0x5a; 256 << 10];
    #[expect(clippy::disallowed_methods, reason = "a benchmark owns a clock")]
    let start = Instant::now();
    let mut bytes = 0;
    while start.elapsed() < time {
        stream.write_all(&block).await.expect("room");
        bytes += block.len() as u64;
    }
    stream.shutdown().await.expect("an end");
    (bytes, start)
}

fn tell(bytes: u64, start: Instant, stats: &Stats, endpoint: &Endpoint) {
    print_result(bytes, start.elapsed());
    if std::env::var_os("TACK_BENCH_STATS").is_some() {
        eprintln!("{stats:#?}\n{:#?}", endpoint.carrier_stats());
    }
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
    // Fields 14 and 15 (user and system time, in ticks of 10 ms); the name in field 2 may hold
    // spaces.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = peak.trim().strip_suffix(" kB")?.parse().ok()?;
    Some((Duration::from_millis(ticks * 10), kib << 10))
}
