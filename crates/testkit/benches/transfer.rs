//! What the stack itself costs: two connections, joined in memory, move bytes as fast as they can.
//!
//! `cargo bench -p tack-testkit --bench transfer [MIB]` prints time and throughput; under
//! `perf stat -e instructions:u` or callgrind the same run gives instruction counts, which do not
//! depend on what else the machine does.

use std::time::Duration;

use tack_base::Instant;
use tack_tcp::{Batch, Config, Connection, config::Carrier};
use tack_wire::{Segment, SeqNum};

/// Segments in one batch, as UDP GSO takes them.
const BATCH: usize = 44;

fn main() {
    let mebibytes: u64 = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(1024);
    let config = Config {
        carrier: Carrier {
            timer_granularity: Duration::from_micros(100),
            max_batch: BATCH,
            overhead: 28,
        },
        mss: 1452,
        ..Config::default()
    };
    let total = mebibytes << 20;
    #[expect(clippy::disallowed_methods, reason = "a benchmark owns a clock")]
    let begin = std::time::Instant::now();
    let segments = run(&config, total);
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{mebibytes} MiB in {seconds:.3} s: {:.2} Gbit/s, {:.0} ns for each of {segments} data segments, both sides",
        total as f64 * 8.0 / seconds / 1e9,
        seconds * 1e9 / segments as f64,
    );
}

/// Moves `total` bytes; returns how many data segments that took.
fn run(config: &Config, total: u64) -> u64 {
    let mut now = Instant::from_millis(1000);
    let mut client = Connection::connect(config, 1000, 2000, SeqNum(1), 1, now);
    let mut wire = Vec::with_capacity(1 << 17);
    client
        .poll_transmit(now, &mut Batch::new(&mut wire, 0, 1))
        .expect("a SYN");
    let syn = wire.clone();
    let syn = Segment::parse(&syn).expect("a segment");
    let mut server = Connection::accept(config, &syn, tack_wire::Ecn::NotEct, SeqNum(7), 2, now);
    let data = vec![0x5a; 256 << 10];
    let mut sink = vec![0; 256 << 10];
    let (mut written, mut read) = (0, 0);
    while read < total {
        // A step stands for what one wake-up of a real carrier does.
        now += Duration::from_micros(20);
        while written < total {
            let chunk = data.len().min((total - written) as usize);
            match client.write(now, &data[..chunk]) {
                Ok(len) => written += len as u64,
                Err(_) => break,
            }
        }
        client.handle_timeout(now);
        server.handle_timeout(now);
        carry(&mut client, &mut server, now, &mut wire);
        while let Ok(len @ 1..) = server.read(now, &mut sink) {
            read += len as u64;
        }
        carry(&mut server, &mut client, now, &mut wire);
        while client.poll_event().is_some() {}
        while server.poll_event().is_some() {}
    }
    client.stats(now).data_segments
}

fn carry(from: &mut Connection, to: &mut Connection, now: Instant, wire: &mut Vec<u8>) {
    for _ in 0..8 {
        wire.clear();
        let Some(transmit) = from.poll_transmit(now, &mut Batch::new(wire, 0, BATCH)) else {
            break;
        };
        for bytes in wire.chunks(transmit.segment_size) {
            let segment = Segment::parse(bytes).expect("our own segments parse");
            to.handle_segment(now, now, &segment, transmit.ecn);
        }
    }
}
