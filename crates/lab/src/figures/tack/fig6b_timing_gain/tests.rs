//! What figure 6(b) makes of its changes.

use super::runs::longer;
use super::*;

#[test]
fn a_direction_is_decided_by_the_paths_that_differ() {
    let undecided = |holds| Finding {
        holds,
        is_decided: false,
    };
    for (changes, finding) in [
        // Five of five: 1/32.
        (vec![-3.0, -4.0, -9.0, -10.0, 0.0, -25.0], true.into()),
        // Four of four: 1/16.
        (vec![-53.0, -78.0, -13.0, -45.0], undecided(true)),
        // Five of six: 7/64.
        (vec![4.7, -53.0, -78.0, -13.0, -45.0, -2.0], undecided(true)),
        // Neither side's ties count, however many there are.
        (vec![0.9, -53.0, -78.0, -13.0, -45.0, -2.0], true.into()),
        (vec![-0.9, -53.0, -78.0, -13.0, -45.0, 0.9], undecided(true)),
        (vec![-0.01; 6], undecided(false)),
        (vec![3.0, 4.0, 9.0, 10.0, 25.0], false.into()),
        (vec![3.0, 4.0, 9.0, -10.0], undecided(false)),
        (vec![f64::NAN; 6], false.into()),
    ] {
        assert_eq!(is_for_the_better(&changes), finding, "{changes:?}");
    }
}

#[test]
fn heads_are_as_likely_as_they_are() {
    for (heads, throws, likely) in [
        (0, 0, 1.0),
        (5, 5, 0.03125),
        (5, 6, 0.109_375),
        (3, 6, 0.656_25),
    ] {
        assert!(
            (by_chance(heads, throws) - likely).abs() < 1e-9,
            "{heads} of {throws}"
        );
    }
}

#[test]
fn a_longer_queue_is_longer() {
    assert_eq!(longer("wired.queue=14p"), "wired.queue=112p");
    assert_eq!(longer("wired.delay=28ms"), "wired.delay=28ms");
    let settings = paths().iter().map(|(_, path)| path);
    for path in settings {
        assert!(
            path.iter().any(|setting| longer(setting) != *setting),
            "{path:?}"
        );
    }
}
