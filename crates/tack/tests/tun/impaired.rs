//! The kernel and we over a path that loses, reorders, repeats and damages packets: bytes
//! identical, and both streams end.

use std::net::SocketAddr;
use std::time::Duration;

use tack::{Algorithm, Config, Endpoint, ListenOptions};
use tack_sim::impair::loss::{GilbertElliott, LossConfig};
use tack_sim::impair::order::OrderConfig;
use tack_sim::path::PathConfig;
use tokio::net::{TcpListener, TcpStream};

use crate::covering::{Case, covering};
use crate::forwarder::{Link, NEAR, NEAR_V6, clean};
use crate::pattern::{check_stream, write_stream};
use crate::world::{host, ip, isolated, options, sysctl};

/// Faults, two or more of them at once.
fn faults() -> Vec<(&'static str, PathConfig)> {
    let loss = |bernoulli| LossConfig {
        bernoulli,
        ..LossConfig::default()
    };
    let disorder = |reorder, duplicate| OrderConfig {
        reorder,
        reorder_delay: Duration::from_millis(6),
        duplicate,
    };
    vec![
        ("nothing", clean()),
        (
            "loss and disorder",
            PathConfig {
                loss: loss(0.02),
                order: disorder(0.05, 0.0),
                ..clean()
            },
        ),
        (
            "bursts and damage",
            PathConfig {
                loss: LossConfig {
                    gilbert_elliott: Some(GilbertElliott {
                        good_to_bad: 0.005,
                        bad_to_good: 0.3,
                        loss_good: 0.0,
                        loss_bad: 0.7,
                    }),
                    ..LossConfig::default()
                },
                corrupt: 0.01,
                ..clean()
            },
        ),
        (
            "copies, lost acknowledgements and disorder",
            PathConfig {
                loss: LossConfig {
                    acks: 0.2,
                    ..loss(0.005)
                },
                order: disorder(0.1, 0.1),
                ..clean()
            },
        ),
    ]
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
        for (number, (what, path)) in faults().into_iter().enumerate() {
            let of_fault = cases.iter().filter(|case| case[FAULT] == number);
            let of_fault: Vec<_> = of_fault.copied().collect();
            scope.spawn(move || {
                for (place, mtu) in MTUS.into_iter().enumerate() {
                    let cases = of_fault.iter().filter(|case| case[MTU] == place);
                    let (cases, path) = (cases.copied().collect::<Vec<_>>(), path.clone());
                    let seed = (number * MTUS.len() + place) as u64;
                    isolated(move || matrix(cases, seed, mtu, what, path));
                }
            });
        }
    });
}

async fn matrix(cases: Vec<Case<9>>, seed: u64, mtu: u16, what: &'static str, path: PathConfig) {
    let link = Link::with_mtu([path.clone(), path], seed, Box::new(|_, _| true), mtu);
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
            congestion: [Algorithm::default(), Algorithm::Cubic][number % 2],
            max_rto: MAX_RTO,
            ..Config::default()
        };
        let len = [[LEN, 0], [0, LEN], [LEN, LEN]][data];
        let what = format!("{what}, MTU {mtu}, {case:?}");
        talk(&endpoint, &config, (opener == 1, family == 1), len, &what).await;
    }
}

/// A long stream each way, with everything on.
#[test]
fn long_streams_over_an_impaired_path() {
    isolated(|| async {
        let (_, path) = faults().remove(1);
        let link = Link::new([path.clone(), path], 7, Box::new(|_, _| true));
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
    });
}
