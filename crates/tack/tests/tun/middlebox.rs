//! Boxes on the path that do not know TACK's option: it is stripped, or its SYNs are dropped.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tack::{Config, Endpoint, ListenOptions, Listener, Stats, Stream};
use tack_base::random::RandomStream;
use tack_sim::impair::middlebox::{Middlebox, MiddleboxConfig, StripFrom};
use tack_sim::path::PathConfig;
use tack_wire::{Segment, TcpOptions, tack as option};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::forwarder::{BACK, Link, Rule, THERE, clean};
use crate::pattern::{byte, exchange};
use crate::world::{host, ip, isolated, options};

/// The server in the near namespace, behind the middlebox.
const SERVER: &str = "10.77.2.2";
/// Its address of IPv6.
const SERVER_V6: &str = "fd77:2::2";
/// Bytes of a part of a stream: enough segments to show how many of them carry the option.
const PART: u64 = 256 << 10;
/// Parts within which both sides must do what they do for good: so many that TACK is tried again if
/// it was given up.
const PARTS: u64 = 1000;

/// Two endpoints with the forwarder between them.
struct Ends {
    link: Link,
    client: Endpoint,
    listener: Listener,
    /// What carried TACK's option before it came to the box, by direction.
    carrying: Arc<Mutex<[Carrying; 2]>>,
}

/// How many segments carried TACK's option.
#[derive(Clone, Copy, Debug, Default)]
struct Carrying {
    syns: u32,
    others: u32,
    /// Segments with payload, whatever they carried.
    data: u32,
    /// Those of them that carried it.
    stamped: u32,
}

fn ends(paths: [PathConfig; 2], mut rule: Rule) -> Ends {
    let carrying = Arc::<Mutex<[Carrying; 2]>>::default();
    let counted = Arc::clone(&carrying);
    let counting: Rule = Box::new(move |direction, packet| {
        if let Some((header, payload)) = packet.tcp() {
            let carries = TcpOptions::parse(&header[20..]).tack.is_some();
            let is_syn = Segment::flags(header).is_some_and(|flags| flags.syn());
            // Lists of a report may come as payload, with the option.
            let is_data = payload > 0 && !packet.is_tack_feedback();
            let carrying = &mut counted.lock().unwrap()[direction];
            carrying.syns += u32::from(carries && is_syn);
            carrying.others += u32::from(carries && !is_syn);
            carrying.data += u32::from(is_data);
            carrying.stamped += u32::from(carries && is_data);
        }
        rule(direction, packet)
    });
    let link = Link::new(paths, 1, counting);
    let server = host(options(2));
    let client = link.far(|| host(options(1)));
    let listener = server.listen_with(80, ListenOptions::new().config(config()));
    Ends {
        link,
        client,
        listener: listener.unwrap(),
        carrying,
    }
}

/// Retransmits SYNs sooner than others, so that a test need not wait for seconds.
fn config() -> Config {
    Config {
        initial_rto: Duration::from_millis(300),
        ..Config::default()
    }
}

impl Ends {
    fn carrying(&self) -> [Carrying; 2] {
        *self.carrying.lock().unwrap()
    }

    /// Both sides agreed on TACK, and both used it: the box had something to strip.
    fn demand_agreement(&self) {
        let carrying = self.carrying();
        let agreed = carrying.iter().all(|way| way.syns > 0 && way.others > 0);
        assert!(agreed, "{carrying:?}");
    }

    async fn connect(&self, server: &str) -> (Stream, Stream) {
        let connect = self.client.connect(SocketAddr::new(ip(server), 80));
        let connect = connect.config(config());
        let (ours, theirs) = tokio::join!(connect.into_future(), self.listener.accept());
        (ours.unwrap(), theirs.unwrap().0)
    }

    /// A transfer both ways; what the two sides counted.
    async fn transfer(&self, len: u64) -> [Stats; 2] {
        let (mut ours, mut theirs) = self.connect(SERVER).await;
        exchange(&mut ours, &mut theirs, len).await;
        ours.finished().await.unwrap();
        theirs.finished().await.unwrap();
        assert!(
            self.link
                .passed
                .lock()
                .unwrap()
                .iter()
                .all(|count| *count > 10)
        );
        [ours.stats(), theirs.stats()]
    }

