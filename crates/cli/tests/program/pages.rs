//! The pages that `tack lab report`, `tack sweep report` and `tack demo` write, in a real browser:
//! headless Chromium renders them, light and dark, wide and as narrow as a small phone, and has
//! nothing to complain about. Each page is opened by a test of its command, beside others that
//! wait; here is what they share, and the pages that CI names.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;
use tack_lab::{Depth, Entry, FIGURES, REAL_TIME, Results, Store};

use crate::browser::{BROWSERS, Browser, VIEWS, View};
use crate::support::is_long;

/// A browser, or word that there is none.
pub(crate) fn browser() -> Option<Browser> {
    let browser = Browser::start();
    if browser.is_none() {
        tack_skip::skipped(format_args!(
            "none of {BROWSERS:?} is installed, so no page was opened"
        ));
    }
    browser
}

/// Opens `file` and returns what is there, and what is wrong with it.
pub(crate) fn look(browser: &mut Browser, file: &Path, view: View) -> (Value, Vec<String>) {
    browser.open(file, view);
    let seen = browser.evaluate(include_str!("browser/probe.js"));
    let mut problems = browser.complaints(file);
    let found = seen["problems"].as_array().unwrap().iter();
    problems.extend(found.map(|problem| problem.as_str().unwrap().to_owned()));
    let images = browser.images();
    if images.len() as u64 != seen["plots"].as_u64().unwrap() {
        problems.push(format!(
            "{} plots, but assistive technology is told of {} images",
            seen["plots"],
            images.len()
        ));
    }
    for (name, description) in images {
        // A browser takes the one for the other where one is missing.
        if name.is_empty() || description.is_empty() || name == description {
            problems.push(format!(
                "a plot without name or description: {name:?}, {description:?}"
            ));
        }
    }
    (seen, problems)
}

/// The view of the ordinary form, narrow and dark; all of them in the long form.
fn views() -> &'static [View] {
    let skipped = if is_long() { 0 } else { VIEWS.len() - 1 };
    &VIEWS[skipped..]
}

/// Opens `file` in every view, and returns what is there.
pub(crate) fn inspect(browser: &mut Browser, file: &Path) -> Value {
    let mut last = Value::Null;
    for &view in views() {
        let (seen, problems) = look(browser, file, view);
        assert!(
            problems.is_empty(),
            "{}, {view:?}:\n{}",
            file.display(),
            problems.join("\n")
        );
        last = seen;
    }
    last
}

/// Every figure has its place on the page, and in it a plot, claims, and the command that measures
/// it again.
pub(crate) fn has_every_figure(seen: &Value) -> Vec<String> {
    let mut missing = Vec::new();
    let sections = seen["sections"].as_array().unwrap();
    for figure in FIGURES {
        let id = format!("figure-{}", figure.id);
        let Some(section) = sections.iter().find(|section| section["id"] == id.as_str()) else {
            missing.push(format!("there is no {id}"));
            continue;
        };
        let command = section["command"].as_str().unwrap_or_default();
        if section["plots"] == 0 {
            missing.push(format!("{id} has no plot"));
        }
        if section["claims"] == 0 {
            missing.push(format!("{id} has no claim"));
        }
        if !command.starts_with(&format!("tack lab run {} --", figure.id)) {
            missing.push(format!("{id} is measured again by {command:?}"));
        }
    }
    // A report of everything also names the figures in real time, which CI does not measure.
    let in_real_time = |section: &&Value| {
        REAL_TIME
            .iter()
            .any(|figure| section["id"] == format!("figure-{}", figure.id).as_str())
    };
    let count = sections.len() - sections.iter().filter(in_real_time).count();
    if count != FIGURES.len() {
        let wanted = FIGURES.len();
        missing.push(format!("{count} sections for {wanted} figures"));
    }
    missing
}

pub(crate) fn has_the_demonstration(seen: &Value) -> Vec<String> {
    match (&seen["plots"], &seen["tables"]) {
        (plots, tables) if *plots == 4 && *tables == 2 => Vec::new(),
        (plots, tables) => vec![format!("{plots} plots and {tables} tables")],
    }
}

/// Two reports: one of figure 7, which is cheap and measured; one with all other figures as well,
/// drawn as they are when nothing was measured.
pub(crate) static REPORTS: LazyLock<[String; 2]> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let depth = Depth {
        seeds: Some(1),
        ..Depth::quick()
    };
    let measured = FIGURES.iter().find(|figure| figure.id == "7").unwrap();
    tack_lab::run(&mut store, &measured.plan(&depth), 1, |_, _| {}).unwrap();
    let nothing = Results::default();
    let entry = |figure: &'static tack_lab::Figure| Entry {
        figure: *figure,
        depth: depth.clone(),
        outcome: Some(figure.reduce(
            &depth,
            if figure.id == "7" {
                store.results()
            } else {
                &nothing
            },
        )),
    };
    let all: Vec<_> = FIGURES.iter().map(&entry).collect();
    [&[entry(measured)][..], &all].map(|entries| tack_lab::page(entries, "2026-01-01"))
});

/// What a page lacks.
type Check = fn(&Value) -> Vec<String>;

