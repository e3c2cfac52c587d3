//! Random streams of acknowledgements, compressed and rebuilt, while compressed packets are lost.

use crate::acks::{Ack, Version};
use proptest::prelude::*;
use tack_rohc::{Compressor, Config, Decompressor, Delivery, Mode, Refusal};

/// What happens from one acknowledgement to the next.
#[derive(Clone, Debug)]
enum Change {
    /// The stream advances by some segments.
    Advance(u32),
    /// By any number of bytes.
    Jump(u32),
    Duplicate {
        holes: usize,
    },
    Window(u16),
    /// Reserved bits, CWR and ECE.
    TcpEcn(u16),
    IpEcn(u8),
    Ttl(u8),
    Dscp(u8),
    Psh,
    Fin,
    Urgent(u16),
    Seq(u32),
    Unknown(u8, Vec<u8>),
    NoUnknown,
    DontFragment(bool),
}

/// What becomes of the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Arrives,
    Lost,
    /// Sent as it is, and acknowledged by the link layer.
    Native,
    /// Sent as an IR packet.
    Ir,
}

#[derive(Clone, Copy, Debug)]
enum IpId {
    Zero,
    Sequential,
    Swapped,
    Random,
    Constant,
}

#[derive(Clone, Debug)]
struct Step {
    change: Change,
    ticks: (u32, u32),
    fate: Fate,
    noise: u16,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        30 => (1_u32..4).prop_map(Change::Advance),
        2 => any::<u32>().prop_map(Change::Jump),
        2 => (0_u32..200_000).prop_map(Change::Jump),
        10 => (0_usize..4).prop_map(|holes| Change::Duplicate { holes }),
        4 => any::<u16>().prop_map(Change::Window),
        2 => (0_u16..64).prop_map(|bits| Change::TcpEcn(bits << 6)),
        2 => Just(Change::TcpEcn(0)),
        1 => (0_u8..4).prop_map(Change::IpEcn),
        1 => any::<u8>().prop_map(Change::Ttl),
        1 => (0_u8..64).prop_map(Change::Dscp),
        1 => Just(Change::Psh),
        1 => Just(Change::Fin),
        1 => any::<u16>().prop_map(Change::Urgent),
        1 => any::<u32>().prop_map(Change::Seq),
        1 => (6_u8..8, prop::collection::vec(any::<u8>(), 0..6))
            .prop_map(|(kind, body)| Change::Unknown(kind, body)),
        2 => (0_u8..2).prop_map(|byte| Change::Unknown(253, vec![byte; 2])),
        2 => Just(Change::NoUnknown),
        1 => any::<bool>().prop_map(Change::DontFragment),
    ]
}

fn tick() -> impl Strategy<Value = u32> {
    prop_oneof![6 => Just(0_u32), 6 => 1_u32..3, 1 => 0_u32..40_000, 1 => any::<u32>()]
}

/// `losses` in as many packets and 22 more are lost.
fn step(losses: u32) -> impl Strategy<Value = Step> {
    let fate = prop_oneof![
        20 => Just(Fate::Arrives),
        losses => Just(Fate::Lost),
        1 => Just(Fate::Native),
        1 => Just(Fate::Ir),
    ];
    (change(), (tick(), tick()), fate, any::<u16>()).prop_map(|(change, ticks, fate, noise)| Step {
        change,
        ticks,
        fate,
        noise,
    })
}

fn apply(ack: &mut Ack, step: &Step, ip_id: IpId) {
    const MSS: u32 = 1448;
    ack.flags &= !0x209 & !0x1;
    match &step.change {
        Change::Advance(segments) => {
            ack.ack = ack.ack.wrapping_add(segments * MSS);
            ack.sack.clear();
        }
        Change::Jump(bytes) => {
            ack.ack = ack.ack.wrapping_add(*bytes);
            ack.sack.clear();
        }
        Change::Duplicate { holes } => {
            ack.sack = (0..*holes as u32)
                .map(|hole| {
                    let start = ack
                        .ack
                        .wrapping_add(MSS + hole * u32::from(step.noise) * 90);
                    (start, start.wrapping_add(MSS))
                })
                .collect();
        }
        Change::Window(window) => ack.window = *window,
        Change::TcpEcn(bits) => ack.flags = ack.flags & !0xfc0 | bits,
        Change::IpEcn(ecn) => ack.ip_ecn = *ecn,
        Change::Ttl(ttl) => ack.ttl = *ttl,
        Change::Dscp(dscp) => ack.dscp = *dscp,
        Change::Psh => ack.flags |= 0x8,
        Change::Fin => ack.flags |= 0x1,
        Change::Urgent(at) => {
            ack.urgent = *at;
            ack.flags ^= 0x20;
        }
        Change::Seq(bytes) => ack.seq = ack.seq.wrapping_add(*bytes),
        Change::Unknown(kind, body) => ack.unknown = Some((*kind, body.clone())),
        Change::NoUnknown => ack.unknown = None,
        Change::DontFragment(set) => ack.dont_fragment = *set,
    }
    if ack.sack.len() > 2 && ack.timestamps.is_some() && ack.unknown.is_some() {
        ack.unknown = None;
    }
    if let Some((value, echo)) = &mut ack.timestamps {
        *value = value.wrapping_add(step.ticks.0);
        *echo = echo.wrapping_add(step.ticks.1);
    }
    ack.ip_id = match ip_id {
        IpId::Zero => 0,
        IpId::Sequential => ack.ip_id.wrapping_add(1),
        IpId::Swapped => ack.ip_id.swap_bytes().wrapping_add(1).swap_bytes(),
        IpId::Random => step.noise,
        IpId::Constant => ack.ip_id,
    };
}

