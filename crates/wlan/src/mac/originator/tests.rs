use super::*;
use crate::frame::{AccessCategory, Class, NodeId};
use crate::mac::config::AmpduLimits;
use crate::phy::{
    GuardInterval, HtMode, Mode, OfdmRate, Preamble, SigB, Standard, Timing, VhtMode, Width,
};

fn config(standard: Standard, mode: Mode) -> MacConfig {
    let timing = Timing::new(standard, standard.band(), Preamble::Long);
    MacConfig::new(standard, timing, mode)
}

fn n150() -> MacConfig {
    let mode = HtMode::new(7, Width::W40, GuardInterval::Ns400).unwrap();
    config(Standard::N, Mode::Ht(mode))
}

pub(in crate::mac) fn a54() -> MacConfig {
    config(Standard::A, Mode::Ofdm(OfdmRate::R54))
}

fn ac866() -> MacConfig {
    let mode = VhtMode::new(9, 2, Width::W80, GuardInterval::Ns400, SigB::Sent).unwrap();
    config(Standard::Ac, Mode::Vht(mode))
}

fn originator(packets: u32, len: u32) -> Originator<u32> {
    let mut originator = Originator::default();
    for number in 0..packets {
        let msdu = Msdu {
            src: NodeId::AP,
            dst: NodeId(1),
            len,
            class: Class::Data,
            category: AccessCategory::BestEffort,
            payload: Some(number),
        };
        originator.push(msdu, u64::from(number) + 1);
    }
    originator
}

fn prepare(originator: &mut Originator<u32>, config: &MacConfig) -> Option<Prepared<u32>> {
    originator.prepare(config, config.ampdu.airtime, Vec::new())
}

fn seqs(prepared: &Prepared<u32>) -> Vec<u16> {
    prepared.mpdus.iter().map(|mpdu| mpdu.seq).collect()
}

#[test]
fn limits_of_aggregation() {
    let mut config = n150();
    // 42 subframes of 1544 bytes, the last without padding.
    let full = prepare(&mut originator(100, 1_500), &config).unwrap();
    assert_eq!((full.mpdus.len(), full.psdu), (42, 64_846));
    config.ampdu.bytes = 21_700;
    assert_eq!(
        prepare(&mut originator(100, 1_500), &config)
            .unwrap()
            .mpdus
            .len(),
        14
    );
    config.ampdu.bytes = 8_000;
    assert_eq!(
        prepare(&mut originator(100, 1_500), &config)
            .unwrap()
            .mpdus
            .len(),
        5
    );
    // Short frames: the window of 64, or fewer by choice.
    config.ampdu.bytes = 65_535;
    assert_eq!(
        prepare(&mut originator(100, 40), &config)
            .unwrap()
            .mpdus
            .len(),
        64
    );
    config.ampdu.frames = 10;
    assert_eq!(
        prepare(&mut originator(100, 40), &config)
            .unwrap()
            .mpdus
            .len(),
        10
    );
    // Time: 1 ms at 150 Mbit/s.
    config.ampdu = n150().ampdu;
    let timed = originator(100, 1_500)
        .prepare(&config, Duration::from_millis(1), Vec::new())
        .unwrap();
    let airtime = config.timing.airtime(config.data_mode, timed.psdu as usize);
    assert!(
        airtime.as_micros() <= 1_000 && airtime.as_micros() > 900,
        "{airtime:?}"
    );
}

#[test]
fn a_single_frame_is_an_aggregate_of_one_in_vht_only() {
    assert_eq!(
        prepare(&mut originator(1, 1_500), &n150()).unwrap().psdu,
        1_538
    );
    assert_eq!(
        prepare(&mut originator(1, 1_500), &ac866()).unwrap().psdu,
        1_542
    );
    let mut off = ac866();
    off.ampdu.bytes = 0;
    let single = prepare(&mut originator(9, 1_500), &off).unwrap();
    assert_eq!((single.psdu, single.mpdus.len()), (1_542, 1));
    let a = a54();
    let single = prepare(&mut originator(9, 1_500), &a).unwrap();
    assert_eq!((single.psdu, single.mpdus.len()), (1_536, 1));
}

