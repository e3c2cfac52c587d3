//! One radio, a scripted medium: what goes on the air, and when. Microseconds.

mod agreements;

use std::vec::Vec;

use super::*;
use crate::frame::{AckPolicy, Class, Frame, len};
use crate::phy::{GuardInterval, HtMode, Mode, OfdmRate, Preamble, Standard, Timing, Width};

const PEER: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);

fn config(standard: Standard) -> MacConfig {
    let mode = match standard {
        Standard::A => Mode::Ofdm(OfdmRate::R54),
        _ => Mode::Ht(HtMode::new(7, Width::W40, GuardInterval::Ns400).unwrap()),
    };
    let timing = Timing::new(standard, standard.band(), Preamble::Long);
    let mut config = MacConfig::new(standard, timing, mode);
    // No randomness unless a test is about it: every backoff is zero.
    for contention in &mut config.contention {
        contention.cw_min = 0;
        contention.cw_max = 0;
    }
    config
}

/// A radio and the clock.
struct Script {
    station: Station<u32>,
    now: u64,
    delivered: Vec<u32>,
}

fn script(config: MacConfig) -> Script {
    Script {
        station: Station::new(NodeId::AP, Arc::new(config), 100, None, 1),
        now: 0,
        delivered: Vec::new(),
    }
}

fn msdu(number: u32) -> Msdu<u32> {
    Msdu {
        src: NodeId::AP,
        dst: PEER,
        len: 1_500,
        class: Class::Data,
        category: AccessCategory::BestEffort,
        payload: Some(number),
    }
}

