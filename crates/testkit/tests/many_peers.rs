//! What many connections cost: memory of those that are open and idle, of those that come and go,
//! and of what is left of them. In virtual time; memory is what the allocator counts.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use allocation_counter::measure;
use tack_base::Instant;
use tack_tcp::{Batch, Config, ConnectionId, Endpoint, EndpointConfig, Event, ReadError};
use tack_wire::{Ecn, Segment};

const BEGIN: Instant = Instant::from_millis(1_000_000);
const PORT: u16 = 80;
/// One way.
const DELAY: Duration = Duration::from_millis(5);
const CLIENT: usize = 0;
const SERVER: usize = 1;

/// A client and a server, 10 ms of round trip apart. Every connection asks for `asked` bytes with
/// one byte, and the server ends its stream behind them if it `closes`.
struct World {
    ends: [Endpoint; 2],
    now: Instant,
    wire: VecDeque<(Instant, usize, Vec<u8>)>,
    asked: usize,
    closes: bool,
    /// Bytes that came back.
    got: usize,
    ended: usize,
    failed: usize,
    held: Vec<ConnectionId>,
}

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + side as u8], 4000))
}

impl World {
    fn new(asked: usize, config: EndpointConfig) -> Self {
        let mut server = Endpoint::new(config.clone());
        server
            .listen(PORT, Config::default(), 1024)
            .expect("the port is free");
        Self {
            ends: [Endpoint::new(config), server],
            now: BEGIN,
            wire: VecDeque::new(),
            asked,
            closes: false,
            got: 0,
            ended: 0,
            failed: 0,
            held: Vec::new(),
        }
    }

    fn connect(&mut self, config: &Config) -> ConnectionId {
        self.ends[CLIENT]
            .connect(self.now, address(SERVER), PORT, 0, config)
            .expect("there are free ports")
    }

    /// Does all that happens until `end`.
    fn run_until(&mut self, end: Instant) {
        loop {
            self.settle(CLIENT);
            self.settle(SERVER);
            let arrival = self.wire.front().map(|(at, ..)| *at);
            let timers = [0, 1].map(|side| self.ends[side].poll_timeout());
            let next = timers.into_iter().chain([arrival]).flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            while self.wire.front().is_some_and(|(at, ..)| *at <= self.now) {
                let Some((_, to, bytes)) = self.wire.pop_front() else {
                    break;
                };
                let segment = Segment::parse(&bytes).expect("a segment");
                let from = address(1 - to);
                self.ends[to].handle_segment(self.now, self.now, from, &segment, Ecn::NotEct);
                self.settle(to);
            }
            for side in [CLIENT, SERVER] {
                self.ends[side].handle_timeout(self.now);
            }
        }
    }

    fn settle(&mut self, side: usize) {
        loop {
            let mut bytes = Vec::new();
            while let Some((_, transmit)) =
                self.ends[side].poll_transmit(self.now, &mut Batch::new(&mut bytes, 0, 8))
            {
                for segment in bytes.chunks(transmit.segment_size) {
                    let at = self.now + DELAY;
                    self.wire.push_back((at, 1 - side, segment.to_vec()));
                }
                bytes.clear();
            }
            if side == SERVER {
                while let Some(id) = self.ends[SERVER].accept(PORT) {
                    self.held.push(id);
                }
            }
            let Some(id) = self.ends[side].poll_ready() else {
                return;
            };
            self.work(side, id);
        }
    }

    fn work(&mut self, side: usize, id: ConnectionId) {
        let (now, asked) = (self.now, self.asked);
        let Some(connection) = self.ends[side].get_mut(id) else {
            return;
        };
        let (mut closed, mut read) = (false, 0);
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Connected if side == CLIENT => {
                    connection.write(now, b"?").expect("there is room");
                }
                Event::Closed(_) => closed = true,
                _ => {}
            }
        }
        let mut buf = [0; 16_384];
        let mut ended = false;
        loop {
            match connection.read(now, &mut buf) {
                Ok(0) => {
                    ended = true;
                    break;
                }
                Ok(len) => read += len,
                Err(ReadError::Blocked) => break,
                Err(ReadError::Closed(_)) => {
                    self.failed += 1;
                    break;
                }
            }
        }
        if side == SERVER && read > 0 {
            let taken = connection.write(now, &vec![7; asked]);
            assert_eq!(taken, Ok(asked), "answers fit the send buffer");
        }
        if side == SERVER && read > 0 && self.closes {
            connection.finish(now);
        }
        if side == CLIENT {
            self.got += read;
        }
        if ended && side == CLIENT {
            self.ended += 1;
            self.ends[CLIENT].release(now, id);
        } else if closed && side == SERVER {
            self.ends[SERVER].release(now, id);
            self.held.retain(|held| *held != id);
        }
    }
}

