//! Datagrams that the kernel dropped because a socket's buffer was full.

use std::net::{IpAddr, SocketAddr};

/// How many datagrams the kernel dropped, since it was opened, for the UDP socket bound to `local`.
/// `None` where the system does not say (it does on Linux), or when there is no such socket.
pub fn kernel_drops(local: SocketAddr) -> Option<u64> {
    let table = match local.ip() {
        IpAddr::V4(_) => "/proc/net/udp",
        IpAddr::V6(_) => "/proc/net/udp6",
    };
    find(&std::fs::read_to_string(table).ok()?, &hexadecimal(local))
}

/// The drops of the line for `address`: `sl: local remote st tx:rx tr:when retrnsmt uid timeout
/// inode ref pointer drops`.
fn find(table: &str, address: &str) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let mut columns = line.split_whitespace();
        (columns.nth(1)? == address)
            .then(|| columns.next_back()?.parse().ok())
            .flatten()
    })
}

/// An address as the kernel's table has it: words of 32 bits in the machine's byte order, then the
/// port.
fn hexadecimal(address: SocketAddr) -> String {
    let words = |bytes: &[u8]| -> String {
        bytes
            .chunks_exact(4)
            .map(|word| {
                let word = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
                format!("{word:08X}")
            })
            .collect()
    };
    let ip = match address.ip() {
        IpAddr::V4(ip) => words(&ip.octets()),
        IpAddr::V6(ip) => words(&ip.octets()),
    };
    format!("{ip}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_right_line_is_read() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  373: 0100007F:1F90 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 11 2 0000000000000000 0
  374: 0100007F:1F91 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12 2 0000000000000000 42
";
        let at = |text: &str| find(table, &hexadecimal(text.parse().unwrap()));
        assert_eq!(at("127.0.0.1:8080"), Some(0));
        assert_eq!(at("127.0.0.1:8081"), Some(42));
        assert_eq!(at("127.0.0.1:8082"), None);
        assert_eq!(
            hexadecimal("[::1]:1".parse().unwrap()),
            "00000000000000000000000001000000:0001"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_socket_that_nobody_reads_drops() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let local = socket.local_addr().unwrap();
        assert_eq!(kernel_drops(local), Some(0));
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        // More than any buffer that the system gives unasked.
        for _ in 0..20_000 {
            sender.send_to(&[0; 1_400], local).unwrap();
        }
        assert!(kernel_drops(local).unwrap() > 0);
    }
}
