//! Real sockets on loopback with emulated Wi-Fi between them. Nothing here asserts how long
//! anything took.

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use tack_emulator::{Counting, Emulator, MAX_DATAGRAM, Settings, StartError, Summary};
use tack_io::{Clock, Datagrams, UdpOptions};
use tack_sim::Scenario;
use tack_wire::{Ecn, Flags, Header, SeqNum, Timestamps};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn scenario(settings: &[&str]) -> Scenario {
    let overrides: Vec<_> = settings.iter().map(|text| (*text).to_owned()).collect();
    Scenario::from_toml("test", "[wlan]\n[[flow]]\n", &overrides).unwrap()
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn start(far: &UdpSocket, settings: &[&str]) -> Emulator {
    start_with(far, settings, |_| {})
}

fn start_with(far: &UdpSocket, settings: &[&str], adjust: impl FnOnce(&mut Settings)) -> Emulator {
    let listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let mut settings = Settings::new(scenario(settings), listen, far.local_addr().unwrap());
    adjust(&mut settings);
    Emulator::start(settings).unwrap()
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 2_000];
    let (len, from) = socket.recv_from(&mut buffer).expect("a datagram comes");
    (buffer[..len].to_vec(), from)
}

/// Number, length and a sum: a failure prints these rather than a thousand bytes.
fn describe(datagram: &[u8]) -> (u32, usize, u64) {
    let number = datagram
        .first_chunk()
        .map_or(u32::MAX, |bytes| u32::from_be_bytes(*bytes));
    let sum = datagram.iter().map(|byte| u64::from(*byte)).sum();
    (number, datagram.len(), sum)
}

fn check_sums(summary: &Summary) {
    let total = summary.air_shares.total();
    assert!((total - 1.0).abs() < 1e-6, "{total}");
    assert_eq!(
        summary.lateness.deliveries,
        summary.up.delivered + summary.down.delivered
    );
    assert_eq!(
        summary.trust.ok,
        summary.trust.reasons.is_empty(),
        "{:?}",
        summary.trust
    );
}

#[test]
fn datagrams_cross_both_ways_whole_and_in_order() {
    const COUNT: u32 = 320;
    const ROUND: u32 = 40;
    let (client, far) = (socket(), socket());
    let emulator = start(&far, &[]);
    let datagram = |number: u32| -> Vec<u8> {
        let len = 4 + (number as usize * 37) % (MAX_DATAGRAM - 4);
        let mut bytes = vec![number as u8; len];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        bytes
    };
    // Few at a time: what waits for this thread has to fit a socket's buffer, however long it is
    // kept from running.
    let few = |round: u32| round * ROUND..(round + 1) * ROUND;
    for round in 0..COUNT / ROUND {
        for number in few(round) {
            client
                .send_to(&datagram(number), emulator.local_addr())
                .unwrap();
        }
        for number in few(round) {
            let (bytes, from) = receive(&far);
            assert_eq!(
                describe(&bytes),
                describe(&datagram(number)),
                "datagram {number}"
            );
            far.send_to(&bytes, from).unwrap();
        }
        for number in few(round) {
            let (bytes, from) = receive(&client);
            assert_eq!(
                describe(&bytes),
                describe(&datagram(number)),
                "answer {number}"
            );
            assert_eq!(from, emulator.local_addr());
        }
    }
    let summary = emulator.stop().unwrap();
    check_sums(&summary);
    for totals in [summary.up, summary.down] {
        assert_eq!(totals.datagrams, u64::from(COUNT));
        assert_eq!(totals.delivered, u64::from(COUNT));
        assert_eq!(totals.acks + totals.data, u64::from(COUNT));
        assert_eq!(totals.bytes, totals.delivered_bytes);
    }
    assert_eq!(summary.flows.len(), 1);
    assert_eq!(summary.flows[0].counted, Counting::Size);
    assert!(summary.air_shares.data > 0.0 && summary.air_shares.control > 0.0);
}

