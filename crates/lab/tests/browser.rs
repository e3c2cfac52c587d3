//! The report in a real browser: headless Chromium renders it, with nothing to complain about.

use std::path::Path;
use std::process::{Command, Stdio};

use tack_lab::{Depth, Entry, FIGURES, Results, Store, page, run};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

fn browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|name| {
        Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    })
}

/// Opens `file` and returns the document as it is after rendering, and what the browser said.
fn open(browser: &str, file: &Path, window: &str) -> (String, String) {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("timeout")
        .args(["60", browser])
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-extensions",
            "--enable-logging=stderr",
            "--v=0",
            "--dump-dom",
        ])
        .arg(format!("--window-size={window}"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .output()
        .expect("the browser can be started");
    assert!(output.status.success(), "{browser}: {}", output.status);
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// Looks at the page as a script in it would: appended to a copy, never part of the page itself.
const PROBE: &str = "<script>
addEventListener('load', () => {
  const problems = [];
  for (const plot of document.querySelectorAll('svg.plot')) {
    const name = (plot.getAttribute('aria-labelledby') || '').split(' ')
      .map(id => document.getElementById(id)?.textContent?.trim() || '').filter(text => text);
    if (name.length !== 2) problems.push('a plot without name and description');
    const box = plot.getBoundingClientRect();
    if (box.width < 200 || box.height < 40) problems.push('a plot that is not seen: ' + name[0]);
    if (box.right > innerWidth + 1) problems.push('a plot wider than the window: ' + name[0]);
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) problems.push('the page is wider than the window');
  const sections = document.querySelectorAll('section[id^=figure-]').length;
  const plots = document.querySelectorAll('svg.plot').length;
  document.body.dataset.probe = JSON.stringify({sections, plots, width: innerWidth, problems});
});
</script>";

#[test]
fn the_report_renders_in_a_browser() {
    let Some(browser) = browser() else {
        println!(
            "SKIPPED: none of {BROWSERS:?} is installed, so the report was not opened in a browser"
        );
        return;
    };
    // One cheap figure with its numbers; the others as they are when nothing was measured, which draws all but the data.
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let depth = Depth {
        seeds: Some(1),
        ..Depth::quick()
    };
    let measured = FIGURES.iter().find(|figure| figure.id == "7").unwrap();
    run(&mut store, &measured.plan(&depth), 1, |_, _| {}).unwrap();
    let nothing = Results::default();
    let entries: Vec<_> = FIGURES
        .iter()
        .map(|figure| Entry {
            figure: *figure,
            depth,
            outcome: Some(figure.reduce(
                &depth,
                if figure.id == "7" {
                    store.results()
                } else {
                    &nothing
                },
            )),
        })
        .collect();
    let html = page(&entries);
    let plots = html.matches("<svg").count();
    let file = folder.path().join("report.html");
    std::fs::write(&file, html.replace("</body>", &format!("{PROBE}</body>"))).unwrap();
    // A desktop, and the narrowest window that headless Chromium makes.
    for window in ["1280,900", "500,900"] {
        let (document, said) = open(browser, &file, window);
        let complaints: Vec<_> = said
            .lines()
            .filter(|line| line.contains("CONSOLE"))
            .collect();
        assert!(complaints.is_empty(), "{complaints:?}");
        let probe = document
            .split("data-probe=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .expect("the page was rendered and looked at")
            .replace("&quot;", "\"");
        let probe: serde_json::Value = serde_json::from_str(&probe).unwrap();
        assert_eq!(probe["sections"], FIGURES.len(), "{probe}");
        assert_eq!(probe["plots"], plots, "{probe}");
        assert_eq!(
            probe["problems"],
            serde_json::json!([]),
            "{window}: {probe}"
        );
    }
}
