//! Boxes on the path that do not know TACK's option: it is stripped, or its SYNs are dropped.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tack::{Config, Endpoint, ListenOptions, Listener, Stats, Stream};
use tack_sim::impair::middlebox::{Middlebox, MiddleboxConfig, StripFrom};
use tack_sim::path::PathConfig;
use tack_wire::{Segment, TcpOptions, tack as option};

use crate::forwarder::{Link, Rule, clean};
use crate::pattern::exchange;
use crate::world::{host, ip, isolated, options};

/// A server in the near namespace, behind the middlebox.
const SERVER: &str = "10.77.2.2";

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
}

fn ends(paths: [PathConfig; 2], mut rule: Rule) -> Ends {
    let carrying = Arc::<Mutex<[Carrying; 2]>>::default();
    let counted = Arc::clone(&carrying);
    let counting: Rule = Box::new(move |direction, packet| {
        if let Some((header, _)) = packet.tcp()
            && TcpOptions::parse(&header[20..]).tack.is_some()
        {
            let is_syn = Segment::flags(header).is_some_and(|flags| flags.syn());
            let carrying = &mut counted.lock().unwrap()[direction];
            carrying.syns += u32::from(is_syn);
            carrying.others += u32::from(!is_syn);
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

    async fn connect(&self) -> (Stream, Stream) {
        let connect = self.client.connect(SocketAddr::new(ip(SERVER), 80));
        let connect = connect.config(config());
        let (ours, theirs) = tokio::join!(connect.into_future(), self.listener.accept());
        (ours.unwrap(), theirs.unwrap().0)
    }

    /// A transfer both ways; what the two sides counted.
    async fn transfer(&self, len: u64) -> [Stats; 2] {
        let (mut ours, mut theirs) = self.connect().await;
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

#[test]
fn stripped_from_data_the_bytes_arrive_all_the_same() {
    isolated(|| async {
        let ends = ends(stripping(StripFrom::Rest), nothing());
        let stats = ends.transfer(2 << 20).await;
        ends.demand_agreement();
        assert!(stats.iter().all(|side| side.bytes_read == 2 << 20));
    });
}

#[test]
fn stripped_from_some_segments_the_bytes_arrive_all_the_same() {
    isolated(|| async {
        let config = MiddleboxConfig {
            strip: vec![option::OPTION_KIND],
            ..MiddleboxConfig::default()
        };
        let mut boxes = [0, 1].map(|direction| Middlebox::new(config.clone(), 1, direction));
        let mut count = 0_u32;
        let stripped = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&stripped);
        let rule: Rule = Box::new(move |direction, packet| {
            count += 1;
            if count.is_multiple_of(3) && boxes[direction].pass(packet) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            true
        });
        let ends = ends([clean(), clean()], rule);
        let stats = ends.transfer(2 << 20).await;
        ends.demand_agreement();
        assert!(stats.iter().all(|side| side.bytes_read == 2 << 20));
        let stripped = stripped.load(Ordering::Relaxed);
        // Both sides notice after a while, and do without.
        assert!(stripped >= 10, "{stripped} {:?}", ends.carrying());
    });
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
