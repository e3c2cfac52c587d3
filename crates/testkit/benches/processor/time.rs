//! The clock of comparisons of work: processor time. Shared by benchmarks and the random search,
//! and not a target of its own.

use std::time::Duration;

/// Processor time of this thread so far, where the system tells; else the time that has passed.
pub(crate) fn processor_time() -> Duration {
    // Linux brings the figure up to date when a thread yields, and else every few milliseconds.
    std::thread::yield_now();
    if let Ok(text) = std::fs::read_to_string("/proc/thread-self/schedstat")
        && let Some(spent) = text.split_whitespace().next()
        && let Ok(spent) = spent.parse()
    {
        return Duration::from_nanos(spent);
    }
    #[expect(clippy::disallowed_methods, reason = "a benchmark owns a clock")]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
}
