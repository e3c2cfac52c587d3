//! The segment size: the peer's MSS, our own cap, and what the path turns out to carry.
//!
//! Lower bounds come from ICMP (RFC 8201, RFC 1191) where the carrier delivers it, and from
//! silence: a path that drops large packets silently is recognised when only large
//! segments time out (RFC 4821 §7.7, RFC 8899 "black hole detection").
//!
//! Silence proves little: a path that was down for a while looks the same. So the former size is
//! tried again, after a wait that doubles each time the trial fails.

use core::time::Duration;

use tack_base::Instant;

/// Segment sizes after verdicts of a black hole (RFC 4821 §7.2: 1024-byte probes nearly always
/// pass; 536 is what every IPv4 host takes).
const FALLBACKS: [u16; 2] = [1024, 536];
/// Timeouts in a row of large segments after which the next one makes the path suspect: of a size
/// that came through before, and of one that never did, though the handshake did.
const SUSPICIOUS_TIMEOUTS: u32 = 2;
const SUSPICIOUS_FIRST_TIMEOUTS: u32 = 1;
/// Wait before the former size is tried again, at first and at most (RFC 4821 §7.7 has ten
/// minutes).
const FIRST_WAIT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// A trial that lasted so long without a timeout has succeeded.
const TRIAL: Duration = Duration::from_secs(60);

/// Segment size of one connection. Payload bytes before options, as in the MSS option.
#[derive(Debug)]
pub(crate) struct PathMtu {
    /// What we would send at most.
    cap: u16,
    /// Bytes of headers below TCP.
    overhead: u16,
    timeouts: u32,
    /// Longest segment that came through, bytes of payload.
    longest: u64,
    suspicion: Option<Suspicion>,
}

/// A size that was given up because of silence.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    former: u16,
    /// What takes its place.
    fallback: u16,
    /// How long it is not tried again.
    wait: Duration,
    /// When it was given up, or, in a trial, when that began.
    since: Instant,
    in_trial: bool,
    /// Something arrived since the fallback took its place.
    proven: bool,
}

impl PathMtu {
    /// At most `mss`; `overhead` bytes of headers lie below TCP.
    pub(crate) fn new(mss: u16, overhead: u16) -> Self {
        Self {
            cap: mss.max(MIN_MSS),
            overhead,
            timeouts: 0,
            longest: 0,
            suspicion: None,
        }
    }

    /// Current segment size, before options.
    #[inline]
    pub(crate) fn mss(&self) -> u16 {
        self.cap
    }

    /// The peer's SYN announced `mss`; absent means 536 (RFC 9293 MUST-15).
    pub(crate) fn on_peer_mss(&mut self, mss: Option<u16>) {
        self.cap = self.cap.min(mss.unwrap_or(536).max(MIN_MSS));
    }

    /// The path takes IP packets of at most `mtu` bytes. True when that lowers the segment size.
    pub(crate) fn on_path_mtu(&mut self, mtu: u16) -> bool {
        let mss = mtu.saturating_sub(self.overhead + 20).max(MIN_MSS);
        if let Some(suspicion) = &mut self.suspicion {
            suspicion.former = suspicion.former.min(mss);
        }
        let lower = mss < self.cap;
        self.cap = self.cap.min(mss);
        lower
    }

    /// A segment of `len` bytes timed out. True when that lowers the segment size.
    pub(crate) fn on_timeout(&mut self, now: Instant, len: u64) -> bool {
        if let Some(mut suspicion) = self.suspicion.filter(|suspicion| suspicion.in_trial) {
            if now.saturating_since(suspicion.since) >= TRIAL {
                self.suspicion = None;
            } else if len > u64::from(suspicion.fallback) {
                // One may be lost as others are.
                self.timeouts += 1;
                if self.timeouts <= SUSPICIOUS_FIRST_TIMEOUTS {
                    return false;
                }
                suspicion.in_trial = false;
                suspicion.since = now;
                suspicion.wait = (suspicion.wait * 2).min(LONGEST_WAIT);
                self.suspicion = Some(suspicion);
                self.cap = self.cap.min(suspicion.fallback);
                self.timeouts = 0;
                return true;
            }
        }
        // The segment that is stuck must come out smaller, whatever others may be.
        let fits = |fallback: &u16| *fallback < self.cap && u64::from(*fallback) < len;
        let Some(fallback) = FALLBACKS.into_iter().find(fits) else {
            self.timeouts = 0;
            return false;
        };
        self.timeouts += 1;
        // A fallback that nothing has come through yet is as suspect as what it stands for.
        let suspected = self
            .suspicion
            .is_some_and(|suspicion| !suspicion.in_trial && !suspicion.proven);
        let patience = if len <= self.longest {
            SUSPICIOUS_TIMEOUTS
        } else {
            SUSPICIOUS_FIRST_TIMEOUTS
        };
        if self.timeouts <= patience && !suspected {
            return false;
        }
        self.timeouts = 0;
        let (former, wait) = self.suspicion.map_or((self.cap, FIRST_WAIT), |earlier| {
            (earlier.former, earlier.wait)
        });
        self.suspicion = Some(Suspicion {
            former,
            fallback,
            wait,
            since: now,
            in_trial: false,
            proven: false,
        });
        self.cap = fallback;
        true
    }

