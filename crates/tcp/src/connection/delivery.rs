//! What an acknowledgement delivers: the walk along the scoreboard, and the round trip measured by
//! it.

use core::time::Duration;

use tack_base::{Instant, StreamOffset};
use tack_wire::Segment;

use super::Connection;
use crate::ack::feedback::RoundTrip;
use crate::cc::SendToken;
use crate::rate::Measured;
use crate::recovery::DetectionContext;
use crate::send::packet_number::PacketNumber;
use crate::send::sent::Delivered;

/// What an acknowledgement delivered, collected while the log is walked.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// Positions newly delivered.
    pub(super) bytes: u64,
    /// Departures of the oldest and the newest segment free of retransmission ambiguity.
    oldest_sent_at: Option<Instant>,
    newest_sent_at: Option<Instant>,
    /// A retransmission was among them. What was sent after it may have waited for it at the
    /// receiver, without a SACK block to tell: its age is then no round-trip time.
    repaired: bool,
    /// First departure of what was oldest.
    front_sent_at: Option<Instant>,
    /// Last departure of what was oldest, if it left more than once.
    oldest_repaired_at: Option<Instant>,
    /// Token of the newest transmission.
    pub(super) newest: Option<(PacketNumber, SendToken)>,
    /// The newest of the segments that left more than once: its last transmission, and when that
    /// left, if no earlier one arrived.
    newest_repair: Option<(PacketNumber, Option<Instant>)>,
    /// Retransmissions that turn out to have been needless.
    spurious: u64,
    /// Where the last of these starts.
    pub(super) needless: Option<StreamOffset>,
    /// Segments newly delivered.
    pub(super) segments: u64,
    /// Bytes of the longest segment.
    pub(super) longest: u64,
    /// A segment presumed lost by a timeout, and not retransmitted, arrived.
    pub(super) late_original: bool,
}

impl Delivery {
    /// When the oldest segment left, if all that was delivered had left once.
    #[inline]
    pub(super) fn oldest_unrepeated(&self) -> Option<Instant> {
        self.oldest_sent_at.filter(|_| !self.repaired)
    }

    /// When the newest segment left, if all that was delivered had left once.
    #[inline]
    pub(super) fn newest_unrepeated(&self) -> Option<Instant> {
        self.newest_sent_at.filter(|_| !self.repaired)
    }

    /// The newest transmission and when it left. `None` where an earlier transmission of the same
    /// segment may have arrived in its place.
    #[inline]
    pub(super) fn newest_transmission(&self) -> Option<(PacketNumber, Instant)> {
        let (number, _) = self.newest?;
        let left = match self.newest_repair {
            Some((repair, left)) if repair == number => left,
            _ => self.newest_sent_at,
        };
        Some((number, left?))
    }

    #[inline]
    fn note(&mut self, context: &DetectionContext, delivered: &Delivered, snd_una: StreamOffset) {
        self.segments += 1;
        self.longest = self.longest.max(delivered.transmission.len());
        if !delivered.retransmitted {
            let at = delivered.transmission.sent_at;
            self.oldest_sent_at = Some(self.oldest_sent_at.map_or(at, |oldest| oldest.min(at)));
            self.newest_sent_at = Some(self.newest_sent_at.map_or(at, |newest| newest.max(at)));
            self.late_original |= delivered.was_lost;
        } else {
            self.repaired = true;
            if delivered.transmission.start == snd_una {
                self.oldest_repaired_at = Some(delivered.transmission.sent_at);
            }
            let number = delivered.number;
            if self.newest_repair.is_none_or(|(newest, _)| number > newest) {
                let left = delivered.transmission.sent_at;
                let left = (!context.is_of_an_earlier(left)).then_some(left);
                self.newest_repair = Some((number, left));
            }
        }
        if self
            .newest
            .is_none_or(|(number, _)| delivered.number > number)
        {
            self.newest = Some((delivered.number, delivered.transmission.token));
        }
    }
}

impl Connection {
    /// The peer received something twice that had left twice: one transmission was for nothing.
    pub(super) fn take_duplicate_report(&mut self) -> Option<StreamOffset> {
        if self.feedback.info.largest_repeated
            && let Some(start) = self
                .feedback
                .info
                .largest
                .and_then(|number| self.recovery.on_repetition_report(number))
        {
            self.telemetry.counters.spurious_retransmissions += 1;
            return Some(start);
        }
        let start = self.feedback.info.duplicate?;
        let needless = self
            .recovery
            .on_duplicate_report(start, self.snd.una, self.snd.nxt);
        self.telemetry.counters.spurious_retransmissions += u64::from(needless);
        needless.then_some(start)
    }