#[test]
fn every_client_has_a_flow_of_its_own_and_they_share_the_air() {
    let far = socket();
    let emulator = start(&far, &["wlan.stations=2"]);
    let clients = [socket(), socket(), socket()];
    for (number, client) in clients.iter().enumerate() {
        client
            .send_to(&[number as u8; 500], emulator.local_addr())
            .unwrap();
    }
    let mut upstreams = Vec::new();
    for _ in &clients {
        let (bytes, from) = receive(&far);
        far.send_to(&bytes, from).unwrap();
        upstreams.push(from);
    }
    upstreams.sort();
    upstreams.dedup();
    assert_eq!(upstreams.len(), 3, "the far side can tell them apart");
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(receive(client).0, [number as u8; 500]);
    }
    let summary = emulator.stop().unwrap();
    check_sums(&summary);
    assert_eq!(summary.flows_seen, 3);
    let mut stations: Vec<_> = summary.flows.iter().map(|flow| &flow.station[..]).collect();
    stations.sort_unstable();
    assert_eq!(stations, ["sta0", "sta0", "sta1"]);
    for flow in &summary.flows {
        assert_eq!((flow.up.delivered, flow.down.delivered), (1, 1));
    }
    let mut sum = tack_emulator::Totals::default();
    for flow in &summary.flows {
        sum += flow.up;
    }
    assert_eq!(sum, summary.up);
}

#[test]
fn a_queue_that_is_full_drops_and_the_air_is_the_limit() {
    let (client, far) = (socket(), socket());
    let emulator = start(&far, &["wlan.queue=20p", "wlan.standard=802.11b"]);
    for _ in 0..100 {
        client
            .send_to(&[7; MAX_DATAGRAM], emulator.local_addr())
            .unwrap();
    }
    let mut received = 0;
    far.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut buffer = [0; 2_000];
    while far.recv_from(&mut buffer).is_ok() {
        received += 1;
    }
    let summary = emulator.stop().unwrap();
    check_sums(&summary);
    assert_eq!(summary.up.datagrams, 100);
    assert_eq!(summary.up.delivered, received);
    assert_eq!(summary.wlan.as_ref().unwrap().queue_drops + received, 100);
    assert!(received >= 20, "{received}");
}

#[test]
fn hostile_datagrams_are_counted_and_harmless() {
    let (client, far, stranger) = (socket(), socket(), socket());
    let emulator = start_with(&far, &[], |settings| settings.max_flows = 2);
    let send = |socket: &UdpSocket, bytes: &[u8]| {
        socket.send_to(bytes, emulator.local_addr()).unwrap();
    };
    send(&client, b"first");
    let (_, upstream) = receive(&far);
    // Too long to pass, in both directions; nothing at all; from an address that is not the far
    // side's.
    send(&client, &[1; MAX_DATAGRAM + 1]);
    far.send_to(&[1; MAX_DATAGRAM + 1], upstream).unwrap();
    stranger.send_to(b"hello", upstream).unwrap();
    // Half a SYN, headers that lie about their length, noise.
    for bytes in [&[0x02; 14][..], &[0xff; 20], &[0x00; 60], &[0xa5; 1_000]] {
        send(&client, bytes);
        assert_eq!(receive(&far).0, bytes);
    }
    // A second flow fits, a crowd does not.
    let second = socket();
    send(&second, b"second");
    assert_eq!(receive(&far).0, b"second");
    let crowd: Vec<_> = (0..50).map(|_| socket()).collect();
    for one in &crowd {
        send(one, b"let me in");
    }
    // Those that are in go on, before and behind.
    send(&client, b"last");
    assert_eq!(receive(&far).0, b"last");
    far.send_to(b"answer", upstream).unwrap();
    assert_eq!(receive(&client).0, b"answer");
    let summary = emulator.stop().unwrap();
    check_sums(&summary);
    assert_eq!(summary.flows.len(), 2);
    assert_eq!(summary.dropped.unfit, 2);
    assert_eq!(summary.dropped.unknown_sources, 1);
    assert_eq!(summary.dropped.table_full, 50);
}

#[test]
fn damage_on_the_path_is_caught_like_by_a_checksum() {
    let (client, far) = (socket(), socket());
    let emulator = start(&far, &["wired.corrupt_reverse=1.0"]);
    client.send_to(&[3; 400], emulator.local_addr()).unwrap();
    far.set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    assert!(
        far.recv_from(&mut [0; 2_000]).is_err(),
        "nothing comes through"
    );
    let summary = emulator.stop().unwrap();
    assert_eq!(summary.dropped.damaged, 1);
    assert_eq!(summary.up.delivered, 0);
}