    /// A transfer both ways in parts, each of them after the one before, until `is_there` says so
    /// of one. It gets what the part added to the counters of the box and of the two sides.
    async fn transfer_until(&self, server: &str, is_there: impl Fn(&[PartCounts; 2]) -> bool) {
        let (mut ours, mut theirs) = self.connect(server).await;
        let mut parts = Vec::new();
        loop {
            let before = self.counts([&ours, &theirs]);
            let at = parts.len() as u64 * PART;
            send_part([&mut ours, &mut theirs], at).await;
            let after = self.counts([&ours, &theirs]);
            let part = [0, 1].map(|side| after[side].since(before[side]));
            parts.push(part);
            if is_there(&part) {
                break;
            }
            assert!((parts.len() as u64) < PARTS, "{server}: {parts:?}");
        }
        exchange(&mut ours, &mut theirs, 0).await;
        ours.finished().await.unwrap();
        theirs.finished().await.unwrap();
        self.demand_agreement();
    }

    /// Of the client and of the server.
    fn counts(&self, [ours, theirs]: [&Stream; 2]) -> [PartCounts; 2] {
        let carrying = self.carrying();
        let of = |stream: &Stream, direction: usize| PartCounts {
            data: carrying[direction].data.into(),
            stamped: carrying[direction].stamped.into(),
            acks_tack: stream.stats().acks_tack,
            acks_delayed: stream.stats().acks_delayed,
        };
        [of(ours, BACK), of(theirs, THERE)]
    }
}

/// What one side did during a part of a transfer.
#[derive(Clone, Copy, Debug)]
struct PartCounts {
    /// Its segments with payload.
    data: u64,
    /// Those of them with TACK's option.
    stamped: u64,
    /// Its periodic acknowledgements, with reports and without.
    acks_tack: u64,
    acks_delayed: u64,
}

impl PartCounts {
    fn since(self, before: Self) -> Self {
        Self {
            data: self.data - before.data,
            stamped: self.stamped - before.stamped,
            acks_tack: self.acks_tack - before.acks_tack,
            acks_delayed: self.acks_delayed - before.acks_delayed,
        }
    }
}

/// Sends a part of each stream, from byte `at` on, and compares what arrives.
async fn send_part([one, other]: [&mut Stream; 2], at: u64) {
    let (mut one_reader, mut one_writer) = tokio::io::split(one);
    let (mut other_reader, mut other_writer) = tokio::io::split(other);
    let [from_one, from_other] = [1, 2].map(|seed| {
        let bytes = (at..at + PART).map(|position| byte(seed, position));
        bytes.collect::<Vec<u8>>()
    });
    let (mut at_one, mut at_other) = (vec![0; PART as usize], vec![0; PART as usize]);
    let (one_wrote, other_wrote, one_read, other_read) = tokio::join!(
        one_writer.write_all(&from_one),
        other_writer.write_all(&from_other),
        one_reader.read_exact(&mut at_one),
        other_reader.read_exact(&mut at_other),
    );
    one_wrote.and(other_wrote).unwrap();
    one_read.and(other_read).unwrap();
    assert!(
        at_one == from_other && at_other == from_one,
        "from byte {at}"
    );
}

fn stripping(strip_from: StripFrom) -> [PathConfig; 2] {
    let path = PathConfig {
        middlebox: MiddleboxConfig {
            strip: vec![option::OPTION_KIND],
            strip_from,
            ..MiddleboxConfig::default()
        },
        ..clean()
    };
    [path.clone(), path]
}

fn nothing() -> Rule {
    Box::new(|_, _| true)
}

/// Without a box the two agree on TACK: what the others are compared with.
#[test]
fn a_path_without_a_box_carries_tack() {
    isolated(|| async {
        let ends = ends([clean(), clean()], nothing());
        let stats = ends.transfer(2 << 20).await;
        assert!(stats.iter().all(|side| side.acks_tack > 0), "{stats:?}");
        ends.demand_agreement();
    });
}

