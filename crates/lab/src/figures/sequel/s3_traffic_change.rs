//! The sequel's traffic change: how a flow over a long fast path gives way, and takes back what
//! becomes free.

use std::ops::Range;

use tack_base::random::RandomStream;
use tack_plot::{Line, LineChart, Stroke, format_number};

use crate::Values;
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::plot;
use crate::figures::transport::Transport;
use crate::measure::{BEFORE, Measure};
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::TRAFFIC_CHANGE;
use tack_stats::Estimate;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "S3",
    title: "Cross traffic comes and goes at 1 Gbit/s and 120 ms (sequel)",
    about: "A flow has 1 Gbit/s, an RTT of 120 ms and a buffer of one bandwidth-delay product. \
        After 6 to 16 s, at random, datagrams at 500 Mbit/s arrive for 10 s (quick form: after 5 \
        to 7 s, for 5 s). BBR is version 1. It hardly reacts to losses. It remembers a rate for \
        ten round trips, which are twice as long while the buffer is full. If it loses a fifth \
        or more at a steady rate, it assumes a policer and keeps that rate for 48 round trips. \
        The sequel's numbers are not available, so TACK is compared with delayed ACK under the \
        same controller.",
    plan,
    reduce,
};

const TRANSPORTS: [Transport; 4] = [
    Transport::new("BBR with TACK", "bbr", "tack"),
    Transport::new("BBR realtime with TACK", "bbr:profile=realtime", "tack"),
    Transport::new("BBR with delayed ACK", "bbr", "delayed:2"),
    Transport::new("CUBIC with delayed ACK", "cubic", "delayed:2"),
];
/// Colours of their lines.
const COLOURS: [usize; 4] = [1, 3, 0, 4];

/// The link's payload rate, and what the datagrams (500 Mbit/s of payload) leave of it, Mbit/s.
const LINK: f64 = 1_000.0 * 1_448.0 / 1_500.0;
const LEFT: f64 = (1_000.0 - 500.0 * 1_500.0 / 1_472.0) * 1_448.0 / 1_500.0;
const ROUND_TRIP_S: f64 = 0.12;
/// Round trips of BBR's cycle of probing, over which rates are averaged.
const CYCLE: usize = 8;
/// Round trips looked at after the datagrams: as many as there are in both forms.
const AFTER: usize = 40;

fn point(depth: &Depth, transport: usize, seed: u64) -> Point {
    let Transport {
        congestion, ack, ..
    } = TRANSPORTS[transport];
    let mut random = RandomStream::new(3, "figure S3", seed);
    // BBR looks for the smallest RTT every ten seconds: the change comes at any phase of that.
    let (first, jitter, stay) = depth.pick((5_000, 2_000, 5_000), (6_000, 10_000, 10_000));
    let start = first + random.below(jitter);
    let stop = start + stay;
    Cell::new(&TRAFFIC_CHANGE)
        .set(format!("duration={}ms", stop + stay))
        .set(format!("flow.1.start={start}ms"))
        .set(format!("flow.1.stop={stop}ms"))
        .set(format!("flow.0.congestion={congestion}"))
        .set(format!("flow.0.ack={ack}"))
        .measuring(Measure::Change)
        .at(seed)
}

fn plan(depth: &Depth) -> Vec<Point> {
    (0..TRANSPORTS.len())
        .flat_map(|transport| {
            depth
                .seeds(3, 10)
                .map(move |seed| point(depth, transport, seed))
        })
        .collect()
}

/// One run, round trip by round trip.
struct Course {
    sent: Vec<f64>,
    arrived: Vec<f64>,
    acks: Vec<f64>,
    /// Round trips with the datagrams.
    present: Range<usize>,
}

