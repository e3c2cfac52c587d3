//! Figures 1(a) and 1(b): goodput that the MAC allows by itself, in closed form.
//!
//! Nothing collides and nothing is lost. A medium access costs the interframe space and half of the
//! smallest contention window on average; a TCP acknowledgement goes for every two segments. With
//! TCP/HACK it travels inside the link acknowledgement.

use std::time::Duration;

use tack_plot::{Line, LineChart, Scale, Stroke, format_number};
use tack_wlan::frame::len;
use tack_wlan::mac::MacConfig;
use tack_wlan::phy::{GuardInterval, HtMode, Mode, OfdmRate, Preamble, Standard, Timing, Width};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::plot;
use crate::results::Results;

pub(in crate::figures) const LEGACY: Figure = Figure {
    paper: Paper::Hack,
    id: "hack1a",
    title: "Theoretical goodput for 802.11a rates",
    about: "Closed form, no run: airtime as the 802.11 model computes it, DIFS and half of CWmin before each access, packets of 1,500 bytes, \
            acknowledgements of 40 bytes for every two segments, compressed to 4. The paper draws curves without their values; the reference \
            values are those of an independent computation from the same parameters.",
    plan: |_| Vec::new(),
    reduce: reduce_legacy,
};

pub(in crate::figures) const AGGREGATED: Figure = Figure {
    paper: Paper::Hack,
    id: "hack1b",
    title: "Theoretical goodput for 802.11n rates",
    about: "Closed form, no run: 40 MHz, short guard interval, A-MPDUs of up to 65,535 bytes and 4 ms with at most 64 frames, AIFS and half of \
            CWmin before each access. A batch of n segments draws n/2 acknowledgements of 40 bytes: in an A-MPDU of their own, or compressed \
            to 4 bytes each inside the Block ACK.",
    plan: |_| Vec::new(),
    reduce: reduce_aggregated,
};

/// IP packet of a segment or datagram, bytes.
const PACKET: u32 = 1_500;
/// IP packet of an acknowledgement without options.
const ACK: u32 = 40;
/// A compressed acknowledgement.
pub(super) const COMPRESSED: u32 = 4;
/// Payload of a segment, and of a datagram.
const SEGMENT: u32 = PACKET - 40;
const DATAGRAM: u32 = PACKET - 28;
/// The transmit opportunity that the paper sets.
const LONGEST: Duration = Duration::from_millis(4);

/// The carrier of the acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// There are none.
    Udp,
    /// Frames of their own.
    Tcp,
    /// Link acknowledgements, with so many bytes for each.
    Hack(u32),
}

impl Carrier {
    const ALL: [Self; 3] = [Self::Udp, Self::Tcp, Self::Hack(COMPRESSED)];

    fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Hack(_) => "TCP/HACK",
        }
    }

    fn payload(self) -> f64 {
        f64::from(if self == Self::Udp { DATAGRAM } else { SEGMENT })
    }
}

/// The interframe space and the mean backoff, seconds.
fn access(mac: &MacConfig) -> f64 {
    let contention = mac.contention[1];
    let slots = f64::from(contention.aifsn) + f64::from(contention.cw_min) / 2.0;
    mac.timing.sifs.as_secs_f64() + slots * mac.timing.slot.as_secs_f64()
}

/// A response of so many bytes, and SIFS before it, seconds.
fn response(mac: &MacConfig, bytes: u32) -> f64 {
    (mac.timing.sifs + mac.control_airtime(bytes)).as_secs_f64()
}

fn airtime(mac: &MacConfig, psdu: u32) -> f64 {
    mac.timing
        .airtime(mac.data_mode, psdu as usize)
        .as_secs_f64()
}

/// Goodput of 802.11a at `rate`, Mbit/s.
fn legacy(rate: OfdmRate, carrier: Carrier) -> f64 {
    let timing = Timing::new(Standard::A, Standard::A.band(), Preamble::Long);
    let mac = MacConfig::new(Standard::A, timing, Mode::Ofdm(rate));
    let exchange =
        |packet| access(&mac) + airtime(&mac, len::mpdu(packet, false)) + response(&mac, len::ACK);
    let both = match carrier {
        Carrier::Udp => 2.0 * exchange(PACKET),
        Carrier::Tcp => 2.0 * exchange(PACKET) + exchange(ACK),
        // Every second link acknowledgement carries one.
        Carrier::Hack(bytes) => {
            2.0 * exchange(PACKET) - response(&mac, len::ACK) + response(&mac, len::ACK + bytes)
        }
    };
    2.0 * carrier.payload() * 8.0 / both / 1e6
}

