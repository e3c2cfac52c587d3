//! How long compressed acknowledgements are on streams of each kind.
//!
//! Each row has what librohc 2.3.0 needs for a stream of that kind (RFC 6846 leaves the choice of
//! format to the compressor; four repetitions, a window of four, one context without CID). Its
//! packets are not needed here: the streams are made by the test, and every packet of ours is
//! rebuilt.

use crate::acks::{Ack, Version};
use tack_rohc::{Compressor, Config, Decompressor, Delivery, Mode};

/// Two segments.
const STRIDE: u32 = 2920;
/// When the stream changes, if it does: the stride is known by then.
const CHANGE: u32 = 60;
/// From this many packets on after the change all repetitions are over.
const SETTLED: u32 = 8;
const END: u32 = CHANGE + 40;

/// Changes an acknowledgement into the next one.
type Next = fn(u32, &mut Ack);

/// The sizes of a stream, packet by packet. The first one travels as it is.
fn sizes(mode: Mode, next: Next) -> Vec<usize> {
    let mut compressor = Compressor::new(Config {
        mode,
        ..Config::default()
    });
    let mut decompressor = Decompressor::new(mode);
    let mut ack = Ack::default();
    let mut sizes = Vec::new();
    for number in 0..END {
        next(number, &mut ack);
        let packet = ack.bytes();
        if number == 0 {
            compressor
                .handle_native(&packet, Delivery::Certain)
                .unwrap();
            decompressor.handle_native(&packet).unwrap();
            sizes.push(packet.len());
            continue;
        }
        let sent = compressor.compress(&packet).unwrap();
        let rebuilt = decompressor.decompress(&sent.bytes).unwrap();
        assert_eq!(rebuilt.packet.as_slice(), packet);
        sizes.push(sent.bytes.len());
    }
    sizes
}

fn settled(mode: Mode, next: Next) -> f64 {
    let sizes = sizes(mode, next);
    let settled = &sizes[(CHANGE + SETTLED) as usize..];
    settled.iter().sum::<usize>() as f64 / settled.len() as f64
}

fn advance(ack: &mut Ack) {
    ack.ack += STRIDE;
}

/// Any bytes at all, so that no stride holds.
fn wander(number: u32, ack: &mut Ack) {
    ack.ack += 1_000 + number.wrapping_mul(0x9e37_79b1) % 2_999;
}

fn random(number: u32) -> u16 {
    (number.wrapping_mul(0x9e37_79b1) >> 16) as u16
}

/// What a stream settles at, bytes.
struct Row {
    name: &'static str,
    next: Next,
    librohc: f64,
    rfc: f64,
    lean: f64,
}

const STEADY: [Row; 14] = [
    Row {
        name: "IP-ID zero, constant stride",
        next: |_, ack| advance(ack),
        librohc: 4.0,
        rfc: 4.0,
        lean: 4.0,
    },
    Row {
        name: "sequential IP-ID, constant stride",
        next: |number, ack| {
            advance(ack);
            ack.ip_id = 700 + number as u16;
        },
        librohc: 4.0,
        rfc: 4.0,
        lean: 4.0,
    },
    Row {
        name: "random IP-ID, constant stride",
        next: |number, ack| {
            advance(ack);
            ack.ip_id = random(number);
        },
        librohc: 6.0,
        rfc: 6.0,
        lean: 6.0,
    },
    Row {
        name: "IPv6, constant stride",
        next: |_, ack| {
            advance(ack);
            ack.version = Version::V6;
        },
        librohc: 4.0,
        rfc: 4.0,
        lean: 4.0,
    },
    Row {
        name: "no stride",
        next: wander,
        librohc: 5.0,
        rfc: 5.0,
        lean: 5.0,
    },
    Row {
        name: "no stride, sequential IP-ID",
        next: |number, ack| {
            wander(number, ack);
            ack.ip_id = 700 + number as u16;
        },
        librohc: 6.0,
        rfc: 6.0,
        lean: 6.0,
    },
    Row {
        name: "both timestamps move",
        next: |number, ack| {
            advance(ack);
            ack.timestamps = Some((5_000 + number, 9_000 + number));
        },
        librohc: 6.0,
        rfc: 6.0,
        lean: 5.0,
    },
    Row {
        name: "no timestamp moves",
        next: |_, ack| {
            advance(ack);
            ack.timestamps = Some((5_000, 9_000));
        },
        librohc: 10.0,
        rfc: 10.0,
        lean: 4.0,
    },
    Row {
        name: "duplicates, the value moves",
        next: |number, ack| {
            if number < CHANGE {
                advance(ack);
            }
            let echo = 9_000 + number.min(CHANGE);
            ack.timestamps = Some((5_000 + number, echo));
        },
        librohc: 8.0,
        rfc: 8.0,
        lean: 5.0,
    },
    Row {
        name: "window and timestamps move",
        next: |number, ack| {
            advance(ack);
            ack.window = 500 + 3 * number as u16;
            ack.timestamps = Some((5_000 + number, 9_000 + number));
        },
        librohc: 10.0,
        rfc: 10.0,
        lean: 9.0,
    },
    Row {
        name: "the window moves, no timestamp does",
        next: |number, ack| {
            advance(ack);
            ack.window = 500 + 3 * number as u16;
            ack.timestamps = Some((5_000, 9_000));
        },
        librohc: 14.0,
        rfc: 14.0,
        lean: 8.0,
    },
    Row {
        name: "duplicates",
        next: |number, ack| {
            if number < CHANGE {
                advance(ack);
            }
        },
        librohc: 4.0,
        rfc: 4.0,
        lean: 4.0,
    },
    Row {
        name: "duplicates, timestamps and a block that grows",
        next: sacks,
        librohc: 13.0,
        rfc: 13.0,
        lean: 10.0,
    },
    Row {
        name: "ECE, both timestamps move",
        next: congested,
        librohc: 7.0,
        rfc: 7.0,
        lean: 6.0,
    },
];

