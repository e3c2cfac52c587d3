//! Acknowledgements that travel in UDP: the codec compresses the IP and TCP headers in them, and
//! the UDP header follows from those. Its ports are the flow's, its length is the segment's, and
//! its checksum covers the same bytes as the one of TCP, which the carrier leaves blank and which
//! is written for the codec's sake.

use tack_base::Instant;
use tack_wire::checksum::{PROTOCOL_TCP, PROTOCOL_UDP};

use super::tuple::Ports;
use crate::packet::{Checksums, Inner, Packet, UDP_HEADER_LEN};

/// Where the checksum of a TCP header is.
const CHECKSUM: std::ops::Range<usize> = 16..18;

/// True when nothing is lost by [`unwrap`]: there is nothing but UDP around the segment, the
/// checksum within is blank, and the one around it right.
pub(super) fn is_sound(packet: &Packet) -> bool {
    packet.transport().len() == UDP_HEADER_LEN
        && packet
            .tcp()
            .is_some_and(|(header, _)| header[CHECKSUM] == [0, 0])
        && packet.verify_checksums()
}

/// The acknowledgement without UDP, checksums blank.
pub(super) fn unwrap(packet: &Packet) -> Option<Packet> {
    let (header, 0) = packet.tcp()? else {
        return None;
    };
    Some(with_transport(packet, PROTOCOL_TCP, header))
}

/// What [`unwrap`] was given, from what it made and the ports of UDP. `None` when the checksum of
/// TCP is wrong: it is not passed on.
pub(super) fn wrap(bare: &Packet, (from, to): Ports) -> Option<Packet> {
    bare.verify_checksums().then_some(())?;
    let mut header = bare.transport().to_vec();
    header.get_mut(CHECKSUM)?.fill(0);
    let len = (UDP_HEADER_LEN + header.len()) as u16;
    let mut udp = [0; UDP_HEADER_LEN];
    udp[..2].copy_from_slice(&from.to_be_bytes());
    udp[2..4].copy_from_slice(&to.to_be_bytes());
    udp[4..6].copy_from_slice(&len.to_be_bytes());
    let mut packet = with_transport(bare, PROTOCOL_UDP, &udp);
    packet.payload = header.into();
    packet.inner = Inner::Segment;
    packet.update_length();
    Some(packet)
}

