//! ICMP: errors that are heard, errors that are not believed, and echo requests.

use std::io::Read;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tack::Config;
use tack_sim::packet::Packet;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::forwarder::{BACK, Link, NEAR, Rule, clean};
use crate::pattern::exchange;
use crate::stand_ins::StandIns;
use crate::world::{host, ip, isolated, options, sysctl};

/// Routes for another host behind this one, by `ip`.
fn run(line: &str) {
    let mut words = line.split(' ');
    let output = Command::new(words.next().unwrap())
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
}

/// A host that cannot be reached ends an attempt to connect at once, without waiting for SYN
/// retransmissions.
#[test]
fn an_unreachable_host_is_told_at_once() {
    if let Some(why) = tack_skip::lacks(&["ip"]) {
        return tack_skip::skipped(why);
    }
    isolated(|| async {
        sysctl("ipv4/ip_forward", "1");
        sysctl("ipv6/conf/all/forwarding", "1");
        let endpoint = host(options(0));
        run("ip route add unreachable 192.0.2.0/24");
        run("ip -6 route add unreachable fd78::/64");
        for peer in ["192.0.2.1:80", "[fd78::1]:80"] {
            let peer: SocketAddr = peer.parse().unwrap();
            let error = endpoint.connect(peer).await.unwrap_err();
            assert!(
                matches!(error, tack::ConnectError::Unreachable(at) if at == peer),
                "{error}"
            );
        }
        assert_eq!(endpoint.carrier_stats().path_errors, 2);
    });
}

/// A link behind the router takes less: the router says so, and the stream goes on in smaller
/// segments.
#[test]
fn packet_too_big_makes_segments_smaller() {
    if let Some(why) = tack_skip::lacks(&["ip"]) {
        return tack_skip::skipped(why);
    }
    isolated(|| async {
        sysctl("ipv4/ip_forward", "1");
        sysctl("ipv6/conf/all/forwarding", "1");
        let client = host(options(1));
        // The kernel side of the server takes 1300 bytes, which its MSS does not say. Twelve bytes
        // of each segment are TACK's option.
        let server = host(options(2));
        let device = server.device().unwrap().to_owned();
        run(&format!("ip link set {device} mtu 1300"));
        let listener = server.listen(80).unwrap();
        for (address, mss) in [("10.77.2.2", 1248), ("fd77:2::2", 1228)] {
            let connect = client.connect(SocketAddr::new(ip(address), 80));
            let (ours, theirs) = tokio::join!(connect.into_future(), listener.accept());
            let (mut ours, mut theirs) = (ours.unwrap(), theirs.unwrap().0);
            assert!(ours.stats().mss > 1300, "{:?}", ours.stats().mss);
            exchange(&mut ours, &mut theirs, 1 << 20).await;
            assert_eq!(ours.stats().mss, mss);
        }
        assert!(client.carrier_stats().path_errors >= 2);
    });
}

/// A connection to the kernel behind a forwarder; the near kernel routes.
struct BehindForwarder {
    ours: tack::Stream,
    theirs: tokio::net::TcpStream,
    buffer: Vec<u8>,
}

/// Where the kernel listens in the far namespace, and the headers of a segment with timestamps.
const FAR: [(&str, u16); 2] = [("10.80.1.1", 52), ("fd80:1::1", 72)];

/// Routes to the far namespace.
fn route_there() {
    run("ip route add 10.80.1.0/24 via 10.80.0.2");
    run("ip -6 route add fd80:1::/64 via fd80:0::2");
}

impl BehindForwarder {
    async fn new(link: &Link, endpoint: &tack::Endpoint, far: &str, config: Config) -> Self {
        let listener = link.far(|| std::net::TcpListener::bind((ip(far), 0)).unwrap());
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let connect = endpoint.connect(listener.local_addr().unwrap());
        let connect = connect.config(config);
        let (ours, theirs) = tokio::join!(connect.into_future(), listener.accept());
        Self {
            ours: ours.unwrap(),
            theirs: theirs.unwrap().0,
            buffer: vec![0; 64 << 10],
        }
    }

    /// The segment size after some bytes have arrived.
    async fn pump(&mut self) -> u16 {
        self.ours.write_all(&[7; 64 << 10]).await.unwrap();
        self.theirs.read_exact(&mut self.buffer).await.unwrap();
        self.ours.stats().mss
    }

    /// Sends until segments fill packets of `mtu` bytes but for the eight within which a search
    /// ends.
    async fn pump_until_it_fills(&mut self, mtu: u16, headers: u16) {
        let most = mtu - headers;
        while !(most - 8..=most).contains(&self.pump().await) {}
    }
}

