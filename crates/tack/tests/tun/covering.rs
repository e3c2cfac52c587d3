//! Sets of cases in which all pairs of settings occur together, or all triples: what fails mostly
//! fails by few settings that meet (covering arrays).

/// A case: the number of a value for each setting.
pub(crate) type Case<const N: usize> = [usize; N];

/// Cases of settings that have so many values each. For any `strength` of the settings, every
/// combination of their values occurs in one case at least. The same cases each time.
pub(crate) fn covering<const N: usize>(values: [usize; N], strength: u32) -> Vec<Case<N>> {
    let all = every_case(values);
    let groups: Vec<usize> = (0..1_usize << N)
        .filter(|group| group.count_ones() == strength)
        .collect();
    let part = |case: &Case<N>, group: usize| {
        let chosen = (0..N).filter(move |setting| group >> setting & 1 == 1);
        (
            group,
            chosen.map(|setting| case[setting]).collect::<Vec<_>>(),
        )
    };
    let parts =
        |case: &Case<N>| -> Vec<_> { groups.iter().map(|&group| part(case, group)).collect() };
    let mut missing: std::collections::BTreeSet<_> = all.iter().flat_map(parts).collect();
    let mut chosen = Vec::new();
    while !missing.is_empty() {
        let gain = |case: &&Case<N>| {
            let parts = parts(case);
            parts.iter().filter(|part| missing.contains(part)).count()
        };
        // The last one of those that gain most: mostly not the one before with one value changed.
        let best = *all.iter().max_by_key(gain).expect("there are cases");
        for part in parts(&best) {
            missing.remove(&part);
        }
        chosen.push(best);
    }
    chosen
}

fn every_case<const N: usize>(values: [usize; N]) -> Vec<Case<N>> {
    let mut all = vec![[0; N]];
    for (setting, &count) in values.iter().enumerate() {
        all = all
            .iter()
            .flat_map(|case| {
                (0..count).map(move |value| {
                    let mut case = *case;
                    case[setting] = value;
                    case
                })
            })
            .collect();
    }
    all
}

#[test]
fn all_pairs_occur() {
    let values = [2, 3, 4, 2];
    let cases = covering(values, 2);
    for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        for (x, y) in (0..values[a]).flat_map(|x| (0..values[b]).map(move |y| (x, y))) {
            let occurs = cases.iter().any(|case| (case[a], case[b]) == (x, y));
            assert!(occurs, "{a}: {x}, {b}: {y}");
        }
    }
    assert!((12..=16).contains(&cases.len()), "{}", cases.len());
    assert_eq!(covering([2, 2, 2], 3).len(), 8);
}
