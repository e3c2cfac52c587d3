//! Why TACK may differ from the plain policy on a path.
//!
//! A reason is a claim about a cause. Each is tested on the path itself and with the same seeds:
//! the cause is taken away and the difference has to go with it, or what the difference brings is
//! measured. A flag whose reasons fail stands.

use crate::bursts::marked_bursts;
use crate::chance::is_chance;
use crate::ecn_reasons;
use crate::figures::Figures;
use crate::handshake::{late_start, sooner_than_the_neighbour, unmeasured_handshake};
use crate::helpful_faults::helpful_fault;
use crate::judge::{Flag, exceeds, exceeds_by_segment, gain, judge, shows};
use crate::measure::{Comparison, PLAIN, Variant};
use crate::middlebox::useless_options;
use crate::moments::moment_of_blackout;
use crate::neighbour::{even_share, rarer_than_the_neighbour};
use crate::neighbourhood::{coincidence, other_seeds};
use crate::packets::{room_for_options, segments_for_options, unfound_mtu};
use crate::paths::{Path, Work};
use crate::patience::longer_patience;
use crate::runs;
use crate::spared::spared;
use crate::timeouts::sooner_after_timeouts;
use crate::way_back::{
    SPARSE_PLAIN, bursts_of_acknowledgements, denser_neighbour, narrow_way_back, slower_pacing,
};

/// A send buffer that holds no sender back: more than any path of the search can have in flight.
const LARGE_SEND_BUFFER: &str = "send_buffer=64MiB";
/// Data goes from the client to the server alone.
const ONE_WAY: &str = "app=bulk";
/// What the scenario of a path says where its application pauses.
const PAUSE: &str = "pause=";
/// The same application, always busy.
const WITHOUT_PAUSE: &str = "app=bulk";
/// Beta of TACK as the paths run it.
const BETA: f64 = 4.0;
/// L of TACK: a report for so many segments where the rate is low.
const L: f64 = 2.0;
/// How the keys of a path begin that say how late the timers of the hosts are.
const LATE_TIMERS: &str = "late_timers";
/// How the keys of a path begin that say by how much packets are late.
const LATENESS: &str = "reorder_delay";
/// Frames a second of a video, as the paths have it.
const FRAMES: f64 = 30.0;

/// The reason of a flag, with its figures, if one holds: `tack` and `plain` are what the flag was
/// raised for.
pub(crate) fn reason(
    path: &Path,
    comparison: Comparison,
    flag: Flag,
    tack: &Figures,
    plain: &Figures,
) -> Option<String> {
    if comparison == Comparison::AccurateEcn {
        return ecn_reasons::of_feedback(path, flag, tack, plain);
    }
    if comparison == Comparison::Itself {
        return by_chance(path, comparison, flag, tack);
    }
    let found = match flag {
        Flag::Retx => window(path, flag)
            .or_else(|| unrepaired(path, tack, plain))
            .or_else(|| late_packets(path, tack, plain))
            .or_else(|| narrow_way_back(path, flag, tack, plain))
            .or_else(|| ecn_reasons::cleared_counter(path, flag))
            .or_else(|| unfound_mtu(path, flag, tack, plain))
            .or_else(|| room_for_options(path, flag, tack, plain))
            .or_else(|| useless_options(path, flag, tack, plain))
            .or_else(|| spared(path, tack, plain))
            .or_else(|| late_start(path, tack, plain))
            .or_else(|| rarer_than_the_neighbour(path, flag, tack, plain)),
        Flag::Acks => faster(path, tack, plain)
            .or_else(|| both_ways(path, tack))
            .or_else(|| waits(path, &[], tack, plain))
            .or_else(|| messages(path, tack))
            .or_else(|| window(path, flag))
            .or_else(|| segments_for_options(path, tack, plain))
            .or_else(|| undelivered(path, tack, plain)),
        Flag::Slow => even_share(path, tack, plain)
            .or_else(|| narrow_way_back(path, flag, tack, plain))
            .or_else(|| denser_neighbour(path, flag, plain))
            .or_else(|| rarer_than_the_neighbour(path, flag, tack, plain))
            .or_else(|| late_timers(path, tack))
            .or_else(|| marked_bursts(path, tack))
            .or_else(|| bursts_of_acknowledgements(path, flag, tack))
            .or_else(|| competition(path, tack))
            .or_else(|| shorter_segments(path, tack))
            .or_else(|| sooner_after_timeouts(path, tack, plain))
            .or_else(|| moment_of_blackout(path, tack))
            .or_else(|| unmeasured_handshake(path, tack))
            .or_else(|| sooner_than_the_neighbour(path))
            .or_else(|| behind_a_loss(path, tack, plain))
            .or_else(|| helpful_fault(path, tack, plain))
            .or_else(|| density(path, tack, plain))
            .or_else(|| slower_pacing(path))
            .or_else(|| unfound_mtu(path, flag, tack, plain))
            .or_else(|| room_for_options(path, flag, tack, plain)),
        // Beside a neighbour that is alike one may get next to nothing.
        Flag::Hang => denser_neighbour(path, flag, plain),
        Flag::Rto => progress(tack, plain)
            .or_else(|| bursts_of_acknowledgements(path, flag, tack))
            .or_else(|| denser_neighbour(path, flag, plain))
            .or_else(|| longer_patience(path, tack, plain))
            .or_else(|| unfound_mtu(path, flag, tack, plain))
            .or_else(|| room_for_options(path, flag, tack, plain)),
        _ => return None,
    };
    found.or_else(|| by_chance(path, comparison, flag, tack))
}

