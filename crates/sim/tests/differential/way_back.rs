//! Reasons that lie in a narrow way back, which acknowledgements fill.

use crate::figures::Figures;
use crate::judge::{Flag, gain, shows};
use crate::measure::{PLAIN, Variant};
use crate::neighbour::even_share;
use crate::paths::{Path, Work};
use crate::runs;

/// The key of a path for the rate of its way back.
pub(crate) const RATE: &str = "rate_reverse";
/// The key of a path for the queue of both ways.
const QUEUE: &str = "queue";
/// The key of a way back that no acknowledgement fills.
pub(crate) const FAST_WAY_BACK: &str = "wired.rate_reverse=1Gbps";
/// How the keys of a path begin whose hosts take packets late.
const LATE_HOST: &str = "late_processing";
/// Packets of a queue that is short.
const SHORT_QUEUE: f64 = 13.0;
/// Bytes of a full packet.
const PACKET: f64 = 1_500.0;
/// Plain policies that acknowledge less and less often.
pub(crate) const SPARSE_PLAIN: [&str; 5] = [
    "delayed:4",
    "delayed:8",
    "delayed:12",
    "delayed:16",
    "delayed:32",
];
/// One that is rarer still.
pub(crate) const SPARSEST_PLAIN: &str = "delayed:64";
/// The table of a path with bursts of losses on the way back, which are counted in packets.
const BURSTS: &str = "wired.gilbert_elliott_reverse";
/// Plain policies that take more room on the way back than delayed acknowledgements.
const LARGER_PLAIN: [(&str, &[&str]); 2] = [("every", &[]), ("every", &["timestamps=false"])];

/// The round trips that the plain sender measures include the time for which acknowledgements were
/// held back, TACK's do not: it spreads the same window over less time, and a short queue loses
/// what comes before the link is free: that of a way back which holds not one packet, or one of a
/// few packets where the receiver is late. The difference must be gone where no window is spread,
/// and with a longer queue: five packets, as paths with one rate have at least, or fifty.
///
/// BBR paces by itself, by the rate that it measured over such round trips. NewReno is in its place
/// where nothing is to be paced.
pub(crate) fn slower_pacing(path: &Path) -> Option<String> {
    let unpaced: &[&'static str] = match path.congestion {
        "bbr" => &["congestion=new_reno", "window_pacing=off"],
        _ => &["window_pacing=off"],
    };
    let longer = if holds_hardly_a_packet(path) == Some(true) {
        5
    } else if value(path, QUEUE, "p")? <= SHORT_QUEUE && path.toml.contains(LATE_HOST) {
        50
    } else {
        return None;
    };
    let gains = |flow_keys: &[&'static str], path_key: Option<&str>| {
        let [tack, plain] = Variant::both().map(|mut variant| {
            variant.flow_keys.extend(flow_keys);
            variant.path_keys.extend(path_key.map(str::to_owned));
            runs::fresh(path, &variant)
        });
        let is_gone = !shows(Flag::Slow, path, &tack, &plain);
        is_gone.then(|| gain(path, &tack, &plain))
    };
    let unpaced = gains(unpaced, None)?;
    let queued = gains(&[], Some(&format!("wired.queue={longer}p")))?;
    Some(format!(
        "round trips of {PLAIN} include waiting, so it paces more slowly: TACK is {unpaced:.2} times as fast where windows are not \
         paced, and {queued:.2} times with a queue of {longer} packets",
    ))
}

/// The first value of `key`, if it has this unit.
fn value(path: &Path, key: &str, unit: &str) -> Option<f64> {
    let mut values = path.toml.lines().filter_map(|line| {
        let value = line.strip_prefix(key)?.strip_prefix(" = \"")?;
        value.strip_suffix('"')?.strip_suffix(unit)?.parse().ok()
    });
    values.next()
}

/// The queue of the way back is shorter than a full packet. `None` in three cases: the way back has
/// the rate of the way there, it has its own queue, or queues are counted in packets.
fn holds_hardly_a_packet(path: &Path) -> Option<bool> {
    if path.toml.contains("queue_reverse") {
        return None;
    }
    let rate = 1e3 * value(path, RATE, "kbps")?;
    Some(value(path, QUEUE, "bdp")? * rate * path.rtt < 8.0 * PACKET)
}

/// The way back is full of the acknowledgements of a neighbour that sends more of them, and those
/// of the other flow hardly get in. On a fast way back the difference must be gone, and on this one
/// a flow of TACK beside another of TACK must be as fast, or have as few timeouts, as a plain one
/// beside a plain one, with fewer acknowledgements for each byte. An even share is as fast. A flow
/// that starves has many, as it repeats them.
pub(crate) fn denser_neighbour(path: &Path, flag: Flag, plain: &Figures) -> Option<String> {
    // Where a flow gets next to nothing, it must be as fast.
    let flag = if flag == Flag::Hang { Flag::Slow } else { flag };
    if path.judged > 1 || !path.shared || !path.toml.contains(RATE) {
        return None;
    }
    let mut variant = Variant::new("tack");
    variant.path_keys.push("flow.1.ack=tack".into());
    let alike = runs::fresh(path, &variant);
    let is_denser = plain.acks_per_byte() > alike.acks_per_byte();
    let is_as_fast = !shows(flag, path, &alike, plain)
        || flag == Flag::Slow && even_share(path, &alike, plain).is_some();
    if !is_denser || !is_as_fast {
        return None;
    }
    let [fast_tack, fast_plain] = Variant::both().map(|variant| fast_way_back(path, variant));
    let is_gone = !shows(flag, path, &fast_tack, &fast_plain);
    is_gone.then(|| {
        format!(
            "the neighbour fills the way back: beside another of TACK {:.2} Mbit/s and {:.1} timeouts, {PLAIN} beside {PLAIN} {:.2} and \
             {:.1}; {:.2} and {:.2} on a fast way back, with {:.1} and {:.1}",
            alike.goodput / 1e6,
            alike.timeouts,
            plain.goodput / 1e6,
            plain.timeouts,
            fast_tack.goodput / 1e6,
            fast_plain.goodput / 1e6,
            fast_tack.timeouts,
            fast_plain.timeouts,
        )
    })
}