#[test]
fn samples_come_while_it_runs_and_json_at_the_end() {
    let (client, far) = (socket(), socket());
    let mut emulator = start_with(&far, &[], |settings| {
        settings.sample_interval = Duration::from_millis(5);
    });
    let mut samples = emulator.take_samples().unwrap();
    assert!(emulator.take_samples().is_none());
    client.send_to(&[9; 1_000], emulator.local_addr()).unwrap();
    let mut last = 0.0;
    loop {
        let sample = samples.blocking_recv().expect("the emulator runs");
        assert!(sample.seconds > last);
        last = sample.seconds;
        assert!((sample.air.total() - sample.seconds).abs() < 1e-6);
        if sample.up.delivered == 1 {
            assert_eq!(sample.flows, 1);
            break;
        }
    }
    let summary = emulator.stop().unwrap();
    let json: serde_json::Value = serde_json::from_str(&summary.to_json()).unwrap();
    assert_eq!(json["up"]["datagrams"], 1);
    assert_eq!(json["trust"]["ok"], summary.trust.ok);
    assert!(samples.blocking_recv().is_none() || samples.is_closed());
}

#[test]
fn ipv6_is_relayed_and_answered_too() {
    let loopback = || UdpSocket::bind("[::1]:0");
    let (Ok(client), Ok(far)) = (loopback(), loopback()) else {
        tack_skip::skipped("no IPv6 on the loopback interface");
        return;
    };
    for socket in [&client, &far] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let emulator = start_with(&far, &[], |settings| {
        settings.listen = "[::1]:0".parse().unwrap();
    });
    client.send_to(b"there", emulator.local_addr()).unwrap();
    let (bytes, from) = receive(&far);
    assert_eq!(bytes, b"there");
    far.send_to(b"back", from).unwrap();
    assert_eq!(receive(&client).0, b"back");
    check_sums(&emulator.stop().unwrap());
}

/// A TCP segment, as the UDP carrier sends it.
fn segment(flags: Flags, number: u32, payload: usize) -> Vec<u8> {
    let mut header = Header {
        src_port: 40_000,
        dst_port: 7_777,
        seq: SeqNum(number),
        flags,
        window: 500,
        ..Header::default()
    };
    if flags.ack() {
        header.ack = SeqNum(1_000_000 + number);
        // As in a fast transfer, in which many acknowledgements have the same.
        header.options.timestamps = Some(Timestamps {
            value: 7_000,
            echo: 9_000,
        });
    }
    let mut bytes = vec![0; header.encoded_len() + payload];
    header.emit(&mut bytes);
    bytes
}

/// A burst of acknowledgements of one flow behind data that fills the air, as often as it takes for
/// chance to have no say. The flow begins with `first`. Returns what was sent and what came of it.
fn acknowledge(settings: &[&str], first: &[u8]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>, Summary) {
    const ACKS: u32 = 40;
    let (client, far) = (socket(), socket());
    let emulator = start(&far, &[&["wlan.standard=802.11b"], settings].concat());
    client.send_to(first, emulator.local_addr()).unwrap();
    assert_eq!(receive(&far).0, first);
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for round in 0..5 {
        let data = (0..10).map(|_| segment(Flags::ACK, 0, 1_400));
        let acks = (1..=ACKS).map(|number| segment(Flags::ACK, 1_000 * (round * ACKS + number), 0));
        let burst: Vec<_> = data.chain(acks).collect();
        for datagram in &burst {
            client.send_to(datagram, emulator.local_addr()).unwrap();
        }
        // The last one is dropped by no filter: nothing newer comes behind it.
        let last = burst.last().unwrap();
        while received.last() != Some(last) {
            received.push(receive(&far).0);
        }
        sent.extend(burst);
    }
    let summary = emulator.stop().unwrap();
    check_sums(&summary);
    (sent, received, summary)
}

/// True when `part` is `whole` without some of it, in the same order.
fn is_subsequence(part: &[Vec<u8>], whole: &[Vec<u8>]) -> bool {
    let mut whole = whole.iter();
    part.iter()
        .all(|datagram| whole.any(|other| other == datagram))
}

#[test]
fn a_filter_drops_acknowledgements_that_a_newer_one_replaces() {
    let syn = segment(Flags::SYN, 0, 0);
    for mode in ["paper", "safe", "cake_aggressive"] {
        let filter = format!("wlan.ack_filter={mode}");
        let (sent, received, summary) = acknowledge(&[&filter], &syn);
        assert_eq!(summary.flows[0].counted, Counting::Tcp);
        assert!(summary.wlan.as_ref().unwrap().acks_filtered > 0, "{mode}");
        let dropped = sent.len() - received.len();
        assert_eq!(
            summary.wlan.as_ref().unwrap().acks_filtered,
            dropped as u64,
            "{mode}"
        );
        // All data comes, and what comes is in order.
        assert!(is_subsequence(&received, &sent), "{mode}");
        let data = |datagrams: &[Vec<u8>]| datagrams.iter().filter(|one| one.len() > 1_400).count();
        assert_eq!(data(&received), data(&sent), "{mode}");
    }
}

