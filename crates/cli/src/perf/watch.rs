//! The flows of one side while they run: when they are looked at, and what ends them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tack_base::units::show_duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::flow::{Budget, Ended, Shared, SnapshotRequest};
use super::report::{Interval, Intervals};
use super::request::{Carrier, Limit, TestRequest};
use super::results::{FlowResult, Snapshot};
use super::udp::LINGER;

/// How long the end of a test may take beyond its length: buffers drain, losses are repaired.
pub(crate) const GRACE: Duration = Duration::from_secs(60);
/// How long connections may take to show their state.
const LOOK: Duration = Duration::from_millis(200);
/// An interval waits this long at least before it is shown, and a tenth of its length: what ends a
/// test of so many bytes so soon after a look belongs to it.
const TAIL: Duration = Duration::from_millis(20);

/// The running flows of one side.
#[derive(Debug)]
pub(crate) struct Flows {
    /// Each task has one flow or several.
    tasks: JoinSet<io::Result<Vec<Ended>>>,
    asks: watch::Sender<SnapshotRequest>,
    snapshots: mpsc::Receiver<Snapshot>,
    shared: Shared,
    /// Those that still run, by their numbers.
    running: BTreeSet<usize>,
    /// Before the first of them: short ones can be over before anybody watches.
    began: Instant,
}

/// When to look, and until when to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// Between looks; zero for none.
    pub(crate) interval: Duration,
    /// The beginning that the results leave out.
    pub(crate) omit: Duration,
    /// The length of the test after that, when a time ends it.
    pub(crate) time: Option<Duration>,
    /// How long after the end flows are still waited for before they are looked at, besides an
    /// interval.
    pub(crate) linger: Duration,
    /// When to give the test up.
    pub(crate) limit: Option<Duration>,
    /// A server's limit, which may be that one.
    pub(crate) most: Option<Duration>,
}

impl Timing {
    /// Looks every `interval`, and waits `most` for the end, if there is a limit besides the test's
    /// own length.
    pub(crate) fn of(request: &TestRequest, interval: Duration, most: Option<Duration>) -> Self {
        let omit = Duration::from_millis(request.omit_millis);
        let time = match request.limit {
            Limit::Millis(millis) => Some(Duration::from_millis(millis)),
            Limit::Bytes(_) => None,
        };
        let longest = time.map(|time| omit + time + GRACE);
        Self {
            interval,
            omit,
            time,
            linger: match request.carrier {
                Carrier::Tcp => Duration::ZERO,
                Carrier::Udp { .. } => LINGER,
            },
            limit: longest.into_iter().chain(most).min(),
            most,
        }
    }
}

impl Flows {
    /// `count` flows that are to be spawned.
    pub(crate) fn new(count: usize, omit: Duration, budget: Arc<Budget>) -> Self {
        let (asks, asked) = watch::channel(SnapshotRequest {
            looks: 0,
            begun: omit.is_zero(),
        });
        let (sender, snapshots) = mpsc::channel(2 * count.max(1));
        Self {
            tasks: JoinSet::new(),
            asks,
            snapshots,
            shared: Shared {
                asks: asked,
                snapshots: sender,
                budget,
            },
            running: (0..count).collect(),
            began: Instant::now(),
        }
    }

    pub(crate) fn shared(&self) -> Shared {
        self.shared.clone()
    }

    /// Starts one task with the flows that it will return.
    pub(crate) fn spawn(
        &mut self,
        flows: impl Future<Output = io::Result<Vec<Ended>>> + Send + 'static,
    ) {
        self.tasks.spawn(flows);
    }

    /// The next flows that end; `None` when none is left.
    async fn next(&mut self) -> Option<io::Result<Vec<Ended>>> {
        next(&mut self.tasks, &mut self.running).await
    }

