//! Headless Chromium, spoken to in its DevTools protocol over two pipes: no port, no driver, no
//! library. Messages are JSON, each ended by a zero byte; flags and names are those of the
//! protocol's documentation.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// What the browser is called, here or there.
pub(crate) const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Seconds after which a browser that hangs is ended, so that its tests fail and do not wait for
/// ever.
const PATIENCE: &str = "180";

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// CSS pixels.
    pub(crate) width: u32,
    pub(crate) scheme: &'static str,
}

/// A desktop and a small phone, light and dark.
pub(crate) const VIEWS: [View; 4] = [
    View {
        width: 1280,
        scheme: "light",
    },
    View {
        width: 1280,
        scheme: "dark",
    },
    View {
        width: 360,
        scheme: "light",
    },
    View {
        width: 360,
        scheme: "dark",
    },
];

/// A browser with one tab, ended when dropped.
pub(crate) struct Browser {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    session: String,
    last_id: u64,
    /// What happened since the page was asked for, oldest first.
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// `None` where there is no browser.
    pub(crate) fn start() -> Option<Self> {
        let name = BROWSERS.into_iter().find(|name| {
            Command::new(name)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        })?;
        let profile = tempfile::tempdir().unwrap();
        // The browser reads from descriptor 3 and writes to descriptor 4: here its standard input
        // and output.
        let mut child = Command::new("sh")
            .args([
                "-c",
                r#"exec timeout -k 5 "$@" 3<&0 4>&1 </dev/null >/dev/null"#,
                "sh",
            ])
            .args([PATIENCE, name])
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-extensions",
                "--no-first-run",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell can be started");
        let mut browser = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            session: String::new(),
            last_id: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Asks for something and waits for the answer.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let input = self.input.as_mut().unwrap();
        input
            .write_all(format!("{message}\0").as_bytes())
            .unwrap_or_else(|error| panic!("{method}: the browser is gone: {error}"));
        loop {
            let answer = self.next();
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    /// The next message; events are kept.
    fn next(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.output.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser ended or hung");
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        if message["method"].is_string() {
            self.events.push(message.clone());
        }
        message
    }

    /// Opens `file` as `view` has it, and returns once all of it is loaded.
    pub(crate) fn open(&mut self, file: &Path, view: View) {
        let is_phone = view.width < 600;
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": view.width, "height": 800, "deviceScaleFactor": 1, "mobile": is_phone}),
        );
        let scheme = json!({"name": "prefers-color-scheme", "value": view.scheme});
        self.call("Emulation.setEmulatedMedia", json!({"features": [scheme]}));
        self.events.clear();
        let url = format!("file://{}", file.display());
        let answer = self.call("Page.navigate", json!({"url": url}));
        assert!(answer["errorText"].is_null(), "{url}: {answer}");
        while !self
            .events
            .iter()
            .any(|event| event["method"] == "Page.loadEventFired")
        {
            self.next();
        }
    }

    /// The value of a script in the page.
    pub(crate) fn evaluate(&mut self, script: &str) -> Value {
        let answer = self.call(
            "Runtime.evaluate",
            json!({"expression": script, "returnByValue": true, "awaitPromise": true}),
        );
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].clone()
    }

    /// Everything that the page or the browser wrote to the console since the page was asked for,
    /// and each request for anything but the page itself.
    pub(crate) fn complaints(&self, file: &Path) -> Vec<String> {
        let itself = format!("file://{}", file.display());
        let complaint = |event: &Value| {
            let parameters = &event["params"];
            let url = parameters["request"]["url"].as_str().unwrap_or_default();
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.consoleAPICalled" => Some(format!("console: {}", parameters["args"])),
                "Runtime.exceptionThrown" => {
                    Some(format!("exception: {}", parameters["exceptionDetails"]))
                }
                "Log.entryAdded" => Some(format!("log: {}", parameters["entry"]["text"])),
                "Network.requestWillBeSent" if url != itself && !url.starts_with("data:") => {
                    Some(format!("request: {url}"))
                }
                _ => None,
            }
        };
        self.events.iter().filter_map(complaint).collect()
    }

    /// Names and descriptions of everything that assistive technology is told is an image.
    pub(crate) fn images(&mut self) -> Vec<(String, String)> {
        let tree = self.call("Accessibility.getFullAXTree", json!({}));
        let nodes = tree["nodes"].as_array().unwrap().iter();
        let text = |value: &Value| {
            value["value"]
                .as_str()
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        nodes
            .filter(|node| ["image", "img"].contains(&text(&node["role"]).as_str()))
            .map(|node| (text(&node["name"]), text(&node["description"])))
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A browser whose pipe closes ends by itself.
        self.input = None;
        let _ended = self.child.wait();
    }
}