#[test]
fn what_a_block_ack_misses_is_sent_again_first() {
    let config = n150();
    let mut originator = originator(100, 1_500);
    prepare(&mut originator, &config);
    let status = originator.on_block_ack(
        SolicitingFrame::Data,
        (0, !0b1010 & ((1 << 42) - 1)),
        &config,
    );
    assert_eq!(
        status,
        TxStatus {
            acked: 40,
            dropped: 0
        }
    );
    assert_eq!(originator.window_start(), 1);
    let next = prepare(&mut originator, &config).unwrap();
    assert_eq!(seqs(&next)[..3], [1, 3, 42]);
    assert!(next.mpdus[0].retry && next.mpdus[1].retry && !next.mpdus[2].retry);
    // The window ends 64 after its start, whatever the limits.
    assert_eq!(*seqs(&next).last().unwrap(), 64);
}

#[test]
fn a_missed_block_ack_is_asked_for() {
    let config = n150();
    let mut originator = originator(100, 1_500);
    prepare(&mut originator, &config);
    originator.on_missed_block_ack(&config);
    assert!(originator.request_is_due());
    assert_eq!((originator.turn(), originator.window_start()), (Some(0), 0));
    assert_eq!(originator.on_missed_request(&config), TxStatus::default());
    assert!(originator.request_is_due());
    // Nothing came: all of it again, by the same numbers.
    assert_eq!(
        originator.on_block_ack(SolicitingFrame::BlockAckReq, (0, 0), &config),
        TxStatus::default()
    );
    assert!(!originator.request_is_due());
    let again = prepare(&mut originator, &config).unwrap();
    assert_eq!(seqs(&again), (0..42).collect::<Vec<_>>());
    assert!(again.mpdus.iter().all(|mpdu| mpdu.retry));
}

#[test]
fn requests_end_and_data_goes_on() {
    let config = n150();
    let mut originator = originator(10, 1_500);
    prepare(&mut originator, &config);
    originator.on_missed_block_ack(&config);
    for _ in 0..6 {
        originator.on_missed_request(&config);
        assert!(originator.request_is_due());
    }
    assert_eq!(originator.on_missed_request(&config).dropped, 0);
    assert!(!originator.request_is_due());
    assert_eq!(prepare(&mut originator, &config).unwrap().mpdus.len(), 10);
}

#[test]
fn frames_are_given_up_after_their_last_attempt() {
    let a = a54();
    let mut originator = originator(3, 1_500);
    for attempt in 1..=7 {
        let sent = prepare(&mut originator, &a).unwrap();
        assert_eq!((sent.mpdus[0].seq, sent.mpdus[0].retry), (0, attempt > 1));
        let status = originator.on_missed_ack(&a);
        assert_eq!(status.dropped, usize::from(attempt == 7));
    }
    assert!(
        !originator.request_is_due(),
        "there is no Block ACK in 802.11a"
    );
    assert_eq!(prepare(&mut originator, &a).unwrap().mpdus[0].seq, 1);
    assert_eq!(originator.on_ack().acked, 1);
    assert_eq!(originator.window_start(), 2);
}

#[test]
fn the_receiver_is_told_of_frames_given_up() {
    let config = n150();
    let mut originator = originator(10, 1_500);
    for attempt in 1..=7 {
        prepare(&mut originator, &config);
        // All but the first come through.
        let status = originator.on_block_ack(SolicitingFrame::Data, (0, !1), &config);
        assert_eq!(status.dropped, usize::from(attempt == 7));
    }
    assert!(originator.request_is_due());
    assert_eq!(originator.window_start(), 10);
    originator.on_block_ack(SolicitingFrame::BlockAckReq, (10, 0), &config);
    assert!(originator.is_empty());
}

