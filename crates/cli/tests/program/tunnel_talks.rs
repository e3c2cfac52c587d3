//! Random conversations, once over a direct connection and once over each kind of tunnel: both ends
//! have to hear the same bytes and the same end. Meanwhile the path under the tunnels is cut and
//! comes back.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::proxy::{proxy, socks, socks_request};
use crate::support::{PATIENCE, is_long};
use crate::tunnel::{Two, connect, socket_reset};

/// Conversations at a time, over each way.
pub(crate) const TALKS: u64 = 6;

/// Numbers from a seed (SplitMix64).
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A size: small ones are as frequent as large ones.
    fn size(&mut self, bits: u64) -> usize {
        let bits = self.below(bits + 1);
        self.below(1 << bits) as usize
    }
}

/// What both sides do at the same time: each says so much, and hears all that the other says.
#[derive(Clone, Debug)]
struct Turn {
    sizes: [usize; 2],
    /// Most bytes of one read of each side, and how long it sleeps after each.
    reading: [(usize, Duration); 2],
}

/// How a conversation ends; sides are 0, the one that connected, and 1.
#[derive(Clone, Debug)]
enum Ending {
    /// One side ends its stream; the other hears it, says some more, and ends.
    Close { first: usize, last_words: usize },
    /// One side resets the connection after both have heard everything.
    Reset { by: usize },
    /// One side resets the connection while the other speaks.
    Abandon {
        by: usize,
        heard: usize,
        said: usize,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Talk {
    seed: u64,
    turns: Vec<Turn>,
    ending: Ending,
}

impl Talk {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let side = |random: &mut Random| random.below(2) as usize;
        let turn = |random: &mut Random| {
            let sizes = [random.size(18), random.size(18)];
            let reading = sizes.map(|size| match random.below(4) {
                // Slow, but not for long.
                0 => (size / 8 + 1, Duration::from_millis(random.below(8))),
                _ => (1 + random.size(17), Duration::ZERO),
            });
            // What one side says the other reads.
            let [client, server] = reading;
            let reading = [server, client];
            Turn { sizes, reading }
        };
        let turns = (0..random.below(4)).map(|_| turn(&mut random)).collect();
        let ending = match random.below(4) {
            0 => Ending::Reset {
                by: side(&mut random),
            },
            1 => Ending::Abandon {
                by: side(&mut random),
                // The first byte comes once the other side has heard everything.
                heard: 1 + random.size(15),
                said: (1 << 16) + random.size(18),
            },
            _ => Ending::Close {
                first: side(&mut random),
                last_words: random.size(17),
            },
        };
        Self {
            seed,
            turns,
            ending,
        }
    }

    /// What `side` says in this turn.
    fn words(&self, side: usize, turn: usize, len: usize) -> Vec<u8> {
        let mut random = Random(self.seed ^ ((side as u64) << 32) ^ ((turn as u64) << 40));
        let mut words = Vec::with_capacity(len + 8);
        while words.len() < len {
            words.extend(random.next().to_le_bytes());
        }
        words.truncate(len);
        words
    }
}

/// How it ended for one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The other side ended its stream.
    Closed,
    /// The other side reset the connection.
    Reset,
    /// This side did.
    ResetByItself,
}

/// What one side heard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Heard {
    /// Bytes, each of which was right.
    bytes: usize,
    end: End,
}

/// Reads `words`, as fast as `reading` says.
fn hear(mut stream: &TcpStream, words: &[u8], (most, pause): (usize, Duration)) -> usize {
    let mut buffer = vec![0; most.min(words.len())];
    let mut rest = words;
    while !rest.is_empty() {
        let room = buffer.len().min(rest.len());
        let len = stream.read(&mut buffer[..room]).unwrap();
        assert!(
            len > 0,
            "{} bytes of {} came",
            words.len() - rest.len(),
            words.len()
        );
        assert!(buffer[..len] == rest[..len], "other bytes than were sent");
        rest = &rest[len..];
        std::thread::sleep(pause);
    }
    words.len()
}