    /// The state of every connection, and how those ended that did so meanwhile.
    async fn look(&mut self, begun: bool) -> io::Result<(Vec<Snapshot>, Vec<Ended>)> {
        // What came too late for the last look.
        while self.snapshots.try_recv().is_ok() {}
        self.asks.send_modify(|ask| {
            ask.looks += 1;
            ask.begun |= begun;
        });
        let deadline = Instant::now() + LOOK;
        let (mut looked, mut gone) = (BTreeMap::new(), Vec::new());
        let Self {
            tasks,
            snapshots,
            running,
            ..
        } = self;
        while running.iter().any(|stream| !looked.contains_key(stream)) {
            tokio::select! {
                biased;
                Some(snapshot) = snapshots.recv() => { looked.insert(snapshot.stream, snapshot); }
                Some(ended) = next(tasks, running) => gone.extend(ended?),
                () = tokio::time::sleep_until(deadline) => break,
            }
        }
        for ended in &gone {
            looked.remove(&ended.result.stream);
        }
        Ok((looked.into_values().collect(), gone))
    }
}

async fn next(
    tasks: &mut JoinSet<io::Result<Vec<Ended>>>,
    running: &mut BTreeSet<usize>,
) -> Option<io::Result<Vec<Ended>>> {
    let ended = tasks.join_next().await?;
    let ended = ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    for ended in ended.iter().flatten() {
        running.remove(&ended.result.stream);
    }
    Some(ended)
}

/// An interval that is over and not shown yet.
#[derive(Debug)]
struct Held {
    end: Duration,
    snapshots: Vec<Snapshot>,
    is_omitted: bool,
}

impl Held {
    /// With how flows ended after it, at `end` at the latest.
    fn with_tail(mut self, end: Duration, tail: Vec<Snapshot>) -> Self {
        if tail.is_empty() {
            return self;
        }
        self.snapshots
            .retain(|before| tail.iter().all(|after| after.stream != before.stream));
        self.snapshots.extend(tail);
        self.end = end;
        self
    }

    fn interval(self, intervals: &mut Intervals) -> Interval {
        intervals.next(self.end.as_secs_f64(), self.snapshots, self.is_omitted)
    }
}

/// Runs all flows to their ends and reports intervals meanwhile. Results come in the order of the
/// flows' numbers.
pub(crate) async fn watch<E: From<io::Error>>(
    mut flows: Flows,
    mut intervals: Intervals,
    timing: Timing,
    mut report: impl FnMut(Interval) -> Result<(), E>,
) -> Result<Vec<FlowResult>, E> {
    let began = flows.began;
    let far = Duration::from_secs(u32::MAX.into());
    let mut results: Vec<FlowResult> = Vec::new();
    // Connections that ended since the last look: how they ended belongs to the interval in which
    // they did.
    let mut since: Vec<Snapshot> = Vec::new();
    let mut last_end = std::time::Instant::now();
    let mut keep = |ended: Vec<Ended>, since: &mut Vec<Snapshot>| {
        for ended in ended {
            last_end = last_end.max(ended.at);
            since.push(ended.last);
            results.push(ended.result);
        }
    };
    let mut ticks = Ticks::new(timing);
    let mut looked_at = Duration::ZERO;
    // The interval that the last look ended, until it is shown.
    let mut held: Option<Held> = None;
    let tail = (timing.interval / 10).max(TAIL).min(timing.interval);
    let limit = tokio::time::sleep_until(began + timing.limit.unwrap_or(far));
    let mut limit = std::pin::pin!(limit);
    loop {
        tokio::select! {
            biased;
            ended = flows.next() => match ended {
                None => break,
                Some(ended) => keep(ended?, &mut since),
            },
            () = tokio::time::sleep_until(began + looked_at + tail), if held.is_some() => {
                if let Some(held) = held.take() {
                    report(held.interval(&mut intervals))?;
                }
            }
            () = tokio::time::sleep_until(began + ticks.next) => {
                let begins = ticks.next == timing.omit && !timing.omit.is_zero();
                let (looked, ended) = flows.look(begins).await?;
                keep(ended, &mut since);
                since.extend(looked);
                looked_at = began.elapsed();
                let new = Held {
                    end: looked_at,
                    snapshots: std::mem::take(&mut since),
                    is_omitted: ticks.next <= timing.omit,
                };
                ticks.advance_past(looked_at);
                if timing.interval.is_zero() {
                    new.interval(&mut intervals);
                } else if let Some(last) = held.replace(new) {
                    report(last.interval(&mut intervals))?;
                }
            }
            () = &mut limit => {
                let limit = show_duration(timing.limit.unwrap_or(far));
                let message = match timing.limit == timing.most {
                    true => format!("the test took longer than the {limit} that this server allows (--max-duration)"),
                    false => format!("the test did not end within {limit}"),
                };
                return Err(io::Error::new(io::ErrorKind::TimedOut, message).into());
            }
        }
    }
    // The test ends when the last bytes moved, however long we waited for more.
    let end = last_end.saturating_duration_since(began.into_std());
    if let Some(mut last) = held {
        // What the results leave out takes nothing that they count.
        if !last.is_omitted {
            last = last.with_tail(end.max(looked_at), std::mem::take(&mut since));
        }
        report(last.interval(&mut intervals))?;
    }
    // The rest: an interval that is shorter than the others. Where the interval before it was shown
    // before we heard of the end, it lasts until then.
    if !timing.interval.is_zero() && !since.is_empty() {
        let end = match end > looked_at + timing.interval / 10 {
            true => end,
            false => began.elapsed(),
        };
        report(intervals.next(end.as_secs_f64(), since, false))?;
    }
    results.sort_by_key(|result| result.stream);
    Ok(results)
}

