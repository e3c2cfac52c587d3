//! Keep-alive (RFC 9293 §3.8.4): is a silent peer still there?

use tack_base::Instant;

use crate::config;

/// What follows when the keep-alive timer runs out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Silence {
    /// The peer was heard lately, or has data to acknowledge: the timer is set to this instant.
    Wait(Instant),
    /// A probe leaves, and the timer is set.
    Probe(Instant),
    /// The peer answered no probe.
    GiveUp,
}

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

    /// The timer ran out. Unacknowledged data (`awaits_ack`) has the retransmission timer to watch
    /// over the peer.
    pub(super) fn on_timeout(
        &mut self,
        now: Instant,
        settings: &config::KeepAlive,
        awaits_ack: bool,
    ) -> Silence {
        let due = self.last_heard + settings.idle;
        if now < due {
            return Silence::Wait(due);
        }
        let next = now + settings.interval;
        if awaits_ack {
            return Silence::Wait(next);
        }
        if self.probes >= settings.probes {
            return Silence::GiveUp;
        }
        self.probes += 1;
        Silence::Probe(next)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn a_silent_peer_is_asked_so_often_and_a_segment_ends_that() {
        let settings = config::KeepAlive {
            idle: Duration::from_millis(100),
            interval: Duration::from_millis(10),
            probes: 2,
        };
        let at = Instant::from_millis;
        let mut keep_alive = KeepAlive::new(Instant::ZERO);
        let mut step =
            |millis, awaits_ack| keep_alive.on_timeout(at(millis), &settings, awaits_ack);
        assert_eq!(step(99, false), Silence::Wait(at(100)));
        assert_eq!(step(100, true), Silence::Wait(at(110)));
        assert_eq!(step(110, false), Silence::Probe(at(120)));
        assert_eq!(step(120, false), Silence::Probe(at(130)));
        assert_eq!(step(130, false), Silence::GiveUp);
        keep_alive.on_segment(at(131));
        assert_eq!(keep_alive.last_heard(), at(131));
        let again = keep_alive.on_timeout(at(231), &settings, false);
        assert_eq!(again, Silence::Probe(at(241)));
    }
}
