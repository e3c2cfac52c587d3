//! Lines that a person types while the program runs.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};

/// Standard input; `None` while somebody reads the next line.
static KEYBOARD: Mutex<Option<Lines>> = Mutex::new(Some(Lines(Vec::new())));
/// Somebody has given it back.
static IS_FREE: Condvar = Condvar::new();
/// How long a wait for a line looks at standard input before it looks at other things.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes without the end of a line that count as one.
const LONGEST: usize = 64 << 10;

fn keyboard() -> MutexGuard<'static, Option<Lines>> {
    KEYBOARD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right to read the next line.
struct Turn(Lines);

impl Turn {
    /// Waits until nobody else reads lines; `None` once `is_over`.
    fn take(is_over: impl Fn() -> bool) -> Option<Self> {
        let mut keyboard = keyboard();
        while !is_over() {
            if let Some(lines) = keyboard.take() {
                return Some(Self(lines));
            }
            let waited = IS_FREE.wait_timeout(keyboard, LOOK);
            (keyboard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *keyboard() = Some(std::mem::take(&mut self.0));
        IS_FREE.notify_one();
    }
}

/// What was read of standard input and not taken yet. The buffer of `std::io::stdin` does not tell
/// whether a line is in it.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// The next line, if it comes within a moment. At the end of the input it is empty.
    fn next(&mut self, input: impl AsFd) -> io::Result<Option<String>> {
        let has_end = |bytes: &[u8]| bytes.iter().position(|byte| *byte == b'\n');
        if has_end(&self.0).is_none() {
            match self.read(input, LOOK)? {
                None => return Ok(None),
                Some(0) => return Ok(Some(self.take(self.0.len()))),
                Some(_) => {}
            }
        }
        let len = match has_end(&self.0) {
            Some(end) => end + 1,
            None if self.0.len() >= LONGEST => self.0.len(),
            None => return Ok(None),
        };
        Ok(Some(self.take(len)))
    }

    /// Takes what comes within `limit`; 0 bytes at the end of the input.
    fn read(&mut self, input: impl AsFd, limit: Duration) -> io::Result<Option<usize>> {
        let mut fds = [PollFd::new(&input, PollFlags::IN)];
        let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&limit)) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            polled => polled?,
        };
        let mut bytes = [0; 4096];
        match rustix::io::read(&input, &mut bytes) {
            Ok(len) => {
                self.0.extend_from_slice(&bytes[..len]);
                Ok(Some(len))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// True when nothing is left, and nothing can come.
    fn has_ended(&mut self, input: impl AsFd) -> bool {
        self.0.is_empty() && matches!(self.read(input, Duration::ZERO), Ok(Some(0)) | Err(_))
    }

    fn take(&mut self, len: usize) -> String {
        let line = self.0.drain(..len).collect::<Vec<_>>();
        String::from_utf8_lossy(&line).into_owned()
    }
}

/// True when nobody can type: standard input is closed or has ended.
pub(crate) fn has_ended() -> bool {
    let mut keyboard = keyboard();
    let lines = keyboard.as_mut();
    lines.is_some_and(|lines| lines.has_ended(io::stdin()))
}

/// Asks a question when nobody else reads lines: the next line answers it, and it is empty at the
/// end of the input. `None` when the question has become pointless: `is_over` is asked while the
/// answer is awaited.
///
/// # Errors
/// Those of standard input and standard error.
pub(crate) fn ask(question: &str, is_over: impl Fn() -> bool) -> io::Result<Option<String>> {
    let Some(mut turn) = Turn::take(&is_over) else {
        return Ok(None);
    };
    let say = |words: &str| {
        let mut out = io::stderr().lock();
        out.write_all(words.as_bytes())?;
        out.flush()
    };
    say(&format!("tack: {question}"))?;
    loop {
        if let Some(line) = turn.0.next(io::stdin())? {
            return Ok(Some(line));
        }
        if is_over() {
            forget_typed();
            say("(withdrawn: the connection was lost)\n")?;
            return Ok(None);
        }
    }
}

/// Half an answer to one question must not become the answer to the next one.
fn forget_typed() {
    let input = io::stdin();
    // In the background this would stop the program.
    if tcgetpgrp(&input).is_ok_and(|foreground| foreground == getpgrp()) {
        let _ = tcflush(&input, QueueSelector::IFlush);
    }
}

/// Waits for Enter. A question that is asked meanwhile gets its answer first. Cancel safe: a line
/// that comes after this was dropped is left to others. It never ends where standard input is
/// closed.
pub(crate) async fn enter() {
    struct Stop(Arc<AtomicBool>);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = Stop(Arc::default());
    let stopped = Arc::clone(&stop.0);
    let waiting = tokio::task::spawn_blocking(move || {
        let is_stopped = || stopped.load(Ordering::Relaxed);
        while let Some(mut turn) = Turn::take(is_stopped) {
            match turn.0.next(io::stdin()) {
                Ok(None) => {}
                Ok(Some(line)) => return !line.is_empty(),
                Err(_) => return false,
            }
            drop(turn);
            // Whoever waits for the turn is not awake yet.
            std::thread::sleep(LOOK / 10);
        }
        false
    });
    if !waiting.await.unwrap_or(false) {
        // Nobody can press a key.
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_input_is_known_before_a_question() {
        let (input, mut typing) = io::pipe().unwrap();
        let mut lines = Lines::default();
        assert!(!lines.has_ended(&input), "somebody may type yet");
        typing.write_all(b"y\n").unwrap();
        drop(typing);
        assert!(!lines.has_ended(&input) && !lines.has_ended(&input));
        assert_eq!(lines.next(&input).unwrap().as_deref(), Some("y\n"));
        assert!(lines.has_ended(&input));
        let nothing = std::fs::File::open("/dev/null").unwrap();
        assert!(lines.has_ended(&nothing), "what a closed input becomes");
    }

    #[test]
    fn lines_are_taken_one_by_one_however_they_come() {
        let (input, mut typing) = io::pipe().unwrap();
        let mut lines = Lines::default();
        assert_eq!(lines.next(&input).unwrap(), None, "nothing yet");
        typing.write_all(b"one\ntwo\nthr").unwrap();
        assert_eq!(lines.next(&input).unwrap().as_deref(), Some("one\n"));
        assert_eq!(lines.next(&input).unwrap().as_deref(), Some("two\n"));
        assert_eq!(lines.next(&input).unwrap(), None, "half a line");
        typing.write_all(b"ee").unwrap();
        drop(typing);
        let rest: Vec<_> = (0..4).map(|_| lines.next(&input).unwrap()).collect();
        let rest: Vec<_> = rest.iter().flatten().collect();
        assert_eq!(rest[0], "three");
        assert_eq!(rest[1], "", "the end");
    }
}
