//! Keep-alive (RFC 9293 §3.8.4): is a silent peer still there?

use tack_base::Instant;

/// How long the peer has been silent, and how often it was asked.
#[derive(Debug)]
pub(super) struct KeepAlive {
    /// When the last acceptable segment arrived.
    last_heard: Instant,
    /// Probes since then.
    probes: u32,
}

impl KeepAlive {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            last_heard: now,
            probes: 0,
        }
    }

    /// An acceptable segment arrived.
    #[inline]
    pub(super) fn on_segment(&mut self, now: Instant) {
        self.last_heard = now;
        self.probes = 0;
    }

    /// When the last acceptable segment arrived.
    #[inline]
    pub(super) fn last_heard(&self) -> Instant {
        self.last_heard
    }

    /// The peer is silent. True when it may be asked once more, `most` times in all.
    pub(super) fn probe(&mut self, most: u32) -> bool {
        let may = self.probes < most;
        self.probes += u32::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_peer_is_asked_so_often_and_a_segment_ends_that() {
        let mut keep_alive = KeepAlive::new(Instant::ZERO);
        assert!(keep_alive.probe(2) && keep_alive.probe(2) && !keep_alive.probe(2));
        keep_alive.on_segment(Instant::from_millis(5));
        assert!(keep_alive.probe(2));
        assert_eq!(keep_alive.last_heard(), Instant::from_millis(5));
    }
}
