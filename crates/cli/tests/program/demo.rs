//! `tack demo`: transfers over emulated Wi-Fi, and the page that compares them.

use std::io::Write as _;

use serde_json::Value;

use crate::browser::Browser;
use crate::pages::{browser, has_the_demonstration, inspect};
use crate::support::{Running, finish, tack};

/// The whole demonstration with a small file: bytes verified, figures present, the page complete.
#[test]
fn the_demo_moves_a_file_twice_and_writes_its_page() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let bytes: Vec<u8> = (0..500_000_u32).flat_map(|n| n.to_le_bytes()).collect();
    file.write_all(&bytes).unwrap();
    let page = tempfile::NamedTempFile::new().unwrap();
    let ended = finish(
        tack()
            .arg("demo")
            .arg(file.path())
            .args(["--json", "--report"])
            .arg(page.path()),
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 1, "{ended:?}");
    let json = ended.json();
    assert_eq!(json["bytes"].as_u64(), Some(bytes.len() as u64));
    assert_eq!(json["blake3"], blake3::hash(&bytes).to_hex().as_str());
    let runs = json["runs"].as_array().unwrap();
    let acks: Vec<_> = runs
        .iter()
        .map(|run| run["ack"].as_str().unwrap())
        .collect();
    assert_eq!(acks, ["delayed:2", "tack"]);
    for run in runs {
        assert_eq!(run["mechanism"], run["ack"]);
        assert_eq!(
            (&run["ack_filter"], &run["hack"]),
            (&"off".into(), &"off".into())
        );
        assert_eq!(run["verified"], true);
        let segments = run["measured"]["data_segments"].as_u64().unwrap();
        assert!(segments >= bytes.len() as u64 / 1_460, "{run}");
        assert!(run["measured"]["acks"].as_u64().unwrap() > 0);
        assert!(run["virtual_time"]["goodput_bps"].as_f64().unwrap() > 0.0);
        assert!(run["lateness"]["deliveries"].as_u64().unwrap() >= segments / 2);
        assert!(run["measured"]["limited_by"].is_string());
    }
    let html = std::fs::read_to_string(page.path()).unwrap();
    assert!(html.ends_with("</html>"));
    assert_eq!(html.matches("role=\"img\"").count(), 4);
}

/// All answers to the same question on one page: what a filter drops is dropped, what TCP/HACK
/// carries arrives.
#[test]
fn the_demo_compares_filters_and_hack_with_tack() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![5; 4_000_000]).unwrap();
    let page = tempfile::NamedTempFile::new().unwrap();
    let compared = "delayed:2,tack,delayed:2+filter,delayed:2+filter=off+hack";
    let ended = finish(
        tack()
            .arg("demo")
            .arg(file.path())
            .args(["--ack-filter", "off", "--compare", compared])
            .args(["--json", "--report"])
            .arg(page.path()),
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    let runs = json["runs"].as_array().unwrap();
    let names: Vec<_> = runs.iter().map(|run| &run["mechanism"]).collect();
    assert_eq!(
        names,
        [
            "delayed:2",
            "tack",
            "delayed:2+filter",
            "delayed:2+filter=off+hack"
        ]
    );
    for (run, [filter, hack]) in runs.iter().zip([
        ["off", "off"],
        ["off", "off"],
        ["safe", "off"],
        ["off", "more-data"],
    ]) {
        assert_eq!(run["verified"], true);
        assert_eq!(
            (&run["ack_filter"], &run["hack"]),
            (&filter.into(), &hack.into())
        );
        let measured = &run["measured"];
        let count = |field: &str| measured[field].as_u64().unwrap();
        assert_eq!(count("acks_filtered") > 0, filter == "safe", "{run}");
        assert_eq!(count("acks_in_link_acks") > 0, hack == "more-data", "{run}");
        assert_eq!(measured["hack"].is_null(), hack == "off");
        if hack != "off" {
            assert_eq!(measured["hack"]["differing"], 0);
            assert_eq!(measured["hack"]["crc_failures"], 0);
        }
    }
    let html = std::fs::read_to_string(page.path()).unwrap();
    assert!(html.contains("four ways"));
}

#[test]
fn a_file_that_takes_too_long_is_cut_and_the_table_says_what_was_sent() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![7; 40_000_000]).unwrap();
    let ended = finish(
        tack()
            .arg("demo")
            .arg(file.path())
            .args(["--wifi", "802.11g", "--time", "300ms"]),
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("the first"), "{ended:?}");
    for part in [
        "goodput",
        "in virtual time",
        "limited by",
        "BLAKE3 of the bytes",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {ended:?}");
    }
    let path = ended.stdout.lines().last().unwrap();
    let path = path.strip_prefix("report: ").unwrap();
    assert!(std::fs::read_to_string(path).unwrap().contains("</html>"));
    std::fs::remove_file(path).unwrap();
}

/// Interrupted, the demonstration ends at once and leaves no page.
#[test]
fn the_demo_can_be_interrupted() {
    let scratch = tempfile::tempdir().unwrap();
    let page = scratch.path().join("page.html");
    let mut running = Running::start(
        tack()
            .args(["demo", "--time", "60s", "--report"])
            .arg(&page),
    );
    // It may not have taken the signal over yet, and is killed by it then. Either way it ends and
    // leaves nothing.
    std::thread::sleep(std::time::Duration::from_millis(500));
    running.signal(rustix::process::Signal::INT);
    let status = running.status();
    assert!(matches!(status.code(), Some(130) | None), "{status:?}");
    assert!(!page.exists());
}

/// What a browser sees of the page that the demonstration makes with these options.
fn page(browser: &mut Browser, options: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("demo.html");
    let ended = finish(tack().arg("demo").args(options).arg("--report").arg(&file));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    inspect(browser, &file)
}

#[test]
fn the_demonstration_ends_with_a_page_that_renders() {
    let Some(mut browser) = browser() else {
        return;
    };
    let seen = page(&mut browser, &["--time", "500ms"]);
    assert_eq!(has_the_demonstration(&seen), [""; 0]);
}

#[test]
fn a_demonstration_of_four_mechanisms_renders_as_well() {
    if !crate::support::is_long() {
        return;
    }
    let Some(mut browser) = browser() else {
        return;
    };
    let mechanisms = "delayed:2,tack,delayed:2+filter,delayed:2+hack=timestamp-echo";
    let seen = page(&mut browser, &["--time", "300ms", "--compare", mechanisms]);
    assert_eq!(has_the_demonstration(&seen), [""; 0]);
    // The last view is that of a phone: the comparison has to fit without being moved.
    let overhang = browser.evaluate(
        "(() => { const box = document.querySelector('.scroll'); return box.scrollWidth - box.clientWidth })()",
    );
    assert_eq!(overhang, 0, "pixels of the comparison beyond the edge");
}
