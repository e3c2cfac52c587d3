//! Large files on their way to the disk: forced out while they arrive, not only at their end.
//!
//! A system keeps what is written in memory for as long as it may, so that forcing a file of a
//! gibibyte out at its end takes as long as its transfer did.

use std::fs::File;
use std::sync::mpsc::{SyncSender, sync_channel};

/// Bytes written before they are forced out.
const STEP: u64 = 32 << 20;

/// A thread that forces one file out while another one writes it.
#[derive(Debug)]
pub(super) struct Flusher {
    waiting: u64,
    wake: SyncSender<()>,
}

impl Flusher {
    /// For a file of which `old` bytes may not be on the disk yet. `file` is a handle of its own: a
    /// lock on the writer's does not outlive the writer. `None` where there is no thread for it,
    /// and all is forced out at the end.
    pub(super) fn start(file: File, old: u64) -> Option<Self> {
        let (wake, woken) = sync_channel(1);
        let work = move || {
            while let Ok(()) = woken.recv() {
                // What fails here fails again at the end, when the writer's handle is forced out.
                let _ = rustix::fs::fdatasync(&file);
            }
        };
        let builder = std::thread::Builder::new().name("flusher".into());
        builder.stack_size(128 << 10).spawn(work).ok()?;
        let mut flusher = Self { waiting: 0, wake };
        flusher.wrote(old);
        Some(flusher)
    }

    /// So many more bytes were written.
    pub(super) fn wrote(&mut self, bytes: u64) {
        self.waiting += bytes;
        // While it is at work, what is written meanwhile waits for the next time.
        if self.waiting >= STEP && self.wake.try_send(()).is_ok() {
            self.waiting = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_step_wakes_it() {
        let (wake, woken) = sync_channel(1);
        let mut flusher = Flusher { waiting: 0, wake };
        flusher.wrote(STEP - 1);
        assert!(woken.try_recv().is_err());
        flusher.wrote(1);
        flusher.wrote(STEP);
        assert_eq!(flusher.waiting, STEP, "still at work");
        assert!(woken.try_recv().is_ok());
        flusher.wrote(1);
        assert!(woken.try_recv().is_ok());
        assert_eq!(flusher.waiting, 0);
    }
}
