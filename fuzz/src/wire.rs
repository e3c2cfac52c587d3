//! Parsers: any bytes are survived, and what was understood is written and read again unchanged.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tack_wire::options::MAX_OPTIONS_LEN;
use tack_wire::tack::{Lists, ListsWriter};
use tack_wire::{
    Ecn, Header, Segment, TcpOptions, checksum, encapsulation as tcp_in_udp, icmp, ip as packet,
};

/// A TCP segment: parse, agree with another parser on whether it is one, write again, compare.
pub fn segment(bytes: &[u8]) {
    let parsed = Segment::parse(bytes);
    assert_eq!(
        parsed.is_ok(),
        etherparse::TcpSlice::from_slice(bytes).is_ok(),
        "etherparse disagrees"
    );
    verify(bytes);
    let Ok(segment) = parsed else { return };
    assert_eq!(
        Segment::ports(bytes),
        Some((segment.header.src_port, segment.header.dst_port))
    );
    assert!(!segment.to_string().is_empty());

    if segment.header.options.encoded_len() > MAX_OPTIONS_LEN {
        return; // our padding needs more room than theirs
    }
    let mut written = vec![0; segment.header.encoded_len()];
    assert_eq!(segment.header.emit(&mut written), written.len());
    written.extend_from_slice(segment.payload);
    let again = Segment::parse(&written).expect("what we write we can read");
    let expected = Header {
        options: settled(&segment.header.options),
        ..segment.header.clone()
    };
    assert_eq!((again.header, again.payload), (expected, segment.payload));
}

/// Filling in the checksum makes any segment verify, and one changed bit spoils it.
fn verify(bytes: &[u8]) {
    let addresses: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    for address in addresses {
        let _ = checksum::verify_tcp(address, address, bytes);
        if bytes.len() >= 20 {
            let mut filled = bytes.to_vec();
            checksum::fill_tcp(address, address, &mut filled);
            assert!(checksum::verify_tcp(address, address, &filled));
            filled[bytes.len() / 2] ^= 0x10;
            assert!(!checksum::verify_tcp(address, address, &filled));
        }
    }
}

/// An option area: parse, write again, compare.
pub fn options(bytes: &[u8]) {
    // No header has more than 40 bytes of options, but the parser promises to bear any number.
    let parsed = TcpOptions::parse(bytes);
    let _ = parsed.to_string();
    let mut written = vec![0; parsed.encoded_len()];
    assert_eq!(parsed.emit(&mut written), written.len());
    assert!(written.len().is_multiple_of(4));
    assert_eq!(TcpOptions::parse(&written), settled(&parsed));
}

/// What is left of options once written: unknown ones never leave, and SACK blocks give way.
fn settled(options: &TcpOptions) -> TcpOptions {
    let mut settled = TcpOptions {
        unknown: 0,
        ..options.clone()
    };
    settled.sack.truncate(options.sack_capacity());
    settled
}

/// A receive buffer of the UDP carrier, its stride in the first two bytes.
pub fn encapsulation(bytes: &[u8]) {
    let Some((stride, buffer)) = bytes.split_first_chunk() else {
        return;
    };
    let stride = usize::from(u16::from_be_bytes(*stride));
    let segments = tcp_in_udp::segments(buffer, stride);
    let datagrams = segments.len();
    let results: Vec<_> = segments.collect();
    assert_eq!(results.len(), datagrams);
    let mut at = 0;
    for result in results {
        let len = (buffer.len() - at).min(if stride == 0 { buffer.len() } else { stride });
        assert_eq!(
            result,
            Segment::parse(&buffer[at..at + len]),
            "each datagram is judged alone"
        );
        at += len;
    }
    assert_eq!(at, buffer.len(), "nothing is left out");
}

