use super::*;

#[test]
fn ranks_count_from_the_highest_power() {
    assert_eq!(ranks_of(&[1.0, 3.0, 2.0]), [3.0, 1.0, 2.0]);
    assert_eq!(ranks_of(&[2.0, 2.0, 1.0]), [1.5, 1.5, 3.0]);
    assert_eq!(ranks_of(&[2.0, f64::NEG_INFINITY]), [1.0, 2.0]);
    assert!(ranks_of(&[2.0, f64::NAN]).iter().all(|rank| rank.is_nan()));
}

/// A depth with one recording, of a link of so many Mbit/s.
fn with_recording(mbps: u32) -> Depth {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (1..=50)
        .map(|fifth| format!("{:.1} {mbps}\n", f64::from(fifth) / 5.0))
        .collect();
    std::fs::write(folder.path().join("air.pitree-trace"), text).unwrap();
    let recorded = crate::Recorded::read(folder.path()).unwrap();
    Depth {
        recorded: Some(recorded.into()),
        ..Depth::quick()
    }
}

fn on_recordings(depth: &Depth) -> Vec<Point> {
    let plan = plan(depth).into_iter();
    plan.filter(Point::needs_recordings).collect()
}

#[test]
fn recordings_are_run_and_other_ones_are_other_runs() {
    let depth = with_recording(1);
    let points = on_recordings(&depth);
    assert_eq!(points.len(), TRANSPORTS.len() * 4);
    assert!(on_recordings(&Depth::quick()).is_empty());
    for (point, other) in points.iter().zip(on_recordings(&with_recording(2))) {
        assert_ne!(point.key(), other.key());
    }
    let starts: std::collections::BTreeSet<_> = points
        .iter()
        .map(|point| point.settings()[2].clone())
        .collect();
    assert_eq!(starts.len(), 4, "each seed has its own part");

    let folder = tempfile::tempdir().unwrap();
    let mut store = crate::Store::open(folder.path()).unwrap();
    let wanted = &points[..1];
    crate::run(&mut store, wanted, 1, |_, _| {}).unwrap();
    let values = store.results().get(&wanted[0]).unwrap();
    assert!((0.8..1.0).contains(&mbps(values)), "{}", mbps(values));
}

#[test]
fn what_was_not_given_is_said_and_is_no_failure_of_its_own() {
    let results = Results::default();
    let without = reduce(&Depth::quick(), &results);
    assert!(without.notes[0].contains("--traces"));
    assert_eq!((without.plots.len(), without.further.len()), (1, 0));
    let with = reduce(&with_recording(1), &results);
    assert!(with.notes.is_empty());
    assert_eq!((with.plots.len(), with.further.len()), (2, 1));
    assert_eq!(with.claims.len(), 2 * without.claims.len());
    assert_eq!(
        with.failures().count(),
        with.claims.len(),
        "nothing was measured"
    );
}

#[test]
fn pairs_differ_in_their_acknowledgements_alone() {
    for pair in PAIRS {
        let (of_tack, of_delayed) = (TRANSPORTS[pair.tack], TRANSPORTS[pair.delayed]);
        assert_eq!(of_tack.congestion, of_delayed.congestion);
        assert_eq!((of_tack.ack, of_delayed.ack), ("tack", "delayed:2"));
    }
}
