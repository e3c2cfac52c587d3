use std::vec::Vec;

use tack_base::Instant;

use super::*;
use crate::frame::{Class, Msdu};
use crate::phy::{Mode, OfdmRate};

fn encode(ppdu: Ppdu<&'static [u8]>, standard: Standard) -> Vec<Vec<u8>> {
    let encoder = Encoder::new(standard, standard.band(), 3, Duration::from_micros(102_400));
    let captured = Captured {
        at: Instant::from_micros(1_234_567),
        ppdu,
        number: 7,
    };
    let (mut bytes, mut packets) = (Vec::new(), Vec::new());
    let payload = |content: &&'static [u8], bytes: &mut Vec<u8>| bytes.extend_from_slice(content);
    encoder.encode(&captured, &mut bytes, payload, |packet| {
        packets.push(packet.to_vec())
    });
    packets
}

fn ppdu(frame: Frame<&'static [u8]>, psdu: u32) -> Ppdu<&'static [u8]> {
    Ppdu {
        from: NodeId::AP,
        to: Some(NodeId(1)),
        mode: Mode::Ofdm(OfdmRate::R24),
        psdu,
        airtime: Duration::from_micros(28),
        reserves: Duration::from_nanos(44_100),
        frame,
    }
}

/// Frames have the lengths by which their airtime is computed.
#[test]
fn lengths_are_those_on_the_air() {
    let category = AccessCategory::BestEffort;
    let frames = [
        (Frame::ACK, len::ACK),
        (Frame::Cts, len::ACK),
        (Frame::Rts, len::RTS),
        (
            Frame::BlockAckReq { category, start: 5 },
            len::BLOCK_ACK_REQ,
        ),
        (
            Frame::BlockAck {
                category,
                start: 5,
                bitmap: 3,
                carried: Vec::new(),
            },
            len::BLOCK_ACK,
        ),
        (
            Frame::BlockAck {
                category,
                start: 5,
                bitmap: 3,
                carried: alloc::vec![7; 84],
            },
            len::BLOCK_ACK + 84,
        ),
        (
            Frame::Ack {
                carried: alloc::vec![1, 2, 3, 4],
            },
            len::ACK + 4,
        ),
    ];
    for (frame, expected) in frames {
        assert_eq!(frame.control_len(), expected);
        let carried = frame.carried().to_vec();
        let packets = encode(ppdu(frame, expected), Standard::N);
        let header = usize::from(u16::from_le_bytes([packets[0][2], packets[0][3]]));
        assert_eq!(packets[0].len() - header, expected as usize);
        // Behind the fields of the standard, before the FCS.
        assert!(packets[0][..packets[0].len() - 4].ends_with(&carried));
    }
    for standard in Standard::ALL {
        let beacons = crate::world::Beacons::usual(standard, Duration::from_micros(102_400));
        let beacon = Ppdu {
            to: None,
            mode: beacons.mode,
            ..ppdu(Frame::Beacon, beacons.len)
        };
        let packets = encode(beacon, standard);
        let header = usize::from(u16::from_le_bytes([packets[0][2], packets[0][3]]));
        assert_eq!(
            packets[0].len() - header,
            beacons.len as usize,
            "{standard:?}"
        );
    }
}

/// Byte for byte, by the figures of §9.3.
#[test]
fn an_ack_and_a_data_frame_byte_by_byte() {
    let ack = &encode(ppdu(Frame::ACK, 14), Standard::A)[0];
    // Version, length 24 with padding before the channel; TSFT, flags, rate, channel.
    assert_eq!(ack[..8], [0, 0, 22, 0, 0x0f, 0, 0, 0]);
    assert_eq!(ack[8..16], 1_234_567_u64.to_le_bytes());
    assert_eq!(ack[16..22], [0x10, 48, 0x3c, 0x14, 0x40, 0x01]);
    assert_eq!(ack[22..32], [0xd4, 0, 45, 0, 2, 0, 0, 0, 0, 1]);
    let msdu = |payload, len| Msdu {
        src: NodeId::AP,
        dst: NodeId(1),
        len,
        class: Class::Data,
        category: AccessCategory::BestEffort,
        payload,
    };
    let data = Data {
        mpdus: alloc::vec![
            Mpdu {
                seq: 0x123,
                retry: true,
                msdu: msdu(Some(&b"abcd"[..]), 4)
            },
            Mpdu {
                seq: 0x124,
                retry: false,
                msdu: msdu(None, 4)
            },
        ],
        category: AccessCategory::BestEffort,
        ack: AckPolicy::BlockAck,
        more_data: true,
        sync: true,
    };
    let packets = encode(ppdu(Frame::Data(data), 100), Standard::N);
    assert_eq!(packets.len(), 2);
    let header = usize::from(packets[0][2]);
    let frame = &packets[0][header..];
    assert_eq!(frame[..4], [0x88, 0x2a, 45, 0]);
    assert_eq!(
        frame[4..22],
        [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0]
    );
    assert_eq!(frame[22..26], [0x30, 0x12, 0, 0x80]);
    assert_eq!(frame[26..38], *b"\xaa\xaa\x03\0\0\0\x08\0abcd");
    assert_eq!(frame.len(), 26 + 8 + 4 + 4);
    assert_eq!(crc32fast::hash(&frame[..38]).to_le_bytes(), frame[38..]);
    // Only the second is marked as the last of the A-MPDU.
    let flags = |packet: &[u8]| packet[header - 4];
    assert_eq!((flags(&packets[0]), flags(&packets[1])), (0x04, 0x0c));
}

/// ADDBA frames byte by byte, by the figures of §9.6.4 and §9.4.1.13.
#[test]
fn addba_frames_byte_by_byte() {
    let request = Addba {
        seq: 0x123,
        retry: true,
        token: 9,
        category: AccessCategory::Voice,
        kind: AddbaKind::Request { start: 0xabc },
    };
    let response = Addba {
        retry: false,
        kind: AddbaKind::Response,
        ..request
    };
    let frame = |addba| {
        let packet = encode(ppdu(Frame::Addba(addba), len::ADDBA), Standard::N).remove(0);
        let frame = packet[usize::from(packet[2])..].to_vec();
        assert_eq!(frame.len(), len::ADDBA as usize);
        frame
    };
    let asked = frame(request);
    assert_eq!(asked[..4], [0xd0, 0x08, 45, 0]);
    assert_eq!(
        asked[4..22],
        [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0]
    );
    // Category 3, action 0; TID 6, immediate, 64 frames; no timeout; the starting sequence number.
    assert_eq!(
        asked[22..33],
        [0x30, 0x12, 3, 0, 9, 0x1a, 0x10, 0, 0, 0xc0, 0xab]
    );
    let answered = frame(response);
    assert_eq!(answered[..2], [0xd0, 0]);
    assert_eq!(
        answered[22..33],
        [0x30, 0x12, 3, 1, 9, 0, 0, 0x1a, 0x10, 0, 0]
    );
}