    /// Something was acknowledged, segments of `longest` bytes at most: the path lives. True when
    /// that raises the segment size.
    #[inline]
    pub(crate) fn on_progress(&mut self, now: Instant, longest: u64) -> bool {
        self.timeouts = 0;
        self.longest = self.longest.max(longest);
        let Some(suspicion) = &mut self.suspicion else {
            return false;
        };
        suspicion.proven = true;
        if suspicion.in_trial && longest > u64::from(suspicion.fallback) {
            // It comes through: the silence was that of a path which lost everything, or much.
            self.suspicion = None;
            return false;
        }
        if suspicion.in_trial || now.saturating_since(suspicion.since) < suspicion.wait {
            return false;
        }
        suspicion.in_trial = true;
        suspicion.since = now;
        let raised = suspicion.former > self.cap;
        self.cap = self.cap.max(suspicion.former);
        raised
    }
}

/// Smaller announcements are hostile: they would make every byte cost a header (Linux: 48 and up).
const MIN_MSS: u16 = 88;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_millis(1_000_000);

    fn suspected() -> PathMtu {
        let mut mtu = PathMtu::new(1460, 20);
        assert!(!mtu.on_progress(NOW, 1460));
        assert!(!mtu.on_timeout(NOW, 1460));
        assert!(!mtu.on_timeout(NOW, 1460));
        assert!(mtu.on_timeout(NOW, 1460));
        assert_eq!(mtu.mss(), 1024);
        mtu
    }

    #[test]
    fn black_holes_are_recognised_by_large_timeouts_only() {
        let mut mtu = suspected();
        for _ in 0..10 {
            assert!(!mtu.on_timeout(NOW, 100));
        }
    }

    #[test]
    fn a_size_that_never_came_through_is_suspected_sooner() {
        let mut mtu = PathMtu::new(1460, 20);
        assert!(!mtu.on_progress(NOW, 900));
        assert!(!mtu.on_timeout(NOW, 1460));
        assert!(mtu.on_timeout(NOW, 1460));
        assert_eq!(mtu.mss(), 1024);
    }

    #[test]
    fn a_fallback_that_carries_nothing_is_given_up_at_once() {
        let mut mtu = suspected();
        assert!(mtu.on_timeout(NOW, 1024));
        assert_eq!(mtu.mss(), 536);
        // One that carried something has to be suspected anew.
        let mut mtu = suspected();
        assert!(!mtu.on_progress(NOW, 0));
        assert!(!mtu.on_timeout(NOW, 1024));
    }

    #[test]
    fn a_stuck_tail_comes_out_smaller() {
        let mut mtu = PathMtu::new(1460, 20);
        let lowered = (0..3).any(|_| mtu.on_timeout(NOW, 562));
        assert_eq!((lowered, mtu.mss()), (true, 536));
    }

    #[test]
    fn the_former_size_is_tried_again() {
        let mut mtu = suspected();
        assert!(!mtu.on_progress(NOW + Duration::from_secs(4), 0));
        // An outage: from now on all is well, and a timeout much later starts from nothing.
        assert!(mtu.on_progress(NOW + Duration::from_secs(5), 0));
        assert_eq!(mtu.mss(), 1460);
        assert!(!mtu.on_timeout(NOW + Duration::from_secs(100), 1460));
        // A black hole: the trial ends with its second timeout, and the next one is further away.
        let mut mtu = suspected();
        assert!(mtu.on_progress(NOW + Duration::from_secs(5), 0));
        assert!(!mtu.on_timeout(NOW + Duration::from_secs(6), 1460));
        assert!(mtu.on_timeout(NOW + Duration::from_secs(6), 1460));
        assert_eq!(mtu.mss(), 1024);
        assert!(!mtu.on_progress(NOW + Duration::from_secs(15), 0));
        assert!(mtu.on_progress(NOW + Duration::from_secs(16), 0));
    }

    /// A path that is lossy enough for timeouts takes large segments all the same.
    #[test]
    fn a_trial_that_comes_through_ends_the_suspicion() {
        let mut mtu = suspected();
        assert!(mtu.on_progress(NOW + Duration::from_secs(5), 1000));
        assert!(!mtu.on_progress(NOW + Duration::from_secs(6), 1448));
        for _ in 0..2 {
            assert!(!mtu.on_timeout(NOW + Duration::from_secs(7), 1448));
        }
        assert_eq!(mtu.mss(), 1460);
        // A new suspicion takes as much as the first.
        assert!(mtu.on_timeout(NOW + Duration::from_secs(7), 1448));
        assert_eq!(mtu.mss(), 1024);
    }

    #[test]
    fn announcements_and_path_reports_lower_it() {
        let mut mtu = PathMtu::new(1460, 20);
        mtu.on_peer_mss(Some(1400));
        assert!(mtu.on_path_mtu(1300));
        assert_eq!(mtu.mss(), 1260);
        assert!(!mtu.on_path_mtu(1500));
        mtu.on_peer_mss(Some(0));
        assert_eq!(mtu.mss(), MIN_MSS);
    }
}