/// CI names the pages that the optimised program made, with everything measured.
#[test]
fn pages_named_by_the_environment_render() {
    let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let pages: [(_, Check); 2] = [
        (named("TACK_LAB_PAGE"), has_every_figure),
        (named("TACK_DEMO_PAGE"), has_the_demonstration),
    ];
    if pages.iter().all(|(file, _)| file.is_none()) {
        tack_skip::skipped("neither TACK_LAB_PAGE nor TACK_DEMO_PAGE names a page");
        return;
    }
    let Some(mut browser) = browser() else {
        return;
    };
    for (file, check) in pages {
        if let Some(file) = file {
            let file = std::fs::canonicalize(file).unwrap();
            assert_eq!(check(&inspect(&mut browser, &file)), [""; 0]);
        }
    }
}

/// What passes a page must be able to fail one.
#[test]
fn what_is_wrong_with_a_page_is_found() {
    if !is_long() {
        return;
    }
    let Some(mut browser) = browser() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.html");
    // One figure has what each fault takes, and is looked at sooner than all of them.
    let good = &REPORTS[0];
    let plot = "<svg class=\"plot column\" role=\"img\"";
    let body = |more: &str| good.replacen("<main>", &format!("<main>{more}"), 1);
    // Without the policy that keeps the browser from running and fetching anything.
    let trusting = |more: &str| body(more).replacen("http-equiv=", "data-was=", 1);
    let cases = [
        (
            good.replacen(plot, "<svg class=\"plot column\"", 1),
            "assistive technology is told of",
        ),
        (
            good.replace(" aria-labelledby=\"", " data-was=\"")
                .replace("<title id=", "<metadata id=")
                .replace("</title><desc", "</metadata><desc"),
            "a plot without name or description",
        ),
        (
            good.replace(" aria-describedby=\"", " data-was=\"")
                .replace("<desc id=", "<metadata id=")
                .replace("</desc>", "</metadata>"),
            "a plot without name or description",
        ),
        (
            body("<div style=\"width:2000px\">.</div>"),
            "the page is 20",
        ),
        (
            body("<p style=\"color:#777;background:#888\">grey</p>"),
            "contrast of",
        ),
        (
            body("<img src=\"http://127.0.0.1:9/x.png\" alt=\"x\">"),
            "log: ",
        ),
        (body("<script>console.error('no')</script>"), "log: "),
        (
            trusting("<script>console.error('no')</script>"),
            "console: ",
        ),
        (
            trusting("<script>throw new Error('no')</script>"),
            "exception: ",
        ),
        (
            trusting("<img src=\"http://127.0.0.1:9/x.png\" alt=\"x\">"),
            "request: http://127.0.0.1:9/x.png",
        ),
        (good.replacen("font:13px", "font:3px", 1), "text of "),
        (
            body(
                "<svg class=\"plot\" role=\"img\" aria-label=\"n\" viewBox=\"0 0 400 80\"><desc>d</desc>\
                  <text x=\"9\" y=\"40\">one</text><text x=\"12\" y=\"40\">two</text></svg>",
            ),
            "texts over each other",
        ),
        (body("<a href=\"#nowhere\">there</a>"), "a link to nowhere"),
        (
            good.replacen("svg.page{display:none}", "", 1),
            "a figure that shows 2 plots",
        ),
    ];
    let view = VIEWS[2];
    for (html, complaint) in cases {
        assert_ne!(html, *good, "{complaint}: the page was not broken");
        std::fs::write(&file, html).unwrap();
        let (_, problems) = look(&mut browser, &file, view);
        assert!(
            problems.iter().any(|problem| problem.contains(complaint)),
            "{complaint}: {problems:?}"
        );
    }
    // A figure that is missing, and others that have something missing: one page, because it is the
    // largest.
    let figures = ["7", "8", "9a", "10a"].map(|id| format!("figure-{id}"));
    let mut html = REPORTS[1].clone();
    let mut damage = |figure: &str, from: &str, to: &str| {
        let begin = html.find(&format!("id=\"{figure}\"")).unwrap();
        let end = html[begin..].find("</section>").unwrap() + begin;
        let damaged = html[begin..end].replace(from, to);
        assert_ne!(damaged, html[begin..end], "{figure} was not broken");
        html.replace_range(begin..end, &damaged);
    };
    damage(&figures[0], "id=\"figure-7\"", "id=\"figure-0\"");
    damage(&figures[1], "role=\"img\"", "role=\"none\"");
    damage(&figures[2], "scroll claims", "scroll");
    damage(&figures[3], "tack lab run 10a", "tack lab run 10b");
    std::fs::write(&file, html).unwrap();
    let (seen, _) = look(&mut browser, &file, view);
    let found = has_every_figure(&seen);
    let complaints = [
        "there is no figure-7",
        "figure-8 has no plot",
        "figure-9a has no claim",
        "figure-10a is measured again by",
    ];
    assert_eq!(found.len(), complaints.len(), "{found:?}");
    for complaint in complaints {
        let is_found = found.iter().any(|found| found.contains(complaint));
        assert!(is_found, "{complaint}: {found:?}");
    }
}
