//! A scripted medium: busy periods in, grant times out. Microseconds of 802.11a: slot 9, SIFS 16,
//! DIFS 34.

use super::*;

const DCF: Contention = Contention {
    aifsn: 2,
    cw_min: 15,
    cw_max: 1_023,
    rules: Rules::Dcf,
    adaptation: CwAdaptation::Standard,
};
const EDCA: Contention = Contention {
    aifsn: 3,
    cw_min: 15,
    cw_max: 1_023,
    rules: Rules::Edca,
    adaptation: CwAdaptation::Standard,
};

fn access(functions: &[Contention]) -> ChannelAccess {
    // ACK at 6 Mbit/s: 44 us.
    let [slot, sifs, eifs_extra] = [9, 16, 16 + 44].map(Duration::from_micros);
    ChannelAccess::new(slot, sifs, eifs_extra, functions)
}

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn busy(access: &mut ChannelAccess, from: u64, to: u64, end: BusyEnd) {
    access.on_busy(at(from));
    access.on_idle(at(to), end);
}

fn grant(access: &ChannelAccess) -> Option<u64> {
    access.grant().map(|grant| {
        assert_eq!(grant, at(grant.as_micros()));
        grant.as_micros()
    })
}

fn never(_: u32) -> u32 {
    panic!("no backoff is drawn here")
}

#[test]
fn after_a_long_idle_time_dcf_sends_at_once() {
    let mut access = access(&[DCF]);
    busy(&mut access, 10, 20, BusyEnd::Frame);
    access.request(0, at(100), never);
    assert_eq!(grant(&access), Some(100));
}

#[test]
fn what_is_left_of_difs_has_to_pass() {
    let mut access = access(&[DCF]);
    busy(&mut access, 10, 100, BusyEnd::Frame);
    access.request(0, at(120), never);
    assert_eq!(grant(&access), Some(100 + 34));
    // This radio's own response comes in between: DIFS after that.
    busy(&mut access, 116, 160, BusyEnd::Frame);
    assert_eq!(grant(&access), Some(160 + 34));
}

#[test]
fn a_request_while_busy_backs_off_after_the_busy_time() {
    let mut access = access(&[DCF]);
    access.on_busy(at(10));
    access.request(0, at(50), |_| 0);
    assert_eq!(grant(&access), None);
    access.on_idle(at(100), BusyEnd::Frame);
    assert_eq!(grant(&access), Some(134));
}

#[test]
fn edca_sends_at_slot_boundaries() {
    let mut access = access(&[EDCA]);
    busy(&mut access, 10, 100, BusyEnd::Frame);
    // AIFS ends at 143, boundaries at 152, 161, …
    access.request(0, at(144), never);
    assert_eq!(grant(&access), Some(152));
    let mut early = self::access(&[EDCA]);
    busy(&mut early, 10, 100, BusyEnd::Frame);
    early.request(0, at(100), never);
    assert_eq!(grant(&early), Some(143));
}

/// Slots are counted at their end: what is left after an interruption is at least one, and counts
/// from the next DIFS.
#[test]
fn a_frozen_backoff_resumes_where_it_was() {
    let mut access = access(&[DCF]);
    access.on_busy(at(0));
    access.request(0, at(0), |_| 5);
    access.on_idle(at(100), BusyEnd::Frame);
    assert_eq!(grant(&access), Some(134 + 45));
    // Two whole slots and a bit pass; then somebody sends for 50 us.
    busy(&mut access, 134 + 20, 204, BusyEnd::Frame);
    assert_eq!(grant(&access), Some(204 + 34 + 27));
    // An interruption before DIFS counts nothing.
    busy(&mut access, 204 + 33, 300, BusyEnd::Frame);
    assert_eq!(grant(&access), Some(300 + 34 + 27));
    // Another station sends in the very slot in which this one ends: both do.
    access.on_busy(at(300 + 34 + 27));
    access.on_idle(at(500), BusyEnd::Frame);
    assert_eq!(grant(&access), Some(534));
}

