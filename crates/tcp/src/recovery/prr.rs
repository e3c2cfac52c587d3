//! Proportional rate reduction (RFC 6937, with the bound of its successor draft): in fast recovery,
//! sends in proportion to what is delivered, so that the window has come down to `ssthresh` when
//! the episode ends, without a silent half round trip and without a burst.

/// State of one recovery episode. Bytes throughout.
#[derive(Debug)]
pub(crate) struct Prr {
    delivered: u64,
    out: u64,
    /// Bytes in flight when the episode began (RecoverFS).
    flight: u64,
    ssthresh: u64,
    /// How much may be in flight now.
    window: u64,
}

impl Prr {
    /// An episode begins with `flight` bytes in flight, heading for `ssthresh`.
    pub(crate) fn new(flight: u64, ssthresh: u64) -> Self {
        Self {
            delivered: 0,
            out: 0,
            flight: flight.max(1),
            ssthresh,
            window: 0,
        }
    }

    /// An acknowledgement delivered `delivered` bytes; afterwards `in_flight` are in flight.
    /// `progress` says that the cumulative acknowledgement advanced and nothing more was lost.
    pub(crate) fn on_ack(&mut self, delivered: u64, in_flight: u64, mss: u64, progress: bool) {
        self.delivered += delivered;
        let allowance = if in_flight > self.ssthresh {
            // Proportional part: ceil(delivered · ssthresh / flight) − out.
            let share = (u128::from(self.delivered) * u128::from(self.ssthresh))
                .div_ceil(u128::from(self.flight));
            u64::try_from(share)
                .unwrap_or(u64::MAX)
                .saturating_sub(self.out)
        } else {
            // Reduction bound: rebuild towards ssthresh, faster while all goes well.
            let mut limit = self.delivered.saturating_sub(self.out).max(delivered);
            if progress {
                limit += mss;
            }
            limit.min(self.ssthresh - in_flight)
        };
        // The first retransmission of the episode always leaves (fast retransmit).
        let allowance = if self.out == 0 {
            allowance.max(mss)
        } else {
            allowance
        };
        self.window = in_flight + allowance;
    }

    /// `len` bytes left.
    pub(crate) fn on_send(&mut self, len: u64) {
        self.out += len;
    }

    /// How much may be in flight now.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_sends_every_other_segment() {
        // Ten segments in flight, one lost; ssthresh five (the RFC's example shape).
        let mut prr = Prr::new(10_000, 5_000);
        let mut in_flight = 9_000;
        let mut sent = 0;
        for _ in 0..9 {
            in_flight -= 1_000;
            prr.on_ack(1_000, in_flight, 1_000, false);
            while in_flight + 1_000 <= prr.window() {
                prr.on_send(1_000);
                in_flight += 1_000;
                sent += 1;
            }
        }
        assert!((4..=5).contains(&sent), "{sent}");
        assert!(in_flight <= 5_000);
    }
}
