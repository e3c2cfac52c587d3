//! Figures 6, 8, 9 and 10: goodput of uploads by the number of stations.

use tack_plot::{Line, LineChart, Scale, Stroke, format_number};

use super::{Setup, difference, total};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{plot, tenths};
use crate::figures::readings::{by_means, is_above};
use crate::point::Point;
use crate::results::Results;
use crate::stats::Estimate;

pub(in crate::figures) const PLAIN: Figure = Figure {
    paper: Paper::Filter,
    id: "filter6",
    title: "Goodput with and without ACK filtering",
    about: "Uploads of n stations over 802.11b at 11 Mbit/s; the paper's filter replaces acknowledgements that wait in the access \
            point's queue. The paper does not state the window, on which the crossing depends: an unfiltered queue thins \
            acknowledgements by itself where n windows of them overflow it. It is 64 segments here; a second table has other windows.",
    plan: plain_plan,
    reduce: plain_reduce,
};

pub(in crate::figures) const WINDOWS: Figure = Figure {
    paper: Paper::Filter,
    id: "filter8",
    title: "Larger contention windows",
    about: "The same with a smallest contention window of 31, 63, 127 and 255 slots at every radio; queues of 250 packets.",
    plan: windows_plan,
    reduce: windows_reduce,
};

pub(in crate::figures) const MIMD: Figure = Figure {
    paper: Paper::Filter,
    id: "filter9",
    title: "A contention window that doubles and halves",
    about: "The same with a contention window that doubles after each failure and halves after each success, down to 31 slots; queues of \
            250 packets.",
    plan: mimd_plan,
    reduce: mimd_reduce,
};

pub(in crate::figures) const DELAYED: Figure = Figure {
    paper: Paper::Filter,
    id: "filter10",
    title: "Delayed acknowledgements",
    about: "The same with acknowledgements for every second segment (delayed ACK), by the smallest contention window; queues of 250 packets.",
    plan: delayed_plan,
    reduce: delayed_reduce,
};

fn counts(depth: &Depth) -> &'static [usize] {
    depth.pick(
        &[2, 5, 10, 13, 20, 30],
        &[2, 4, 6, 8, 10, 12, 13, 14, 16, 18, 20, 25, 30],
    )
}

const QUEUES: [u32; 2] = [50, 250];
const SENSITIVITY: [u32; 3] = [20, 42, 128];

/// A line of a plot: its name, and its set-up for so many stations.
struct Series {
    name: String,
    setup: Box<dyn Fn(usize) -> Setup>,
}

impl Series {
    fn new(name: impl Into<String>, setup: impl Fn(usize) -> Setup + 'static) -> Self {
        Self {
            name: name.into(),
            setup: Box::new(setup),
        }
    }

    fn points(&self, depth: &Depth) -> Vec<Point> {
        counts(depth)
            .iter()
            .flat_map(|count| (self.setup)(*count).points(depth).collect::<Vec<_>>())
            .collect()
    }
}

fn plan(depth: &Depth, series: &[Series]) -> Vec<Point> {
    series
        .iter()
        .flat_map(|series| series.points(depth))
        .collect()
}

/// The plot and the table of all series.
fn show(depth: &Depth, results: &Results, id: &str, title: &str, series: &[Series]) -> Outcome {
    let mut numbers = Table {
        head: std::iter::once("stations".into())
            .chain(series.iter().map(|series| series.name.clone()))
            .collect(),
        ..Table::default()
    };
    let mut lines: Vec<Line> = series
        .iter()
        .enumerate()
        .map(|(index, series)| Line {
            name: series.name.clone(),
            colour: index % tack_plot::COLOURS,
            stroke: if index < tack_plot::COLOURS {
                Stroke::Solid
            } else {
                Stroke::Dotted
            },
            ..Line::default()
        })
        .collect();
    for count in counts(depth) {
        let mut row = vec![count.to_string()];
        for (series, line) in series.iter().zip(&mut lines) {
            let goodput = (series.setup)(*count).goodput(depth, results);
            row.push(goodput.to_string());
            let x = *count as f64;
            line.points.push((x, goodput.mean));
            if goodput.half_width > 0.0 {
                let ends = (
                    goodput.mean - goodput.half_width,
                    goodput.mean + goodput.half_width,
                );
                line.whiskers.push((x, ends.0, ends.1));
            }
        }
        numbers.rows.push(row);
    }
    let best = |line: &Line| line.points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    let svg = LineChart {
        id: format!("plot-{id}"),
        title: title.into(),
        description: lines
            .iter()
            .map(|line| {
                format!(
                    "{}: at most {} Mbit/s.",
                    line.name,
                    format_number(best(line))
                )
            })
            .collect::<Vec<_>>()
            .join(" "),
        x_label: "stations that upload".into(),
        y_label: "goodput of all, Mbit/s".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        lines,
    }
    .to_svg();
    Outcome {
        plots: vec![plot(svg, title)],
        numbers,
        ..Outcome::default()
    }
}

