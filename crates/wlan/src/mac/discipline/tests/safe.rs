//! The rules of the filter that loses no information.

use super::*;

fn safe(segments: &[Segment]) -> Vec<u32> {
    left(AckFilter::Safe, segments)
}

#[test]
fn redundant_ones_go_in_place() {
    assert_eq!(safe(&[ack(100), ack(200), ack(300)]), [2]);
    let mut queue = Queue::new(AckFilter::Safe, 2);
    for (flow, number) in [(1, 100), (2, 100), (1, 200)] {
        assert!(queue.push(flow, ack(number)), "without room");
    }
    assert_eq!(queue.numbers(), [(1, 200), (2, 100)]);
}

/// Rule 1: nothing but ACK, ECE, CWR and AE is set, and there is no payload.
#[test]
fn only_plain_acknowledgements_take_part() {
    for flag in [0x001, 0x002, 0x004, 0x008, 0x020, 0x200, 0x400, 0x800] {
        let other = with_flags(ack(200), flag);
        assert_eq!(safe(&[other, ack(300)]), [0, 1], "{flag:#x} waits");
        assert_eq!(safe(&[ack(100), other]), [0, 1], "{flag:#x} comes");
    }
    assert_eq!(safe(&[data(200), ack(300)]), [0, 1]);
    assert_eq!(safe(&[ack(100), data(200)]), [0, 1]);
    let silent = Segment {
        flags: Flags::default(),
        ..ack(200)
    };
    assert_eq!(safe(&[silent, ack(300)]), [0, 1]);
}

/// Rule 2: an equal number is not newer. A duplicate that waits is kept from a higher number too,
/// and so is what it repeats.
#[test]
fn duplicates_stay() {
    assert_eq!(safe(&[ack(200); 4]), [0, 1, 2, 3]);
    let segments = [ack(200), ack(200), ack(200), ack(300)];
    assert_eq!(safe(&segments), [0, 1, 2, 3]);
    let segments = [ack(200), ack(200), ack(300), ack(400)];
    assert_eq!(safe(&segments), [0, 1, 3], "the higher one does go");
    assert_eq!(safe(&[ack(300), ack(200)]), [0, 1], "an older one comes");
}

/// Rule 3.
#[test]
fn timestamps_do_not_go_back() {
    assert_eq!(safe(&[stamped(100, 7, 7), stamped(200, 7, 7)]), [1]);
    assert_eq!(safe(&[stamped(100, 7, 7), stamped(200, 8, 9)]), [1]);
    assert_eq!(safe(&[stamped(100, u32::MAX, 7), stamped(200, 0, 7)]), [1]);
    assert_eq!(safe(&[stamped(100, 7, 7), stamped(200, 6, 7)]), [0, 1]);
    assert_eq!(safe(&[stamped(100, 7, 7), stamped(200, 7, 6)]), [0, 1]);
    assert_eq!(safe(&[stamped(100, 7, 7), ack(200)]), [0, 1]);
    assert_eq!(safe(&[ack(100), stamped(200, 7, 7)]), [0, 1]);
}

/// Rule 4.
#[test]
fn blocks_have_to_be_covered() {
    let older = sack(100, &[(300, 400), (500, 600)]);
    for (newer, goes) in [
        (sack(200, &[(300, 400), (500, 600)]), true),
        (sack(200, &[(250, 700)]), true),
        (ack(600), true),
        (sack(400, &[(500, 600)]), true),
        (sack(350, &[(500, 600)]), false),
        (sack(350, &[(350, 450), (500, 600)]), true),
        (sack(200, &[(300, 400)]), false),
        (sack(200, &[(300, 400), (500, 599)]), false),
        (sack(200, &[(301, 400), (500, 600)]), false),
        (ack(599), false),
        (ack(200), false),
    ] {
        let expected = if goes { [1].as_slice() } else { &[0, 1] };
        assert_eq!(safe(&[older, newer]), expected, "{newer:?}");
    }
}

/// Rule 4: nothing else tells that a segment arrived twice.
#[test]
fn what_reports_a_duplicate_segment_stays() {
    assert_eq!(safe(&[sack(200, &[(100, 150)]), ack(300)]), [0, 1]);
    // Within the second block, above the number.
    let above = sack(200, &[(400, 450), (400, 600)]);
    assert_eq!(safe(&[above, ack(700)]), [0, 1]);
    assert!(!sack(200, &[(400, 450), (500, 600)]).has_dsack());
}

/// Rule 5: a change of ECE, CWR or AE, or of the IP header's marks, is a message.
#[test]
fn marks_do_not_change() {
    for flag in [0x040, 0x080, 0x100] {
        let marked = with_flags(ack(200), flag);
        assert_eq!(safe(&[ack(100), marked]), [0, 1]);
        assert_eq!(safe(&[marked, ack(300)]), [0, 1]);
        assert_eq!(safe(&[marked, with_flags(ack(300), flag)]), [1]);
        // One between that differs: the first one belongs to another run of the same marks.
        assert_eq!(safe(&[ack(100), marked, ack(300)]), [0, 1, 2]);
    }
    let other_class = Segment {
        traffic_class: 0xb8,
        ..ack(200)
    };
    assert_eq!(safe(&[ack(100), other_class]), [0, 1]);
}

/// Rule 6.
#[test]
fn options_that_it_does_not_know_stay() {
    for options in [OtherOptions::Unknown, OtherOptions::Signature] {
        let older = Segment {
            options,
            ..ack(100)
        };
        assert_eq!(safe(&[older, ack(200)]), [0, 1]);
        assert_eq!(safe(&[ack(50), older]), [1], "it may be the newer one");
    }
}

// Rule 7, nothing that was sent once: `what_was_sent_once_stays`.

/// Rule 8.
#[test]
fn the_order_of_the_flow_is_kept() {
    assert_eq!(safe(&[ack(100), data(100), ack(200)]), [1, 2]);
    assert_eq!(safe(&[ack(100), ack(200), ack(200), ack(300)]), [1, 2, 3]);
    let mut queue = Queue::new(AckFilter::Safe, 100);
    queue.push(1, ack(100));
    queue.push(1, None);
    queue.push(1, ack(200));
    assert_eq!(queue.filtered, 0, "one that cannot be read hides its marks");
}

/// Rule 9: a window update has the number of the one before it, and stays as a duplicate does.
/// Nothing reads the window.
#[test]
fn a_window_update_stays() {
    assert_eq!(safe(&[ack(200), ack(200)]), [0, 1]);
}

#[test]
fn flows_and_duplicates_bound_the_queue() {
    let mut queue = Queue::new(AckFilter::Safe, 1_000);
    let mut duplicates = 0;
    for round in 0..50 {
        for flow in 1..=10_u8 {
            let copies = u32::from(flow == 3 && round % 10 == 0) * 3;
            for _ in 0..=copies {
                assert!(queue.push(flow, ack(round * 100)));
            }
            duplicates += copies as usize;
            // Of each burst the original stays besides its copies.
            let bursts = duplicates / 3;
            assert!(queue.packets().len() <= 10 + duplicates + bursts);
        }
    }
}
