use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

const DELAY: Nanos = Nanos(20_000_000);

/// A sender with numbers 0 to 99 acknowledged and 100 to 199 under way since second 1.
fn sender() -> Progress {
    let mut progress = Progress::new(Timer {
        initial: Duration::from_secs(1),
        least: Duration::from_millis(200),
        echoes: Echoes::None,
    });
    progress.on_sent(at(0), SeqNum(0), 100, true);
    progress.on_delivered(DELAY);
    progress.on_acknowledged(at(40), SeqNum(100), DELAY);
    progress.on_sent(at(1_000), SeqNum(100), 100, true);
    progress
}

#[test]
fn a_hole_that_nobody_fills_is_a_stall() {
    let mut progress = sender();
    progress.on_sent(at(1_001), SeqNum(200), 100, true);
    assert_eq!(progress.check(at(3_900)), None);
    // Others go on to be sent: the hole is not.
    progress.on_sent(at(3_950), SeqNum(300), 100, true);
    assert!(progress.check(at(4_100)).is_some());
    assert_eq!(progress.check(at(5_000)), None, "told once");
    assert_eq!(progress.stalls(), 1);
    progress.on_acknowledged(at(6_000), SeqNum(400), DELAY);
    assert_eq!(progress.check(at(90_000)), None, "nothing is outstanding");
    assert_eq!(progress.longest(), Duration::from_secs(4));
}

#[test]
fn timeouts_that_back_off_on_a_dead_path_are_none() {
    let mut progress = sender();
    let mut now = 1_000;
    for doubling in 0..8 {
        now += 200 << doubling;
        assert_eq!(progress.check(at(now)), None, "at {now} ms");
        progress.on_sent(at(now), SeqNum(100), 100, true);
    }
}

#[test]
fn retransmissions_in_vain_are_a_stall_where_the_path_delivers() {
    for delivers in [false, true] {
        let mut progress = sender();
        let mut found = None;
        for tenth in 11..100 {
            progress.on_sent(at(100 * tenth), SeqNum(100), 100, true);
            if delivers {
                progress.on_delivered(DELAY);
                progress.on_acknowledged(at(100 * tenth), SeqNum(100), DELAY);
            }
            found = found.or(progress.check(at(100 * tenth)));
        }
        assert_eq!(found.is_some(), delivers, "{found:?}");
    }
}

/// Answers to what had left before arrive, and then the path swallows each retransmission of
/// the timer: paths 62572 and 62716 of the random search. When it delivers again the timer has
/// backed off, and the other side, whose timer runs out first, is heard before.
#[test]
fn a_path_that_goes_dark_after_the_last_answers_is_no_stall() {
    for goes_dark in [true, false] {
        let mut progress = sender();
        for milli in 1..=20 {
            progress.on_delivered(DELAY);
            progress.on_acknowledged(at(1_020 + milli), SeqNum(100), DELAY);
        }
        let (mut now, mut found) = (1_000, None);
        for doubling in 0..6 {
            now += 200 << doubling;
            found = found.or(progress.check(at(now)));
            progress.on_sent(at(now), SeqNum(100), 100, true);
            if !goes_dark {
                progress.on_delivered(DELAY);
                progress.on_acknowledged(at(now + 40), SeqNum(100), DELAY);
            }
        }
        for milli in 0..20 {
            progress.on_acknowledged(at(now + 100 + milli), SeqNum(100), DELAY);
            found = found.or(progress.check(at(now + 100 + milli)));
        }
        progress.on_delivered(DELAY);
        found = found.or(progress.check(at(now + 200)));
        assert_eq!(found.is_none(), goes_dark, "{found:?}");
    }
}

#[test]
fn a_receiver_that_does_not_read_excuses_the_sender() {
    let mut progress = sender();
    for second in 2..60 {
        progress.excuse(at(1_000 * second));
        assert_eq!(progress.check(at(1_000 * second + 999)), None);
    }
}

