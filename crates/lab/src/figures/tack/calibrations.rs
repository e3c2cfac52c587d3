//! The settings of a radio, or of the air around it, that explain the paper's baselines (figure 7).
//! The paper gives a goodput of UDP for each of its devices and no parameters, and several explain
//! each goodput. How much fewer acknowledgements gain depends on which: figures 1, 9(a) and 10(a)
//! show all of them.
//!
//! The rule for the one that is shown first, which is also the preset that all figures have: of
//! those within 2 % of the paper's baseline, one that changes the radio alone and leaves the air
//! ideal; of these one with the fewest keys that are not the standard's defaults; of these the one
//! nearest the baseline. Figure 7 checks it.

use tack_plot::{Group, ValueBars, format_number};

use crate::Values;
use crate::claim::Claim;
use crate::figure::{Depth, Plot, Table};
use crate::figures::presentation::bar;
use crate::figures::readings::mbps;
use crate::figures::tack::links::udp_tool;
use crate::figures::tack::links::{LINKS, Link};
use crate::point::{Cell, Point};
use crate::results::Results;
use tack_stats::Estimate;

/// Where a calibration changes something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::figures) enum Affects {
    /// In the radio.
    Radio,
    /// In the air: noise, neighbours.
    Air,
}

/// Settings that explain a baseline.
#[derive(Clone, Copy, Debug)]
pub(in crate::figures) struct Calibration {
    pub(in crate::figures) name: &'static str,
    /// What is set besides the preset.
    set: &'static [&'static str],
    affects: Affects,
    /// Keys that are not at the standard's defaults.
    keys: usize,
}

