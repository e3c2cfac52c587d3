//! BBR driven by hand: a path of 1,000 segments a second and 50 ms, acknowledged segment by
//! segment.

mod marks;

use super::*;
use tack_base::StreamOffset;

const MSS: u64 = 1000;
const RTT: Duration = Duration::from_millis(50);
/// Segments of the bandwidth-delay product.
const BDP: u64 = 50;

struct Driver {
    bbr: Bbr,
    now: Instant,
    delivered: u64,
    lost: u64,
    in_recovery: bool,
    /// Time between deliveries.
    spacing: Duration,
    app_limited: bool,
    /// Acknowledgements carry a rate sample.
    has_rates: bool,
}

impl Driver {
    fn new() -> Self {
        Self::with("bbr")
    }

    fn with(algorithm: &str) -> Self {
        let Ok(super::super::Algorithm::Bbr(options)) = algorithm.parse() else {
            panic!("{algorithm} is no BBR");
        };
        let init = Init {
            now: Instant::ZERO,
            mss: MSS,
            initial_window: 10 * MSS,
            restart_window: 10 * MSS,
            rtt: Some(RTT),
            seed: 3,
            counting: crate::cc::Counting::Bytes,
        };
        Self {
            bbr: Bbr::new(&init, options),
            now: Instant::ZERO,
            delivered: 0,
            lost: 0,
            in_recovery: false,
            spacing: Duration::from_millis(1),
            app_limited: false,
            has_rates: true,
        }
    }

    /// One segment arrives, by default after a millisecond; `lost` segments are seen missing.
    fn ack(&mut self, in_flight: u64, lost: u64) {
        self.ack_with(in_flight, lost, RTT, SendToken::default());
    }

    fn ack_with(&mut self, in_flight: u64, lost: u64, rtt: Duration, token: SendToken) {
        self.now += self.spacing;
        self.delivered += MSS;
        self.lost += lost * MSS;
        let delivered = in_flight.max(1) * MSS;
        let interval = self.spacing * in_flight.max(1) as u32;
        self.bbr.on_ack(&Ack {
            now: self.now,
            acked: MSS,
            delivered: MSS,
            lost: lost * MSS,
            prior_in_flight: (in_flight + 1 + lost) * MSS,
            bytes_in_flight: in_flight * MSS,
            rtt: Some(rtt),
            srtt: RTT,
            min_rtt: RTT,
            rate: self.has_rates.then(|| RateSample {
                delivered,
                interval,
                delivery_rate: Rate::from_bytes_over(delivered, interval),
                prior_delivered: self.delivered.saturating_sub(delivered),
                app_limited: self.app_limited,
            }),
            total_delivered: self.delivered,
            total_lost: self.lost,
            snd_una: StreamOffset(self.delivered),
            snd_nxt: StreamOffset(self.delivered + in_flight * MSS),
            in_recovery: self.in_recovery,
            cwnd_limited: true,
            slow_start_room: u64::MAX,
            token,
        });
    }

    /// Until the pipe is known to be full and the queue is gone.
    fn cruise(mut self) -> Self {
        for _ in 0..2000 {
            self.ack(BDP, 0);
        }
        assert_eq!(self.bbr.mode, Mode::ProbeBw);
        self
    }

    fn congestion(&mut self, cause: Cause, in_flight: u64) {
        self.in_recovery = true;
        self.bbr.on_congestion(&Congestion {
            now: self.now,
            cause,
            prior_in_flight: in_flight * MSS,
            cwnd_limited: true,
            consecutive_timeouts: u32::from(cause == Cause::Timeout),
            snd_nxt: StreamOffset(self.delivered + in_flight * MSS),
        });
    }

    fn recovered(&mut self) {
        self.in_recovery = false;
        self.bbr.on_recovered(self.now);
    }

    fn send(&mut self, in_flight: u64, app_limited: bool) -> SendToken {
        self.bbr.on_send(&Sent {
            now: self.now,
            bytes: MSS,
            prior_in_flight: in_flight * MSS,
            retransmission: false,
            app_limited,
        })
    }
}

