//! The reference figures, and the scenario that stands for each.
//!
//! Common set-up of the reference runs: server — wired, 10 Gbit/s and 1 ms one way (e: 500 Mbit/s)
//! — access point, stations. All signals equally strong, no PHY errors, no RTS, beacons every 102.4
//! ms (not in ad-hoc runs), drop-tail MAC queues. UDP payload 1472 bytes. TCP: MSS 1460, no
//! timestamps, SACK, delayed ACK timer 200 ms, unpaced; windows of 128 kB (b), 256 kB (a, g), 600
//! kB (n, ac) that never fill a queue; 64 kB in d unless named; 8 MB in rows that the queue limits.
//!
//! When the flows of several stations begin is not on record. Here one begins every [`SPACING`],
//! and a SYN is repeated after three seconds, the default there; what follows from that is measured
//! in the section on fairness.
//!
//! f is about contention by the rules of EDCA, and about frames lost to noise: TCP with windows of
//! 300 kB, and every MPDU lost at every receiver with the probability that the name says. Here
//! VHT-SIG-B is left out, as in the reference: what is compared is access, not preambles. Block
//! ACK agreements are negotiated, as in the reference, and flows begin when they begin there: rows
//! `_settled` were measured when all stations had one.

use std::fmt::Write;

/// One row of the reference figures.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) standard: String,
    pub(crate) rate: String,
    pub(crate) stations: u16,
    pub(crate) transport: String,
    pub(crate) ack_policy: String,
    pub(crate) queue: u32,
    pub(crate) ampdu: u32,
    pub(crate) goodput: f64,
    pub(crate) collision: f64,
    /// Data frames in a PPDU.
    pub(crate) frames: f64,
    pub(crate) jain: f64,
}

/// Milliseconds from the beginning of one flow to that of the next, in families d to f.
pub(crate) const SPACING: u32 = 100;

/// Virtual time of a run, seconds, and seeds over which it is averaged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effort {
    pub(crate) warmup: u32,
    pub(crate) measured: u32,
    pub(crate) seeds: u64,
}

pub(crate) fn rows() -> Vec<Row> {
    let text = include_str!("../../data/ns3-wifi.csv");
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let header: Vec<_> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| {
        header
            .iter()
            .position(|column| *column == name)
            .unwrap_or_else(|| panic!("no column {name}"))
    };
    let columns = [
        "case",
        "standard",
        "phy_mbps",
        "n_sta",
        "transport",
        "ack_policy",
        "queue_pkts",
        "ampdu_bytes",
        "goodput_mean",
        "collision_prob",
        "mpdu_per_ppdu",
        "jain",
    ]
    .map(column);
    lines
        .map(|line| {
            let fields: Vec<_> = line.split(',').collect();
            let [
                case,
                standard,
                rate,
                stations,
                transport,
                ack,
                queue,
                ampdu,
                goodput,
                collision,
                frames,
                jain,
            ] = columns.map(|column| fields[column]);
            Row {
                case: case.into(),
                standard: standard.replace("80211", "802.11"),
                rate: rate.into(),
                stations: stations.parse().expect("a number"),
                transport: transport.into(),
                ack_policy: ack.into(),
                queue: queue.parse().expect("a number"),
                ampdu: ampdu.parse().expect("a number"),
                goodput: goodput.parse().expect("a number"),
                collision: collision.parse().expect("a number"),
                frames: frames.parse().expect("a number"),
                jain: jain.parse().expect("a number"),
            }
        })
        .collect()
}

