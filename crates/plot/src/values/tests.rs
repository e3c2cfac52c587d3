use super::*;

fn bars(values: Vec<Value>) -> ValueBars {
    ValueBars {
        id: "v".into(),
        title: "Gain".into(),
        description: "of two".into(),
        label: "%".into(),
        series: vec![("<ours>".into(), 1), ("theirs".into(), 2)],
        reference: "paper".into(),
        groups: vec![Group {
            name: "802.11n".into(),
            values,
        }],
        ..ValueBars::default()
    }
}

fn value(value: f64, uncertainty: f64) -> Value {
    Value {
        value,
        uncertainty,
        ..Value::default()
    }
}

fn both(bars: &ValueBars) -> [String; 2] {
    [Width::Page, Width::Column].map(|width| bars.to_svg().inline(width))
}

/// Horizontal ends of the whiskers, in the order of drawing.
fn ends(svg: &str) -> Vec<f64> {
    svg.split("<path class=\"line ink\" stroke-width=\"1.5\" d=\"")
        .skip(1)
        .step_by(3)
        .flat_map(|path| {
            let path = path.split('"').next().unwrap();
            path[1..].split('L').map(|point| {
                let x = point.split(' ').next().unwrap();
                x.parse::<f64>().unwrap()
            })
        })
        .collect()
}

#[test]
fn bars_marks_and_whiskers_share_a_scale() {
    let with_mark = Value {
        reference: Some(100.0),
        ..value(50.0, 5.0)
    };
    let drawn = bars(vec![with_mark, value(f64::NAN, 0.0), value(-10.0, 0.0)]);
    for svg in both(&drawn) {
        assert!(
            svg.contains(">50 ± 5<tspan class=\"soft\"> (100)</tspan></text>"),
            "{svg}"
        );
        assert!(svg.contains(">(paper)</text>") && svg.contains(">−10</text>"));
        assert_eq!(svg.matches("<rect").count(), 2, "a bar for each number");
        let marks = svg.matches("stroke-width=\"3\"").count();
        assert_eq!(marks, 2, "legend and bar");
        assert!(svg.contains("&lt;ours&gt;") && !svg.contains("NaN"));
    }
    let data = drawn.to_svg().data().to_vec();
    assert_eq!(
        (data[0].low, data[0].high, data[0].reference),
        (45.0, 55.0, 100.0)
    );
    assert!(data[2].low.is_nan() && data[2].series == "<ours>");
}

#[test]
fn bars_have_an_axis_with_ticks() {
    for svg in both(&bars(vec![value(38.0, 1.0)])) {
        for tick in ["0", "10", "40"] {
            assert!(
                svg.contains(&format!("<tspan class=\"soft\">{tick}</tspan>")),
                "{tick}"
            );
        }
    }
}

#[test]
fn bars_have_their_names_beside_them() {
    let mut theirs = value(2.0, 0.0);
    theirs.series = 1;
    for svg in both(&bars(vec![value(1.0, 0.0), theirs])) {
        assert!(
            svg.contains(">&lt;ours&gt;<") && svg.contains(">theirs<"),
            "told apart without colour"
        );
    }
}

#[test]
fn intervals_that_cross_zero_are_drawn_whole() {
    for svg in both(&bars(vec![value(8.0, 88.0), value(20.0, 2.0)])) {
        let ends = ends(&svg);
        let (wide, narrow) = (ends[1] - ends[0], ends[3] - ends[2]);
        assert!((wide / narrow - 44.0).abs() < 3.0, "{ends:?}");
        assert!(svg.contains(">−100<") && svg.contains(">100<"));
    }
}

fn positive(values: Vec<Value>) -> ValueBars {
    ValueBars {
        is_positive: true,
        ..bars(values)
    }
}

#[test]
fn a_wide_range_is_logarithmic() {
    for svg in both(&positive(vec![value(12.0, 4.0), value(24_000.0, 100.0)])) {
        assert!(svg.contains(">10<") && svg.contains(">1,000<"), "{svg}");
        assert!(!svg.contains("<rect"), "bars have no beginning there");
        // Both intervals whole, on this axis too.
        let ends = ends(&svg);
        assert!(ends[0] < ends[1] && ends[2] < ends[3], "{ends:?}");
    }
    for svg in both(&positive(vec![value(0.0, 0.0), value(24_000.0, 100.0)])) {
        assert!(svg.contains("<rect"), "zero has no logarithm");
    }
}

