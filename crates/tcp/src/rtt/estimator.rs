//! Smoothed RTT, its variation, its minimum, and the retransmission timeout (RFC 6298).

use core::time::Duration;

use tack_base::filter::WindowedMin;
use tack_base::time::{Nanos, nanos};
use tack_base::{Instant, StreamOffset};

/// Window of the minimum filter: long enough to see an empty queue now and then, short enough to
/// follow a changed path (Linux uses 300 s, BBR 10 s for its own).
const MIN_WINDOW: Duration = Duration::from_secs(300);

/// Whether answers to retransmissions took a round trip as they were measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Repairs {
    /// All since the last sample.
    Believed,
    /// Not all; if the last one did, with so many doublings left after it.
    Doubted(Option<u32>),
}

/// RTT estimator of one connection. It is asked and told several times for each segment: inside,
/// times are [`Nanos`].
#[derive(Debug)]
pub(crate) struct RttEstimator {
    smoothed: Option<Nanos>,
    /// The newest sample.
    latest: Nanos,
    variation: Nanos,
    min: WindowedMin<u64>,
    /// The shortest round trip ever.
    least: Option<Duration>,
    /// The controller has been given a sample.
    is_told: bool,
    /// All that is known comes from a sample that may hold the wait for several timeouts.
    is_doubtful: bool,
    initial_rto: Nanos,
    /// What the peer stated, before there was a sample without doubt.
    stated: Option<Nanos>,
    min_rto: Nanos,
    max_rto: Nanos,
    /// Timeouts in a row without a sample of new data: each doubles the timeout.
    backoff: u32,
    /// SND.UNA when the timeout was last doubled.
    backed_off_at: StreamOffset,
    /// What answers to retransmissions looked like since the last sample.
    repairs: Repairs,
    /// Variation measured over the running round trip, as its maximum (see `sample`).
    round_max_deviation: Nanos,
    round_end: StreamOffset,
}

impl RttEstimator {
    /// An estimator without samples.
    pub(crate) fn new(initial_rto: Duration, min_rto: Duration, max_rto: Duration) -> Self {
        Self {
            smoothed: None,
            latest: Nanos::ZERO,
            variation: Nanos::ZERO,
            min: WindowedMin::new(nanos(MIN_WINDOW)),
            least: None,
            is_told: false,
            is_doubtful: false,
            initial_rto: initial_rto.into(),
            stated: None,
            min_rto: min_rto.into(),
            max_rto: max_rto.into(),
            backoff: 0,
            backed_off_at: StreamOffset::SYN,
            repairs: Repairs::Believed,
            round_max_deviation: Nanos::ZERO,
            round_end: StreamOffset::SYN,
        }
    }

    /// Takes a sample free of retransmission ambiguity (Karn): `smooth` for SRTT and RTTVAR,
    /// `fastest` for the minimum. `snd_una` and `snd_nxt` delimit round trips.
    ///
    /// RFC 6298 §2.3, with alpha 1/8 and beta 1/4. Deviation: those gains assume one sample a round
    /// trip. With many, RTTVAR would forget within a fraction of it and the timeout would hug
    /// SRTT. So RTTVAR rises at once and decays once a round trip, towards that round trip's
    /// largest deviation (as Linux does; cf. RFC 7323 appendix G, which has the same aim).
    pub(crate) fn sample(
        &mut self,
        now: Instant,
        smooth: Duration,
        fastest: Duration,
        snd_una: StreamOffset,
        snd_nxt: StreamOffset,
    ) {
        if core::mem::take(&mut self.is_doubtful) {
            // It would take dozens of samples to forget it.
            self.smoothed = None;
            self.round_max_deviation = Nanos::ZERO;
        }
        self.min.update(now.as_nanos(), nanos(fastest).max(1));
        self.least = Some(self.least.map_or(fastest, |least| least.min(fastest)));
        self.sample_smooth(smooth, snd_una, snd_nxt);
    }

    /// Takes the first sample, `age`, from an acknowledgement that does not say which transmission
    /// it answers. If the timer is backed off it may hold the wait for all timeouts so far, as
    /// where a receiver repeats the acknowledgement of the first one: then the next sample of
    /// [`Self::sample`] takes its place.
    pub(crate) fn sample_first(
        &mut self,
        now: Instant,
        age: Duration,
        snd_una: StreamOffset,
        snd_nxt: StreamOffset,
    ) {
        let is_doubtful = self.backoff > 0;
        self.sample(now, age, age, snd_una, snd_nxt);
        self.is_doubtful = is_doubtful;
    }