/// §10.23.2.4: a boundary counts whether or not somebody sends from it on. Two countdowns that
/// began apart may thus end at the same AIFS, where DCF leaves the interrupted one a slot.
#[test]
fn edca_counts_the_boundary_at_which_it_is_interrupted() {
    let mut access = access(&[EDCA]);
    access.on_busy(at(0));
    access.request(0, at(0), |_| 5);
    access.on_idle(at(100), BusyEnd::Frame);
    // Undisturbed, the end is that of DCF: AIFS and five slots.
    assert_eq!(grant(&access), Some(143 + 45));
    // Nothing counts before AIFS has passed.
    busy(&mut access, 142, 200, BusyEnd::Frame);
    assert_eq!(grant(&access), Some(243 + 45));
    // Somebody sends at the very end of AIFS: that boundary counts.
    busy(&mut access, 243, 300, BusyEnd::Frame);
    assert_eq!(grant(&access), Some(343 + 36));
    // At the second boundary after it, and in between: three of them.
    busy(&mut access, 343 + 18, 400, BusyEnd::Frame);
    assert_eq!(grant(&access), Some(443 + 9));
    let mut between = access.clone();
    busy(&mut between, 443 + 5, 500, BusyEnd::Frame);
    assert_eq!(grant(&between), Some(543));
    // The last one is counted: what is left is AIFS.
    busy(&mut access, 443, 500, BusyEnd::Frame);
    assert_eq!(grant(&access), Some(543));
    // A boundary is counted once, however often it is looked at.
    let mut twice = self::access(&[EDCA]);
    twice.on_busy(at(0));
    twice.request(0, at(0), |_| 5);
    twice.on_idle(at(100), BusyEnd::Frame);
    twice.request(0, at(143), never);
    twice.request(0, at(144), never);
    busy(&mut twice, 145, 200, BusyEnd::Frame);
    assert_eq!(grant(&twice), Some(243 + 36));
}

#[test]
fn an_internal_collision_counts_from_the_next_boundary() {
    let voice = Contention { aifsn: 3, ..EDCA };
    let mut access = access(&[EDCA, voice]);
    access.on_busy(at(0));
    access.request(0, at(0), |_| 0);
    access.request(1, at(0), |_| 0);
    access.on_idle(at(100), BusyEnd::Frame);
    assert_eq!(access.take_grant(at(143), |_| 4), Some(1));
    busy(&mut access, 143, 200, BusyEnd::Frame);
    access.set_wants(1, false);
    assert_eq!(grant(&access), Some(243 + 36));
}

#[test]
fn post_backoff_runs_with_nothing_to_send() {
    let mut access = access(&[DCF]);
    access.on_busy(at(0));
    access.on_idle(at(100), BusyEnd::Frame);
    access.release(0, at(100), Attempt::Succeeded, |_| 4);
    access.set_wants(0, false);
    assert_eq!(grant(&access), None);
    // In the middle of the countdown (134 to 170): the rest of it.
    let mut middle = access.clone();
    middle.request(0, at(150), never);
    assert_eq!(grant(&middle), Some(170));
    // After its end: at once.
    access.request(0, at(171), never);
    assert_eq!(grant(&access), Some(171));
}

#[test]
fn eifs_follows_a_wrong_frame_only() {
    let mut access = access(&[DCF]);
    access.on_busy(at(0));
    access.request(0, at(0), |_| 0);
    access.on_idle(at(100), BusyEnd::Error);
    assert_eq!(grant(&access), Some(100 + 94));
    // Energy within EIFS neither ends it nor begins another.
    let mut energy = access.clone();
    busy(&mut energy, 110, 120, BusyEnd::Energy);
    assert_eq!(grant(&energy), Some(100 + 94));
    busy(&mut energy, 180, 190, BusyEnd::Energy);
    assert_eq!(grant(&energy), Some(190 + 34));
    // A correct frame within EIFS ends it.
    busy(&mut access, 110, 120, BusyEnd::Frame);
    assert_eq!(grant(&access), Some(120 + 34));
}

