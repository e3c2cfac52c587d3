use std::println;
use std::vec::Vec;

use super::super::{Beacons, Contenders, HostDelays, Offer, World, WorldConfig};
use super::*;
use crate::frame::{Class, Msdu};
use crate::mac::{CwAdaptation, MacConfig, Protection};
use crate::phy::{
    DsssRate, ErrorModel, GuardInterval, HtMode, Mode, OfdmRate, Preamble, Standard, Timing, Width,
};
use proptest::prelude::*;
use tack_base::{Duration, Instant};

fn config(standard: Standard, stations: u16) -> WorldConfig {
    let mode = match standard {
        Standard::B => Mode::Dsss(DsssRate::R11, Preamble::Long),
        Standard::A | Standard::G => Mode::Ofdm(OfdmRate::R54),
        _ => Mode::Ht(HtMode::new(7, Width::W40, GuardInterval::Ns400).unwrap()),
    };
    let timing = Timing::new(standard, standard.band(), Preamble::Long);
    WorldConfig::new(MacConfig::new(standard, timing, mode), stations)
}

#[test]
fn those_that_only_look_on_are_dealt_with_together() {
    let mut world = World::<u32>::new(&config(Standard::A, 40), 1);
    for station in 1..=40 {
        world.saturate(NodeId(station), &[NodeId::AP], 1_500);
    }
    let mut most = 0;
    for millis in 1..200 {
        world.handle_timeout(Instant::from_millis(millis));
        let crowds = world.crowds.as_ref().unwrap();
        let alone = crowds.alone().len();
        assert_eq!(alone + crowds.crowds[0].access.members(), 41);
        assert!(crowds.alone().is_sorted());
        most = most.max(alone);
    }
    // The access point, and those that sent before or collide now.
    assert!(most <= 10, "{most}");
}

#[test]
fn who_can_never_be_in_the_crowd_is_not() {
    let count = |config: &WorldConfig, radios| {
        let crowds = Crowds::new(config, &config.audience(radios), LEAST).unwrap();
        let could = crowds.standing.iter();
        could.filter(|each| **each == Standing::Alone).count()
    };
    let mut config = config(Standard::A, 10);
    assert_eq!(count(&config, 11), 10);
    config.hidden.push((NodeId(1), NodeId(2)));
    config.station_errors = Vec::from([(NodeId(3), ErrorModel::Rate(0.1))]);
    assert_eq!(count(&config, 11), 7);
    // Three neighbours and their access point.
    assert_eq!(count(&config, 15), 10);
    // The noise that most have, whatever it is.
    config.error = ErrorModel::Rate(0.1);
    assert_eq!(count(&config, 15), 11);
    config.station_errors = Vec::from([(NodeId(3), ErrorModel::Perfect)]);
    assert_eq!(count(&config, 15), 10);
    assert!(Crowds::new(&config, &config.audience(15), 11).is_none());
}

/// What is done for single radios at a PPDU grows with those that cannot read it, which are few,
/// and not with all: each leaves the crowd, hears an end and a beginning by itself, and joins
/// again.
#[test]
fn what_noise_costs_grows_with_those_that_it_hits() {
    const NOISE: f64 = 0.02;
    let looks = |stations: u16, error: f64, is_upload: bool| {
        let mut config = config(Standard::A, stations);
        config.error = ErrorModel::Rate(error);
        let mut world = World::<u32>::new(&config, 1);
        let all: Vec<_> = (1..=stations).map(NodeId).collect();
        if is_upload {
            for station in &all {
                world.saturate(*station, &[NodeId::AP], 1_500);
            }
        } else {
            world.saturate(NodeId::AP, &all, 1_500);
        }
        world.handle_timeout(Instant::from_millis(1_000));
        world.looks() as f64 / world.air.sent as f64
    };
    for is_upload in [false, true] {
        let [few, many] = [20, 200].map(|stations| looks(stations, NOISE, is_upload));
        let without = looks(200, 0.0, is_upload);
        println!("a PPDU, upload {is_upload}: {few:.2}, {many:.2}; without noise {without:.2}");
        // A beginning and an end for each of 200 would be 400.
        assert!(many < without + 6.0 * 200.0 * NOISE, "{many} {without}");
        assert!(many < 4.0 * few, "{many} {few}");
    }
}

