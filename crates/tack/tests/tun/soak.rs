//! A soak: connections that begin, end and break at random, between the kernel's TCP and ours and
//! between two of ours, half of them over IPv6, over a path whose faults change all the time. Each
//! attempt to connect succeeds. In the end nothing is left: no connection, no memory and no
//! descriptor.
//!
//! Half a second ordinarily, and 5 s with `TACK_LONG=1`. `TACK_SOAK=1800` runs half an hour; with
//! `--nocapture` it shows memory, descriptors and connections each minute. The test runs in a
//! process of its own, whose memory and descriptors nobody else uses.

mod order;

use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tack::{Algorithm, Config, Endpoint, KeepAlive, ListenOptions, Stream, Watching};
use tack_base::Instant;
use tack_base::random::RandomStream;
use tack_io::Clock;
use tack_sim::impair::order::OrderConfig;
use tack_sim::path::PathConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, LocalSet};

use crate::forwarder::{Link, NEAR, NEAR_V6, Rule, clean};
use crate::pattern::byte;
use crate::world::{build, ip, isolated_for, options, sysctl};
use order::{Ending, ORDER_LEN, Order};

/// Connections at a time.
const WORKERS: u64 = 8;
/// No connection goes so long without a step forward, whatever the path does to it: timeouts back
/// off to 2 s, and two of five fail.
const STUCK: Duration = Duration::from_secs(150);
/// What the process may have grown by between the middle and the end, KiB.
const SLACK: u64 = 8 << 10;
/// The hosts, each with its address of IPv4 and of IPv6.
const KERNEL: [&str; 2] = [NEAR, NEAR_V6];
const OURS: [&str; 2] = ["10.77.1.2", "fd77:1::2"];
const OURS_NEAR: [&str; 2] = ["10.77.2.2", "fd77:2::2"];
/// Why an attempt to connect cannot fail: it breaks nothing off, SYNs are sent for minutes while no
/// mood of the path lasts longer than 0.6 s, somebody listens, and a full backlog drops SYNs but
/// does not refuse them.
const CONNECTS: &str = "each attempt to connect succeeds";

fn duration() -> Duration {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let Some(seconds) = number("TACK_SOAK") {
        return Duration::from_secs(seconds);
    }
    Duration::from_millis(if crate::is_long() { 5000 } else { 500 })
}