/// The end of the other side's stream.
fn hear_end(mut stream: &TcpStream) -> End {
    match stream.read(&mut [0]) {
        Ok(0) => End::Closed,
        Ok(_) => panic!("more bytes than were sent"),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => End::Reset,
        Err(error) => panic!("{error}"),
    }
}

/// Plays one side.
fn play(stream: TcpStream, talk: &Talk, side: usize) -> Heard {
    let other = 1 - side;
    let fast = (64 << 10, Duration::ZERO);
    let say = |words: &[u8]| (&stream).write_all(words);
    let mut bytes = 0;
    for (number, turn) in talk.turns.iter().enumerate() {
        let words = talk.words(side, number, turn.sizes[side]);
        let expected = talk.words(other, number, turn.sizes[other]);
        bytes += std::thread::scope(|scope| {
            scope.spawn(|| say(&words).unwrap());
            hear(&stream, &expected, turn.reading[side])
        });
    }
    let last = talk.turns.len();
    let end = match talk.ending {
        Ending::Close { first, .. } if first == side => {
            let Ending::Close { last_words, .. } = talk.ending else {
                unreachable!()
            };
            stream.shutdown(Shutdown::Write).unwrap();
            bytes += hear(&stream, &talk.words(other, last, last_words), fast);
            hear_end(&stream)
        }
        Ending::Close { last_words, .. } => {
            let end = hear_end(&stream);
            say(&talk.words(side, last, last_words)).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            end
        }
        Ending::Reset { by } if by == side => {
            // The other side has heard everything.
            bytes += hear(&stream, &talk.words(other, last, 1), fast);
            socket_reset(stream);
            End::ResetByItself
        }
        Ending::Reset { .. } => {
            say(&talk.words(side, last, 1)).unwrap();
            hear_end(&stream)
        }
        Ending::Abandon { by, heard, said } if by == side => {
            let words = talk.words(other, last, said);
            bytes += hear(&stream, &words[..heard], fast);
            socket_reset(stream);
            End::ResetByItself
        }
        Ending::Abandon { said, .. } => match say(&talk.words(side, last, said)) {
            Ok(()) => hear_end(&stream),
            Err(error) => {
                let kind = error.kind();
                let is_reset = matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
                assert!(is_reset, "{error}");
                End::Reset
            }
        },
    };
    Heard { bytes, end }
}

/// What second sides heard, by the seed of the conversation.
pub(crate) type Told = mpsc::Receiver<(u64, Option<Heard>)>;

/// Takes part in conversations as the second side, at a free port of `at`; the first eight bytes of
/// each are its seed.
pub(crate) fn second_side(at: IpAddr) -> (SocketAddr, Told) {
    let listener = TcpListener::bind((at, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, tell) = (stream.unwrap(), tell.clone());
            std::thread::spawn(move || {
                for limit in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
                    limit(&stream, Some(PATIENCE)).unwrap();
                }
                let mut seed = [0; 8];
                stream.read_exact(&mut seed).unwrap();
                let seed = u64::from_le_bytes(seed);
                let heard = catch_unwind(|| play(stream, &Talk::new(seed), 1));
                tell.send((seed, heard.ok())).unwrap();
            });
        }
    });
    (address, told)
}

/// Relays datagrams between clients and a server, unless it is cut.
pub(crate) struct Path {
    pub(crate) address: SocketAddr,
    is_cut: Arc<AtomicBool>,
}

impl Path {
    pub(crate) fn new(to: &str) -> Self {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        let address = socket.local_addr().unwrap();
        let is_cut = Arc::new(AtomicBool::new(false));
        let (to, cut) = (to.to_owned(), Arc::clone(&is_cut));
        std::thread::spawn(move || {
            let mut ways: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
            let mut bytes = vec![0; 1 << 16];
            loop {
                let (len, from) = socket.recv_from(&mut bytes).unwrap();
                let way = ways.entry(from).or_insert_with(|| {
                    let way = Arc::new(UdpSocket::bind("0.0.0.0:0").unwrap());
                    way.connect(&to).unwrap();
                    let (socket, back) = (Arc::clone(&socket), Arc::clone(&way));
                    let cut = Arc::clone(&cut);
                    std::thread::spawn(move || {
                        let mut bytes = vec![0; 1 << 16];
                        while let Ok(len) = back.recv(&mut bytes) {
                            if !cut.load(Ordering::Relaxed) {
                                let _ = socket.send_to(&bytes[..len], from);
                            }
                        }
                    });
                    way
                });
                if !cut.load(Ordering::Relaxed) {
                    let _ = way.send(&bytes[..len]);
                }
            }
        });
        Self { address, is_cut }
    }

