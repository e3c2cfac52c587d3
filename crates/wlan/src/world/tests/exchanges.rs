//! Frames that come, one by one, and how long each takes.

use super::*;

/// The first exchange, and what follows it, to the microsecond.
#[test]
fn an_exchange_of_80211b_takes_the_time_of_the_standard() {
    let mut world = World::new(&config(Standard::B, 1), 1);
    world.set_capture(Capture::On);
    let start = Instant::from_millis(1);
    world.handle_msdu(start, msdu(0, 1, 7)).unwrap();
    assert_eq!(world.poll_timeout(), Some(start));
    world.handle_timeout(Instant::from_millis(10));
    assert_eq!(deliveries(&mut world), [(1, 7)]);
    let seen: Vec<_> = core::iter::from_fn(|| world.poll_capture()).collect();
    let data = &seen[0];
    assert_eq!((data.at, data.ppdu.airtime.as_micros()), (start, 1_310));
    let ack = &seen[1];
    assert!(matches!(ack.ppdu.frame, Frame::Ack { .. }));
    assert_eq!(ack.at, start + Duration::from_micros(1_310 + 10));
    assert_eq!(ack.ppdu.airtime.as_micros(), 248);
    assert_eq!(seen.len(), 2);
    let airtime = world.airtime();
    assert_eq!((airtime.data, airtime.control), (us(1_310), us(248)));
    assert_eq!((airtime.access, airtime.total()), (us(10), us(10_000)));
    assert_eq!(world.poll_timeout(), None);
}

/// Frames of an A-MPDU come up as they end, not with the PPDU.
#[test]
fn frames_within_an_aggregate_arrive_one_by_one() {
    let mut world = World::new(&config(Standard::N, 1), 1);
    for number in 0..11 {
        world
            .handle_msdu(Instant::ZERO, msdu(0, 1, number))
            .unwrap();
    }
    let mut arrivals = Vec::new();
    while let Some(next) = world
        .poll_timeout()
        .filter(|at| *at < Instant::from_millis(5))
    {
        world.handle_timeout(next);
        arrivals.extend(
            deliveries(&mut world)
                .into_iter()
                .map(|(_, number)| (number, next)),
        );
    }
    let numbers: Vec<_> = arrivals.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..11).collect::<Vec<_>>());
    // The first goes alone; of the other ten each takes 1544 bytes at 150 Mbit/s, 82 us.
    for pair in arrivals[1..].windows(2) {
        let apart = pair[1].1.saturating_since(pair[0].1).as_micros();
        assert!((80..86).contains(&apart), "{apart}");
    }
}

/// Noise takes most frames, and each has one attempt: now and then all requests that tell the
/// recipient what was given up are lost too. What follows a hole then waits for a time and not
/// until more traffic moves the window.
#[test]
fn frames_given_up_hold_nothing_back_for_long() {
    let run = |timeout| {
        let mut config = config(Standard::N, 1);
        config.error = ErrorModel::Rate(0.7);
        config.mac.retry_limit = 1;
        config.mac.reorder_timeout = timeout;
        let mut world = World::new(&config, 1);
        let (mut came, mut worst) = (0, Duration::ZERO);
        // Ten frames a second.
        for burst in 0..100 {
            for number in 0..10 {
                let packet = msdu(0, 1, burst * 10 + number);
                let at = Instant::from_millis(u64::from(burst) * 1_000);
                world.handle_msdu(at, packet).unwrap();
            }
            let end = Instant::from_millis(u64::from(burst + 1) * 1_000);
            while let Some(at) = world.poll_timeout().filter(|at| *at < end) {
                world.handle_timeout(at);
                for (_, number) in deliveries(&mut world) {
                    let sent = Instant::from_millis(u64::from(number / 10) * 1_000);
                    worst = worst.max(at.saturating_since(sent));
                    came += 1;
                }
            }
        }
        (came, worst, world.stats(NodeId(1)).reorder_timeouts)
    };
    let (came, worst, timeouts) = run(Some(Duration::from_millis(100)));
    assert!((200..400).contains(&came), "{came}");
    assert!(worst < Duration::from_millis(120), "{worst:?}");
    assert!(timeouts > 5, "{timeouts}");
    let (_, worst, timeouts) = run(None);
    assert!(worst > Duration::from_secs(1) && timeouts == 0, "{worst:?}");
}

#[test]
fn packets_between_stations_cross_the_air_twice() {
    let mut world = World::new(&config(Standard::N, 2), 1);
    world.handle_msdu(Instant::ZERO, msdu(1, 2, 5)).unwrap();
    world.handle_timeout(Instant::from_millis(5));
    assert_eq!(deliveries(&mut world), [(2, 5)]);
    assert_eq!(world.stats(NodeId::AP).received, 1);
    assert_eq!(world.stats(NodeId::AP).mpdus, 1);
}