/// An IP packet: parse, write again, compare; mark it as a router would.
pub fn ip(bytes: &[u8]) {
    let parsed = packet::parse(bytes);
    let mut marked = bytes.to_vec();
    let marking = packet::set_ecn(&mut marked, Ecn::Ce);
    let Ok(parsed) = parsed else {
        assert!(
            marking.is_ok() || marked == bytes,
            "a refused packet is left as it was"
        );
        return;
    };
    marking.expect("a packet that parses can be marked");
    assert_eq!(
        packet::parse(&marked),
        Ok(packet::Packet {
            ecn: Ecn::Ce,
            ..parsed
        })
    );

    hear_icmp(&parsed);

    // Extension headers and options are gone afterwards; a payload may be empty only without them
    // in IPv6, whose length field would be zero.
    if parsed.payload.is_empty() && parsed.src.is_ipv6() {
        return;
    }
    let emit = packet::Emit {
        ecn: parsed.ecn,
        ..packet::Emit::new(
            parsed.src,
            parsed.dst,
            parsed.protocol,
            parsed.payload.len(),
        )
    };
    let mut written = vec![0; packet::header_len(parsed.src)];
    assert_eq!(packet::emit_header(&mut written, &emit), written.len());
    written.extend_from_slice(parsed.payload);
    // A protocol number that names an extension header cannot come back: parsing never returns one.
    assert_eq!(packet::parse(&written), Ok(parsed));
}

/// The payload as a message of ICMP, with its checksum made right, where most would fail. An echo
/// request is answered with a message that asks for nothing.
fn hear_icmp(parsed: &packet::Packet<'_>) {
    let protocol = match parsed.src {
        IpAddr::V4(_) => icmp::PROTOCOL_ICMP,
        IpAddr::V6(_) => icmp::PROTOCOL_ICMPV6,
    };
    let mut payload = parsed.payload.to_vec();
    if payload.len() >= 4 {
        payload[2..4].fill(0);
        let sum = match parsed.src {
            IpAddr::V4(_) => checksum::internet(&payload),
            IpAddr::V6(_) => {
                let len = payload.len();
                let mut sum = checksum::Sum::pseudo_header(parsed.src, parsed.dst, protocol, len);
                sum.add(&payload);
                sum.finish()
            }
        };
        payload[2..4].copy_from_slice(&sum);
    }
    let message = packet::Packet {
        protocol,
        payload: &payload,
        ..*parsed
    };
    if let Some(icmp::Message::EchoRequest(request)) = icmp::parse(&message) {
        let mut reply = vec![0; request.len()];
        icmp::emit_echo_reply(&mut reply, parsed.dst, parsed.src, request);
        let reply = packet::Packet {
            src: parsed.dst,
            dst: parsed.src,
            payload: &reply,
            ..message
        };
        assert_eq!(icmp::parse(&reply), None);
    }
}

/// The lists in the data field of an acknowledgement: parse, write again, compare.
pub fn tack_lists(bytes: &[u8]) {
    let Ok(lists) = Lists::parse(bytes) else {
        return;
    };
    let mut written = vec![0; bytes.len()];
    let mut writer = ListsWriter::new(&mut written);
    let mut above = u64::MAX;
    for block in lists.blocks() {
        assert!(
            block.start < block.end && block.end <= above,
            "blocks descend and never overlap"
        );
        above = block.start;
        assert!(
            writer.block(block),
            "what we write is never longer than what we read"
        );
    }
    let mut distance_before = u64::MAX;
    for (distance, count) in lists.gaps() {
        assert!(
            count > 0 && count <= distance && distance < distance_before,
            "gaps descend"
        );
        distance_before = distance;
        assert!(writer.gap(distance, count));
    }
    let len = writer.finish();
    if len == 0 {
        assert!(lists.blocks().next().is_none() && lists.gaps().next().is_none());
        return;
    }
    let again = Lists::parse(&written[..len]).expect("what we write we can read");
    assert!(again.blocks().eq(lists.blocks()) && again.gaps().eq(lists.gaps()));
}