    /// Nothing passes for this time.
    pub(crate) fn cut(&self, time: Duration) {
        self.is_cut.store(true, Ordering::Relaxed);
        std::thread::sleep(time);
        self.is_cut.store(false, Ordering::Relaxed);
    }
}

/// How a conversation gets to the second side.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Straight(SocketAddr),
    Socks(SocketAddr),
    Http(SocketAddr),
}

impl Way {
    fn connect(self, target: SocketAddr) -> TcpStream {
        match self {
            Self::Straight(address) => connect(address),
            Self::Socks(proxy) => {
                let (stream, code, _) = socks(proxy, &socks_request(1, target));
                assert_eq!(code, 0);
                stream
            }
            Self::Http(proxy) => {
                let mut stream = connect(proxy);
                let request = format!("CONNECT {target} HTTP/1.1\r\n\r\n");
                stream.write_all(request.as_bytes()).unwrap();
                let mut head = [0; 39];
                stream.read_exact(&mut head).unwrap();
                assert_eq!(&head, b"HTTP/1.1 200 Connection established\r\n\r\n");
                stream
            }
        }
    }
}

/// What both sides heard in each of these conversations, which are held at the same time.
pub(crate) fn talk_over(
    way: Way,
    target: SocketAddr,
    talks: &[Talk],
    told: &Told,
) -> Vec<[Heard; 2]> {
    let first: Vec<_> = std::thread::scope(|scope| {
        let talking: Vec<_> = talks
            .iter()
            .map(|talk| {
                scope.spawn(move || {
                    let mut stream = way.connect(target);
                    stream.set_write_timeout(Some(PATIENCE)).unwrap();
                    stream.write_all(&talk.seed.to_le_bytes()).unwrap();
                    play(stream, talk, 0)
                })
            })
            .collect();
        let ended = talking.into_iter().zip(talks).map(|(talking, talk)| {
            let heard = talking.join();
            heard.unwrap_or_else(|_| panic!("the first side, {way:?}: {talk:?}"))
        });
        ended.collect()
    });
    let mut second: HashMap<_, _> = talks
        .iter()
        .map(|_| told.recv_timeout(PATIENCE).expect("the second side ends"))
        .collect();
    first
        .into_iter()
        .zip(talks)
        .map(|(first, talk)| {
            let second = second.remove(&talk.seed).unwrap();
            [
                first,
                second.unwrap_or_else(|| panic!("the second side, {way:?}: {talk:?}")),
            ]
        })
        .collect()
}

#[test]
fn conversations_over_tunnels_are_those_over_a_direct_connection() {
    let (target, told) = second_side(Ipv4Addr::LOCALHOST.into());
    let two = Two::new(&["--target", "127.0.0.1:*", "--remote-listen", "127.0.0.1:*"]);
    let path = Path::new(&two.address);
    let at = path.address.to_string();
    two.client.run(&["peers", "remove", "server"]);
    let add = [
        "peers",
        "add",
        "server",
        &two.server.key(),
        "--address",
        &at,
    ];
    two.client.run(&add);
    let (_local, local) = two.forward("-L", &format!("0:{target}"));
    let (_remote, remote) = two.forward("-R", &format!("0:{target}"));
    let (_proxy, proxy) = proxy(&two);
    let ways = [
        Way::Straight(local),
        Way::Straight(remote),
        Way::Socks(proxy),
        Way::Http(proxy),
    ];
    for round in 0..if is_long() { 20 } else { 1 } {
        let seeds = (0..TALKS).map(|number| round * TALKS + number);
        let talks: Vec<_> = seeds.map(Talk::new).collect();
        let expected = talk_over(Way::Straight(target), target, &talks, &told);
        for (number, way) in ways.into_iter().enumerate() {
            // Another moment in each round.
            let moment = Duration::from_millis(round * 7 % 50);
            let time = Duration::from_millis(if number % 2 == 0 { 60 } else { 150 });
            let heard = talk_over_cut(&path, (moment, time), || {
                talk_over(way, target, &talks, &told)
            });
            compare(&heard, &expected, &talks, &format!("{way:?}"));
        }
    }
}

