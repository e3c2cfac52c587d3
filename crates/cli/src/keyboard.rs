//! Lines that a person types while the program runs.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Held by whoever reads the next line.
static TURN: Mutex<()> = Mutex::new(());
/// How long a wait for Enter looks at standard input before it lets a question have its turn.
const LOOK: Duration = Duration::from_millis(100);

/// Calls `ask` when nobody else reads lines: the next line answers it.
pub(crate) fn in_turn<T>(ask: impl FnOnce() -> T) -> T {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    ask()
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
        while !stopped.load(Ordering::Relaxed) {
            match in_turn(look) {
                Ok(false) => {}
                Ok(true) => return true,
                Err(_) => return false,
            }
            // The lock is not fair: a question must find it free.
            std::thread::sleep(LOOK / 10);
        }
        false
    });
    if !waiting.await.unwrap_or(false) {
        // Nobody can press a key.
        std::future::pending::<()>().await;
    }
}

/// True when a line was read; false when none came for a moment.
fn look() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut fds = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    let limit = Timespec::try_from(LOOK).map_err(io::Error::other)?;
    if poll(&mut fds, Some(&limit))? == 0 {
        return Ok(false);
    }
    let mut line = String::new();
    match stdin.read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(true),
    }
}
