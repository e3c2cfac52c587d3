use std::vec::Vec;

use tack_base::{Duration, Rate};

use super::*;

fn us(micros: f64) -> Duration {
    Duration::from_nanos((micros * 1_000.0).round() as u64)
}

fn ht(mcs: u8, width: Width, guard: GuardInterval) -> Mode {
    Mode::Ht(HtMode::new(mcs, width, guard).unwrap())
}

fn vht(mcs: u8, streams: u8, width: Width, sig_b: SigB) -> Mode {
    Mode::Vht(VhtMode::new(mcs, streams, width, GuardInterval::Ns400, sig_b).unwrap())
}

/// Airtimes worked out by hand from the formulas of the standard.
#[test]
fn airtimes_of_control_and_data_frames() {
    use DsssRate::*;
    use Preamble::*;
    let cases = [
        (Mode::Dsss(R11, Long), 1_536, 1_310.0),
        (Mode::Dsss(R11, Short), 1_536, 1_214.0),
        (Mode::Dsss(R5_5, Long), 1_536, 192.0 + 2_235.0),
        (Mode::Dsss(R2, Long), 14, 248.0),
        (Mode::Dsss(R1, Long), 14, 304.0),
        (Mode::Dsss(R1, Short), 14, 304.0),
        (Mode::Dsss(R2, Short), 14, 152.0),
        (Mode::Ofdm(OfdmRate::R54), 1_536, 248.0),
        (Mode::Ofdm(OfdmRate::R24), 14, 28.0),
        (Mode::Ofdm(OfdmRate::R24), 32, 32.0),
        (Mode::Ofdm(OfdmRate::R12), 14, 32.0),
        (Mode::Ofdm(OfdmRate::R12), 32, 44.0),
        (Mode::Ofdm(OfdmRate::R6), 14, 44.0),
        (Mode::Ofdm(OfdmRate::R6), 20, 52.0),
        (Mode::Ofdm(OfdmRate::R6), 24, 56.0),
        (Mode::Ofdm(OfdmRate::R6), 32, 68.0),
    ];
    for (mode, len, expected) in cases {
        assert_eq!(mode.airtime(len), us(expected), "{mode:?} {len}");
    }
}

#[test]
fn airtimes_of_ht_vht_and_he() {
    use GuardInterval::*;
    use Width::*;
    // HT MCS 7, 40 MHz, short guard: 23 symbols of 3.6 us fill 21 slots of 4 us.
    assert_eq!(ht(7, W40, Ns400).airtime(1_538), us(36.0 + 84.0));
    // 42 MPDUs of 1538 bytes in subframes of 1544, the last without padding.
    assert_eq!(ht(7, W40, Ns400).airtime(64_846), us(36.0 + 3_460.0));
    assert_eq!(ht(15, W40, Ns400).airtime(64_846), us(40.0 + 1_732.0));
    assert_eq!(ht(0, W20, Ns800).airtime(100), us(36.0 + 4.0 * 32.0));
    assert_eq!(
        ht(31, W40, Ns400).rate(),
        Rate::from_bits_per_sec(600_000_000)
    );
    // VHT MCS 9, two streams, 80 MHz: 3120 bits a symbol, two encoders: 167 symbols of 3.6 us fill
    // 151 slots of 4 us.
    let omitted = vht(9, 2, W80, SigB::Omitted);
    let sent = vht(9, 2, W80, SigB::Sent);
    assert_eq!(sent.rate(), Rate::from_bits_per_sec(866_666_666));
    assert_eq!(omitted.airtime(64_846), us(40.0 + 604.0));
    assert_eq!(sent.airtime(64_846) - omitted.airtime(64_846), us(4.0));
    // HE MCS 11, two streams, 80 MHz, 0.8 us: 16333 bits a symbol of 13.6 us; preamble 36 and two
    // fields of 7.2 us.
    let he = Mode::He(HeMode::new(11, 2, W80, Ns800).unwrap());
    assert_eq!(he.rate().bits_per_sec() / 100_000, 12_009);
    assert_eq!(he.airtime(64_846), us(36.0 + 14.4 + 13.6 * 32.0));
}