/// Goodput of UDP over 802.11a at 54 Mbit/s, Mbit/s.
pub(super) fn legacy_udp_54() -> f64 {
    legacy(OfdmRate::R54, Carrier::Udp)
}

/// Length of an A-MPDU of `frames` packets, bytes.
fn ampdu(packet: u32, frames: u32) -> u32 {
    let mpdu = len::mpdu(packet, true);
    (0..frames).fold(0, |before, _| len::ampdu(before, mpdu))
}

/// The radio of 802.11n with this MCS, 0 to 31.
pub(super) fn mac_n(mcs: u8) -> Option<MacConfig> {
    let timing = Timing::new(Standard::N, Standard::N.band(), Preamble::Long);
    let mode = HtMode::new(mcs, Width::W40, GuardInterval::Ns400).ok()?;
    Some(MacConfig::new(Standard::N, timing, Mode::Ht(mode)))
}

/// Most packets of an A-MPDU.
fn batch(mac: &MacConfig) -> u32 {
    let fits = |frames: &u32| {
        let psdu = ampdu(PACKET, *frames);
        psdu <= mac.ampdu.bytes && mac.timing.airtime(mac.data_mode, psdu as usize) <= LONGEST
    };
    (1..=u32::from(mac.ampdu.frames))
        .take_while(fits)
        .last()
        .unwrap_or(1)
}

/// Goodput of 802.11n, Mbit/s.
pub(super) fn aggregated(mac: &MacConfig, carrier: Carrier) -> f64 {
    let frames = batch(mac);
    let acks = frames.div_ceil(2);
    let data = access(mac) + airtime(mac, ampdu(PACKET, frames));
    let time = match carrier {
        Carrier::Udp => data + response(mac, len::BLOCK_ACK),
        Carrier::Tcp => {
            let (psdu, answer) = match acks {
                1 => (len::mpdu(ACK, true), len::ACK),
                _ => (ampdu(ACK, acks), len::BLOCK_ACK),
            };
            let acknowledging = access(mac) + airtime(mac, psdu) + response(mac, answer);
            data + response(mac, len::BLOCK_ACK) + acknowledging
        }
        // Half as many as segments on average, so not rounded up.
        Carrier::Hack(bytes) => {
            let carried = (f64::from(frames) / 2.0 * f64::from(bytes)).ceil() as u32;
            data + response(mac, len::BLOCK_ACK + carried)
        }
    };
    f64::from(frames) * carrier.payload() * 8.0 / time / 1e6
}

/// Gain of TCP/HACK over TCP, percent.
fn gain(tcp: f64, hack: f64) -> f64 {
    100.0 * (hack / tcp - 1.0)
}

/// Rate, Mbit/s, and the reference goodput of UDP, TCP and TCP/HACK.
const LEGACY_REFERENCE: [(OfdmRate, [f64; 3]); 8] = [
    (OfdmRate::R6, [5.27, 4.91, 5.22]),
    (OfdmRate::R9, [7.60, 6.97, 7.53]),
    (OfdmRate::R12, [9.83, 8.91, 9.74]),
    (OfdmRate::R18, [13.80, 12.21, 13.65]),
    (OfdmRate::R24, [17.28, 15.01, 17.14]),
    (OfdmRate::R36, [23.11, 19.39, 22.92]),
    (OfdmRate::R48, [27.68, 22.62, 27.45]),
    (OfdmRate::R54, [29.93, 24.22, 29.68]),
];

