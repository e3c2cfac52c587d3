//! Plays a script against the kernel and against us.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tack::AccurateEcn;

use super::player::Player;
use super::subject::{Family, Opening, Settings, Who};
use crate::world::{isolated, sysctl};

const WHOSE: [Who; 2] = [Who::Kernel, Who::Ours];
const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// Each family, with each TCP.
pub(super) fn everywhere() -> impl Iterator<Item = (Family, Who)> {
    let each = |family| WHOSE.map(|who| (family, who));
    FAMILIES.into_iter().flat_map(each)
}

/// Plays `script` against both, over IPv4 and over IPv6.
pub(super) fn play(opening: Opening, script: &str) {
    for family in FAMILIES {
        play_over(family, opening, script);
    }
}

/// Plays `script` against both over one family, whose segment sizes it names.
pub(super) fn play_over(family: Family, opening: Opening, script: &str) {
    let settings = Settings {
        family,
        ..Settings::default()
    };
    for who in WHOSE {
        play_against(who, opening, settings, script);
    }
}

/// The script for one family: as it is written, it has the segment size that Ethernet leaves over
/// IPv4.
pub(super) fn for_family(family: Family, script: &str) -> String {
    match family {
        Family::V4 => script.to_owned(),
        Family::V6 => script.replace("mss 1460", "mss 1440"),
    }
}

fn play_against(who: Who, opening: Opening, settings: Settings, script: &str) {
    let script = for_family(settings.family, script);
    isolated(move || async move {
        if who == Who::Kernel && settings.accurate_ecn == Some(AccurateEcn::Offer) {
            // The option with counters of bytes, which ours has not.
            sysctl("ipv4/tcp_ecn_option", "0");
        }
        let mut player = Player::new(who, opening, settings).await;
        player.run(&script).await;
    });
}

/// As [`play`], with all plays at the same time: for scripts that wait for seconds.
pub(super) fn at_once(opening: Opening, script: &str) {
    std::thread::scope(|scope| {
        for (family, who) in everywhere() {
            let settings = Settings {
                family,
                ..Settings::default()
            };
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            std::thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, move || play_against(who, opening, settings, script))
                .unwrap();
        }
    });
}

pub(super) fn passive(script: &str) {
    play(Opening::Passive, script);
}

/// As [`play`], where no retransmission timeout comes in time: what is lost has to be found
/// otherwise.
pub(super) fn without_timeouts(script: &str) {
    for (family, who) in everywhere() {
        let setting = format!("/proc/sys/net/{}", super::MIN_RTO);
        if who == Who::Kernel && !std::path::Path::new(&setting).exists() {
            tack_skip::skipped("for the kernel, which has no setting tcp_rto_min_us");
            continue;
        }
        let settings = Settings {
            no_timeouts: true,
            family,
            ..Settings::default()
        };
        play_against(who, Opening::Passive, settings, script);
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
    let each_family = |script| FAMILIES.map(|family| (script, family));
    for (script, family) in scripts.iter().flat_map(each_family) {
        let settings = Settings {
            accurate_ecn: Some(accurate),
            family,
            ..Settings::default()
        };
        for who in whose {
            play_against(*who, opening, settings, script);
        }
    }
}
