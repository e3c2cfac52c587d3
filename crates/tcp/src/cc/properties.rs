//! Properties that hold for every controller on every sequence of events, sensible or not.

use alloc::boxed::Box;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use tack_base::StreamOffset;

const MSS: u64 = 1448;

/// What may happen to a controller. Numbers are free: they need not agree with each other.
#[derive(Clone, Debug)]
enum Event {
    Send {
        bytes: u64,
        in_flight: u64,
        app_limited: bool,
    },
    Ack {
        acked: u64,
        delivered: u64,
        lost: u64,
        in_flight: u64,
        rtt: Option<u64>,
        rate: Option<(u64, u64)>,
        flags: u8,
    },
    Congestion(Cause, u64, u32),
    Recovered,
    Spurious(Cause),
    FalseMarks(u64),
    Idle(u64),
    Mss(u64),
    FeedbackInterval(u64),
}

fn cause() -> impl Strategy<Value = Cause> {
    prop_oneof![Just(Cause::Loss), Just(Cause::Ecn), Just(Cause::Timeout)]
}

/// Mostly what connections see, at times anything.
fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..100 * MSS, 2 => 0..1_u64 << 33, 1 => Just(0), 1 => Just(u64::MAX)]
}

fn nanoseconds() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..200_000_000_u64, 1 => Just(0), 1 => 0..1_u64 << 62]
}

fn event() -> impl Strategy<Value = Event> {
    let ack = (
        bytes(),
        bytes(),
        prop_oneof![3 => Just(0), 1 => bytes()],
        bytes(),
        proptest::option::of(nanoseconds()),
        proptest::option::weighted(0.9, (bytes(), nanoseconds())),
        any::<u8>(),
    );
    prop_oneof![
        4 => (bytes(), bytes(), any::<bool>())
            .prop_map(|(bytes, in_flight, app_limited)| Event::Send { bytes, in_flight, app_limited }),
        12 => ack.prop_map(|(acked, delivered, lost, in_flight, rtt, rate, flags)| Event::Ack {
            acked, delivered, lost, in_flight, rtt, rate, flags
        }),
        2 => (cause(), bytes(), 0..4_u32).prop_map(|(cause, flight, n)| Event::Congestion(cause, flight, n)),
        1 => Just(Event::Recovered),
        1 => cause().prop_map(Event::Spurious),
        1 => bytes().prop_map(Event::FalseMarks),
        1 => nanoseconds().prop_map(Event::Idle),
        1 => prop_oneof![536..9000_u64, Just(0), Just(u64::MAX)].prop_map(Event::Mss),
        1 => prop_oneof![1 => Just(0), 3 => nanoseconds()].prop_map(Event::FeedbackInterval),
    ]
}

/// Applies events and keeps the totals that acknowledgements carry.
struct Driver {
    controller: Box<dyn CongestionController>,
    now: Instant,
    delivered: u64,
    lost: u64,
    snd_una: u64,
    token: SendToken,
}

impl Driver {
    fn new(algorithm: Algorithm, rtt: Option<Duration>) -> Self {
        let init = Init {
            now: Instant::ZERO,
            mss: MSS,
            initial_window: 10 * MSS,
            restart_window: 10 * MSS,
            rtt,
            seed: 7,
            counting: crate::cc::Counting::Bytes,
        };
        Self {
            controller: algorithm.build(&init),
            now: Instant::ZERO,
            delivered: 0,
            lost: 0,
            snd_una: 0,
            token: SendToken::default(),
        }
    }

    fn apply(&mut self, event: &Event, step: u64) {
        self.now += Duration::from_nanos(step);
        let now = self.now;
        match *event {
            Event::Send {
                bytes,
                in_flight,
                app_limited,
            } => {
                let sent = Sent {
                    now,
                    bytes,
                    prior_in_flight: in_flight,
                    retransmission: false,
                    app_limited,
                };
                self.token = self.controller.on_send(&sent);
            }
            Event::Ack {
                acked,
                delivered,
                lost,
                in_flight,
                rtt,
                rate,
                flags,
            } => {
                self.delivered = self.delivered.saturating_add(delivered);
                self.lost = self.lost.saturating_add(lost);
                self.snd_una = self.snd_una.saturating_add(acked);
                let rtt = rtt.map(Duration::from_nanos);
                let ack = Ack {
                    now,
                    acked,
                    delivered,
                    lost,
                    prior_in_flight: in_flight.saturating_add(delivered),
                    bytes_in_flight: in_flight,
                    rtt,
                    srtt: rtt.unwrap_or_default(),
                    min_rtt: rtt.unwrap_or_default(),
                    rate: rate.map(|(bytes, interval)| {
                        let interval = Duration::from_nanos(interval.max(1));
                        RateSample {
                            delivered: bytes,
                            interval,
                            delivery_rate: Rate::from_bytes_over(bytes, interval),
                            prior_delivered: self.delivered.saturating_sub(bytes),
                            app_limited: flags & 1 != 0,
                        }
                    }),
                    total_delivered: self.delivered,
                    total_lost: self.lost,
                    snd_una: StreamOffset(self.snd_una),
                    snd_nxt: StreamOffset(self.snd_una.saturating_add(in_flight)),
                    in_recovery: flags & 2 != 0,
                    cwnd_limited: flags & 4 != 0,
                    slow_start_room: u64::MAX,
                    token: if flags & 8 == 0 {
                        self.token
                    } else {
                        SendToken(u64::from(flags))
                    },
                };
                self.controller.on_ack(&ack);
            }
            Event::Congestion(cause, prior_in_flight, consecutive_timeouts) => {
                self.controller.on_congestion(&Congestion {
                    now,
                    cause,
                    prior_in_flight,
                    cwnd_limited: prior_in_flight % 2 == 0,
                    consecutive_timeouts,
                    snd_nxt: StreamOffset(self.snd_una.saturating_add(prior_in_flight)),
                });
            }
            Event::Recovered => self.controller.on_recovered(now),
            Event::Spurious(cause) => self.controller.on_spurious(now, cause),
            Event::FalseMarks(window) => self.controller.on_false_marks(now, window),
            Event::Idle(idle) => self
                .controller
                .on_idle_restart(now, Duration::from_nanos(idle)),
            Event::Mss(mss) => self.controller.on_mss(mss),
            Event::FeedbackInterval(interval) => self
                .controller
                .on_feedback_interval(Duration::from_nanos(interval)),
        }
    }
}

