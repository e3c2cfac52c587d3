//! One QUIC stream: the sending or the receiving side.
//!
//! Tuned to quinn's advantage: the fastest cryptography, full datagrams from the first, windows
//! that never limit.
//!
//! `receiver [BIND [OMIT-MILLISECONDS [defaults]]]` prints where it listens and its certificate,
//! and after the transfer what came, without the first so many milliseconds. `sender MILLISECONDS
//! ADDRESS CERTIFICATE [cubic|bbr] [ack-frequency|rare-acks] [defaults] [omit=MILLISECONDS]` sends
//! for that long; with `omit` it first prints what the connection was like after that time, and
//! gives up at the end what has not left.
//! `defaults` leaves windows and datagrams as quinn has them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionStats, Endpoint, EndpointConfig,
    ReadError, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// UDP payload of a 1,500-byte IPv4 packet.
const DATAGRAM: u16 = 1472;
const WINDOW: u32 = 16 << 20;
const LOOPBACK: &str = "127.0.0.1:0";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let milliseconds = |text: &str| Duration::from_millis(text.parse().expect("milliseconds"));
    runtime.block_on(async {
        match args[..] {
            ["receiver"] => receive(LOOPBACK, Duration::ZERO, transport(&[])).await,
            ["receiver", bind] => receive(bind, Duration::ZERO, transport(&[])).await,
            ["receiver", bind, omit, ref options @ ..] => {
                receive(bind, milliseconds(omit), transport(options)).await;
            }
            ["sender", time, address, certificate, ref options @ ..] => {
                let address = address.parse().expect("an address");
                let (omit, options): (Vec<&str>, Vec<&str>) =
                    options.iter().partition(|option| option.starts_with("omit="));
                let omit = omit.first().and_then(|omit| omit.strip_prefix("omit="));
                let bind = match address {
                    SocketAddr::V4(address) if address.ip().is_loopback() => LOOPBACK,
                    SocketAddr::V4(_) => "0.0.0.0:0",
                    SocketAddr::V6(_) => "[::]:0",
                };
                let sending = Sending {
                    time: milliseconds(time),
                    watched_from: omit.map(milliseconds),
                    transport: transport(&options),
                };
                send(sending, endpoint(bind, None), address, certificate).await;
            }
            _ => panic!(
                "receiver [BIND [OMIT [defaults]]], or sender MILLISECONDS ADDRESS CERTIFICATE [cubic|bbr] \
                 [ack-frequency|rare-acks] [defaults] [omit=MILLISECONDS]"
            ),
        }
    });
}

/// Acknowledgement threshold: the receiver acknowledges when more than this many packets have come.
/// quinn's default is 1, which changes nothing.
const THRESHOLD: u32 = 10;

/// No count of packets asks for an acknowledgement, only time does.
const NO_THRESHOLD: u32 = 1 << 20;

/// Time between acknowledgements in that case: TACK's period at a round-trip time of 80 ms.
const RARE: Duration = Duration::from_millis(20);

fn transport(options: &[&str]) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    if !options.contains(&"defaults") {
        transport
            .initial_mtu(DATAGRAM)
            .min_mtu(DATAGRAM)
            .mtu_discovery_config(None)
            .stream_receive_window(VarInt::from_u32(WINDOW))
            .receive_window(VarInt::from_u32(WINDOW))
            .send_window(u64::from(WINDOW));
    }
    // draft-ietf-quic-ack-frequency
    let mut frequency = AckFrequencyConfig::default();
    for option in options {
        match *option {
            "defaults" => {}
            "cubic" => {
                transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
            }
            "bbr" => {
                transport.congestion_controller_factory(Arc::new(BbrConfig::default()));
            }
            "ack-frequency" => {
                frequency.ack_eliciting_threshold(VarInt::from_u32(THRESHOLD));
                transport.ack_frequency_config(Some(frequency.clone()));
            }
            "rare-acks" => {
                frequency
                    .ack_eliciting_threshold(VarInt::from_u32(NO_THRESHOLD))
                    .max_ack_delay(Some(RARE));
                transport.ack_frequency_config(Some(frequency.clone()));
            }
            _ => panic!("expected cubic, bbr, ack-frequency, rare-acks or defaults, got {option}"),
        }
    }
    Arc::new(transport)
}

fn endpoint(bind: &str, server: Option<ServerConfig>) -> Endpoint {
    let socket = std::net::UdpSocket::bind(bind).expect("a socket");
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(DATAGRAM).expect("a valid size");
    Endpoint::new(config, server, socket, Arc::new(TokioRuntime)).expect("an endpoint")
}

