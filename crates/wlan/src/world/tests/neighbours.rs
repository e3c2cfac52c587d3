//! Networks nearby on the same channel, and the air that they take.

use super::*;

/// Neighbours that offer a fixed load deliver all of it, and take no more airtime than it costs.
#[test]
fn a_load_of_neighbours_takes_its_share_of_the_air() {
    let mut config = config(Standard::A, 1);
    config.contenders = Contenders {
        stations: 4,
        packet: 1_500,
        offer: Offer::Poisson {
            interval: Duration::from_millis(4),
        },
    };
    let mut world = World::<u32>::new(&config, 1);
    world.handle_timeout(Instant::from_millis(20_000));
    let access_point = world.stats(NodeId(2));
    // Four times 250 a second; four standard deviations of 20,000 arrivals are 570.
    let received = access_point.received;
    assert!(received.abs_diff(20_000) < 600, "{received}");
    let airtime = world.airtime();
    // A frame of 248 us and its ACK of 28 us each, 27.6 % of the air.
    assert_eq!(airtime.neighbour, airtime.data + airtime.control);
    let each = airtime.neighbour.as_nanos() as u64 / received;
    assert!((275_000..277_000).contains(&each), "{each}");
    assert_eq!(airtime.total(), Duration::from_secs(20));
    for contender in 3..7 {
        let stats = world.stats(NodeId(contender));
        assert_eq!((stats.queue_drops, stats.retry_drops), (0, 0));
    }
    // Another seed draws other arrivals, the same seed the same.
    let digest = |seed| {
        let mut world = World::<u32>::new(&config, seed);
        world.handle_timeout(Instant::from_millis(1_000));
        world.digest()
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

/// A saturated neighbour's frames are counted apart from ours, and together they are all.
#[test]
fn the_air_of_a_neighbour_is_told_apart() {
    let mut config = config(Standard::A, 1);
    config.contenders = Contenders {
        stations: 1,
        packet: 1_500,
        offer: Offer::Saturated,
    };
    let mut world = World::new(&config, 1);
    world.saturate(NodeId(1), &[NodeId::AP], 1_500);
    world.handle_timeout(Instant::from_millis(2_000));
    let airtime = world.airtime();
    let share = airtime
        .neighbour
        .div_duration_f64(airtime.data + airtime.control);
    assert!((0.48..0.52).contains(&share), "{share}");
    let ours = world.stats(NodeId(0)).received;
    let theirs = world.stats(NodeId(2)).received;
    assert!(ours.abs_diff(theirs) < 300, "{ours} {theirs}");
    let _: Option<Delivery<u32>> = world.poll_delivery();
}