impl Row {
    /// The congestion controller; `None` for UDP.
    pub(crate) fn congestion(&self) -> Option<&'static str> {
        match self.transport.as_str() {
            "UDP" => None,
            "TcpNewReno" => Some("new_reno"),
            "TcpCubic" => Some("cubic"),
            "TcpBbr" => Some("bbr"),
            other => panic!("no transport {other}"),
        }
    }

    pub(crate) fn is_udp(&self) -> bool {
        self.transport == "UDP"
    }

    pub(crate) fn family(&self) -> char {
        self.case.chars().next().expect("a name")
    }

    /// Data segments for an acknowledgement.
    pub(crate) fn segments_per_ack(&self) -> u32 {
        self.ack_policy
            .strip_prefix("delack")
            .map_or(0, |number| number.parse().expect("a number"))
    }

    pub(crate) fn payload(&self) -> u32 {
        match self {
            _ if self.case.contains("udp1470") => 1_470,
            _ if self.is_udp() => 1_472,
            _ if self.has_timestamps() => 1_448,
            _ => 1_460,
        }
    }

    /// Measured while every station has a Block ACK agreement.
    pub(crate) fn is_settled(&self) -> bool {
        self.case.ends_with("_settled")
    }

    fn has_timestamps(&self) -> bool {
        self.case.starts_with("x_hack_a54")
    }

    fn is_upload(&self) -> bool {
        matches!(self.family(), 'c' | 'd') || self.case.contains("_ul")
    }

    /// Probability that noise spoils an MPDU.
    fn frame_error_rate(&self) -> Option<f64> {
        let (_, rate) = self
            .case
            .split_once("fail")
            .or_else(|| self.case.split_once("_fer"))?;
        let rate = rate.split('_').next().unwrap_or(rate);
        Some(rate.parse().expect("a rate"))
    }

    pub(crate) fn is_adhoc(&self) -> bool {
        ["adhoc", "x_hack_a54", "x_tack_b"]
            .iter()
            .any(|name| self.case.contains(name))
    }

    /// How long to run. Families with few frames a second, and those about fairness, take longer.
    pub(crate) fn effort(&self) -> Effort {
        let (warmup, measured, seeds) = match (self.family(), self.standard.as_str()) {
            ('a' | 'c', _) => (1, 10, 2),
            ('d', _) => (5, 20, 6),
            // As long as the reference measured.
            ('f', _) if self.is_settled() => (4, 10, 36),
            // The frames in a PPDU tell when the reference was measured: 39.6 on record, and 39.6
            // in 30 runs from 1 to 6 s, 41.2 from 2 to 7 s. Stations get their agreements in these
            // seconds: how late differs much from run to run.
            ('f', _) if self.is_udp() && self.ampdu > 0 => (1, 5, 48),
            ('f', _) if self.is_udp() => (2, 5, 8),
            ('f', _) => (2, 10, 3),
            ('e', _) if self.is_udp() => (1, 5, 1),
            ('e', _) => (6, 8, 2),
            _ if self.case.ends_with("qlimited") => (6, 10, 1),
            (_, "802.11b") => (2, 20, 2),
            (_, "802.11a" | "802.11g") => (2, 10, 2),
            _ => (2, 5, 2),
        };
        Effort {
            warmup,
            measured,
            seeds,
        }
    }

    /// The scenario as TOML.
    pub(crate) fn scenario(&self) -> String {
        self.scenario_spaced(SPACING)
    }

    /// The scenario with so many milliseconds between the beginnings of flows, in families d to f.
    pub(crate) fn scenario_spaced(&self, spacing: u32) -> String {
        let effort = self.effort();
        let mut text = String::new();
        let mut line = |part: std::fmt::Arguments<'_>| {
            text.write_fmt(part).expect("text grows");
            text.push('\n');
        };
        line(format_args!(
            "duration = \"{}s\"",
            effort.warmup + effort.measured
        ));
        line(format_args!("warmup = \"{}s\"", effort.warmup));
        line(format_args!(
            "[wired]\nrate = \"{}\"\ndelay = \"1ms\"\nqueue = \"100000p\"",
            if self.family() == 'e' {
                "500Mbps"
            } else {
                "10Gbps"
            }
        ));
        line(format_args!(
            "[wlan]\nstandard = \"{}\"\nrate = \"{}Mbps\"",
            self.standard, self.rate
        ));
        line(format_args!(
            "stations = {}\nqueue = \"{}p\"",
            self.stations, self.queue
        ));
        // The hosts of ns-3 are instantaneous.
        line(format_args!(
            "host_receive_delay = \"0us\"\nhost_transmit_delay = \"0us\""
        ));
        if matches!(self.standard.as_str(), "802.11n" | "802.11ac") {
            line(format_args!("ampdu_max_bytes = {}", self.ampdu));
        }
        if self.family() == 'f' && self.ampdu > 0 {
            line(format_args!("block_ack_agreement = \"negotiated\""));
        }
        if self.is_adhoc() {
            line(format_args!("beacon_interval = \"off\""));
        }
        if self.standard == "802.11b" && (self.is_adhoc() || self.case.contains("shortpre_adhoc")) {
            // In ad-hoc networks of the reference every rate is basic.
            line(format_args!("control_rate = \"11Mbps\""));
        }
        if self.case.contains("shortpre") {
            line(format_args!("preamble = \"short\""));
        }
        if self.case.contains("longslot") {
            line(format_args!("slot = \"long\""));
        }
        if self.case.contains("cwmin31") {
            line(format_args!("cw_min = 31"));
        }
        if let Some(rate) = self.frame_error_rate() {
            line(format_args!("frame_error_rate = {rate:.2}"));
        }
        if self.family() == 'f' && self.standard == "802.11ac" {
            line(format_args!("vht_sig_b = \"omitted\""));
        }
        for station in 0..self.stations {
            let (from, to) = if self.is_upload() {
                (format!("sta{station}"), "server".into())
            } else {
                ("server".into(), format!("sta{station}"))
            };
            line(format_args!("[[flow]]\nfrom = \"{from}\"\nto = \"{to}\""));
            if self.is_udp() {
                line(format_args!(
                    "transport = \"udp\"\nrate = \"saturate\"\npayload = {}",
                    self.payload()
                ));
                if self.family() == 'f' && self.ampdu > 0 {
                    line(format_args!("start = \"{}ms\"", 500 + 10 * station));
                }
                continue;
            }
            let window = match (self.family(), self.standard.as_str()) {
                ('d', _) if self.case.contains("rwnd20seg") => "29200B",
                ('d', _) => "64KiB",
                ('e', _) if self.case.contains("rwnd") => "170kB",
                ('e', _) => "8MB",
                ('f', _) => "300kB",
                _ if self.case.ends_with("qlimited") => "8MB",
                (_, "802.11b") => "128kB",
                (_, "802.11a" | "802.11g") => "256kB",
                _ => "600kB",
            };
            let congestion = self.congestion().unwrap_or("new_reno");
            line(format_args!("congestion = \"{congestion}\"\necn = false"));
            line(format_args!("initial_rto = \"3s\"\nmin_rto = \"1s\""));
            line(format_args!("receive_window = \"fixed\""));
            if congestion != "bbr" {
                line(format_args!("window_pacing = \"off\""));
            }
            if matches!(self.family(), 'd'..='f') {
                let start = spacing * u32::from(station);
                line(format_args!("start = \"{start}ms\""));
            }
            line(format_args!(
                "receive_buffer = \"{window}\"\nsend_buffer = \"8MB\""
            ));
            line(format_args!("timestamps = {}", self.has_timestamps()));
            match self.segments_per_ack() {
                1 => line(format_args!("ack = \"every\"")),
                segments => line(format_args!("ack = \"delayed:{segments},timer=200ms\"")),
            }
        }
        text
    }
}