/// MCS, and the same.
const AGGREGATED_REFERENCE: [(u8, [f64; 3]); 11] = [
    (0, [13.3, 12.1, 13.2]),
    (1, [27.1, 24.8, 26.8]),
    (2, [40.7, 37.4, 40.1]),
    (3, [54.4, 50.2, 53.8]),
    (4, [81.6, 75.3, 80.5]),
    (5, [108.9, 100.6, 107.2]),
    (6, [122.3, 112.9, 120.5]),
    (7, [135.3, 124.2, 133.2]),
    (15, [256.2, 224.9, 250.5]),
    (23, [363.0, 305.6, 352.8]),
    (31, [460.3, 374.8, 445.0]),
];

/// A row of a figure: the rate, ours and the reference.
struct Row {
    rate: f64,
    ours: [f64; 3],
    reference: [f64; 3],
}

impl Row {
    fn gain(&self) -> f64 {
        gain(self.ours[1], self.ours[2])
    }
}

fn legacy_rows() -> Vec<Row> {
    LEGACY_REFERENCE
        .map(|(rate, reference)| Row {
            rate: rate.rate().bits_per_sec() as f64 / 1e6,
            ours: Carrier::ALL.map(|carrier| legacy(rate, carrier)),
            reference,
        })
        .into()
}

fn aggregated_rows() -> Vec<Row> {
    AGGREGATED_REFERENCE
        .into_iter()
        .filter_map(|(mcs, reference)| {
            let mac = mac_n(mcs)?;
            Some(Row {
                rate: mac.data_mode.rate().bits_per_sec() as f64 / 1e6,
                ours: Carrier::ALL.map(|carrier| aggregated(&mac, carrier)),
                reference,
            })
        })
        .collect()
}

/// The claim that all of `rows` are within 1 % of the reference.
fn agrees(rows: &[Row]) -> Claim {
    let off = |row: &Row| {
        let pairs = row.ours.iter().zip(row.reference);
        let off = pairs.map(|(ours, reference)| 100.0 * (ours / reference - 1.0).abs());
        off.fold(0.0, f64::max)
    };
    let worst = rows.iter().map(off).fold(0.0, f64::max);
    Claim::new(
        "The closed form is within 1 % of an independent one, at every rate and for UDP, TCP and TCP/HACK",
        "–",
        format!("at most {worst:.2} % off"),
        !rows.is_empty() && worst <= 1.0,
    )
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "rate, Mbit/s",
        "UDP",
        "TCP",
        "TCP/HACK",
        "gain, %",
        "reference: UDP",
        "TCP",
        "TCP/HACK",
    ]);
    for row in rows {
        let [a, b, c] = row.ours.map(format_number);
        let [x, y, z] = row.reference.map(format_number);
        table.row([
            format_number(row.rate),
            a,
            b,
            c,
            format_number(row.gain()),
            x,
            y,
            z,
        ]);
    }
    table
}

fn chart(id: &str, standard: &str, rows: &[Row]) -> tack_plot::Svg {
    let lines = Carrier::ALL
        .iter()
        .enumerate()
        .map(|(index, carrier)| Line {
            name: carrier.name().into(),
            points: rows.iter().map(|row| (row.rate, row.ours[index])).collect(),
            whiskers: Vec::new(),
            colour: index,
            stroke: Stroke::Solid,
        });
    let last = rows.last();
    LineChart {
        id: format!("plot-{id}"),
        title: format!("Theoretical goodput over {standard} by rate"),
        description: format!(
            "At the highest rate UDP, TCP and TCP/HACK reach {} Mbit/s.",
            last.map_or_else(String::new, |row| row.ours.map(format_number).join(", "))
        ),
        x_label: "rate of data frames, Mbit/s".into(),
        y_label: "goodput, Mbit/s".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        lines: lines.collect(),
    }
    .to_svg()
}

fn reduce_legacy(_: &Depth, _: &Results) -> Outcome {
    let rows = legacy_rows();
    let (udp, best) = rows
        .last()
        .map_or((f64::NAN, f64::NAN), |row| (row.ours[0], row.gain()));
    let grows = rows.windows(2).all(|pair| pair[1].gain() > pair[0].gain());
    let claims = vec![
        agrees(&rows),
        Claim::new(
            "UDP would reach 30.2 Mbit/s at 54 Mbit/s (section 4.2), to 1 %",
            "30.2 Mbit/s",
            format!("{} Mbit/s", format_number(udp)),
            (udp / 30.2 - 1.0).abs() <= 0.01,
        ),
        Claim::new(
            "The gain of TCP/HACK grows with the rate",
            "grows",
            format!("{} % at 54 Mbit/s", format_number(best)),
            grows && best > 0.0,
        ),
    ];
    Outcome {
        plots: vec![plot(
            chart("hack1a", "802.11a", &rows),
            "Goodput without collisions and losses over 802.11a.",
        )],
        claims,
        numbers: table(&rows),
        ..Outcome::default()
    }
}