/// Rates as the tables of the standard print them, Mbit/s.
#[test]
fn rates_match_the_tables() {
    use GuardInterval::*;
    use Width::*;
    let ht_20 = [6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0];
    let ht_40 = [13.5, 27.0, 40.5, 54.0, 81.0, 108.0, 121.5, 135.0];
    for streams in 1..=4_u8 {
        for mcs in 0..8_u8 {
            let index = mcs + 8 * (streams - 1);
            for (width, table) in [(W20, ht_20), (W40, ht_40)] {
                let rate = ht(index, width, Ns800).rate().bits_per_sec() as f64 / 1e6;
                assert!((rate - table[usize::from(mcs)] * f64::from(streams)).abs() < 1e-6);
            }
        }
    }
    let vht_80 = [
        29.3, 58.5, 87.8, 117.0, 175.5, 234.0, 263.3, 292.5, 351.0, 390.0,
    ];
    for (mcs, expected) in (0..).zip(vht_80) {
        let mode = VhtMode::new(mcs, 1, W80, Ns800, SigB::Sent).unwrap();
        let rate = mode.rate().bits_per_sec() as f64 / 1e6;
        assert!((rate - expected).abs() < 0.06, "{mcs}: {rate}");
    }
    let he_80 = [
        36.0, 72.1, 108.1, 144.1, 216.2, 288.2, 324.3, 360.3, 432.4, 480.4, 540.4, 600.5,
    ];
    for (mcs, expected) in (0..).zip(he_80) {
        let rate = HeMode::new(mcs, 1, W80, Ns800)
            .unwrap()
            .rate()
            .bits_per_sec() as f64
            / 1e6;
        assert!((rate - expected).abs() < 0.06, "{mcs}: {rate}");
    }
}

#[test]
fn modes_that_do_not_exist_are_refused() {
    use GuardInterval::*;
    use Width::*;
    assert!(HtMode::new(32, W20, Ns800).is_err());
    assert!(HtMode::new(0, W80, Ns800).is_err());
    assert!(HtMode::new(0, W20, Ns1600).is_err());
    assert!(VhtMode::new(9, 1, W20, Ns800, SigB::Sent).is_err());
    assert!(VhtMode::new(9, 3, W20, Ns800, SigB::Sent).is_ok());
    assert!(VhtMode::new(6, 3, W80, Ns800, SigB::Sent).is_err());
    assert!(VhtMode::new(10, 1, W80, Ns800, SigB::Sent).is_err());
    assert!(HeMode::new(11, 9, W80, Ns800).is_err());
    assert!(HeMode::new(11, 8, W160, Ns400).is_err());
}

/// Longer frames never take less time, and every mode needs at least its header and the bits at its
/// rate.
#[test]
fn airtime_grows_with_length_and_covers_the_bits() {
    let mut modes: Vec<Mode> = Vec::new();
    for standard in Standard::ALL {
        modes.extend(ModeQuery::default().find(standard));
    }
    assert!(modes.len() > 500, "{}", modes.len());
    for mode in modes {
        let mut last = Duration::ZERO;
        for len in [0, 1, 14, 32, 76, 500, 1_536, 4_095, 65_535] {
            let airtime = mode.airtime(len);
            assert!(airtime >= last, "{mode:?} {len}");
            let bits = (len * 8) as f64 / mode.rate().bits_per_sec() as f64;
            let least = mode.header().as_secs_f64() + bits;
            assert!(airtime.as_secs_f64() > least - 1e-8, "{mode:?} {len}");
            // Nor much more: training fields of eight streams, padding, and the 4 us grid.
            assert!(
                airtime.as_secs_f64() < least * 1.0001 + 170e-6,
                "{mode:?} {len}"
            );
            last = airtime;
        }
    }
}

#[test]
fn rates_find_their_modes() {
    let find = |standard, rate: f64| {
        let rate = Some(Rate::from_bits_per_sec((rate * 1e6) as u64));
        ModeQuery {
            rate,
            ..ModeQuery::default()
        }
        .find(standard)
    };
    assert_eq!(
        find(Standard::B, 5.5),
        [Mode::Dsss(DsssRate::R5_5, Preamble::Long)]
    );
    assert_eq!(find(Standard::G, 54.0), [Mode::Ofdm(OfdmRate::R54)]);
    assert_eq!(
        find(Standard::N, 150.0)[0],
        ht(7, Width::W40, GuardInterval::Ns400)
    );
    assert_eq!(
        find(Standard::N, 300.0)[0],
        ht(15, Width::W40, GuardInterval::Ns400)
    );
    assert_eq!(
        find(Standard::Ac, 866.7)[0].rate().bits_per_sec(),
        866_666_666
    );
    assert!(find(Standard::A, 55.0).is_empty());
    let mcs = ModeQuery {
        mcs: Some(15),
        width: Some(Width::W20),
        ..ModeQuery::default()
    };
    assert_eq!(mcs.find(Standard::N).len(), 2);
    assert!(mcs.find(Standard::A).is_empty());
}