fn fast_way_back(path: &Path, mut variant: Variant) -> Figures {
    variant.path_keys.push(FAST_WAY_BACK.to_owned());
    runs::fresh(path, &variant)
}

/// The way back is full of acknowledgements, and one of TACK takes more bytes. It must carry as
/// many bytes of them with either policy, and on a fast way back the difference must be gone. What
/// a sender repeats that hears later of an overflow must cost no speed.
///
/// Where data goes back as well it need not be full: an answer is lost if the link is busy with an
/// acknowledgement when it leaves. There a plain policy whose acknowledgements take no more room
/// for each byte than those of TACK must be no faster than TACK.
pub(crate) fn narrow_way_back(
    path: &Path,
    flag: Flag,
    tack: &Figures,
    plain: &Figures,
) -> Option<String> {
    if !path.toml.contains(RATE) || tack.ack_bytes < 0.9 * plain.ack_bytes {
        return None;
    }
    if flag == Flag::Retx && gain(path, tack, plain) < 0.95 {
        return None;
    }
    let larger = if path.work == Work::Requests {
        Some(larger(path, tack)?)
    } else {
        None
    };
    let [fast_tack, fast_plain] = Variant::both().map(|variant| fast_way_back(path, variant));
    if shows(flag, path, &fast_tack, &fast_plain) {
        return None;
    }
    Some(format!(
        "the way back is narrow: {:.0} and {:.0} bytes of acknowledgements; on a fast one TACK is {:.2} times as fast as {PLAIN}, with \
         {:.1} and {:.1} % again{}",
        tack.ack_bytes,
        plain.ack_bytes,
        gain(path, &fast_tack, &fast_plain),
        100.0 * fast_tack.repeated_share(),
        100.0 * fast_plain.repeated_share(),
        larger.map_or_else(String::new, |larger| format!("; {larger}")),
    ))
}

/// A plain policy that takes as much room on the way back, if it is no faster than TACK.
fn larger(path: &Path, tack: &Figures) -> Option<String> {
    let per_byte = |figures: &Figures| figures.ack_bytes / figures.bytes.max(1.0);
    LARGER_PLAIN.iter().find_map(|(policy, keys)| {
        let mut variant = Variant::new(*policy);
        variant.flow_keys.extend(*keys);
        let larger = runs::fresh(path, &variant);
        let is_as_large = per_byte(&larger) <= 1.1 * per_byte(tack);
        let is_no_faster = !shows(Flag::Slow, path, tack, &larger);
        (is_as_large && is_no_faster).then(|| {
            format!(
                "{policy} {} takes {:.2} times as many bytes, and TACK is {:.2} times as fast",
                keys.join(" "),
                per_byte(&larger) / per_byte(tack),
                gain(path, tack, &larger),
            )
        })
    })
}

/// Bursts of losses are counted in packets: who acknowledges more often is through with each of
/// them sooner. Without bursts the difference must be gone, and with them a plain policy that
/// acknowledges no more often than TACK must fare no better.
pub(crate) fn bursts_of_acknowledgements(
    path: &Path,
    flag: Flag,
    tack: &Figures,
) -> Option<String> {
    if !path.toml.contains(BURSTS) {
        return None;
    }
    let without = format!("{BURSTS}.good_to_bad=0");
    let words = "bursts of losses are counted in packets";
    as_with_sparse(path, flag, tack, without, words)
}

/// With the key `without`, which takes the fault away, the difference must be gone. With the fault
/// a plain policy that acknowledges no more often than TACK, but at least half as often, must fare
/// no better.
pub(crate) fn as_with_sparse(
    path: &Path,
    flag: Flag,
    tack: &Figures,
    without: String,
    words: &str,
) -> Option<String> {
    let [even_tack, even_plain] = Variant::both().map(|mut variant| {
        variant.path_keys.push(without.clone());
        runs::fresh(path, &variant)
    });
    if shows(flag, path, &even_tack, &even_plain) {
        return None;
    }
    let (policy, sparse) = SPARSE_PLAIN
        .iter()
        .chain(&[SPARSEST_PLAIN])
        .map(|policy| (policy, runs::fresh(path, &Variant::new(*policy))))
        .find(|(_, sparse)| sparse.acks_per_byte() <= tack.acks_per_byte())?;
    if sparse.acks_per_byte() < 0.5 * tack.acks_per_byte() {
        return None;
    }
    let is_alike = !shows(flag, path, tack, &sparse);
    is_alike.then(|| {
        format!(
            "{words}: without them TACK is {:.2} times as fast as {PLAIN}; with them it sends {:.0} per MB and is {:.2} times as fast as \
             {policy}, which sends {:.0}",
            gain(path, &even_tack, &even_plain),
            1e6 * tack.acks_per_byte(),
            gain(path, tack, &sparse),
            1e6 * sparse.acks_per_byte(),
        )
    })
}
