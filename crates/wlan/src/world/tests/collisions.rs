//! Frames that are on the air at the same time, and what radios do after that.

use super::*;

/// Two radios whose backoff ends in the same slot do not hear each other; nobody waits for EIFS
/// after that.
#[test]
fn equal_backoffs_collide() {
    let mut config = config(Standard::A, 2);
    for contention in &mut config.mac.contention {
        contention.cw_min = 0;
        contention.cw_max = 0;
    }
    config.mac.retry_limit = 3;
    let mut world = World::new(&config, 1);
    for station in 1..=2 {
        world
            .handle_msdu(Instant::from_millis(1), msdu(station, 0, 1))
            .unwrap();
    }
    world.handle_timeout(Instant::from_millis(10));
    for station in 1..=2 {
        let stats = world.stats(NodeId(station));
        assert_eq!(
            (stats.attempts, stats.collisions, stats.unanswered),
            (3, 3, 3)
        );
        assert_eq!(stats.retry_drops, 1);
    }
    assert!(deliveries(&mut world).is_empty());
    // Three collisions of 248 us, each with its timeout of 45, and DIFS between them.
    let airtime = world.airtime();
    assert_eq!((airtime.collision, airtime.data), (us(3 * 248), us(0)));
    assert_eq!(airtime.access, us(3 * 45 + 2 * 34));
}

/// Stations that do not hear each other spoil each other's frames in the middle; the receiver then
/// has a frame with a wrong FCS, and EIFS.
#[test]
fn hidden_stations_collide_in_the_middle() {
    let mut config = config(Standard::A, 2);
    config.hidden.push((NodeId(1), NodeId(2)));
    let mut world = World::new(&config, 1);
    world
        .handle_msdu(Instant::from_micros(1_000), msdu(1, 0, 1))
        .unwrap();
    world
        .handle_msdu(Instant::from_micros(1_100), msdu(2, 0, 2))
        .unwrap();
    world.handle_timeout(Instant::from_micros(1_400));
    assert!(deliveries(&mut world).is_empty());
    assert_eq!(world.stats(NodeId(1)).collisions, 1);
    world.handle_timeout(Instant::from_millis(20));
    let mut came = deliveries(&mut world);
    came.sort_unstable();
    assert_eq!(came, [(0, 1), (0, 2)], "retries get through");
}

/// A wrong frame draws one EIFS. Energy without a frame that comes later draws none.
#[test]
fn energy_after_a_wrong_frame_draws_no_other_eifs() {
    let mut config = config(Standard::A, 4);
    for contention in &mut config.mac.contention {
        contention.cw_min = 0;
        contention.cw_max = 0;
    }
    config.mac.retry_limit = 1;
    // Station 4 reads nothing of what comes from anybody else.
    config.station_errors = Vec::from([(NodeId(4), ErrorModel::Rate(1.0))]);
    let mut world = World::new(&config, 1);
    world.set_capture(Capture::On);
    let send = |world: &mut World<u32>, at: u64, from: u16| {
        world
            .handle_msdu(Instant::from_micros(at), msdu(from, 0, 1))
            .unwrap();
    };
    // A frame that station 4 cannot read; later two that collide, and its own while they are on the
    // air.
    send(&mut world, 1_000, 1);
    send(&mut world, 5_000, 2);
    send(&mut world, 5_000, 3);
    send(&mut world, 5_100, 4);
    world.handle_timeout(Instant::from_millis(6));
    let seen: Vec<_> = core::iter::from_fn(|| world.poll_capture()).collect();
    let own = seen.iter().find(|seen| seen.ppdu.from == NodeId(4));
    // 248 us of collision, and DIFS.
    assert_eq!(own.unwrap().at, Instant::from_micros(5_000 + 248 + 34));
}

#[test]
fn an_rts_that_nothing_follows_frees_the_medium() {
    let mut config = config(Standard::A, 2);
    config.mac.rts_threshold = Some(100);
    // Station 1 reaches nobody but station 2: its RTS is never answered.
    config.hidden.push((NodeId(0), NodeId(1)));
    let mut world = World::new(&config, 1);
    world.set_capture(Capture::On);
    world
        .handle_msdu(Instant::from_millis(1), msdu(1, 0, 1))
        .unwrap();
    world
        .handle_msdu(Instant::from_micros(1_040), msdu(2, 0, 2))
        .unwrap();
    world.handle_timeout(Instant::from_millis(3));
    let seen: Vec<_> = core::iter::from_fn(|| world.poll_capture()).collect();
    assert!(matches!(seen[0].ppdu.frame, Frame::Rts));
    let reserved = seen[0].at + seen[0].ppdu.airtime + seen[0].ppdu.reserves;
    let other = seen
        .iter()
        .find(|captured| captured.ppdu.from == NodeId(2))
        .unwrap();
    assert!(other.at < reserved, "{} is not before {reserved}", other.at);
    // 28 us of RTS end at 1028; two SIFS, CTS, the start of reception and two slots later nothing
    // has come.
    assert!(other.at >= Instant::from_micros(1_028 + 32 + 28 + 20 + 18));
}