const fn radio(keys: usize, name: &'static str, set: &'static [&'static str]) -> Calibration {
    Calibration {
        name,
        set,
        affects: Affects::Radio,
        keys,
    }
}

const fn air(keys: usize, name: &'static str, set: &'static [&'static str]) -> Calibration {
    Calibration {
        affects: Affects::Air,
        ..radio(keys, name, set)
    }
}

/// Of each of [`LINKS`], the preset first. Limits of aggregates, noise and load were chosen for the
/// baseline; all else has values that the standard has as defaults somewhere.
const ALL: [&[Calibration]; 4] = [
    &[
        radio(2, "short preamble, ACKs at 11 Mbit/s", &[]),
        radio(
            2,
            "short preamble, ACKs at 5.5 Mbit/s",
            &["wlan.control_rate=5.5Mbps"],
        ),
    ],
    &[
        radio(1, "CTS to oneself at 6 Mbit/s", &[]),
        radio(
            2,
            "CTS to oneself at 12 Mbit/s",
            &["wlan.protection=cts_to_self", "wlan.protection_rate=12Mbps"],
        ),
        radio(
            2,
            "ACKs at 6 Mbit/s, AIFSN 7",
            &[
                "wlan.protection=off",
                "wlan.control_rate=6Mbps",
                "wlan.aifsn=7",
            ],
        ),
        air(
            1,
            "5.3 % of frames lost",
            &["wlan.protection=off", "wlan.frame_error_rate=0.053"],
        ),
        air(
            2,
            "ACKs at 6 Mbit/s, 4 % of frames lost",
            &[
                "wlan.protection=off",
                "wlan.control_rate=6Mbps",
                "wlan.frame_error_rate=0.04",
            ],
        ),
        air(
            2,
            "10 neighbours, 11 % load",
            &[
                "wlan.protection=off",
                "wlan.contenders=10",
                "wlan.contender_rate=383kbps",
            ],
        ),
        air(
            2,
            "1 neighbour with 4.2 Mbit/s",
            &[
                "wlan.protection=off",
                "wlan.contenders=1",
                "wlan.contender_rate=4188kbps",
            ],
        ),
        air(
            1,
            "white noise, long frames lost",
            &["wlan.protection=off", "wlan.error_model.snr_db=22.6"],
        ),
    ],
    &[
        radio(1, "A-MPDUs of 21,700 bytes", &[]),
        radio(
            2,
            "RTS, A-MPDUs of 20 frames",
            &[
                "wlan.ampdu_max_bytes=65535",
                "wlan.rts_threshold=1B",
                "wlan.ampdu_max_frames=20",
            ],
        ),
        radio(
            2,
            "CTS to oneself, A-MPDUs of 18 frames",
            &[
                "wlan.ampdu_max_bytes=65535",
                "wlan.protection=cts_to_self",
                "wlan.ampdu_max_frames=18",
            ],
        ),
        radio(
            2,
            "ACKs at 6 Mbit/s, A-MPDUs of 16 frames",
            &[
                "wlan.ampdu_max_bytes=65535",
                "wlan.control_rate=6Mbps",
                "wlan.ampdu_max_frames=16",
            ],
        ),
        radio(
            2,
            "CWmin 31, A-MPDUs of 19 frames",
            &[
                "wlan.ampdu_max_bytes=65535",
                "wlan.cw_min=31",
                "wlan.cw_max=1023",
                "wlan.ampdu_max_frames=19",
            ],
        ),
        air(
            1,
            "11.8 % of frames lost",
            &["wlan.ampdu_max_bytes=65535", "wlan.frame_error_rate=0.118"],
        ),
        air(
            2,
            "10 neighbours, 5.6 % load",
            &[
                "wlan.ampdu_max_bytes=65535",
                "wlan.contenders=10",
                "wlan.contender_rate=589kbps",
            ],
        ),
        air(
            2,
            "1 neighbour with 17.3 Mbit/s",
            &[
                "wlan.ampdu_max_bytes=65535",
                "wlan.contenders=1",
                "wlan.contender_rate=17300kbps",
            ],
        ),
        air(
            1,
            "white noise, long frames lost",
            &[
                "wlan.ampdu_max_bytes=65535",
                "wlan.error_model.snr_db=23.67",
            ],
        ),
    ],
    &[
        radio(1, "A-MPDUs of 55,600 bytes", &[]),
        radio(
            1,
            "ACKs at 6 Mbit/s",
            &["wlan.ampdu_max_bytes=65535", "wlan.control_rate=6Mbps"],
        ),
        radio(
            3,
            "RTS, A-MPDUs of 52 frames",
            &[
                "wlan.ampdu_max_bytes=1048575",
                "wlan.rts_threshold=1B",
                "wlan.ampdu_max_frames=52",
            ],
        ),
        air(
            1,
            "1.5 % of frames lost",
            &["wlan.ampdu_max_bytes=65535", "wlan.frame_error_rate=0.015"],
        ),
    ],
];

/// How far from the baseline something still explains it.
const TOLERANCE: f64 = 0.02;

impl Calibration {
    /// `cell`, which has the link's preset, with this calibration.
    pub(in crate::figures) fn of(&self, cell: Cell) -> Cell {
        self.set
            .iter()
            .fold(cell, |cell, setting| cell.set(*setting))
    }
}

/// Those of a link, the preset first.
pub(in crate::figures) fn of(link: Link) -> &'static [Calibration] {
    let index = LINKS.iter().position(|other| other.preset == link.preset);
    index.map_or(&[], |index| ALL[index])
}

/// Seeds of runs with a calibration that is not the preset.
fn seeds(depth: &Depth) -> std::ops::RangeInclusive<u64> {
    depth.seeds(1, 5)
}

fn udp(depth: &Depth, link: Link, calibration: &Calibration) -> Cell {
    calibration.of(udp_tool(depth, link, 0))
}

/// Runs of every calibration: UDP for the baseline, and the pair of cells whose gain is looked at.
pub(in crate::figures) fn plan(depth: &Depth, pair: impl Fn(Link) -> [Cell; 2]) -> Vec<Point> {
    let mut points = Vec::new();
    for link in LINKS {
        for calibration in of(link) {
            let [first, second] = pair(link);
            for cell in [udp_tool(depth, link, 0), first, second] {
                let cell = calibration.of(cell);
                points.extend(seeds(depth).map(|seed| cell.at(seed)));
            }
        }
    }
    points
}

/// Runs for the baselines alone.
pub(in crate::figures) fn baseline_plan(depth: &Depth) -> Vec<Point> {
    let mut points = Vec::new();
    for link in LINKS {
        for calibration in of(link) {
            let cell = udp(depth, link, calibration);
            points.extend(seeds(depth).map(|seed| cell.at(seed)));
        }
    }
    points
}

fn baseline(depth: &Depth, results: &Results, link: Link, calibration: &Calibration) -> Estimate {
    results.estimate(&udp(depth, link, calibration), seeds(depth), mbps)
}

/// How far a calibration is from the paper's baseline, as a share of it.
fn distance(depth: &Depth, results: &Results, link: Link, calibration: &Calibration) -> f64 {
    (baseline(depth, results, link, calibration).mean / link.baseline - 1.0).abs()
}

/// That the preset of a link is the calibration that the rule picks.
pub(in crate::figures) fn rule_claim(depth: &Depth, results: &Results, link: Link) -> Claim {
    let far = |calibration: &Calibration| distance(depth, results, link, calibration);
    let picked = pick(of(link).iter().map(|one| (one, far(one))));
    let explaining = of(link).iter().filter(|one| far(one) <= TOLERANCE).count();
    Claim::new(
        format!(
            "{}: the preset is the calibration that the rule picks from those within 2 %: radio \
                before medium, fewest keys, nearest",
            link.name
        ),
        "–",
        format!(
            "{explaining} of {} explain it; picked: {}",
            of(link).len(),
            picked.map_or("none", |one| one.name)
        ),
        picked.is_some_and(|one| one.name == of(link)[0].name)
            && of(link).iter().all(|one| far(one).is_finite()),
    )
    .calibrated()
}

/// The rule: radio before air, few keys before many, then the nearest; each with its distance from
/// the baseline.
fn pick<'a>(all: impl Iterator<Item = (&'a Calibration, f64)>) -> Option<&'a Calibration> {
    all.filter(|(_, far)| *far <= TOLERANCE)
        .min_by(|(a, far_a), (b, far_b)| {
            let order = (a.affects, a.keys).cmp(&(b.affects, b.keys));
            order.then(far_a.total_cmp(far_b))
        })
        .map(|(calibration, _)| calibration)
}