impl Script {
    fn at(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    fn enqueue(&mut self, packets: core::ops::Range<u32>) {
        for number in packets {
            self.station.enqueue(self.at(), PEER, msdu(number)).unwrap();
        }
    }

    /// Waits for what the radio does next. Fails when nothing goes on the air at `at`.
    fn expect(&mut self, at: u64) -> Ppdu<u32> {
        loop {
            let next = self.station.poll_timeout().expect("something is to come");
            assert!(
                next <= Instant::from_micros(at),
                "next at {next}, not {at} us"
            );
            self.now = next.as_micros();
            if let Some(ppdu) = self.station.handle_timeout(next) {
                assert_eq!(self.now, at, "{ppdu:?}");
                self.station.on_busy(next);
                return ppdu;
            }
        }
    }

    /// The PPDU that this radio sends ends.
    fn sent(&mut self, ppdu: &Ppdu<u32>) {
        self.now += ppdu.airtime.as_micros() as u64;
        self.station.on_transmitted(self.at(), ppdu);
        self.station.on_idle(self.at(), BusyEnd::Frame);
    }

    /// Somebody sends a control frame to this radio: from now on for 28 microseconds.
    fn hear(&mut self, from: NodeId, frame: Frame<u32>, psdu: u32) {
        self.begin(20);
        self.now += 28;
        let ppdu = foreign(from, NodeId::AP, frame, psdu, 0);
        let delivered = &mut self.delivered;
        self.station
            .receive_control(Instant::from_micros(self.now), &ppdu, |msdu| {
                delivered.extend(msdu.payload);
            });
        self.station.on_idle(self.at(), BusyEnd::Frame);
    }

    /// A reception begins, its header `header` microseconds long.
    fn begin(&mut self, header: u64) {
        self.station.on_busy(self.at());
        self.station
            .on_reception_start(Instant::from_micros(self.now + header));
    }

    /// Frames for this radio end, and the PPDU with them.
    fn receive(&mut self, mpdus: &[(u16, bool)], ack: AckPolicy) {
        self.begin(20);
        self.now += 100;
        let list: Vec<_> = mpdus
            .iter()
            .map(|(seq, retry)| Mpdu {
                seq: *seq,
                retry: *retry,
                msdu: msdu(u32::from(*seq)),
            })
            .collect();
        let delivered = &mut self.delivered;
        for mut mpdu in list.clone() {
            self.station
                .receive_mpdu(Instant::from_micros(self.now), PEER, &mut mpdu, |msdu| {
                    delivered.extend(msdu.payload);
                });
        }
        let data = crate::frame::Data {
            mpdus: list,
            category: AccessCategory::BestEffort,
            ack,
            more_data: false,
            sync: false,
        };
        let mut ppdu = foreign(PEER, NodeId::AP, Frame::Data(data), 1_536, 44);
        ppdu.mode = self.station.config.data_mode;
        self.station.finish_data(self.at(), &ppdu);
        self.station.on_idle(self.at(), BusyEnd::Frame);
    }
}

fn foreign(from: NodeId, to: NodeId, frame: Frame<u32>, psdu: u32, reserves: u64) -> Ppdu<u32> {
    Ppdu {
        from,
        to: Some(to),
        mode: Mode::Ofdm(OfdmRate::R24),
        psdu,
        airtime: Duration::from_micros(28),
        reserves: Duration::from_micros(reserves),
        frame,
    }
}

fn seqs(ppdu: &Ppdu<u32>) -> Vec<u16> {
    match &ppdu.frame {
        Frame::Data(data) => data.mpdus.iter().map(|mpdu| mpdu.seq).collect(),
        other => panic!("{other:?} is no data"),
    }
}

#[test]
fn data_then_ack_then_data() {
    let mut script = script(config(Standard::A));
    script.now = 1_000;
    script.enqueue(0..2);
    let first = script.expect(1_000);
    assert_eq!((first.psdu, first.airtime.as_micros()), (1_536, 248));
    // The duration field covers SIFS and the ACK.
    assert_eq!(first.reserves, Duration::from_micros(16 + 28));
    script.sent(&first);
    script.now += 16;
    script.hear(PEER, Frame::ACK, len::ACK);
    assert_eq!(script.station.stats().acked, 1);
    let second = script.expect(1_000 + 248 + 16 + 28 + 34);
    assert_eq!(seqs(&second), [1]);
}

/// §10.3.2.11: the timeout is SIFS, a slot and the start of reception after the data: 45 us, and
/// DIFS after it.
#[test]
fn a_missing_ack_is_noticed_at_the_timeout_and_the_frame_given_up_after_the_last() {
    let mut script = script(config(Standard::A));
    script.now = 1_000;
    script.enqueue(0..1);
    let mut at = 1_000;
    for attempt in 1..=7 {
        let ppdu = script.expect(at);
        assert_eq!(seqs(&ppdu), [0]);
        script.sent(&ppdu);
        at = script.now + 45 + 34;
        if attempt < 7 {
            assert_eq!(script.station.queued(), 1);
        }
    }
    let end = script.station.poll_timeout().unwrap();
    assert_eq!(end, Instant::from_micros(script.now + 45));
    assert!(script.station.handle_timeout(end).is_none());
    let stats = script.station.stats();
    assert_eq!(
        (stats.unanswered, stats.retry_drops, stats.retries),
        (7, 1, 6)
    );
    assert_eq!(
        (script.station.queued(), script.station.is_active()),
        (0, false)
    );
    assert_eq!(script.station.poll_timeout(), None);
}

/// The timeout asks whether a response has begun, not whether it has ended: a long one is waited
/// for.
#[test]
fn a_response_that_has_begun_is_waited_for() {
    let mut script = script(config(Standard::A));
    script.now = 1_000;
    script.enqueue(0..2);
    let data = script.expect(1_000);
    script.sent(&data);
    let ended = script.now;
    script.now += 16;
    script.begin(20);
    // At the timeout nothing happens.
    let deadline = Instant::from_micros(ended + 45);
    assert_eq!(script.station.poll_timeout(), Some(deadline));
    assert!(script.station.handle_timeout(deadline).is_none());
    assert_eq!(script.station.poll_timeout(), None);
    script.now = ended + 16 + 300;
    let ack = foreign(PEER, NodeId::AP, Frame::ACK, len::ACK, 0);
    script.station.receive_control(script.at(), &ack, |_| {});
    script.station.on_idle(script.at(), BusyEnd::Frame);
    let next = script.expect(ended + 16 + 300 + 34);
    assert_eq!(seqs(&next), [1]);
}

/// An energy without a header, or a frame from somebody else, is not a response.
#[test]
fn anything_else_in_place_of_the_response_is_a_failure() {
    let mut script = script(config(Standard::A));
    script.now = 1_000;
    script.enqueue(0..1);
    let data = script.expect(1_000);
    script.sent(&data);
    script.now += 16;
    // Another radio's ACK, addressed to this one but from a stranger.
    script.hear(OTHER, Frame::ACK, len::ACK);
    assert_eq!(script.station.stats().unanswered, 1);
    let again = script.expect(script.now + 34);
    let Frame::Data(data) = &again.frame else {
        panic!("data again");
    };
    assert!(data.mpdus[0].retry);
}

#[test]
fn block_ack_request_after_a_missed_block_ack() {
    let mut script = script(config(Standard::N));
    script.now = 1_000;
    script.enqueue(0..5);
    // EDCA sends at a slot boundary: AIFS of 43 us after time zero, then every 9.
    let aggregate = script.expect(43 + 9 * 107);
    assert_eq!(seqs(&aggregate), [0, 1, 2, 3, 4]);
    script.sent(&aggregate);
    // Nothing comes: the request follows after the timeout and a backoff of its own.
    let request = script.expect(script.now + 45 + 43);
    let Frame::BlockAckReq { start, .. } = request.frame else {
        panic!("{request:?} is not a request");
    };
    assert_eq!((start, request.psdu), (0, 24));
    script.sent(&request);
    script.now += 16;
    let category = AccessCategory::BestEffort;
    let answer = Frame::BlockAck {
        category,
        start: 0,
        bitmap: 0b0_1011,
        carried: Vec::new(),
    };
    script.hear(PEER, answer, len::BLOCK_ACK);
    // After another backoff: what the bitmap lacks.
    let rest = script.expect(script.now + 43);
    assert_eq!(seqs(&rest), [2, 4]);
    assert_eq!(script.station.stats().acked, 3);
}

#[test]
fn responses_come_a_sifs_after_the_frame_whatever_the_medium_does() {
    let mut script = script(config(Standard::A));
    script.now = 500;
    script.receive(&[(7, false)], AckPolicy::Normal);
    assert_eq!(script.delivered, [7]);
    // Somebody begins to send within SIFS.
    script.station.on_busy(Instant::from_micros(script.now + 5));
    let ack = script.expect(script.now + 16);
    assert!(matches!(ack.frame, Frame::Ack { .. }));
    assert_eq!((ack.to, ack.mode), (Some(PEER), Mode::Ofdm(OfdmRate::R24)));
    assert_eq!(ack.reserves, Duration::ZERO);
    script.sent(&ack);
    // The ACK was lost: the repetition is answered and not delivered.
    script.receive(&[(7, true)], AckPolicy::Normal);
    let again = script.expect(script.now + 16);
    assert!(matches!(again.frame, Frame::Ack { .. }));
    assert_eq!(
        (script.delivered.len(), script.station.stats().duplicates),
        (1, 1)
    );
}

#[test]
fn block_ack_tells_what_came_and_order_is_kept() {
    let mut script = script(config(Standard::N));
    script.now = 500;
    script.receive(&[(0, false), (2, false), (3, false)], AckPolicy::BlockAck);
    assert_eq!(script.delivered, [0]);
    let answer = script.expect(script.now + 16);
    let Frame::BlockAck { start, bitmap, .. } = answer.frame else {
        panic!("{answer:?} is no Block ACK");
    };
    assert_eq!((start, bitmap, answer.psdu), (0, 0b1101, 32));
    script.sent(&answer);
    script.now += 50;
    // The sender gives frame 1 up and says so.
    let request = Frame::BlockAckReq {
        category: AccessCategory::BestEffort,
        start: 2,
    };
    script.hear(PEER, request, len::BLOCK_ACK_REQ);
    assert_eq!(script.delivered, [0, 2, 3]);
    let answer = script.expect(script.now + 16);
    assert!(matches!(
        answer.frame,
        Frame::BlockAck {
            start: 2,
            bitmap: 0b11,
            ..
        }
    ));
}

/// The originator gave frame 1 up, and its request is lost: after 100 ms the recipient goes on
/// without.
#[test]
fn a_hole_is_given_up_after_a_time() {
    let mut script = script(config(Standard::N));
    script.now = 500;
    script.receive(&[(0, false), (2, false)], AckPolicy::BlockAck);
    let came = script.now;
    let answer = script.expect(script.now + 16);
    script.sent(&answer);
    script.now += 50;
    script.receive(&[(3, false), (5, false)], AckPolicy::BlockAck);
    let later = script.now;
    let answer = script.expect(script.now + 16);
    script.sent(&answer);
    assert_eq!(script.delivered, [0]);
    for (due, so_far) in [
        (came + 100_000, &[0, 2, 3][..]),
        (later + 100_000, &[0, 2, 3, 5]),
    ] {
        let due = Instant::from_micros(due);
        assert_eq!(script.station.poll_timeout(), Some(due));
        assert!(script.station.holds_overdue(due));
        let delivered = &mut script.delivered;
        let deliver = |msdu: Msdu<u32>| delivered.extend(msdu.payload);
        script.station.release_overdue(due, deliver);
        assert_eq!(script.delivered, so_far);
    }
    assert_eq!(script.station.poll_timeout(), None);
    assert_eq!(script.station.stats().reorder_timeouts, 2);
    // Frame 1 after all: it is answered and not delivered.
    script.now += 200_000;
    script.receive(&[(1, true)], AckPolicy::Normal);
    assert_eq!(script.delivered, [0, 2, 3, 5]);
}

#[test]
fn accesses_count_the_first_frame_of_an_exchange() {
    let mut script = script(MacConfig {
        rts_threshold: Some(500),
        ..config(Standard::A)
    });
    script.now = 1_000;
    script.enqueue(0..1);
    let rts = script.expect(1_000);
    script.station.on_collision();
    script.sent(&rts);
    let rts = script.expect(script.now + 45 + 34);
    script.sent(&rts);
    script.now += 16;
    script.hear(PEER, Frame::Cts, len::ACK);
    let data = script.expect(script.now + 16);
    // A hidden radio spoils what follows the CTS.
    script.station.on_collision();
    script.sent(&data);
    let stats = script.station.stats();
    assert_eq!((stats.attempts, stats.collisions), (3, 2));
    assert_eq!((stats.accesses, stats.access_collisions), (2, 1));
}

#[test]
fn rts_and_cts_go_before_long_frames() {
    let mut script = script(MacConfig {
        rts_threshold: Some(500),
        ..config(Standard::A)
    });
    script.now = 1_000;
    script.enqueue(0..1);
    let rts = script.expect(1_000);
    assert!(matches!(rts.frame, Frame::Rts));
    // RTS reserves the rest of the exchange: three SIFS, CTS, data, ACK.
    assert_eq!(rts.reserves, Duration::from_micros(3 * 16 + 28 + 248 + 28));
    script.sent(&rts);
    script.now += 16;
    script.hear(PEER, Frame::Cts, len::ACK);
    let data = script.expect(script.now + 16);
    assert_eq!(seqs(&data), [0]);
    script.sent(&data);
    script.now += 16;
    script.hear(PEER, Frame::ACK, len::ACK);
    assert_eq!(script.station.stats().acked, 1);
    // Without CTS: again after the timeout.
    script.enqueue(1..2);
    let rts = script.expect(script.now + 34);
    script.sent(&rts);
    let again = script.expect(script.now + 45 + 34);
    assert!(matches!(again.frame, Frame::Rts));
}

#[test]
fn cts_is_not_given_while_the_medium_is_reserved() {
    let mut script = script(config(Standard::A));
    script.now = 500;
    let rts = |script: &mut Script| {
        script.begin(20);
        script.now += 28;
        let rts = foreign(PEER, NodeId::AP, Frame::Rts, len::RTS, 500);
        script.station.receive_control(script.at(), &rts, |_| {});
        script.station.on_idle(script.at(), BusyEnd::Frame);
    };
    rts(&mut script);
    let cts = script.expect(script.now + 16);
    assert!(matches!(cts.frame, Frame::Cts));
    // What is left of the reservation.
    assert_eq!(cts.reserves, Duration::from_micros(500 - 16 - 28));
    script.sent(&cts);
    script.begin(20);
    script.now += 28;
    let overheard = foreign(OTHER, PEER, Frame::Rts, len::RTS, 1_000);
    script.station.overhear(script.at(), &overheard);
    script.station.on_idle(script.at(), BusyEnd::Frame);
    script.now += 100;
    rts(&mut script);
    assert_eq!(script.station.poll_timeout(), None);
    // Nor does this radio send on its own before the reservation ends, or is taken back.
    script.enqueue(0..1);
    let held = script.station.poll_timeout().unwrap();
    assert!(held > Instant::from_micros(script.now + 800));
    script.now += 10;
    script.station.reset_nav(script.at());
    assert_eq!(
        script.station.poll_timeout(),
        Some(Instant::from_micros(script.now + 34))
    );
}

#[test]
fn cts_to_self_protects_a_frame() {
    let protection = crate::mac::Protection::CtsToSelf(Mode::Ofdm(OfdmRate::R6));
    let mut script = script(MacConfig {
        protection,
        ..config(Standard::A)
    });
    script.now = 1_000;
    script.enqueue(0..1);
    let cts = script.expect(1_000);
    assert!(matches!(cts.frame, Frame::Cts));
    assert_eq!((cts.airtime.as_micros(), cts.to), (44, Some(NodeId::AP)));
    assert_eq!(cts.reserves, Duration::from_micros(16 + 248 + 16 + 28));
    script.sent(&cts);
    let data = script.expect(1_000 + 44 + 16);
    assert_eq!(seqs(&data), [0]);
}

#[test]
fn a_txop_goes_on_a_sifs_after_each_response() {
    let mut config = config(Standard::N);
    config.ampdu.bytes = 3_000;
    config.txop_limit = [Duration::from_micros(600); 4];
    let mut script = script(config);
    script.now = 1_000;
    script.enqueue(0..6);
    let mut next = 43 + 9 * 107;
    let mut bursts = Vec::new();
    for _ in 0..5 {
        let ppdu = script.expect(next);
        bursts.extend(seqs(&ppdu));
        script.sent(&ppdu);
        script.now += 16;
        script.hear(PEER, Frame::ACK, len::ACK);
        // 600 us hold three exchanges of 180 us (a frame of 120, SIFS, 28, SIFS); then contention
        // again.
        next = script.now + if bursts.len() % 3 == 0 { 43 } else { 16 };
    }
    assert_eq!(bursts, [0, 1, 2, 3, 4]);
}

#[test]
fn beacons_go_after_pifs_and_want_no_answer() {
    let beacons = Beacons::usual(Standard::A, Duration::from_millis(100));
    let mut station: Station<u32> = Station::new(
        NodeId::AP,
        Arc::new(config(Standard::A)),
        100,
        Some(beacons),
        1,
    );
    assert_eq!(station.poll_timeout(), Some(Instant::from_millis(100)));
    let mut now = Instant::from_millis(100);
    let busy_until = now + Duration::from_micros(500);
    station.on_busy(now);
    assert!(station.handle_timeout(now).is_none());
    station.on_idle(busy_until, BusyEnd::Frame);
    // PIFS: SIFS and one slot.
    now = busy_until + Duration::from_micros(25);
    assert_eq!(station.poll_timeout(), Some(now));
    let beacon = station.handle_timeout(now).unwrap();
    assert!(matches!(beacon.frame, Frame::Beacon) && beacon.to.is_none());
    assert!(!beacon.wants_response());
    station.on_busy(now);
    station.on_transmitted(now + beacon.airtime, &beacon);
    station.on_idle(now + beacon.airtime, BusyEnd::Frame);
    assert_eq!(station.poll_timeout(), Some(Instant::from_millis(200)));
}

#[test]
fn a_full_queue_drops_its_tail() {
    let mut script = script(config(Standard::A));
    script.enqueue(0..100);
    let refused = script.station.enqueue(script.at(), PEER, msdu(100));
    assert_eq!(refused.unwrap_err().payload, Some(100));
    assert_eq!(script.station.stats().queue_drops, 1);
    assert_eq!(script.station.stats().queue_max, 100);
}