#[test]
fn without_a_filter_or_for_what_is_no_tcp_every_datagram_arrives() {
    let syn = segment(Flags::SYN, 0, 0);
    let (sent, received, _) = acknowledge(&[], &syn);
    assert!(received == sent);
    // The same bytes in a flow that did not begin as TCP: they may be anything, and nothing looks
    // into them.
    let settings = ["wlan.ack_filter=paper", "wlan.hack=timer"];
    let (sent, received, summary) = acknowledge(&settings, b"hello");
    assert!(received == sent);
    assert_eq!(summary.flows[0].counted, Counting::Size);
    assert_eq!(summary.wlan.as_ref().unwrap().acks_filtered, 0);
    assert_eq!(
        summary.wlan.as_ref().unwrap().hack.unwrap().compressed_acks,
        0
    );
}

/// Each segment of data is answered, and the answers travel inside the link's acknowledgements of
/// the next ones.
#[test]
fn hack_carries_acknowledgements_and_they_arrive_as_they_were() {
    let (client, far) = (socket(), socket());
    // It waits for longer than this thread is ever kept from running between two sends.
    let emulator = start(&far, &["wlan.hack=timer", "wlan.hack_timer=1s"]);
    let syn = segment(Flags::SYN, 0, 0);
    client.send_to(&syn, emulator.local_addr()).unwrap();
    let (_, upstream) = receive(&far);
    let mut sent = Vec::new();
    for number in 1..=200 {
        let data = segment(Flags::ACK, 1_448 * number, 1_448 - 20);
        far.send_to(&data, upstream).unwrap();
        assert!(receive(&client).0 == data);
        let ack = segment(Flags::ACK, 1_448 * number, 0);
        client.send_to(&ack, emulator.local_addr()).unwrap();
        sent.push(ack);
    }
    let mut received = Vec::new();
    while received.last() != sent.last() {
        received.push(receive(&far).0);
    }
    assert!(is_subsequence(&received, &sent), "none is changed");
    let summary = emulator.stop().unwrap();
    check_sums(&summary);
    let hack = summary.wlan.as_ref().unwrap().hack.unwrap();
    assert!(hack.rebuilt > 0, "{hack:?}");
    assert_eq!(
        summary.wlan.as_ref().unwrap().acks_in_link_acks,
        hack.rebuilt
    );
    assert_eq!(
        (hack.differing, hack.crc_failures, hack.decode_failures),
        (0, 0, 0)
    );
    assert!(hack.compressed_bytes < hack.original_bytes / 3, "{hack:?}");
    assert_eq!(summary.up.delivered, received.len() as u64 + 1);
}

