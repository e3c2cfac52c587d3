//! One connection through a TUN device, as fast as it goes, beside the kernel's TCP with itself
//! through a user-space forwarder between two devices, in the same run.
//!
//! `cargo bench -p tack --bench tun -- [--seconds N] [--rounds N]`, as root: each contestant has
//! network namespaces of its own. All packets have 1,500 bytes. Without offload each one is a
//! system call for whoever reads or writes a device; the forwarder does both. The contestants take
//! turns, so that a busy machine is busy for all. Prints of each the median of its rates, and of
//! what it carries in a second of processor time of all that takes part (both ends, the forwarder,
//! and the kernel's work for them), beside the first one's. Takes 50 s.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use tack::{Endpoint, TunNetwork, TunOptions};
use tack_io::namespace::Namespace;
use tack_io::{Clock, TunReceiver, TunSender};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;

const BLOCK: usize = 256 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Contestant {
    KernelToKernel,
    OursToKernel { offload: bool },
    KernelToOurs { offload: bool },
}

const ALL: [(&str, Contestant); 5] = [
    ("kernel to kernel, forwarder", Contestant::KernelToKernel),
    (
        "ours to kernel",
        Contestant::OursToKernel { offload: false },
    ),
    (
        "kernel to ours",
        Contestant::KernelToOurs { offload: false },
    ),
    (
        "ours to kernel, offload",
        Contestant::OursToKernel { offload: true },
    ),
    (
        "kernel to ours, offload",
        Contestant::KernelToOurs { offload: true },
    ),
];

fn main() {
    let mut seconds = 3;
    let mut rounds = 3;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || -> u64 {
            let text = arguments.next().unwrap_or_default();
            text.parse().unwrap_or_else(|_| {
                panic!("{argument} wants a whole number, got {text:?}");
            })
        };
        match argument.as_str() {
            // What cargo adds.
            "--bench" => {}
            "--seconds" => seconds = value(),
            "--rounds" => rounds = value() as usize,
            other => panic!("unknown argument {other}; known: --seconds, --rounds"),
        }
    }
    let mut rates = vec![(Vec::new(), Vec::new()); ALL.len()];
    for _ in 0..rounds {
        for ((_, contestant), (rates, by_processor)) in ALL.iter().zip(&mut rates) {
            let contestant = *contestant;
            let limit = Duration::from_secs(seconds);
            let before = processor_time();
            let run = std::thread::spawn(move || run(contestant, limit));
            match run.join().expect("the contestant finishes") {
                Ok(rate) => {
                    rates.push(rate);
                    let spent = processor_time() - before;
                    by_processor.push(rate * limit.as_secs_f64() / spent);
                }
                Err(why) => {
                    println!("SKIPPED: {why}");
                    return;
                }
            }
        }
    }
    let median = |rates: &[f64]| {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    let base = (median(&rates[0].0), median(&rates[0].1));
    for ((name, _), (rates, by_processor)) in ALL.iter().zip(&rates) {
        let (rate, by_processor) = (median(rates), median(by_processor));
        println!(
            "{name:30} {:6.2} Gbit/s  {:5.2} x | {:6.2} Gbit in a second of processor time  {:5.2} x | {:.2?}",
            rate / 1e9,
            rate / base.0,
            by_processor / 1e9,
            by_processor / base.1,
            rates.iter().map(|rate| rate / 1e9).collect::<Vec<_>>()
        );
    }
    let rate = |number: usize| median(&rates[number].0);
    println!(
        "wanted: without offload at least 0.80 x, is {:.2} x and {:.2} x; with offload at least 3.00 Gbit/s, is {:.2} and {:.2}",
        rate(1) / base.0,
        rate(2) / base.0,
        rate(3) / 1e9,
        rate(4) / 1e9,
    );
}

/// Processor time that the process has taken, seconds.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux has it");
    let (_, rest) = stat.rsplit_once(") ").expect("the name is in brackets");
    let ticks = rest.split(' ').skip(11).take(2);
    // A tick of this file is a hundredth of a second on every Linux (USER_HZ).
    ticks
        .map(|ticks| ticks.parse::<f64>().expect("a number"))
        .sum::<f64>()
        / 100.0
}