/// The IP header of `packet` before another transport header.
fn with_transport(packet: &Packet, protocol: u8, transport: &[u8]) -> Packet {
    let addresses = (packet.src(), packet.dst());
    let mut made = Packet::new(
        addresses,
        protocol,
        packet.ecn(),
        transport,
        bytes::Bytes::new(),
        Instant::ZERO,
    );
    // Everything of the IP header but length, protocol and checksum.
    for field in [0..2, 4..9] {
        made.head[field.clone()].copy_from_slice(&packet.head[field]);
    }
    debug_assert_eq!(made.checksums, Checksums::Blank);
    made
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use tack_wire::{Ecn, Flags, Header, SeqNum, TcpOptions, Timestamps};
    use tack_wlan::mac::hack::Codec;

    use super::super::RohcCodec;
    use super::*;
    use crate::scenario::HackCodec;

    fn ack(number: u32, adjust: impl FnOnce(&mut Header)) -> Packet {
        let mut header = Header {
            src_port: 40_000,
            dst_port: 7_777,
            seq: SeqNum(77),
            ack: SeqNum(number),
            flags: Flags::ACK,
            window: 900,
            options: TcpOptions {
                timestamps: Some(Timestamps {
                    value: number / 1_000,
                    echo: number / 900,
                }),
                ..TcpOptions::default()
            },
            ..Header::default()
        };
        adjust(&mut header);
        let mut bytes = vec![0; header.encoded_len()];
        header.emit(&mut bytes);
        datagram(bytes)
    }

    fn datagram(bytes: Vec<u8>) -> Packet {
        let mut udp = [0, 3, 0, 9, 0, 0, 0, 0];
        udp[4..6].copy_from_slice(&(8 + bytes.len() as u16).to_be_bytes());
        let addresses = ([10, 0, 1, 1].into(), [10, 0, 0, 1].into());
        let payload = Bytes::from(bytes);
        let mut packet = Packet::new(
            addresses,
            PROTOCOL_UDP,
            Ecn::Ect0,
            &udp,
            payload,
            Instant::ZERO,
        );
        packet.inner = Inner::Segment;
        packet
    }

    fn whole(packet: &Packet) -> Vec<u8> {
        let mut packet = packet.clone();
        packet.write_checksums();
        [&packet.head[..], &packet.payload[..]].concat()
    }

    /// Both ends, with `first` as their context.
    fn ends(codec: HackCodec, first: &Packet) -> (RohcCodec, RohcCodec) {
        let (mut station, mut ap) = (RohcCodec::new(codec), RohcCodec::new(codec));
        station.native_sent(1, first);
        ap.native_received(1, first);
        (station, ap)
    }

    #[test]
    fn what_is_wrapped_again_is_what_was_unwrapped() {
        let ack = ack(1_000, |header| header.flags = Flags::ACK.with(Flags::PSH));
        let mut bare = unwrap(&ack).unwrap();
        assert_eq!(bare.len(), ack.len() - UDP_HEADER_LEN);
        bare.write_checksums();
        let again = wrap(&bare, ack.ports()).unwrap();
        assert_eq!(whole(&again), whole(&ack));
        assert_eq!(again.inner, Inner::Segment);
        bare.head[30] ^= 1;
        assert!(wrap(&bare, ack.ports()).is_none(), "a damaged one");
    }

    #[test]
    fn acknowledgements_in_udp_are_rebuilt_byte_for_byte() {
        for codec in [HackCodec::Rfc, HackCodec::Lean, HackCodec::LeanNoChecksum] {
            let (mut station, mut ap) = ends(codec, &ack(10_000, |_| {}));
            for number in 1..200 {
                let ack = ack(10_000 + 2_896 * number, |header| {
                    header.window = 900 + (number % 7) as u16;
                });
                assert!(station.flow(&ack).is_some());
                let mut bytes = Vec::new();
                assert!(station.compress(1, &ack, &mut bytes), "{codec:?} {number}");
                assert!(bytes.len() < 20, "{} bytes", bytes.len());
                let rebuilt = ap.decompress(1, &bytes).unwrap();
                assert_eq!(whole(&rebuilt.packet), whole(&ack), "{codec:?} {number}");
                assert_eq!(rebuilt.len as usize, ack.len());
                assert!(ap.is_same(&rebuilt.packet, &ack));
            }
        }
    }

    #[test]
    fn what_could_not_be_rebuilt_is_not_compressed() {
        let mut codec = RohcCodec::new(HackCodec::Lean);
        assert!(codec.flow(&ack(1, |_| {})).is_some());
        let fin = ack(1, |header| header.flags = Flags::ACK.with(Flags::FIN));
        assert!(codec.flow(&fin).is_none());
        let bytes = |packet: &Packet| packet.payload.to_vec();
        let mut with_checksum = bytes(&ack(1, |_| {}));
        with_checksum[17] = 1;
        assert!(codec.flow(&datagram(with_checksum)).is_none());
        let mut with_data = bytes(&ack(1, |_| {}));
        with_data.push(0);
        assert!(codec.flow(&datagram(with_data)).is_none());
        let mut damaged = ack(1, |_| {});
        damaged.write_checksums();
        assert!(codec.flow(&damaged).is_some());
        damaged.head[25] ^= 1;
        assert!(codec.flow(&damaged).is_none());
        let mut unknown = ack(1, |_| {});
        unknown.inner = Inner::Unknown;
        assert!(codec.flow(&unknown).is_none());
        assert!(codec.echo(&unknown).is_none());
    }

    #[test]
    fn an_echo_belongs_to_the_acknowledgements_of_the_other_direction() {
        let mut codec = RohcCodec::new(HackCodec::Lean);
        let ack = ack(9_000, |_| {});
        let mut data = ack.clone();
        data.head[12..20].rotate_left(4);
        data.head[20..24].rotate_left(2);
        let mut segment = data.payload.to_vec();
        segment[..4].rotate_left(2);
        segment.extend([0; 1_000]);
        data.payload = segment.into();
        let (flow, value) = codec.echo(&data).unwrap();
        assert_eq!((Some(flow), value), (codec.flow(&ack), 10));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let packet = datagram(bytes);
            let (mut station, mut ap) = ends(HackCodec::Lean, &ack(1, |_| {}));
            let mut out = Vec::new();
            if station.flow(&packet).is_some() && station.compress(1, &packet, &mut out) {
                prop_assert_eq!(whole(&ap.decompress(1, &out).unwrap().packet), whole(&packet));
            }
            station.native_sent(1, &packet);
            ap.native_received(1, &packet);
            let _refused = ap.decompress(1, &packet.payload);
        }
    }
}
