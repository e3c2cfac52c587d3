//! The kernel's TCP on the other side: bytes identical both ways, both streams ended.

use std::net::SocketAddr;
use std::process::Command;

use tack::{Config, Endpoint, Stream};
use tokio::net::{TcpListener, TcpStream};

use crate::pattern::exchange;
use crate::world::{build, host, ip, isolated, options, sysctl};

/// The addresses of the kernel and of the stack on device 0.
const HOSTS: [(&str, &str); 2] = [("10.77.0.1", "10.77.0.2"), ("fd77:0::1", "fd77:0::2")];

/// A connection that we open to the kernel.
async fn to_kernel(endpoint: &Endpoint, kernel: &str, config: &Config) -> (Stream, TcpStream) {
    let listener = TcpListener::bind((ip(kernel), 0)).await.unwrap();
    let connect = endpoint.connect(listener.local_addr().unwrap());
    let connect = connect.config(config.clone());
    let (ours, theirs) = tokio::join!(connect.into_future(), listener.accept());
    (ours.unwrap(), theirs.unwrap().0)
}

/// A connection that the kernel opens to us.
async fn from_kernel(endpoint: &Endpoint, stack: &str, config: &Config) -> (Stream, TcpStream) {
    let options = tack::ListenOptions::new().config(config.clone());
    let listener = endpoint.listen_with(8000, options).unwrap();
    let address = SocketAddr::new(ip(stack), 8000);
    let (ours, theirs) = tokio::join!(listener.accept(), TcpStream::connect(address));
    (ours.unwrap().0, theirs.unwrap())
}

/// Both streams have ended: the connection closes in order on our side.
async fn ends_well(stream: Stream) {
    let finished = stream.finished().await;
    finished.expect("the peer has everything");
}

/// Which of SACK, timestamps and window scaling are in use, as the kernel has it.
fn in_use(theirs: &TcpStream) -> [bool; 3] {
    let [own, peer] = [theirs.local_addr(), theirs.peer_addr()].map(|it| it.unwrap().port());
    let (own, peer) = (format!(":{own}"), format!(":{peer}"));
    let output = Command::new("ss")
        .args(["-Htino", "sport", "=", &own, "and", "dport", "=", &peer])
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("ESTAB"), "{own} {peer}: {shown}");
    let mut uses = [false; 3];
    for word in shown.split_whitespace() {
        uses[0] |= word == "sack";
        uses[1] |= word == "ts";
        uses[2] |= word.starts_with("wscale:");
    }
    uses
}

/// Streams on connections that either side opens; `check` looks at each of them first.
async fn both_ways(endpoint: &Endpoint, config: &Config, len: u64, check: impl Fn(&TcpStream)) {
    for (kernel, stack) in HOSTS {
        let (mut ours, mut theirs) = to_kernel(endpoint, kernel, config).await;
        assert_eq!(ours.peer_addr(), theirs.local_addr().unwrap());
        assert_eq!(ours.local_addr(), theirs.peer_addr().unwrap());
        check(&theirs);
        exchange(&mut ours, &mut theirs, len).await;
        ends_well(ours).await;
        let (mut ours, mut theirs) = from_kernel(endpoint, stack, config).await;
        assert_eq!(ours.peer_addr(), theirs.local_addr().unwrap());
        check(&theirs);
        exchange(&mut ours, &mut theirs, len).await;
        ends_well(ours).await;
    }
}

#[test]
fn streams_with_the_kernel_are_right_both_ways() {
    isolated(|| async {
        let endpoint = host(options(0));
        both_ways(&endpoint, &Config::default(), 4 << 20, |_| {}).await;
        let stats = endpoint.carrier_stats();
        assert_eq!((stats.malformed, stats.send_failures), (0, 0), "{stats:?}");
    });
}