/// The window is closed, each probe leaves after twice the time, and the peer takes its octet.
/// Data that waits as long is a stall.
#[test]
fn window_probes_leave_after_twice_the_time_though_their_octets_are_taken() {
    for (len, is_stall) in [(1, false), (2, true)] {
        let mut progress = sender();
        progress.on_acknowledged(at(100), SeqNum(200), DELAY);
        let (mut now, mut next) = (200, 200);
        for wait in [225, 450, 900, 1_800, 3_600] {
            progress.on_sent(at(now), SeqNum(next), len, true);
            progress.on_delivered(DELAY);
            if wait < 3_600 {
                next += len;
                progress.on_acknowledged(at(now + 100), SeqNum(next), DELAY);
            }
            now += wait;
        }
        assert_eq!(progress.check(at(now)).is_some(), is_stall, "{len}");
    }
}

#[test]
fn a_timer_that_stays_backed_off_after_progress_is_excused() {
    let mut progress = sender();
    for second in [2, 4, 8, 16, 32] {
        progress.on_sent(at(1_000 * second), SeqNum(100), 50, true);
    }
    progress.on_acknowledged(at(32_040), SeqNum(150), DELAY);
    // The timeout in force is 6.4 s.
    progress.on_sent(at(32_050), SeqNum(200), 100, true);
    progress.on_acknowledged(at(32_100), SeqNum(200), DELAY);
    assert_eq!(progress.check(at(38_500)), None);
    // Number 200 was sent after all that, once: a round trip of 6.5 s is measured.
    progress.on_acknowledged(at(38_600), SeqNum(201), DELAY);
    assert_eq!(progress.check(at(64_500)), None);
    assert!(progress.check(at(64_700)).is_some());
}

/// The answer to the second SYN comes with its own retransmission, a second later, and echoes
/// that SYN: a round trip of a second is measured, and timers follow it for some time.
#[test]
fn an_echo_of_the_syn_counts_where_no_other_does() {
    for (echoes, is_stall) in [(Echoes::None, true), (Echoes::Syn, false)] {
        let mut progress = Progress::new(Timer {
            initial: Duration::from_secs(1),
            least: Duration::from_millis(200),
            echoes,
        });
        progress.on_sent(at(0), SeqNum(0), 1, true);
        progress.on_sent(at(1_000), SeqNum(0), 1, true);
        progress.on_delivered(DELAY);
        progress.on_acknowledged(at(2_000), SeqNum(1), DELAY);
        progress.on_sent(at(2_001), SeqNum(1), 100, true);
        progress.on_acknowledged(at(2_041), SeqNum(101), DELAY);
        progress.on_sent(at(2_050), SeqNum(101), 100, true);
        assert_eq!(progress.check(at(5_100)).is_some(), is_stall);
        // A long wait that was measured once excuses later ones for a while only.
        for _ in 0..20 {
            let (una, _) = progress.numbers.unwrap();
            progress.on_acknowledged(at(5_100), una + 1, DELAY);
        }
        assert!(progress.check(at(8_200)).is_some());
    }
}

#[test]
fn three_seconds_after_a_lost_syn_are_excused() {
    let mut progress = Progress::new(Timer {
        initial: Duration::from_secs(1),
        least: Duration::from_millis(200),
        echoes: Echoes::None,
    });
    progress.on_sent(at(0), SeqNum(0), 1, true);
    progress.on_sent(at(1_000), SeqNum(0), 1, true);
    progress.on_delivered(DELAY);
    progress.on_acknowledged(at(1_040), SeqNum(1), DELAY);
    progress.on_sent(at(1_040), SeqNum(1), 100, true);
    for second in [4, 10, 22] {
        assert_eq!(progress.check(at(1_000 * second)), None);
        progress.on_sent(at(1_000 * second + 40), SeqNum(1), 100, true);
    }
}

/// The path would carry a smaller segment: a sender that never tries one stalls, although
/// nothing arrives at all. Where it does try, whatever else gets lost is bad luck.
#[test]
fn retransmissions_that_no_time_lets_through_are_a_stall() {
    for (fits, is_stall) in [(false, true), (true, false)] {
        let mut progress = sender();
        let (mut now, mut found) = (1_000, None);
        for doubling in 0..8 {
            now += 200 << doubling;
            found = found.or(progress.check(at(now)));
            progress.on_sent(at(now), SeqNum(100), 100, fits);
        }
        assert_eq!(found.is_some(), is_stall, "{found:?}");
    }
    // Two sizes that are too large, and then one that fits: found in time.
    let mut progress = sender();
    let mut now = 1_000;
    for doubling in 0..4 {
        now += 200 << doubling;
        assert_eq!(progress.check(at(now)), None);
        progress.on_sent(at(now), SeqNum(100), 100, doubling >= 3);
    }
    progress.on_delivered(DELAY);
    progress.on_acknowledged(at(now + 40), SeqNum(200), DELAY);
    assert_eq!(progress.stalls(), 0);
}

