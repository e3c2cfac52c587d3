//! The segment size: the peer's MSS, our own cap, and what the path turns out to carry.
//!
//! Lower bounds come from ICMP (RFC 8201, RFC 1191) where the carrier delivers it, and from
//! silence: a path that drops large packets silently is recognised when only large
//! segments time out (RFC 4821 §7.7, RFC 8899 "black hole detection").
//!
//! Silence proves little: a path that was down for a while looks the same. So a search begins some
//! seconds later, with the former size, and ten minutes after the path itself had named a size. It
//! sends single segments as probes, and their loss is not taken for congestion (`search.rs`). A
//! connection does not search if its segments were never made smaller, unless `Config::base_mss`
//! made it begin with smaller ones.

mod search;

use core::ops::Range;
use core::time::Duration;

use tack_base::{Instant, StreamOffset};

use search::{FIRST_WAIT, Search};

/// Segment sizes after verdicts of a black hole (RFC 4821 §7.2: 1024-byte probes nearly always
/// pass; 536 is what every IPv4 host takes).
const FALLBACKS: [u16; 2] = [1024, 536];
/// Timeouts in a row of large segments after which the next one makes the path suspect: of a size
/// that came through before, and of one that never did, though the handshake did.
const SUSPICIOUS_TIMEOUTS: u32 = 2;
const SUSPICIOUS_FIRST_TIMEOUTS: u32 = 1;

/// Segment size of one connection. Payload bytes before options, as in the MSS option.
#[derive(Debug)]
pub(crate) struct PathMtu {
    /// What leaves at most now.
    cap: u16,
    /// What both ends take.
    limit: u16,
    /// What the peer takes if its SYN says nothing.
    unannounced: u16,
    /// How long a size that the path named is believed, and how long a search that is over stays
    /// so.
    raise: Duration,
    search: Option<Search>,
    /// Bytes of headers below TCP.
    overhead: u16,
    timeouts: u32,
    /// Longest segment that came through, bytes of payload.
    longest: u64,
    suspicion: Option<Suspicion>,
    /// The size that silence took away, until probes have found what comes through.
    given_up: Option<u16>,
}

/// What a report of the path's MTU comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    Nothing,
    /// Segments are smaller from now on.
    Lower,
    /// Only a probe was too long.
    ProbeRefused,
}

/// A size was given up because of silence.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    /// When.
    since: Instant,
    /// Something arrived since the fallback took its place.
    proven: bool,
}

impl PathMtu {
    /// At most `mss`; `overhead` bytes of headers lie below TCP.
    pub(crate) fn new(mss: u16, overhead: u16, raise: Duration) -> Self {
        Self {
            cap: mss.max(MIN_MSS),
            limit: mss.max(MIN_MSS),
            unannounced: 536,
            raise,
            search: None,
            overhead,
            timeouts: 0,
            longest: 0,
            suspicion: None,
            given_up: None,
        }
    }

    /// Current segment size, before options.
    #[inline]
    pub(crate) fn mss(&self) -> u16 {
        self.cap
    }

    /// Longest segment that came through, bytes of payload.
    #[inline]
    pub(crate) fn longest_delivered(&self) -> u64 {
        self.longest
    }

    /// A peer that announces nothing takes `mss` bytes.
    pub(crate) fn assume_peer_mss(&mut self, mss: u16) {
        self.unannounced = mss;
    }

    /// The peer's SYN announced `mss`.
    pub(crate) fn on_peer_mss(&mut self, mss: Option<u16>) {
        self.limit = self.limit.min(mss.unwrap_or(self.unannounced).max(MIN_MSS));
        self.cap = self.cap.min(self.limit);
    }

    /// Begins with segments of at most `base`, and searches for larger ones at once.
    pub(crate) fn begin_with(&mut self, now: Instant, base: u16) {
        let base = base.max(MIN_MSS);
        if base < self.cap {
            self.cap = base;
            self.search = Some(Search::new(self.limit + 1, now));
        }
    }

    /// The path takes IP packets of at most `mtu` bytes.
    pub(crate) fn on_path_mtu(&mut self, now: Instant, mtu: u16) -> Told {
        let mss = mtu.saturating_sub(self.overhead + 20).max(MIN_MSS);
        self.given_up = self.given_up.map(|size| size.min(mss));
        if mss < self.cap {
            self.cap = mss;
            self.search = Some(Search::new(self.limit + 1, now + self.raise));
            return Told::Lower;
        }
        let refused = self
            .search
            .as_mut()
            .is_some_and(|search| search.on_told(now, mss));
        self.conclude(now);
        if refused {
            Told::ProbeRefused
        } else {
            Told::Nothing
        }
    }