impl Course {
    fn of(values: &Values) -> Option<Self> {
        let rounds = |prefix: &str| -> Vec<f64> {
            let numbered = values.numbered(prefix);
            numbered.into_iter().map(|(_, value)| value).collect()
        };
        let present = values.get("change.present");
        let from = BEFORE as usize;
        let course = Self {
            sent: rounds("sent."),
            arrived: rounds("arrived."),
            acks: rounds("acks."),
            present: from..from + present as usize,
        };
        let shortest = course.sent.len().min(course.arrived.len());
        let wanted = course.present.end + AFTER;
        (present > 0.0 && shortest >= wanted && course.acks.len() >= from).then_some(course)
    }

    /// Round trips until the sender has, for the last time, sent more than half again what is left
    /// to it: a probe for bandwidth adds a quarter.
    fn gives_way(&self) -> f64 {
        let sent = &self.sent[self.present.clone()];
        let last = sent.iter().rposition(|mbps| *mbps > 1.5 * LEFT);
        last.map_or(0, |round| round + 1) as f64
    }

    /// Round trips from the end of the datagrams until a cycle begins in which 90 % of the link are
    /// used; as many as were looked at when there is none.
    fn takes_back(&self) -> f64 {
        let after = &self.arrived[self.present.end..][..AFTER];
        let cycles = after.windows(CYCLE);
        let used = |cycle: &[f64]| mean(cycle) >= 0.9 * LINK;
        cycles.clone().position(used).unwrap_or(AFTER) as f64
    }

    /// Mean rates while the datagrams are there and after, of what there is for the flow, percent.
    fn used(&self) -> [f64; 2] {
        let during = mean(&self.arrived[self.present.clone()]) / LEFT;
        let after = mean(&self.arrived[self.present.end..][..AFTER]) / LINK;
        [100.0 * during, 100.0 * after]
    }

