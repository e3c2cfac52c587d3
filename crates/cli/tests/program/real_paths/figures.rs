//! What is compared, under the names that the judgement of the search has for it.

/// What came of a path with one policy: one run, or several in one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// Bits per second. There is one flow, so that the slower and the faster one are the same.
    pub(crate) goodput: f64,
    pub(crate) slower: f64,
    pub(crate) faster: f64,
    pub(crate) bytes: f64,
    /// Until the last byte, seconds; the whole run where it never came.
    pub(crate) completion: f64,
    /// Segments with payload, and those that repeated bytes.
    pub(crate) data: f64,
    pub(crate) repeated: f64,
    pub(crate) acks: f64,
    pub(crate) timeouts: f64,
    /// Requests answered.
    pub(crate) answers: f64,
    /// Of a video: there is none.
    pub(crate) still: f64,
    /// Not measured: both ends and the emulator share a process.
    pub(crate) processor: f64,
    pub(crate) unfinished: bool,
    /// Times that a sender did not get on, and the longest time without progress, seconds.
    pub(crate) stalls: u64,
    pub(crate) no_progress: f64,
    /// What went wrong for good.
    pub(crate) broken: Option<String>,
}

impl Figures {
    /// Share of the segments that repeated bytes, 0 to 1.
    pub(crate) fn repeated_share(&self) -> f64 {
        if self.data > 0.0 {
            self.repeated / self.data
        } else {
            0.0
        }
    }

    /// Acknowledgements for each byte; zero if none arrived.
    pub(crate) fn acks_per_byte(&self) -> f64 {
        if self.bytes > 0.0 {
            self.acks / self.bytes
        } else {
            0.0
        }
    }

    /// Each figure's median.
    pub(crate) fn median(runs: &[Self]) -> Self {
        let median = |figure: fn(&Self) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(figure).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let goodput = median(|run| run.goodput);
        Self {
            goodput,
            slower: goodput,
            faster: goodput,
            bytes: median(|run| run.bytes),
            completion: median(|run| run.completion),
            data: median(|run| run.data),
            repeated: median(|run| run.repeated),
            acks: median(|run| run.acks),
            timeouts: median(|run| run.timeouts),
            answers: median(|run| run.answers),
            no_progress: median(|run| run.no_progress),
            unfinished: runs.iter().filter(|run| run.unfinished).count() * 2 > runs.len(),
            stalls: runs.iter().map(|run| run.stalls).max().unwrap_or(0),
            broken: runs.iter().find_map(|run| run.broken.clone()),
            ..Self::default()
        }
    }

    /// A line of a report, for the policy `name`.
    pub(crate) fn line(&self, name: &str) -> String {
        let broken = self.broken.as_ref();
        let broken = broken.map_or_else(String::new, |what| format!("# {name:>9}: {what}\n"));
        format!(
            "{broken}# {name:>9}: {:.3} Mbit/s, {:.0} bytes in {:.3} s{}, {:.0} segments ({:.1} % again), {:.0} ACKs, \
             {:.0} RTOs, {:.0} answers, {:.1} s without progress\n",
            self.goodput / 1e6,
            self.bytes,
            self.completion,
            if self.unfinished { " without end" } else { "" },
            self.data,
            100.0 * self.repeated_share(),
            self.acks,
            self.timeouts,
            self.answers,
            self.no_progress,
        )
    }
}