/// Batches of data that promise another one, while their answers come: with MORE DATA those ride on
/// the next Block ACK. Native ones wait behind their sender's own data, where the filter sees them.
#[test]
fn hack_and_a_filter_work_side_by_side() {
    const ROUNDS: u32 = 12;
    const BATCH: u32 = 40;
    let (client, far) = (socket(), socket());
    let settings = [
        "wlan.rate=15Mbps",
        "wlan.ampdu_max_frames=8",
        "wlan.hack=more-data",
        "wlan.ack_filter=safe",
    ];
    let emulator = start(&far, &settings);
    let syn = segment(Flags::SYN, 0, 0);
    client.send_to(&syn, emulator.local_addr()).unwrap();
    let (_, upstream) = receive(&far);
    let mut sent = vec![segment(Flags::ACK, 0, 0)];
    client.send_to(&sent[0], emulator.local_addr()).unwrap();
    let mut received = vec![receive(&far).0];
    let (mut number, mut own) = (0, 0);
    for _ in 0..ROUNDS {
        for _ in 0..BATCH {
            number += 1;
            let data = segment(Flags::ACK, 1_448 * number, 1_428);
            far.send_to(&data, upstream).unwrap();
        }
        for answered in number - BATCH + 1..=number {
            receive(&client);
            if answered % 5 == 0 {
                own += 1;
                let data = segment(Flags::ACK, 1_000_000 + 1_448 * own, 1_428);
                client.send_to(&data, emulator.local_addr()).unwrap();
                sent.push(data);
            }
            let ack = segment(Flags::ACK, 1_448 * answered, 0);
            client.send_to(&ack, emulator.local_addr()).unwrap();
            sent.push(ack);
        }
        // The newest acknowledgement arrives, and all data does.
        let last = sent.last().unwrap();
        let is_data = |datagram: &&Vec<u8>| datagram.len() > 1_400;
        let expected = sent.iter().filter(is_data).count();
        while !received.contains(last) || received.iter().filter(is_data).count() < expected {
            received.push(receive(&far).0);
        }
    }
    let summary = emulator.stop().unwrap();
    check_sums(&summary);
    let hack = summary.wlan.as_ref().unwrap().hack.unwrap();
    assert!(hack.compressed_acks > 0 && hack.rebuilt > 0, "{hack:?}");
    let wrong = [hack.differing, hack.crc_failures, hack.decode_failures];
    assert_eq!(wrong, [0; 3], "{hack:?}");
    assert!(summary.wlan.as_ref().unwrap().acks_filtered > 0);
    // What a response carries overtakes data that waits, so each kind has its own order; and an
    // acknowledgement that was carried and cleared may come once more.
    let of = |datagrams: &[Vec<u8>], is_data: bool| -> Vec<Vec<u8>> {
        let kind = |one: &&Vec<u8>| (one.len() > 1_400) == is_data;
        datagrams.iter().filter(kind).cloned().collect()
    };
    assert!(of(&received, true) == of(&sent, true), "all data, in order");
    let mut acks = of(&received, false);
    acks.dedup();
    assert!(acks.iter().all(|ack| sent.contains(ack)), "none is changed");
    assert!(is_subsequence(&acks, &of(&sent, false)), "in order");
}

/// The ECN codepoint of a datagram that crosses a path with these settings, sent with `sent`.
async fn codepoint(sent: Ecn, settings: &[&str]) -> Ecn {
    let open = || {
        let any = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        UdpOptions::new(any).open().unwrap()
    };
    let ((mut client, _), (far, mut received)) = (open(), open());
    let listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let settings = Settings::new(scenario(settings), listen, far.local_addr());
    let emulator = Emulator::start(settings).unwrap();
    poll_fn(|cx| client.poll_writable(cx)).await.unwrap();
    let datagrams = Datagrams {
        peer: emulator.local_addr(),
        ecn: sent,
        contents: b"marked?",
        segment_size: 7,
    };
    client.send(&datagrams).unwrap();
    let clock = Clock::new();
    let arrival = async {
        loop {
            poll_fn(|cx| received.poll_readable(cx)).await.unwrap();
            if let Ok(mut received) = received.receive(&clock) {
                return received.next().map(|datagrams| datagrams.ecn);
            }
        }
    };
    let ecn = tokio::time::timeout(PATIENCE, arrival).await.unwrap();
    emulator.stop().unwrap();
    ecn.unwrap()
}

#[tokio::test]
async fn congestion_marks_pass_and_are_made() {
    assert_eq!(codepoint(Ecn::Ect0, &[]).await, Ecn::Ect0);
    assert_eq!(codepoint(Ecn::NotEct, &[]).await, Ecn::NotEct);
    let marking = ["wired.ecn_mark_reverse=1.0"];
    assert_eq!(codepoint(Ecn::Ect0, &marking).await, Ecn::Ce);
    assert_eq!(codepoint(Ecn::NotEct, &marking).await, Ecn::NotEct);
}

#[test]
fn what_cannot_be_emulated_is_refused_with_the_reason() {
    let listen: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let wired = Scenario::from_toml("test", "[[flow]]", &[]).unwrap();
    let error = Emulator::start(Settings::new(wired, listen, listen)).unwrap_err();
    assert!(matches!(error, StartError::NoWireless), "{error}");
    let to = "[::1]:9".parse().unwrap();
    let error = Emulator::start(Settings::new(scenario(&[]), listen, to)).unwrap_err();
    assert!(matches!(error, StartError::Families { .. }), "{error}");
    let taken = socket();
    let settings = Settings::new(scenario(&[]), taken.local_addr().unwrap(), listen);
    let error = Emulator::start(settings).unwrap_err();
    assert!(error.to_string().starts_with("cannot listen on"), "{error}");
}