async fn receive(bind: &str, omit: Duration, transport: Arc<TransportConfig>) {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = key.cert.der().clone();
    let hex: String = certificate
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let private = PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
    let mut server =
        ServerConfig::with_single_cert(vec![certificate], private.into()).expect("a configuration");
    server.transport_config(transport);
    let endpoint = endpoint(bind, Some(server));
    println!("{} {hex}", endpoint.local_addr().expect("an address"));

    let connection = endpoint
        .accept()
        .await
        .expect("a connection")
        .await
        .expect("a handshake");
    let mut stream = connection.accept_uni().await.expect("a stream");
    let mut bytes = 0;
    let start = Instant::now();
    let (mut counted, mut last) = (start, start);
    // The cheapest way that quinn has to read: no copy. In whatever order they come: otherwise
    // bytes that came while a packet was missing would count when it comes, after what is omitted.
    loop {
        let chunk = match stream.read_chunk(usize::MAX, false).await {
            Ok(Some(chunk)) => chunk,
            // The sender's time is over.
            Ok(None) | Err(ReadError::Reset(_)) => break,
            Err(error) => panic!("bytes: {error}"),
        };
        last = Instant::now();
        if last.duration_since(start) < omit {
            counted = last;
        } else {
            bytes += chunk.bytes.len() as u64;
        }
    }
    print_result(bytes, last.duration_since(counted));
    endpoint.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
}

/// How to send.
struct Sending {
    time: Duration,
    /// From when on to say what the connection is like.
    watched_from: Option<Duration>,
    transport: Arc<TransportConfig>,
}

async fn send(sending: Sending, endpoint: Endpoint, address: SocketAddr, hex: &str) {
    let time = sending.time;
    let digits: Vec<u8> = hex
        .bytes()
        .map(|digit| (digit as char).to_digit(16).expect("hex") as u8)
        .collect();
    let certificate: Vec<u8> = digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect();
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from(certificate))
        .expect("a certificate");
    let mut client =
        ClientConfig::with_root_certificates(Arc::new(roots)).expect("a configuration");
    client.transport_config(sending.transport);
    let connection = endpoint
        .connect_with(client, address, "localhost")
        .expect("a connection")
        .await
        .expect("a handshake");
    let mut stream = connection.open_uni().await.expect("a stream");
    let block = vec![0x5a; 256 << 10];
    let start = Instant::now();
    let watched = sending
        .watched_from
        .map(|from| tokio::spawn(watch(connection.clone(), from, time)));
    let mut bytes = 0;
    let end = tokio::time::Instant::from_std(start + time);
    while let Ok(wrote) = tokio::time::timeout_at(end, stream.write(&block)).await {
        bytes += wrote.expect("room") as u64;
    }
    match sending.watched_from {
        // What waits would take a slow path minutes, and is not measured.
        Some(_) => stream.reset(VarInt::from_u32(0)).expect("a stream"),
        None => stream.finish().expect("an end"),
    }
    // The receiver closes when it has everything, or knows that the rest does not come.
    connection.closed().await;
    if let Some(watched) = watched {
        println!("{}", watched.await.expect("no panic"));
    }
    print_result(bytes, start.elapsed());
}

/// What the connection is like between two instants after now: `PATH` with the means of its
/// smoothed round-trip time (microseconds), of its congestion window (bytes) and of the rate that
/// this window permits (bits a second), then packets sent and lost, times that flow control held a
/// frame back, and acknowledgements received.
async fn watch(connection: Connection, from: Duration, until: Duration) -> String {
    const STEP: Duration = Duration::from_millis(10);
    let start = Instant::now();
    tokio::time::sleep(from).await;
    let first = connection.stats();
    let (mut count, mut rtt, mut window, mut rate) = (0.0, 0.0, 0.0, 0.0);
    let mut last = first;
    while start.elapsed() < until && connection.close_reason().is_none() {
        last = connection.stats();
        let (seconds, bytes) = (last.path.rtt.as_secs_f64(), last.path.cwnd as f64);
        count += 1.0;
        rtt += seconds;
        window += bytes;
        rate += bytes * 8.0 / seconds;
        tokio::time::sleep(STEP).await;
    }
    let blocked =
        |stats: &ConnectionStats| stats.frame_tx.data_blocked + stats.frame_tx.stream_data_blocked;
    format!(
        "PATH {} {} {} {} {} {} {}",
        rtt / count * 1e6,
        window / count,
        rate / count,
        last.path.sent_packets - first.path.sent_packets,
        last.path.lost_packets - first.path.lost_packets,
        blocked(&last) - blocked(&first),
        last.frame_rx.acks - first.frame_rx.acks,
    )
}

fn print_result(bytes: u64, time: Duration) {
    let (cpu, memory) = usage().unwrap_or_default();
    println!(
        "RESULT {bytes} {} {} {memory}",
        time.as_nanos(),
        cpu.as_micros()
    );
}

/// Processor time and peak resident memory of this process, where `/proc` tells.
fn usage() -> Option<(Duration, u64)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Fields 14 and 15 (user and system time, in ticks of 10 ms); the name in field 2 may hold
    // spaces.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = peak.trim().strip_suffix(" kB")?.parse().ok()?;
    Some((Duration::from_millis(ticks * 10), kib << 10))
}