/// What filtering adds to the goodput, Mbit/s.
fn gain(depth: &Depth, results: &Results, setup: Setup) -> Estimate {
    let plain = Setup {
        is_filtered: false,
        ..setup
    };
    difference(depth, results, [plain, setup], total)
}

fn filtered(stations: usize, queue: u32) -> Setup {
    Setup::new(stations, queue, true)
}

fn plain_series() -> Vec<Series> {
    QUEUES
        .into_iter()
        .flat_map(|queue| {
            [
                Series::new(format!("unmodified, q = {queue}"), move |n| {
                    Setup::new(n, queue, false)
                }),
                Series::new(format!("filtered, q = {queue}"), move |n| {
                    filtered(n, queue)
                }),
            ]
        })
        .collect()
}

fn sensitivity() -> Vec<Series> {
    SENSITIVITY
        .into_iter()
        .flat_map(|window| {
            [false, true].map(|is_filtered| {
                let name = if is_filtered {
                    "filtered"
                } else {
                    "unmodified"
                };
                Series::new(format!("{name}, {window} segments"), move |n| Setup {
                    window,
                    ..Setup::new(n, 250, is_filtered)
                })
            })
        })
        .collect()
}

fn plain_plan(depth: &Depth) -> Vec<Point> {
    let mut points = plan(depth, &plain_series());
    points.extend(plan(depth, &sensitivity()));
    points
}

/// From how many stations on filtering is behind, and the number before it; by means.
fn crossing(gains: &[(usize, Estimate)]) -> Option<(usize, usize)> {
    gains
        .windows(2)
        .find(|pair| pair[0].1.mean > 0.0 && pair[1].1.mean <= 0.0)
        .map(|pair| (pair[0].0, pair[1].0))
}

fn plain_reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = show(
        depth,
        results,
        "filter6",
        "Goodput of uploads with and without filtering, by the number of stations",
        &plain_series(),
    );
    let gains: Vec<_> = counts(depth)
        .iter()
        .map(|count| (*count, gain(depth, results, filtered(*count, 250))))
        .collect();
    let at = |wanted: usize| {
        let found = gains.iter().find(|(count, _)| *count == wanted);
        found.map_or(Estimate::of(&[]), |(_, gain)| *gain)
    };
    let crossing = crossing(&gains);
    let missing = gains.iter().any(|(_, gain)| gain.mean.is_nan());
    outcome.claims = vec![
        Claim::new(
            format!(
                "Filtering is ahead for few stations (2 and 5), with q = 250{}",
                by_means(depth)
            ),
            "ahead",
            format!("by {} and {} Mbit/s", at(2), at(5)),
            is_above(depth, at(2), 0.0) && is_above(depth, at(5), 0.0),
        ),
        Claim::new(
            "The margin tapers off as the number of stations grows: smaller with 20 than with 2",
            "tapers off",
            format!("{} and {} Mbit/s", at(2), at(20)),
            at(20).mean < at(2).mean,
        ),
        Claim::new(
            "With q = 250 filtering falls behind from a critical number of stations on, between 8 and 20 of them with this window",
            "13",
            match crossing {
                Some((before, from)) => format!("between {before} and {from}"),
                None => "no crossing".into(),
            },
            !missing && crossing.is_some_and(|(before, from)| before >= 8 && from <= 20),
        ),
    ];
    let mut table = show(depth, results, "filter6-windows", "", &sensitivity()).numbers;
    table.part = "other windows, q = 250";
    outcome.further.push(table);
    outcome
}

const SIZES: [u32; 4] = [31, 63, 127, 255];

fn windows_series() -> Vec<Series> {
    [false, true]
        .into_iter()
        .flat_map(|is_filtered| {
            let name = if is_filtered {
                "filtered"
            } else {
                "unmodified"
            };
            SIZES.map(|cw_min| {
                Series::new(format!("{name}, CWmin {cw_min}"), move |n| Setup {
                    cw_min,
                    ..Setup::new(n, 250, is_filtered)
                })
            })
        })
        .collect()
}

fn windows_plan(depth: &Depth) -> Vec<Point> {
    plan(depth, &windows_series())
}

