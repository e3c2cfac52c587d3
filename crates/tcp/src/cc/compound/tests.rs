//! Compound driven by hand: rounds of a window each, with a given RTT.

use super::super::test_events::{congestion, plain_ack};
use super::*;

const MSS: u64 = 1000;
const BASE: Duration = Duration::from_millis(40);

struct Driver {
    compound: Compound,
    una: u64,
}

impl Driver {
    /// In congestion avoidance with a window of `segments`, the base RTT known.
    fn avoiding(segments: u64) -> Self {
        let mut compound = Compound::new(&Init {
            now: Instant::ZERO,
            mss: MSS,
            initial_window: 2 * segments * MSS,
            restart_window: 2 * segments * MSS,
            rtt: None,
            seed: 0,
            counting: crate::cc::Counting::Bytes,
        });
        compound.on_feedback_interval(BASE / 4);
        compound
            .reno
            .on_congestion(&congestion(Cause::Loss, 2 * segments * MSS, 0));
        compound.on_recovered(Instant::ZERO);
        let mut driver = Self { compound, una: 0 };
        driver.round(BASE);
        driver
    }

    fn window(&self) -> u64 {
        self.compound.reno.window() / MSS
    }

    /// A window of data is acknowledged, in four acknowledgements.
    fn round(&mut self, rtt: Duration) {
        let window = self.compound.reno.window();
        let end = self.una + window;
        for i in 1..=4 {
            let una = end - window + window * i / 4;
            let bytes = una - self.una;
            self.una = una;
            let ack = plain_ack(Instant::ZERO, bytes, una, end);
            self.compound.on_ack(&Ack {
                rtt: Some(rtt),
                srtt: rtt,
                ..ack
            });
        }
    }
}

#[test]
fn an_uncongested_path_makes_it_grow_by_the_power_law() {
    let mut driver = Driver::avoiding(400);
    for _ in 0..20 {
        let before = driver.compound.reno.window() as f64 / MSS as f64;
        driver.round(BASE);
        let grown = driver.compound.reno.window() as f64 / MSS as f64 - before;
        let law = ALPHA * libm::pow(before, K);
        // The loss window's segment comes when the last whole window is in: one early or late.
        assert!((law - 1.1..law + 1.1).contains(&grown), "{grown}, {law}");
    }
    assert!(
        driver.compound.dwnd > driver.window() * MSS / 4,
        "the delay window did it"
    );
}

#[test]
fn small_windows_are_renos() {
    let mut driver = Driver::avoiding(10);
    let before = driver.window();
    for _ in 0..5 {
        driver.round(BASE);
    }
    assert_eq!(driver.compound.dwnd, 0);
    assert!((4..=5).contains(&(driver.window() - before)));
}

#[test]
fn a_queue_takes_the_delay_window_back_but_not_renos() {
    let mut driver = Driver::avoiding(400);
    for _ in 0..20 {
        driver.round(BASE);
    }
    let loss_window = driver.compound.loss_window();
    // A fifth of the window waits, far more than γ: each round takes so much off.
    let (before, dwnd) = (driver.window(), driver.compound.dwnd);
    driver.round(BASE * 5 / 4);
    let less = dwnd - driver.compound.dwnd;
    assert!(
        (before / 5 - 2..=before / 5 + 2).contains(&(less / MSS)),
        "{less}"
    );
    for _ in 0..10 {
        driver.round(BASE * 5 / 4);
    }
    assert_eq!(driver.compound.dwnd, 0);
    assert!(driver.compound.loss_window() >= loss_window);
    assert!(
        !driver.compound.in_slow_start(),
        "giving way is no reason for slow start"
    );
}

#[test]
fn a_loss_halves_both_windows_together() {
    let mut driver = Driver::avoiding(400);
    for _ in 0..20 {
        driver.round(BASE);
    }
    let (window, dwnd) = (driver.compound.reno.window(), driver.compound.dwnd);
    driver
        .compound
        .on_congestion(&congestion(Cause::Loss, driver.compound.cwnd(), 0));
    let halved = driver.compound.reno.window();
    assert!(
        (window / 2 - MSS..=window / 2 + MSS).contains(&halved),
        "{halved} of {window}"
    );
    assert!((dwnd / 2 - MSS..=dwnd / 2 + MSS).contains(&driver.compound.dwnd));

    driver.compound.on_spurious(Instant::ZERO, Cause::Loss);
    assert_eq!(
        (driver.compound.reno.window(), driver.compound.dwnd),
        (window, dwnd)
    );
}

#[test]
fn gamma_follows_the_backlog_that_reno_would_have() {
    let mut driver = Driver::avoiding(100);
    driver.round(BASE * 10 / 9);
    // A tenth of a hundred segments: three quarters of ten, at a weight of four fifths.
    driver
        .compound
        .on_congestion(&congestion(Cause::Loss, 100 * MSS, 0));
    let expected = 0.2 * 30.0 + 0.8 * 0.75 * 10.1;
    assert!(
        (driver.compound.gamma - expected).abs() < 0.5,
        "{}",
        driver.compound.gamma
    );
    // Nothing was measured since: the next loss says nothing new.
    let gamma = driver.compound.gamma;
    driver
        .compound
        .on_congestion(&congestion(Cause::Loss, 50 * MSS, 0));
    assert_eq!(driver.compound.gamma, gamma);

    driver
        .compound
        .on_congestion(&congestion(Cause::Timeout, 50 * MSS, 1));
    assert_eq!(driver.compound.gamma, GAMMA);
    assert_eq!((driver.compound.dwnd, driver.window()), (0, 1));
    assert_eq!(
        driver.compound.metrics().min_rtt,
        Some(BASE * 10 / 9),
        "the smoothed RTT"
    );
}

#[test]
fn gamma_stays_in_its_bounds() {
    for (rtt, bound) in [(BASE, GAMMA_LOW), (BASE * 2, GAMMA_HIGH)] {
        let mut driver = Driver::avoiding(1000);
        for _ in 0..3 {
            driver.round(rtt);
            let flight = driver.compound.cwnd();
            driver
                .compound
                .on_congestion(&congestion(Cause::Loss, 2 * flight, 0));
            driver.compound.on_recovered(Instant::ZERO);
        }
        assert!(
            (driver.compound.gamma - bound).abs() < 0.01,
            "{}",
            driver.compound.gamma
        );
    }
}
