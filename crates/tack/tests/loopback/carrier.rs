//! What the socket does below the connections.

use std::net::UdpSocket;
use std::process::Command;

use tack::{Coalesce, Config, Endpoint, Segmentation, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::pair::{Pair, check_stream, echo, through_echo, within, write_stream};

#[tokio::test]
async fn streams_need_no_segmentation_offload() {
    let mut pair = Pair::new(Endpoint::builder().segmentation(Segmentation::Single)).await;
    let (client, server) = pair.connect().await;
    within(async { tokio::join!(echo(server), through_echo(client, 1, 2 << 20)) }).await;
    let stats = pair.client.carrier_stats();
    assert_eq!(stats.max_batch, 1);
    assert_eq!(stats.datagrams_sent, stats.batches_sent);
}

#[tokio::test]
async fn streams_run_over_ipv6() {
    let mut pair = Pair::new(Endpoint::builder().bind("[::1]:0".parse().unwrap())).await;
    let (client, server) = pair.connect().await;
    assert!(client.peer_addr().is_ipv6());
    within(async { tokio::join!(echo(server), through_echo(client, 2, 2 << 20)) }).await;
}

#[cfg(target_os = "linux")]
/// Enough for a search, all there at once.
const ENOUGH: usize = 4 << 20;

#[cfg(target_os = "linux")]
async fn pour(stream: &mut Stream) {
    stream.write_all(&vec![7; ENOUGH]).await.unwrap();
}

#[cfg(target_os = "linux")]
async fn drink(stream: &mut Stream) {
    stream.read_exact(&mut vec![0; ENOUGH]).await.unwrap();
}

/// Both ends look for more where the route takes it, and only if they were told to.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn segments_grow_to_what_the_route_takes() {
    let jumbo = Config {
        mss: 8_900,
        base_mss: Some(1460),
        ..Config::default()
    };
    for (bind, config, least, most) in [
        ("127.0.0.1:0", &jumbo, 8_800, 8_900),
        ("[::1]:0", &jumbo, 8_800, 8_900),
        ("127.0.0.1:0", &Config::default(), 1_400, 1_452),
    ] {
        let builder = Endpoint::builder().bind(bind.parse().unwrap());
        let mut pair = Pair::new(builder.config(config.clone())).await;
        let (mut client, mut server) = pair.connect().await;
        within(async { tokio::join!(pour(&mut client), drink(&mut server)) }).await;
        within(async { tokio::join!(pour(&mut server), drink(&mut client)) }).await;
        for stream in [client, server] {
            let mss = stream.stats().mss;
            assert!((least..=most).contains(&mss), "{bind}: {mss}");
        }
    }
}

#[tokio::test]
async fn a_dual_stack_socket_takes_ipv4_peers() {
    let server = Endpoint::builder()
        .bind("[::]:0".parse().unwrap())
        .insecure(true)
        .build()
        .unwrap();
    let listener = server.listen(tack::DEFAULT_PORT).unwrap();
    let client = Endpoint::builder().build().unwrap();
    let address = ("127.0.0.1", server.local_addr().port());
    let (client, server) =
        within(async { tokio::join!(client.connect(address), listener.accept()) }).await;
    let (client, server) = (client.unwrap(), server.unwrap().0);
    assert_eq!(server.peer_addr(), client.local_addr());
    within(async { tokio::join!(echo(server), through_echo(client, 3, 1 << 20)) }).await;
}

#[tokio::test]
async fn garbage_is_counted_and_hurts_nobody() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (mut client, mut server) = pair.connect().await;
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = pair.server.local_addr();
    let mut state = 1_u64;
    let throwing = async {
        for round in 0..2_000_usize {
            let mut datagram = [0; 200];
            for byte in &mut datagram {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 56) as u8;
            }
            // Every length, the empty datagram included.
            stranger.send_to(&datagram[..round % 200], address).unwrap();
            if round % 50 == 0 {
                tokio::task::yield_now().await;
            }
        }
    };
    let writing = write_stream(&mut client, 4, 1 << 20);
    let reading = check_stream(&mut server, 4, 1 << 20);
    within(async { tokio::join!(throwing, writing, reading) }).await;
    assert!(pair.server.carrier_stats().malformed > 0);
}