#[test]
fn streams_with_the_kernel_are_right_without_offload() {
    isolated(|| async {
        let mut plain = options(0);
        plain.offload = false;
        let endpoint = host(plain);
        both_ways(&endpoint, &Config::default(), 1 << 20, |_| {}).await;
        let stats = endpoint.carrier_stats();
        assert_eq!((stats.malformed, stats.send_failures), (0, 0), "{stats:?}");
    });
}

/// The kernel does not know TACK: the connection is that of any two hosts.
#[test]
fn the_kernel_gets_plain_tcp() {
    isolated(|| async {
        let endpoint = host(options(0));
        let (mut ours, mut theirs) = to_kernel(&endpoint, "10.77.0.1", &Config::default()).await;
        exchange(&mut ours, &mut theirs, 1 << 20).await;
        let stats = ours.stats();
        // Data carries most acknowledgements: which of the others there are depends on the hosts.
        let reports = [stats.acks_tack, stats.acks_sync, stats.syncs];
        assert_eq!(reports, [0; 3], "{stats:?}");
        assert!(stats.acks > 0, "{stats:?}");
        ends_well(ours).await;
    });
}

/// What either side may do without: SACK, timestamps, window scaling, on ours or the kernel's, with
/// small packets and large ones (in the ordinary form nothing, all, and all but SACK). The kernel
/// tells which of them are in use. The test mostly waits, so all cases run at once, each in its own
/// namespace.
#[test]
fn every_set_of_options_works() {
    let no_ss = tack_skip::lacks(&["ss"]);
    if let Some(why) = &no_ss {
        tack_skip::skipped(format!(
            "{why}: whether the settings took effect is not seen"
        ));
    }
    let is_seen = no_ss.is_none();
    std::thread::scope(|scope| {
        for mtu in [1280, 1500, 9000] {
            for offload in [true, false] {
                scope.spawn(move || isolated(move || every_set_of_options(mtu, offload, is_seen)));
            }
        }
    });
}

async fn every_set_of_options(mtu: u16, offload: bool, is_seen: bool) {
    let mut device = options(0);
    device.mtu = mtu;
    device.offload = offload;
    let endpoint = build(Endpoint::builder().mtu(mtu).tun(device));
    for &bits in crate::sets_of_options() {
        let on = |bit: u32| bits >> bit & 1 == 1;
        // The kernel does without in one half of the cases, we in the other.
        let setting = |bit| if on(bit) { "1" } else { "0" };
        let (theirs, config) = if (bits + u32::from(offload)) % 2 == 0 {
            ([setting(0), setting(1), setting(2)], Config::default())
        } else {
            let config = Config {
                sack: on(0),
                timestamps: on(1),
                window_scaling: on(2),
                ..Config::default()
            };
            (["1"; 3], config)
        };
        sysctl("ipv4/tcp_sack", theirs[0]);
        sysctl("ipv4/tcp_timestamps", theirs[1]);
        sysctl("ipv4/tcp_window_scaling", theirs[2]);
        let check = |theirs: &TcpStream| {
            // The other side has them all on: in use is what both have.
            let expected = [0, 1, 2].map(on);
            if is_seen {
                assert_eq!(in_use(theirs), expected, "MTU {mtu}, {theirs:?}");
            }
        };
        both_ways(&endpoint, &config, 200_000, check).await;
    }
    let stats = endpoint.carrier_stats();
    assert_eq!((stats.malformed, stats.send_failures), (0, 0), "{stats:?}");
    drop(endpoint);
    // The device is gone once the endpoint's task has ended.
    while std::fs::read_to_string("/proc/thread-self/net/dev")
        .unwrap()
        .contains("tun")
    {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// A port that nobody listens on is refused at once, on either side.
#[test]
fn closed_ports_are_refused() {
    isolated(|| async {
        let endpoint = host(options(0));
        for (kernel, stack) in HOSTS {
            let error = endpoint
                .connect(SocketAddr::new(ip(kernel), 9))
                .await
                .unwrap_err();
            assert!(
                matches!(error, tack::ConnectError::Refused { port: 9, .. }),
                "{error}"
            );
            let error = TcpStream::connect((ip(stack), 9)).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
        }
    });
}