#[test]
fn a_peer_that_answers_nothing_of_what_arrives_is_a_stall() {
    for answers in [false, true] {
        let mut progress = sender();
        let (mut now, mut found) = (1_000, None);
        for doubling in 0..8 {
            progress.on_delivered(DELAY);
            if answers {
                // Every answer gets lost.
                progress.on_answered();
            }
            now += 200 << doubling;
            found = found.or(progress.check(at(now)));
            progress.on_sent(at(now), SeqNum(100), 100, true);
        }
        assert_eq!(found.is_none(), answers, "{found:?}");
    }
}

/// Path 81014 of the random search: the handshake's last segment gets lost, and the round trip
/// that is measured by its retransmission is 620 ms. The first timeout after it is three times
/// that (RFC 6298 §2.2), and a probe puts it off.
#[test]
fn the_first_round_trip_counts_three_times() {
    let mut progress = Progress::new(Timer {
        initial: Duration::from_secs(1),
        least: Duration::from_millis(200),
        echoes: Echoes::All,
    });
    progress.on_sent(at(0), SeqNum(0), 1, true);
    progress.on_delivered(DELAY);
    progress.on_acknowledged(at(620), SeqNum(1), DELAY);
    progress.on_sent(at(621), SeqNum(1), 100, true);
    assert_eq!(progress.check(at(3_790)), None);
    assert!(progress.check(at(8_100)).is_some());
}

/// An upload over 802.11b: the first acknowledgement gets lost, and the second one makes the first
/// round trip of a sender without timestamps 1.3 s long, so its first timeout may be 3.9 s. What
/// was sent twice measures nothing.
#[test]
fn a_round_trip_without_timestamps_may_wait_for_a_later_acknowledgement() {
    for sent_again in [false, true] {
        let mut progress = Progress::new(Timer {
            initial: Duration::from_secs(1),
            least: Duration::from_millis(200),
            echoes: Echoes::None,
        });
        // A handshake that measures nothing.
        for time in [0, 1] {
            progress.on_sent(at(time), SeqNum(0), 1, true);
        }
        progress.on_acknowledged(at(2), SeqNum(1), DELAY);
        progress.on_sent(at(3), SeqNum(1), 100, true);
        if sent_again {
            progress.on_sent(at(1_003), SeqNum(1), 100, true);
        }
        progress.on_delivered(DELAY);
        progress.on_sent(at(1_003), SeqNum(101), 100, true);
        progress.on_acknowledged(at(1_323), SeqNum(201), DELAY);
        progress.on_sent(at(2_000), SeqNum(201), 100, true);
        let found = progress.check(at(8_600));
        assert_eq!(found.is_some(), sent_again, "{found:?}");
    }
}

#[test]
fn what_was_sent_again_measures_nothing_even_where_a_part_of_it_is_acknowledged() {
    // All at once, or the part that was sent twice and much later what left before that.
    for acks in [&[(4_000, 300)][..], &[(1_600, 200), (5_000, 300)]] {
        let mut progress = sender();
        progress.on_sent(at(1_000), SeqNum(200), 100, true);
        progress.on_sent(at(1_500), SeqNum(100), 100, true);
        let before = progress.measured;
        for (time, ack) in acks {
            progress.on_acknowledged(at(*time), SeqNum(*ack), DELAY);
        }
        assert!(
            progress.measured < before,
            "{acks:?}: {:?}",
            progress.measured
        );
    }
    // What leaves afterwards measures again.
    let mut progress = sender();
    progress.on_sent(at(1_500), SeqNum(100), 100, true);
    progress.on_acknowledged(at(4_000), SeqNum(200), DELAY);
    progress.on_sent(at(5_000), SeqNum(200), 100, true);
    progress.on_acknowledged(at(6_000), SeqNum(300), DELAY);
    assert_eq!(progress.measured, Nanos::from(Duration::from_secs(1)));
}
