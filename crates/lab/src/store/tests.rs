use std::fs;

use parquet::file::reader::{FileReader, SerializedFileReader};

use super::*;
use crate::figures::FIGURES;

fn values() -> Values {
    [("flows.0.goodput_bps", 1.0 / 3.0), ("events", 2e12)]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect()
}

#[test]
fn what_was_kept_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let plan = FIGURES[0].plan(&Depth::quick());
    let mut store = Store::open(folder.path()).unwrap();
    store.keep(&plan[0], values()).unwrap();
    drop(store);

    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.results().get(&plan[0]), Some(&values()));
    assert!(!store.results().has(&plan[1]));
    assert_ne!(plan[0].key(), plan[1].key());
}

#[test]
fn a_line_cut_off_costs_its_point_alone() {
    let folder = tempfile::tempdir().unwrap();
    let plan = FIGURES[0].plan(&Depth::quick());
    let mut store = Store::open(folder.path()).unwrap();
    store.keep(&plan[0], values()).unwrap();
    store.keep(&plan[1], values()).unwrap();
    drop(store);
    let journal = folder.path().join(JOURNAL);
    let text = fs::read(&journal).unwrap();
    fs::write(&journal, &text[..text.len() - 20]).unwrap();

    let mut store = Store::open(folder.path()).unwrap();
    assert!(store.results().has(&plan[0]) && !store.results().has(&plan[1]));
    assert_eq!(store.damaged(), [2]);
    store.keep(&plan[1], values()).unwrap();
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert!(store.results().has(&plan[0]) && store.results().has(&plan[1]));
}

#[test]
fn results_of_other_code_count_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let plan = FIGURES[0].plan(&Depth::quick());
    let mut store = Store::open(folder.path()).unwrap();
    store.keep(&plan[0], values()).unwrap();
    drop(store);
    let journal = folder.path().join(JOURNAL);
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replace(CODE_VERSION, "0000000000000000")).unwrap();
    assert!(!Store::open(folder.path()).unwrap().results().has(&plan[0]));
}

#[test]
fn tables_have_a_row_for_each_number() {
    let folder = tempfile::tempdir().unwrap();
    let plan = FIGURES[0].plan(&Depth::quick());
    let mut store = Store::open(folder.path()).unwrap();
    store.keep(&plan[1], values()).unwrap();
    store.keep(&plan[0], values()).unwrap();
    store.export([(&FIGURES[0], &Depth::quick())]).unwrap();

    let csv = fs::read_to_string(folder.path().join("results.csv")).unwrap();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(
        lines[1].contains(&plan[0].key()),
        "in the order of the plan"
    );
    assert!(lines[2].ends_with(",flows.0.goodput_bps,0.3333333333333333"));

    let file = File::open(folder.path().join("results.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 4);
    let names = fs::read_dir(folder.path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    assert_eq!(names, [JOURNAL, "results.csv", "results.parquet"]);
}
