//! What is compared of the runs of a path.

/// What came of a path with one policy: one run, or several in one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// Bits per second of all judged flows.
    pub(crate) goodput: f64,
    /// The same of the slower and the faster one of two alike flows; of the judged ones where
    /// there are none.
    pub(crate) slower: f64,
    pub(crate) faster: f64,
    /// The same of all flows of the path, judged or not.
    pub(crate) all: f64,
    /// Bytes of the judged flows.
    pub(crate) bytes: f64,
    /// Until the last byte of the last flow, seconds; the whole run where it never came.
    pub(crate) completion: f64,
    /// Segments with payload, and those that repeated bytes.
    pub(crate) data: f64,
    pub(crate) repeated: f64,
    pub(crate) acks: f64,
    /// Bytes of the acknowledgements, IP headers included.
    pub(crate) ack_bytes: f64,
    pub(crate) timeouts: f64,
    /// Requests answered.
    pub(crate) answers: f64,
    /// Share of the time that the player of a video stood still.
    pub(crate) still: f64,
    /// Processor seconds; zero where they are not measured.
    pub(crate) processor: f64,
    /// Shortest round trip that a sender saw, seconds; zero if none.
    pub(crate) min_rtt: f64,
    /// Packets that the wired path lost, of both directions and all flows.
    pub(crate) path_losses: f64,
    /// Those of them that were too large for it, and those that blackouts swallowed.
    pub(crate) too_large: f64,
    pub(crate) blacked_out: f64,
    /// Packets that it marked, likewise.
    pub(crate) path_marks: f64,
    /// Something that had an end did not reach it.
    pub(crate) unfinished: bool,
    /// Times that a sender did not get on, and the longest time without progress, seconds.
    pub(crate) stalls: u64,
    pub(crate) no_progress: f64,
    /// An invariant does not hold: a stall is one.
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

    /// Acknowledgements in a second.
    pub(crate) fn acks_per_second(&self) -> f64 {
        self.acks_per_byte() * self.goodput / 8.0
    }

    /// The figures as lines of a comment in a scenario file.
    pub(crate) fn line(&self, name: &str) -> String {
        let broken = self.broken.as_ref();
        let broken = broken.map_or_else(String::new, |what| format!("# {name:>9}: {what}\n"));
        format!(
            "{broken}# {name:>9}: {:.3} Mbit/s, {:.0} bytes in {:.3} s{}, {:.0} segments ({:.1} % again), {:.0} ACKs, {:.0} RTOs, \
             {:.0} answers, {:.2} still, {:.1} s without progress, {:.2} s of processor\n",
            self.goodput / 1e6,
            self.bytes,
            self.completion,
            if self.unfinished { " without end" } else { "" },
            self.data,
            100.0 * self.repeated_share(),
            self.acks,
            self.timeouts,
            self.answers,
            self.still,
            self.no_progress,
            self.processor,
        )
    }

    /// Several runs in one: of what is counted the mean, which a few runs in which everything goes
    /// wrong belong to, and of speed and time the median.
    pub(crate) fn together(runs: &[Self]) -> Self {
        let mean =
            |figure: fn(&Self) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
        Self {
            bytes: mean(|run| run.bytes),
            data: mean(|run| run.data),
            repeated: mean(|run| run.repeated),
            acks: mean(|run| run.acks),
            ack_bytes: mean(|run| run.ack_bytes),
            timeouts: mean(|run| run.timeouts),
            path_losses: mean(|run| run.path_losses),
            too_large: mean(|run| run.too_large),
            blacked_out: mean(|run| run.blacked_out),
            path_marks: mean(|run| run.path_marks),
            ..Self::median(runs)
        }
    }

    /// As [`Self::together`], with means of speed and time as well: a median does not show that a
    /// third of the runs fail.
    pub(crate) fn on_average(runs: &[Self]) -> Self {
        let mean =
            |figure: fn(&Self) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
        Self {
            completion: mean(|run| run.completion),
            goodput: mean(|run| run.goodput),
            slower: mean(|run| run.slower),
            answers: mean(|run| run.answers),
            still: mean(|run| run.still),
            ..Self::together(runs)
        }
    }

    /// Each figure's median; unfinished when most runs were, broken when any was.
    pub(crate) fn median(runs: &[Self]) -> Self {
        let median = |figure: fn(&Self) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(figure).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Self {
            goodput: median(|run| run.goodput),
            slower: median(|run| run.slower),
            faster: median(|run| run.faster),
            all: median(|run| run.all),
            bytes: median(|run| run.bytes),
            completion: median(|run| run.completion),
            data: median(|run| run.data),
            repeated: median(|run| run.repeated),
            acks: median(|run| run.acks),
            ack_bytes: median(|run| run.ack_bytes),
            timeouts: median(|run| run.timeouts),
            answers: median(|run| run.answers),
            still: median(|run| run.still),
            processor: median(|run| run.processor),
            stalls: runs.iter().map(|run| run.stalls).max().unwrap_or(0),
            no_progress: median(|run| run.no_progress),
            min_rtt: median(|run| run.min_rtt),
            path_losses: median(|run| run.path_losses),
            too_large: median(|run| run.too_large),
            blacked_out: median(|run| run.blacked_out),
            path_marks: median(|run| run.path_marks),
            unfinished: runs.iter().filter(|run| run.unfinished).count() * 2 > runs.len(),
            broken: runs.iter().find_map(|run| run.broken.clone()),
        }
    }
}