fn windows_reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = show(
        depth,
        results,
        "filter8",
        "Goodput by the smallest contention window",
        &windows_series(),
    );
    let ahead = |cw_min: u32| {
        let gains: Vec<_> = counts(depth)
            .iter()
            .map(|count| {
                let setup = Setup {
                    cw_min,
                    ..filtered(*count, 250)
                };
                (*count, gain(depth, results, setup))
            })
            .collect();
        let behind: Vec<_> = gains
            .iter()
            .filter(|(_, gain)| !is_above(depth, *gain, 0.0))
            .map(|(count, gain)| format!("{gain} with {count}"))
            .collect();
        let least = gains
            .iter()
            .map(|(_, gain)| gain.mean)
            .fold(f64::NAN, f64::min);
        let ours = if behind.is_empty() {
            format!("at least {} Mbit/s", format_number(least))
        } else {
            behind.join(", ")
        };
        Claim::new(
            format!(
                "With CWmin {cw_min} filtering outperforms the unmodified queue at every number of stations{}",
                by_means(depth)
            ),
            "outperforms",
            ours,
            behind.is_empty(),
        )
    };
    outcome.claims = vec![ahead(63), ahead(127)];
    let relaxed = |count: usize| {
        let setups = [31, 127].map(|cw_min| Setup {
            cw_min,
            ..filtered(count, 250)
        });
        difference(depth, results, setups, total)
    };
    outcome.claims.push(Claim::new(
        format!(
            "A larger window helps filtering where many contend: 127 against 31 slots with 20 stations{}",
            by_means(depth)
        ),
        "helps",
        format!("{} Mbit/s more", relaxed(20)),
        is_above(depth, relaxed(20), 0.0),
    ));
    outcome
}

fn mimd(stations: usize, is_filtered: bool) -> Setup {
    Setup {
        is_mimd: true,
        ..Setup::new(stations, 250, is_filtered)
    }
}

fn mimd_series() -> Vec<Series> {
    let window = |is_mimd, is_filtered| {
        move |n| Setup {
            is_mimd,
            window: 20,
            ..Setup::new(n, 250, is_filtered)
        }
    };
    vec![
        Series::new("unmodified, MIMD", |n| mimd(n, false)),
        Series::new("filtered, MIMD", |n| mimd(n, true)),
        Series::new("unmodified, standard", |n| Setup::new(n, 250, false)),
        Series::new("filtered, standard", |n| Setup::new(n, 250, true)),
        Series::new("unmodified, MIMD, 20 segments", window(true, false)),
        Series::new("filtered, MIMD, 20 segments", window(true, true)),
    ]
}

fn mimd_plan(depth: &Depth) -> Vec<Point> {
    plan(depth, &mimd_series())
}

fn mimd_reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = show(
        depth,
        results,
        "filter9",
        "Goodput with a contention window that doubles and halves",
        &mimd_series(),
    );
    let each: Vec<_> = counts(depth)
        .iter()
        .map(|count| {
            let goodput = mimd(*count, true).goodput(depth, results);
            (*count, goodput, gain(depth, results, mimd(*count, true)))
        })
        .collect();
    let least = each
        .iter()
        .map(|(_, goodput, _)| goodput.mean)
        .fold(f64::NAN, f64::min);
    let small = each.iter().min_by(|a, b| a.2.mean.total_cmp(&b.2.mean));
    let worse = {
        let setups = [Setup::new(20, 250, false), mimd(20, false)];
        difference(depth, results, setups, total)
    };
    let ahead = each.iter().all(|(_, _, gain)| is_above(depth, *gain, 0.0));
    let all = each.iter().all(|(_, goodput, _)| goodput.mean > 6.0);
    let more = each.iter().all(|(_, _, gain)| gain.mean > 1.0);
    let restored = {
        let setups = [Setup::new(20, 250, true), mimd(20, true)];
        difference(depth, results, setups, total)
    };
    // The paper's baseline: below 5 Mbit/s at every number of stations, where no queue overflows
    // and thins by itself.
    let small_window = |count: usize| {
        let setup = Setup {
            window: 20,
            ..mimd(count, true)
        };
        gain(depth, results, setup)
    };
    let ten = small_window(10);
    outcome.claims = vec![
        Claim::new(
            format!(
                "With MIMD filtering is ahead at every number of stations{}",
                by_means(depth)
            ),
            "ahead",
            each.iter()
                .map(|(count, _, gain)| format!("{count}: {gain}"))
                .collect::<Vec<_>>()
                .join(", "),
            ahead,
        ),
        Claim::new(
            "MIMD restores the gain that contention took from filtering: more goodput with 20 stations",
            "restored",
            format!("{restored} Mbit/s more"),
            is_above(depth, restored, 0.0),
        ),
        Claim::new(
            "The filtered goodput is always above 6 Mbit/s",
            "> 6 Mbit/s",
            format!("at least {} Mbit/s", format_number(least)),
            all,
        )
        .or(
            "Here payload counts. With 40 bytes of header for each segment, which ns-2 counts too, and windows of 20 segments it is above \
             6 Mbit/s from 5 stations on; two stations do not fill the medium.",
            counts(depth).iter().filter(|count| **count >= 5).all(|count| {
                let setup = Setup {
                    window: 20,
                    ..mimd(*count, true)
                };
                setup.goodput(depth, results).mean * 1_500.0 / 1_460.0 > 6.0
            }),
        ),
        Claim::new(
            "It outperforms the unmodified queue by more than 1 Mbit/s at every number of stations",
            "> 1 Mbit/s",
            small.map_or_else(String::new, |(count, _, gain)| {
                format!("{gain} Mbit/s with {count}")
            }),
            more,
        )
        .or(
            "The unmodified queue thins acknowledgements itself where n windows overflow it. With windows of 20 segments, which 250 \
             packets hold up to 12 stations, the gain with 10 stations is above 1 Mbit/s; the paper does not state its window.",
            ten.mean > 1.0,
        ),
        Claim::new(
            "MIMD makes the unmodified queue slightly worse for many stations: less goodput with 20",
            "slightly worse",
            format!("{worse} Mbit/s"),
            worse.mean < 0.0,
        ),
    ];
    outcome
}