/// The gain of fewer acknowledgements with one calibration.
#[derive(Clone, Copy, Debug)]
struct Gain {
    calibration: &'static str,
    affects: Affects,
    /// Percent.
    gain: Estimate,
}

/// The gains of fewer acknowledgements, percent, with each calibration that explains a link's
/// baseline.
#[derive(Clone, Debug)]
pub(in crate::figures) struct Gains {
    link: Link,
    each: Vec<Gain>,
}

impl Gains {
    /// `pair` is the cells of many and of few acknowledgements with the preset, whose gain is
    /// `preset`.
    pub(in crate::figures) fn new(
        depth: &Depth,
        results: &Results,
        link: Link,
        pair: &[Cell; 2],
        preset: Estimate,
    ) -> Self {
        let explains = |one: &&Calibration| distance(depth, results, link, one) <= TOLERANCE;
        let gain = |one: &Calibration| {
            let with = |gain| Gain {
                calibration: one.name,
                affects: one.affects,
                gain,
            };
            if one.set.is_empty() {
                return with(preset);
            }
            let [first, second] = pair.each_ref().map(|cell| one.of(cell.clone()));
            let read = |many: &Values, few: &Values| mbps(few) / mbps(many) - 1.0;
            let gain = results.paired([&first, &second], seeds(depth), read);
            with(gain.times(100.0))
        };
        Self {
            link,
            each: of(link).iter().filter(explains).map(gain).collect(),
        }
    }

    /// Least and most of the means; no numbers where there are none.
    pub(in crate::figures) fn range(&self) -> (f64, f64) {
        let means = || self.each.iter().map(|one| one.gain.mean);
        if self.each.is_empty() || means().any(f64::is_nan) {
            return (f64::NAN, f64::NAN);
        }
        (
            means().fold(f64::INFINITY, f64::min),
            means().fold(f64::NEG_INFINITY, f64::max),
        )
    }

