//! Two installations meet: with tickets, codes and keys, whichever of them sends, and with whoever
//! has none of these. What all subjects need is here.

mod guessers;
mod known_peers;
mod strangers;
mod tickets_and_codes;
mod who_waits;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{Ended, finish, tack};

/// One person's installation, with folders of its own.
pub(crate) struct Side {
    home: tempfile::TempDir,
}

impl Side {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("inbox")).unwrap();
        Self { home }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn file(&self, name: &str, len: usize) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, vec![7; len]).unwrap();
        path
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tack();
        command
            .args(arguments)
            .arg("--state-dir")
            .arg(self.path("state"))
            .current_dir(self.home.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        finish(&mut self.command(arguments))
    }

    pub(crate) fn key(&self) -> String {
        self.run(&["id"]).stdout.trim().to_owned()
    }

    /// A `tack recv` on loopback.
    fn receive(&self, options: &[&str]) -> Waiting {
        let mut command = self.command(&["recv", "--dir", "inbox", "--listen", "127.0.0.1:0"]);
        Waiting::start(command.args(options))
    }

    fn received(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.path("inbox").join(name)).ok()
    }
}

/// A program that waits, and has shown how to reach it.
struct Waiting {
    child: Child,
    ticket: String,
    code: String,
    address: String,
    shown: String,
    rest: Option<std::thread::JoinHandle<String>>,
}

impl Waiting {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut waiting = Self {
            child,
            ticket: String::new(),
            code: String::new(),
            address: String::new(),
            shown: String::new(),
            rest: None,
        };
        while waiting.ticket.is_empty() {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "{}", waiting.shown);
            let words: Vec<&str> = line.split_whitespace().collect();
            if let Some(at) = words.iter().position(|word| *word == "--code") {
                waiting.address = words[at - 1].to_owned();
                waiting.code = words[at + 1].to_owned();
            }
            if let Some(ticket) = words.iter().find(|word| word.starts_with("tack1")) {
                waiting.ticket = (*ticket).to_owned();
            }
            waiting.shown.push_str(&line);
        }
        waiting.rest = Some(std::thread::spawn(move || {
            let mut rest = String::new();
            let _ = lines.read_to_string(&mut rest);
            rest
        }));
        waiting
    }

    /// Its exit code, and what it said after it had shown how to reach it.
    fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        (code, self.rest.take().unwrap().join().unwrap())
    }

    /// Kills it, and returns what it said.
    fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.rest.take().unwrap().join().unwrap()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
