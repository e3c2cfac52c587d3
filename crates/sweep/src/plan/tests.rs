//! Plans: their points, their hashes, and their mistakes.

use super::*;

const BASE: &str = "
[scenario]
duration = '200ms'
[[scenario.flow]]
ack = 'tack'
";

fn plan(text: &str) -> Result<Plan, String> {
    let files = |name: &str| match name {
        "trace.up" => Ok("1\n2\n5\n".to_owned()),
        "folder/base.toml" => {
            Ok("duration = '1s'\n[wired.trace]\nfile = 'a.up'\n[[flow]]\n".into())
        }
        "folder/a.up" => Ok("1\n2\n5\n".to_owned()),
        other => Err(format!("{other} cannot be read: not there")),
    };
    Plan::from_toml("dir/acks.toml", text, &[], &files).map_err(|error| error.to_string())
}

fn settings(text: &str) -> Vec<String> {
    let plan = plan(&format!("{text}\n{BASE}")).unwrap();
    plan.points()
        .iter()
        .map(|point| point.settings.join(" "))
        .collect()
}

#[test]
fn a_grid_has_every_combination_in_order() {
    let text = "
        [[axis]]
        key = 'flow.0.ack'
        values = ['tack', 'delayed:2']
        [[axis]]
        key = 'wired.delay'
        from = '10ms'
        to = '1s'
        scale = 'log'
        count = 3
    ";
    assert_eq!(
        settings(text),
        [
            "flow.0.ack=tack wired.delay=10ms",
            "flow.0.ack=tack wired.delay=100ms",
            "flow.0.ack=tack wired.delay=1s",
            "flow.0.ack=delayed:2 wired.delay=10ms",
            "flow.0.ack=delayed:2 wired.delay=100ms",
            "flow.0.ack=delayed:2 wired.delay=1s",
        ]
    );
}

#[test]
fn ranges_have_units_and_ends() {
    let range = |range: &str| settings(&format!("[[axis]]\nkey = 'wired.rate'\n{range}"));
    assert_eq!(
        range("from = '10Mbps'\nto = '40Mbps'\ncount = 4"),
        [
            "wired.rate=10Mbps",
            "wired.rate=20Mbps",
            "wired.rate=30Mbps",
            "wired.rate=40Mbps"
        ]
    );
    let whole = settings("[[axis]]\nkey = 'flow.0.mss'\nfrom = 500\nto = 502\ncount = 9");
    assert_eq!(
        whole,
        ["flow.0.mss=500", "flow.0.mss=501", "flow.0.mss=502"],
        "each once"
    );
    let real = settings("[[axis]]\nkey = 'wired.loss'\nfrom = 0.0\nto = 0.1\ncount = 3");
    assert_eq!(
        real,
        ["wired.loss=0.0", "wired.loss=0.05", "wired.loss=0.1"]
    );
}

#[test]
fn samples_are_drawn_within_their_ranges_and_always_the_same() {
    let sampled = |method: &str, seed: u32| {
        settings(&format!(
            "[sampling]\nmethod = '{method}'\npoints = 40\nseed = {seed}\n\
             [[axis]]\nkey = 'wired.delay'\nfrom = '10ms'\nto = '50ms'\n\
             [[axis]]\nkey = 'flow.0.ack'\nvalues = ['tack', 'every']\n"
        ))
    };
    for method in ["random", "latin-hypercube"] {
        let points = sampled(method, 1);
        assert_eq!(points.len(), 40);
        assert_eq!(points, sampled(method, 1));
        assert_ne!(points, sampled(method, 2));
    }
    let points = sampled("latin-hypercube", 1);
    let mut parts: Vec<u128> = points
        .iter()
        .map(|point| {
            let delay = point
                .split(' ')
                .next()
                .unwrap()
                .strip_prefix("wired.delay=")
                .unwrap();
            (tack_base::units::parse_duration(delay).unwrap().as_micros() - 10_000) / 1_000
        })
        .collect();
    parts.sort_unstable();
    assert_eq!(
        parts,
        (0..40).collect::<Vec<_>>(),
        "one in each millisecond"
    );
    let tack = points
        .iter()
        .filter(|point| point.contains("=tack"))
        .count();
    assert_eq!(tack, 20, "values of a list are equally frequent");
}

#[test]
fn recorded_samples_stay_the_same_for_ever() {
    let text = "[sampling]\nmethod = 'latin-hypercube'\npoints = 3\nseed = 7\n\
                [[axis]]\nkey = 'wired.rate'\nfrom = '1Mbps'\nto = '1Gbps'\nscale = 'log'\n";
    assert_eq!(
        settings(text),
        [
            "wired.rate=5.30424Mbps",
            "wired.rate=107.674Mbps",
            "wired.rate=15.4757Mbps"
        ]
    );
}