/// Gains of 0.2 to 23 %, one with an interval that crosses zero, one with one that nears it.
#[test]
fn a_quantity_that_may_be_negative_has_no_logarithmic_axis() {
    let gains = || vec![value(0.23, 0.07), value(23.0, 0.4), value(2.0, 6.0)];
    for svg in both(&bars(gains())) {
        assert_eq!(svg.matches("<rect").count(), 3, "bars");
        let ends = ends(&svg);
        let widths: Vec<_> = ends.chunks(2).map(|end| end[1] - end[0]).collect();
        assert!((widths[2] / widths[1] - 15.0).abs() < 1.0, "{widths:?}");
    }
    // Nor has one whose intervals reach zero, or come near to it.
    for low in [gains(), vec![value(0.2, 0.199_9), value(23.0, 0.4)]] {
        for svg in both(&positive(low)) {
            assert!(svg.contains("<rect"), "{svg}");
        }
    }
}

#[test]
fn the_grid_does_not_run_through_names_of_groups() {
    let mut drawn = bars(vec![value(1.0, 0.0), value(2.0, 0.0)]);
    drawn.groups.push(drawn.groups[0].clone());
    for svg in both(&drawn) {
        let names: Vec<f64> = svg
            .split("<text x=\"0.0\" y=\"")
            .skip(1)
            .filter(|text| text.contains(">802.11n<"))
            .map(|text| text.split('"').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(names.len(), 2, "{svg}");
        let lines = svg.split(" d=\"M").skip(1).filter_map(|path| {
            let (from, to) = path.split('"').next()?.split_once('L')?;
            let ends = [from, to].map(|end| end.split_once(' ').unwrap());
            let [top, bottom] = ends.map(|(_, y)| y.parse::<f64>().unwrap());
            (ends[0].0 == ends[1].0).then_some((top, bottom))
        });
        for (top, bottom) in lines {
            for name in &names {
                assert!(
                    bottom <= name - 9.0 || top >= *name,
                    "{top} {bottom} {name}"
                );
            }
        }
    }
}

#[test]
fn colours_that_mean_something_are_explained() {
    let mut drawn = bars(vec![value(1.0, 0.0)]);
    drawn.legend = vec![
        ("the <radio> is changed".into(), 5),
        ("the air is".into(), 4),
    ];
    for svg in both(&drawn) {
        assert!(svg.contains(">the &lt;radio&gt; is changed<") && svg.contains(">the air is<"));
        assert_eq!(svg.matches("<rect").count(), 3, "two samples, and the bar");
    }
}

#[test]
fn a_long_label_breaks_in_a_column() {
    let mut drawn = bars(vec![value(1.0, 0.0)]);
    drawn.label = "a label of many words that does not fit in the width of a column of text".into();
    let [page, column] = both(&drawn);
    assert!(page.contains(&drawn.label));
    assert!(!column.contains(&drawn.label) && column.contains("a label of many words"));
}

#[test]
fn nothing_to_draw_is_drawn() {
    for svg in both(&ValueBars::default()) {
        assert!(svg.ends_with("</svg>"));
    }
}

/// A tick below zero at the edge of a column has room for its number.
#[test]
fn numbers_of_ticks_stay_inside_a_column() {
    let [_, narrow] = both(&bars(vec![value(-480.0, 10.0), value(120.0, 5.0)]));
    let least = narrow
        .split("<text text-anchor=\"middle\" x=\"")
        .skip(1)
        .filter_map(|text| {
            let (x, rest) = text.split_once('"')?;
            let body = rest.split_once('>')?.1.split_once('<')?.0;
            Some(x.parse::<f64>().ok()? - width_of(body) / 2.0)
        })
        .fold(f64::INFINITY, f64::min);
    assert!((0.0..1e3).contains(&least), "{least}");
}
