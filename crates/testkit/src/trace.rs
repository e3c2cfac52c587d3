//! The last segments of a run, printed like packet scripts.

use std::collections::VecDeque;
use std::fmt;

use tack_base::Instant;
use tack_wire::{Ecn, Header, SeqNum, TackOption};

/// Sequence numbers from which a direction of a connection counts: its initial ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origins {
    /// Of the sender of the segment.
    pub seq: SeqNum,
    /// Of the other side.
    pub ack: SeqNum,
}

/// A segment as text: `P. 1:1001(1000) ack 1 win 500 <TS val 5 ecr 7>`, numbers relative to
/// `origins`.
pub fn describe(header: &Header, len: usize, ecn: Ecn, origins: Origins) -> String {
    let seq = header.seq.0.wrapping_sub(origins.seq.0);
    let mut text = format!(
        "{:?} {seq}:{}({len})",
        header.flags,
        seq.wrapping_add(len as u32)
    );
    if header.flags.ack() {
        text += &format!(" ack {}", header.ack.0.wrapping_sub(origins.ack.0));
    }
    text += &format!(" win {}", header.window);
    if ecn != Ecn::NotEct {
        text += &format!(" ecn {}", format!("{ecn:?}").to_lowercase());
    }
    let mut options = Vec::new();
    if let Some(mss) = header.options.mss {
        options.push(format!("mss {mss}"));
    }
    if let Some(shift) = header.options.window_scale {
        options.push(format!("wscale {shift}"));
    }
    if header.options.sack_permitted {
        options.push("sackOK".to_string());
    }
    if !header.options.sack.is_empty() {
        let block = |n: SeqNum| n.0.wrapping_sub(origins.ack.0);
        let blocks = header
            .options
            .sack
            .iter()
            .map(|b| format!(" {}:{}", block(b.start), block(b.end)));
        options.push(format!("sack{}", blocks.collect::<String>()));
    }
    if let Some(timestamps) = header.options.timestamps {
        options.push(format!(
            "TS val {} ecr {}",
            timestamps.value, timestamps.echo
        ));
    }
    if let Some(tack) = header.options.tack {
        let lists = if tack.has_lists() { " lists" } else { "" };
        options.push(match tack {
            TackOption::Syn(_) => "tack".to_string(),
            TackOption::Data(stamp) => format!("pkt {}", stamp.number),
            TackOption::Sync(sync) => format!("sync {}", sync.number),
            TackOption::Report(report) => {
                format!("report {} largest {}{lists}", report.number, report.largest)
            }
            TackOption::Loss(loss) => format!(
                "loss {} largest {} between {} {}{lists}",
                loss.number, loss.largest, loss.before_gap, loss.after_gap
            ),
        });
    }
    if !options.is_empty() {
        text += &format!(" <{}>", options.join(","));
    }
    text
}

/// The last lines of a run.
#[derive(Debug)]
pub struct Trace {
    lines: VecDeque<String>,
    capacity: usize,
    left_out: u64,
}

impl Trace {
    /// Keeps the last `capacity` lines.
    pub fn new(capacity: usize) -> Self {
        Self {
            lines: VecDeque::new(),
            capacity,
            left_out: 0,
        }
    }

    /// Adds a line about something that happened at `now`.
    pub fn note(&mut self, now: Instant, what: impl fmt::Display) {
        if self.lines.len() == self.capacity {
            self.lines.pop_front();
            self.left_out += 1;
        }
        self.lines
            .push_back(format!("{:>13.6} {what}", now.as_secs_f64()));
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.left_out > 0 {
            writeln!(f, "  ({} earlier lines left out)", self.left_out)?;
        }
        self.lines
            .iter()
            .try_for_each(|line| writeln!(f, "  {line}"))
    }
}
