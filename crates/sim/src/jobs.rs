//! Jobs side by side on a pool of threads.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// The system gives no threads.
#[derive(Debug, thiserror::Error)]
#[error("cannot start threads: {0}")]
pub struct JobsError(#[from] rayon::ThreadPoolBuildError);

/// Runs `work` for each of `jobs` on `threads` threads, by default one for each processor, in
/// order. `take` gets each result on the calling thread as soon as it is there, with the number of
/// its job from 0, and `None` for a job that panicked. When `take` breaks off, jobs that have not
/// begun are not run, and those under way are not waited for.
///
/// # Errors
/// [`JobsError`] when threads cannot be started; then no job has run.
pub fn run_jobs<J, R>(
    jobs: Vec<J>,
    threads: Option<usize>,
    work: impl Fn(J) -> R + Send + Sync + 'static,
    mut take: impl FnMut(usize, Option<R>) -> ControlFlow<()>,
) -> Result<(), JobsError>
where
    J: Send + 'static,
    R: Send + 'static,
{
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()?;
    let (work, stopped) = (Arc::new(work), Arc::new(AtomicBool::new(false)));
    let (results_in, results) = mpsc::channel();
    for (number, job) in jobs.into_iter().enumerate() {
        let (work, stopped) = (Arc::clone(&work), Arc::clone(&stopped));
        let results_in = results_in.clone();
        pool.spawn(move || {
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            // Nothing that a panic could leave half done is used again.
            let result = catch_unwind(AssertUnwindSafe(|| work(job))).ok();
            // Nobody listens any more once the caller broke off.
            let _ = results_in.send((number, result));
        });
    }
    drop(results_in);
    for (number, result) in results {
        if take(number, result).is_break() {
            stopped.store(true, Ordering::Relaxed);
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn every_job_is_run_once_and_a_panic_costs_only_its_own() {
        let mut seen = [None; 20];
        let work = |job: usize| {
            assert_ne!(job, 7, "this job is to panic");
            job * 2
        };
        run_jobs((0..20).collect(), Some(3), work, |number, result| {
            assert!(seen[number].replace(result).is_none());
            ControlFlow::Continue(())
        })
        .unwrap();
        for (number, result) in seen.iter().enumerate() {
            let expected = (number != 7).then_some(number * 2);
            assert_eq!(*result, Some(expected), "{number}");
        }
    }

    #[test]
    fn after_a_break_no_job_begins() {
        let begun = Arc::new(AtomicUsize::new(0));
        let (gate_in, gate) = mpsc::channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        let (alive, ended) = mpsc::channel::<()>();
        let counted = Arc::clone(&begun);
        let work = move |job: usize| {
            let _alive = &alive;
            counted.fetch_add(1, Ordering::Relaxed);
            if job == 1 {
                // Until the caller has broken off.
                let _closed = gate.lock().unwrap().recv();
            }
        };
        run_jobs((0..50).collect(), Some(1), work, |_, _| {
            ControlFlow::Break(())
        })
        .unwrap();
        drop(gate_in);
        // The last job takes the sender with it.
        assert!(ended.recv().is_err());
        // The second one may have begun before the first was taken.
        assert!(begun.load(Ordering::Relaxed) <= 2);
    }
}
