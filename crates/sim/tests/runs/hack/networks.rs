//! Random wireless networks with two or more faults at once.

use std::fmt::Write as _;

use tack_base::random::RandomStream;

/// One network.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    /// Its number, and the seed of its first run.
    pub(crate) seed: u64,
    /// The scenario, without HACK.
    pub(crate) toml: String,
    /// Acknowledgements wait whether or not something is to come: a window that is small takes
    /// that long, each time.
    pub(crate) is_timer: bool,
    /// What turns HACK on.
    pub(crate) keys: Vec<String>,
}

const MODES: [(&str, &str); 8] = [
    ("802.11b", "11Mbps"),
    ("802.11a", "54Mbps"),
    ("802.11a", "6Mbps"),
    ("802.11g", "24Mbps"),
    ("802.11n", "150Mbps"),
    ("802.11n", "300Mbps"),
    ("802.11ac", "433.3Mbps"),
    ("802.11ax", "286.8Mbps"),
];

const VARIANTS: [&str; 4] = ["opportunistic", "timer", "more-data", "timestamp-echo"];
/// Both runs of a network have the filter: its compressed acknowledgements are beside the queue
/// that it reads, and their native copies are in it.
const FILTERS: [&str; 8] = [
    "off",
    "off",
    "paper",
    "paper",
    "safe",
    "safe",
    "cake",
    "cake_aggressive",
];
const CODECS: [&str; 3] = ["rfc", "lean", "lean-no-checksum"];

fn pick<T: Copy>(random: &mut RandomStream, from: &[T]) -> T {
    from[random.below(from.len() as u64) as usize]
}

/// Network number `number`.
pub(crate) fn network(number: u64) -> Network {
    let mut random = RandomStream::new(number, "network", 0);
    let random = &mut random;
    let (standard, rate) = pick(random, &MODES);
    let stations = 1 + random.below(3);
    let mut toml = format!(
        "seed = {number}\nduration = '120s'\n[wlan]\nstandard = '{standard}'\nrate = '{rate}'\nstations = {stations}\n"
    );
    let mut filter = RandomStream::new(number, "filter", 0);
    let _ = writeln!(toml, "ack_filter = '{}'", pick(&mut filter, &FILTERS));
    let has_block_ack = matches!(standard, "802.11n" | "802.11ac" | "802.11ax");
    wlan(random, has_block_ack, stations, &mut toml);
    wired(random, &mut toml);
    flows(random, stations, &mut toml);
    let mut keys = vec![
        format!("wlan.hack={}", pick(random, &VARIANTS)),
        format!("wlan.hack_codec={}", pick(random, &CODECS)),
    ];
    if random.chance(0.4) {
        let most = pick(random, &[5, 50]);
        keys.push(format!("wlan.hack_timer={}ms", 1 + random.below(most)));
    }
    let is_timer = keys[0].ends_with("timer");
    Network {
        seed: number,
        is_timer,
        toml,
        keys,
    }
}

fn wlan(random: &mut RandomStream, has_block_ack: bool, stations: u64, toml: &mut String) {
    if random.chance(0.8) {
        let errors = pick(random, &[0.01, 0.05, 0.1, 0.2]);
        let _ = writeln!(toml, "frame_error_rate = {errors}");
    }
    for key in ["host_receive_delay", "host_transmit_delay"] {
        if random.chance(0.6) {
            let delay = pick(random, &[0, 5, 20, 100, 1_000, 4_000]);
            let _ = writeln!(toml, "{key} = '{delay}us'");
        }
    }
    if random.chance(0.5) {
        let _ = writeln!(toml, "host_interrupt = 'ppdu'");
    }
    if random.chance(0.4) {
        let _ = writeln!(toml, "retry_limit = {}", 2 + random.below(4));
    }
    if random.chance(0.3) {
        let _ = writeln!(toml, "ap_queue = '{}p'", 5 + random.below(60));
    }
    if random.chance(0.2) {
        let _ = writeln!(toml, "station_queue = '{}p'", 3 + random.below(20));
    }
    if has_block_ack {
        if random.chance(0.4) {
            toml.push_str("missed_block_ack = 'resend'\n");
        }
        if random.chance(0.3) {
            let _ = writeln!(toml, "ampdu_max_frames = {}", 1 + random.below(20));
        }
        if random.chance(0.2) {
            toml.push_str("txop_limit = '3ms'\n");
        }
        if random.chance(0.2) {
            toml.push_str("reorder_timeout = '5ms'\n");
        }
    }
    if random.chance(0.2) {
        toml.push_str("rts_threshold = '500B'\n");
    }
    if random.chance(0.2) {
        toml.push_str("contenders = 1\ncontender_rate = '1Mbps'\n");
    }
    if stations > 1 && random.chance(0.3) {
        toml.push_str("hidden = ['sta0-sta1']\n");
    }
}

fn wired(random: &mut RandomStream, toml: &mut String) {
    let rate = pick(random, &[10, 100, 500]);
    let delay = pick(random, &[1, 1, 10, 40]);
    let _ = writeln!(
        toml,
        "[wired]\nrate = '{rate}Mbps'\ndelay = '{delay}ms'\nqueue = '300p'"
    );
    for (key, value) in [
        ("loss", "0.005"),
        ("reorder", "0.02"),
        ("duplicate", "0.02"),
        ("corrupt", "0.002"),
        ("ecn_mark", "0.01"),
    ] {
        for side in ["", "_reverse"] {
            if random.chance(0.12) {
                let _ = writeln!(toml, "{key}{side} = {value}");
            }
        }
    }
    if random.chance(0.1) {
        toml.push_str("strip_options = [8]\n");
    }
}

fn flows(random: &mut RandomStream, stations: u64, toml: &mut String) {
    for _ in 0..1 + random.below(4) {
        let station = format!("sta{}", random.below(stations));
        let other = format!("sta{}", random.below(stations));
        let (from, to) = match random.below(5) {
            0..=2 => ("server".to_owned(), station),
            3 => (station, "server".to_owned()),
            _ if other != station => (station, other),
            _ => ("server".to_owned(), station),
        };
        let bytes = 20_000 + random.below(900_000);
        let congestion = pick(random, &["new_reno", "cubic", "bbr"]);
        let ack = pick(random, &["every", "delayed:2", "delayed:2", "tack"]);
        let _ = writeln!(
            toml,
            "[[flow]]\nfrom = '{from}'\nto = '{to}'\nbytes = '{bytes}B'\ncongestion = '{congestion}'\nack = '{ack}'\nstart = '{}ms'",
            random.below(400)
        );
        if random.chance(0.4) {
            toml.push_str("timestamps = false\n");
        }
        if random.chance(0.2) {
            toml.push_str("app = 'duplex'\n");
        }
        if random.chance(0.2) {
            toml.push_str("sack = false\n");
        }
        if random.chance(0.3) {
            let _ = writeln!(toml, "receive_buffer = '{}B'", 6_000 + random.below(60_000));
        }
    }
}
