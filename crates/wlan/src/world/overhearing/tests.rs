use std::vec;

use super::*;
use crate::frame::{AccessCategory, AckPolicy, Class, Mpdu, Msdu, Ppdu};
use crate::mac::MacConfig;
use crate::phy::{OfdmRate, Preamble, Standard, Timing};
use crate::world::accounts::Network;
use tack_base::Duration;

/// Radio by radio, and for two radios or two PPDUs together, numbers are drawn as by one trial
/// each.
#[test]
fn each_is_drawn_by_itself_with_the_same_probability() {
    const RADIOS: usize = 40;
    const ROUNDS: usize = 50_000;
    let mut stream = RandomStream::new(1, "trials", 0);
    for probability in [0.0, 0.002, 0.02, 0.3, 0.9, 1.0] {
        let (mut alone, mut beside, mut again) = ([0_u32; RADIOS], [0_u32; RADIOS], [0; RADIOS]);
        let (mut chosen, mut before) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            core::mem::swap(&mut chosen, &mut before);
            draw(&mut chosen, RADIOS, probability, || stream.unit());
            assert!(chosen.is_sorted_by(|one, other| one < other), "{chosen:?}");
            for index in &chosen {
                let at = usize::from(*index);
                alone[at] += 1;
                beside[at] += u32::from(chosen.binary_search(&(index + 1)).is_ok());
                again[at] += u32::from(before.binary_search(index).is_ok());
            }
        }
        // Five standard deviations, at 120 comparisons each.
        let bounds = |probability: f64| {
            let mean = ROUNDS as f64 * probability;
            let wide = 5.0 * (mean * (1.0 - probability)).sqrt() + 3.0;
            mean - wide..=mean + wide
        };
        for at in 0..RADIOS {
            let all = [(alone[at], 1), (beside[at], 2), (again[at], 2)];
            for (count, trials) in &all[..if at + 1 == RADIOS { 1 } else { 3 }] {
                let bounds = bounds(probability.powi(*trials));
                assert!(
                    bounds.contains(&f64::from(*count)),
                    "{count} not in {bounds:?}"
                );
            }
        }
    }
}

fn overhearing(noise: ErrorModel) -> (Overhearing, WorldConfig) {
    let timing = Timing::new(Standard::A, Standard::A.band(), Preamble::Long);
    let mode = crate::phy::Mode::Ofdm(OfdmRate::R54);
    let mut config = WorldConfig::new(MacConfig::new(Standard::A, timing, mode), 400);
    config.error = noise;
    config.station_errors = vec![(NodeId(3), ErrorModel::Rate(0.7))];
    (Overhearing::new(&config, 401, 7), config)
}

/// A PPDU of a millisecond with these frames, or a beacon if there are none.
fn flight(config: &WorldConfig, number: u64, lens: &[u32]) -> InFlight<u32> {
    let mpdus: Vec<_> = lens
        .iter()
        .map(|len| Mpdu {
            seq: 0,
            retry: false,
            msdu: Msdu {
                src: NodeId(1),
                dst: NodeId::AP,
                len: *len,
                class: Class::Data,
                category: AccessCategory::BestEffort,
                payload: None,
            },
        })
        .collect();
    let psdu = lens
        .iter()
        .fold(0, |begins, len| len::ampdu(begins, len::mpdu(*len, true)));
    let frame = match mpdus.is_empty() {
        true => Frame::Beacon,
        false => Frame::Data(Data {
            mpdus,
            category: AccessCategory::BestEffort,
            ack: AckPolicy::Normal,
            more_data: false,
            sync: false,
        }),
    };
    let ppdu = Ppdu {
        from: NodeId(1),
        to: Some(NodeId::AP),
        mode: config.mac.data_mode,
        psdu: psdu.max(50),
        airtime: Duration::from_millis(1),
        reserves: Duration::ZERO,
        frame,
    };
    InFlight::new(number, Instant::ZERO, ppdu, Network::Own)
}

#[test]
fn what_is_left_of_a_ppdu_must_all_be_spoilt() {
    let (radios, config) = overhearing(ErrorModel::Rate(0.25));
    let probability = |lens: &[u32], hit: Hit| {
        let flight = flight(&config, 1, lens);
        radios.probability(&flight, hit, true)
    };
    let first = Some((Instant::ZERO, Instant::from_micros(100)));
    let all = Some((Instant::ZERO, Instant::from_micros(1_000)));
    assert_eq!(probability(&[], None), Some(0.25));
    assert_eq!(probability(&[], first), None);
    assert_eq!(probability(&[1_000], None), Some(0.25));
    assert_eq!(probability(&[1_000], first), None);
    assert_eq!(probability(&[1_000; 3], None), Some(0.25_f64.powi(3)));
    assert_eq!(probability(&[1_000; 3], first), Some(0.25_f64.powi(2)));
    assert_eq!(probability(&[1_000; 3], all), None);
    assert_eq!(probability(&[1_000; 64], None), Some(0.0));
}

#[test]
fn who_fails_depends_on_the_ppdu_and_what_was_hit_of_it() {
    let (mut radios, config) = overhearing(ErrorModel::Rate(0.1));
    assert!(radios.has(NodeId(1)) && !radios.has(NodeId(3)) && !radios.has(NodeId::AP));
    let mut failing = |number, hit| {
        let flight = flight(&config, number, &[1_000, 1_000]);
        match radios.failing(&flight, hit, true) {
            Failing::All => Vec::new(),
            Failing::Some(failing) => failing.to_vec(),
        }
    };
    let hit = |micros| Some((Instant::ZERO, Instant::from_micros(micros)));
    let drawn = [
        failing(1, None),
        failing(2, None),
        failing(1, hit(100)),
        failing(1, hit(101)),
        failing(2, hit(100)),
    ];
    for (index, one) in drawn.iter().enumerate() {
        assert!(!one.is_empty());
        assert!(drawn[..index].iter().all(|other| one != other), "{drawn:?}");
    }
    assert_eq!(failing(1, None), drawn[0], "in whatever order one asks");
}
