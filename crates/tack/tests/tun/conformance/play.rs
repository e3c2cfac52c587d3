//! Plays a script against the kernel and against us.

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

/// Plays `script` against ours, and against a kernel that knows accurate ECN feedback. One that
/// does not refuses the setting.
pub(super) fn play_accurate(opening: Opening, script: &'static str) {
    for who in [Who::Kernel, Who::Ours] {
        isolated(move || async move {
            if who == Who::Kernel {
                if let Err(error) = std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "3") {
                    tack_skip::skipped(format_args!(
                        "for the kernel, which has no accurate ECN feedback: {error}"
                    ));
                    return;
                }
                // The option with counters of bytes, which ours has not.
                sysctl("ipv4/tcp_ecn_option", "0");
            }
            let settings = Settings {
                accurate_ecn: true,
                ..Settings::default()
            };
            Player::with(who, opening, settings).run(script).await;
        });
    }
}
