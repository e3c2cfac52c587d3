//! Vegas driven by hand: a path of 40 ms whose queue grows with what the window has beyond it.

use super::super::test_events::{congestion, plain_ack};
use super::*;
use tack_base::StreamOffset;

const MSS: u64 = 1000;
const BASE: Duration = Duration::from_millis(40);

struct Driver {
    vegas: Vegas,
    /// Segments that the path holds without queueing.
    path: u64,
    una: u64,
    /// Acknowledgements a round trip.
    acks: u64,
    /// So many times as long as it is takes a round trip.
    delay: u32,
}

impl Driver {
    fn new(path: u64, acks: u64) -> Self {
        let mut vegas = Vegas::new(&Init {
            now: Instant::ZERO,
            mss: MSS,
            initial_window: 2 * MSS,
            restart_window: 2 * MSS,
            rtt: None,
            seed: 0,
            counting: crate::cc::Counting::Bytes,
        });
        if acks < 10 {
            vegas.on_feedback_interval(BASE / acks as u32);
        }
        Self {
            vegas,
            path,
            una: 0,
            acks,
            delay: 1,
        }
    }

    fn window(&self) -> u64 {
        self.vegas.reno.window() / MSS
    }

    /// RTT with this many segments in flight: `window / bandwidth`, once the path is full.
    fn rtt(&self, window: u64) -> Duration {
        self.delay * BASE * window.max(self.path) as u32 / self.path as u32
    }

    /// A window of data is sent and acknowledged.
    fn round(&mut self) {
        let window = self.window();
        let end = self.una + window * MSS;
        let rtt = self.rtt(window);
        for i in 1..=self.acks.min(window) {
            let una = end - window * MSS + i * window * MSS / self.acks.min(window);
            let bytes = una - self.una;
            self.una = una;
            let ack = plain_ack(Instant::ZERO, bytes, una, end.max(una) + window * MSS);
            self.vegas.on_ack(&Ack {
                rtt: Some(rtt),
                srtt: rtt,
                // What is sent in answer is the next round's.
                snd_nxt: StreamOffset(end),
                ..ack
            });
        }
    }
}

#[test]
fn slow_start_doubles_every_other_round() {
    for acks in [1000, 2] {
        let mut driver = Driver::new(1000, acks);
        let mut windows = alloc::vec![];
        for _ in 0..9 {
            driver.round();
            windows.push(driver.window());
        }
        assert_eq!(windows, [4, 4, 8, 8, 16, 16, 32, 32, 64]);
    }
}

#[test]
fn it_settles_with_two_to_four_segments_waiting() {
    for acks in [1000, 4, 2] {
        let mut driver = Driver::new(100, acks);
        let mut largest = 0;
        for _ in 0..200 {
            driver.round();
            largest = largest.max(driver.window());
        }
        assert!(!driver.vegas.in_slow_start());
        assert!(
            (102..=104).contains(&driver.window()),
            "{acks} acknowledgements a round trip: {}",
            driver.window()
        );
        assert!(largest <= 130, "slow start ended late: {largest}");
    }
}

/// After a timeout: both segments of a window waited in a host that slept for ten round trips.
#[test]
fn what_delays_two_segments_does_not_end_slow_start() {
    for acks in [1000, 4, 1] {
        let mut driver = Driver::new(100, acks);
        assert_eq!(driver.window(), 2);
        driver.vegas.meter.reset_base(Some(BASE));
        driver.delay = 10;
        driver.round();
        driver.delay = 1;
        assert!(driver.vegas.in_slow_start(), "{acks}");
    }
}

#[test]
fn a_segment_a_round_towards_the_corridor() {
    let mut driver = Driver::new(100, 4);
    for _ in 0..200 {
        driver.round();
    }
    // The path's capacity halves, with its RTT: far too much waits now.
    driver.path = 50;
    let before = driver.window();
    for _ in 0..10 {
        driver.round();
    }
    assert_eq!(before - driver.window(), 10);
    driver.path = 200;
    let before = driver.window();
    for _ in 0..10 {
        driver.round();
    }
    assert_eq!(driver.window() - before, 10);
}