#[test]
fn the_first_rate_sends_the_initial_window_in_a_round_trip() {
    let driver = Driver::new();
    // 10,000 bytes in 50 ms are 1.6 Mbit/s; startup's gain and the margin of one percent.
    assert_eq!(
        driver.bbr.pacing_rate(),
        Some(Rate::from_bits_per_sec(4_569_840))
    );
    let blind = Bbr::new(
        &Init {
            now: Instant::ZERO,
            mss: MSS,
            initial_window: 10 * MSS,
            restart_window: 10 * MSS,
            rtt: None,
            seed: 0,
            counting: crate::cc::Counting::Bytes,
        },
        BbrOptions::DEFAULT,
    );
    assert_eq!(
        blind.pacing_rate(),
        Some(Rate::from_bits_per_sec(228_492_000))
    );
}

#[test]
fn the_model_finds_bandwidth_and_window() {
    let driver = Driver::new().cruise();
    assert_eq!(driver.bbr.bandwidth(), Rate::from_bits_per_sec(8_000_000));
    // Two bandwidth-delay products, three bursts of two segments; two more while probing up; what
    // this driver's clockwork acknowledgements show as aggregation is at most a segment.
    let segments = driver.bbr.cwnd() / MSS;
    assert!(
        (2 * BDP + 6..=2 * BDP + 10).contains(&segments),
        "{segments}"
    );
}

#[test]
fn an_application_that_overfills_the_path_ends_startup_and_one_that_just_fills_it_does_not() {
    for (in_flight, mode) in [(BDP, Mode::Startup), (2 * BDP, Mode::ProbeBw)] {
        let mut driver = Driver::new();
        driver.app_limited = true;
        for _ in 0..2000 {
            driver.ack(in_flight, 0);
        }
        // It drains what is more than a product, which this driver never does.
        if driver.bbr.mode == Mode::Drain {
            driver.ack(BDP / 2, 0);
        }
        assert_eq!(driver.bbr.mode, mode, "{in_flight} segments in flight");
    }
}

#[test]
fn startup_conserves_packets_with_seldom_reports_only_once_a_queue_overflows() {
    // Segments lost with the first report of the episode, and with the second.
    for (losses, conserves) in [([1, 0], false), ([1, 1], false), ([1, 2], true)] {
        let mut driver = Driver::new();
        driver.bbr.on_feedback_interval(INTERVAL);
        for _ in 0..60 {
            driver.ack(BDP, 0);
        }
        assert_eq!(driver.bbr.mode, Mode::Startup);
        assert!(driver.bbr.feedback.is_sparse());
        driver.congestion(Cause::Loss, 60);
        for lost in losses {
            driver.ack(40, lost);
        }
        assert_eq!(driver.bbr.cwnd() == 41 * MSS, conserves, "{losses:?}");
    }
    // Six of six hundred are no more than a random loss of a hundredth.
    let mut driver = Driver::new();
    driver.bbr.on_feedback_interval(INTERVAL);
    for _ in 0..60 {
        driver.ack(600, 0);
    }
    driver.congestion(Cause::Loss, 600);
    driver.ack(594, 6);
    assert_ne!(driver.bbr.cwnd(), 595 * MSS);
}

#[test]
fn recovery_conserves_packets_for_a_round_and_gives_the_window_back() {
    let mut driver = Driver::new().cruise();
    let cwnd = driver.bbr.cwnd();
    driver.congestion(Cause::Loss, 60);
    driver.ack(40, 5);
    assert_eq!(
        driver.bbr.cwnd(),
        41 * MSS,
        "what is in flight, and what was delivered"
    );
    for _ in 0..30 {
        driver.ack(40, 0);
        assert_eq!(driver.bbr.cwnd(), 41 * MSS);
    }
    for _ in 0..20 {
        driver.ack(40, 0);
    }
    assert!(driver.bbr.cwnd() > 45 * MSS, "after a round it grows again");
    assert!(driver.bbr.cwnd() < cwnd);
    driver.recovered();
    assert_eq!(driver.bbr.cwnd(), cwnd);
}

/// The first reports of a peer that measures rates carry none, nor do those of losses.
#[test]
fn packets_are_conserved_for_a_round_whether_or_not_acknowledgements_carry_rates() {
    let mut driver = Driver::new().cruise();
    driver.congestion(Cause::Loss, 60);
    let before = driver.send(60, false);
    driver.ack(40, 5);
    let after = driver.send(40, false);
    driver.has_rates = false;
    for _ in 0..5 {
        driver.ack_with(40, 0, RTT, before);
        assert_eq!(driver.bbr.cwnd(), 41 * MSS);
    }
    driver.ack_with(40, 0, RTT, after);
    assert_eq!(driver.bbr.cwnd(), 42 * MSS, "it grows again");
}

