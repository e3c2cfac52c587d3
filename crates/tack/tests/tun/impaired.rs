//! The kernel and we over a path that loses, reorders, repeats and damages packets: bytes
//! identical, and both streams end. The forwarder's counters show that each fault occurred, and its
//! SYNs that each setting took effect.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tack::{Algorithm, Config, Endpoint, ListenOptions};
use tack_sim::impair::loss::{GilbertElliott, LossConfig};
use tack_sim::impair::order::OrderConfig;
use tack_sim::path::{PathConfig, PathCounters};
use tack_wire::{Segment, TcpOptions};
use tokio::net::{TcpListener, TcpStream};

use crate::covering::{Case, covering};
use crate::forwarder::{BACK, Link, NEAR, NEAR_V6, Rule, THERE, clean};
use crate::pattern::{check_stream, write_stream};
use crate::world::{host, ip, isolated, options, sysctl};

/// What a path does to packets, as its counters call it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Harm {
    Lost,
    Reordered,
    Duplicated,
    Corrupted,
}

impl Harm {
    const ALL: [Self; 4] = [
        Self::Lost,
        Self::Reordered,
        Self::Duplicated,
        Self::Corrupted,
    ];

    fn count(self, counters: &PathCounters) -> u64 {
        match self {
            Self::Lost => counters.lost,
            Self::Reordered => counters.reordered,
            Self::Duplicated => counters.duplicated,
            Self::Corrupted => counters.corrupted,
        }
    }
}

/// A path, and what must occur on it.
#[derive(Clone)]
struct Fault {
    name: &'static str,
    harms: &'static [Harm],
    path: PathConfig,
}

/// Faults, two or more of them at once.
fn faults() -> [Fault; 4] {
    let loss = |bernoulli| LossConfig {
        bernoulli,
        ..LossConfig::default()
    };
    let disorder = |reorder, duplicate| OrderConfig {
        reorder,
        reorder_delay: Duration::from_millis(6),
        duplicate,
    };
    [
        Fault {
            name: "nothing",
            harms: &[],
            path: clean(),
        },
        Fault {
            name: "loss and disorder",
            harms: &[Harm::Lost, Harm::Reordered],
            path: PathConfig {
                loss: loss(0.02),
                order: disorder(0.05, 0.0),
                ..clean()
            },
        },
        Fault {
            name: "bursts and damage",
            harms: &[Harm::Lost, Harm::Corrupted],
            path: PathConfig {
                loss: LossConfig {
                    gilbert_elliott: Some(GilbertElliott {
                        good_to_bad: 0.02,
                        bad_to_good: 0.3,
                        loss_good: 0.0,
                        loss_bad: 0.7,
                    }),
                    ..LossConfig::default()
                },
                corrupt: 0.03,
                ..clean()
            },
        },
        Fault {
            name: "copies, lost acknowledgements and disorder",
            harms: &[Harm::Lost, Harm::Reordered, Harm::Duplicated],
            path: PathConfig {
                loss: LossConfig {
                    acks: 0.2,
                    ..loss(0.005)
                },
                order: disorder(0.1, 0.1),
                ..clean()
            },
        },
    ]
}

/// What SYNs and SYN-ACKs say of SACK, timestamps and window scaling.
type Offer = [bool; 3];

/// What came to the forwarder.
#[derive(Default)]
struct Seen {
    /// Of the SYNs and of the SYN-ACKs of the case.
    offers: [Vec<Offer>; 2],
    /// Pure acknowledgements, by direction.
    acks: [u64; 2],
}

/// Lets everything through, and keeps an account of it.
fn watching(seen: &Arc<Mutex<Seen>>) -> Rule {
    let seen = Arc::clone(seen);
    Box::new(move |direction, packet| {
        let mut seen = seen.lock().unwrap();
        seen.acks[direction] += u64::from(packet.is_pure_ack());
        if let Some((header, _)) = packet.tcp()
            && let Some(flags) = Segment::flags(header).filter(|flags| flags.syn())
        {
            let options = TcpOptions::parse(&header[20..]);
            seen.offers[usize::from(flags.ack())].push([
                options.sack_permitted,
                options.timestamps.is_some(),
                options.window_scale.is_some(),
            ]);
        }
        true
    })
}