#[test]
fn without_samples_it_grows_as_reno_does() {
    let mut driver = Driver::new(100, 1000);
    for _ in 0..200 {
        driver.round();
    }
    let before = driver.window();
    for _ in 0..5 {
        let window = driver.window() * MSS;
        driver.una += window;
        let ack = plain_ack(Instant::ZERO, window, driver.una, driver.una);
        driver.vegas.on_ack(&Ack { rtt: None, ..ack });
    }
    assert_eq!(driver.window() - before, 5);
}

#[test]
fn loss_halves_and_delay_waits_for_the_end_of_recovery() {
    let mut driver = Driver::new(100, 1000);
    for _ in 0..200 {
        driver.round();
    }
    driver
        .vegas
        .on_congestion(&congestion(Cause::Loss, 100 * MSS, 0));
    assert_eq!(driver.window(), 50);
    let ack = plain_ack(
        Instant::ZERO,
        50 * MSS,
        driver.una + 50 * MSS,
        driver.una + 60 * MSS,
    );
    for _ in 0..5 {
        driver.vegas.on_ack(&Ack {
            in_recovery: true,
            rtt: Some(BASE * 3),
            ..ack
        });
    }
    assert_eq!(driver.window(), 50);
    driver.vegas.on_spurious(Instant::ZERO, Cause::Loss);
    assert!((102..=104).contains(&driver.window()));
}

#[test]
fn idle_time_lets_a_longer_route_count_as_such() {
    let mut driver = Driver::new(100, 4);
    for _ in 0..50 {
        driver.round();
    }
    assert_eq!(driver.vegas.metrics().min_rtt, Some(BASE));
    driver
        .vegas
        .on_idle_restart(Instant::ZERO, Duration::from_secs(10));
    let una = driver.una + MSS;
    let ack = plain_ack(Instant::ZERO, MSS, una, una + MSS);
    driver.vegas.on_ack(&Ack {
        rtt: Some(2 * BASE),
        ..ack
    });
    assert_eq!(driver.vegas.metrics().min_rtt, Some(2 * BASE));
}

/// What a report of a quarter round trip frees leaves over that quarter: sent faster, it would be
/// the backlog itself.
#[test]
fn what_a_report_frees_does_not_queue_by_itself() {
    let mut driver = Driver::new(100, 100);
    for _ in 0..50 {
        driver.round();
    }
    let gain = |vegas: &Vegas| vegas.cwnd() as f64 * vegas.pacing_gain();
    let dense = gain(&driver.vegas);
    driver.vegas.on_feedback_interval(BASE / 4);
    driver.vegas.on_feedback_gap(BASE / 4);
    driver.round();
    let window = driver.vegas.reno.window() as f64;
    assert!(driver.vegas.cwnd() as f64 > 1.2 * window);
    let backlog = (gain(&driver.vegas) - window) / 4.0;
    assert!(backlog > 0.0 && backlog < ALPHA * MSS as f64, "{backlog}");
    assert!((dense / window - 1.2).abs() < 0.05, "{dense}");
}

/// The pace of a round that doubles follows from the window that it began with: a pace that grew
/// with the window would be twice what the round needs at its end.
#[test]
fn a_round_that_doubles_keeps_its_pace() {
    let mut driver = Driver::new(1000, 4);
    for _ in 0..4 {
        driver.round();
    }
    let began = driver.vegas.reno.window();
    let pace = |vegas: &Vegas| vegas.cwnd() as f64 * vegas.pacing_gain() / began as f64;
    let quarter = began / 4;
    for acked in 1..4 {
        assert!((pace(&driver.vegas) - 2.0 * GROWTH_GAIN).abs() < 1e-9);
        let una = driver.una + acked * quarter;
        driver.vegas.on_ack(&Ack {
            rtt: Some(BASE),
            srtt: BASE,
            snd_nxt: StreamOffset(driver.una + began),
            ..plain_ack(Instant::ZERO, quarter, una, driver.una + began)
        });
        assert_eq!(driver.vegas.reno.window(), began + acked * quarter);
    }
    assert!((pace(&driver.vegas) - 2.0 * GROWTH_GAIN).abs() < 1e-9);
}