#[test]
fn equal_scenarios_are_one_point_and_have_one_hash_everywhere() {
    let inline = plan(&format!(
        "{BASE}\n[[axis]]\nkey = 'wired.delay'\nvalues = ['10ms', '10ms', '20ms']"
    ))
    .unwrap();
    assert_eq!((inline.points().len(), inline.equal_points()), (2, 1));
    // Another name, another seed, another way to say the same.
    let other = plan(
        "name = 'other'\nset = ['duration=200ms', 'flow.0.ack=tack']\n\
         [scenario]\nname = 'x'\nseed = 5\n[scenario.wired]\ndelay = '20ms'",
    )
    .unwrap();
    assert_eq!(other.points()[0].config, inline.points()[1].config);
    assert_ne!(other.partition(), inline.partition());
    assert!(
        other.partition().starts_with("plan=other-"),
        "{}",
        other.partition()
    );
}

#[test]
fn seeds_do_not_change_the_part_of_the_data_set() {
    let part = |seeds: &str| plan(&format!("{seeds}\n{BASE}")).unwrap().partition();
    assert_eq!(part("seeds = 3"), part("seeds = '5..9'"));
    assert_ne!(part("seeds = 3"), part("[columns]\na = 'acks'"));
}

#[test]
fn files_have_the_name_of_their_contents() {
    let inline =
        plan("[scenario]\nduration = '1s'\nflow = [{}]\n[scenario.wired.trace]\nfile = 'trace.up'")
            .unwrap();
    let file = plan("scenario = 'folder/base.toml'").unwrap();
    assert_eq!(inline.points()[0].config, file.points()[0].config);
    assert_eq!(inline.files().len(), 1);
    assert_eq!(inline.files(), file.files());
}

#[test]
fn columns_have_numbers_beside_texts_with_units() {
    let plan = plan(&format!(
        "{BASE}
        [[axis]]
        key = 'wired.queue'
        values = ['1bdp', '0.5bdp']
        [[axis]]
        key = ['flow.0.send_buffer', 'flow.0.receive_buffer']
        values = ['64KiB', '1MiB']
        [[axis]]
        key = 'flow.0.sack'
        values = [true, false]
        [columns]
        ratio = 'acks / max(data_segments, 1)'"
    ))
    .unwrap();
    let names: Vec<_> = plan
        .columns()
        .into_iter()
        .map(|column| column.name)
        .collect();
    assert_eq!(
        names[..10],
        [
            "code",
            "config",
            "point",
            "seed",
            "wired.queue",
            "wired.queue_bdp",
            "flow.0.send_buffer",
            "flow.0.send_buffer_bytes",
            "flow.0.sack",
            "flows"
        ]
    );
    assert_eq!(names.last().unwrap(), "ratio");
    assert!(names.iter().any(|name| name == "flows.0.acks_by_kind.tack"));
    let settings = &plan.points()[0].settings;
    assert_eq!(settings[1], "flow.0.send_buffer=64KiB");
    assert_eq!(settings[2], "flow.0.receive_buffer=64KiB");
    assert_eq!(
        plan.about().axes[0],
        ("wired.queue".into(), "wired.queue_bdp".into())
    );
}