/// A hole opens, and one block behind it grows.
fn sacks(number: u32, ack: &mut Ack) {
    let echo = 9_000 + number.min(CHANGE);
    ack.timestamps = Some((5_000 + number, echo));
    if number < CHANGE {
        advance(ack);
    } else {
        let start = ack.ack + 1_448;
        // Beyond 15 bits its length takes a byte more.
        let blocks = 1 + (number - CHANGE) % 20;
        ack.sack = vec![(start, start + 1_448 * blocks)];
    }
}

fn congested(number: u32, ack: &mut Ack) {
    advance(ack);
    ack.timestamps = Some((5_000 + number, 9_000 + number));
    ack.flags = if number < CHANGE { 0x010 } else { 0x050 };
}

#[test]
fn streams_settle_at_the_sizes_of_the_other_compressor() {
    for Row {
        name,
        next,
        librohc,
        rfc,
        lean,
    } in STEADY
    {
        let [ours, ours_lean, bare] =
            [Mode::Rfc, Mode::Lean, Mode::LeanNoChecksum].map(|mode| settled(mode, next));
        assert_eq!((ours, ours_lean), (rfc, lean), "{name}");
        assert!(ours <= librohc, "{name}: {ours}, not {librohc}");
        assert_eq!(bare, lean - 2.0, "{name}: the checksum has two bytes");
    }
}

/// The sizes around [`CHANGE`]: four packets with it, and those after.
fn around(next: Next) -> (Vec<usize>, Vec<usize>) {
    let mut sizes = sizes(Mode::Rfc, next).split_off(CHANGE as usize);
    let after = sizes.split_off(4);
    (sizes, after)
}

#[test]
fn a_change_costs_no_more_than_with_the_other_compressor() {
    let is_within = |sizes: &[usize], most: usize| sizes.iter().all(|size| *size <= most);
    let (first, later) = around(sacks);
    assert!(
        is_within(&first, 24) && is_within(&later, 15),
        "{first:?} {later:?}"
    );
    let (first, later) = around(|number, ack| {
        advance(ack);
        ack.timestamps = Some((5_000 + number, 9_000 + number));
        ack.sack.clear();
        if number < CHANGE {
            ack.sack.push((ack.ack + 1_448, ack.ack + 2_896));
        }
    });
    assert!(
        is_within(&first, 20) && is_within(&later, 10),
        "{first:?} {later:?}"
    );
    let (first, later) = around(congested);
    assert!(
        is_within(&first, 16) && is_within(&later, 11),
        "{first:?} {later:?}"
    );
    let (first, later) = around(|number, ack| {
        advance(ack);
        ack.timestamps = Some((5_000 + number, 9_000 + number));
        if number == CHANGE {
            ack.ack += 40 * STRIDE;
        }
    });
    assert!(
        is_within(&first, 17) && is_within(&later, 6),
        "{first:?} {later:?}"
    );
}
