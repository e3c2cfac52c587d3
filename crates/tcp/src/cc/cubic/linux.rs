//! CUBIC as Linux computes it (`tcp_cubic`): in whole segments.
//!
//! With a window of few segments it is slower than RFC 9438 in bytes:
//!
//! * What is left of the window after a loss is rounded down.
//! * Reno's estimate moves by a segment at a time, and the window follows once another window or
//!   so was acknowledged. The estimate keeps its slope beyond the window that lost, where §4.3 has
//!   that of Reno.
//! * The curve is looked up one smallest round trip ahead, where §4.2 has the smoothed one.
//!
//! Not here is what Linux does before the first loss and after a timeout (HyStart, and at most a
//! segment for each twenty until the next loss). Linux also looks at the curve each 31 ms at most,
//! counts time that the application limits, and leaves two segments after a mark.

/// Multiplicative decrease factor, as a fraction of 1,024.
pub(super) const BETA: f64 = 717.0 / 1024.0;

/// Windows acknowledged for each segment by which Reno's estimate grows: 15/8.
const RENO: (u64, u64) = (15, 8);
/// Fewest segments acknowledged for each by which the window grows.
const FEWEST: u64 = 2;
/// The window grows by a segment for each hundred windows acknowledged while both curves are lower.
const SLOWEST: u64 = 100;

/// Bytes acknowledged that count towards the next segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Towards {
    /// Of Reno's estimate.
    reno: u64,
    /// Of the window.
    window: u64,
}

/// Where the window stands, and the cubic curve. Windows in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    pub(super) mss: u64,
    pub(super) cwnd: u64,
    /// Height of the plateau.
    pub(super) origin: u64,
    /// Height of the curve above the plateau, segments; negative below it.
    pub(super) rise: f64,
}

impl Towards {
    /// `bytes` were acknowledged: the window, and Reno's estimate after `w_est`.
    pub(super) fn grow(&mut self, bytes: u64, w_est: u64, curve: &Curve) -> (u64, u64) {
        let Curve { mss, cwnd, .. } = *curve;
        let segments = cwnd / mss;
        self.reno = self.reno.saturating_add(bytes);
        let per_segment = (segments * RENO.0 / RENO.1).max(1) * mss;
        let w_est = w_est.saturating_add(self.reno / per_segment * mss);
        self.reno %= per_segment;

        let missing = curve.target().max(w_est).saturating_sub(cwnd) / mss;
        let each = match missing {
            0 => SLOWEST.saturating_mul(segments),
            missing => segments / missing,
        };
        let each = each.max(FEWEST).saturating_mul(mss);
        let mut grown = 0;
        // Enough was acknowledged before, when a segment took more.
        if self.window >= each {
            self.window = 0;
            grown = 1;
        }
        self.window = self.window.saturating_add(bytes);
        grown += self.window / each;
        self.window %= each;
        (cwnd.saturating_add(grown.saturating_mul(mss)), w_est)
    }
}

impl Curve {
    /// Height of the curve, bytes. Its distance to the plateau is rounded down to whole segments.
    fn target(&self) -> u64 {
        let segments = self.rise.abs() as u64;
        let bytes = segments.saturating_mul(self.mss);
        match self.rise < 0.0 {
            true => self.origin.saturating_sub(bytes),
            false => self.origin.saturating_add(bytes),
        }
    }
}
