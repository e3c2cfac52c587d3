//! Programs that wait, and what they show on standard error.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

/// What a person types on the other side.
#[derive(Debug, Default)]
pub(crate) struct Invitation {
    pub(crate) ticket: String,
    pub(crate) code: String,
    /// The address beside the code.
    pub(crate) address: String,
    /// All of it.
    pub(crate) shown: String,
}

impl Invitation {
    /// Reads up to the ticket, which comes last.
    pub(crate) fn read(lines: &mut impl BufRead) -> Self {
        let mut invitation = Self::default();
        while invitation.ticket.is_empty() {
            let mut line = String::new();
            let len = lines.read_line(&mut line).unwrap();
            assert!(len > 0, "no invitation: {}", invitation.shown);
            let words: Vec<&str> = line.split_whitespace().collect();
            if let Some(at) = words.iter().position(|word| *word == "--code") {
                invitation.address = words[at - 1].to_owned();
                invitation.code = words[at + 1].to_owned();
            }
            let mut words = words
                .iter()
                .map(|word| word.trim_start_matches("TACK_TICKET="));
            if let Some(ticket) = words.find(|word| word.starts_with("tack1")) {
                invitation.ticket = ticket.to_owned();
            }
            invitation.shown.push_str(&line);
        }
        invitation
    }
}

/// A program that waits, and has shown how to reach it; killed when dropped.
pub(crate) struct Waiting {
    pub(crate) child: Child,
    lines: BufReader<ChildStderr>,
}

impl Waiting {
    pub(crate) fn start(command: &mut Command) -> (Self, Invitation) {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let invitation = Invitation::read(&mut lines);
        (Self { child, lines }, invitation)
    }

    /// Ends it; what it said since.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().unwrap();
        let mut said = String::new();
        self.lines.read_to_string(&mut said).unwrap();
        said
    }

    /// The code that takes the place of one that was used.
    pub(crate) fn next_code(&mut self) -> String {
        let mut said = String::new();
        loop {
            let len = self.lines.read_line(&mut said).unwrap();
            assert!(len > 0, "no code: {said}");
            let mut words = said.split_whitespace();
            if words.any(|word| word == "--code")
                && let Some(code) = words.next()
            {
                return code.to_owned();
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