/// Chance in the choice of the path, or of its seeds.
fn by_chance(path: &Path, comparison: Comparison, flag: Flag, tack: &Figures) -> Option<String> {
    coincidence(path, comparison, flag, tack).or_else(|| other_seeds(path, comparison, flag, tack))
}

/// What a sender puts into a queue before it hears of losses is bounded by the receive window, and
/// that of the plain policy follows the round trip later, or without timestamps not at all. With
/// windows that are open from the start the difference must be gone, or be that of losses which the
/// plain policy has not repaired. The same holds for acknowledgements: what waits behind a loss at
/// the end was acknowledged, and is not delivered.
fn window(path: &Path, flag: Flag) -> Option<String> {
    let [tack, plain] = Variant::both().map(|mut variant| {
        variant.flow_keys.push("receive_window=fixed");
        runs::fresh(path, &variant)
    });
    let there = match shows(flag, path, &tack, &plain) {
        true if flag == Flag::Retx => format!(", where {}", unrepaired(path, &tack, &plain)?),
        true => return None,
        false => String::new(),
    };
    Some(format!(
        "the receive window of {PLAIN} held its sender back: {:.1} % again and {:.1} %, {:.0} and {:.0} ACKs per MB with windows open from the start{there}",
        100.0 * tack.repeated_share(),
        100.0 * plain.repeated_share(),
        1e6 * tack.acks_per_byte(),
        1e6 * plain.acks_per_byte(),
    ))
}

/// What overflowed a queue is not repaired by the plain policy when the run ends: it had no room to
/// say what is missing, and repeats a segment in each round trip. It must have lost as much, and
/// TACK must repeat no more than the path lost, and be as fast.
fn unrepaired(path: &Path, tack: &Figures, plain: &Figures) -> Option<String> {
    let repairs_losses_only = tack.repeated <= 1.05 * tack.path_losses;
    let is_unrepaired = plain.path_losses >= 0.9 * tack.path_losses
        && plain.repeated < 0.5 * plain.path_losses
        && gain(path, tack, plain) >= 0.95;
    (repairs_losses_only && is_unrepaired).then(|| {
        format!(
            "{PLAIN} has not repaired what it lost: the path lost {:.0} packets and it repeated {:.0} segments, TACK {:.0} of {:.0}",
            plain.path_losses, plain.repeated, tack.repeated, tack.path_losses,
        )
    })
}

