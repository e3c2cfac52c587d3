//! The state of every flow over time, as CSV.

use std::io::{self, Write};
use std::time::Duration;

use super::{Observer, Sample};

/// Writes a line for each flow at each interval.
#[derive(Debug)]
pub struct Series<W: Write> {
    out: W,
    interval: Duration,
    error: Option<io::Error>,
}

impl<W: Write> Series<W> {
    /// Samples every `interval` to `out`, which should be buffered.
    ///
    /// # Errors
    /// Whatever `out` says to the first line, and an interval of zero.
    pub fn new(mut out: W, interval: Duration) -> io::Result<Self> {
        if interval.is_zero() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the interval of a series must be above zero",
            ));
        }
        writeln!(
            out,
            "time_s,flow,goodput_bps,cwnd,bytes_in_flight,srtt_us,pacing_bps,queue_packets"
        )?;
        Ok(Self {
            out,
            interval,
            error: None,
        })
    }
}

impl<W: Write> Observer for Series<W> {
    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn on_sample(&mut self, sample: &Sample) {
        if self.error.is_some() {
            return;
        }
        let srtt = sample
            .srtt
            .map_or_else(String::new, |srtt| srtt.as_micros().to_string());
        let pacing = sample
            .pacing_bps
            .map_or_else(String::new, |rate| rate.to_string());
        let written = writeln!(
            self.out,
            "{},{},{},{},{},{srtt},{pacing},{}",
            sample.at.as_secs_f64(),
            sample.flow,
            sample.goodput_bps,
            sample.cwnd,
            sample.bytes_in_flight,
            sample.queue_packets,
        );
        self.error = written.err();
    }

    fn finish(&mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}