/// Bits of payload in a second.
fn run(contestant: Contestant, limit: Duration) -> Result<f64, String> {
    Namespace::enter_new().map_err(|error| format!("no network namespace: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let done = Arc::new(AtomicBool::new(false));
    let rate = match contestant {
        Contestant::KernelToKernel => kernel_to_kernel(&done, limit),
        Contestant::OursToKernel { offload } => {
            let endpoint = host(&runtime, offload)?;
            let listener = TcpListener::bind("10.77.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let reader = std::thread::spawn(move || read(&listener.accept().unwrap().0, limit));
            runtime.block_on(async {
                let mut stream = endpoint.connect(address).await.unwrap();
                let block = vec![7; BLOCK];
                while !reader.is_finished() && stream.write_all(&block).await.is_ok() {}
            });
            reader.join().expect("the reader finishes")
        }
        Contestant::KernelToOurs { offload } => {
            let endpoint = host(&runtime, offload)?;
            let listener = endpoint.listen(80).map_err(|error| error.to_string())?;
            let address = SocketAddr::from(([10, 77, 0, 2], 80));
            let stop = Arc::clone(&done);
            let writer = std::thread::spawn(move || {
                write(TcpStream::connect(address).unwrap(), &stop);
            });
            let rate = runtime.block_on(async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut block = vec![0; BLOCK];
                let clock = Clock::new();
                let (began, mut total) = (clock.now(), 0);
                while clock.now().saturating_since(began) < limit {
                    total += stream.read(&mut block).await.unwrap();
                }
                let elapsed = clock.now().saturating_since(began);
                done.store(true, Ordering::Relaxed);
                stream.reset();
                tokio::time::sleep(Duration::from_millis(50)).await;
                total as f64 * 8.0 / elapsed.as_secs_f64()
            });
            writer.join().expect("the writer finishes");
            rate
        }
    };
    Ok(rate)
}

fn network(kernel: [u8; 4]) -> TunNetwork {
    let [a, b, c, d] = kernel;
    TunNetwork {
        kernel: IpAddr::from(kernel),
        prefix: 24,
        stack: IpAddr::from([a, b, c, d + 1]),
    }
}

fn host(runtime: &Runtime, offload: bool) -> Result<Endpoint, String> {
    let mut options = TunOptions::new(network([10, 77, 0, 1]));
    options.offload = offload;
    let _in_runtime = runtime.enter();
    Endpoint::builder()
        .tun(options)
        .insecure(true)
        .build()
        .map_err(|error| error.to_string())
}

/// Reads for a while; bits a second.
fn read(mut stream: &TcpStream, limit: Duration) -> f64 {
    let mut block = vec![0; BLOCK];
    let clock = Clock::new();
    let (began, mut total) = (clock.now(), 0);
    while clock.now().saturating_since(began) < limit {
        total += stream.read(&mut block).unwrap();
    }
    total as f64 * 8.0 / clock.now().saturating_since(began).as_secs_f64()
}

/// Writes until the other side ends, or the run does.
fn write(mut stream: TcpStream, done: &AtomicBool) {
    // The default differs between machines.
    let _ = socket2::SockRef::from(&stream).set_tcp_congestion(b"cubic");
    // What ends the connection may get lost with the forwarder.
    stream
        .set_write_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let block = vec![7; BLOCK];
    while !done.load(Ordering::Relaxed) && stream.write_all(&block).is_ok() {}
}

/// Two namespaces with a forwarder between them that moves one packet at a time.
fn kernel_to_kernel(done: &Arc<AtomicBool>, limit: Duration) -> f64 {
    let near = Namespace::current().unwrap();
    let far = Namespace::enter_new().unwrap();
    let stop = Arc::clone(done);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let forwarder = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let device = |kernel, route: [u8; 4]| {
                let mut options = TunOptions::new(network(kernel));
                options.offload = false;
                options.routes = vec![(IpAddr::from(route), 24)];
                options.open().unwrap()
            };
            far.enter().unwrap();
            let far_device = device([10, 78, 0, 1], [10, 77, 0, 0]);
            near.enter().unwrap();
            let near_device = device([10, 77, 0, 1], [10, 78, 0, 0]);
            let listener = TcpListener::bind("10.77.0.1:0").unwrap();
            ready.send(listener).unwrap();
            forward(near_device, far_device, &stop).await;
        });
    });
    // This thread is in the far namespace, the listener in the near one.
    let listener = is_ready.recv().expect("the forwarder begins");
    let address = listener.local_addr().unwrap();
    let reader = std::thread::spawn(move || read(&listener.accept().unwrap().0, limit));
    let stop = Arc::clone(done);
    let writer = std::thread::spawn(move || write(TcpStream::connect(address).unwrap(), &stop));
    let rate = reader.join().expect("the reader finishes");
    done.store(true, Ordering::Relaxed);
    writer.join().expect("the writer finishes");
    forwarder.join().expect("the forwarder finishes");
    rate
}

async fn forward(
    mut near: (TunSender, TunReceiver),
    mut far: (TunSender, TunReceiver),
    stop: &AtomicBool,
) {
    let clock = Clock::new();
    let pass = |from: &mut TunReceiver, to: &mut TunSender| {
        if let Ok(packets) = from.receive(&clock) {
            for packet in packets {
                let _ = to.send_packet(packet.bytes);
            }
        }
    };
    while !stop.load(Ordering::Relaxed) {
        pass(&mut near.1, &mut far.0);
        pass(&mut far.1, &mut near.0);
        let wait = poll_fn(|cx| {
            let near = near.1.poll_readable(cx).is_ready();
            let far = far.1.poll_readable(cx).is_ready();
            if near || far {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        let _ = tokio::time::timeout(Duration::from_millis(100), wait).await;
    }
}