fn events() -> impl Strategy<Value = Vec<(Event, u64)>> {
    proptest::collection::vec((event(), nanoseconds()), 0..150)
}

/// With legacy acknowledgements throughout. With sparse ones the window in force follows the
/// smoothed RTT.
fn legacy_events() -> impl Strategy<Value = Vec<(Event, u64)>> {
    events().prop_map(|mut events| {
        events.retain(|(event, _)| !matches!(event, Event::FeedbackInterval(_)));
        events
    })
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    let mut all = Algorithm::ALL.to_vec();
    all.push("bbr:profile=realtime,probe_rtt=mild".parse().unwrap());
    all.push(Algorithm::Cubic(CubicProfile::Linux));
    proptest::sample::select(all)
}

proptest! {
    #[test]
    fn windows_and_rates_stay_sane(
        algorithm in algorithm(),
        rtt in proptest::option::of(nanoseconds()),
        events in events(),
    ) {
        let mut driver = Driver::new(algorithm, rtt.map(Duration::from_nanos));
        let mut mss = MSS;
        for (event, step) in &events {
            driver.apply(event, *step);
            if let Event::Mss(new) = event {
                mss = (*new).clamp(1, MAX_MSS);
            }
            let controller = &driver.controller;
            prop_assert!(controller.cwnd() >= mss, "{event:?}");
            prop_assert!(controller.cwnd() <= MAX_WINDOW);
            prop_assert!(controller.ssthresh() > 0);
            prop_assert!(controller.pacing_rate().is_none_or(|rate| !rate.is_zero()));
            let gain = controller.metrics().pacing_gain.unwrap_or(1.0);
            prop_assert!(gain > 0.0 && gain < 3.0);
            // What room for unreported data adds to the window, it takes off the gain.
            prop_assert!(controller.pacing_gain() >= 0.5);
            prop_assert!(
                controller.metrics().pacing_gain.is_some()
                    || controller.in_slow_start()
                    || controller.pacing_gain() >= 0.6
                    || algorithm == Algorithm::Vegas
            );
        }
    }

    /// Before the window was reduced, after an episode that was false: the same.
    #[test]
    fn undo_restores(
        algorithm in algorithm(),
        events in legacy_events(),
        timeout in any::<bool>(),
        flight in 1..200_u64,
        acks in 0..5_u64,
    ) {
        let mut driver = Driver::new(algorithm, Some(Duration::from_millis(40)));
        for (event, step) in &events {
            driver.apply(event, *step);
        }
        driver.apply(&Event::Recovered, 1);
        if driver.controller.metrics().phase == "probe_rtt" {
            // Its window is small for another reason.
            return Ok(());
        }
        let (cwnd, ssthresh) = (driver.controller.cwnd(), driver.controller.ssthresh());
        let cause = if timeout { Cause::Timeout } else { Cause::Loss };
        driver.apply(&Event::Congestion(cause, flight * MSS, u32::from(timeout)), 1);
        for _ in 0..acks {
            let ack = Event::Ack {
                acked: MSS,
                delivered: MSS,
                lost: 0,
                in_flight: flight * MSS,
                rtt: None,
                rate: None,
                flags: 2,
            };
            driver.apply(&ack, 1);
        }
        driver.apply(&Event::Spurious(cause), 1);
        if driver.controller.metrics().phase == "probe_rtt" {
            return Ok(());
        }
        prop_assert!(driver.controller.cwnd() >= cwnd);
        prop_assert!(driver.controller.ssthresh() >= ssthresh);
    }

    /// A reduction never makes the window larger, growth needs the window to be in use (BBR has its
    /// own measure of that), and without delay as a signal nothing but congestion shrinks it.
    #[test]
    fn windows_move_the_right_way(
        algorithm in proptest::sample::select(
            [
                Algorithm::NewReno,
                Algorithm::CUBIC,
                Algorithm::Cubic(CubicProfile::Linux),
                Algorithm::Vegas,
                Algorithm::Compound,
            ].as_slice(),
        ),
        events in legacy_events(),
    ) {
        let mut driver = Driver::new(algorithm, None);
        for (event, step) in &events {
            let before = driver.controller.cwnd();
            driver.apply(event, *step);
            let after = driver.controller.cwnd();
            match event {
                Event::Congestion(..) | Event::Idle(_) => prop_assert!(after <= before),
                Event::Ack { flags, .. } => {
                    let delay_based = matches!(algorithm, Algorithm::Vegas | Algorithm::Compound);
                    prop_assert!(after >= before || delay_based);
                    prop_assert!(after <= before || flags & 4 != 0, "grew without being used");
                }
                _ => {}
            }
        }
    }
}