#[test]
fn mistakes_are_named_with_file_line_and_remedy() {
    let base = BASE.trim_start();
    for (text, expected) in [
        (
            "sedes = 3",
            "dir/acks.toml:1: sedes: unknown key; did you mean \"seeds\"?",
        ),
        (
            "seeds = 0",
            "dir/acks.toml:1: seeds: expected 1 to 100000 seeds, got 0",
        ),
        ("seeds = [1, 1]", "seeds: a seed stands there twice"),
        (
            "seeds = '9..1'",
            "dir/acks.toml:1: seeds: \"9..1\" names no seeds",
        ),
        ("[seeds]\nwithin = '2%'", "needs the column"),
        (
            "[seeds]\ncolumn = 'acks'\nwithin = 0.02",
            "dir/acks.toml:3: seeds.within: 0.02 is not a string",
        ),
        (
            "[seeds]\ncolumn = 'acks'\nwithin = '2'",
            "\"2\" is not a percentage",
        ),
        (
            "[seeds]\ncolumn = 'goodput'\nwithin = '2%'",
            "dir/acks.toml:2: seeds.column: there is no column \"goodput\"; did you mean \"goodput_bps\"?",
        ),
        (
            "[seeds]\ncolumn = 'trace_hash'\nwithin = '2%'",
            "has texts, not numbers",
        ),
        (
            "[seeds]\ncolumn = 'acks'\nwithin = '2%'\nmin = 5\nmax = 4",
            "must be at least min, which is 5",
        ),
        (
            "[columns]\na = 'acks / data_segment'",
            "dir/acks.toml:2: columns.a: there is no column \"data_segment\"; did you mean \"data_segments\"?",
        ),
        (
            "[columns]\na = 'acks /'",
            "dir/acks.toml:2: columns.a: character 7: the expression ends",
        ),
        (
            "[columns]\nacks = '1'",
            "there is a column \"acks\" already",
        ),
        ("[columns]\n'a b' = '1'", "letters, digits and _"),
        (
            "[sampling]\nmethod = 'sobol'",
            "dir/acks.toml:2: sampling.method: \"sobol\" is not a choice here; one of: grid, random, latin-hypercube",
        ),
        (
            "[sampling]\nmethod = 'random'",
            "needs the number of points",
        ),
        ("[sampling]\npoints = 5", "a grid has every combination"),
        ("[[axis]]\nvalues = [1]", "an axis needs the key"),
        ("[[axis]]\nkey = 'wired.delay'", "an axis needs its values"),
        (
            "[[axis]]\nkey = 'wired.delay'\nvalues = []",
            "expected 1 to 100000 values, got 0",
        ),
        (
            "[[axis]]\nkey = 'wired.delay'\nvalues = ['1ms']\nfrom = '1ms'",
            "dir/acks.toml:4: axis.0.from: the axis has values",
        ),
        (
            "[[axis]]\nkey = 'wired.delay'\nfrom = '1ms'\nto = '1Mbps'\ncount = 2",
            "the same kind of unit",
        ),
        (
            "[[axis]]\nkey = 'wired.delay'\nfrom = '5ms'\nto = '1ms'\ncount = 2",
            "the end of a range must be above",
        ),
        (
            "[[axis]]\nkey = 'wired.delay'\nfrom = '5 parsecs'\nto = '1ms'\ncount = 2",
            "is not a quantity",
        ),
        (
            "[[axis]]\nkey = 'wired.delay'\nfrom = '5ms'\nto = '10ms'",
            "a grid needs the number of values",
        ),
        (
            "[[axis]]\nkey = 'wired.loss'\nfrom = 0.0\nto = 0.1\nscale = 'log'\ncount = 2",
            "begins above zero",
        ),
        (
            "[[axis]]\nkey = 'seed'\nvalues = [1]",
            "seeds are not an axis",
        ),
        (
            "[[axis]]\nkey = 'wired..delay'\nvalues = [1]",
            "is not a key",
        ),
        (
            "[[axis]]\nkey = 'wired.dealy'\nvalues = ['1ms']",
            "dir/acks.toml:2: wired.dealy: unknown key; did you mean \"delay\"?",
        ),
        (
            "[[axis]]\nkey = 'wired.delay'\nvalues = ['1ms', '2']",
            "dir/acks.toml:2: wired.delay: \"2\" is not a duration",
        ),
        (
            "[[axis]]\nkey = 'wired.delay'\nvalues = ['1ms', 2]",
            "(at the point wired.delay=2)",
        ),
        (
            "[[axis]]\nkey = 'wired.delay'\nvalues = ['1ms']\n[[axis]]\nkey = 'wired.delay'\nvalues = ['2ms']",
            "wired.delay is in two axes",
        ),
        (
            "set = ['wired.delay=5ms']\n[[axis]]\nkey = 'wired.delay'\nvalues = ['1ms']",
            "dir/acks.toml:1: wired.delay: is an axis",
        ),
        (
            "set = ['wired.rat=5Mbps']",
            "dir/acks.toml:1: wired.rat: unknown key; did you mean \"rate\"?",
        ),
        (
            "duration = '5'",
            "dir/acks.toml:1: duration: \"5\" is not a duration",
        ),
        ("warmup = '5s'", "warmup: must be shorter than the duration"),
        (
            "[[axis]]\nkey = 'wired.loss'\nfrom = 0.0\nto = 0.1\ncount = 2000\n[[axis]]\nkey = 'wired.ack_loss'\nfrom = 0.0\nto = 0.1\ncount = 2000",
            "at most 100000 points",
        ),
        (
            "seeds = 100000\n[[axis]]\nkey = 'wired.loss'\nfrom = 0.0\nto = 0.1\ncount = 2000",
            "at most 1000000 runs",
        ),
    ] {
        let error = plan(&format!("{text}\n{base}")).unwrap_err();
        assert!(error.contains(expected), "{text}\n  {error}\n  {expected}");
    }
    for (text, expected) in [
        ("", "a plan needs a scenario"),
        (
            "scenario = 5",
            "5 is neither the name of a file nor a table",
        ),
        (
            "scenario = 'none.toml'",
            "dir/acks.toml:1: scenario: none.toml cannot be read",
        ),
        (
            "[scenario]\nflow = [{}]\nduratoin = '1s'",
            "dir/acks.toml:3: duratoin: unknown key; did you mean \"duration\"?",
        ),
    ] {
        let error = plan(text).unwrap_err();
        assert!(error.contains(expected), "{text}\n  {error}");
    }
}