/// Packets are late by more than RTTmin, which is as long as TACK waits for one where no queue
/// makes round trips longer (section 4 of the paper has a quarter of it). Where they are late by
/// half of it the difference must be gone, and here the repetitions must cost no speed.
fn late_packets(path: &Path, tack: &Figures, plain: &Figures) -> Option<String> {
    let micros = |text: &str| {
        text.trim()
            .trim_matches('"')
            .strip_suffix("us")?
            .parse()
            .ok()
    };
    let lateness = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let key = key.trim();
        let micros: f64 = micros(value)?;
        key.starts_with(LATENESS)
            .then(|| (key.to_owned(), micros / 1e6))
    };
    let keys: Vec<_> = path.toml.lines().filter_map(lateness).collect();
    let is_late = keys.iter().any(|(_, late)| *late > tack.min_rtt);
    if !is_late || gain(path, tack, plain) < 0.9 {
        return None;
    }
    let [sooner_tack, sooner_plain] = Variant::both().map(|mut variant| {
        let half = (0.5e6 * tack.min_rtt) as u64;
        let sooner = keys.iter().map(|(key, _)| format!("wired.{key}={half}us"));
        variant.path_keys.extend(sooner);
        runs::fresh(path, &variant)
    });
    let is_gone = !judge(path, &sooner_tack, &sooner_plain).contains(&Flag::Retx);
    is_gone.then(|| {
        format!(
            "packets are late by more than RTTmin, {:.1} ms: {:.1} % again and {:.1} % where they are late by half of it; here TACK is \
             {:.2} times as fast",
            1e3 * tack.min_rtt,
            100.0 * sooner_tack.repeated_share(),
            100.0 * sooner_plain.repeated_share(),
            gain(path, tack, plain),
        )
    })
}

/// Timers run out where something is sent: a sender that stands still for one long timeout has few.
/// TACK must deliver more, with no more timeouts for each byte.
fn progress(tack: &Figures, plain: &Figures) -> Option<String> {
    let has_fewer = tack.timeouts * plain.bytes <= plain.timeouts * tack.bytes;
    (tack.bytes > plain.bytes && has_fewer).then(|| {
        format!(
            "TACK delivers {:.2} times as much, with {:.1} timeouts per MB, {PLAIN} {:.1}",
            tack.bytes / plain.bytes,
            1e6 * tack.timeouts / tack.bytes,
            1e6 * plain.timeouts / plain.bytes,
        )
    })
}

/// A receive buffer holds a few segments of the plain policy and one less of TACK's, which carry 12
/// bytes of options: whether the announced window doubles, and is announced at once, turns on
/// them. With a buffer for hundreds the difference must be gone, and here the plain policy with
/// timestamps, whose segments are as short, must be no faster than TACK.
fn shorter_segments(path: &Path, tack: &Figures) -> Option<String> {
    let has = |text: &str| path.toml.contains(text);
    if !has("receive_buffer") || !has("timestamps = false") {
        return None;
    }
    let [large_tack, large_plain] = Variant::both().map(|mut variant| {
        variant.flow_keys.push("receive_buffer=1MiB");
        runs::fresh(path, &variant)
    });
    if shows(Flag::Slow, path, &large_tack, &large_plain) {
        return None;
    }
    let mut variant = Variant::new(PLAIN);
    variant.flow_keys.push("timestamps=true");
    let stamped = runs::fresh(path, &variant);
    let is_alike = !shows(Flag::Slow, path, tack, &stamped);
    is_alike.then(|| {
        format!(
            "segments carry 12 bytes of options, and the receive buffer holds a few: TACK is {:.2} times as fast as {PLAIN} with \
             timestamps, and {:.2} times as fast as {PLAIN} with a large buffer",
            gain(path, tack, &stamped),
            gain(path, &large_tack, &large_plain),
        )
    })
}

/// Much of what was acknowledged waits behind a loss when the run ends, and is not delivered. TACK
/// must send no more acknowledgements for each segment that left, and in a run of twice the time
/// the difference must be gone.
fn undelivered(path: &Path, tack: &Figures, plain: &Figures) -> Option<String> {
    if path.work != Work::Bulk || tack.acks * plain.data > plain.acks * tack.data {
        return None;
    }
    let [longer_tack, longer_plain] = Variant::both().map(|variant| runs::longer(path, variant));
    let is_gone = !judge(path, &longer_tack, &longer_plain).contains(&Flag::Acks);
    is_gone.then(|| {
        format!(
            "what waits behind a loss at the end is not delivered: TACK sends {:.2} for each segment and {PLAIN} {:.2}; in a run of \
             twice the time {:.0} and {:.0} per MB",
            tack.acks / tack.data,
            plain.acks / plain.data,
            1e6 * longer_tack.acks_per_byte(),
            1e6 * longer_plain.acks_per_byte(),
        )
    })
}