/// Where groups of stations do not hear each other, or no station hears another, those that hear
/// the same form a crowd: what is done for single radios at a PPDU does not grow with their number.
#[test]
fn hidden_groups_are_dealt_with_group_by_group() {
    let network = |stations: u16, size: u16| {
        let mut config = config(Standard::A, stations);
        config.hidden = in_parts(stations, size).collect();
        let mut world = World::<u32>::new(&config, 1);
        for station in 1..=stations {
            world.saturate(NodeId(station), &[NodeId::AP], 1_500);
        }
        world.handle_timeout(Instant::from_millis(300));
        world
    };
    let looks = |stations: u16, size: u16| {
        let world = network(stations, size);
        world.looks() as f64 / world.air.sent as f64
    };
    let crowds = |stations, size| network(stations, size).crowds.map(|all| all.crowds.len());
    assert_eq!(crowds(60, 60), Some(1));
    assert_eq!(crowds(60, 30), Some(2));
    assert_eq!(crowds(60, 1), Some(1), "each is hidden from each");
    assert_eq!(crowds(60, 5), None, "groups of five save nothing");
    // Radios that send at once are told of each other's signals, wherever they stand.
    let [whole, halves] = [200, 100].map(|size| looks(200, size));
    println!("a PPDU, one group: {whole:.2}, two: {halves:.2}");
    // A beginning and an end for each of those that hear it would be 200 more.
    assert!(halves < whole + 50.0, "{halves} {whole}");
}

/// Where no station hears another, most go by themselves. Results do not depend on who is in a
/// crowd there either.
#[test]
fn many_that_go_by_themselves_are_woken_in_time() {
    let mut config = config(Standard::N, 60);
    config.hidden = in_parts(60, 1).collect();
    let mut most = 0;
    let mut run = |least: usize| {
        let mut world = World::<u32>::with_crowd_of(&config, 1, least);
        for station in 1..=60 {
            world.saturate(NodeId(station), &[NodeId::AP], 1_500);
        }
        for millis in 1..300 {
            world.handle_timeout(Instant::from_millis(millis));
            most = most.max(world.crowds.as_ref().map_or(0, |all| all.alone().len()));
        }
        digest(&mut world)
    };
    assert_eq!(run(LEAST), run(usize::MAX));
    assert!(most > 40, "{most}");
}

/// Each radio that overhears misses a frame with the same probability, whatever the others do, and
/// whether it is in the crowd or not.
#[test]
fn noise_hits_each_overhearing_radio_alike() {
    const NOISE: f64 = 0.1;
    let mut config = config(Standard::A, 14);
    config.error = ErrorModel::Rate(NOISE);
    for least in [0, usize::MAX] {
        let mut world = World::<u32>::with_crowd_of(&config, 3, least);
        world.saturate(NodeId::AP, &[NodeId(1)], 1_500);
        let (mut ended, mut missed, mut both) = (0_u32, [0_u32; 15], [0_u32; 15]);
        let end = Instant::from_millis(4_000);
        while let Some(next) = world.poll_timeout().filter(|at| *at < end) {
            let was_sent = !world.air.flights.is_empty();
            world.handle_timeout(next);
            if !was_sent || !world.air.flights.is_empty() {
                continue;
            }
            ended += 1;
            let misses: Vec<_> = (0..15)
                .map(|index| {
                    let crowds = world.crowds.as_ref().filter(|crowds| crowds.has(index));
                    let radio =
                        crowds.map_or(&world.radios[index], |crowds| &crowds.crowds[0].radio);
                    radio.last == crate::mac::BusyEnd::Error
                })
                .collect();
            for index in 2..15 {
                missed[index] += u32::from(misses[index]);
                both[index] += u32::from(misses[index] && misses[index - 1]);
            }
        }
        assert!(ended > 10_000, "{ended}");
        for (counts, expected) in [(&missed[2..], NOISE), (&both[3..], NOISE * NOISE)] {
            let mean = f64::from(ended) * expected;
            // Five standard deviations.
            let wide = 5.0 * (mean * (1.0 - expected)).sqrt();
            for count in counts {
                assert!(
                    (f64::from(*count) - mean).abs() < wide,
                    "{counts:?}, mean {mean}"
                );
            }
        }
    }
}

/// All that can be seen of a network.
fn digest(world: &mut World<u32>) -> impl PartialEq + core::fmt::Debug + use<> {
    let nodes = (0..world.radios()).map(NodeId);
    let stats: Vec<_> = nodes
        .map(|node| (world.stats(node).clone(), world.queue_stats(node)))
        .collect();
    let came: Vec<_> = core::iter::from_fn(|| world.poll_delivery())
        .map(|delivery| (delivery.at.0, delivery.msdu.payload))
        .collect();
    let departed: Vec<_> = core::iter::from_fn(|| world.poll_departure()).collect();
    let next = (world.poll_timeout(), world.poll_delivery_timeout());
    let sent = (world.digest(), world.events(), world.airtime());
    (stats, came, departed, next, sent)
}

/// The pairs hidden from each other where stations 1 to `stations` stand in groups of `size` that
/// hear themselves and not the others.
fn in_parts(stations: u16, size: u16) -> impl Iterator<Item = (NodeId, NodeId)> {
    let group = move |station: u16| (station - 1) / size;
    let pairs = (1..=stations).flat_map(move |one| (1..one).map(move |other| (one, other)));
    pairs
        .filter(move |(one, other)| group(*one) != group(*other))
        .map(|(one, other)| (NodeId(one), NodeId(other)))
}

