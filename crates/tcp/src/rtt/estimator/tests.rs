use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_doubted_sample_is_replaced_by_the_next_one() {
    let mut rtt = RttEstimator::new(ms(1_000), ms(200), ms(60_000));
    let una = StreamOffset::FIRST_BYTE;
    rtt.sample(Instant::ZERO, ms(3_000), ms(3_000), una, una);
    rtt.doubt();
    assert_eq!((rtt.smoothed(), rtt.rto()), (Some(ms(3_000)), ms(9_000)));
    rtt.sample(Instant::ZERO, ms(160), ms(160), una, una);
    assert_eq!((rtt.smoothed(), rtt.rto()), (Some(ms(160)), ms(480)));
    // The one after that is smoothed.
    rtt.sample(Instant::ZERO, ms(240), ms(240), una, una);
    assert_eq!(rtt.smoothed(), Some(ms(170)));
}

#[test]
fn a_window_spreads_over_the_round_trip_of_now() {
    let mut rtt = RttEstimator::new(ms(1_000), ms(200), ms(60_000));
    assert_eq!(rtt.window_time(), None);
    let mut sample = |millis| {
        rtt.sample_smooth(ms(millis), StreamOffset::SYN, StreamOffset::SYN);
        (rtt.window_time(), rtt.smoothed())
    };
    // A host sleeps for 320 ms. The samples after that are short, and SRTT is long for a while.
    assert_eq!(sample(10), (Some(ms(10)), Some(ms(10))));
    let (time, smoothed) = sample(330);
    assert_eq!((time, smoothed), (Some(ms(50)), Some(ms(50))));
    assert_eq!(sample(10), (Some(ms(20)), Some(ms(45))));
    // A sample of at least half of SRTT changes nothing.
    let (time, smoothed) = sample(30);
    assert_eq!(time, smoothed);
}

#[test]
fn what_a_peer_states_shortens_the_first_timeout_and_nothing_else() {
    let mut rtt = RttEstimator::new(ms(1000), ms(200), ms(60_000));
    rtt.on_syn_timeout();
    assert_eq!(rtt.rto(), ms(3000));
    rtt.on_stated(ms(100));
    assert_eq!((rtt.rto(), rtt.smoothed()), (ms(300), None));
    rtt.on_stated(Duration::from_micros(1));
    assert_eq!(rtt.rto(), ms(200), "not below the least");
    rtt.on_stated(Duration::from_micros(u32::MAX.into()));
    assert_eq!(rtt.rto(), ms(3000), "and no longer than without it");
    rtt.sample(
        Instant::from_millis(1),
        ms(40),
        ms(40),
        StreamOffset(1),
        StreamOffset(1),
    );
    rtt.on_stated(ms(1));
    assert_eq!(rtt.smoothed(), Some(ms(40)));
}

#[test]
fn what_a_peer_states_counts_beside_a_doubted_sample() {
    let mut rtt = RttEstimator::new(ms(1_000), ms(200), ms(60_000));
    let una = StreamOffset::FIRST_BYTE;
    rtt.sample(Instant::ZERO, ms(570), ms(570), una, una);
    rtt.doubt();
    assert_eq!(rtt.rto(), ms(1_710));
    rtt.on_stated(ms(900));
    assert_eq!(rtt.rto(), ms(1_710), "no longer than without it");
    rtt.on_stated(ms(85));
    assert_eq!((rtt.rto(), rtt.smoothed()), (ms(255), Some(ms(570))));
    // The next sample replaces both.
    rtt.sample(Instant::ZERO, ms(400), ms(400), una, una);
    assert_eq!((rtt.rto(), rtt.smoothed()), (ms(1_200), Some(ms(400))));
}

#[test]
fn only_samples_of_new_data_end_backing_off() {
    let mut rtt = RttEstimator::new(ms(1000), ms(200), ms(60_000));
    rtt.sample(
        Instant::from_millis(1),
        ms(40),
        ms(40),
        StreamOffset(1),
        StreamOffset(1),
    );
    let base = rtt.rto();
    rtt.back_off(StreamOffset(1001));
    rtt.sample(
        Instant::from_millis(2),
        ms(40),
        ms(40),
        StreamOffset(1001),
        StreamOffset(5001),
    );
    assert!(rtt.rto() > base * 3 / 2, "a peer that repeats itself");
    rtt.sample(
        Instant::from_millis(3),
        ms(40),
        ms(40),
        StreamOffset(2001),
        StreamOffset(5001),
    );
    assert!(rtt.rto() <= base);
}

#[test]
fn a_repair_within_a_round_trip_leaves_one_doubling() {
    let mut rtt = RttEstimator::new(ms(1000), ms(200), ms(60_000));
    rtt.on_repair(ms(40));
    rtt.sample(
        Instant::from_millis(1),
        ms(40),
        ms(40),
        StreamOffset(1),
        StreamOffset(1),
    );
    let base = rtt.rto();
    rtt.on_repair(ms(41));
    assert_eq!(rtt.rto(), base, "no backing off comes back");
    for _ in 0..3 {
        rtt.back_off(StreamOffset(1001));
        rtt.back_off(StreamOffset(1001));
        rtt.on_repair(ms(41));
        assert_eq!(rtt.rto(), base * 2);
    }
    // After another age it takes two, and a timeout in between.
    for unlike in [ms(0), ms(20), base + ms(1)] {
        rtt.back_off(StreamOffset(2001));
        rtt.on_repair(unlike);
        rtt.on_repair(ms(41));
        rtt.on_repair(ms(41));
    }
    assert_eq!(rtt.rto(), base * 16);
    rtt.back_off(StreamOffset(2001));
    rtt.on_repair(ms(41));
    assert_eq!(rtt.rto(), base * 2);
}

