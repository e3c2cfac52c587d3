//! Proportional rate reduction (RFC 9937): in fast recovery, sends in proportion to what is
//! delivered, so that the window has come down to `ssthresh` when the episode ends, without a
//! silent half round trip and without a burst.

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
            // Reduction bound: rebuild towards ssthresh, faster while all goes well: as slow start
            // does.
            //
            // Deviation: RFC 9937 §6.2 adds a segment for each acknowledgement, which is one for
            // each segment where what fills a hole is acknowledged at once. Bytes are counted, as
            // in slow start (RFC 3465): a report tells of many segments.
            let mut limit = self.delivered.saturating_sub(self.out).max(delivered);
            if progress {
                limit += delivered.max(mss);
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

    /// After an outage nothing is in flight: each round trip doubles what is, however few
    /// acknowledgements tell of it.
    #[test]
    fn a_flight_is_rebuilt_as_in_slow_start() {
        for acknowledgements in [16, 4, 1] {
            let mut prr = Prr::new(100_000, 50_000);
            prr.on_ack(1_000, 0, 1_000, false);
            prr.on_send(1_000);
            let mut in_flight = 1_000;
            for _ in 0..4 {
                let each = in_flight / acknowledgements;
                let mut sent = 0;
                for _ in 0..acknowledgements {
                    in_flight -= each;
                    prr.on_ack(each, in_flight, 1, true);
                    let room = prr.window() - in_flight;
                    prr.on_send(room);
                    in_flight += room;
                    sent += room;
                }
                assert!(sent <= 50_000);
            }
            assert!((15_000..=17_000).contains(&in_flight), "{in_flight}");
        }
    }
}
