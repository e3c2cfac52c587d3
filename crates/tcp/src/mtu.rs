//! The segment size: the peer's MSS, our own cap, and what the path turns out to carry.
//!
//! Lower bounds come from ICMP (RFC 8201, RFC 1191) where the carrier delivers it, and from silence: a
//! path that swallows large packets without a word is recognised when only large segments time out
//! (RFC 4821 §7.7, RFC 8899 "black hole detection").

/// Segment size after the first black-hole verdict, and after the next (RFC 4821 §7.2: 1024-byte
/// probes nearly always pass; 536 is what every IPv4 host takes).
const FALLBACKS: [u16; 2] = [1024, 536];
/// Timeouts in a row of large segments before the path is suspected.
const SUSPICIOUS_TIMEOUTS: u32 = 2;

/// Segment size of one connection. Payload bytes before options, as in the MSS option.
#[derive(Debug)]
pub(crate) struct PathMtu {
    /// What we would send at most.
    cap: u16,
    /// Bytes of headers below TCP.
    overhead: u16,
    timeouts: u32,
}

impl PathMtu {
    /// At most `mss`; `overhead` bytes of headers lie below TCP.
    pub(crate) fn new(mss: u16, overhead: u16) -> Self {
        Self {
            cap: mss.max(MIN_MSS),
            overhead,
            timeouts: 0,
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
        self.lower(mtu.saturating_sub(self.overhead + 20))
    }

    /// A segment of `len` bytes timed out. True when that lowers the segment size.
    pub(crate) fn on_timeout(&mut self, len: u64) -> bool {
        let Some(fallback) = FALLBACKS.into_iter().find(|fallback| *fallback < self.cap) else {
            return false;
        };
        if len <= u64::from(fallback) {
            self.timeouts = 0;
            return false;
        }
        self.timeouts += 1;
        if self.timeouts <= SUSPICIOUS_TIMEOUTS {
            return false;
        }
        self.timeouts = 0;
        self.lower(fallback)
    }

    /// Something was acknowledged: the path lives.
    pub(crate) fn on_progress(&mut self) {
        self.timeouts = 0;
    }

    fn lower(&mut self, mss: u16) -> bool {
        let mss = mss.max(MIN_MSS);
        let lower = mss < self.cap;
        self.cap = self.cap.min(mss);
        lower
    }
}

/// Smaller announcements are hostile: they would make every byte cost a header (Linux: 48 and up).
const MIN_MSS: u16 = 88;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn black_holes_are_recognised_by_large_timeouts_only() {
        let mut mtu = PathMtu::new(1460, 20);
        assert!(!mtu.on_timeout(1460));
        assert!(!mtu.on_timeout(1460));
        assert!(mtu.on_timeout(1460));
        assert_eq!(mtu.mss(), 1024);
        for _ in 0..10 {
            assert!(!mtu.on_timeout(100));
        }
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