/// The receiver holds back what follows a frame given up until it hears so: the request is sent
/// again as long as the receiver shows that it is there, and gives way to data while it does not.
#[test]
fn a_request_that_moves_the_window_is_pending_until_it_is_answered() {
    let config = MacConfig {
        retry_limit: 1,
        ..n150()
    };
    let single = MacConfig {
        ampdu: AmpduLimits {
            frames: 1,
            ..config.ampdu
        },
        ..config.clone()
    };
    let mut originator = originator(100, 1_500);
    prepare(&mut originator, &config);
    let dropped = |count| TxStatus {
        acked: 42 - count,
        dropped: count,
    };
    let all_but_one = (1 << 42) - 2;
    let status = originator.on_block_ack(SolicitingFrame::Data, (0, all_but_one), &config);
    assert_eq!(status, dropped(1));
    for _ in 0..5 {
        for _ in 0..REQUEST_ATTEMPTS {
            assert!(originator.request_is_due());
            assert_eq!(originator.on_missed_request(&config), TxStatus::default());
        }
        // The receiver is silent: data goes before the request.
        assert!(!originator.request_is_due() && !originator.is_empty());
        prepare(&mut originator, &single);
        originator.on_ack();
    }
    assert!(originator.request_is_due());
    let start = originator.window_start();
    originator.on_block_ack(SolicitingFrame::BlockAckReq, (start, 0), &config);
    assert!(!originator.request_is_due());
    prepare(&mut originator, &single);
    originator.on_ack();
    assert!(!originator.request_is_due(), "it was answered");
}

#[test]
fn a_missed_block_ack_may_draw_the_frames_again() {
    let config = MacConfig {
        missed_block_ack: MissedBlockAck::Resend,
        retry_limit: 2,
        ..n150()
    };
    let mut originator = originator(10, 1_500);
    prepare(&mut originator, &config);
    assert_eq!(originator.on_missed_block_ack(&config), TxStatus::default());
    assert!(!originator.request_is_due());
    let again = prepare(&mut originator, &config).unwrap();
    assert!(again.mpdus.iter().all(|mpdu| mpdu.retry));
    // Only what was given up draws a request.
    assert_eq!(originator.on_missed_block_ack(&config).dropped, 10);
    assert!(originator.request_is_due());
    assert_eq!((originator.len(), originator.window_start()), (0, 10));
}

#[test]
fn sequence_numbers_wrap() {
    let a = a54();
    let mut originator = originator(5_000, 40);
    for number in 0..5_000_u32 {
        let sent = prepare(&mut originator, &a).unwrap();
        assert_eq!(u32::from(sent.mpdus[0].seq), number % 4_096);
        assert_eq!(sent.mpdus[0].msdu.payload, Some(number));
        originator.on_ack();
    }
    assert!(originator.is_empty());
    let config = n150();
    let mut originator = self::originator(5_000, 1_500);
    let mut sent = 0;
    while let Some(prepared) = prepare(&mut originator, &config) {
        let start = prepared.mpdus[0].seq;
        sent += prepared.mpdus.len();
        originator.on_block_ack(SolicitingFrame::Data, (start, u64::MAX), &config);
    }
    assert_eq!(sent, 5_000);
}

/// The list that was sent last comes back where nobody read it, and a PPDU is the same as without.
#[test]
fn an_unread_list_is_sent_again_as_a_new_one_would_be() {
    for config in [n150(), ac866(), a54()] {
        let mut random = 7_u64;
        let [mut own, mut other] = [originator(50, 1_500), originator(50, 1_500)];
        let mut list = Vec::new();
        for step in 0..400_u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            let longest = config.ampdu.airtime;
            let Some(again) = own.prepare(&config, longest, core::mem::take(&mut list)) else {
                break;
            };
            let anew = prepare(&mut other, &config).unwrap();
            let (again_text, anew_text) = (std::format!("{again:?}"), std::format!("{anew:?}"));
            assert_eq!(again_text, anew_text, "step {step}");
            let start = own.window_start();
            let outcome = random >> 60;
            for originator in [&mut own, &mut other] {
                match outcome {
                    // Nobody read it.
                    0..=7 => {}
                    8 => {
                        let _status = originator.on_missed_ack(&config);
                    }
                    9..=11 if config.aggregates() => {
                        let said = (start, random >> 3);
                        let _status = originator.on_block_ack(SolicitingFrame::Data, said, &config);
                    }
                    _ if config.aggregates() => {
                        let said = (seq_add(start, 20), 0);
                        let _status = originator.on_block_ack(SolicitingFrame::Data, said, &config);
                    }
                    _ => {
                        let _status = originator.on_ack();
                    }
                }
                let more = self::originator(3, 700);
                for msdu in more.waiting().iter() {
                    originator.push(msdu.clone(), 1_000 + step);
                }
            }
            list = again.mpdus;
        }
    }
}
