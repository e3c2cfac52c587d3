//! What a peer can cost that makes holes: processor time per segment of a clean path and of
//! attacks, side by side.
//!
//! `cargo bench -p tack-testkit --bench holes [SEGMENTS]` prints nanoseconds per segment, and how
//! many times the clean path's that is, and fails where holes cost more than five times as much.
//! It is no timed test: figures are processor time, and both of a ratio are of one process and the
//! least of three runs. The window is 64 KiB; every segment of an attack carries
//! one byte, and the segments of a clean path carry one as well, so that nothing but the holes
//! differs. The figure of a full segment is there to compare with.

#[path = "processor/time.rs"]
mod processor;

use std::process::ExitCode;
use std::time::Duration;

use tack_base::Instant;
use tack_tcp::{Batch, Config, Connection};
use tack_wire::options::TcpOptions;
use tack_wire::tack::{DataStamp, TackOption, TackSyn};
use tack_wire::{Ecn, Flags, Header, Segment, SeqNum};

use processor::processor_time;

/// Receive buffer, bytes.
const WINDOW: u32 = 64 << 10;
/// Most that a segment may cost, as a multiple of one on a clean path.
const BOUND: f64 = 5.0;
/// Initial sequence number of the peer.
const PEER_ISS: SeqNum = SeqNum(7);

/// What the peer sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stream {
    /// Everything, in order, so many bytes at a time.
    Clean(usize),
    /// Every second byte of the window, again and again; packet numbers without a gap.
    Holes,
    /// The same, with every second packet number missing too.
    HolesAndGaps,
}

fn main() -> ExitCode {
    let mut is_fine = true;
    let segments: u32 = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(300_000);
    for ack in ["tack", "delayed:2"] {
        // Once to warm up.
        nanoseconds(ack, Stream::Clean(1), segments / 4);
        let least = |stream| {
            let runs = (0..3).map(|_| nanoseconds(ack, stream, segments));
            runs.fold(f64::INFINITY, f64::min)
        };
        let clean = least(Stream::Clean(1));
        for stream in [
            Stream::Clean(1),
            Stream::Clean(1400),
            Stream::Holes,
            Stream::HolesAndGaps,
        ] {
            let cost = least(stream);
            println!(
                "{ack:<10} {:<14} {cost:>8.0} ns a segment, {:>5.2} x clean",
                format!("{stream:?}"),
                cost / clean,
            );
            is_fine &= cost <= BOUND * clean;
        }
    }
    if is_fine {
        ExitCode::SUCCESS
    } else {
        eprintln!("error: a segment costs more than {BOUND} times one of a clean path");
        ExitCode::FAILURE
    }
}

/// Processor time of one segment from the peer, its answers included.
fn nanoseconds(ack: &str, stream: Stream, segments: u32) -> f64 {
    let mut now = Instant::from_millis(1000);
    let mut connection = established(ack, now);
    let mut wire = Vec::with_capacity(1 << 17);
    let mut sink = vec![0; WINDOW as usize];
    let data = [7; 1400];
    let begin = processor_time();
    let mut position = 1_u32;
    for index in 0..segments {
        now += Duration::from_micros(10);
        let (at, len, number) = match stream {
            Stream::Clean(len) => (position, len, index),
            Stream::Holes => (2 + 2 * (index % 30_000), 1, index),
            Stream::HolesAndGaps => (2 + 2 * (index % 30_000), 1, 2 * index),
        };
        position = position.wrapping_add(len as u32);
        let stamp = (ack == "tack").then_some(TackOption::Data(DataStamp {
            number,
            departure: now.as_micros() as u32,
        }));
        let header = header(at, 1, Flags::ACK, stamp);
        let segment = Segment {
            header,
            payload: &data[..len],
        };
        connection.handle_timeout(now);
        connection.handle_segment(now, now, &segment, Ecn::NotEct);
        while connection.readable() > 0 {
            connection.read(now, &mut sink).expect("there is something");
        }
        while connection.poll_event().is_some() {}
        loop {
            wire.clear();
            if connection
                .poll_transmit(now, &mut Batch::new(&mut wire, 0, 1))
                .is_none()
            {
                break;
            }
        }
    }
    (processor_time() - begin).as_nanos() as f64 / f64::from(segments)
}

fn header(seq: u32, ack: u32, flags: Flags, tack: Option<TackOption>) -> Header {
    Header {
        src_port: 2000,
        dst_port: 1000,
        seq: PEER_ISS + seq,
        ack: SeqNum(1) + ack,
        flags,
        window: u16::MAX,
        urgent: 0,
        options: TcpOptions {
            tack,
            ..TcpOptions::default()
        },
    }
}

/// A connection that the peer has agreed with.
fn established(ack: &str, now: Instant) -> Connection {
    let config = Config {
        ack: ack.parse().expect("a policy"),
        receive_buffer: WINDOW as usize,
        initial_receive_buffer: WINDOW as usize,
        ..Config::default()
    };
    let mut connection = Connection::connect(&config, 1000, 2000, SeqNum(1), 1, now);
    let mut wire = Vec::new();
    connection
        .poll_transmit(now, &mut Batch::new(&mut wire, 0, 1))
        .expect("a SYN");
    let mut header = header(0, 1, Flags::SYN.with(Flags::ACK), None);
    header.options = TcpOptions {
        mss: Some(1460),
        sack_permitted: true,
        tack: (ack == "tack").then_some(TackOption::Syn(TackSyn {
            segments: 2,
            beta: 4,
        })),
        ..TcpOptions::default()
    };
    let answer = Segment {
        header,
        payload: &[],
    };
    connection.handle_segment(now, now, &answer, Ecn::NotEct);
    while connection
        .poll_transmit(now, &mut Batch::new(&mut wire, 0, 1))
        .is_some()
    {}
    connection
}