/// Much of what arrived waits behind a loss when the run ends, and is not delivered, so that the
/// speed depends on when that is. The path must have carried about as much for TACK: what it lost,
/// acknowledgements included, and what TACK repeated does not count, and of the plain policy's
/// segments each counts once. In a run of twice the time TACK must be about as fast.
fn behind_a_loss(path: &Path, tack: &Figures, plain: &Figures) -> Option<String> {
    // What a neighbour of another policy took is not seen.
    if path.work != Work::Bulk || path.shared && path.judged < 2 {
        return None;
    }
    let carried = tack.data - tack.repeated.max(tack.path_losses);
    let sent = plain.data - plain.repeated;
    if carried < 0.9 * sent {
        return None;
    }
    let [longer_tack, longer_plain] = Variant::both().map(|variant| runs::longer(path, variant));
    let gain = gain(path, &longer_tack, &longer_plain);
    (gain >= 0.9).then(|| {
        format!(
            "what waits behind a loss at the end is not delivered: the path carried {carried:.0} segments of TACK and at most {sent:.0} of \
             {PLAIN}; in a run of twice the time TACK is {gain:.2} times as fast"
        )
    })
}

/// Acknowledgements buy speed, as where reports are repeated because many get lost, or a remainder
/// is answered sooner: as many more are right as TACK is faster.
fn faster(path: &Path, tack: &Figures, plain: &Figures) -> Option<String> {
    let gain = gain(path, tack, plain);
    let is_paid = gain > 1.0 && !exceeds(tack, gain * plain.acks_per_byte());
    is_paid.then(|| format!("TACK is {gain:.2} times as fast"))
}

/// Where data goes both ways, it carries acknowledgements of the plain policy, and reports travel
/// alone. With data in one direction TACK must send as many for each byte, and the difference must
/// be gone there, or have a small send buffer as its reason. At a low rate it may send one for two
/// segments, if the plain policy does so in one direction.
fn both_ways(path: &Path, tack: &Figures) -> Option<String> {
    if !path.both_ways {
        return None;
    }
    let [one_way_tack, one_way_plain] = Variant::both().map(|mut variant| {
        variant.flow_keys.push(ONE_WAY);
        runs::fresh(path, &variant)
    });
    if exceeds(tack, one_way_tack.acks_per_byte()) {
        return by_segments(tack, &one_way_plain);
    }
    let there = if judge(path, &one_way_tack, &one_way_plain).contains(&Flag::Acks) {
        format!(
            ", as {}",
            waits(path, &[ONE_WAY], &one_way_tack, &one_way_plain)?
        )
    } else {
        String::new()
    };
    Some(format!(
        "data goes both ways; with data in one direction TACK sends {:.0} per MB and {PLAIN} {:.0}, here TACK {:.0}{there}",
        1e6 * one_way_tack.acks_per_byte(),
        1e6 * one_way_plain.acks_per_byte(),
        1e6 * tack.acks_per_byte(),
    ))
}

/// At a low rate TACK reports by segments, as often as delayed acknowledgements that no data
/// carries.
fn by_segments(tack: &Figures, one_way_plain: &Figures) -> Option<String> {
    let each = |figures: &Figures| figures.acks / figures.data.max(1.0);
    // L segments take longer than RTTmin/beta.
    let is_low = tack.data / L * tack.min_rtt <= BETA * tack.completion;
    let is_by_segments = is_low && tack.acks <= tack.data / L && each(tack) <= each(one_way_plain);
    is_by_segments.then(|| {
        format!(
            "the rate is low, and data goes both ways: TACK sends {:.2} for each segment; {PLAIN}, with data in one direction, {:.2}",
            each(tack),
            each(one_way_plain),
        )
    })
}

