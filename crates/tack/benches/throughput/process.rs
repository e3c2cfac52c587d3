//! Two child processes: a receiver that says where it listens, a sender that goes there, one result
//! line from each.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::contest::Outcome;

/// A child that is killed, if it still runs, and reaped when it goes out of scope.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `receiver`, reads its first line (where it listens), starts `sender` with that line as
/// last arguments, and puts their result lines together.
///
/// A result line is `RESULT bytes nanoseconds cpu-microseconds resident-bytes`.
pub(crate) fn run_pair(mut receiver: Command, mut sender: Command) -> Result<Outcome, String> {
    let start = |command: &mut Command| {
        command
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .map(Running)
            .map_err(|error| error.to_string())
    };
    let mut receiving = start(&mut receiver)?;
    let mut lines = BufReader::new(receiving.0.stdout.take().ok_or("no output")?).lines();
    let address = lines
        .next()
        .ok_or("the receiver ended at once")?
        .map_err(|error| error.to_string())?;
    let mut sending = start(sender.args(address.split(' ')))?;
    let sent = BufReader::new(sending.0.stdout.take().ok_or("no output")?)
        .lines()
        .map_while(Result::ok)
        .find_map(|line| parse(&line))
        .ok_or("the sender had no result")?;
    let received = lines
        .map_while(Result::ok)
        .find_map(|line| parse(&line))
        .ok_or("the receiver had no result")?;
    Ok(Outcome {
        bytes: received.0,
        time: received.1,
        cpu: Some((sent.2, received.2)),
        memory: Some(sent.3.max(received.3)),
    })
}

fn parse(line: &str) -> Option<(u64, Duration, Duration, u64)> {
    let mut numbers = line
        .strip_prefix("RESULT ")?
        .split(' ')
        .map(|number| number.parse::<u64>());
    let mut next = || numbers.next()?.ok();
    Some((
        next()?,
        Duration::from_nanos(next()?),
        Duration::from_micros(next()?),
        next()?,
    ))
}
