//! When the world is asked to go on, how late that may be, and when hosts hear of packets.

use super::*;

#[test]
fn a_late_clock_gives_the_same_run() {
    let mut exact = World::<u32>::new(&config(Standard::A, 3), 9);
    let mut late = World::<u32>::new(&config(Standard::A, 3), 9);
    for world in [&mut exact, &mut late] {
        for station in 1..=3 {
            world.saturate(NodeId(station), &[NodeId::AP], 1_500);
        }
    }
    while let Some(next) = exact
        .poll_timeout()
        .filter(|at| *at <= Instant::from_millis(300))
    {
        exact.handle_timeout(next);
    }
    exact.handle_timeout(Instant::from_millis(300));
    for millis in [50, 177, 300] {
        late.handle_timeout(Instant::from_millis(millis));
    }
    assert_eq!(
        (exact.digest(), exact.events()),
        (late.digest(), late.events())
    );
    assert_eq!(exact.airtime(), late.airtime());
}

/// Radios are asked for their deadlines only after what may move them, and that leaves none out:
/// hidden radios, noise, RTS, neighbours and beacons together.
#[test]
fn every_deadline_is_known_at_every_instant() {
    for (standard, rts) in [(Standard::B, 0), (Standard::A, 300), (Standard::N, 300)] {
        let mut config = config(standard, 6);
        config.mac.rts_threshold = (rts > 0).then_some(rts);
        config.hidden = Vec::from([(NodeId(1), NodeId(2)), (NodeId(3), NodeId(4))]);
        config.error = ErrorModel::Rate(0.05);
        config.contenders = Contenders {
            stations: 2,
            packet: 700,
            offer: Offer::Saturated,
        };
        config.beacons = Some(Beacons::usual(standard, Duration::from_millis(102)));
        let mut world = World::<u32>::new(&config, 3);
        for station in 1..=6 {
            world.saturate(NodeId(station), &[NodeId::AP], 200 * u32::from(station));
        }
        let stations: Vec<_> = (1..=6).map(NodeId).collect();
        world.saturate(NodeId::AP, &stations, 1_000);
        let end = Instant::from_millis(500);
        while let Some(next) = world.poll_timeout().filter(|at| *at < end) {
            world.handle_timeout(next);
            for (index, station) in world.stations.iter().enumerate() {
                // What a receiver holds back is looked at when the PPDU ends.
                let mut flights = world.air.flights.iter();
                if flights.all(|flight| flight.ppdu.to != Some(NodeId(index as u16))) {
                    let (known, wanted) = (world.wakes.of(index), station.next_wake());
                    assert_eq!(known, wanted, "{standard:?}, radio {index} at {next:?}");
                }
            }
        }
    }
}

/// A host hears of a frame later than its radio, and its answer takes time to the queue: 1,310 us
/// of 802.11b, 30 up, 20 down.
#[test]
fn hosts_are_not_instantaneous() {
    let mut config = config(Standard::B, 2);
    config.host = HostDelays {
        receive: Duration::from_micros(30),
        transmit: Duration::from_micros(20),
    };
    let mut world = World::new(&config, 1);
    let start = Instant::from_millis(1);
    world.handle_msdu(start, msdu(0, 1, 7)).unwrap();
    assert_eq!(world.queue_len(NodeId::AP, AccessCategory::BestEffort), 1);
    assert!(!world.hosts_are_idle());
    let sent = start + Duration::from_micros(20);
    assert_eq!(world.poll_timeout(), Some(sent));
    world.handle_timeout(sent);
    assert!(world.hosts_are_idle());
    let read = sent + Duration::from_micros(1_310);
    world.handle_timeout(read + Duration::from_micros(29));
    assert_eq!(deliveries(&mut world), []);
    let heard = read + Duration::from_micros(30);
    assert!(world.poll_timeout().is_some_and(|next| next <= heard));
    world.handle_timeout(heard);
    assert_eq!(deliveries(&mut world), [(1, 7)]);
    // From station to station the access point's host bridges: up and down again.
    let start = Instant::from_millis(10);
    world.handle_msdu(start, msdu(1, 2, 8)).unwrap();
    let bridged = start + Duration::from_micros(20 + 1_310 + 30 + 20);
    world.handle_timeout(bridged - Duration::from_nanos(1));
    assert_eq!(world.stations[0].queued(), 0);
    assert_eq!(world.queued(NodeId::AP), 1);
    world.handle_timeout(bridged);
    assert_eq!(world.stations[0].queued(), 1);
    world.handle_timeout(Instant::from_millis(20));
    assert_eq!(deliveries(&mut world), [(2, 8)]);
    assert!(world.hosts_are_idle());
}

/// Who goes by deliveries alone gets the same packets at the same time, in fewer steps.
#[test]
fn deliveries_do_not_depend_on_how_often_the_world_is_asked() {
    let mut config = config(Standard::N, 3);
    config.host.receive = Duration::from_micros(30);
    config.host.transmit = Duration::from_micros(20);
    let play = |ask: fn(&World<u32>) -> Option<Instant>| {
        let mut world = World::new(&config, 5);
        let (mut seen, mut calls, mut number) = (Vec::new(), 0, 0);
        let mut send = |world: &mut World<u32>, at| {
            let station = 1 + (number / 2 % 3) as u16;
            let (src, dst) = [(0, station), (station, 0)][number as usize % 2];
            if number < 400 {
                world.handle_msdu(at, msdu(src, dst, number)).unwrap();
                number += 1;
            }
        };
        for _ in 0..40 {
            send(&mut world, Instant::ZERO);
        }
        while seen.len() < 400 {
            let next = ask(&world).unwrap();
            world.handle_timeout(next);
            calls += 1;
            for (at, what) in deliveries(&mut world) {
                seen.push((next, at, what));
                send(&mut world, next);
            }
        }
        (seen, world.digest(), calls)
    };
    let (exact, digest, steps) = play(World::poll_timeout);
    let (lazy, same, fewer) = play(World::poll_delivery_timeout);
    let differs = exact.iter().zip(&lazy).find(|(one, other)| one != other);
    assert_eq!(differs, None);
    assert_eq!(digest, same);
    assert!(fewer < steps, "{fewer} calls, {steps} steps");
}

/// A packet that enters at the very instant at which another one comes to its host does not delay
/// that one.
#[test]
fn a_delivery_is_due_though_a_packet_enters_at_its_instant() {
    let mut config = config(Standard::B, 1);
    config.host.receive = Duration::from_micros(30);
    let mut world = World::new(&config, 1);
    let start = Instant::from_millis(1);
    let read = start + Duration::from_micros(1_310);
    let heard = read + Duration::from_micros(30);
    world.handle_msdu(start, msdu(0, 1, 7)).unwrap();
    world.handle_timeout(read);
    world.handle_msdu(heard, msdu(1, 0, 8)).unwrap();
    assert_eq!(world.poll_delivery_timeout(), Some(heard));
    assert_eq!(world.poll_timeout(), Some(heard));
    world.handle_timeout(heard);
    assert_eq!(deliveries(&mut world), [(1, 7)]);
}
