//! Set-up of Block ACK agreements in a whole network.

use proptest::prelude::*;

use super::*;
use crate::frame::AddbaKind;
use crate::mac::Agreements;

fn negotiated(stations: u16) -> WorldConfig {
    let mut config = config(Standard::N, stations);
    config.mac.agreements = Agreements::Negotiated;
    config
}

fn run(world: &mut World<u32>, to: u64) -> Vec<Captured<u32>> {
    world.handle_timeout(Instant::from_millis(to));
    core::iter::from_fn(|| world.poll_capture()).collect()
}

fn kind(captured: &Captured<u32>) -> &'static str {
    match &captured.ppdu.frame {
        Frame::Addba(addba) => match addba.kind {
            AddbaKind::Request { .. } => "request",
            AddbaKind::Response => "response",
        },
        Frame::Data(data) if data.mpdus.len() == 1 => "single",
        Frame::Data(_) => "aggregate",
        Frame::Ack { .. } => "ack",
        Frame::BlockAck { .. } => "block ack",
        _ => "other",
    }
}

fn kinds(captured: &[Captured<u32>]) -> Vec<&'static str> {
    captured.iter().map(kind).collect()
}

/// The first packet finds nobody to aggregate with; the others wait for the agreement.
#[test]
fn an_agreement_is_set_up_for_the_second_frame_and_by_receiver_and_category() {
    let mut world = World::new(&negotiated(2), 1);
    world.set_capture(Capture::On);
    world.handle_msdu(Instant::ZERO, msdu(0, 1, 0)).unwrap();
    assert_eq!(kinds(&run(&mut world, 10)), ["single", "ack"]);
    let send = |world: &mut World<u32>, dst, category, numbers: core::ops::Range<u32>, at| {
        for number in numbers {
            let msdu = Msdu {
                category,
                ..msdu(0, dst, number)
            };
            world.handle_msdu(Instant::from_millis(at), msdu).unwrap();
        }
    };
    let best_effort = AccessCategory::BestEffort;
    let set_up = [
        "request",
        "ack",
        "response",
        "ack",
        "aggregate",
        "block ack",
    ];
    // The first of several is on the air before the second comes.
    let first = |seen: &[Captured<u32>]| {
        kinds(seen[usize::from(kind(&seen[0]) == "single") * 2..].as_ref())
    };
    send(&mut world, 1, best_effort, 1..6, 10);
    let seen = run(&mut world, 20);
    assert_eq!(first(&seen), set_up);
    let bytes = |name| seen.iter().find(|one| kind(one) == name).unwrap().ppdu.psdu;
    assert_eq!((bytes("request"), bytes("response")), (37, 37));
    // It stands from now on, in this category and for this receiver.
    send(&mut world, 1, best_effort, 6..11, 20);
    assert!(!kinds(&run(&mut world, 30)).contains(&"request"));
    send(&mut world, 1, AccessCategory::Background, 11..16, 30);
    assert_eq!(first(&run(&mut world, 40)), set_up);
    send(&mut world, 2, best_effort, 16..21, 40);
    assert_eq!(first(&run(&mut world, 50)), set_up);
    let at_first: Vec<_> = deliveries(&mut world);
    assert_eq!(at_first.len(), 21, "{at_first:?}");
}

/// Without aggregation nothing is set up.
#[test]
fn single_frames_need_no_agreement() {
    let mut config = negotiated(1);
    config.mac.ampdu.bytes = 0;
    let mut world = World::new(&config, 1);
    world.set_capture(Capture::On);
    for number in 0..9 {
        world
            .handle_msdu(Instant::ZERO, msdu(0, 1, number))
            .unwrap();
    }
    let seen = run(&mut world, 100);
    assert!(
        seen.iter()
            .all(|one| ["single", "ack"].contains(&kind(one)))
    );
    assert_eq!(deliveries(&mut world).len(), 9);
}