#[test]
fn a_timeout_starts_from_one_segment_and_ends_with_the_old_window() {
    let mut driver = Driver::new().cruise();
    let cwnd = driver.bbr.cwnd();
    driver.congestion(Cause::Timeout, 50);
    assert_eq!(driver.bbr.cwnd(), MSS);
    driver.ack(0, 0);
    assert_eq!(
        driver.bbr.cwnd(),
        4 * MSS,
        "never below four once something arrives"
    );
    driver.ack(2, 0);
    assert_eq!(driver.bbr.cwnd(), 5 * MSS);
    driver.bbr.on_spurious(driver.now, Cause::Timeout);
    assert_eq!(driver.bbr.cwnd(), cwnd);
}

#[test]
fn probe_rtt_samples_do_not_lower_the_bandwidth() {
    let mut driver = Driver::new().cruise();
    let bandwidth = driver.bbr.bandwidth();
    let mut acks = 0;
    while driver.bbr.mode != Mode::ProbeRtt {
        driver.ack_with(BDP, 0, RTT + Duration::from_millis(3), SendToken::default());
        acks += 1;
        assert!(acks < 11_000, "the floor never expired");
    }
    assert_eq!(driver.bbr.cwnd(), 4 * MSS);
    let marked = driver.send(4, false);
    assert!(ProbeRtt::limited(marked), "what it sends is marked");
    // Four segments a round trip are a twelfth of the bandwidth, for longer than its filter
    // remembers.
    driver.spacing = RTT / 4;
    for _ in 0..100 {
        driver.ack_with(5, 0, RTT, marked);
    }
    let before = driver.now;
    while driver.bbr.mode == Mode::ProbeRtt {
        driver.ack_with(3, 0, RTT, marked);
        assert!(driver.now.saturating_since(before) < Duration::from_secs(1));
    }
    assert!(driver.now.saturating_since(before) >= Duration::from_millis(200));
    assert_eq!(driver.bbr.bandwidth(), bandwidth);
    assert_eq!(driver.bbr.model.min_rtt(), Some(RTT));
}

#[test]
fn after_idle_time_it_paces_at_the_bandwidth() {
    let mut driver = Driver::new().cruise();
    while driver.bbr.pacing_gain <= 1.0 {
        driver.ack(BDP, 0);
    }
    // Idle for longer than the RTT floor lasts.
    driver.now += Duration::from_secs(20);
    driver.send(0, true);
    assert_eq!(
        driver.bbr.pacing_rate(),
        Some(Rate::from_bits_per_sec(7_920_000))
    );
    driver.ack(1, 0);
    assert_eq!(
        driver.bbr.mode,
        Mode::ProbeBw,
        "idle time is no reason to probe"
    );
}

#[test]
fn clumped_acknowledgements_widen_the_window() {
    let smooth = Driver::new().cruise();
    let mut clumped = Driver::new().cruise();
    for _ in 0..50 {
        // Twenty segments at once, every twenty milliseconds.
        clumped.now += Duration::from_millis(20);
        for _ in 0..20 {
            clumped.ack(BDP, 0);
            clumped.now = Instant::from_nanos(clumped.now.as_nanos() - 1_000_000);
        }
    }
    let more = (clumped.bbr.cwnd() - smooth.bbr.cwnd()) / MSS;
    assert!((15..=24).contains(&more), "{more} segments");
}

/// Evidence for a policer: loss of a third in two intervals with the same rate.
#[test]
fn a_policer_is_found_out_and_probed_again() {
    let mut policer = Policer::new(Instant::ZERO);
    let mut view = policer::View {
        delivered_at: Instant::ZERO,
        total_delivered: 0,
        total_lost: 0,
        lost: true,
        app_limited: false,
        round_started: true,
        probing_bandwidth: true,
    };
    let mut rounds = 0;
    while policer.rate().is_none() {
        rounds += 1;
        assert!(rounds < 20, "not found");
        view.delivered_at += RTT;
        view.total_delivered += 10_000;
        view.total_lost += 5_000;
        assert_eq!(policer.on_ack(&view), Verdict::Continue);
    }
    assert_eq!(policer.rate(), Some(Rate::from_bytes_per_sec(200_000)));
    view.lost = false;
    for _ in 0..47 {
        assert_eq!(policer.on_ack(&view), Verdict::Continue);
    }
    assert_eq!(policer.on_ack(&view), Verdict::ProbeAgain);
    assert_eq!(policer.rate(), None);
}