#[test]
fn a_bound_within_the_timeout_ends_backing_off_and_is_no_sample() {
    let mut rtt = RttEstimator::new(ms(1000), ms(200), ms(60_000));
    rtt.sample(
        Instant::from_millis(1),
        ms(40),
        ms(40),
        StreamOffset(1),
        StreamOffset(1),
    );
    let base = rtt.rto();
    rtt.back_off(StreamOffset(1001));
    rtt.on_bound(base + ms(1), StreamOffset(2001));
    rtt.on_bound(base, StreamOffset(1001));
    assert_eq!(rtt.rto(), base * 2, "too long, and no progress");
    rtt.on_bound(base, StreamOffset(2001));
    assert_eq!((rtt.rto(), rtt.smoothed()), (base, Some(ms(40))));
}

/// Flights leave, each of which times out until its round trip is over, until one does not.
#[test]
fn a_long_round_trip_is_not_taken_for_a_short_one() {
    for round_trip in (250..60_000).step_by(7).map(ms) {
        let mut rtt = RttEstimator::new(ms(1000), ms(200), ms(120_000));
        rtt.sample(
            Instant::from_millis(1),
            ms(40),
            ms(40),
            StreamOffset(1),
            StreamOffset(1),
        );
        let in_vain = (0..5).find(|flight| {
            let mut left = round_trip;
            while rtt.rto() < left {
                left -= rtt.rto();
                rtt.back_off(StreamOffset(1000 * flight));
            }
            let timed_out = left < round_trip;
            rtt.on_repair(left);
            !timed_out
        });
        assert!(
            in_vain.is_some_and(|flights| flights <= 3),
            "{round_trip:?}: {in_vain:?}"
        );
    }
}

#[test]
fn a_lost_acknowledgement_makes_no_round_trip_while_backed_off() {
    let mut rtt = RttEstimator::new(ms(1000), ms(200), ms(60_000));
    rtt.sample(
        Instant::from_millis(1),
        ms(40),
        ms(40),
        StreamOffset(1),
        StreamOffset(1),
    );
    let base = rtt.rto();
    for _ in 0..4 {
        rtt.back_off(StreamOffset(1001));
    }
    let (mut una, late) = (2001, base * 15);
    rtt.sample_departures(
        Instant::from_millis(2),
        late,
        late,
        StreamOffset(una),
        StreamOffset(9001),
    );
    assert!(rtt.base_rto() < base * 3, "{:?}", rtt.base_rto());
    assert_eq!(rtt.rto(), rtt.base_rto() * 16);
    // Round trips that have grown are followed in a few samples.
    let taken = (0..9).find(|_| {
        una += 1000;
        rtt.sample_departures(
            Instant::from_millis(3),
            late,
            late,
            StreamOffset(una),
            StreamOffset(una + 7000),
        );
        rtt.rto() == rtt.base_rto()
    });
    assert!(taken.is_some_and(|samples| samples <= 3), "{taken:?}");
    assert!(rtt.rto() > late);
}

#[test]
fn a_first_sample_that_holds_timeouts_does_not_last() {
    let at = |millis| Instant::from_millis(millis);
    let mut rtt = RttEstimator::new(ms(1_000), ms(200), ms(60_000));
    rtt.back_off(StreamOffset(1));
    rtt.back_off(StreamOffset(1));
    rtt.sample_first(
        at(6_000),
        ms(6_000),
        StreamOffset(1_000),
        StreamOffset(1_000),
    );
    assert!(rtt.rto() >= ms(6_000));
    rtt.sample(
        at(6_100),
        ms(60),
        ms(60),
        StreamOffset(2_000),
        StreamOffset(2_000),
    );
    assert_eq!((rtt.smoothed(), rtt.rto()), (Some(ms(60)), ms(260)));
    // Without timeouts a first sample stays.
    let mut rtt = RttEstimator::new(ms(1_000), ms(200), ms(60_000));
    rtt.sample_first(at(100), ms(100), StreamOffset(1_000), StreamOffset(1_000));
    rtt.sample(
        at(200),
        ms(60),
        ms(60),
        StreamOffset(2_000),
        StreamOffset(2_000),
    );
    assert_eq!(rtt.smoothed(), Some(ms(95)));
}

#[test]
fn coarse_samples_leave_the_minimum_alone() {
    let mut rtt = RttEstimator::new(ms(1000), ms(200), ms(60_000));
    rtt.follow_closely();
    rtt.sample(
        Instant::from_millis(1),
        ms(40),
        ms(40),
        StreamOffset(1),
        StreamOffset(1),
    );
    rtt.sample_smooth(ms(120), StreamOffset(1), StreamOffset(1));
    assert_eq!(rtt.min(), Some(ms(40)));
    assert!(rtt.smoothed() > Some(ms(40)));
}