/// The kernel as peer behind a router whose link grows: the router names a size, and when that has
/// been believed for as long as it is to be, probes find what the link takes by then.
#[test]
fn a_link_that_grows_is_noticed() {
    if let Some(why) = tack_skip::lacks(&["ip"]) {
        return tack_skip::skipped(why);
    }
    isolated(|| async {
        let link = Link::new([clean(), clean()], 1, Box::new(|_, _| true));
        let endpoint = host(options(2));
        route_there();
        let output = Command::new("ip")
            .args(["-o", "addr", "show", "to", NEAR])
            .output();
        let output = String::from_utf8(output.unwrap().stdout).unwrap();
        let device = output.split_whitespace().nth(1).unwrap().to_owned();
        let set_mtu = |mtu: u16| run(&format!("ip link set {device} mtu {mtu}"));
        let config = Config {
            mtu_raise: Duration::from_millis(200),
            ..Config::default()
        };
        for (far, headers) in FAR {
            set_mtu(1300);
            let mut it = BehindForwarder::new(&link, &endpoint, far, config.clone()).await;
            while it.pump().await > 1300 - headers {}
            set_mtu(1400);
            it.pump_until_it_fills(1400, headers).await;
            set_mtu(1500);
            while it.pump().await < 1500 - headers {}
            exchange(&mut it.ours, &mut it.theirs, 200_000).await;
        }
    });
}

/// RFC 4821 §7.7, RFC 8899 §4.3: a link that drops what is too long and says nothing. Timeouts tell
/// of it, or probes for a connection that begins with small segments. A search finds what the link
/// takes, and another one that it takes more. Most of the time is waiting (the size that was given
/// up is tried again after 5 s), so both families wait at once.
#[test]
fn a_black_hole_is_noticed_and_its_size_is_found() {
    if let Some(why) = tack_skip::lacks(&["ip"]) {
        return tack_skip::skipped(why);
    }
    std::thread::scope(|scope| {
        for (far, headers) in FAR {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            let run = move || isolated(move || black_hole(far, headers));
            let thread = std::thread::Builder::new().name(name);
            thread.spawn_scoped(scope, run).unwrap();
        }
    });
}

async fn black_hole(far: &'static str, headers: u16) {
    let most = Arc::new(AtomicUsize::new(1500));
    let limit = Arc::clone(&most);
    let rule: Rule = Box::new(move |direction, packet| {
        direction == BACK || ip_len(packet) <= limit.load(Ordering::Relaxed)
    });
    let link = Link::new([clean(), clean()], 1, rule);
    let endpoint = host(options(2));
    route_there();
    let config = Config {
        mtu_raise: Duration::from_millis(200),
        ..Config::default()
    };
    let begun_small = Config {
        base_mss: Some(1000),
        ..config.clone()
    };
    let mut it = BehindForwarder::new(&link, &endpoint, far, config).await;
    assert_eq!(it.pump().await, 1500 - headers);
    most.store(1300, Ordering::Relaxed);
    while it.pump().await > 1300 - headers {}
    assert!(it.ours.stats().rto_count > 0, "{:?}", it.ours.stats());
    it.pump_until_it_fills(1300, headers).await;

    let mut small = BehindForwarder::new(&link, &endpoint, far, begun_small).await;
    small.pump_until_it_fills(1300, headers).await;

    most.store(1500, Ordering::Relaxed);
    for it in [&mut it, &mut small] {
        while it.pump().await < 1500 - headers {}
        exchange(&mut it.ours, &mut it.theirs, 200_000).await;
    }
    let stats = endpoint.carrier_stats();
    assert_eq!((stats.path_errors, stats.path_errors_ignored), (0, 0));
}

/// Length of a packet as the hosts see it.
fn ip_len(packet: &Packet) -> usize {
    let header = match StandIns::is_one(packet) {
        true => tack_wire::ip::IPV6_HEADER_LEN,
        false => tack_wire::ip::IPV4_HEADER_LEN,
    };
    packet.len() - tack_wire::ip::IPV4_HEADER_LEN + header
}