#[test]
fn stripped_from_syns_it_is_plain_tcp() {
    isolated(|| async {
        let ends = ends(stripping(StripFrom::Syn), nothing());
        let stats = ends.transfer(2 << 20).await;
        // The client is on the far side: it offers, and nobody takes it.
        let [there, back] = ends.carrying();
        assert!(back.syns > 0 && there.syns == 0, "{there:?} {back:?}");
        for side in stats {
            assert_eq!((side.acks_tack, side.invalid_reports), (0, 0), "{side:?}");
            assert!(side.acks_delayed > 0, "{side:?}");
        }
    });
}

/// Both sides take note after a while: their segments do not carry it any more, and they
/// acknowledge as plain TCP. From time to time a few segments probe the path: not during every
/// part.
#[test]
fn stripped_from_data_both_sides_do_without() {
    for server in [SERVER, SERVER_V6] {
        isolated(move || async move {
            let ends = ends(stripping(StripFrom::Rest), nothing());
            let is_plain = |side: &PartCounts| {
                side.data > 0 && side.stamped + side.acks_tack == 0 && side.acks_delayed > 0
            };
            ends.transfer_until(server, |part| part.iter().all(is_plain))
                .await;
            let stripped = ends.link.counters().map(|counters| counters.stripped);
            assert!(stripped.iter().all(|count| *count > 0), "{stripped:?}");
        });
    }
}

/// Some segments lose it: a tenth or a quarter of them at random, or each third. The reports of the
/// others suffice.
#[test]
fn stripped_from_some_segments_tack_goes_on() {
    for (server, kind) in [
        (SERVER, Some(0.1)),
        (SERVER, Some(0.25)),
        (SERVER, None),
        (SERVER_V6, Some(0.25)),
        (SERVER_V6, None),
    ] {
        isolated(move || async move {
            let config = MiddleboxConfig {
                strip: vec![option::OPTION_KIND],
                strip_from: StripFrom::Rest,
                ..MiddleboxConfig::default()
            };
            let mut boxes = [0, 1].map(|direction| Middlebox::new(config.clone(), 1, direction));
            let mut random = RandomStream::new(3, "strip", 0);
            let mut seen = [0_u32; 2];
            let stripped = Arc::<Mutex<[u32; 2]>>::default();
            let counted = Arc::clone(&stripped);
            let rule: Rule = Box::new(move |direction, packet| {
                seen[direction] += 1;
                let is_chosen = match kind {
                    Some(share) => random.chance(share),
                    None => seen[direction].is_multiple_of(3),
                };
                let is_hit = is_chosen && boxes[direction].pass(packet);
                counted.lock().unwrap()[direction] += u32::from(is_hit);
                true
            });
            let ends = ends([clean(), clean()], rule);
            // Real time may stretch any gap, and so end TACK; it comes back then.
            let is_tack = |side: &PartCounts| {
                side.stamped > 0 && side.stamped * 10 >= side.data * 9 && side.acks_tack > 0
            };
            let hit = || *stripped.lock().unwrap();
            ends.transfer_until(server, |part| {
                hit().iter().all(|count| *count >= 20) && part.iter().all(is_tack)
            })
            .await;
        });
    }
}

/// The first connection finds out and takes a while; the next one to the same host does not try.
#[test]
fn where_syns_with_it_are_dropped_connections_do_without() {
    isolated(|| async {
        let dropped = Arc::<Mutex<u32>>::default();
        let counted = Arc::clone(&dropped);
        let rule: Rule = Box::new(move |_, packet| {
            let Some((header, _)) = packet.tcp() else {
                return true;
            };
            let is_syn = Segment::flags(header).is_some_and(|flags| flags.syn());
            let offers = is_syn && TcpOptions::parse(&header[20..]).tack.is_some();
            *counted.lock().unwrap() += u32::from(offers);
            !offers
        });
        let ends = ends([clean(), clean()], rule);
        let stats = ends.transfer(500_000).await;
        assert!(stats.iter().all(|side| side.acks_tack == 0), "{stats:?}");
        assert_eq!(*dropped.lock().unwrap(), 2, "two SYNs, and no more");
        let stats = ends.transfer(500_000).await;
        assert!(stats.iter().all(|side| side.acks_tack == 0), "{stats:?}");
        assert_eq!(*dropped.lock().unwrap(), 2, "it is remembered");
    });
}
