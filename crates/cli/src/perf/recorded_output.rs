//! What the server saw of a test, as the client asked to get it.

use std::io;

use super::lines::{heads, interval_lines};
use super::report::{Interval, Output};
use super::request::{Carrier, ServerOutput, TestRequest};

/// Intervals that a client gets, in bytes of text or JSON; later ones are left out.
const MAX_OUTPUT: usize = 2 << 20;

/// The server's intervals, in the form that the client wants.
#[derive(Debug)]
pub(super) struct RecordedOutput {
    form: ServerOutput,
    text: String,
    intervals: Vec<Interval>,
    /// Bytes so far, about.
    len: usize,
}

impl RecordedOutput {
    pub(super) fn new(request: &TestRequest) -> Self {
        Self {
            form: request.server_output,
            text: heads(request.carrier != Carrier::Tcp),
            intervals: Vec::new(),
            len: 0,
        }
    }

    pub(super) fn add(&mut self, interval: Interval) -> io::Result<()> {
        let lines = interval_lines(&interval);
        // An interval in JSON is at most six times as long as its lines.
        self.len += lines.len()
            * match self.form {
                ServerOutput::Json => 6,
                ServerOutput::None | ServerOutput::Text => 1,
            };
        if self.len > MAX_OUTPUT {
            return Ok(());
        }
        match self.form {
            ServerOutput::None => {}
            ServerOutput::Text => self.text.push_str(&lines),
            ServerOutput::Json => self.intervals.push(interval),
        }
        Ok(())
    }

    pub(super) fn output(mut self) -> Option<Output> {
        match self.form {
            ServerOutput::None => None,
            ServerOutput::Text => {
                if self.len > MAX_OUTPUT {
                    self.text.push_str("(further intervals omitted)\n");
                }
                Some(Output::Text(self.text))
            }
            ServerOutput::Json => Some(Output::Json(self.intervals)),
        }
    }
}
