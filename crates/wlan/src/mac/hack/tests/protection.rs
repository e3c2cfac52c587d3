//! Which lengthened responses AIFS protects: one symbol more is one too many.

use super::{Fate, Pair, config};
use crate::mac::hack::Variant;
use crate::phy::Standard;

/// A response that carries `len` bytes: its number, and acknowledgements of two flows. One takes
/// three bytes, and one more where the flow is not that of the one before: the last ones take
/// turns.
fn fits(standard: Standard, frames: u32, len: usize) -> bool {
    let acks = (len - 2) / 3;
    let switches = len - 2 - 3 * acks;
    let mut pair = Pair::ready(config(standard), Variant::Timer);
    pair.ack_flow(1, 5, 0);
    pair.run(20, |_, _| Fate::Arrives);
    for number in 1..=acks {
        let is_other = (number + switches).saturating_sub(acks) % 2 == 1;
        pair.ack_flow(1, if is_other { 5 } else { 1 }, number as u32);
    }
    pair.send(0, 0..frames);
    let mut carried = 0;
    pair.run(2, |_, ppdu| {
        carried = carried.max(ppdu.frame.carried().len());
        Fate::Arrives
    });
    assert_eq!(carried, len, "the response carries what the test is about");
    assert_eq!(pair.stats(0).rebuilt, acks as u64);
    let stats = pair.stats(1);
    assert_eq!(stats.responses, 1);
    stats.fitting == 1
}

/// AIFS of best effort is 43 us (16 + 3 * 9) where there is QoS: ten symbols of 4 us. A Block ACK
/// of 32 bytes at 24 Mbit/s takes 3 symbols, of which 10 bits are free: 121 bytes fill 13.
#[test]
fn a_block_ack_at_24_mbps_has_room_for_121_bytes() {
    assert!(fits(Standard::N, 2, 120));
    assert!(fits(Standard::N, 2, 121));
    assert!(!fits(Standard::N, 2, 122));
    assert!(!fits(Standard::N, 2, 300));
}

/// DIFS is 34 us, eight symbols. An ACK of 14 bytes takes 2: 103 bytes fill 10.
#[test]
fn an_ack_at_24_mbps_has_room_for_103_bytes() {
    assert!(fits(Standard::A, 1, 102));
    assert!(fits(Standard::A, 1, 103));
    assert!(!fits(Standard::A, 1, 104));
}
