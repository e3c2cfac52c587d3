//! The kernel and we over a path that loses, reorders, repeats and damages packets: bytes
//! identical, and both streams end.

use std::net::SocketAddr;
use std::time::Duration;

use tack::{Algorithm, Config, Endpoint, ListenOptions};
use tack_sim::impair::loss::{GilbertElliott, LossConfig};
use tack_sim::impair::order::OrderConfig;
use tack_sim::path::PathConfig;
use tokio::net::{TcpListener, TcpStream};

use crate::forwarder::{Link, NEAR, clean};
use crate::pattern::exchange;
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

/// Both opens, both directions of data at once.
async fn both_opens(endpoint: &Endpoint, config: &Config, len: u64, what: &str) {
    let listener = TcpListener::bind((ip(NEAR), 0)).await.unwrap();
    let connect = endpoint.connect(listener.local_addr().unwrap());
    let connect = connect.config(config.clone());
    let (ours, theirs) = tokio::join!(connect.into_future(), listener.accept());
    let (mut ours, mut theirs) = (ours.expect(what), theirs.expect(what).0);
    exchange(&mut ours, &mut theirs, len).await;
    ours.finished().await.expect(what);
    drop(ours);

    let options = ListenOptions::new().config(config.clone());
    let listener = endpoint.listen_with(9000, options).unwrap();
    let address = SocketAddr::new(ip("10.77.1.2"), 9000);
    let (ours, theirs) = tokio::join!(listener.accept(), TcpStream::connect(address));
    let (mut ours, mut theirs) = (ours.expect(what).0, theirs.expect(what));
    exchange(&mut ours, &mut theirs, len).await;
    ours.finished().await.expect(what);
}

/// Every set of SACK, timestamps and window scaling of the kernel's, with our controllers in turn
/// (in the ordinary form nothing, all, and all but SACK).
/// The paths are in namespaces of their own, and most of the time is waiting: all at once.
#[test]
fn the_kernel_and_we_over_an_impaired_path() {
    std::thread::scope(|scope| {
        for (number, (what, path)) in faults().into_iter().enumerate() {
            scope.spawn(move || isolated(move || every_set_of_options(number, what, path)));
        }
    });
}

async fn every_set_of_options(number: usize, what: &'static str, path: PathConfig) {
    let link = Link::new([path.clone(), path], number as u64, Box::new(|_, _| true));
    let mut device = options(1);
    device.mtu = [1500, 1280][number % 2];
    let mtu = device.mtu;
    let endpoint = link.far(|| crate::world::build(Endpoint::builder().mtu(mtu).tun(device)));
    for &bits in crate::sets_of_options() {
        let setting = |bit: u32| if bits >> bit & 1 == 1 { "1" } else { "0" };
        sysctl("ipv4/tcp_sack", setting(0));
        sysctl("ipv4/tcp_timestamps", setting(1));
        sysctl("ipv4/tcp_window_scaling", setting(2));
        let config = Config {
            congestion: [Algorithm::default(), Algorithm::Cubic][bits as usize % 2],
            ..Config::default()
        };
        let what = format!("{what}, options {bits:03b}");
        both_opens(&endpoint, &config, 100_000, &what).await;
    }
}

/// A long stream each way, with everything on.
#[test]
fn long_streams_over_an_impaired_path() {
    isolated(|| async {
        let (_, path) = faults().remove(1);
        let link = Link::new([path.clone(), path], 7, Box::new(|_, _| true));
        let endpoint = link.far(|| host(options(1)));
        both_opens(&endpoint, &Config::default(), 2 << 20, "2 MiB").await;
    });
}