    /// The timestamp that an acknowledgement of new data echoes (RFC 7323 §4). The segment that
    /// brought it about is the first one unacknowledged so far, or a later one: an older echo is
    /// stale, because a middlebox took the option off, or false, to have window reductions undone.
    pub(super) fn fresh_echo(&self, segment: &Segment<'_>, advanced: bool) -> Option<u32> {
        let timestamps = segment.header.options.timestamps?;
        let oldest = self.log.front_first_sent_at()?;
        let usable = advanced && self.timestamps.is_agreed() && timestamps.echo != 0;
        (usable && !self.timestamps.is_before(timestamps.echo, oldest)).then_some(timestamps.echo)
    }

    /// Walks the log along the cumulative acknowledgement and the blocks received above it.
    pub(super) fn mark_delivered(
        &mut self,
        arrived: Instant,
        ack: StreamOffset,
        echoed: Option<u32>,
    ) -> Delivery {
        // As with each segment to a side that only receives.
        if ack <= self.snd.una && self.feedback.info.acked.is_empty() {
            return Delivery::default();
        }
        let mut delivery = Delivery {
            front_sent_at: self.log.front_first_sent_at(),
            ..Delivery::default()
        };
        let echoed_departure =
            echoed.and_then(|echo| self.timestamps.latest_departure(arrived, echo));
        let mut context = self.detection_context(arrived);
        let snd_una = self.snd.una;
        let Self {
            log,
            rate,
            recovery,
            feedback,
            ..
        } = self;
        let largest = feedback.info.largest;
        let mut each = |context: &DetectionContext, delivered: &Delivered| {
            delivery.note(context, delivered, snd_una);
            // Delivered although its newest transmission has not arrived: an earlier one did.
            if delivered.transmission.retransmission
                && largest.is_some_and(|largest| delivered.number > largest)
            {
                rate.on_delivered_earlier(arrived, delivered);
                delivery.spurious += 1;
                delivery.needless = Some(delivered.transmission.start);
                recovery.on_needless_retransmission(delivered.number, delivered.transmission.start);
                return;
            }
            rate.on_delivered(arrived, delivered);
            recovery.on_delivered(context, delivered);
        };
        let mut bytes = 0;
        if ack > self.snd.una {
            context.echoed_departure = echoed_departure;
            bytes += log.acknowledge(ack, |delivered| each(&context, delivered));
        }
        // What arrived above a hole is not echoed: the timestamp tells nothing about it
        // (RFC 7323 §4.3).
        context.echoed_departure = None;
        for block in feedback.info.acked.drain(..) {
            bytes += log.acknowledge_selectively(block, |delivered| each(&context, delivered));
        }
        delivery.bytes = bytes;
        self.telemetry.counters.spurious_retransmissions += delivery.spurious;
        delivery
    }

    /// RFC 6298 §3 (Karn) with RFC 7323 §4.1: from departures where they are unambiguous, else from
    /// the echo.
    pub(super) fn take_rtt_sample(
        &mut self,
        now: Instant,
        arrived: Instant,
        delivery: &Delivery,
        echoed: Option<u32>,
    ) -> Option<Duration> {
        if let Some(RoundTrip { newest, fastest }) = self.feedback.info.round_trip {
            let most = self.longest_round_trip(arrived, delivery);
            // The minimum of all is not raised by a figure that is too large.
            self.rtt
                .sample(now, newest.min(most), fastest, self.snd.una, self.snd.nxt);
            self.rtt.tell();
            return Some(fastest);
        }
        if self.feedback.info.rate != Measured::BySender {
            self.take_coarse_sample(now, arrived, delivery);
            return self.first_bound(arrived, delivery);
        }
        if let (Some(oldest), Some(newest)) = (delivery.oldest_sent_at, delivery.newest_sent_at)
            && !delivery.repaired
            // A carrier whose arrival stamps jump must not make round trips of nothing.
            && arrived >= newest
        {
            let smooth = arrived.saturating_since(oldest);
            let fastest = arrived.saturating_since(newest);
            self.rtt
                .sample_departures(now, smooth, fastest, self.snd.una, self.snd.nxt);
            return Some(fastest);
        }
        // The echo ticks in milliseconds: good enough for the timeout.
        let Some(age) = echoed.and_then(|echo| self.timestamps.age(arrived, echo)) else {
            self.end_backing_off(arrived, delivery);
            return None;
        };
        // A segment that the receiver has already leaves TS.Recent alone (RFC 7323 §5.3 R2): where
        // the first acknowledgement got lost, the echo is as old as all timeouts since. Twice the
        // timeout still lets it grow if round trips have.
        self.sample_coarsely(now, age.min(self.rtt.base_rto() * 2));
        None
    }

