//! Congestion marks.

use super::*;

#[test]
fn marks_bound_the_window_by_what_is_in_flight_but_not_far_below_what_the_path_holds() {
    let mut driver = Driver::new().cruise();
    for _ in 0..5 {
        driver.congestion(Cause::Ecn, BDP + 20);
        driver.in_recovery = false;
        driver.ack(BDP, 0);
    }
    let segments = driver.bbr.cwnd() / MSS;
    let least = BDP * 85 / 100;
    assert!((least - 1..=least + 1).contains(&segments), "{segments}");
}

#[test]
fn a_probe_ends_where_marks_leave_no_room_for_it() {
    let mut driver = Driver::new().cruise();
    while driver.bbr.pacing_gain <= 1.0 {
        driver.ack(BDP, 0);
    }
    for _ in 0..3 {
        driver.congestion(Cause::Ecn, BDP);
        driver.in_recovery = false;
        driver.ack(BDP, 0);
    }
    assert!(driver.bbr.pacing_gain <= 1.0, "{}", driver.bbr.pacing_gain);
}
