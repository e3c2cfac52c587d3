//! When the pacer lets segments leave, by timers that are on time, late and coarse.

use alloc::vec::Vec;

use super::*;

fn mbps(n: u64) -> Option<Rate> {
    Some(Rate::from_bits_per_sec(n * 1_000_000))
}

#[test]
fn exact_carriers_space_every_segment() {
    let mut pacer = Pacer::new(Carrier::default());
    pacer.set_rate(mbps(8));
    let mut now = Instant::from_millis(5);
    for _ in 0..10 {
        assert_eq!(pacer.blocked_until(now), None);
        pacer.on_send(now, 1000, 1000);
        assert_eq!(
            pacer.blocked_until(now),
            Some(now + Duration::from_millis(1))
        );
        now += Duration::from_millis(1);
    }
}

#[test]
fn what_is_sent_before_its_time_opens_no_quantum() {
    let carrier = Carrier {
        timer_granularity: Duration::from_millis(8),
        max_batch: 16,
        overhead: 20,
    };
    let mut pacer = Pacer::new(carrier);
    pacer.set_rate(mbps(8));
    let now = Instant::from_millis(100);
    while pacer.blocked_until(now).is_none() {
        pacer.on_send(now, 1000, 1000);
    }
    let before = pacer.blocked_until(now).expect("blocked");
    pacer.on_send(now, 1000, 1000);
    assert_eq!(
        pacer.blocked_until(now),
        Some(before + Duration::from_millis(1))
    );
}

/// Bytes that leave in 100 ms, in segments of 1,000, where each timer fires so `late`.
fn sent_in_100_ms(pacer: &mut Pacer, late: Duration) -> u64 {
    let mut now = Instant::from_millis(1);
    let mut sent = 0;
    while now < Instant::from_millis(101) {
        while pacer.blocked_until(now).is_none() {
            pacer.on_send(now, 1000, 1000);
            sent += 1000;
        }
        now = pacer.blocked_until(now).expect("blocked") + late;
    }
    sent
}

#[test]
fn late_timers_do_not_lower_the_rate_of_single_segments() {
    let carrier = Carrier {
        timer_granularity: Duration::from_millis(1),
        max_batch: 1,
        overhead: 20,
    };
    let mut pacer = Pacer::new(carrier);
    pacer.set_rate(mbps(20));
    // A segment is due every 400 us, and each timer fires 700 us late.
    let sent = sent_in_100_ms(&mut pacer, Duration::from_micros(700));
    assert!((245_000..=255_000).contains(&sent), "{sent}");
}

/// A carrier with a fine timer, as sockets of Linux are.
const FINE: Carrier = Carrier {
    timer_granularity: Duration::from_micros(50),
    max_batch: 64,
    overhead: 28,
};

/// Sends segments of 1000 bytes at a rate for one second, while timer `n` fires late by
/// `late(n)`. Returns the bytes sent, and whether time was lost.
fn sent_with_timers(mbit: u64, late: impl Fn(u64) -> Duration) -> (u64, bool) {
    let mut pacer = Pacer::new(FINE);
    pacer.set_rate(mbps(mbit));
    let (mut now, mut sent, mut is_time_lost) = (Instant::from_millis(1), 0, false);
    let mut timers = 0..;
    while now < Instant::from_millis(1001) {
        now = loop {
            if let Some(until) = pacer.wait(now) {
                break until + timers.next().map_or(Duration::ZERO, &late);
            }
            is_time_lost |= pacer.on_send(now, 1000, 1000);
            sent += 1000;
        };
    }
    (sent, is_time_lost)
}

#[test]
fn a_machine_that_wakes_late_keeps_the_rate() {
    for mbit in [8, 24, 80, 400] {
        for micros in [50, 100, 150, 250, 500, 1_000, 4_000, 9_000] {
            // All timers, each second one, and bursts of three.
            let patterns: [fn(u64) -> bool; 3] = [|_| true, |n| n % 2 == 0, |n| n % 8 < 3];
            for (pattern, is_late) in patterns.into_iter().enumerate() {
                let late = |n| Duration::from_micros(if is_late(n) { micros } else { 0 });
                let (sent, is_time_lost) = sent_with_timers(mbit, late);
                let share = sent as f64 / (mbit as f64 * 125_000.0);
                let what = (mbit, micros, pattern, share);
                assert!((0.985..=1.015).contains(&share), "{what:?}");
                assert!(!is_time_lost, "{what:?}");
            }
        }
    }
}