    /// Segment size of the probe that may leave now.
    #[inline]
    pub(crate) fn probe_due(&self, now: Instant) -> Option<u16> {
        let search = self.search.as_ref()?;
        if self.suspicion.is_some() {
            return None;
        }
        search.due(now, self.cap)
    }

    /// A probe of segment size `size` left.
    pub(crate) fn on_probe_sent(&mut self, size: u16, range: Range<StreamOffset>) {
        if let Some(search) = &mut self.search {
            search.on_sent(size, range);
        }
    }

    /// What the probe in flight carries.
    #[inline]
    pub(crate) fn probe(&self) -> Option<Range<StreamOffset>> {
        self.search.as_ref()?.in_flight().cloned()
    }

    /// The probe got lost; `alone` says that nothing else did.
    pub(crate) fn on_probe_lost(&mut self, now: Instant, alone: bool) {
        if let Some(search) = &mut self.search {
            search.on_lost(now, alone);
        }
        self.conclude(now);
    }

    /// A segment with `len` positions arrived, the longest of an acknowledgement. True when that
    /// raises the segment size.
    #[inline]
    pub(crate) fn on_delivered(&mut self, now: Instant, len: u64) -> bool {
        let Some(search) = &mut self.search else {
            return false;
        };
        let Some(size) = search.on_delivered(now, len) else {
            return false;
        };
        let raised = size > self.cap;
        self.cap = self.cap.max(size);
        self.conclude(now);
        raised
    }

    /// A search that found what there is to find rests.
    fn conclude(&mut self, now: Instant) {
        let cap = self.cap;
        if self
            .search
            .as_ref()
            .is_some_and(|search| search.is_over(cap))
        {
            let again = Search::new(self.limit + 1, now + self.raise);
            self.search = Some(again).filter(|_| cap < self.limit);
            self.given_up = None;
        }
    }