/// What a path did, by direction.
struct Done {
    counters: [PathCounters; 2],
    /// Pure acknowledgements that came to it.
    acks: [u64; 2],
}

impl Done {
    fn of(link: &Link, seen: &Mutex<Seen>) -> Self {
        Self {
            counters: link.counters(),
            acks: seen.lock().unwrap().acks,
        }
    }
}

/// What is to occur on the paths of a fault occurred in both directions, and nothing else did. A
/// single case is too short for some of it: all cases of the fault together must show it.
fn demand_harms(fault: &Fault, done: &[Done]) {
    for direction in [THERE, BACK] {
        let sum = |count: &dyn Fn(&Done) -> u64| done.iter().map(count).sum::<u64>();
        let what = format!("{}, direction {direction}", fault.name);
        for harm in Harm::ALL {
            let count = sum(&|done| harm.count(&done.counters[direction]));
            let expected = fault.harms.contains(&harm);
            assert_eq!(count > 0, expected, "{what}: {harm:?} {count} packets");
        }
        if fault.path.loss.acks > 0.0 {
            // One of five is lost at random; of the other packets hardly one of a hundred.
            let lost = sum(&|done| done.counters[direction].lost);
            let acks = sum(&|done| done.acks[direction]);
            assert!(20 * lost >= acks, "{what}: {lost} lost, {acks} ACKs");
        }
    }
}

/// What the cases of the matrix differ by, and how many values each has.
const SETTINGS: [usize; 9] = [
    2, // SACK
    2, // timestamps
    2, // window scaling
    2, // who does without those that are off: the kernel, we
    3, // MTU
    4, // faults
    2, // who opens: we, the kernel
    2, // IPv4, IPv6
    3, // data: from us, from the kernel, both at once
];
/// Their places.
const MTU: usize = 4;
const FAULT: usize = 5;

const MTUS: [u16; 3] = [1280, 1500, 9000];
/// What timeouts back off to: a burst of losses ends with packets, not with time.
const MAX_RTO: Duration = Duration::from_secs(1);
/// Bytes of a stream, where there is one.
const LEN: u64 = 100_000;

/// Opens a connection, and says so much each way.
async fn talk(
    endpoint: &Endpoint,
    config: &Config,
    (by_kernel, is_v6): (bool, bool),
    [ours_len, theirs_len]: [u64; 2],
    what: &str,
) {
    let (near, stack) = match is_v6 {
        false => (NEAR, "10.77.1.2"),
        true => (NEAR_V6, "fd77:1::2"),
    };
    let (mut ours, mut theirs) = if by_kernel {
        let options = ListenOptions::new().config(config.clone());
        let listener = endpoint.listen_with(9000, options).unwrap();
        let address = SocketAddr::new(ip(stack), 9000);
        let (ours, theirs) = tokio::join!(listener.accept(), TcpStream::connect(address));
        (ours.expect(what).0, theirs.expect(what))
    } else {
        let listener = TcpListener::bind((ip(near), 0)).await.unwrap();
        let connect = endpoint.connect(listener.local_addr().unwrap());
        let connect = connect.config(config.clone());
        let (ours, theirs) = tokio::join!(connect.into_future(), listener.accept());
        (ours.expect(what), theirs.expect(what).0)
    };
    let (mut reader, mut writer) = tokio::io::split(&mut ours);
    let (mut their_reader, mut their_writer) = theirs.split();
    tokio::join!(
        write_stream(&mut writer, 1, ours_len),
        check_stream(&mut their_reader, 1, ours_len),
        write_stream(&mut their_writer, 2, theirs_len),
        check_stream(&mut reader, 2, theirs_len),
    );
    ours.finished().await.expect(what);
}

