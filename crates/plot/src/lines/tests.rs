use super::*;

fn chart(lines: Vec<Line>) -> LineChart {
    LineChart {
        id: "a".into(),
        title: "Rate & <time>".into(),
        description: "up".into(),
        x_label: "s".into(),
        y_label: "Mbit/s".into(),
        lines,
        ..LineChart::default()
    }
}

fn line(colour: usize, points: &[(f64, f64)]) -> Line {
    Line {
        name: format!("line {colour}"),
        points: points.to_vec(),
        colour,
        stroke: Stroke::Dotted,
        ..Line::default()
    }
}

fn column(chart: &LineChart) -> String {
    chart.to_svg().inline(Width::Column)
}

#[test]
fn a_chart_names_itself_and_draws_within_its_area() {
    let lines = vec![
        Line {
            name: "first".into(),
            points: vec![(0.0, 0.0), (1.0, 50.0), (f64::NAN, 3.0), (2.0, 100.0)],
            ..Line::default()
        },
        Line {
            name: "second".into(),
            points: vec![(0.0, 100.0), (2.0, 0.0)],
            colour: 7,
            stroke: Stroke::Dashed,
            ..Line::default()
        },
    ];
    let svg = chart(lines).to_svg();
    let page = svg.inline(Width::Page);
    assert!(page.contains("aria-labelledby=\"a-t\" aria-describedby=\"a-d\""));
    assert!(page.contains("<title id=\"a-t\">Rate &amp; &lt;time&gt;</title>"));
    let narrow = svg.inline(Width::Column);
    assert!(narrow.contains("aria-labelledby=\"a-column-t\""));
    for (svg, edge) in [(page, "790.0"), (narrow, "390.0")] {
        assert!(svg.contains("class=\"line s1\""), "colours begin again");
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(svg.contains(edge), "the last point is at the right edge");
    }
}

#[test]
fn lines_are_told_apart_without_colour() {
    let lines: Vec<_> = (0..COLOURS)
        .map(|colour| line(colour, &[(1.0, 1.0), (2.0, 2.0)]))
        .collect();
    let svg = column(&chart(lines));
    let dashes: std::collections::BTreeSet<_> = svg
        .split("<path class=\"line s")
        .skip(1)
        .map(|path| path.split(" d=").next().unwrap()[1..].to_owned())
        .collect();
    assert_eq!(dashes.len(), COLOURS, "{dashes:?}");
}

#[test]
fn ticks_are_where_the_points_are() {
    let points = [(1.0, 5.0), (3.0, 4.0), (17.0, 3.0)];
    let svg = column(&chart(vec![line(0, &points)]));
    for place in ["1", "3", "17"] {
        assert!(
            svg.contains(&format!("<tspan class=\"soft\">{place}</tspan>")),
            "{place}"
        );
    }
    assert!(!svg.contains(">10<"), "nothing was measured there");
}

#[test]
fn logarithmic_axes_span_the_points() {
    let svg = column(&LineChart {
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        ..chart(vec![Line {
            name: "f".into(),
            points: vec![(10.0, 1.0), (100.0, -3.0), (1_000.0, 100.0)],
            whiskers: vec![
                Whisker {
                    x: 10.0,
                    low: 0.5,
                    high: 2.0,
                },
                Whisker {
                    x: 1_000.0,
                    low: 90.0,
                    high: 110.0,
                },
            ],
            stroke: Stroke::Dotted,
            ..Line::default()
        }])
    });
    assert_eq!(
        svg.matches("<circle").count(),
        3,
        "legend, and two points above zero"
    );
    assert!(
        svg.contains("cx=\"390.0\""),
        "the last point at the right edge"
    );
    assert!(svg.contains(">1,000<") && svg.contains(">100<"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn intervals_that_cross_zero_are_drawn_whole() {
    let mut with_whisker = line(0, &[(1.0, 2.0), (2.0, 3.0)]);
    with_whisker.whiskers = vec![Whisker {
        x: 1.0,
        low: -4.0,
        high: 8.0,
    }];
    let chart = chart(vec![with_whisker]);
    let svg = column(&chart);
    assert!(svg.contains(">−5<"), "the axis reaches below: {svg}");
    let data = chart.to_svg().data().to_vec();
    assert_eq!((data[0].low, data[0].high), (-4.0, 8.0));
    assert!(data[1].low.is_nan());
}

/// An interval that crosses zero goes on below a logarithmic axis, which an arrow says.
#[test]
fn an_interval_that_leaves_a_logarithmic_axis_is_marked() {
    let with = |low: f64| {
        let mut line = line(0, &[(1.0, 2.0), (2.0, 3.0)]);
        line.whiskers = vec![Whisker {
            x: 1.0,
            low,
            high: 8.0,
        }];
        column(&LineChart {
            y_scale: Scale::Log,
            ..chart(vec![line])
        })
    };
    // The head of an arrow has three points.
    let arrows = |svg: &str| {
        let paths = svg.split("stroke-width=\"1.5\" d=\"M").skip(1);
        let bends = paths.filter_map(|path| path.split('"').next());
        bends.filter(|path| path.matches('L').count() == 2).count()
    };
    assert_eq!([1.0, 0.001, -4.0].map(|low| arrows(&with(low))), [0, 1, 1]);
    for low in [0.001, -4.0] {
        let svg = with(low);
        assert!(svg.contains(">0.1<") || svg.contains(">1<"), "{svg}");
        assert!(
            !svg.contains(">0<"),
            "no logarithmic axis has a zero: {svg}"
        );
    }
}

#[test]
fn nothing_to_draw_is_drawn() {
    for lines in [vec![], vec![Line::default()]] {
        for scale in [Scale::Linear, Scale::Log] {
            let mut chart = chart(lines.clone());
            (chart.x_scale, chart.y_scale) = (scale, scale);
            let svg = column(&chart);
            assert!(svg.ends_with("</svg>") && !svg.contains("NaN"));
        }
    }
}
