//! Watching programs run: metrics, traces, logs, status.

mod logs;
pub(crate) mod metrics;
mod status;
mod traces;
mod tunnels;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, Stdio};

/// A program that runs until the test ends, and what it says on standard error.
struct Watched {
    child: Child,
    errors: BufReader<ChildStderr>,
}

impl Watched {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self { child, errors }
    }

    /// The next line that contains `words`.
    fn line(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            let len = self.errors.read_line(&mut line).unwrap();
            assert!(len > 0, "it ended without saying {words:?}");
            if line.contains(words) {
                return line;
            }
        }
    }

    /// The first address in the next line that contains `words`.
    fn address(&mut self, words: &str) -> SocketAddr {
        let line = self.line(words);
        let of_word = |word: &str| {
            let word = word.trim_start_matches("http://");
            let word = word.trim_end_matches("/metrics").trim_end_matches(',');
            word.parse().ok()
        };
        let found = line.split_whitespace().find_map(of_word);
        found.unwrap_or_else(|| panic!("{line}"))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