/// Twenty stations that begin one after the other: requests collide and are repeated, responses
/// come late, single frames go meanwhile, and at last all have their agreement.
#[test]
fn late_and_lost_answers_are_outlived_and_runs_are_equal() {
    let run = |seed| {
        let mut world = World::<u32>::new(&negotiated(20), seed);
        world.set_capture(Capture::On);
        for station in 1..=20 {
            world.handle_timeout(Instant::from_millis(10 * u64::from(station)));
            world.saturate(NodeId(station), &[NodeId::AP], 1_500);
        }
        let seen = run(&mut world, 8_000);
        let count = |name, from: u64| {
            let late = seen
                .iter()
                .filter(|one| one.at >= Instant::from_millis(from));
            late.filter(|one| kind(one) == name).count()
        };
        let retries = seen
            .iter()
            .filter(|one| matches!(&one.ppdu.frame, Frame::Addba(addba) if addba.retry));
        let requests = count("request", 0);
        assert!(requests > 20 && retries.count() > 0, "{requests}");
        assert!(count("single", 0) > 0);
        // All is set up: nothing but A-MPDUs.
        assert_eq!(
            (
                count("single", 7_000),
                count("request", 7_000),
                count("response", 7_000)
            ),
            (0, 0, 0)
        );
        (world.digest(), count("single", 0))
    };
    for seed in 1..=4 {
        assert_eq!(run(seed), run(seed));
    }
}