/// Two thousand connections that have carried something each way and are idle: memory of one end of
/// one of them. (Long form: ten thousand.)
#[test]
fn thousands_of_open_connections_take_little_memory() {
    let count = if tack_skip::is_long() { 10_000 } else { 2_000 };
    let mut world = World::new(100_000, EndpointConfig::new([1; 16]));
    let config = Config::default();
    let taken = measure(|| {
        for group in 0..count / 100 {
            for _ in 0..100 {
                world.connect(&config);
            }
            world.run_until(BEGIN + Duration::from_millis(500) * (group as u32 + 1));
        }
        let idle = world.now + Duration::from_secs(5);
        world.run_until(idle);
    });
    assert_eq!((world.got, world.failed), (count * world.asked, 0));
    assert_eq!(world.ends[SERVER].len(), count);
    let each = taken.bytes_current as usize / (2 * count);
    let accounted = world.ends.iter().map(Endpoint::memory).sum::<usize>() / (2 * count);
    println!("{each} bytes an end, {accounted} accounted");
    println!("at most {} MiB", taken.bytes_max >> 20);
    assert!(each < 8_192, "{each}");
    assert!(accounted.abs_diff(each) < each / 4, "{accounted} {each}");
}

/// A thousand connections a second come and go beside ten thousand that stay. The server ends them
/// first, so that TIME-WAIT is its own: for ten seconds' worth of them that is ten thousand
/// records, and where the client's ports run out and are used again, a new connection takes the
/// place of its record.
#[test]
fn a_thousand_connections_a_second_come_and_go() {
    const OPEN: usize = 10_000;
    const CHURN: usize = 10_000;
    let mut world = World::new(2_000, EndpointConfig::new([2; 16]));
    let config = Config::default();
    for group in 0..OPEN / 500 {
        for _ in 0..500 {
            world.connect(&config);
        }
        world.run_until(BEGIN + Duration::from_millis(100) * (group as u32 + 1));
    }
    let idle = world.now + Duration::from_secs(5);
    world.run_until(idle);
    world.held = Vec::new();
    (world.asked, world.closes) = (20_000, true);
    let before = world.ends[SERVER].memory();
    let mut records = 0;
    let taken = measure(|| {
        let begin = world.now;
        for index in 0..CHURN {
            world.connect(&config);
            world.run_until(begin + Duration::from_millis(1) * (index as u32 + 1));
        }
        let end = world.now + Duration::from_secs(5);
        world.run_until(end);
        records = world.ends[SERVER].len() - OPEN;
    });
    assert_eq!((world.ended, world.failed), (CHURN, 0));
    assert_eq!(world.got, OPEN * 2_000 + CHURN * 20_000);
    let added = world.ends[SERVER].memory() - before;
    println!(
        "{records} records in TIME-WAIT, {added} bytes accounted, {} counted, at most {}",
        taken.bytes_current, taken.bytes_max
    );
    // Some 6,000 ports are free beside those in use: later connections took the place of earlier
    // ones.
    assert!((5_000..CHURN).contains(&records), "{records}");
    assert!(added <= 400 * records, "{added} for {records} records");
    assert!(taken.bytes_current < 500 * records as i64, "{taken:?}");
    // Some twenty connections are open at a time, with what they have under way.
    assert!(taken.bytes_max < 16 << 20, "{taken:?}");
    let later = world.now + Duration::from_secs(60);
    world.run_until(later);
    assert_eq!(world.ends[SERVER].len(), OPEN, "TIME-WAIT is over");
}