/// An error about a sequence number that is not under way is a forgery, and changes nothing,
/// whatever it says.
#[test]
fn a_forged_error_is_not_believed() {
    isolated(|| async {
        let endpoint = host(options(0));
        let mut ignored = 0;
        for kernel in ["10.77.0.1", "fd77:0::1"] {
            let listener = TcpListener::bind((ip(kernel), 0)).await.unwrap();
            let connect = endpoint.connect(listener.local_addr().unwrap());
            let (ours, theirs) = tokio::join!(connect.into_future(), listener.accept());
            let (mut ours, (mut theirs, _)) = (ours.unwrap(), theirs.unwrap());
            let mss = ours.stats().mss;
            let (src, dst) = (ours.local_addr(), ours.peer_addr());
            let raw = raw_icmp(src.is_ipv4());
            for kind in Kind::ALL {
                for seq in [0_u32, 1 << 30, 2 << 30, 3 << 30] {
                    let error = kind.about(src, dst, seq);
                    raw.send_to(&error, &SocketAddr::new(src.ip(), 0).into())
                        .unwrap();
                    ignored += 1;
                }
            }
            while endpoint.carrier_stats().path_errors_ignored < ignored {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(endpoint.carrier_stats().path_errors, 0);
            assert_eq!(ours.stats().mss, mss);
            exchange(&mut ours, &mut theirs, 100_000).await;
        }
    });
}

/// The same about an attempt to connect, which an error about its SYN would end.
#[test]
fn a_forged_error_does_not_end_an_attempt() {
    isolated(|| async {
        const PORT: u16 = 7777;
        let endpoint = host(options(0));
        let mut ignored = 0;
        for kernel in ["10.77.0.1", "fd77:0::1"] {
            // The kernel hears SYNs, and its answers get lost.
            if let Err(why) = nft(&format!(
                "table inet silent {{ chain c {{ type filter hook output priority 0; \
                 tcp sport {PORT} drop; }}; }}"
            )) {
                return tack_skip::skipped(why);
            }
            let kernel = SocketAddr::new(ip(kernel), PORT);
            let listener = TcpListener::bind(kernel).await.unwrap();
            let segments = raw(kernel.is_ipv4(), socket2::Protocol::TCP);
            segments.set_nonblocking(true).unwrap();
            let forging = async {
                let (src, seq) = syn_to(&segments, kernel).await;
                let icmp = raw_icmp(kernel.is_ipv4());
                for kind in Kind::ALL {
                    for other in [1_u32 << 30, 2 << 30, 3 << 30] {
                        let error = kind.about(src, kernel, seq.wrapping_add(other));
                        let to = SocketAddr::new(src.ip(), 0);
                        icmp.send_to(&error, &to.into()).unwrap();
                        ignored += 1;
                    }
                }
                while endpoint.carrier_stats().path_errors_ignored < ignored {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                assert_eq!(endpoint.carrier_stats().path_errors, 0);
                nft("delete table inet silent").unwrap();
            };
            let connect = endpoint.connect(kernel).into_future();
            let (ours, theirs, ()) = tokio::join!(connect, listener.accept(), forging);
            exchange(&mut ours.unwrap(), &mut theirs.unwrap().0, 100_000).await;
        }
    });
}

/// Where the next SYN to `kernel` comes from, and its sequence number.
async fn syn_to(segments: &socket2::Socket, kernel: SocketAddr) -> (SocketAddr, u32) {
    let mut heard = [0; 2048];
    loop {
        let mut segments = segments;
        if let Ok(len) = segments.read(&mut heard) {
            // With the header of IPv4, and without that of IPv6.
            let start = match kernel.is_ipv4() {
                true => 4 * usize::from(heard[0] & 15),
                false => 0,
            };
            let tcp = &heard[start..len];
            let [source, port] = [0, 2].map(|at| u16::from_be_bytes([tcp[at], tcp[at + 1]]));
            let seq = u32::from_be_bytes(tcp[4..8].try_into().unwrap());
            if port == kernel.port() && tcp[13] & 2 != 0 {
                let host = match kernel.is_ipv4() {
                    true => "10.77.0.2",
                    false => "fd77:0::2",
                };
                return (SocketAddr::new(ip(host), source), seq);
            }
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Loads rules of netfilter.
///
/// # Errors
/// In words, why not.
fn nft(rules: &str) -> Result<(), String> {
    match Command::new("nft").arg(rules).output() {
        Ok(output) if output.status.success() => Ok(()),
        other => Err(format!("no nft: {other:?}")),
    }
}

/// An error of ICMP and ICMPv6 (RFC 792, RFC 4443).
#[derive(Clone, Copy, Debug)]
enum Kind {
    TooBig,
    HostUnreachable,
    PortUnreachable,
    TimeExceeded,
}

impl Kind {
    const ALL: [Self; 4] = [
        Self::TooBig,
        Self::HostUnreachable,
        Self::PortUnreachable,
        Self::TimeExceeded,
    ];

    /// Type and code.
    fn numbers(self, is_v4: bool) -> [u8; 2] {
        match (self, is_v4) {
            (Self::TooBig, true) => [3, 4],
            (Self::TooBig, false) => [2, 0],
            (Self::HostUnreachable, true) => [3, 1],
            (Self::HostUnreachable, false) => [1, 3],
            (Self::PortUnreachable, true) => [3, 3],
            (Self::PortUnreachable, false) => [1, 4],
            (Self::TimeExceeded, true) => [11, 0],
            (Self::TimeExceeded, false) => [3, 0],
        }
    }

    /// The error about a segment from `src` to `dst`; what is too big is so for 600 bytes.
    fn about(self, src: SocketAddr, dst: SocketAddr, seq: u32) -> Vec<u8> {
        use tack_wire::{checksum, ip};
        let [kind, code] = self.numbers(src.is_ipv4());
        let mtu: u16 = if matches!(self, Self::TooBig) { 600 } else { 0 };
        // Type, code, checksum, and the MTU at the end of the head.
        let mut message = vec![kind, code, 0, 0, 0, 0];
        message.extend(mtu.to_be_bytes());
        let mut quoted = vec![0; ip::header_len(src.ip())];
        let head = ip::Emit::new(src.ip(), dst.ip(), checksum::PROTOCOL_TCP, 1460);
        ip::emit_header(&mut quoted, &head);
        quoted.extend(src.port().to_be_bytes());
        quoted.extend(dst.port().to_be_bytes());
        quoted.extend(seq.to_be_bytes());
        message.extend(quoted);
        // The kernel fills in ICMPv6 checksums, and not those of ICMP.
        if src.is_ipv4() {
            let checksum = checksum::internet(&message);
            message[2..4].copy_from_slice(&checksum);
        }
        message
    }
}

fn raw_icmp(is_v4: bool) -> socket2::Socket {
    let protocol = match is_v4 {
        true => socket2::Protocol::ICMPV4,
        false => socket2::Protocol::ICMPV6,
    };
    raw(is_v4, protocol)
}

fn raw(is_v4: bool, protocol: socket2::Protocol) -> socket2::Socket {
    let domain = match is_v4 {
        true => socket2::Domain::IPV4,
        false => socket2::Domain::IPV6,
    };
    socket2::Socket::new(domain, socket2::Type::RAW, Some(protocol)).unwrap()
}

/// A hop limit that runs out on the way ends an attempt to connect.
#[test]
fn a_loop_on_the_way_is_told() {
    if let Some(why) = tack_skip::lacks(&["ip", "nft"]) {
        return tack_skip::skipped(why);
    }
    isolated(|| async {
        sysctl("ipv4/ip_forward", "1");
        sysctl("ipv6/conf/all/forwarding", "1");
        let endpoint = host(options(0));
        // nftables makes the hop limit one, so that the router drops the packet.
        let rules = "table inet t { chain c { type filter hook prerouting priority -300; \
                     ip daddr 192.0.2.1 ip ttl set 1; ip6 daddr fd78::1 ip6 hoplimit set 1; }; }";
        if let Err(why) = nft(rules) {
            return tack_skip::skipped(why);
        }
        run("ip route add 192.0.2.0/24 via 10.77.0.2");
        run("ip -6 route add fd78::/64 via fd77:0::2");
        for peer in ["192.0.2.1:80", "[fd78::1]:80"] {
            let peer: SocketAddr = peer.parse().unwrap();
            let error = endpoint.connect(peer).await.unwrap_err();
            assert!(
                matches!(error, tack::ConnectError::Unreachable(at) if at == peer),
                "{error}"
            );
        }
    });
}

#[test]
fn pings_are_answered() {
    isolated(|| async {
        let endpoint = host(options(0));
        for (address, from) in [("10.77.0.2", "10.77.0.1"), ("fd77:0::2", "fd77:0::1")] {
            let (to, from) = (ip(address), ip(from));
            let (domain, protocol, kind) = if to.is_ipv4() {
                (socket2::Domain::IPV4, socket2::Protocol::ICMPV4, [8, 0])
            } else {
                (socket2::Domain::IPV6, socket2::Protocol::ICMPV6, [128, 129])
            };
            let raw = socket2::Socket::new(domain, socket2::Type::RAW, Some(protocol)).unwrap();
            raw.set_nonblocking(true).unwrap();
            raw.bind(&SocketAddr::new(from, 0).into()).unwrap();
            // The kernel fills in ICMPv6 checksums, and not those of ICMP.
            let mut request = vec![kind[0], 0, 0, 0, 0, 7, 0, 9, b'p', b'i', b'n', b'g'];
            if to.is_ipv4() {
                let checksum = tack_wire::checksum::internet(&request);
                request[2..4].copy_from_slice(&checksum);
            }
            let mut heard = [0; 256];
            for look in 0.. {
                // A request may get lost, as on any path: another one each second.
                if look % 200 == 0 {
                    assert!(look < 2000, "{to} answers none of ten pings");
                    raw.send_to(&request, &SocketAddr::new(to, 0).into())
                        .unwrap();
                }
                match (&raw).read(&mut heard) {
                    Ok(len) => {
                        if heard[..len].ends_with(b"ping") {
                            assert_eq!(heard[len - 12], kind[1], "{:?}", &heard[..len]);
                            break;
                        }
                    }
                    Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        drop(endpoint);
    });
}