fn run(config: Config, mut ack: Ack, ip_id: IpId, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut compressor = Compressor::new(config);
    let mut decompressor = Decompressor::new(config.mode);
    prop_assert_eq!(compressor.compress(&ack.bytes()), Err(Refusal::NoContext));
    compressor
        .handle_native(&ack.bytes(), Delivery::Certain)
        .unwrap();
    decompressor.handle_native(&ack.bytes()).unwrap();
    let mut lost_in_row = 0;
    for (number, step) in steps.iter().enumerate() {
        apply(&mut ack, step, ip_id);
        let packet = ack.bytes();
        let mut fate = step.fate;
        if lost_in_row + 1 >= config.robustness && matches!(fate, Fate::Lost) {
            fate = Fate::Arrives;
        }
        let sent = match fate {
            Fate::Native => None,
            Fate::Ir => Some(compressor.compress_ir(&packet).unwrap()),
            _ => match compressor.compress(&packet) {
                Ok(sent) => Some(sent),
                Err(Refusal::Flags) if config.mode != Mode::Rfc => None,
                Err(refusal) => panic!("{number}: {refusal} {packet:x?}"),
            },
        };
        let Some(sent) = sent else {
            compressor
                .handle_native(&packet, Delivery::Certain)
                .unwrap();
            decompressor.handle_native(&packet).unwrap();
            lost_in_row = 0;
            continue;
        };
        if fate == Fate::Lost {
            lost_in_row += 1;
            continue;
        }
        lost_in_row = 0;
        // What follows a packet is not looked at.
        let mut bytes = sent.bytes.to_vec();
        bytes.extend([0xff; 3]);
        let rebuilt = decompressor.decompress(&bytes);
        let rebuilt = rebuilt.map_err(|error| {
            TestCaseError::fail(format!(
                "{number}: {error}, {:?} {:x?}",
                sent.format, sent.bytes
            ))
        })?;
        prop_assert_eq!(
            rebuilt.packet.as_slice(),
            &packet[..],
            "{} {:?}",
            number,
            sent.format
        );
        prop_assert_eq!(rebuilt.consumed, sent.bytes.len());
        prop_assert_eq!(rebuilt.format, sent.format);
        prop_assert_eq!(rebuilt.msn, sent.msn);
    }
    Ok(())
}

/// Fewer in the ordinary form; `TACK_LONG=1`, which CI sets, has all.
fn cases() -> u32 {
    if tack_skip::is_long() { 400 } else { 150 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn what_arrives_is_what_was_sent(
        mode in prop::sample::select(vec![Mode::Rfc, Mode::Lean, Mode::LeanNoChecksum]),
        robustness in 1_u8..=11,
        version in prop::sample::select(vec![Version::V4, Version::V6]),
        timestamps in prop::option::of((any::<u32>(), any::<u32>())),
        ip_id in prop::sample::select(vec![
            IpId::Zero, IpId::Sequential, IpId::Swapped, IpId::Random, IpId::Constant,
        ]),
        first_id: u16,
        first_ack: u32,
        steps in prop_oneof![
            prop::collection::vec(step(8), 1..80),
            prop::collection::vec(step(200), 1..200),
        ],
    ) {
        let config = Config { mode, robustness };
        let first = Ack {
            version,
            timestamps,
            ip_id: if matches!(ip_id, IpId::Zero) { 0 } else { first_id },
            ack: first_ack,
            ..Ack::default()
        };
        run(config, first, ip_id, &steps)?;
    }
}
