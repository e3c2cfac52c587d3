//! The rules of `cake_ack_filter`, in the order in which `net/sched/sch_cake.c` has them.

use super::*;

fn cake(segments: &[Segment]) -> Vec<u32> {
    left(AckFilter::Cake, segments)
}

fn aggressive(segments: &[Segment]) -> Vec<u32> {
    left(AckFilter::CakeAggressive, segments)
}

/// Rules 1, 10 and 11: two eligible ones, the one nearest to the head goes, the new one is at the
/// tail.
#[test]
fn a_spare_acknowledgement_stays() {
    assert_eq!(cake(&[ack(100)]), [0]);
    assert_eq!(cake(&[ack(100), ack(200)]), [0, 1]);
    assert_eq!(cake(&[ack(100), ack(200), ack(300)]), [1, 2]);
    let rising = [100, 200, 300, 400, 500].map(ack);
    assert_eq!(cake(&rising), [3, 4]);
}

#[test]
fn the_new_one_goes_to_the_tail() {
    let mut queue = Queue::new(AckFilter::Cake, 100);
    for (flow, number) in [(1, 100), (2, 100), (1, 200), (3, 100), (1, 300)] {
        assert!(queue.push(flow, ack(number)));
    }
    assert_eq!(queue.numbers(), [(2, 100), (1, 200), (3, 100), (1, 300)]);
}

#[test]
fn a_full_queue_takes_one_for_which_another_goes() {
    let mut queue = Queue::new(AckFilter::Cake, 2);
    for number in [100, 200, 300] {
        assert!(queue.push(1, ack(number)));
    }
    assert_eq!(queue.numbers(), [(1, 200), (1, 300)]);
}

/// Rule 10, aggressive: one suffices directly before the new one, with the same flags.
#[test]
fn the_aggressive_mode_keeps_no_spare() {
    assert_eq!(aggressive(&[ack(100), ack(200), ack(300)]), [2]);
    assert_eq!(aggressive(&[ack(100), data(100), ack(200)]), [0, 1, 2]);
    let echo = with_flags(ack(200), 0x040);
    assert_eq!(aggressive(&[ack(100), echo]), [0, 1]);
    assert_eq!(aggressive(&[echo, with_flags(ack(300), 0x040)]), [1]);
}

/// Rule 2: the trigger has ACK and no SYN; it may carry data.
#[test]
fn data_with_an_acknowledgement_triggers() {
    assert_eq!(cake(&[ack(100), ack(200), data(300)]), [1, 2]);
    let syn = with_flags(ack(300), 0x002);
    assert_eq!(cake(&[ack(100), ack(200), syn]), [0, 1, 2]);
    let silent = Segment {
        flags: Flags::default(),
        ..ack(300)
    };
    assert_eq!(cake(&[ack(100), ack(200), silent]), [0, 1, 2]);
}

/// Rules 3 and 4: what goes has no payload, and ACK alone of all flags; ECE and CWR are judged
/// apart.
#[test]
fn only_plain_acknowledgements_go() {
    for flag in [
        0x001, 0x002, 0x004, 0x008, 0x020, 0x100, 0x200, 0x400, 0x800,
    ] {
        let other = with_flags(ack(100), flag);
        assert_eq!(cake(&[other, ack(200), ack(300)]), [0, 1, 2], "{flag:#x}");
    }
    assert_eq!(cake(&[data(100), ack(200), ack(300)]), [0, 1, 2]);
}

/// Rule 5.
#[test]
fn options_that_it_does_not_know_stay() {
    let with = |options| Segment {
        options,
        ..ack(100)
    };
    let rest = [ack(200), ack(300)];
    let unknown = with(OtherOptions::Unknown);
    assert_eq!(cake(&[unknown, rest[0], rest[1]]), [0, 1, 2]);
    let signed = with(OtherOptions::Signature);
    assert_eq!(cake(&[signed, rest[0], rest[1]]), [1, 2]);
}

/// Rule 5: timestamps later than the trigger's stay.
#[test]
fn later_timestamps_stay() {
    let two = |value, echo| {
        [
            stamped(100, value, echo),
            stamped(200, 7, 7),
            stamped(300, 7, 7),
        ]
    };
    assert_eq!(cake(&two(7, 7)), [1, 2]);
    assert_eq!(cake(&two(8, 7)), [0, 1, 2]);
    assert_eq!(cake(&two(7, 8)), [0, 1, 2]);
    assert_eq!(cake(&two(u32::MAX, 7)), [1, 2], "they wrap around");
    // Without the option the trigger counts as one with zeros.
    let bare = [stamped(100, 7, 7), ack(200), ack(300)];
    assert_eq!(cake(&bare), [0, 1, 2]);
}

/// Rule 6.
#[test]
fn higher_numbers_stay() {
    assert_eq!(cake(&[ack(400), ack(200), ack(300)]), [0, 1, 2]);
}

/// Rule 7: every block has to lie inside one block of the trigger; the number does not count.
#[test]
fn blocks_have_to_be_covered() {
    let three = |old: Segment, new: Segment| [old, ack(150), new];
    let old = sack(100, &[(300, 400)]);
    for (new, goes) in [
        (sack(200, &[(300, 400)]), true),
        (sack(200, &[(250, 500)]), true),
        (sack(200, &[(300, 399)]), false),
        (sack(200, &[(350, 450)]), false),
        (ack(200), false),
        (ack(900), false),
    ] {
        let expected = if goes { [1, 2].as_slice() } else { &[0, 1, 2] };
        assert_eq!(cake(&three(old, new)), expected, "{new:?}");
    }
    let doubled = sack(100, &[(50, 80)]);
    let covering = sack(200, &[(40, 90)]);
    assert_eq!(cake(&three(doubled, covering)), [0, 1, 2], "a DSACK");
}

/// Rule 8: an equal number goes only when the trigger reports more.
#[test]
fn equal_numbers_go_when_blocks_grow() {
    assert_eq!(cake(&[ack(200); 4]), [0, 1, 2, 3]);
    let growing = [
        sack(200, &[(300, 400)]),
        sack(200, &[(300, 500)]),
        sack(200, &[(300, 600)]),
    ];
    assert_eq!(cake(&growing), [1, 2]);
    let same = [sack(200, &[(300, 400)]); 3];
    assert_eq!(cake(&same), [0, 1, 2]);
    assert_eq!(cake(&[ack(200), ack(200), growing[0]]), [1, 2]);
}

/// Rule 9: what is eligible is forgotten when ECE or CWR of a later one differ.
#[test]
fn a_change_of_the_echo_stays() {
    let echo = |number| with_flags(ack(number), 0x040);
    assert_eq!(cake(&[ack(100), echo(200), ack(300)]), [0, 1, 2]);
    let segments = [ack(100), echo(200), echo(300), ack(400)];
    assert_eq!(cake(&segments), [0, 2, 3], "two of one kind");
    let reduced = with_flags(ack(200), 0x080);
    assert_eq!(cake(&[ack(100), reduced, ack(300)]), [0, 1, 2]);
}
