//! Figure 1 of the paper, and what follows from it.

use super::*;

fn queue(capacity: usize) -> Queue {
    Queue::new(AckFilter::Paper, capacity)
}

/// Figure 2 of the paper: flows a to g with one acknowledgement each, in a queue of seven.
#[test]
fn the_papers_example() {
    let [a, b, c, d, e, f, g] = [1, 2, 3, 4, 5, 6, 7];
    let mut queue = queue(7);
    for flow in [g, f, a, d, b, c] {
        assert!(queue.push(flow, ack(1)));
    }
    // The figure has f, g and a at the head in another order; what is sent does not matter to what
    // is replaced.
    queue.push(c, ack(2));
    assert_eq!(queue.numbers()[5], (c, 2), "in place");
    queue.push(e, ack(1));
    assert_eq!(queue.numbers()[6], (e, 1), "at the tail");
    queue.push(b, ack(2));
    queue.push(b, ack(3));
    assert_eq!(queue.numbers()[4], (b, 3));
    assert_eq!((queue.numbers().len(), queue.filtered), (7, 3));
}

#[test]
fn the_newer_one_takes_the_place_of_the_older() {
    let mut queue = queue(100);
    for (flow, number) in [(1, 100), (2, 100), (1, 200), (2, 300), (1, 300)] {
        assert!(queue.push(flow, ack(number)));
    }
    assert_eq!(queue.numbers(), [(1, 300), (2, 300)]);
    assert_eq!(queue.filtered, 3);
}

#[test]
fn one_of_each_flow_waits_at_most() {
    let mut queue = queue(1_000);
    for round in 0..50 {
        for flow in 1..=10 {
            assert!(queue.push(flow, ack(round * 100)));
            assert!(queue.packets().len() <= 10);
        }
    }
}

#[test]
fn a_full_queue_drops_none_that_replaces_another() {
    let mut queue = queue(2);
    assert!(queue.push(1, ack(100)) && queue.push(2, ack(100)));
    assert!(queue.push(1, ack(200)));
    assert!(!queue.push(1, ack(200)), "a duplicate needs room");
    assert!(!queue.push(3, ack(100)), "a third flow too");
    assert_eq!(queue.numbers(), [(1, 200), (2, 100)]);
}

#[test]
fn equal_numbers_are_kept_so_that_fast_retransmit_works() {
    assert_eq!(left(AckFilter::Paper, &[ack(200); 4]), [0, 1, 2, 3]);
}

/// Duplicates are protected from each other only. Those that stay arrive behind a higher number.
#[test]
fn a_higher_number_replaces_the_first_of_several_duplicates() {
    let segments = [ack(200), ack(200), ack(200), ack(300)];
    assert_eq!(left(AckFilter::Paper, &segments), [3, 1, 2]);
}

#[test]
fn the_newer_one_overtakes_what_waits_between() {
    let segments = [ack(200), data(200), ack(300)];
    assert_eq!(left(AckFilter::Paper, &segments), [2, 1]);
}

#[test]
fn what_else_an_acknowledgement_tells_is_not_looked_at() {
    let newer = stamped(300, 5, 5);
    for older in [
        sack(200, &[(400, 500)]),
        sack(200, &[(100, 200)]),
        stamped(200, 9, 9),
        with_flags(ack(200), 0x040),
        Segment {
            options: OtherOptions::Unknown,
            ..ack(200)
        },
    ] {
        assert_eq!(left(AckFilter::Paper, &[older, newer]), [1], "{older:?}");
    }
}

#[test]
fn only_pure_acknowledgements_replace_and_are_replaced() {
    for other in [data(200), with_flags(ack(200), 1), with_flags(ack(200), 4)] {
        assert_eq!(left(AckFilter::Paper, &[other, ack(300)]), [0, 1]);
        assert_eq!(left(AckFilter::Paper, &[ack(100), other]), [0, 1]);
        // The scan goes on behind it.
        assert_eq!(left(AckFilter::Paper, &[other, ack(250), ack(300)]), [0, 2]);
    }
}