/// When to look next.
#[derive(Debug)]
struct Ticks {
    timing: Timing,
    /// From the beginning.
    next: Duration,
}

impl Ticks {
    fn new(timing: Timing) -> Self {
        let mut ticks = Self {
            timing,
            next: Duration::ZERO,
        };
        ticks.advance();
        ticks
    }

    /// The next tick that comes after `now`, by more than a tenth of an interval: a late look
    /// leaves no intervals of no length behind it. The one at which the results begin stays.
    fn advance_past(&mut self, now: Duration) {
        let Timing { interval, omit, .. } = self.timing;
        self.advance();
        while self.next <= now + interval / 10 && self.next != omit {
            self.advance();
        }
    }

    fn advance(&mut self) {
        let Timing {
            interval,
            omit,
            time,
            linger,
            ..
        } = self.timing;
        let last = self.next;
        let mut next = match interval {
            Duration::ZERO => Duration::from_secs(u32::MAX.into()),
            interval => last + interval,
        };
        // The results begin at a tick.
        if last < omit {
            next = next.min(omit);
        }
        // A tick at the end, or soon after it, would leave the tail an interval of its own,
        // microseconds long. It waits for an interval more: most tests have ended by then,
        // and the last interval is as long as it really was.
        if let Some(time) = time {
            let end = omit + time;
            if !interval.is_zero() && last < end && next + interval / 10 > end {
                next = end + interval + linger;
            }
        }
        self.next = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(interval: u64, omit: u64, time: Option<u64>, linger: u64) -> Vec<u64> {
        let mut ticks = Ticks::new(Timing {
            interval: Duration::from_millis(interval),
            omit: Duration::from_millis(omit),
            time: time.map(Duration::from_millis),
            linger: Duration::from_millis(linger),
            limit: None,
            most: None,
        });
        let mut all = Vec::new();
        for _ in 0..4 {
            all.push(ticks.next.as_millis() as u64);
            ticks.advance();
        }
        all
    }

    #[test]
    fn the_tick_at_the_end_waits_for_the_tail() {
        assert_eq!(ticks(100, 0, Some(300), 0), [100, 200, 400, 500]);
        assert_eq!(ticks(100, 0, Some(350), 0), [100, 200, 300, 450]);
        assert_eq!(ticks(100, 0, None, 0), [100, 200, 300, 400]);
        assert_eq!(ticks(100, 0, Some(300), 300), [100, 200, 700, 800]);
    }

    #[test]
    fn a_late_look_skips_the_ticks_that_it_missed() {
        let timing = Timing {
            interval: Duration::from_millis(100),
            omit: Duration::from_millis(350),
            time: None,
            linger: Duration::ZERO,
            limit: None,
            most: None,
        };
        let mut ticks = Ticks::new(timing);
        ticks.advance_past(Duration::from_millis(295));
        assert_eq!(ticks.next, Duration::from_millis(350), "the results begin");
        ticks.advance_past(Duration::from_millis(720));
        assert_eq!(ticks.next, Duration::from_millis(750));
    }

    #[test]
    fn results_begin_at_a_tick() {
        assert_eq!(ticks(100, 250, Some(1000), 0), [100, 200, 250, 350]);
        assert_eq!(ticks(0, 250, Some(1000), 0)[0], 250);
    }
}