/// A sender that has nothing left but waits for acknowledgements (a small send buffer) pushes its
/// last segment, and TACK answers that after RTTmin/beta, where the plain policy waits for more.
/// With a send buffer that holds nobody back the difference must be gone, and with the path's own
/// one a plain policy that waits no longer than TACK must send about as many acknowledgements for
/// each byte. After timeouts segments may have the smallest size for a while, longer with one
/// policy than with another: where TACK sends about as many segments as the plain policy, as many
/// acknowledgements for each segment will do. `keys` are those with which `tack` and `plain` were
/// measured.
fn waits(path: &Path, keys: &[&'static str], tack: &Figures, plain: &Figures) -> Option<String> {
    let [large_tack, large_plain] = Variant::both().map(|mut variant| {
        variant.flow_keys.extend(keys);
        variant.flow_keys.push(LARGE_SEND_BUFFER);
        runs::fresh(path, &variant)
    });
    if judge(path, &large_tack, &large_plain).contains(&Flag::Acks) {
        return None;
    }
    let (name, prompt) = prompt(path, keys, tack);
    let by_segment = tack.data <= 1.1 * plain.data && !exceeds_by_segment(tack, &prompt);
    let is_owed = !exceeds(tack, prompt.acks_per_byte()) || by_segment;
    is_owed.then(|| {
        format!(
            "the send buffer holds the sender back: {:.0} and {:.0} per MB with a large one; with this one {name} sends {:.0} and {:.2} \
             for each segment, TACK {:.0} and {:.2}",
            1e6 * large_tack.acks_per_byte(),
            1e6 * large_plain.acks_per_byte(),
            1e6 * prompt.acks_per_byte(),
            prompt.acks / prompt.data.max(1.0),
            1e6 * tack.acks_per_byte(),
            tack.acks / tack.data.max(1.0),
        )
    })
}

/// A plain policy that waits no longer than TACK does with what is pushed, and its figures.
fn prompt(path: &Path, keys: &[&'static str], tack: &Figures) -> (String, Figures) {
    let micros = (1e6 * tack.min_rtt / BETA) as u64;
    let prompt = format!("{PLAIN},timer={}us", micros.clamp(1, 40_000));
    let mut variant = Variant::new(prompt.as_str());
    variant.flow_keys.extend(keys);
    let figures = runs::fresh(path, &variant);
    (prompt, figures)
}

/// The next frame of a video arrives less than two round trips after the report of the one before,
/// as it would if the sender had waited for that: TACK cannot tell, and reports the rest of each
/// frame. Frames that take a share of the path's rate arrive one after the other for that share of
/// the time, and the report leaves at the end of it.
fn messages(path: &Path, tack: &Figures) -> Option<String> {
    let report = tack.min_rtt / BETA;
    let rate = path.toml.lines().find_map(|line| {
        let value = line.strip_prefix("rate = \"")?.strip_suffix("kbps\"")?;
        value.parse::<f64>().ok()
    });
    let busy = rate.map_or(0.0, |kbps| (tack.goodput / (1e3 * kbps)).min(1.0));
    if path.work != Work::Video || report + 2.0 * tack.min_rtt < (1.0 - busy) / FRAMES {
        return None;
    }
    let (name, prompt) = prompt(path, &[], tack);
    let acks_per_byte = prompt.acks_per_byte();
    let is_owed = !exceeds(tack, acks_per_byte);
    is_owed.then(|| {
        format!(
            "frames take {:.0} % of the time, and follow each other within two round trips of {:.0} ms; {name} sends {:.0} per MB, TACK {:.0}",
            100.0 * busy,
            1e3 * tack.min_rtt,
            1e6 * acks_per_byte,
            1e6 * tack.acks_per_byte(),
        )
    })
}

/// Who gets how much of a path that two flows share depends on who meets the full queue first: it
/// can tip over with a millisecond, and stays so with each seed where nothing else is random. It is
/// chance only if it happens to the plain policy as well. So paths beside this one, with delays up
/// to a tenth shorter and longer and, where the second flow begins later, with other beginnings,
/// must not show the difference together, and of the plain flows there so many must get no more
/// than TACK does here that TACK's share could be one of theirs.
///
/// The same goes for an application that pauses: whether the overflow that ends slow start is found
/// before or after it stops decides which window it goes on with. For one flow that is a reason
/// only if the pause is: without it the difference must be gone as well, on this path and with
/// these seeds.
fn competition(path: &Path, tack: &Figures) -> Option<String> {
    if !path.shared {
        if !path.toml.contains(PAUSE) {
            return None;
        }
        let [busy_tack, busy_plain] = Variant::both().map(|mut variant| {
            variant.flow_keys.push(WITHOUT_PAUSE);
            runs::fresh(path, &variant)
        });
        if shows(Flag::Slow, path, &busy_tack, &busy_plain) {
            return None;
        }
    }
    let [tacks, plains] = Variant::both().map(|variant| runs::beside(path, &variant));
    let [tack_beside, plain_beside] = [&tacks, &plains].map(|runs| Figures::together(runs));
    if shows(Flag::Slow, path, &tack_beside, &plain_beside) {
        return None;
    }
    let fallen = plains
        .iter()
        .filter(|plain| plain.goodput <= tack.goodput)
        .count();
    is_chance(fallen, plains.len()).then(|| {
        format!(
            "chance; on paths beside this one TACK has {:.2} Mbit/s and {PLAIN} {:.2}, and {fallen} of {} of those no more than \
             TACK here",
            tack_beside.goodput / 1e6,
            plain_beside.goodput / 1e6,
            plains.len(),
        )
    })
}

/// The timers of a host are late. Where acknowledgements come often they let segments leave
/// meanwhile; where they are rare each late timer of the sender, or each acknowledgement that the
/// receiver's timer sends, ends in a burst.
/// With timers on time the difference must be gone, and with late ones a plain policy that
/// acknowledges no more often in a second must be no faster than TACK.
fn late_timers(path: &Path, tack: &Figures) -> Option<String> {
    let keys: Vec<_> = path
        .toml
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0.trim()))
        .filter(|key| key.starts_with(LATE_TIMERS))
        .collect();
    if keys.is_empty() {
        return None;
    }
    let [tack_on_time, plain_on_time] = Variant::both().map(|mut variant| {
        let on_time = keys.iter().map(|key| format!("wired.{key}=0us"));
        variant.path_keys.extend(on_time);
        runs::fresh(path, &variant)
    });
    if shows(Flag::Slow, path, &tack_on_time, &plain_on_time) {
        return None;
    }
    let (policy, sparse) = SPARSE_PLAIN
        .iter()
        .map(|policy| (policy, runs::fresh(path, &Variant::new(*policy))))
        .find(|(_, sparse)| sparse.acks_per_second() <= tack.acks_per_second())?;
    let is_alike = !shows(Flag::Slow, path, tack, &sparse);
    is_alike.then(|| {
        format!(
            "timers are late: with timers on time TACK is {:.2} times as fast as {PLAIN}; with late ones it sends {:.0} a second and is \
             {:.2} times as fast as {policy}, which sends {:.0}",
            gain(path, &tack_on_time, &plain_on_time),
            tack.acks_per_second(),
            gain(path, tack, &sparse),
            sparse.acks_per_second(),
        )
    })
}