fn reduce_aggregated(_: &Depth, _: &Results) -> Outcome {
    let rows = aggregated_rows();
    let gain_at = |rate: f64| {
        let found = rows.iter().find(|row| (row.rate - rate).abs() < 0.5);
        found.map_or(f64::NAN, Row::gain)
    };
    let slow: Vec<f64> = rows
        .iter()
        .filter(|row| row.rate < 100.0)
        .map(Row::gain)
        .collect();
    let mean = slow.iter().sum::<f64>() / slow.len() as f64;
    let (at_150, at_600) = (gain_at(150.0), gain_at(600.0));
    let single = single_frame_efficiency();
    let shown = |value: f64| format!("{value:.1} %");
    let claims = vec![
        agrees(&rows),
        Claim::new(
            "TCP/HACK gains 8 % on average below 100 Mbit/s, to 1 percentage point",
            "8 %",
            shown(mean),
            (mean - 8.0).abs() <= 1.0,
        ),
        Claim::new(
            "It gains 7 % at 150 Mbit/s, to 1 percentage point",
            "7 %",
            shown(at_150),
            (at_150 - 7.0).abs() <= 1.0,
        ),
        Claim::new(
            "It gains 20 % at 600 Mbit/s, to 2 percentage points",
            "20 %",
            shown(at_600),
            (at_600 - 20.0).abs() <= 2.0,
        ),
        Claim::new(
            "Single frames at 600 Mbit/s would reach 9 % of the rate, to 0.5 percentage points",
            "9 %",
            shown(100.0 * single),
            (100.0 * single - 9.0).abs() <= 0.5,
        ),
    ];
    let mut further = Table::new([
        "bytes an acknowledgement",
        "gain at 150, %",
        "gain at 600, %",
    ]);
    further.part = "the gain by the length of a compressed acknowledgement";
    for bytes in [0, 3, 4, 6, 10] {
        let gain_of = |mcs| {
            mac_n(mcs).map_or(f64::NAN, |mac| {
                let tcp = aggregated(&mac, Carrier::Tcp);
                gain(tcp, aggregated(&mac, Carrier::Hack(bytes)))
            })
        };
        further.row([
            bytes.to_string(),
            format_number(gain_of(7)),
            format_number(gain_of(31)),
        ]);
    }
    Outcome {
        plots: vec![plot(
            chart("hack1b", "802.11n", &rows),
            "Goodput without collisions and losses over 802.11n, 40 MHz with one to four streams.",
        )],
        claims,
        numbers: table(&rows),
        further: vec![further],
        ..Outcome::default()
    }
}

/// What frames of 1,500 bytes sent one by one make of 600 Mbit/s, 0 to 1.
fn single_frame_efficiency() -> f64 {
    mac_n(31).map_or(f64::NAN, |mac| {
        let time = access(&mac) + airtime(&mac, len::mpdu(PACKET, true)) + response(&mac, len::ACK);
        f64::from(PACKET) * 8.0 / time / 600e6
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn every_claim_holds_but_what_the_paper_leaves_open() {
        for figure in [LEGACY, AGGREGATED] {
            let outcome = figure.reduce(&Depth::quick(), &Results::default());
            for claim in outcome.claims {
                assert_eq!(
                    claim.verdict(),
                    Verdict::Pass,
                    "{} {}",
                    claim.words,
                    claim.ours
                );
            }
        }
    }

    /// The interframe space and mean backoff that the paper names: 110.5 us.
    #[test]
    fn an_access_of_best_effort_costs_what_the_paper_says() {
        let mac = mac_n(7).unwrap();
        assert!((access(&mac) * 1e6 - 110.5).abs() < 1e-6);
        assert_eq!(batch(&mac), 42);
    }
}