#[test]
fn little_loss_is_no_policer() {
    let mut policer = Policer::new(Instant::ZERO);
    for round in 1..100 {
        let view = policer::View {
            delivered_at: Instant::ZERO + RTT * round,
            total_delivered: u64::from(round) * 10_000,
            total_lost: u64::from(round) * 1_000,
            lost: true,
            app_limited: false,
            round_started: true,
            probing_bandwidth: true,
        };
        policer.on_ack(&view);
        assert_eq!(policer.rate(), None);
    }
}

#[test]
fn gain_cycles_begin_at_any_phase_but_the_draining_one() {
    let mut random = RandomStream::new(1, "bbr", 0);
    let mut seen = [false; 2];
    for _ in 0..200 {
        let mut cycle = Cycle::new(Instant::ZERO, BbrProfile::Default);
        cycle.start(Instant::ZERO, &mut random);
        assert!(cycle.gain() >= 1.0);
        seen[usize::from(cycle.probes_up())] = true;
    }
    assert!(seen[0] && seen[1]);
}

/// A quarter of the RTT.
const INTERVAL: Duration = Duration::from_micros(12_500);

/// What arrives in `intervals` intervals, acknowledged at the end of each, at `segments` an
/// interval.
fn reports(driver: &mut Driver, intervals: u64, segments: u64) {
    for _ in 0..intervals {
        driver.now += INTERVAL;
        driver.delivered += segments * MSS;
        let rate = Rate::from_bytes_over(segments * MSS, INTERVAL);
        // A probe makes the queue that it asks for, and leaves it to the next phase.
        let queue = if driver.bbr.pacing_gain == 1.0 { 0 } else { 3 };
        driver.bbr.on_ack(&Ack {
            now: driver.now,
            acked: segments * MSS,
            delivered: segments * MSS,
            lost: 0,
            prior_in_flight: (5 + queue) * segments * MSS,
            bytes_in_flight: 4 * segments * MSS,
            rtt: Some(RTT),
            srtt: RTT,
            min_rtt: RTT,
            rate: Some(RateSample {
                delivered: 4 * segments * MSS,
                interval: RTT,
                delivery_rate: rate,
                prior_delivered: driver.delivered.saturating_sub(5 * segments * MSS),
                app_limited: false,
            }),
            total_delivered: driver.delivered,
            total_lost: 0,
            snd_una: StreamOffset(driver.delivered),
            snd_nxt: StreamOffset(driver.delivered + 4 * segments * MSS),
            in_recovery: false,
            cwnd_limited: true,
            slow_start_room: u64::MAX,
            token: SendToken::default(),
        });
    }
}

/// A path of 12 segments an interval, cruising.
fn sparse(algorithm: &str) -> Driver {
    let mut driver = Driver::with(algorithm);
    driver.bbr.on_feedback_interval(INTERVAL);
    reports(&mut driver, 200, 12);
    assert_eq!(driver.bbr.mode, Mode::ProbeBw);
    driver
}

#[test]
fn the_window_has_room_for_an_interval() {
    let driver = sparse("bbr");
    // 48 segments are the product; two of it, a quarter, and the bursts: no more, as clumps of an
    // interval's size are regular and no aggregation.
    let segments = driver.bbr.cwnd() / MSS;
    assert!((108 + 6..=108 + 10).contains(&segments), "{segments}");
}

#[test]
fn at_least_a_segment_leaves_each_interval() {
    let mut driver = sparse("bbr");
    // Two segments a round trip.
    for _ in 0..40 {
        reports(&mut driver, 1, 1);
        driver.now += RTT / 2;
    }
    let rate = driver.bbr.pacing_rate().expect("BBR paces");
    assert!(
        rate >= Rate::from_bytes_over(MSS, INTERVAL),
        "a segment each interval: {rate:?}"
    );
}

