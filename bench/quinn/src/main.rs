//! One QUIC stream over loopback: the sending or the receiving side.
//!
//! Tuned to quinn's advantage: the fastest cryptography, full datagrams from the first, windows
//! that never limit.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::{
    ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// UDP payload of a 1,500-byte IPv4 packet.
const DATAGRAM: u16 = 1472;
const WINDOW: u32 = 16 << 20;

fn main() {
    let mut args = std::env::args().skip(1);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        match args.next().as_deref() {
            Some("receiver") => receive().await,
            Some("sender") => {
                let mut next = || args.next().expect("milliseconds, address, certificate");
                let time = Duration::from_millis(next().parse().expect("milliseconds"));
                let address = next().parse().expect("an address");
                send(time, address, &next()).await;
            }
            _ => panic!("receiver, or sender MILLISECONDS ADDRESS CERTIFICATE"),
        }
    });
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(DATAGRAM)
        .min_mtu(DATAGRAM)
        .mtu_discovery_config(None)
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(u64::from(WINDOW));
    Arc::new(transport)
}

fn endpoint(server: Option<ServerConfig>) -> Endpoint {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(DATAGRAM).expect("a valid size");
    Endpoint::new(config, server, socket, Arc::new(TokioRuntime)).expect("an endpoint")
}

async fn receive() {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = key.cert.der().clone();
    let hex: String = certificate
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let private = PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
    let mut server =
        ServerConfig::with_single_cert(vec![certificate], private.into()).expect("a configuration");
    server.transport_config(transport());
    let endpoint = endpoint(Some(server));
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
    // The cheapest way that quinn has to read: no copy.
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await.expect("bytes") {
        bytes += chunk.bytes.len() as u64;
    }
    print_result(bytes, start.elapsed());
    endpoint.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
}

async fn send(time: Duration, address: SocketAddr, hex: &str) {
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
    client.transport_config(transport());
    let endpoint = endpoint(None);
    let connection = endpoint
        .connect_with(client, address, "localhost")
        .expect("a connection")
        .await
        .expect("a handshake");
    let mut stream = connection.open_uni().await.expect("a stream");
    let block = vec![0x5a; 256 << 10];
    let start = Instant::now();
    let mut bytes = 0;
    while start.elapsed() < time {
        stream.write_all(&block).await.expect("room");
        bytes += block.len() as u64;
    }
    stream.finish().expect("an end");
    // The receiver closes when it has everything.
    connection.closed().await;
    print_result(bytes, start.elapsed());
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