/// SACK, timestamps, window scaling, MTU, faults, who opens, family and direction, each independent
/// of the others: all pairs of values, in the long form all triples. Our controllers take turns.
/// The paths are in namespaces of their own, and most of the time is waiting: all faults at once.
#[test]
fn the_kernel_and_we_over_an_impaired_path() {
    let cases = covering(SETTINGS, if crate::is_long() { 3 } else { 2 });
    std::thread::scope(|scope| {
        for (number, fault) in faults().into_iter().enumerate() {
            let of_fault = cases.iter().filter(|case| case[FAULT] == number);
            let of_fault: Vec<_> = of_fault.copied().collect();
            scope.spawn(move || {
                let all = Arc::<Mutex<Vec<Done>>>::default();
                for (place, mtu) in MTUS.into_iter().enumerate() {
                    let cases = of_fault.iter().filter(|case| case[MTU] == place);
                    let (cases, fault) = (cases.copied().collect::<Vec<_>>(), fault.clone());
                    let seed = (number * MTUS.len() + place) as u64;
                    let all = Arc::clone(&all);
                    isolated(move || async move {
                        let done = matrix(cases, seed, mtu, fault).await;
                        all.lock().unwrap().push(done);
                    });
                }
                let all = all.lock().unwrap();
                // Without a namespace nothing ran.
                if !all.is_empty() {
                    demand_harms(&fault, &all);
                }
            });
        }
    });
}

async fn matrix(cases: Vec<Case<9>>, seed: u64, mtu: u16, fault: Fault) -> Done {
    let seen = Arc::<Mutex<Seen>>::default();
    let paths = [fault.path.clone(), fault.path];
    let link = Link::with_mtu(paths, seed, watching(&seen), mtu);
    let mut device = options(1);
    device.mtu = mtu;
    let endpoint = link.far(|| crate::world::build(Endpoint::builder().mtu(mtu).tun(device)));
    // Kernels before 6.15 do not have it.
    let max = MAX_RTO.as_millis().to_string();
    let _ = std::fs::write("/proc/sys/net/ipv4/tcp_rto_max_ms", max);
    for (number, case) in cases.into_iter().enumerate() {
        let [sack, timestamps, scaling, by_us, _, _, opener, family, data] = case;
        let setting = |value: usize| if value == 1 || by_us == 1 { "1" } else { "0" };
        sysctl("ipv4/tcp_sack", setting(sack));
        sysctl("ipv4/tcp_timestamps", setting(timestamps));
        sysctl("ipv4/tcp_window_scaling", setting(scaling));
        let on = |value: usize| value == 1 || by_us == 0;
        let config = Config {
            sack: on(sack),
            timestamps: on(timestamps),
            window_scaling: on(scaling),
            congestion: [Algorithm::default(), Algorithm::CUBIC][number % 2],
            max_rto: MAX_RTO,
            ..Config::default()
        };
        let len = [[LEN, 0], [0, LEN], [LEN, LEN]][data];
        let what = format!("{}, MTU {mtu}, {case:?}", fault.name);
        talk(&endpoint, &config, (opener == 1, family == 1), len, &what).await;

        let offers = std::mem::take(&mut seen.lock().unwrap().offers);
        // One side has all options on. The SYN is that of the opener; the SYN-ACK has what both
        // sides have on.
        let common = [sack, timestamps, scaling].map(|value| value == 1);
        let opener_has_all = (opener == 1) == (by_us == 1);
        let syn = if opener_has_all { [true; 3] } else { common };
        for (offers, expected, name) in [(&offers[0], syn, "SYN"), (&offers[1], common, "SYN-ACK")]
        {
            let right = offers.iter().all(|offer| *offer == expected);
            assert!(
                right && !offers.is_empty(),
                "{what}: expected {expected:?} of each {name}, got {offers:?}"
            );
        }
    }
    Done::of(&link, &seen)
}

/// A long stream each way, with everything on.
#[test]
fn long_streams_over_an_impaired_path() {
    isolated(|| async {
        let [_, fault, ..] = faults();
        let seen = Arc::<Mutex<Seen>>::default();
        let paths = [fault.path.clone(), fault.path.clone()];
        let link = Link::new(paths, 7, watching(&seen));
        let endpoint = link.far(|| host(options(1)));
        for by_kernel in [false, true] {
            let len = [2 << 20; 2];
            talk(
                &endpoint,
                &Config::default(),
                (by_kernel, by_kernel),
                len,
                "2 MiB",
            )
            .await;
        }
        demand_harms(&fault, &[Done::of(&link, &seen)]);
    });
}