#[test]
fn profiles_differ_in_how_long_they_remember() {
    for (algorithm, intervals) in [("bbr", 40), ("bbr:profile=realtime", 20)] {
        let mut driver = sparse(algorithm);
        let before = driver.bbr.bandwidth();
        reports(&mut driver, intervals - 1, 6);
        assert_eq!(driver.bbr.bandwidth(), before, "{algorithm}");
        reports(&mut driver, 3, 6);
        assert!(
            driver.bbr.bandwidth() < before.scale(0.6),
            "{algorithm} remembers longer than {intervals} intervals"
        );
    }
}

#[test]
fn what_the_application_limited_does_not_age_the_estimate() {
    let mut driver = sparse("bbr");
    let before = driver.bbr.bandwidth();
    for _ in 0..200 {
        driver.now += INTERVAL;
        driver.delivered += MSS;
        let ack = super::super::test_events::plain_ack(
            driver.now,
            MSS,
            driver.delivered,
            driver.delivered,
        );
        driver.bbr.on_ack(&Ack {
            rtt: Some(RTT),
            rate: Some(RateSample {
                delivered: MSS,
                interval: INTERVAL,
                delivery_rate: Rate::from_bytes_over(MSS, INTERVAL),
                prior_delivered: driver.delivered - MSS,
                app_limited: true,
            }),
            ..ack
        });
    }
    // A suspension counts as a round trip, however long it was.
    driver.now += Duration::from_secs(1);
    reports(&mut driver, 30, 6);
    assert_eq!(driver.bbr.bandwidth(), before);
}

#[test]
fn phases_last_as_many_intervals_as_fit_the_round_trip() {
    for (algorithm, cycle) in [("bbr", 32), ("bbr:profile=realtime", 16)] {
        let mut driver = sparse(algorithm);
        // Up to the beginning of a cycle.
        while driver.bbr.pacing_gain >= 1.0 {
            reports(&mut driver, 1, 12);
        }
        while driver.bbr.pacing_gain <= 1.0 {
            reports(&mut driver, 1, 12);
        }
        for _ in 0..3 {
            let mut intervals = [0; 3];
            for number in 0..cycle {
                let gain = driver.bbr.pacing_gain;
                assert_eq!(gain > 1.0, number < 4, "{algorithm}: {gain} at {number}");
                intervals[usize::from(gain >= 1.0) + usize::from(gain > 1.0)] += 1;
                reports(&mut driver, 1, 12);
            }
            assert_eq!(intervals, [4, cycle - 8, 4], "{algorithm}");
        }
    }
}

#[test]
fn the_mild_probe_goes_on_at_three_quarters() {
    let mut driver = sparse("bbr:profile=realtime,probe_rtt=mild");
    let floor_at = driver.now;
    let mut waited = 0;
    // The RTT is never as small again.
    while driver.bbr.mode != Mode::ProbeRtt {
        driver.ack_with(
            BDP,
            0,
            RTT + Duration::from_millis(20),
            SendToken::default(),
        );
        waited += 1;
        assert!(waited < 4_000, "the floor never expired");
    }
    assert!(driver.now.saturating_since(floor_at) <= Duration::from_millis(2_600));
    assert_eq!(
        driver.bbr.model.min_rtt(),
        Some(RTT),
        "held, as the probe's window is made from it"
    );
    let bandwidth = driver.bbr.bandwidth();
    assert_eq!(driver.bbr.pacing_rate(), Some(bandwidth.scale(0.75 * 0.99)));
    let product = bandwidth.bytes_in(RTT) / MSS;
    let segments = driver.bbr.cwnd() / MSS;
    assert!(
        (product..=product + product / 4 + 8).contains(&segments),
        "{segments} segments, the product is {product}"
    );
    // The path did get longer: that is what the probe finds.
    let before = driver.now;
    while driver.bbr.mode == Mode::ProbeRtt {
        let in_flight = driver.bbr.cwnd() / MSS - 1;
        driver.ack_with(in_flight, 0, RTT + Duration::from_millis(5), SendToken(1));
        assert!(driver.now.saturating_since(before) < Duration::from_secs(1));
    }
    assert!(driver.now.saturating_since(before) >= Duration::from_millis(200));
    assert_eq!(
        driver.bbr.model.min_rtt(),
        Some(RTT + Duration::from_millis(5))
    );
}