#[test]
fn nav_holds_access_back_and_can_be_reset() {
    let mut access = access(&[DCF]);
    access.on_busy(at(0));
    access.request(0, at(0), |_| 2);
    access.on_idle(at(100), BusyEnd::Frame);
    access.set_nav(at(300));
    access.set_nav(at(200));
    assert_eq!(grant(&access), Some(300 + 34 + 18));
    // Busy within NAV counts no slot.
    busy(&mut access, 250, 260, BusyEnd::Frame);
    assert_eq!(grant(&access), Some(300 + 34 + 18));
    access.reset_nav(at(270));
    assert_eq!(grant(&access), Some(270 + 34 + 18));
    // A frame queued under NAV has found a busy medium.
    let mut reserved = self::access(&[EDCA]);
    reserved.set_nav(at(300));
    reserved.request(0, at(100), |_| 1);
    assert_eq!(grant(&reserved), Some(300 + 43 + 9));
}

#[test]
fn a_missing_response_delays_until_its_timeout() {
    let mut access = access(&[DCF]);
    access.on_busy(at(0));
    access.on_idle(at(100), BusyEnd::Frame);
    access.await_response(at(145));
    access.request(0, at(100), |_| 1);
    access.release(0, at(145), Attempt::Failed, |cw| {
        assert_eq!(cw, 31);
        0
    });
    assert_eq!(grant(&access), Some(145 + 34));
    // The response came: its end counts.
    let mut answered = self::access(&[DCF]);
    answered.await_response(at(145));
    busy(&mut answered, 116, 144, BusyEnd::Frame);
    answered.end_wait(at(144));
    answered.release(0, at(144), Attempt::Succeeded, |_| 0);
    answered.request(0, at(144), |_| 0);
    assert_eq!(grant(&answered), Some(144 + 34));
}

#[test]
fn the_window_doubles_to_its_maximum_and_starts_over() {
    let mut access = access(&[Contention { cw_max: 63, ..DCF }]);
    let mut seen = alloc::vec::Vec::new();
    for attempt in [
        Attempt::Failed,
        Attempt::Failed,
        Attempt::Failed,
        Attempt::GivenUp,
        Attempt::Failed,
        Attempt::Succeeded,
    ] {
        access.release(0, at(0), attempt, |cw| {
            seen.push(cw);
            0
        });
    }
    assert_eq!(seen, [31, 63, 63, 15, 31, 15]);
}

#[test]
fn higher_priority_wins_inside_a_station() {
    let voice = Contention {
        aifsn: 2,
        cw_min: 3,
        cw_max: 7,
        rules: Rules::Edca,
        adaptation: CwAdaptation::Standard,
    };
    let mut access = access(&[EDCA, voice]);
    access.on_busy(at(0));
    access.request(0, at(0), |_| 1);
    access.request(1, at(0), |_| 2);
    access.on_idle(at(100), BusyEnd::Frame);
    // 16 + 3 * 9 + 9 and 16 + 2 * 9 + 18: the same instant.
    assert_eq!(grant(&access), Some(152));
    let mut drawn = alloc::vec::Vec::new();
    let winner = access.take_grant(at(152), |cw| {
        drawn.push(cw);
        7
    });
    assert_eq!(winner, Some(1));
    assert_eq!(drawn, [31]);
    assert_eq!(access.cw(1), 3);
}

#[test]
fn mimd_halves_after_success_and_doubles_after_every_failure() {
    let mimd = Contention {
        cw_max: 127,
        adaptation: CwAdaptation::Mimd,
        ..DCF
    };
    let mut access = access(&[mimd]);
    let mut after = |attempt| {
        access.release(0, at(0), attempt, |cw| cw);
        access.cw(0)
    };
    assert_eq!(after(Attempt::Succeeded), 15, "no lower than the smallest");
    let failures = [Attempt::Failed; 4].map(&mut after);
    assert_eq!(failures, [31, 63, 127, 127]);
    assert_eq!(after(Attempt::Succeeded), 63);
    assert_eq!(after(Attempt::GivenUp), 127, "the last attempt failed too");
    assert_eq!([Attempt::Succeeded; 4].map(&mut after), [63, 31, 15, 15]);
}