/// Sends segments of 1000 bytes at 16 Mbit/s, one each 500 us, from 0 on. The timer of the
/// segment that is due at 10 ms fires late by `late`, all others are on time. Returns when each
/// segment of the 20 ms left, microseconds.
fn departures_with_one_late_timer(late: Duration) -> Vec<u64> {
    let mut pacer = Pacer::new(FINE);
    pacer.set_rate(mbps(16));
    let (mut now, mut left) = (Instant::ZERO, Vec::new());
    while now < Instant::from_millis(20) {
        now = loop {
            if let Some(until) = pacer.wait(now) {
                let is_late = until == Instant::from_millis(10);
                break until + if is_late { late } else { Duration::ZERO };
            }
            assert!(!pacer.on_send(now, 1000, 1000));
            left.push(now.as_micros());
        };
    }
    left
}

#[test]
fn what_one_late_timer_held_back_leaves_at_twice_the_rate() {
    let left = departures_with_one_late_timer(Duration::from_millis(2));
    let gaps: Vec<u64> = left.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // 2 ms are four segments, made up for in the next 2 ms, in which four more are due.
    let expected = [500, 2500, 250, 250, 250, 250, 250, 250, 250, 250, 500];
    assert_eq!(gaps[18..29], expected, "{left:?}");
    assert_eq!(left.len(), 40);
}

#[test]
fn an_acknowledgement_does_not_release_two_segments_at_once() {
    let mut pacer = Pacer::new(FINE);
    pacer.set_rate(mbps(16));
    // The window has room for two segments each 1.2 ms, which is less than the rate permits.
    for at in (1..10).map(|n| Instant::from_micros(n * 1_200)) {
        assert_eq!(pacer.wait(at), None);
        pacer.on_send(at, 1000, 1000);
        let until = pacer.wait(at).expect("the second one waits");
        let half = at + Duration::from_micros(250);
        assert!(until >= half, "{until:?} {half:?}");
        pacer.on_send(until, 1000, 1000);
        pacer.pause();
    }
}

#[test]
fn a_machine_that_wakes_far_too_late_says_so() {
    for mbit in [24, 80, 400] {
        let (sent, is_time_lost) = sent_with_timers(mbit, |_| Duration::from_millis(40));
        // 10 to 15 ms of each 40 are made up for.
        let share = sent as f64 / (mbit as f64 * 125_000.0);
        assert!((0.2..=0.4).contains(&share), "{mbit}: {share}");
        assert!(is_time_lost);
    }
}

#[test]
fn what_leaves_together_is_one_quantum_at_high_rates_too() {
    for mbit in [100, 200, 400, 1_000] {
        let mut pacer = Pacer::new(FINE);
        pacer.set_rate(mbps(mbit));
        let most = pacer.quantum(1000) / 1000;
        let (mut now, mut timers) = (Instant::from_millis(1), 0);
        while now < Instant::from_millis(20) {
            let mut together = 0;
            let until = loop {
                if let Some(until) = pacer.wait(now) {
                    break until;
                }
                pacer.on_send(now, 1000, 1000);
                together += 1;
            };
            assert!(together <= most, "{mbit} at {now:?}: {together}, {most}");
            timers += 1;
            // One is late by 2 ms: less than what leaves at once.
            now = until + Duration::from_millis(if timers == 20 { 2 } else { 0 });
        }
    }
}

#[test]
fn what_is_too_much_to_spread_leaves_at_once() {
    let left = departures_with_one_late_timer(Duration::from_millis(8));
    // 16 segments and the one that is due, of which 10 are 5 ms.
    let at_once = left.iter().filter(|at| **at == 18_000).count();
    assert_eq!(at_once, 7, "{left:?}");
}