/// Numbers that came to each station and to the access point from one second on, when all radios
/// have more to send than the air carries.
fn saturated(config: &WorldConfig, seed: u64) -> Vec<(u16, u32)> {
    let mut world = World::new(config, seed);
    let (mut next, mut got) = (0, Vec::new());
    for ms in 0..3_000 {
        let now = Instant::from_millis(ms);
        for station in 1..=config.stations {
            for (src, dst) in [(0, station), (station, 0)] {
                for _ in 0..6 {
                    let _full = world.handle_msdu(now, msdu(src, dst, next));
                    next += 1;
                }
            }
        }
        world.handle_timeout(now);
        let here = deliveries(&mut world);
        if ms >= 1_000 {
            got.extend(here);
        }
    }
    got
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// However noisy: nothing is wedged, nothing comes twice or out of order, and once it stands
    /// the network carries what one carries whose agreements stood from the start.
    #[test]
    fn noise_wedges_nothing(seed: u64, loss in 0.0..0.4_f64, stations in 1_u16..4) {
        if !is_run(seed, 32) {
            return Ok(());
        }
        let mut config = negotiated(stations);
        config.error = ErrorModel::Rate(loss);
        let ours = saturated(&config, seed);
        let mut last = std::collections::BTreeMap::new();
        for (at, number) in ours.iter().filter(|(at, _)| *at != 0) {
            let before = last.insert(*at, *number);
            prop_assert!(before.is_none_or(|before| before < *number), "{} at {}", number, at);
        }
        prop_assert_eq!(last.len(), usize::from(stations), "every station gets something");
        config.mac.agreements = Agreements::Established;
        let theirs = saturated(&config, seed);
        let ratio = ours.len() as f64 / theirs.len() as f64;
        prop_assert!((0.8..1.25).contains(&ratio), "{} and {}", ours.len(), theirs.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Noise, few attempts, stations that do not hear each other, RTS, limits of a TXOP, short
    /// A-MPDUs, several categories, and recipients that wait forever: in the long run every
    /// station gets on both ways, nothing comes twice or out of order in its category, every packet
    /// is delivered or counted, and when there is nothing more to send, nobody sends.
    #[test]
    fn faults_at_once_wedge_nothing(
        seed: u64,
        loss in 0.0..0.5_f64,
        stations in 1_u16..4,
        retry_limit in prop_oneof![Just(1_u8), Just(2), Just(7)],
        frames in prop_oneof![Just(2_u16), Just(8), Just(64)],
        (waits, hides, rts, limits, resends) in any::<(bool, bool, bool, bool, bool)>(),
    ) {
        if !is_run(seed, 8) {
            return Ok(());
        }
        let mut config = negotiated(stations);
        config.error = ErrorModel::Rate(loss);
        config.mac.retry_limit = retry_limit;
        config.mac.ampdu.frames = frames;
        if waits {
            config.mac.reorder_timeout = None;
        }
        if hides && stations > 1 {
            config.hidden.push((NodeId(1), NodeId(2)));
        }
        config.mac.rts_threshold = rts.then_some(500);
        if limits {
            config.mac.txop_limit = [Duration::from_millis(2); 4];
        }
        if resends {
            config.mac.missed_block_ack = crate::mac::MissedBlockAck::Resend;
        }
        let mut world = World::new(&config, seed);
        let categories = [AccessCategory::BestEffort, AccessCategory::Video];
        let (mut entered, mut got) = (0, std::collections::BTreeMap::new());
        let take = |world: &mut World<u32>, got: &mut std::collections::BTreeMap<_, Vec<u32>>| {
            while let Some(delivery) = world.poll_delivery() {
                let Msdu { src, category, payload, .. } = delivery.msdu;
                let key = (src.0, delivery.at.0, category as usize);
                got.entry(key).or_default().push(payload.unwrap());
            }
        };
        for burst in 0..300_u32 {
            let mut at = Instant::from_millis(4 * u64::from(burst));
            for station in 1..=stations {
                for (turn, (src, dst)) in [(0, station), (station, 0)].into_iter().enumerate() {
                    // Radios that were idle, and have something to send at once, collide.
                    at += us(117);
                    for number in 0..3 {
                        let packet = Msdu {
                            category: categories[(burst as usize / 3 + turn) % 2],
                            ..msdu(src, dst, 3 * burst + number)
                        };
                        entered += u64::from(world.handle_msdu(at, packet).is_ok());
                    }
                }
            }
            world.handle_timeout(at);
            take(&mut world, &mut got);
        }
        // The last frames, their requests, and the requests for agreements that they draw.
        let mut turns = 0;
        while let Some(next) = world.poll_timeout() {
            world.handle_timeout(next);
            take(&mut world, &mut got);
            turns += 1;
            prop_assert!(turns < 200_000, "it never ends");
        }
        let stats: Vec<_> = (0..=stations).map(|at| world.stats(NodeId(at)).clone()).collect();
        let delivered: u64 = got.values().map(|numbers| numbers.len() as u64).sum();
        let dropped: u64 = stats.iter().map(|stats| stats.retry_drops).sum();
        let acked: u64 = stats.iter().map(|stats| stats.acked).sum();
        prop_assert_eq!(acked + dropped, entered, "all is settled");
        // What came behind a hole that was given up was acknowledged, and is no use any more. One
        // that waits forever may hold the last frames.
        let useless: u64 = stats.iter().map(|stats| stats.duplicates).sum();
        prop_assert!(delivered <= entered);
        prop_assert!(waits || delivered + useless >= acked, "{} of {}", delivered, acked);
        for (key, numbers) in &got {
            prop_assert!(numbers.windows(2).all(|two| two[0] < two[1]), "{:?}", key);
        }
        // One after the other, nobody collides: all of them get something through.
        let mut number = 1_000_000;
        for station in 1..=stations {
            for (src, dst) in [(0, station), (station, 0)] {
                for category in categories {
                    let key = (src, dst, category as usize);
                    let mut bursts = 0;
                    while got.get(&key).and_then(|numbers| numbers.last()) < Some(&1_000_000) {
                        bursts += 1;
                        prop_assert!(bursts < 100, "{:?} gets nothing through", key);
                        let at = world.now + Duration::from_millis(10);
                        for _ in 0..5 {
                            number += 1;
                            let packet = Msdu { category, ..msdu(src, dst, number) };
                            prop_assert!(world.handle_msdu(at, packet).is_ok());
                        }
                        while let Some(next) = world.poll_timeout() {
                            world.handle_timeout(next);
                            take(&mut world, &mut got);
                        }
                    }
                }
            }
        }
    }
}

/// A frame that becomes the first that waits may have waited too long already: it is released then,
/// not in the past.
#[test]
fn a_frame_overdue_behind_another_one_is_released_at_once() {
    let mut config = negotiated(3);
    config.error = ErrorModel::Rate(0.313_016_342_949_481_16);
    assert!(!saturated(&config, 132_817_361_418_596_737).is_empty());
}