#[test]
fn random_connections_leave_nothing_behind() {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args([
            "soak::in_a_process_of_its_own",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut passed = false;
    for line in BufReader::new(process.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        println!("{line}");
        passed |= line.contains("1 passed");
    }
    let status = process.wait().unwrap();
    assert!(status.success() && passed, "the soak fails: {status}");
}

#[test]
#[ignore = "the test above runs it"]
fn in_a_process_of_its_own() {
    let time = duration();
    isolated_for(time + 10 * STUCK, move || async move {
        LocalSet::new().run_until(soak(time)).await;
    });
}

/// One end of a connection, of the kernel or ours.
trait Connection: AsyncRead + AsyncWrite + Unpin {
    fn abort(self);
}

impl Connection for TcpStream {
    fn abort(self) {
        // Linger for no time at all: a reset.
        let _ = socket2::SockRef::from(&self).set_linger(Some(Duration::ZERO));
    }
}

impl Connection for Stream {
    fn abort(self) {
        self.reset();
    }
}

/// When a connection last got a step further.
struct Pulse {
    clock: Clock,
    last: Cell<Instant>,
}

impl Pulse {
    fn new() -> Self {
        let clock = Clock::new();
        Self {
            last: Cell::new(clock.now()),
            clock,
        }
    }

    fn beat(&self) {
        self.last.set(self.clock.now());
    }

    /// Ends when there was no step for too long.
    async fn stops(&self) {
        while self.clock.now().saturating_since(self.last.get()) < STUCK {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Sends `len` bytes, or `stop` of them, and tells whether all left.
async fn send(
    writer: &mut (impl AsyncWrite + Unpin),
    seed: u64,
    (len, stop): (u64, u64),
    pulse: &Pulse,
) -> bool {
    let end = len.min(stop);
    let mut at = 0;
    while at < end {
        let next = end.min(at + (16 << 10));
        let block: Vec<u8> = (at..next).map(|position| byte(seed, position)).collect();
        if writer.write_all(&block).await.is_err() {
            return false;
        }
        at = next;
        pulse.beat();
    }
    stop > len && writer.shutdown().await.is_ok()
}

/// Reads to the end, or an error, and checks what is there. Tells how many bytes that were, and
/// whether the stream ended in order.
async fn receive(reader: &mut (impl AsyncRead + Unpin), seed: u64, pulse: &Pulse) -> (u64, bool) {
    let mut block = vec![0; 16 << 10];
    let mut at = 0;
    loop {
        match reader.read(&mut block).await {
            Ok(0) => return (at, true),
            Err(_) => return (at, false),
            Ok(got) => {
                pulse.beat();
                for read in &block[..got] {
                    assert_eq!(*read, byte(seed, at), "byte {at} of stream {seed}");
                    at += 1;
                }
            }
        }
    }
}

/// Does its part of an order.
async fn carry_out(
    mut connection: impl Connection,
    order: Order,
    is_opener: bool,
    what: &str,
    pulse: &Pulse,
) {
    let (outgoing, incoming) = if is_opener {
        (order.up, order.down)
    } else {
        (order.down, order.up)
    };
    let (own, other) = (
        order.seed ^ u64::from(is_opener),
        order.seed ^ u64::from(!is_opener),
    );
    let stop = match order.ending {
        Ending::Abort { opener, after } | Ending::Drop { opener, after } if opener == is_opener => {
            after
        }
        _ => u64::MAX,
    };
    if stop < u64::MAX {
        send(&mut connection, own, (outgoing, stop), pulse).await;
        if let Ending::Abort { .. } = order.ending {
            connection.abort();
        }
        return;
    }
    let (mut reader, mut writer) = tokio::io::split(&mut connection);
    let (sent, (got, ended)) = tokio::join!(
        send(&mut writer, own, (outgoing, u64::MAX), pulse),
        receive(&mut reader, other, pulse)
    );
    if order.ending == Ending::Clean {
        assert!(
            sent && ended,
            "{what}: {order:?} does not end in order, {got} bytes came"
        );
        assert_eq!(got, incoming, "{what}: {order:?}");
    } else {
        assert!(got <= incoming, "{what}: {order:?}, but {got} bytes came");
    }
}

/// The kernel asks whether its peer is still there, as ours does.
fn keep_alive(stream: TcpStream) -> TcpStream {
    let second = Duration::from_secs(1);
    let often = socket2::TcpKeepalive::new()
        .with_time(second)
        .with_interval(second)
        .with_retries(30);
    socket2::SockRef::from(&stream)
        .set_tcp_keepalive(&often)
        .unwrap();
    stream
}

/// What is counted: of IPv4 and of IPv6.
#[derive(Default)]
struct Counts {
    opened: [AtomicU64; 2],
    served: [AtomicU64; 2],
    /// Connections that their openers did not break off: opened, and served. Of the others the
    /// order may not have arrived.
    kept: [AtomicU64; 2],
}

impl Counts {
    fn opened(&self) -> [u64; 2] {
        self.opened.each_ref().map(|it| it.load(Ordering::Relaxed))
    }

    fn served(&self) -> [u64; 2] {
        self.served.each_ref().map(|it| it.load(Ordering::Relaxed))
    }

    /// Connections that should have been served.
    fn missing(&self) -> u64 {
        let [opened, served] = self.kept.each_ref().map(|it| it.load(Ordering::Relaxed));
        opened - served
    }
}

async fn open(mut connection: impl Connection, order: Order, what: &str, pulse: &Pulse) {
    if connection.write_all(&order.bytes()).await.is_ok() {
        carry_out(connection, order, true, what, pulse).await;
    }
}

async fn serve(mut connection: impl Connection, peer: SocketAddr, counts: &Counts, what: &str) {
    let mut bytes = [0; ORDER_LEN];
    // The opener may have aborted by now.
    if connection.read_exact(&mut bytes).await.is_ok() {
        let order = Order::parse(&bytes);
        carry_out(connection, order, false, what, &Pulse::new()).await;
        counts.served[usize::from(peer.is_ipv6())].fetch_add(1, Ordering::Relaxed);
        counts.kept[1].fetch_add(u64::from(!order.opener_breaks_off()), Ordering::Relaxed);
    }
}

/// What a connection of ours is set up with: the waits that only time ends are short.
fn config(random: &mut RandomStream) -> Config {
    Config {
        sack: random.chance(0.9),
        timestamps: random.chance(0.8),
        window_scaling: random.chance(0.9),
        congestion: [Algorithm::default(), Algorithm::CUBIC, Algorithm::NewReno]
            [random.below(3) as usize],
        // A reset that gets lost leaves a peer that only listens in the dark.
        keep_alive: Some(KeepAlive {
            idle: Duration::from_secs(2),
            interval: Duration::from_secs(1),
            probes: 30,
        }),
        max_rto: Duration::from_secs(2),
        syn_retries: 60,
        time_wait: Duration::from_millis(200),
        fin_wait: Duration::from_secs(5),
        ..Config::default()
    }
}

/// Connections in any state but LISTEN and TIME-WAIT that the kernel has in this namespace.
fn kernel_connections() -> usize {
    let rest = |line: &&str| !matches!(line.split_whitespace().nth(3), Some("0A" | "06"));
    let count = |name: &str| {
        let table = std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap();
        table.lines().skip(1).filter(rest).count()
    };
    count("tcp") + count("tcp6")
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Memory that the process holds, KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The path changes its mind every few hundred milliseconds: it is clean, loses some, much or
/// nearly all, or much in one direction.
fn moods(seed: u64) -> Rule {
    let mut random = RandomStream::new(seed, "moods", 0);
    let clock = Clock::new();
    let mut until = clock.now();
    let mut mood = 0;
    Box::new(move |direction, _| {
        let now = clock.now();
        if now >= until {
            mood = random.below(7);
            until = now + Duration::from_millis(20 + random.below(580));
        }
        match mood {
            0 => random.chance(0.98),
            1 => random.chance(0.7),
            2 => direction == 0 || random.chance(0.5),
            3 => random.chance(0.02),
            _ => true,
        }
    })
}

async fn soak(time: Duration) {
    let path = PathConfig {
        order: OrderConfig {
            reorder: 0.02,
            reorder_delay: Duration::from_millis(4),
            duplicate: 0.01,
        },
        corrupt: 0.002,
        ..clean()
    };
    let link = Link::new([path.clone(), path], 17, moods(18));
    // Kernels before 6.15 do not have it; on one of those the kernel may take two minutes to repeat
    // something.
    let _ = std::fs::write("/proc/sys/net/ipv4/tcp_rto_max_ms", "2000");
    // As often as it takes: who gives up sooner is counted as one that does not end in order.
    for name in [
        "tcp_syn_retries",
        "tcp_synack_retries",
        "tcp_retries2",
        "tcp_orphan_retries",
    ] {
        sysctl(&format!("ipv4/{name}"), "60");
    }
    let mut random = RandomStream::new(19, "soak", 0);
    let far = link.far(|| {
        build(
            Endpoint::builder()
                .config(config(&mut random))
                .tun(options(1)),
        )
    });
    let near = build(
        Endpoint::builder()
            .config(config(&mut random))
            .tun(options(2)),
    );
    let counts = Rc::new(Counts::default());
    let mut servers = JoinSet::new();
    for address in KERNEL {
        let kernel = TcpListener::bind((ip(address), 7000)).await.unwrap();
        let counts = Rc::clone(&counts);
        servers.spawn_local(async move {
            let mut serving = JoinSet::new();
            loop {
                let (stream, peer) = kernel.accept().await.unwrap();
                let counts = Rc::clone(&counts);
                serving.spawn_local(async move {
                    serve(keep_alive(stream), peer, &counts, "ours to the kernel").await
                });
                while let Some(done) = serving.try_join_next() {
                    done.unwrap();
                }
            }
        });
    }
    for (endpoint, what) in [(&far, "the kernel to ours"), (&near, "ours to ours")] {
        let config = config(&mut random);
        let options = ListenOptions::new().config(config).backlog(16);
        let listener = endpoint.listen_with(7000, options).unwrap();
        let counts = Rc::clone(&counts);
        servers.spawn_local(async move {
            let mut serving = JoinSet::new();
            loop {
                let (stream, peer) = listener.accept().await.unwrap();
                let counts = Rc::clone(&counts);
                serving.spawn_local(async move { serve(stream, peer, &counts, what).await });
                while let Some(done) = serving.try_join_next() {
                    done.unwrap();
                }
            }
        });
    }
    let clock = Clock::new();
    let began = clock.now();
    let (base_memory, base_descriptors) = (far.memory() + near.memory(), descriptors());
    let mut workers = JoinSet::new();
    for number in 0..WORKERS {
        let (far, counts) = (far.clone(), Rc::clone(&counts));
        let clock = Clock::new();
        let began = clock.now();
        workers.spawn_local(async move {
            let mut random = RandomStream::new(20, "worker", number);
            while clock.now().saturating_since(began) < time {
                let order = Order::random(&mut random);
                let kind = random.below(3) as usize;
                let family = random.below(2) as usize;
                let config = config(&mut random);
                let pulse = Pulse::new();
                let done = async {
                    if kind == 0 {
                        let stream = TcpStream::connect((ip(OURS[family]), 7000)).await;
                        let stream = keep_alive(stream.expect(CONNECTS));
                        open(stream, order, "the kernel to ours", &pulse).await;
                    } else {
                        let (to, what) = match kind {
                            1 => (KERNEL, "ours to the kernel"),
                            _ => (OURS_NEAR, "ours to ours"),
                        };
                        let connect = far.connect(SocketAddr::new(ip(to[family]), 7000));
                        let stream = connect.config(config).await.expect(CONNECTS);
                        open(stream, order, what, &pulse).await;
                    }
                    counts.opened[family].fetch_add(1, Ordering::Relaxed);
                    let is_kept = !order.opener_breaks_off();
                    counts.kept[0].fetch_add(u64::from(is_kept), Ordering::Relaxed);
                };
                tokio::select! {
                    () = done => {}
                    () = pulse.stops() => {
                        let views = far.monitor(Watching::Counters).look();
                        let kernel = Command::new("ss").arg("-tino").output();
                        panic!(
                            "stuck: worker {number}, kind {kind}, family {family}, {order:?}\n\
                             {views:#?}\n{}",
                            String::from_utf8_lossy(&kernel.map(|it| it.stdout).unwrap_or_default())
                        )
                    }
                }
            }
        });
    }
    let show = |what: &str| {
        println!(
            "{what}: {} s, connections of IPv4 and IPv6 {:?} ({:?} served), {} KiB resident, \
             {} bytes in connections, {} descriptors, {} connections of the kernel",
            clock.now().saturating_since(began).as_secs(),
            counts.opened(),
            counts.served(),
            resident(),
            far.memory() + near.memory(),
            descriptors(),
            kernel_connections(),
        );
    };
    show("begins");
    let mut halfway = None;
    let mut next_minute = began + Duration::from_secs(60);
    while !workers.is_empty() {
        let tick = tokio::time::sleep(Duration::from_millis(100));
        tokio::select! {
            done = workers.join_next() => done.expect("there is one").unwrap(),
            broken = servers.join_next() => broken.expect("they go on").unwrap(),
            () = tick => {}
        }
        let now = clock.now();
        if halfway.is_none() && now.saturating_since(began) >= time / 2 {
            halfway = Some(resident());
            show("half of the time is over");
        }
        if now >= next_minute {
            next_minute = now + Duration::from_secs(60);
            show("goes on");
        }
    }
    // What is on its way to its end gets there: retransmissions, FIN-WAIT-2, TIME-WAIT.
    let patience = clock.now() + STUCK;
    loop {
        let ours = far.memory() + near.memory();
        let left = (
            ours.saturating_sub(base_memory),
            kernel_connections(),
            descriptors(),
            counts.missing(),
        );
        if left.0 == 0 && left.1 == 0 && left.2 <= base_descriptors && left.3 == 0 {
            break;
        }
        assert!(
            clock.now() < patience,
            "left behind (bytes, connections, descriptors, connections not served): {left:?}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    show("ends");
    let served = counts.served();
    assert!(served.iter().all(|count| *count > 0), "{served:?}");
    let (middle, end) = (halfway.expect("half of it was reached"), resident());
    if time >= Duration::from_secs(60) {
        assert!(
            end <= middle + SLACK,
            "{middle} KiB in the middle, {end} KiB in the end"
        );
    }
    servers.abort_all();
}
