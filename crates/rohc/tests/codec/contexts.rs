//! What carriers say of deliveries, and what follows for the contexts.

use crate::acks::{Ack, Version};
use tack_rohc::{
    Compressor, Config, DecodeError, Decompressor, Delivery, Format, Mode, Refusal, add_cid,
    small_cid,
};

/// Both ends of a flow after its first acknowledgement.
struct Flow {
    compressor: Compressor,
    decompressor: Decompressor,
    ack: Ack,
}

impl Flow {
    fn new(robustness: u8) -> Self {
        let ack = Ack {
            version: Version::V4,
            ..Ack::default()
        };
        let mut flow = Self {
            compressor: Compressor::new(Config {
                mode: Mode::Rfc,
                robustness,
            }),
            decompressor: Decompressor::new(Mode::Rfc),
            ack,
        };
        flow.native(Delivery::Certain);
        flow
    }

    fn native(&mut self, delivery: Delivery) {
        let packet = self.ack.bytes();
        self.compressor.handle_native(&packet, delivery).unwrap();
        if delivery == Delivery::Certain {
            self.decompressor.handle_native(&packet).unwrap();
        }
    }

    /// The next acknowledgement, compressed.
    fn next(&mut self) -> Result<tack_rohc::Compressed, Refusal> {
        self.ack.ack = self.ack.ack.wrapping_add(2896);
        self.compressor.compress(&self.ack.bytes())
    }

    /// The next acknowledgement arrives; its format and length.
    fn arrives(&mut self) -> (Format, usize) {
        let sent = self.next().unwrap();
        let rebuilt = self.decompressor.decompress(&sent.bytes).unwrap();
        assert_eq!(rebuilt.packet.as_slice(), self.ack.bytes());
        (sent.format, sent.bytes.len())
    }

    fn settle(&mut self) {
        for _ in 0..20 {
            self.arrives();
        }
        assert_eq!(self.arrives(), (Format::Rnd4, 4));
    }
}

#[test]
fn after_a_native_packet_that_may_be_lost_nothing_is_compressed_until_one_is_certain() {
    let mut flow = Flow::new(1);
    flow.settle();
    flow.ack.window = 99;
    flow.native(Delivery::Possible);
    assert_eq!(flow.next(), Err(Refusal::Uncertain));
    flow.native(Delivery::Certain);
    assert_eq!(flow.arrives(), (Format::Rnd4, 4), "the stride stays");
}

#[test]
fn a_native_packet_recovers_from_any_loss() {
    let mut flow = Flow::new(1);
    // The packet with the stride is among the lost ones, and more than the MSN can tell apart.
    for _ in 0..40 {
        flow.next().unwrap();
    }
    flow.compressor.handle_loss();
    assert_eq!(flow.next(), Err(Refusal::Uncertain));
    flow.native(Delivery::Certain);
    assert_eq!(flow.arrives(), (Format::CoCommon, 11), "the stride again");
    assert_eq!(flow.arrives(), (Format::Rnd4, 4));
}

#[test]
fn an_ir_packet_recovers_from_any_loss() {
    let mut flow = Flow::new(1);
    for _ in 0..40 {
        flow.next().unwrap();
    }
    flow.compressor.handle_loss();
    flow.ack.ack = flow.ack.ack.wrapping_add(2896);
    let packet = flow.ack.bytes();
    let sent = flow.compressor.compress_ir(&packet).unwrap();
    let rebuilt = flow.decompressor.decompress(&sent.bytes).unwrap();
    assert_eq!(rebuilt.packet.as_slice(), packet);
    assert_eq!(flow.arrives(), (Format::Rnd4, 4));
}

#[test]
fn a_loss_that_nobody_reports_is_noticed() {
    let mut flow = Flow::new(1);
    flow.settle();
    flow.ack.window = 99;
    flow.next().unwrap();
    // Seven wrong headers in eight: so some packet of these.
    let refused = (0..20).filter(|_| {
        let sent = flow.next().unwrap();
        let error = flow.decompressor.decompress(&sent.bytes);
        matches!(error, Err(DecodeError::Crc { .. }))
    });
    assert!(refused.count() > 10);
}

#[test]
fn confirmation_ends_the_repetitions() {
    let mut flow = Flow::new(4);
    flow.settle();
    flow.ack.window = 99;
    assert_eq!(flow.arrives().0, Format::Rnd7);
    assert_eq!(flow.arrives().0, Format::Rnd7);
    let msn = flow.decompressor.msn().unwrap();
    assert_eq!(flow.compressor.msn(), Some(msn));
    flow.compressor.handle_confirmed(msn.wrapping_add(1));
    assert_eq!(flow.arrives().0, Format::Rnd7, "that was not sent yet");
    flow.compressor.handle_confirmed(msn);
    assert_eq!(flow.arrives(), (Format::Rnd4, 4));
}

#[test]
fn another_flow_is_refused_and_starts_anew_with_a_native_packet() {
    let mut flow = Flow::new(4);
    flow.settle();
    flow.ack.version = Version::V6;
    assert_eq!(flow.next(), Err(Refusal::OtherFlow));
    flow.native(Delivery::Certain);
    assert_eq!(flow.arrives(), (Format::Rnd3, 5));
}

#[test]
fn an_identifier_is_stepped_over() {
    let mut flow = Flow::new(4);
    let sent = flow.next().unwrap();
    let mut bytes = vec![0xe0, add_cid(7).unwrap()];
    bytes.extend(sent.bytes);
    assert_eq!(small_cid(&bytes), 7);
    let rebuilt = flow.decompressor.decompress(&bytes).unwrap();
    assert_eq!(rebuilt.consumed, bytes.len());
    assert_eq!(rebuilt.packet.as_slice(), flow.ack.bytes());
}

#[test]
fn what_cannot_come_back_is_refused() {
    let refusal = |edit: fn(&mut Vec<u8>)| {
        let mut packet = Ack::default().bytes();
        edit(&mut packet);
        let mut compressor = Compressor::new(Config::default());
        compressor
            .handle_native(&packet, Delivery::Certain)
            .unwrap_err()
    };
    assert_eq!(refusal(Vec::clear), Refusal::NotIp);
    assert_eq!(refusal(|packet| packet.push(0)), Refusal::NotIp);
    assert_eq!(refusal(|packet| packet[8] ^= 1), Refusal::IpHeader);
    assert_eq!(refusal(|packet| packet[6] |= 0x20), Refusal::IpHeader);
    assert_eq!(refusal(|packet| packet[9] = 17), Refusal::NotTcp);
    assert_eq!(refusal(|packet| packet[32] = 0x40), Refusal::TcpHeader);
    assert_eq!(
        refusal(|packet| {
            packet.extend([0; 4]);
            packet[3] += 4;
        }),
        Refusal::Data
    );
}

#[test]
fn the_lean_modes_refuse_what_they_cannot_carry() {
    let mut compressor = Compressor::new(Config {
        mode: Mode::LeanNoChecksum,
        robustness: 1,
    });
    let mut ack = Ack::default();
    compressor
        .handle_native(&ack.bytes(), Delivery::Certain)
        .unwrap();
    let mut damaged = ack.bytes();
    damaged[37] ^= 1;
    assert_eq!(compressor.compress(&damaged), Err(Refusal::TcpChecksum));
    ack.flags |= 8;
    assert_eq!(compressor.compress(&ack.bytes()), Err(Refusal::Flags));
}
