//! Plays a script against the kernel and against us.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tack::AccurateEcn;

use super::player::Player;
use super::subject::{Opening, Settings, Who};
use crate::world::{isolated, sysctl};

/// Plays `script` against both.
pub(super) fn play(opening: Opening, script: &'static str) {
    for who in [Who::Kernel, Who::Ours] {
        isolated(move || async move {
            Player::new(who, opening).run(script).await;
        });
    }
}

pub(super) fn passive(script: &'static str) {
    play(Opening::Passive, script);
}

/// As [`play`], where no retransmission timeout comes in time: what is lost has to be found
/// otherwise.
pub(super) fn without_timeouts(script: &'static str) {
    for who in [Who::Kernel, Who::Ours] {
        isolated(move || async move {
            let setting = format!("/proc/sys/net/{}", super::MIN_RTO);
            if who == Who::Kernel && !std::path::Path::new(&setting).exists() {
                tack_skip::skipped("for the kernel, which has no setting tcp_rto_min_us");
                return;
            }
            let settings = Settings {
                no_timeouts: true,
                ..Settings::default()
            };
            Player::with(who, Opening::Passive, settings)
                .run(script)
                .await;
        });
    }
}

/// Plays each script against ours, and against a kernel that knows accurate ECN feedback. One that
/// does not refuses the setting.
pub(super) fn play_accurate(opening: Opening, scripts: &[String]) {
    let is_known = Arc::new(AtomicBool::new(false));
    let known = Arc::clone(&is_known);
    isolated(move || async move {
        match std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "3") {
            Ok(()) => known.store(true, Ordering::Relaxed),
            Err(error) => tack_skip::skipped(format_args!(
                "for the kernel, which has no accurate ECN feedback: {error}"
            )),
        }
    });
    let whose: &[Who] = match is_known.load(Ordering::Relaxed) {
        true => &[Who::Kernel, Who::Ours],
        false => &[Who::Ours],
    };
    play_ecn(opening, AccurateEcn::Offer, scripts, whose);
}

/// Plays each script against the kernel and against ours, neither of which knows accurate ECN
/// feedback.
pub(super) fn play_classic(opening: Opening, scripts: &[String]) {
    let whose = [Who::Kernel, Who::Ours];
    play_ecn(opening, AccurateEcn::Off, scripts, &whose);
}

/// As [`play_classic`], where the kernel is known to do otherwise.
pub(super) fn play_classic_against_ours(opening: Opening, scripts: &[String]) {
    play_ecn(opening, AccurateEcn::Off, scripts, &[Who::Ours]);
}

fn play_ecn(opening: Opening, accurate: AccurateEcn, scripts: &[String], whose: &[Who]) {
    let settings = Settings {
        accurate_ecn: Some(accurate),
        ..Settings::default()
    };
    for script in scripts {
        for who in whose.iter().copied() {
            let script = script.clone();
            isolated(move || async move {
                if who == Who::Kernel && accurate == AccurateEcn::Offer {
                    // The option with counters of bytes, which ours has not.
                    sysctl("ipv4/tcp_ecn_option", "0");
                }
                Player::with(who, opening, settings).run(&script).await;
            });
        }
    }
}