    /// All samples so far may hold more than a round trip: the next one takes their place.
    pub(crate) fn doubt(&mut self) {
        self.is_doubtful = true;
    }

    /// The next sample takes the place of all so far.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    /// There is no sample, or none without doubt.
    #[inline]
    fn is_undecided(&self) -> bool {
        self.smoothed.is_none() || self.is_doubtful
    }

    /// The controller is given a sample. True for the first one.
    #[inline]
    pub(crate) fn tell(&mut self) -> bool {
        !core::mem::replace(&mut self.is_told, true)
    }

    /// Takes a sample that is good enough for SRTT and RTTVAR, and too coarse for the minimum.
    pub(crate) fn sample_smooth(
        &mut self,
        smooth: Duration,
        snd_una: StreamOffset,
        snd_nxt: StreamOffset,
    ) {
        // Karn's algorithm: backing off ends with a sample, not with an acknowledgement that could
        // be anyone's. A peer that only repeats itself yields samples too, so that the
        // sample must come with progress (RFC 6298 §5.7).
        if snd_una > self.backed_off_at {
            self.backoff = 0;
            self.repairs = Repairs::Believed;
        }
        let smooth = Nanos::from(smooth);
        self.latest = smooth;
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(smooth);
            self.variation = smooth / 2;
            self.round_end = snd_nxt;
            return;
        };
        let deviation = Nanos(smoothed.0.abs_diff(smooth.0));
        self.smoothed = Some((smoothed * 7 + smooth) / 8);
        let step = (self.variation * 3 + deviation) / 4;
        self.variation = self.variation.max(step);
        self.round_max_deviation = self.round_max_deviation.max(deviation);
        if snd_una > self.round_end {
            let target = self.round_max_deviation;
            if target < self.variation {
                self.variation = (self.variation * 3 + target) / 4;
            }
            self.round_max_deviation = Nanos::ZERO;
            self.round_end = snd_nxt;
        }
    }

    /// The peer states its round trip over the same path. Until there is a sample without doubt, it
    /// may shorten the timeout. It never makes the timeout longer, and changes nothing else.
    pub(crate) fn on_stated(&mut self, round_trip: Duration) {
        if self.is_undecided() {
            self.stated = Some(round_trip.into());
        }
    }

    /// The peer paces its acknowledgements by the minimum: it must follow a changed path within ten
    /// seconds (TACK §4.4).
    pub(crate) fn follow_closely(&mut self) {
        self.min.set_window(nanos(Duration::from_secs(10)));
    }

    /// The retransmission timer fired: the timeout doubles (RFC 6298 §5.5) until a sample comes
    /// with data beyond `snd_una` acknowledged.
    pub(crate) fn back_off(&mut self, snd_una: StreamOffset) {
        self.backoff = (self.backoff + 1).min(30);
        self.backed_off_at = snd_una;
    }

    /// Takes a sample between departures and the acknowledgement, as [`Self::sample`] does. While
    /// the timer is backed off it may hold the wait for an acknowledgement that got lost: what
    /// was sent once waits for as long as the timer lets it. Then twice the timeout is taken,
    /// which lets it grow if round trips have, and backing off goes on.
    pub(crate) fn sample_departures(
        &mut self,
        now: Instant,
        smooth: Duration,
        fastest: Duration,
        snd_una: StreamOffset,
        snd_nxt: StreamOffset,
    ) {
        let (backoff, repairs) = (self.backoff, self.repairs);
        if backoff == 0 {
            return self.sample(now, smooth, fastest, snd_una, snd_nxt);
        }
        let most = self.base_rto() * 2;
        self.sample(now, smooth.min(most), fastest, snd_una, snd_nxt);
        if fastest > most {
            (self.backoff, self.repairs) = (backoff, repairs);
        }
    }

    /// Data advanced the cumulative acknowledgement, and what was oldest had left more than once,
    /// the last time `age` ago. Where that is a round trip as they were measured, at least half
    /// the shortest and no longer than the timeout, the retransmission was answered, as it
    /// seems: one doubling is left.
    ///
    /// Deviation: RFC 6298 §5 keeps every doubling until there is a sample. Without SACK and
    /// timestamps a sender that loses every fourth segment has none for dozens of timeouts,
    /// whatever its progress, and waits for half a minute in the end.
    ///
    /// A round trip that has outgrown the timeout r does not pass for a short one for long. With
    /// the first timeout at r, the times that seem short end within the last r before r·2^k,
    /// with the first one at 2r within the last r before r·(2^(k+1) - 1), for k ≥ 1. No round
    /// trip is in both: what passes once is found out with the next flight. From then on only a
    /// second time in a row counts. The timeout that is left after the first one covers the round
    /// trip, whichever transmission was answered: another timeout shows that something got
    /// lost.
    pub(crate) fn on_repair(&mut self, age: Duration) {
        let as_measured = self
            .min()
            .is_some_and(|min| min / 2 < age && age <= self.base_rto());
        self.repairs = match self.repairs {
            _ if !as_measured => Repairs::Doubted(None),
            Repairs::Believed => {
                self.backoff = self.backoff.min(1);
                Repairs::Believed
            }
            Repairs::Doubted(level) => {
                if level.is_some_and(|level| self.backoff > level) {
                    self.backoff = 1;
                }
                Repairs::Doubted(Some(self.backoff))
            }
        };
    }

    /// What had left once, `age` ago, was acknowledged, maybe after it had waited for a hole to be
    /// filled: no sample, but the round trip is no longer. Within the timeout it ends backing
    /// off, as an unambiguous transmission may (RFC 8961 §4).
    pub(crate) fn on_bound(&mut self, age: Duration, snd_una: StreamOffset) {
        if snd_una > self.backed_off_at && age <= self.base_rto() {
            self.backoff = 0;
            self.repairs = Repairs::Believed;
        }
    }

    /// Timeouts in a row have doubled the timeout.
    #[inline]
    pub(crate) fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// The handshake is over: backing off ends.
    #[inline]
    pub(crate) fn end_back_off(&mut self) {
        self.backoff = 0;
    }

    /// The SYN was lost: RFC 6298 §5.7 starts data with at least three seconds until there is a
    /// sample.
    pub(crate) fn on_syn_timeout(&mut self) {
        self.initial_rto = self.initial_rto.max(Duration::from_secs(3).into());
    }

    /// The timeout in force, backing off included.
    #[inline]
    pub(crate) fn rto(&self) -> Duration {
        self.timeout(Nanos::ZERO).into()
    }

    /// As [`Self::rto`], where the peer may hold an acknowledgement back for `held_back`. It needs
    /// nothing beyond the least timeout, which is there for delayed acknowledgements: it counts
    /// where the variation is large.
    #[inline]
    pub(crate) fn timeout(&self, held_back: Nanos) -> Nanos {
        (self.base(held_back) * (1 << self.backoff)).min(self.max_rto)
    }

    /// The timeout without backing off.
    #[inline]
    pub(crate) fn base_rto(&self) -> Duration {
        self.base(Nanos::ZERO).into()
    }

    #[inline]
    fn base(&self, held_back: Nanos) -> Nanos {
        let own = self
            .smoothed
            .map_or(self.initial_rto + held_back, |smoothed| {
                smoothed + (self.variation * 4 + held_back).max(self.min_rto)
            });
        // RFC 6298 §2.2, with what the peer measured.
        let stated = self.stated.filter(|_| self.is_undecided());
        stated
            .map_or(own, |stated| own.min(stated * 3 + held_back))
            .max(self.min_rto)
    }

    /// SRTT.
    #[inline]
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed.map(Duration::from)
    }

    /// The time over which a window is spread: SRTT, or twice the newest sample where that is less.
    /// After a host slept, SRTT includes the time of its sleep. A sender that spreads its window
    /// over that gets few acknowledgements, and SRTT would stay long for dozens of round trips.
    #[inline]
    pub(crate) fn window_time(&self) -> Option<Duration> {
        let smoothed = self.smoothed?;
        Some(smoothed.min(self.latest * 2).into())
    }

    /// The round trip that the sender tells its peer: the larger one of [`Self::window_time`] and
    /// `newest`. After a host slept, the peer would take the time of its sleep for that in a queue.
    #[inline]
    pub(crate) fn current(&self, newest: Option<Duration>) -> Option<Duration> {
        self.window_time().max(newest)
    }

    /// SRTT, for the per-segment path.
    #[inline]
    pub(crate) fn smoothed_nanos(&self) -> Option<Nanos> {
        self.smoothed
    }

    /// RTTVAR.
    pub(crate) fn variation(&self) -> Option<Duration> {
        self.smoothed.map(|_| self.variation.into())
    }

    /// The shortest round trip since the connection began: nothing was ever answered sooner.
    pub(crate) fn least(&self) -> Option<Duration> {
        self.least
    }

    /// Smallest sample of the filter window.
    #[inline]
    pub(crate) fn min(&self) -> Option<Duration> {
        self.min.get().map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests;
