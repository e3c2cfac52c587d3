use std::vec::Vec;

use super::super::{BusyEnd, CwAdaptation};
use super::*;
use proptest::prelude::*;

const SLOT: Duration = Duration::from_micros(9);
const SIFS: Duration = Duration::from_micros(16);
const EIFS_EXTRA: Duration = Duration::from_micros(60);

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

const NANOSECOND: Duration = Duration::from_nanos(1);

fn functions(rules: Rules) -> Vec<Contention> {
    let function = |aifsn| Contention {
        aifsn,
        cw_min: 15,
        cw_max: 1_023,
        rules,
        adaptation: CwAdaptation::Standard,
    };
    match rules {
        Rules::Dcf => Vec::from([function(2)]),
        Rules::Edca => [7, 3, 2, 2].map(function).to_vec(),
    }
}

/// Radios with these backoffs, which all want to send, busy from `now` on.
fn radios(rules: Rules, backoffs: &[u32], now: Instant) -> Vec<ChannelAccess> {
    let functions = functions(rules);
    let radio = |(index, slots): (usize, &u32)| {
        let mut access = ChannelAccess::new(SLOT, SIFS, EIFS_EXTRA, &functions);
        access.on_busy(now);
        access.request(index % functions.len(), now, |_| *slots);
        access
    };
    backoffs.iter().enumerate().map(radio).collect()
}

fn shared(rules: Rules, radios: usize) -> SharedAccess {
    SharedAccess::new(SLOT, SIFS, EIFS_EXTRA, &functions(rules), radios)
}

#[test]
fn a_reservation_that_others_do_not_know_of_keeps_a_radio_out() {
    let mut own = radios(Rules::Dcf, &[3, 4, 5], at(50));
    let mut crowd = shared(Rules::Dcf, 3);
    assert!(crowd.join(0, &own[0], at(50)));
    own[1].set_nav(at(51));
    assert!(!crowd.join(1, &own[1], at(50)));
    assert!(crowd.join(1, &own[1], at(51)), "it has passed");
    // What is idle senses something else.
    own[2].on_idle(at(60), BusyEnd::Frame);
    assert!(!crowd.join(2, &own[2], at(60)));
    assert_eq!(crowd.members(), 2);
}

#[test]
fn a_countdown_that_begins_later_keeps_a_radio_out() {
    let mut crowd = shared(Rules::Dcf, 2);
    let mut access = ChannelAccess::new(SLOT, SIFS, EIFS_EXTRA, &functions(Rules::Dcf));
    access.on_busy(at(0));
    access.on_idle(at(100), BusyEnd::Error);
    // Queued in EIFS: it may go at 100 + 16 + 60 + 18 us. A short frame that it can read ends EIFS.
    access.request(0, at(110), |_| panic!("the medium is idle"));
    assert_eq!(access.grant(), Some(at(194)));
    access.on_busy(at(120));
    assert!(!crowd.join(0, &access, at(120)));
    assert!(crowd.join(0, &access, at(160)));
}

proptest! {
    /// Radios that are counted together may transmit when each would by itself, whatever the medium
    /// does, and leave in the state that they would have by themselves.
    #[test]
    fn counting_together_comes_to_the_same(
        rules in prop_oneof![Just(Rules::Dcf), Just(Rules::Edca)],
        backoffs in proptest::collection::vec(0..40_u32, 1..12),
        periods in proptest::collection::vec((1..400_u64, 0..3_u8, 0..300_u64, 0..600_u64, any::<prop::sample::Index>()), 1..40),
    ) {
        let mut now = at(7);
        let mut own = radios(rules, &backoffs, now);
        let mut crowd = shared(rules, own.len());
        // Copies that hear nothing while they are counted together.
        let mut copies = own.clone();
        let mut is_in: Vec<bool> = Vec::new();
        for (who, copy) in copies.iter().enumerate() {
            is_in.push(crowd.join(who as u16, copy, now));
        }
        prop_assert!(is_in.iter().all(|is_in| *is_in), "they are alike");
        for (busy, end, reserved, idle, leaver) in periods {
            now += Duration::from_micros(busy);
            let end = [BusyEnd::Frame, BusyEnd::Error, BusyEnd::Energy][usize::from(end)];
            if end == BusyEnd::Frame {
                crowd.carrier().set_nav(now + Duration::from_micros(reserved));
                own.iter_mut().for_each(|access| access.set_nav(now + Duration::from_micros(reserved)));
            }
            crowd.carrier().on_idle(now, end);
            own.iter_mut().for_each(|access| access.on_idle(now, end));
            let first = own.iter().zip(&is_in).filter(|(_, is_in)| **is_in);
            let first = first.filter_map(|(access, _)| access.grant()).min();
            prop_assert_eq!(crowd.grant(), first);
            // Some time passes, but not so much that somebody would have sent.
            now = (now + Duration::from_micros(idle)).min(first.map_or(Instant::FAR_FUTURE, |first| first - NANOSECOND));
            let leaver = leaver.index(own.len());
            if is_in[leaver] {
                is_in[leaver] = false;
                crowd.leave(leaver as u16, &mut copies[leaver]);
                prop_assert_eq!(copies[leaver].grant(), own[leaver].grant());
            }
            if let Some(first) = first && first == now + NANOSECOND {
                // Those that may transmit, all of them.
                now = first;
                let mut granted = Vec::new();
                while let Some(who) = crowd.granted(now) {
                    let who = usize::from(who);
                    is_in[who] = false;
                    crowd.leave(who as u16, &mut copies[who]);
                    prop_assert!(copies[who].take_grant(now, |_| 0).is_some());
                    granted.push(who);
                }
                for (who, access) in own.iter().enumerate() {
                    let may = is_in[who] || granted.contains(&who);
                    prop_assert!(!may || access.grant().is_none_or(|at| at > now) != granted.contains(&who));
                }
            }
            crowd.on_busy(now);
            own.iter_mut().for_each(|access| access.on_busy(now));
            for (who, copy) in copies.iter_mut().enumerate() {
                if is_in[who] {
                    continue;
                }
                // As it would be if it had never been in.
                copy.clone_from(&own[who]);
                is_in[who] = crowd.join(who as u16, copy, now);
            }
        }
    }
}