/// Has conversations, while the path is cut at a moment for a time.
pub(crate) fn talk_over_cut(
    path: &Path,
    (moment, time): (Duration, Duration),
    talk: impl FnOnce() -> Vec<[Heard; 2]>,
) -> Vec<[Heard; 2]> {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(moment);
            path.cut(time);
        });
        talk()
    })
}

/// Both sides heard what they should have.
pub(crate) fn compare(heard: &[[Heard; 2]], expected: &[[Heard; 2]], talks: &[Talk], what: &str) {
    for ((heard, expected), talk) in heard.iter().zip(expected).zip(talks) {
        assert_eq!(heard, expected, "{what}: {talk:?}");
    }
}

/// Sends random datagrams to one of the targets, which answer each, a few at a time; gives the
/// answers and whom they came from.
fn datagrams(
    seed: u64,
    targets: &[SocketAddr],
    send: impl Fn(SocketAddr, &[u8]),
    receive: impl Fn() -> (SocketAddr, Vec<u8>),
) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut random = Random(seed);
    let mut all = Vec::new();
    for _ in 0..8 {
        let mut answers = Vec::new();
        let count = 1 + random.below(4);
        for _ in 0..count {
            let target = targets[random.below(targets.len() as u64) as usize];
            let len = random.size(13);
            let payload: Vec<_> = (0..len).map(|_| random.next() as u8).collect();
            send(target, &payload);
        }
        for _ in 0..count {
            answers.push(receive());
        }
        // Those of different targets may come in any order.
        answers.sort();
        all.extend(answers);
    }
    all
}

#[test]
fn datagrams_over_a_proxy_are_those_of_a_plain_socket() {
    let udp = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    let targets: Vec<_> = (0..3_u8)
        .map(|number| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = socket.local_addr().unwrap();
            std::thread::spawn(move || {
                let mut bytes = vec![0; 1 << 16];
                while let Ok((len, from)) = socket.recv_from(&mut bytes) {
                    // Each answers in its own way.
                    let answer: Vec<_> = bytes[..len].iter().map(|byte| byte ^ number).collect();
                    let _ = socket.send_to(&answer, from);
                }
            });
            address
        })
        .collect();
    let two = Two::new(&["--target", "127.0.0.1:*"]);
    let (_proxy, proxy) = proxy(&two);
    let (_control, code, relay) = socks(proxy, &socks_request(3, ([0, 0, 0, 0], 0).into()));
    assert_eq!(code, 0);
    let (plain, wrapping) = (udp(), udp());
    for seed in 0..if is_long() { 50 } else { 3 } {
        let send = |target: SocketAddr, payload: &[u8]| {
            plain.send_to(payload, target).unwrap();
        };
        let receive = || {
            let mut bytes = vec![0; 1 << 16];
            let (len, from) = plain.recv_from(&mut bytes).unwrap();
            (from, bytes[..len].to_vec())
        };
        let expected = datagrams(seed, &targets, send, receive);
        let send = |target: SocketAddr, payload: &[u8]| {
            let mut bytes = socks_request(0, target);
            bytes[..4].copy_from_slice(&[0, 0, 0, 1]);
            bytes.extend(payload);
            wrapping.send_to(&bytes, relay).unwrap();
        };
        let receive = || {
            let mut bytes = vec![0; 1 << 16];
            let (len, from) = wrapping.recv_from(&mut bytes).unwrap();
            assert_eq!((from, &bytes[..4]), (relay, &[0, 0, 0, 1][..]));
            let ip: [u8; 4] = bytes[4..8].try_into().unwrap();
            let port = u16::from_be_bytes([bytes[8], bytes[9]]);
            ((ip, port).into(), bytes[10..len].to_vec())
        };
        let heard = datagrams(seed, &targets, send, receive);
        assert!(heard == expected, "seed {seed}");
    }
}