    /// `15 to 25.1 % over 7 calibrations`.
    pub(in crate::figures) fn text(&self) -> String {
        let (least, most) = self.range();
        format!(
            "{} to {} % over {} calibrations",
            format_number(least),
            format_number(most),
            self.each.len()
        )
    }
}

/// The table of all gains.
pub(in crate::figures) fn table(all: &[Gains]) -> Table {
    let mut table = Table {
        part: "gains by calibration",
        ..Table::new(["link", "calibration", "changes", "gain, %"])
    };
    for gains in all {
        for one in &gains.each {
            let changes = match one.affects {
                Affects::Radio => "the radio",
                Affects::Air => "the air",
            };
            table.row([
                gains.link.name.into(),
                one.calibration.into(),
                changes.into(),
                one.gain.to_string(),
            ]);
        }
    }
    table
}

/// The colour of a calibration depends on what it changes.
const PRESET: usize = 1;
const RADIO: usize = 5;
const AIR: usize = 4;

/// The plot of all gains; `paper` has the paper's of each link, where it gives them.
pub(in crate::figures) fn plot(
    id: &str,
    title: &str,
    all: &[Gains],
    paper: Option<[f64; 4]>,
) -> Plot {
    let mut series = Vec::new();
    let mut groups = Vec::new();
    for (index, gains) in all.iter().enumerate() {
        let mut values = Vec::new();
        for (number, one) in gains.each.iter().enumerate() {
            let colour = match (number, one.affects) {
                (0, _) => PRESET,
                (_, Affects::Radio) => RADIO,
                (_, Affects::Air) => AIR,
            };
            values.push(bar(series.len(), one.gain, paper.map(|paper| paper[index])));
            series.push((one.calibration.to_owned(), colour));
        }
        groups.push(Group {
            name: gains.link.name.into(),
            values,
        });
    }
    let texts: Vec<_> = all
        .iter()
        .map(|gains| format!("{}: {}.", gains.link.name, gains.text()))
        .collect();
    let svg = ValueBars {
        id: id.into(),
        title: title.into(),
        description: texts.join(" "),
        label: "gain, %".into(),
        legend: [
            ("the preset", PRESET),
            ("another radio", RADIO),
            ("another medium", AIR),
        ]
        .map(|(name, colour)| (name.into(), colour))
        .into(),
        series,
        reference: "paper".into(),
        groups,
        ..ValueBars::default()
    }
    .to_svg();
    crate::figures::presentation::plot(
        svg,
        "The gain with each calibration that explains the paper's UDP baseline within 2 %. The first of each link is the preset, \
         picked by rule (figure 7), not by its gain.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_looks_at_place_keys_and_distance_alone() {
        let all = [
            radio(2, "two keys", &[]),
            air(1, "noise", &[]),
            radio(1, "far", &[]),
            radio(1, "near", &[]),
            radio(0, "does not explain", &[]),
        ];
        let distances = [0.0, 0.0, 0.015, 0.01, 0.03];
        let picked = pick(all.iter().zip(distances)).map(|one| one.name);
        assert_eq!(picked, Some("near"));
        assert!(pick(all.iter().map(|one| (one, f64::NAN))).is_none());
    }

    #[test]
    fn every_calibration_is_a_scenario() {
        let folder = tempfile::tempdir().unwrap();
        for point in baseline_plan(&Depth::quick()) {
            point.place(folder.path()).unwrap();
            point.scenario(folder.path()).unwrap();
        }
    }

    #[test]
    fn presets_stand_first_and_have_the_fewest_keys_of_their_place() {
        for link in LINKS {
            let all = of(link);
            assert!(all.len() >= 2, "{}", link.name);
            assert!(all[0].set.is_empty() && all[0].affects == Affects::Radio);
            let radios = all.iter().filter(|one| one.affects == Affects::Radio);
            assert_eq!(radios.map(|one| one.keys).min(), Some(all[0].keys));
        }
    }
}