    /// What an acknowledgement on data bounds the round trip by, for a controller that has had no
    /// sample. Where data goes both ways the first report may come once queues have grown, and
    /// their delay would pass for the path's.
    fn first_bound(&mut self, arrived: Instant, delivery: &Delivery) -> Option<Duration> {
        let is_bound = !self.feedback.info.numbered && !delivery.repaired;
        let newest = delivery.newest_sent_at.filter(|at| *at <= arrived)?;
        (is_bound && self.rtt.tell()).then(|| arrived.saturating_since(newest))
    }

    /// Takes what an acknowledgement without a timing echo says about the round trip, where reports
    /// bring such echoes.
    fn take_coarse_sample(&mut self, now: Instant, arrived: Instant, delivery: &Delivery) {
        let info = &self.feedback.info;
        if info.numbered {
            // A report of a loss names one transmission, and how long ago it came. Where each
            // segment gets lost at first, as small answers do in a queue that is full of
            // acknowledgements, no other report may ever come: backing off would never end.
            if self.rtt.is_backed_off()
                && info.largest_is_news
                && let Some(left) = info.largest_left
                && let Some(age) = arrived.saturating_since(left).checked_sub(info.largest_age)
            {
                let most = self.longest_round_trip(arrived, delivery);
                self.sample_coarsely(now, age.min(most));
            } else {
                // Progress ends it, whatever figures come with it.
                self.end_backing_off(arrived, delivery);
            }
        } else if !delivery.repaired {
            // The acknowledgement may have been held back, and does not say for how long. That is
            // good enough for the timeout where data carries it, as requests and answers do:
            // reports are rare there.
            if let Some(newest) = delivery.newest_sent_at.filter(|at| *at <= arrived) {
                self.sample_coarsely(now, arrived.saturating_since(newest));
            }
        } else if let Some(first) = delivery.front_sent_at.filter(|at| *at <= arrived)
            && let Some(again) = delivery.oldest_repaired_at.filter(|at| *at <= arrived)
            && let Some(least) = self.rtt.least()
            && arrived.saturating_since(again) < least
        {
            // Nothing was ever answered so soon: it answers the original. Where data of the peer
            // waits in a queue with the acknowledgement, each probe would be for nothing otherwise.
            let most = self.rtt.base_rto() * 2;
            self.sample_coarsely(now, arrived.saturating_since(first).min(most));
        } else {
            self.end_backing_off(arrived, delivery);
        }
    }

    /// The longest round trip that is believed, whatever the peer's figures say: twice the age of
    /// the oldest that is acknowledged for the first time and left once, as round trips differ.
    /// Where a hole was filled, behind which it may have waited, the age of the newest. Where there
    /// is none, twice the timeout still lets it grow if round trips have.
    fn longest_round_trip(&self, arrived: Instant, delivery: &Delivery) -> Duration {
        let (left, times) = match delivery.repaired {
            true => (delivery.newest_sent_at, 1),
            false => (delivery.oldest_sent_at, 2),
        };
        match left.filter(|at| *at <= arrived) {
            Some(left) => arrived.saturating_since(left) * times,
            None if self.rtt.smoothed().is_some() => self.rtt.base_rto() * 2,
            None => Duration::MAX,
        }
    }

    /// An acknowledgement that is no sample may end backing off, if it comes in time.
    fn end_backing_off(&mut self, arrived: Instant, delivery: &Delivery) {
        if let Some(sent_at) = delivery.oldest_repaired_at {
            self.rtt.on_repair(arrived.saturating_since(sent_at));
        }
        if let Some(newest) = delivery.newest_sent_at.filter(|at| *at <= arrived) {
            self.rtt
                .on_bound(arrived.saturating_since(newest), self.snd.una);
        }
    }

    /// Takes a round trip that is good enough for the timeout. The minimum takes it only for want
    /// of a better one.
    fn sample_coarsely(&mut self, now: Instant, age: Duration) {
        let (una, nxt) = (self.snd.una, self.snd.nxt);
        let min = self.rtt.min().filter(|_| !self.rtt.is_doubtful());
        match min {
            None => self.rtt.sample_first(now, age, una, nxt),
            Some(floor) => self.rtt.sample_smooth(age.max(floor), una, nxt),
        }
    }
}