    /// Acknowledgements a round trip before the datagrams come.
    fn acks_before(&self) -> f64 {
        mean(&self.acks[..BEFORE as usize])
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A transport's numbers over all seeds.
struct Summary {
    gives_way: Estimate,
    takes_back: Estimate,
    used_during: Estimate,
    used_after: Estimate,
    /// Datagrams that arrived, percent.
    datagrams: Estimate,
    /// Data segments sent again, percent.
    repeated: Estimate,
    timeouts: Estimate,
    acks_before: Estimate,
    /// Acknowledgements for 100 data segments of the whole run.
    acks: Estimate,
}

impl Summary {
    fn of(depth: &Depth, results: &Results, transport: usize) -> Self {
        let estimate = |read: &dyn Fn(&Values) -> f64| {
            let values: Vec<f64> = depth
                .seeds(3, 10)
                .map(|seed| {
                    let values = results.get(&point(depth, transport, seed));
                    values.map_or(f64::NAN, read)
                })
                .collect();
            Estimate::of(&values)
        };
        let course = |read: fn(&Course) -> f64| {
            estimate(&|values| Course::of(values).map_or(f64::NAN, |course| read(&course)))
        };
        let per_hundred = |name: &str| {
            let segments = "flows.0.data_segments";
            estimate(&|values| 100.0 * values.get(name) / values.get(segments))
        };
        Self {
            gives_way: course(Course::gives_way),
            takes_back: course(Course::takes_back),
            used_during: course(|course| course.used()[0]),
            used_after: course(|course| course.used()[1]),
            datagrams: estimate(&|values| {
                let arrived = values.get("flows.1.bytes_delivered") / 1_472.0;
                100.0 * arrived / values.get("flows.1.data_segments")
            }),
            repeated: per_hundred("flows.0.retransmitted_segments"),
            timeouts: estimate(&|values| values.get("flows.0.rto_count")),
            acks_before: course(Course::acks_before),
            acks: per_hundred("flows.0.acks"),
        }
    }
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let all = [0, 1, 2, 3].map(|transport: usize| Summary::of(depth, results, transport));
    let mut outcome = Outcome {
        numbers: Table::new([
            "transport",
            "gives way, RTTs",
            "takes back, RTTs",
            "used of what is left, %",
            "used of the link after, %",
            "datagrams through, %",
            "sent again, %",
            "timeouts",
            "ACKs per RTT before",
            "ACKs per 100 segments",
        ]),
        ..Outcome::default()
    };
    for (Transport { name, .. }, summary) in TRANSPORTS.iter().zip(&all) {
        outcome.numbers.row([
            (*name).into(),
            summary.gives_way.to_string(),
            summary.takes_back.to_string(),
            summary.used_during.to_string(),
            summary.used_after.to_string(),
            summary.datagrams.to_string(),
            summary.repeated.to_string(),
            summary.timeouts.to_string(),
            summary.acks_before.to_string(),
            summary.acks.to_string(),
        ]);
    }
    outcome.claims = claims(&all);
    outcome.plots.push(plot(
        chart(depth, results, &all),
        "Payload that arrives, in means over seeds and half a second. The dashed line is the link less the datagrams.",
    ));
    outcome
}

fn claims([tack, realtime, delayed, _]: &[Summary; 4]) -> Vec<Claim> {
    let against = |of: fn(&Summary) -> Estimate, unit: &str| {
        format!("{} against {}{unit}", of(tack), of(delayed))
    };
    vec![
        Claim::new(
            "BBR yields no later with TACK than with delayed ACK: round trips until it last \
                sends 1.5 times the remaining rate",
            "shape: no worse",
            against(|one| one.gives_way, ""),
            tack.gives_way
                .less(delayed.gives_way.times(1.1))
                .is_at_most(0.0),
        ),
        Claim::new(
            "With the profile realtime it yields sooner",
            "shape: sooner",
            format!("{} against {}", realtime.gives_way, tack.gives_way),
            realtime.gives_way.less(tack.gives_way).is_below(0.0),
        ),
        Claim::new(
            "During the cross traffic it uses the remaining rate, and more of the datagrams \
                arrive than beside BBR with delayed ACK",
            "–",
            format!(
                "{} % used; {} %",
                tack.used_during,
                against(|one| one.datagrams, "")
            ),
            tack.used_during
                .is_at_least(90.0)
                .and(tack.datagrams.less(delayed.datagrams).is_at_least(0.0)),
        ),
        Claim::new(
            "BBR retransmits less with TACK than with delayed ACK",
            "shape: fewer",
            against(|one| one.repeated, " % of the segments"),
            tack.repeated.less(delayed.repeated).is_below(0.0),
        ),
        Claim::new(
            "Thousands of simultaneous holes do not stop it until a timer expires: \
                retransmission timeouts of a run",
            "–",
            against(|one| one.timeouts, ""),
            tack.timeouts
                .is_at_most(0.2)
                .and(tack.timeouts.less(delayed.timeouts).is_at_most(0.0)),
        ),
        Claim::new(
            "With TACK it regains the link, to 90 % over a cycle of BBR, no later than with \
                delayed ACK (counted up to 40 round trips)",
            "shape: no worse",
            against(|one| one.takes_back, ""),
            tack.takes_back
                .less(delayed.takes_back.times(1.1))
                .is_at_most(0.0)
                .and(tack.takes_back.is_below(20.0)),
        ),
        Claim::new(
            "In the 40 round trips after the cross traffic it uses at least as much of the link \
                as with delayed ACK",
            "shape: no worse",
            against(|one| one.used_after, " %"),
            tack.used_after.less(delayed.used_after).is_at_least(-2.0),
        ),
        Claim::new(
            "At the full rate TACK acknowledges a few times in a round trip",
            "4 per RTTmin",
            against(|one| one.acks_before, ""),
            tack.acks_before
                .is_at_most(5.0)
                .and(delayed.acks_before.is_at_least(1_000.0)),
        ),
        Claim::new(
            "TACK sends fewer acknowledgements for as many segments, its startup and an acknowledgement for each loss included",
            "shape: fewer",
            against(|one| one.acks, " per 100 segments"),
            tack.acks.less(delayed.acks.times(0.25)).is_at_most(0.0),
        ),
    ]
}

/// Round trips that make a point of the chart.
const STEP: usize = 4;

/// Mean over seeds of the rate at which payload arrives, by time.
fn line(depth: &Depth, results: &Results, transport: usize) -> Vec<(f64, f64)> {
    let courses: Vec<Course> = depth
        .seeds(3, 10)
        .filter_map(|seed| Course::of(results.get(&point(depth, transport, seed))?))
        .collect();
    let rounds = courses
        .iter()
        .map(|course| course.present.end + AFTER)
        .min()
        .unwrap_or(0);
    (0..rounds / STEP)
        .map(|step| {
            let of = |course: &Course| mean(&course.arrived[step * STEP..][..STEP]);
            let rates: Vec<f64> = courses.iter().map(of).collect();
            let middle = (step * STEP) as f64 + STEP as f64 / 2.0;
            (middle * ROUND_TRIP_S, mean(&rates))
        })
        .collect()
}

fn chart(depth: &Depth, results: &Results, all: &[Summary; 4]) -> tack_plot::Svg {
    let courses = [0, 1, 2, 3].map(|transport: usize| line(depth, results, transport));
    let comes = f64::from(BEFORE) * ROUND_TRIP_S;
    let stays = depth.pick(5.0, 10.0);
    let end = courses[0].last().map_or(comes, |(x, _)| *x);
    let mut lines = vec![Line {
        name: "payload rate of what is there for it".into(),
        points: vec![
            (0.0, LINK),
            (comes, LINK),
            (comes, LEFT),
            (comes + stays, LEFT),
            (comes + stays, LINK),
            (end, LINK),
        ],
        colour: 5,
        stroke: Stroke::Dashed,
        ..Line::default()
    }];
    for ((Transport { name, .. }, colour), points) in
        TRANSPORTS.into_iter().zip(COLOURS).zip(courses)
    {
        lines.push(Line {
            name: name.into(),
            points,
            colour,
            ..Line::default()
        });
    }
    let texts = TRANSPORTS
        .iter()
        .zip(all)
        .map(|(Transport { name, .. }, summary)| {
            format!(
                "{name} yields after {} round trips and regains the link after {}.",
                format_number(summary.gives_way.mean),
                format_number(summary.takes_back.mean)
            )
        });
    LineChart {
        id: "plot-S3".into(),
        title: "Rate of a flow while cross traffic comes and goes".into(),
        description: texts.collect::<Vec<_>>().join(" "),
        x_label: "seconds since 16 round trips before the change".into(),
        y_label: "payload that arrives, Mbit/s".into(),
        lines,
        ..LineChart::default()
    }
    .to_svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Full rate, half of it for `present` round trips once the flow noticed, which takes `late` of
    /// them, and full again.
    fn course(late: usize, present: usize, back: usize) -> Course {
        let mut rates = vec![LINK; BEFORE as usize + late];
        rates.resize(BEFORE as usize + present + back, LEFT);
        rates.resize(BEFORE as usize + present + AFTER, LINK);
        Course {
            sent: rates.clone(),
            arrived: rates,
            acks: vec![4.0; BEFORE as usize],
            present: BEFORE as usize..BEFORE as usize + present,
        }
    }

    #[test]
    fn round_trips_are_counted_from_the_changes() {
        let one = course(7, 40, 5);
        assert_eq!(one.gives_way(), 7.0);
        // The cycle that begins a round trip before the rate is back holds 90 % of the link on
        // average.
        assert_eq!(one.takes_back(), 4.0);
        assert_eq!(course(0, 40, 0).gives_way(), 0.0);
        assert_eq!(course(0, 40, 0).takes_back(), 0.0);
        assert_eq!(course(0, 40, AFTER).takes_back(), AFTER as f64);
        assert!((course(0, 40, 0).used()[0] - 100.0).abs() < 1e-9);
        assert_eq!(one.acks_before(), 4.0);
    }
}