/// Responses: the highest basic rate not above the reference rate.
#[test]
fn response_rates() {
    use GuardInterval::*;
    use response::response_mode;
    for (rate, expected) in [
        (OfdmRate::R6, OfdmRate::R6),
        (OfdmRate::R9, OfdmRate::R6),
        (OfdmRate::R12, OfdmRate::R12),
        (OfdmRate::R18, OfdmRate::R12),
        (OfdmRate::R24, OfdmRate::R24),
        (OfdmRate::R54, OfdmRate::R24),
    ] {
        assert_eq!(response_mode(Mode::Ofdm(rate)), Mode::Ofdm(expected));
    }
    for (mcs, expected) in [
        (0, OfdmRate::R6),
        (1, OfdmRate::R12),
        (2, OfdmRate::R12),
        (3, OfdmRate::R24),
        (7, OfdmRate::R24),
        (8, OfdmRate::R6),
        (15, OfdmRate::R24),
    ] {
        assert_eq!(
            response_mode(ht(mcs, Width::W40, Ns400)),
            Mode::Ofdm(expected)
        );
    }
    use DsssRate::*;
    use Preamble::*;
    let to = |rate, preamble| response_mode(Mode::Dsss(rate, preamble));
    assert_eq!(to(R11, Long), Mode::Dsss(R2, Long));
    assert_eq!(to(R11, Short), Mode::Dsss(R2, Short));
    assert_eq!(to(R1, Long), Mode::Dsss(R1, Long));
}

#[test]
fn gaps_of_the_generations() {
    let timing = |standard: Standard| Timing::new(standard, standard.band(), Preamble::Long);
    assert_eq!(timing(Standard::B).difs(), us(50.0));
    assert_eq!(timing(Standard::A).difs(), us(34.0));
    assert_eq!(timing(Standard::G).difs(), us(28.0));
    // The signal extension belongs to every OFDM frame at 2.4 GHz, and to no other.
    let g = timing(Standard::G);
    assert_eq!(g.airtime(Mode::Ofdm(OfdmRate::R54), 1_536), us(254.0));
    assert_eq!(g.airtime(Mode::Ofdm(OfdmRate::R24), 14), us(34.0));
    assert_eq!(
        g.airtime(Mode::Dsss(DsssRate::R1, Preamble::Long), 14),
        us(304.0)
    );
}

/// Sensitivity of the standard (Table 17-18: 10 % of 1000-byte PSDUs lost, noise figure 10 dB,
/// margin 5 dB) is met within 2 dB in every mode (hard decisions cost BPSK 3/4 that much), and by
/// no wonder.
#[test]
fn noise_hits_faster_modes_first() {
    let lost = |rate, snr_db: f64| Awgn::new(snr_db).loss(Mode::Ofdm(rate), 1_000);
    let required = |rate| {
        let snr = (0..600).map(|tenth| f64::from(tenth) / 10.0 - 10.0);
        snr.into_iter().find(|snr| lost(rate, *snr) < 0.1).unwrap()
    };
    // Minimum sensitivity in dBm; thermal noise of 20 MHz is -101 dBm.
    let sensitivity = [-82.0, -81.0, -79.0, -77.0, -74.0, -70.0, -66.0, -65.0];
    for (rate, dbm) in OfdmRate::ALL.into_iter().zip(sensitivity) {
        let allowed = dbm + 101.0 - 15.0;
        let needs = required(rate);
        assert!(
            needs <= allowed + 2.0,
            "{rate:?}: {needs} dB, sensitivity allows {allowed}"
        );
        assert!(
            needs > allowed - 6.0,
            "{rate:?}: {needs} dB is too good, {allowed}"
        );
    }
    for rate in OfdmRate::ALL {
        assert!(lost(rate, -10.0) > 0.999);
        assert!(lost(rate, 40.0) < 1e-9);
    }
    // DSSS holds out longest, slowest rate first.
    let dsss = |rate, snr| Awgn::new(snr).loss(Mode::Dsss(rate, Preamble::Long), 1_000);
    let thresholds: Vec<f64> = DsssRate::ALL
        .into_iter()
        .map(|rate| {
            (-150..200)
                .map(|t| f64::from(t) / 10.0)
                .find(|snr| dsss(rate, *snr) < 0.1)
                .unwrap()
        })
        .collect();
    assert!(thresholds.is_sorted(), "{thresholds:?}");
    assert!(
        (-6.0..9.0).contains(&thresholds[0]) && (0.0..9.0).contains(&thresholds[3]),
        "{thresholds:?}"
    );
}

#[test]
fn a_fixed_rate_holds_for_every_frame() {
    let model = ErrorModel::Rate(0.25);
    assert_eq!(model.loss(Mode::Ofdm(OfdmRate::R6), 14), 0.25);
    assert!(!model.is_perfect() && ErrorModel::default().is_perfect());
}