    /// A segment of `len` bytes timed out. True when that lowers the segment size.
    pub(crate) fn on_timeout(&mut self, now: Instant, len: u64) -> bool {
        // A probe that waited for a timeout says nothing (RFC 4821 §7.7), and does not make the
        // path suspect, which carries the others.
        let raise = self.raise;
        let search = self.search.as_mut();
        if search.is_some_and(|search| search.pause(now, raise)) {
            self.conclude(now);
            if len > u64::from(self.cap) {
                return false;
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
        let suspected = self.suspicion.is_some_and(|suspicion| !suspicion.proven);
        let patience = if len <= self.longest {
            SUSPICIOUS_TIMEOUTS
        } else {
            SUSPICIOUS_FIRST_TIMEOUTS
        };
        if self.timeouts <= patience && !suspected {
            return false;
        }
        self.timeouts = 0;
        self.given_up = self.given_up.max(Some(self.cap));
        self.suspicion = Some(Suspicion {
            since: now,
            proven: false,
        });
        self.cap = fallback;
        true
    }

    /// Something was acknowledged, segments of `longest` bytes at most: the path lives.
    #[inline]
    pub(crate) fn on_progress(&mut self, now: Instant, longest: u64) {
        self.timeouts = 0;
        self.longest = self.longest.max(longest);
        let Some(suspicion) = &mut self.suspicion else {
            return;
        };
        suspicion.proven = true;
        if now.saturating_since(suspicion.since) >= FIRST_WAIT {
            self.suspicion = None;
            if let Some(size) = self.given_up.filter(|size| *size > self.cap) {
                self.search = Some(Search::new(size.saturating_add(1), now));
            }
        }
    }
}

/// Smaller announcements are hostile: they would make every byte cost a header (Linux: 48 and up).
const MIN_MSS: u16 = 88;

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const INCONCLUSIVE: Duration = Duration::from_secs(1);

    const NOW: Instant = Instant::from_millis(1_000_000);

    const RAISE: Duration = Duration::from_secs(600);

    fn path() -> PathMtu {
        PathMtu::new(1460, 20, RAISE)
    }

    /// Searches until nothing is due at `now`, on a path that carries `carries`. Returns the sizes
    /// of the probes.
    fn search(mtu: &mut PathMtu, now: Instant, carries: u16) -> Vec<u16> {
        let mut sizes = Vec::new();
        let at = StreamOffset(1);
        while let Some(size) = mtu.probe_due(now) {
            sizes.push(size);
            mtu.on_probe_sent(size, at..at + u64::from(size));
            assert_eq!(mtu.probe_due(now), None, "one at a time");
            if size <= carries {
                assert!(mtu.on_delivered(now, size.into()));
            } else {
                mtu.on_probe_lost(now, true);
            }
        }
        sizes
    }

    /// RFC 8899 §5.1.1: ten minutes after the path named a size a larger one is looked for.
    #[test]
    fn a_size_that_the_path_named_is_believed_for_a_while() {
        let mut mtu = path();
        assert_eq!(mtu.on_path_mtu(NOW, 1300), Told::Lower);
        let later = NOW + RAISE;
        assert_eq!(mtu.probe_due(later - Duration::from_nanos(1)), None);
        assert_eq!(search(&mut mtu, later, 1460), [1460]);
        assert_eq!((mtu.mss(), mtu.probe_due(later + RAISE)), (1460, None));
    }

    /// A path between the two: each size gets three chances, and the search ends close below.
    #[test]
    fn what_the_path_carries_is_found() {
        for carries in [1260, 1261, 1300, 1333, 1459] {
            let mut mtu = path();
            mtu.on_path_mtu(NOW, 1300);
            let probes = search(&mut mtu, NOW + RAISE, carries);
            assert!(
                (carries - 8..=carries).contains(&mtu.mss()),
                "{carries}: {}",
                mtu.mss()
            );
            assert!(probes.len() <= 20, "{probes:?}");
            assert_eq!(mtu.probe_due(NOW + RAISE), None);
            assert_eq!(
                mtu.probe_due(NOW + RAISE * 2),
                Some(1460),
                "and again later"
            );
        }
    }

    #[test]
    fn a_search_from_a_base_begins_at_once() {
        let mut mtu = path();
        mtu.begin_with(NOW, 1200);
        assert_eq!(mtu.mss(), 1200);
        assert_eq!(search(&mut mtu, NOW, 1460), [1460]);
        let mut mtu = path();
        mtu.begin_with(NOW, 1460);
        assert_eq!(mtu.probe_due(NOW), None, "nothing to be found");
    }

    /// A router that names the size ends the guessing.
    #[test]
    fn a_probe_that_a_router_refuses_is_not_lost_in_vain() {
        let mut mtu = path();
        mtu.begin_with(NOW, 1000);
        let at = StreamOffset(1);
        mtu.on_probe_sent(mtu.probe_due(NOW).unwrap(), at..at + 1460);
        assert_eq!(mtu.on_path_mtu(NOW, 1400), Told::ProbeRefused);
        assert_eq!(search(&mut mtu, NOW, 1360), [1360]);
        assert_eq!(mtu.mss(), 1360);
    }

    /// Other losses, and timeouts, are about the path, not about the size.
    #[test]
    fn losses_of_others_say_nothing_of_a_size() {
        let mut mtu = path();
        mtu.begin_with(NOW, 1000);
        let at = StreamOffset(1);
        for round in 0..10 {
            let now = NOW + INCONCLUSIVE * round;
            mtu.on_probe_sent(mtu.probe_due(now).unwrap(), at..at + 1460);
            mtu.on_probe_lost(now, false);
            assert_eq!(mtu.probe_due(now), None);
        }
        let now = NOW + INCONCLUSIVE * 10;
        mtu.on_probe_sent(mtu.probe_due(now).unwrap(), at..at + 1460);
        assert!(!mtu.on_timeout(now, 1460));
        assert_eq!((mtu.mss(), mtu.probe()), (1000, None));
        assert_eq!(mtu.probe_due(now + RAISE), Some(1460));
    }

    fn suspected() -> PathMtu {
        let mut mtu = path();
        mtu.on_progress(NOW, 1460);
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
        let mut mtu = path();
        mtu.on_progress(NOW, 900);
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
        mtu.on_progress(NOW, 0);
        assert!(!mtu.on_timeout(NOW, 1024));
    }

    #[test]
    fn a_stuck_tail_comes_out_smaller() {
        let mut mtu = path();
        let lowered = (0..3).any(|_| mtu.on_timeout(NOW, 562));
        assert_eq!((lowered, mtu.mss()), (true, 536));
    }

    /// With one segment: a path that carries no more than the fallback loses that, and no flight.
    #[test]
    fn the_former_size_is_probed_again() {
        let later = NOW + FIRST_WAIT;
        let mut mtu = suspected();
        mtu.on_progress(later - Duration::from_nanos(1), 1024);
        assert_eq!(mtu.probe_due(later), None);
        // An outage: the first probe comes through.
        mtu.on_progress(later, 1024);
        assert_eq!(mtu.mss(), 1024, "not before it did");
        assert_eq!(search(&mut mtu, later, 1460), [1460]);
        assert_eq!(mtu.mss(), 1460);
        // A new suspicion takes as much as the first.
        for _ in 0..SUSPICIOUS_TIMEOUTS {
            assert!(!mtu.on_timeout(later, 1448));
        }
        assert!(mtu.on_timeout(later, 1448));
        // A black hole: what it carries is found.
        let mut mtu = suspected();
        mtu.on_progress(later, 1024);
        let probes = search(&mut mtu, later, 1300);
        assert_eq!(probes.first(), Some(&1460));
        assert!((1292..=1300).contains(&mtu.mss()), "{}", mtu.mss());
    }

    /// A path that is down again while a probe is under way says nothing of its size either, but
    /// the next probe waits twice as long. Three in a row that meet a timeout do not come through.
    #[test]
    fn after_a_timeout_the_search_goes_on() {
        let mut mtu = suspected();
        let mut now = NOW + FIRST_WAIT;
        mtu.on_progress(now, 1024);
        let at = StreamOffset(1);
        for (wait, next) in [(5, 1460), (10, 1460), (20, 1242)] {
            mtu.on_probe_sent(mtu.probe_due(now).unwrap(), at..at + 1460);
            assert!(!mtu.on_timeout(now, 1460));
            mtu.on_progress(now, 1024);
            let due = now + Duration::from_secs(wait);
            assert_eq!(mtu.probe_due(due - Duration::from_nanos(1)), None);
            assert_eq!(mtu.probe_due(due), Some(next));
            now = due;
        }
        // Without a probe under way it waits as at first.
        mtu.on_timeout(now, 100);
        assert_eq!(
            mtu.probe_due(now + FIRST_WAIT - Duration::from_nanos(1)),
            None
        );
        assert_eq!(mtu.probe_due(now + FIRST_WAIT), Some(1242));
    }

    /// What was lost twice at one size is not added to what another size loses.
    #[test]
    fn losses_count_for_the_size_that_was_lost() {
        let mut mtu = suspected();
        let now = NOW + FIRST_WAIT;
        mtu.on_progress(now, 1024);
        let at = StreamOffset(1);
        for size in [1460, 1460, 1100, 1460, 1460] {
            mtu.on_probe_sent(size, at..at + u64::from(size));
            mtu.on_probe_lost(now, true);
            assert_eq!(mtu.probe_due(now), Some(1460));
        }
    }

    /// A second outage before a probe came through: the size from before the first one is looked
    /// for, not that in between.
    #[test]
    fn a_second_verdict_remembers_the_size_before_the_first() {
        let mut mtu = suspected();
        let mut now = NOW + FIRST_WAIT;
        mtu.on_progress(now, 1024);
        assert!((0..4).any(|_| mtu.on_timeout(now, 1024)));
        assert_eq!(mtu.mss(), 536);
        now += FIRST_WAIT;
        mtu.on_progress(now, 536);
        now += FIRST_WAIT;
        assert_eq!(search(&mut mtu, now, 1460), [1460]);
        // Found: a verdict much later is about this size.
        assert!((0..4).any(|_| mtu.on_timeout(now, 1448)));
        assert_eq!(mtu.mss(), 1024);
    }

    /// The path names a size below the fallback: what it takes beyond that is looked for when its
    /// word is old.
    #[test]
    fn a_size_that_the_path_named_below_the_fallback_is_believed() {
        let mut mtu = suspected();
        assert_eq!(mtu.on_path_mtu(NOW, 1000), Told::Lower);
        mtu.on_progress(NOW + FIRST_WAIT, 900);
        assert_eq!(mtu.probe_due(NOW + FIRST_WAIT), None);
        assert_eq!(mtu.probe_due(NOW + RAISE), Some(1460));
    }

    #[test]
    fn announcements_and_path_reports_lower_it() {
        let mut mtu = path();
        mtu.on_peer_mss(Some(1400));
        assert_eq!(mtu.on_path_mtu(NOW, 1300), Told::Lower);
        assert_eq!(mtu.mss(), 1260);
        assert_eq!(mtu.on_path_mtu(NOW, 1500), Told::Nothing);
        mtu.on_peer_mss(Some(0));
        assert_eq!(mtu.mss(), MIN_MSS);
    }
}
