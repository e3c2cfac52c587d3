//! Transfers over real sockets, with an emulator between them that has random faults: every byte
//! arrives, whatever the acknowledgement policy. Nothing here asserts how long anything takes, but
//! a transfer that does not end in minutes fails.
//!
//! A few paths are a test. More take minutes of real time:
//!
//! ```text
//! TACK_FAULTS=1..100 cargo test --release -p tack-cli --test program -- \
//!     faults --ignored --nocapture
//! ```

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tack::{AckKind, Algorithm, Config, Endpoint};
use tack_base::random::RandomStream;
use tack_emulator::{Emulator, Settings};
use tack_sim::{Scenario, parse_seeds};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Far more than a path here needs, timeouts that double included, on a machine that does much
/// else.
const PATIENCE: Duration = Duration::from_secs(240);
const POLICIES: [&str; 2] = ["tack", "delayed:2"];
const CONTROLLERS: [&str; 5] = ["new_reno", "cubic", "bbr", "vegas", "compound"];
/// Paths that are under way at a time in the long form.
const AT_ONCE: usize = 8;

#[test]
fn transfers_over_sockets_survive_faults_in_pairs() {
    check(&[1, 2, 3, 4]);
}

#[test]
#[ignore = "minutes of real time: TACK_FAULTS names the paths"]
fn many_transfers_over_sockets_survive_faults_in_pairs() {
    let numbers = std::env::var("TACK_FAULTS").unwrap_or_else(|_| "1..100".into());
    check(&parse_seeds(&numbers).expect("TACK_FAULTS names paths"));
}

/// Runs each path with each policy. Prints the paths that fail.
fn check(numbers: &[u64]) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    let mut failures = Vec::new();
    for numbers in numbers.chunks(AT_ONCE) {
        let started: Vec<_> = numbers
            .iter()
            .flat_map(|number| POLICIES.map(|policy| (*number, policy)))
            .map(|(number, policy)| {
                let attempt =
                    async move { tokio::time::timeout(PATIENCE, transfer(number, policy)).await };
                (number, policy, runtime.spawn(attempt))
            })
            .collect();
        for (number, policy, running) in started {
            let outcome = match runtime.block_on(running).expect("no panic") {
                Ok(outcome) => outcome,
                Err(_) => Err(format!("it did not end in {PATIENCE:?}")),
            };
            if let Err(what) = outcome {
                println!("---- path {number}, {policy}: {what}\n{}", path(number).1);
                failures.push((number, policy));
            }
        }
    }
    assert!(failures.is_empty(), "failed: {failures:?}");
}

/// Moves the bytes of path `number` through it and has their count answered.
async fn transfer(number: u64, policy: &str) -> Result<(), String> {
    let (bytes, links) = path(number);
    let config = Config {
        ack: policy.parse::<AckKind>().expect("a policy"),
        congestion: CONTROLLERS[(number % 5) as usize]
            .parse::<Algorithm>()
            .expect("a controller"),
        ..Config::default()
    };
    let endpoint = || Endpoint::builder().config(config.clone()).build();
    let server = endpoint().map_err(|error| error.to_string())?;
    let client = endpoint().map_err(|error| error.to_string())?;
    let listener = server
        .listen(tack::DEFAULT_PORT)
        .map_err(|error| error.to_string())?;
    let scenario = Scenario::from_toml("path.toml", &links, &[]).map_err(|e| e.to_string())?;
    let listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let settings = Settings::new(scenario, listen, server.local_addr());
    let emulator = Emulator::start(settings).map_err(|error| error.to_string())?;

    let receiving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
        let mut buffer = vec![0; 16 << 10];
        let mut read = 0;
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) => break,
                Ok(len) => {
                    let wrong = buffer[..len]
                        .iter()
                        .zip(read..)
                        .position(|(byte, at)| *byte != byte_at(number, at));
                    if let Some(wrong) = wrong {
                        return Err(format!("byte {} is wrong", read + wrong as u64));
                    }
                    read += len as u64;
                }
                Err(error) => return Err(format!("after {read} bytes: {error}")),
            }
        }
        let answer = stream.write_all(&read.to_be_bytes()).await;
        answer.map_err(|error| format!("the answer: {error}"))?;
        stream.shutdown().await.map_err(|error| error.to_string())?;
        // Until the peer has it: what is dropped earlier closes in the background, and the runtime
        // may end first.
        stream.finished().await.map_err(|error| error.to_string())
    });
    let mut stream = client
        .connect(emulator.local_addr())
        .await
        .map_err(|error| format!("no connection: {error}"))?;
    let sent: Vec<u8> = (0..bytes).map(|at| byte_at(number, at)).collect();
    let sending = async {
        stream.write_all(&sent).await?;
        stream.shutdown().await?;
        stream.read_u64().await
    };
    let answered = sending.await.map_err(|error| error.to_string())?;
    receiving.await.map_err(|error| error.to_string())??;
    // The emulator has a thread of its own, which ends within a turn of its loop.
    emulator.stop().map_err(|error| error.to_string())?;
    if answered != bytes {
        return Err(format!("{answered} of {bytes} bytes arrived"));
    }
    Ok(())
}

