//! Progress on standard error: a bar on a terminal, lines elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::values::duration;

/// A bar of `length` steps, if that is known, in the form of `template`. It hides itself when
/// standard error is not a terminal.
pub(crate) fn bar(length: Option<u64>, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr_with_hz(10));
    set_template(&bar, template);
    bar
}

/// A bar that counts finished runs of the simulator. It keeps moving between them.
pub(crate) fn runs(count: usize) -> ProgressBar {
    let bar = bar(
        Some(count as u64),
        "{bar:32} {pos}/{len} runs, {elapsed} ETA {eta}",
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A bar that counts runs of a sweep, and says how many a second.
pub(crate) fn sweep_runs() -> ProgressBar {
    let bar = bar(
        Some(0),
        "{bar:32} {pos}/{len} runs, {per_sec}, {elapsed} ETA {eta}",
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Changes the form of a bar.
pub(crate) fn set_template(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

/// How often there is a line of progress where no bar can be shown.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct LineArgs {
    /// Time between lines of progress where standard error is no terminal; 0s: a line for each run
    #[arg(long, hide = true, value_name = "TIME", value_parser = duration, default_value = "15s")]
    progress_every: Duration,
}

/// Progress for a file or a pipe: a line now and then.
#[derive(Debug)]
pub(crate) struct Lines {
    wanted: bool,
    every: Duration,
    began: Option<Instant>,
    last: Option<Instant>,
}

impl Lines {
    pub(crate) fn new(wanted: bool, args: LineArgs) -> Self {
        Self {
            wanted,
            every: args.progress_every,
            began: None,
            last: None,
        }
    }

    /// What to say at `now`, if anything.
    pub(crate) fn next(&mut self, now: Instant, done: usize, total: usize) -> Option<String> {
        let began = *self.began.get_or_insert(now);
        let last = *self.last.get_or_insert(now);
        // What comes at the end says that it is one.
        if !self.wanted || done == total || now.saturating_duration_since(last) < self.every {
            return None;
        }
        self.last = Some(now);
        let seconds = now.saturating_duration_since(began).as_secs();
        Some(format!("tack: {done} of {total} runs after {seconds} s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_bar_progress_is_a_line_now_and_then() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let args = LineArgs {
            progress_every: Duration::from_secs(15),
        };
        let mut lines = Lines::new(true, args);
        assert_eq!(lines.next(at(0), 0, 9), None, "a short run is silent");
        assert_eq!(lines.next(at(14), 3, 9), None);
        let told = lines.next(at(16), 4, 9);
        assert_eq!(told.as_deref(), Some("tack: 4 of 9 runs after 16 s"));
        assert_eq!(lines.next(at(30), 5, 9), None);
        assert!(lines.next(at(31), 6, 9).is_some());
        assert_eq!(lines.next(at(99), 9, 9), None, "the results follow");
        let mut bar = Lines::new(false, args);
        assert_eq!(
            (bar.next(at(0), 0, 9), bar.next(at(99), 1, 9)),
            (None, None)
        );
    }
}
