//! Queues of radios: their lengths over time, and packets that are taken out again.

use super::*;

#[test]
fn queue_lengths_are_weighted_by_time() {
    let mut world = World::new(&config(Standard::A, 1), 1);
    world.reset_stats(Instant::ZERO);
    for number in 0..10 {
        world
            .handle_msdu(Instant::ZERO, msdu(0, 1, number))
            .unwrap();
    }
    // Ten packets take about 4 ms of 100.
    world.handle_timeout(Instant::from_millis(100));
    let stats = world.queue_stats(NodeId::AP);
    assert_eq!((stats.p50, stats.max), (0, 10));
    assert!((1..=10).contains(&stats.p99), "{stats:?}");
}

/// A queue that becomes empty while its radio contends leaves the air alone: no packet, no
/// transmission, no endless step.
#[test]
fn a_queue_emptied_while_its_radio_contends_leaves_the_air_alone() {
    for standard in [Standard::A, Standard::N] {
        let mut world = World::new(&config(standard, 2), 1);
        // The medium is taken, so what station 2 has must wait.
        world.handle_msdu(Instant::ZERO, msdu(1, 0, 1)).unwrap();
        let busy = Instant::from_micros(150);
        world.handle_timeout(busy);
        world.handle_msdu(busy, msdu(2, 0, 7)).unwrap();
        let category = AccessCategory::BestEffort;
        let station = &mut world.stations[2];
        assert_eq!(station.waiting(category, NodeId::AP).unwrap().len(), 1);
        let removed = station.remove(busy, category, NodeId::AP, 0).unwrap();
        assert_eq!(removed.payload, Some(7));
        world.touch(2);
        world.find_next();
        world.handle_timeout(Instant::from_millis(10));
        assert_eq!(deliveries(&mut world), [(0, 1)]);
        let stats = world.stats(NodeId(2));
        assert_eq!((stats.attempts, stats.removed), (0, 1));
        assert_eq!(world.poll_timeout(), None, "{standard:?}");
        // The radio goes on as if nothing had been there.
        world
            .handle_msdu(Instant::from_millis(10), msdu(2, 0, 8))
            .unwrap();
        world.handle_timeout(Instant::from_millis(20));
        assert_eq!(deliveries(&mut world), [(0, 8)]);
    }
}