/// The byte at a position of the stream of path `number`.
fn byte_at(number: u64, at: u64) -> u8 {
    ((at ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// How many bytes cross path `number`, and its links: radios without losses, and two to four faults
/// on the wire beside them.
fn path(number: u64) -> (u64, String) {
    let mut random = RandomStream::new(number, "faults", 0);
    let random = &mut random;
    let bytes = (1_000 << random.below(9)) + random.below(1_000);
    let mut wired = String::new();
    let mut tables = String::new();
    let _ = writeln!(wired, "rate = \"{}Mbps\"", 5 << random.below(5));
    let _ = writeln!(wired, "delay = \"{}ms\"", 1 + random.below(30));
    let share = |random: &mut RandomStream, most: u64| (1 + random.below(most)) as f64 / 1_000.0;
    let mut drawn = Vec::new();
    let many = 2 + random.below(3) as usize;
    while drawn.len() < many {
        let fault = (random.below(9), random.chance(0.5));
        if drawn.contains(&fault) {
            continue;
        }
        drawn.push(fault);
        let side = if fault.1 { "_reverse" } else { "" };
        let _ = match fault.0 {
            0 => writeln!(wired, "loss{side} = {}", share(random, 50)),
            1 => writeln!(
                wired,
                "reorder{side} = {}\nreorder_delay{side} = \"{}ms\"",
                share(random, 200),
                1 + random.below(30)
            ),
            2 => writeln!(wired, "duplicate{side} = {}", share(random, 1_000)),
            3 => writeln!(wired, "corrupt{side} = {}", share(random, 20)),
            4 => writeln!(wired, "ecn_mark{side} = {}", share(random, 50)),
            5 => writeln!(wired, "mtu_black_hole{side} = {}", 700 + random.below(750)),
            // The handshake, or what follows it.
            6 => writeln!(
                tables,
                "[[wired.blackout{side}]]\nstart = \"{}ms\"\nduration = \"{}ms\"",
                random.below(2) * random.below(100),
                50 + random.below(400)
            ),
            7 => writeln!(
                tables,
                "[wired.suspension{side}]\nstart = \"{}ms\"\nperiod = \"500ms\"\nduration = \"100ms\"\nduration_max = \"200ms\"",
                random.below(300)
            ),
            _ => writeln!(
                tables,
                "[wired.gilbert_elliott{side}]\ngood_to_bad = {}\nbad_to_good = 0.3\nloss_bad = 0.7",
                share(random, 20)
            ),
        };
    }
    let links = format!("seed = {number}\n[wlan]\n[wired]\n{wired}{tables}[[flow]]\n");
    (bytes, links)
}
