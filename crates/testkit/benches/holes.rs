//! What a peer can cost that makes holes: processor time per segment of a clean path and of
//! attacks, side by side.
//!
//! `cargo bench -p tack-testkit --bench holes [SEGMENTS]` prints nanoseconds per segment, and how
//! many times the clean path's that is, and fails where holes cost more than five times as much.
//! It is no timed test: figures are processor time, and both of a ratio are of one process and the
//! least of three runs. Every segment of an attack carries one byte, and the segments of a clean
//! path carry one as well, so that nothing but the holes differs. The figure of a full segment is
//! there to compare with. Windows have 64 KiB to 64 MiB, and segments come in a burst or so slowly
//! that each may be answered.

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

/// Receive buffers, bytes.
const WINDOWS: [u32; 3] = [64 << 10, 1 << 20, 64 << 20];
/// The peer's segments are so far apart.
const SPACINGS: [Duration; 3] = [
    Duration::from_micros(100),
    Duration::from_millis(1),
    Duration::from_millis(5),
];
/// Most that a segment may cost, as a multiple of one on a clean path.
const BOUND: f64 = 5.0;
/// Initial sequence number of the peer.
const PEER_ISS: SeqNum = SeqNum(7);

/// What the peer sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stream {
    /// Everything, in order, so many bytes at a time.
    Clean(usize),
    /// Segments of so many bytes with holes of as many between them, through the window and again;
    /// packet numbers without a gap.
    Holes(usize),
    /// The same, with every second packet number missing too.
    HolesAndGaps(usize),
}

fn main() -> ExitCode {
    let mut is_fine = true;
    let segments: u32 = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(300_000);
    // Once to warm up.
    let warm_up = Path::new("tack", WINDOWS[0], SPACINGS[0]);
    warm_up.nanoseconds(Stream::Clean(1), segments / 4);
    for ack in ["tack", "delayed:2"] {
        for (window, spacing) in WINDOWS
            .into_iter()
            .flat_map(|window| SPACINGS.map(|spacing| (window, spacing)))
        {
            let path = Path::new(ack, window, spacing);
            let least = |stream| {
                let runs = (0..3).map(|_| path.nanoseconds(stream, segments));
                runs.fold(f64::INFINITY, f64::min)
            };
            for bytes in [1, 1400] {
                let clean = least(Stream::Clean(bytes));
                for stream in [Stream::Holes(bytes), Stream::HolesAndGaps(bytes)] {
                    let cost = least(stream);
                    println!(
                        "{ack:<10} {:>6} KiB {spacing:>6?} {:<18} {cost:>8.0} ns a segment, {:>5.2} x clean ({clean:.0} ns)",
                        window >> 10,
                        format!("{stream:?}"),
                        cost / clean,
                    );
                    is_fine &= cost <= BOUND * clean;
                }
            }
        }
    }
    if is_fine {
        ExitCode::SUCCESS
    } else {
        eprintln!("error: a segment costs more than {BOUND} times one of a clean path");
        ExitCode::FAILURE
    }
}

/// What the peer sends through.
struct Path {
    ack: &'static str,
    window: u32,
    spacing: Duration,
}

impl Path {
    fn new(ack: &'static str, window: u32, spacing: Duration) -> Self {
        Self {
            ack,
            window,
            spacing,
        }
    }

    /// Processor time of one segment from the peer, its answers included.
    fn nanoseconds(&self, stream: Stream, segments: u32) -> f64 {
        let Self {
            ack,
            window,
            spacing,
        } = *self;
        let mut now = Instant::from_millis(1000);
        let mut connection = established(ack, window, now);
        let mut wire = Vec::with_capacity(1 << 17);
        let mut sink = vec![0; 64 << 10];
        let data = [7; 1400];
        // Once through a window of full segments first: memory for data out of order is not of
        // holes.
        let warm_up = WINDOWS[2] / 2_800;
        let mut begin = processor_time();
        let mut position = 1_u32;
        for index in 0..warm_up + segments {
            if index == warm_up {
                begin = processor_time();
            }
            now += spacing;
            let hole = |len: usize| {
                let len = len as u32;
                1 + len + 2 * len * (index % (window * 9 / 20 / len))
            };
            let (at, len, number) = match stream {
                Stream::Clean(len) => (position, len, index),
                Stream::Holes(len) => (hole(len), len, index),
                Stream::HolesAndGaps(len) => (hole(len), len, 2 * index),
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
fn established(ack: &str, window: u32, now: Instant) -> Connection {
    let config = Config {
        ack: ack.parse().expect("a policy"),
        receive_buffer: window as usize,
        initial_receive_buffer: window as usize,
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
        window_scale: Some(10),
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