#[test]
fn where_most_timers_are_late_what_they_held_back_leaves_at_once() {
    let mut pacer = Pacer::new(FINE);
    pacer.set_rate(mbps(16));
    let (mut now, mut sent) = (Instant::from_millis(1), 0);
    for timer in 0..20 {
        sent = 0;
        let until = loop {
            if let Some(until) = pacer.wait(now) {
                break until;
            }
            pacer.on_send(now, 1000, 1000);
            sent += 1;
        };
        assert!(timer > 6 || sent <= 2, "{timer}: {sent}");
        now = until + Duration::from_millis(1);
        if timer % 4 == 0 {
            // The window is full for a while: the pacer still knows that timers are late.
            pacer.pause();
        }
    }
    assert_eq!(sent, 3, "1.5 ms are three segments");
}

#[test]
fn a_time_that_a_segment_waits_for_does_not_come_sooner() {
    let mut pacer = Pacer::new(FINE);
    // A segment takes 16 ms.
    pacer.set_rate(Some(Rate::from_bits_per_sec(500_000)));
    let first = Instant::from_millis(100);
    pacer.on_send(first, 1000, 1000);
    assert_eq!(pacer.wait(first), Some(Instant::from_millis(108)));
    let late = Instant::from_millis(115);
    assert_eq!(pacer.wait(late), None);
    pacer.on_send(late, 1000, 1000);
    let until = pacer.wait(late).expect("the next one waits");
    let before = until - Nanos(1_000);
    assert_eq!(pacer.wait(before), Some(until));
    assert_eq!(pacer.wait(until), None);
}

#[test]
fn time_without_a_rate_is_not_a_late_timer() {
    let mut pacer = Pacer::new(FINE);
    pacer.set_rate(mbps(16));
    pacer.on_send(Instant::from_millis(1), 1000, 1000);
    assert!(pacer.wait(Instant::from_millis(1)).is_some());
    pacer.set_rate(None);
    for millis in 2..100 {
        pacer.on_send(Instant::from_millis(millis), 1000, 1000);
    }
    pacer.set_rate(mbps(16));
    let now = Instant::from_millis(200);
    let mut sent = 0;
    while pacer.wait(now).is_none() {
        pacer.on_send(now, 1000, 1000);
        sent += 1;
    }
    assert!(sent <= 2, "{sent}");
}

#[test]
fn exact_carriers_follow_the_time_of_those_before_alone() {
    let mut pacer = Pacer::new(Carrier::default());
    let (mut now, mut next) = (Instant::from_millis(5), Instant::ZERO);
    for n in 0..500_u64 {
        let mbit = [8, 24, 1][n as usize / 50 % 3];
        let rate = Rate::from_bits_per_sec(mbit * 1_000_000);
        pacer.set_rate(Some(rate));
        let is_due = pacer.wait(now).is_none();
        assert_eq!(is_due, next <= now);
        // Each seventh leaves before its time.
        if is_due || n % 7 == 0 {
            let len = 1 + n * 37 % 1000;
            assert!(!pacer.on_send(now, len, 1000));
            next = if is_due { next.max(now) } else { next };
            next += rate.nanos_for(len);
        }
        if n % 11 == 0 {
            pacer.pause();
        }
        assert_eq!(pacer.blocked_until(now), (next > now).then_some(next));
        now += Duration::from_micros(n * 131 % 900);
    }
}

#[test]
fn what_an_idle_sender_did_not_use_is_gone() {
    let mut pacer = Pacer::new(FINE);
    pacer.set_rate(mbps(80));
    assert!(!pacer.on_send(Instant::from_millis(1), 1000, 1000));
    let later = Instant::from_millis(101);
    let mut sent = 0;
    while pacer.wait(later).is_none() {
        assert!(!pacer.on_send(later, 1000, 1000));
        sent += 1000;
    }
    // Two quanta of 250 us: the one made up for, and the one that leaves.
    assert!(sent <= 6_000, "{sent}");
}

#[test]
fn coarse_carriers_send_quanta_at_the_same_average() {
    let carrier = Carrier {
        timer_granularity: Duration::from_millis(1),
        max_batch: 64,
        overhead: 28,
    };
    let mut pacer = Pacer::new(carrier);
    pacer.set_rate(mbps(80));
    let sent = sent_in_100_ms(&mut pacer, Duration::from_micros(300));
    // 100 ms at 10,000 bytes a millisecond, at most two quanta ahead.
    assert!((980_000..=1_020_000).contains(&sent), "{sent}");
}