#[tokio::test]
async fn without_coalescing_the_policy_decides_how_often_to_acknowledge() {
    let mut acks = Vec::new();
    for coalesce in [Coalesce::Off, Coalesce::Batches] {
        // TACK goes by time, and a slow machine has more of that.
        let config = Config {
            ack: "delayed:2".parse().unwrap(),
            ..Config::default()
        };
        let builder = Endpoint::builder().config(config).coalesce(coalesce);
        let mut pair = Pair::new(builder).await;
        let (mut client, mut server) = pair.connect().await;
        let writing = write_stream(&mut client, 5, 8 << 20);
        let reading = check_stream(&mut server, 5, 8 << 20);
        within(async { tokio::join!(writing, reading) }).await;
        let stats = server.stats();
        acks.push(stats.acks as f64 / stats.segments_received as f64);
    }
    let [single, batched] = acks[..] else {
        unreachable!("two runs")
    };
    // delayed:2 is one acknowledgement for two segments, more at the beginning, at the end and for
    // windows.
    assert!(
        (0.45..0.75).contains(&single),
        "{single} acknowledgements a segment"
    );
    assert!(batched < single, "{batched} against {single}");
}

#[tokio::test]
async fn segments_fill_the_mtu_and_no_more() {
    // What is left beside IP, UDP and TCP headers and timestamps.
    for (bind, payload) in [
        ("127.0.0.1:0", 1500 - 28 - 20 - 12),
        ("[::1]:0", 1500 - 48 - 20 - 12),
    ] {
        let mut pair = Pair::new(Endpoint::builder().bind(bind.parse().unwrap())).await;
        let (client, _server) = pair.connect().await;
        assert_eq!(client.stats().mss, payload);
    }
    let config = Config {
        mss: 536,
        ..Config::default()
    };
    let mut pair = Pair::new(Endpoint::builder().config(config)).await;
    let (client, _server) = pair.connect().await;
    assert_eq!(client.stats().mss, 536 - 12);
}

/// In a network namespace of its own, where loopback takes packets of 1,280 bytes only: the kernel
/// refuses batches of longer ones and then each of them.
#[test]
fn a_device_narrower_than_the_mtu_is_adapted_to() {
    pass_in_namespace("ip link set lo mtu 1280 && ip link set lo up");
}

/// As above, but it is the routes that are narrow, as they become by ICMP messages too. The device
/// takes 65,536 bytes.
#[test]
fn a_route_narrower_than_the_mtu_is_adapted_to() {
    pass_in_namespace(
        "ip link set lo up && \
         ip route replace local 127.0.0.1 dev lo table local mtu 1300 && \
         ip -6 route del local ::1 dev lo table local && \
         ip -6 route add local ::1 dev lo table local mtu 1300",
    );
}

/// Runs transfers over IPv4 and IPv6, which must pass, in a network namespace that `set_up`
/// prepares.
fn pass_in_namespace(set_up: &str) {
    let script = format!("{{ {set_up}; }} || exit 99; exec \"$@\"");
    let own = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", &script, "sh"])
        .arg(own)
        .args([
            "--exact",
            "streams::a_mebibyte_comes_back_the_same",
            "carrier::streams_run_over_ipv6",
            "carrier::the_segments_of_a_stream_fit_in_1300_bytes",
            "--include-ignored",
        ])
        .output();
    match output {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("3 passed"), "{said}");
        }
        Ok(output) if matches!(output.status.code(), Some(1 | 99 | 126 | 127)) => {
            tack_skip::skipped(format_args!(
                "no network namespace: {}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        Ok(output) => panic!("{output:?}"),
        Err(error) => tack_skip::skipped(format_args!("no unshare: {error}")),
    }
}

/// Told by the size of the segments: a kernel that sends long ones all the same would let the
/// transfers pass.
#[tokio::test]
#[ignore = "runs where the path is narrow, started by other tests"]
async fn the_segments_of_a_stream_fit_in_1300_bytes() {
    for (bind, overhead) in [("127.0.0.1:0", 28), ("[::1]:0", 48)] {
        let mut pair = Pair::new(Endpoint::builder().bind(bind.parse().unwrap())).await;
        let (mut client, mut server) = pair.connect().await;
        let writing = write_stream(&mut client, 6, 1 << 20);
        let reading = check_stream(&mut server, 6, 1 << 20);
        within(async { tokio::join!(writing, reading) }).await;
        let packet = client.stats().mss + overhead + 20 + 12;
        assert!(packet <= 1300, "{bind}: packets of {packet} bytes");
    }
}