/// The sender gains from hearing little: with a plain policy that acknowledges each segment it is
/// as slow as with TACK. That says so only where those acknowledgements find room: on a wire that
/// is as fast on the way back.
fn density(path: &Path, tack: &Figures, plain: &Figures) -> Option<String> {
    if ["[wlan]", "rate_reverse", "duplex"]
        .iter()
        .any(|key| path.toml.contains(key))
    {
        return None;
    }
    let dense = runs::fresh(path, &Variant::new("every"));
    let is_alike = shows(Flag::Slow, path, &dense, plain) && !shows(Flag::Slow, path, tack, &dense);
    is_alike.then(|| {
        format!(
            "with an acknowledgement for each segment the plain sender is as slow: {:.2} times as fast as with TACK, {PLAIN} {:.2} times",
            gain(path, &dense, tack),
            gain(path, plain, tack),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_for_two_segments_are_a_reason_at_a_low_rate_alone() {
        let figures = |acks, completion| Figures {
            acks,
            data: 1_000.0,
            min_rtt: 0.04,
            completion,
            ..Figures::default()
        };
        let plain = figures(500.0, 1.0);
        for (acks, completion, is_owed) in [
            (480.0, 10.0, true),
            // At a hundred times the rate, or more often than the plain policy.
            (480.0, 0.1, false),
            (520.0, 10.0, false),
        ] {
            let reason = by_segments(&figures(acks, completion), &plain);
            assert_eq!(reason.is_some(), is_owed, "{acks} in {completion} s");
        }
    }
}