/// A random network of six stations and up to three neighbours.
fn network() -> impl Strategy<Value = WorldConfig> {
    let standard = prop_oneof![
        Just(Standard::B),
        Just(Standard::A),
        Just(Standard::G),
        Just(Standard::N),
    ];
    let air = (
        prop::option::of(200..2_000_u32),
        prop::option::weighted(0.5, 0.0..0.6_f64),
        prop::collection::vec((0..7_u16, 0..7_u16), 0..3),
        prop::option::weighted(0.4, 1..4_u16),
        0..4_u16,
        any::<bool>(),
    );
    let mac = (
        0..4_u32,
        1..8_u8,
        any::<[bool; 6]>(),
        prop_oneof![Just(0_u64), Just(20_000)],
    );
    (standard, air, mac).prop_map(|(standard, air, mac)| {
        let (rts, error, hidden, parts, neighbours, are_saturated) = air;
        let (cw, retry_limit, flags, host) = mac;
        let [beacons, txop, protects, mimd, lossy_station, is_short] = flags;
        let mut config = config(standard, 6);
        config.mac.rts_threshold = rts;
        config.mac.retry_limit = retry_limit;
        if standard == Standard::N && txop {
            config.mac.txop_limit = [Duration::from_micros(2_000); 4];
        }
        if standard == Standard::G && protects {
            config.mac.protection = Protection::CtsToSelf(Mode::Ofdm(OfdmRate::R6));
        }
        for contention in &mut config.mac.contention {
            if mimd {
                contention.adaptation = CwAdaptation::Mimd;
            }
            if cw > 0 {
                (contention.cw_min, contention.cw_max) = ((1 << (cw - 1)) - 1, 7);
            }
        }
        config.error = error.map_or(ErrorModel::Perfect, ErrorModel::Rate);
        if lossy_station {
            config.station_errors = Vec::from([(NodeId(2), ErrorModel::Rate(0.3))]);
        }
        let pairs = hidden.into_iter().filter(|(one, other)| one != other);
        config.hidden = pairs
            .map(|(one, other)| (NodeId(one), NodeId(other)))
            .collect();
        if let Some(size) = parts {
            config.hidden.extend(in_parts(6, size));
        }
        config.contenders = Contenders {
            stations: neighbours,
            packet: 700,
            offer: if are_saturated {
                Offer::Saturated
            } else {
                Offer::Poisson {
                    interval: Duration::from_micros(1_500),
                }
            },
        };
        if beacons {
            config.beacons = Some(Beacons::usual(standard, Duration::from_millis(7)));
        }
        let delay = Duration::from_nanos(host);
        config.host = HostDelays {
            receive: delay,
            transmit: delay,
        };
        if is_short {
            config.station_queue = 12;
            config.ap_queue = 30;
        }
        config
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Each radio by itself, or those together that only look on: at every instant a network is the
    /// same.
    #[test]
    fn a_crowd_changes_nothing(
        config in network(),
        seed in any::<u64>(),
        saturated in any::<[bool; 3]>(),
        traffic in prop::collection::vec((0..7_u16, 0..7_u16, 0..4_usize, 1..30_u32, 0..30_000_u64), 0..24),
    ) {
        let mut apart = World::<u32>::with_crowd_of(&config, seed, usize::MAX);
        let mut together = World::<u32>::with_crowd_of(&config, seed, 0);
        prop_assert!(apart.crowds.is_none() && together.crowds.is_some());
        let mut traffic = traffic;
        traffic.sort_by_key(|(.., at)| *at);
        for world in [&mut apart, &mut together] {
            for (index, is_saturated) in (1..).zip(saturated) {
                if is_saturated {
                    world.saturate(NodeId(index), &[NodeId::AP], 900);
                }
            }
        }
        let mut number = 0;
        let mut traffic = traffic.into_iter().peekable();
        let end = Instant::from_micros(40_000);
        loop {
            let entry = traffic.peek().map_or(end, |(.., at)| Instant::from_micros(*at));
            let next = apart.poll_timeout().map_or(entry, |next| next.min(entry));
            for world in [&mut apart, &mut together] {
                world.handle_timeout(next);
            }
            if next == entry {
                let Some((src, dst, category, count, _)) = traffic.next() else {
                    break;
                };
                for _ in 0..if src == dst { 0 } else { count } {
                    number += 1;
                    for world in [&mut apart, &mut together] {
                        let packet = Msdu {
                            src: NodeId(src),
                            dst: NodeId(dst),
                            len: 1_200,
                            class: Class::Data,
                            category: AccessCategory::ALL[category],
                            payload: Some(number),
                        };
                        let _dropped = world.handle_msdu(next, packet);
                    }
                }
            }
            prop_assert_eq!(apart.poll_timeout(), together.poll_timeout(), "after {}", next);
            prop_assert_eq!(apart.digest(), together.digest(), "at {}", next);
        }
        prop_assert_eq!(digest(&mut apart), digest(&mut together));
    }
}