fn delayed(stations: usize, cw_min: u32, is_filtered: bool) -> Setup {
    Setup {
        cw_min,
        is_delayed: true,
        ..Setup::new(stations, 250, is_filtered)
    }
}

fn delayed_series() -> Vec<Series> {
    let mut series: Vec<_> = [31, 63, 127]
        .into_iter()
        .map(|cw_min| {
            Series::new(format!("delayed, CWmin {cw_min}"), move |n| {
                delayed(n, cw_min, false)
            })
        })
        .collect();
    series.push(Series::new("delayed and filtered, CWmin 31", |n| {
        delayed(n, 31, true)
    }));
    series.push(Series::new("filtered, CWmin 31", |n| filtered(n, 250)));
    series.push(Series::new("unmodified, CWmin 31", |n| {
        Setup::new(n, 250, false)
    }));
    series
}

fn delayed_plan(depth: &Depth) -> Vec<Point> {
    plan(depth, &delayed_series())
}

fn delayed_reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = show(
        depth,
        results,
        "filter10",
        "Goodput with delayed acknowledgements",
        &delayed_series(),
    );
    let over = |count, cw_min| {
        let setups = [31, cw_min].map(|cw_min| delayed(count, cw_min, false));
        difference(depth, results, setups, total)
    };
    let (by_63, by_127) = (over(13, 63), over(13, 127));
    let worst = counts(depth)
        .iter()
        .map(|count| {
            let alone = filtered(*count, 250).goodput(depth, results).mean;
            let both = delayed(*count, 31, true).goodput(depth, results).mean;
            100.0 * (both / alone - 1.0).abs()
        })
        .fold(
            0.0,
            |worst: f64, off| if off.is_nan() { off } else { worst.max(off) },
        );
    outcome.claims = vec![
        Claim::new(
            format!(
                "A window of 63 slots is better than 31 with delayed acknowledgements, at 13 stations{}",
                by_means(depth)
            ),
            "better",
            format!("{by_63} Mbit/s"),
            is_above(depth, by_63, 0.0),
        )
        .or(
            format!(
                "There is too little contention at 13 stations with this window of 64 segments: at 20 stations it is {} Mbit/s.",
                over(20, 63)
            ),
            over(20, 63).mean > 0.0,
        )
        .undecided(by_63.low() <= 0.0 && by_63.high() > 0.0),
        Claim::new(
            "A window of 127 slots is worse than 31, at 13 stations",
            "worse",
            format!("{by_127} Mbit/s"),
            by_127.mean < 0.0,
        )
        .undecided(by_127.low() <= 0.0 && by_127.high() > 0.0),
        Claim::new(
            "Filtering with delayed acknowledgements has the goodput of filtering alone, to 5 % at every number of stations",
            "almost identical",
            format!("at most {} % apart", tenths(worst)),
            worst <= 5.0,
        ),
    ];
    outcome
}
