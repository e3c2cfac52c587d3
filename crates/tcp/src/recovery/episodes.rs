//! Loss recovery of one connection: the state of the running episode, and how one begins and ends.
//!
//! Bytes and stream positions throughout. The scoreboard, the congestion controller and ECN belong
//! to the sender and come as a [`Sending`] with each call.

use alloc::boxed::Box;
use core::ops::Range;
use core::time::Duration;

use tack_base::time::Nanos;
use tack_base::{Instant, StreamOffset};

use super::dup_acks::DupAcks;
use super::evidence::EpisodeEvidence;
use super::frto::{Frto, Verdict};
use super::prr::Prr;
use super::rack::Rack;
use super::retransmitted::Retransmitted;
use super::tlp::{HeldBack, ProbeOutcome, TailLossProbe};
use super::{Detection, DetectionContext, LossDetector, LossView, Phase};
use crate::cc::{Cause, Congestion, CongestionController, RecoveryShaping};
use crate::ecn::EcnState;
use crate::rtt::estimator::RttEstimator;
use crate::send::loss_sign::LossSign;
use crate::send::packet_number::PacketNumber;
use crate::send::sent::{Delivered, SentLog};

/// Retransmissions of the oldest segment that restart the retransmission timer, between two steps
/// of progress.
const HEAD_RETRANSMISSIONS: u32 = 3;

/// What an episode acts on besides its own state.
#[derive(Debug)]
pub(crate) struct Sending<'a> {
    /// Now.
    pub(crate) now: Instant,
    /// SND.UNA.
    pub(crate) snd_una: StreamOffset,
    /// SND.NXT.
    pub(crate) snd_nxt: StreamOffset,
    /// The congestion window limited the flight that is judged.
    pub(crate) cwnd_limited: bool,
    /// The scoreboard.
    pub(crate) log: &'a mut SentLog,
    /// The congestion controller.
    pub(crate) cc: &'a mut dyn CongestionController,
    /// The ECN state.
    pub(crate) ecn: &'a mut EcnState,
}

/// An acknowledgement to a sender without SACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainAck {
    /// SND.UNA after it.
    pub(crate) snd_una: StreamOffset,
    /// By how much it advanced SND.UNA.
    pub(crate) acked: u64,
    /// It is a duplicate acknowledgement.
    pub(crate) duplicate: bool,
    /// SMSS.
    pub(crate) mss: u64,
}

/// What an acknowledgement without SACK says about losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlainLoss {
    /// So many bytes are newly lost, possibly none.
    Counted(u64),
    /// A partial acknowledgement (RFC 6582 §3.2): so many bytes are newly lost, and leave at once.
    Partial(u64),
}

/// The loss recovery of one connection.
#[derive(Debug)]
pub(crate) struct LossRecovery {
    pub(super) phase: Phase,
    pub(super) cause: Cause,
    pub(super) detector: Box<dyn LossDetector>,
    dup_acks: DupAcks,
    pub(super) prr: Option<Prr>,
    tlp: TailLossProbe,
    pub(super) evidence: EpisodeEvidence,
    pub(super) frto: Frto,
    retransmitted: Retransmitted,
    total_lost: u64,
    /// Bytes in flight for the scoreboard of which the peer said that they arrived, without a
    /// block for them.
    received_unsacked: u64,
    /// Retransmission timeouts since the last progress.
    consecutive_timeouts: u32,
    /// Retransmissions of the oldest segment that restarted the timer, since the last progress.
    head_retransmissions: u32,
}

impl LossRecovery {
    /// Nothing was lost; the sender detects losses.
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Open,
            cause: Cause::Loss,
            detector: Box::new(Rack::new()),
            dup_acks: DupAcks::default(),
            prr: None,
            tlp: TailLossProbe::new(),
            evidence: EpisodeEvidence::default(),
            frto: Frto::default(),
            retransmitted: Retransmitted::default(),
            total_lost: 0,
            received_unsacked: 0,
            consecutive_timeouts: 0,
            head_retransmissions: 0,
        }
    }

    /// Losses are found by `detector` from now on.
    pub(crate) fn set_detector(&mut self, detector: Box<dyn LossDetector>) {
        self.detector = detector;
    }

    /// Heap held, bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.detector)
    }

    /// No episode is open.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.phase == Phase::Open
    }

    /// No episode is open, no probe is unanswered, and nothing more is to be learnt about the last
    /// episode: an acknowledgement that delivers nothing changes nothing.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.phase == Phase::Open && !self.tlp.is_outstanding() && !self.evidence.is_awaited()
    }

    /// After a retransmission timeout whose flight is not acknowledged yet.
    #[inline]
    pub(crate) fn is_after_timeout(&self) -> bool {
        matches!(self.phase, Phase::Timeout { .. })
    }

    /// Bytes marked lost since the connection began.
    #[inline]
    pub(crate) fn total_lost(&self) -> u64 {
        self.total_lost
    }

    /// Bytes in flight: the scoreboard's, less what arrived without a SACK block (with SACK), or
    /// less a segment for each duplicate acknowledgement (without).
    #[inline]
    pub(crate) fn bytes_in_flight(&self, log: &SentLog, sack: bool, mss: u64) -> u64 {
        let in_flight = log.in_flight();
        if sack {
            return in_flight.saturating_sub(self.received_unsacked);
        }
        in_flight - self.dup_acks.departed(mss, in_flight)
    }

    /// How much may be in flight under a congestion window of `cwnd`.
    #[inline]
    pub(crate) fn flight_limit(&self, cwnd: u64) -> u64 {
        match (&self.prr, self.phase) {
            (Some(prr), Phase::Recovery { .. }) => prr.window(),
            _ => cwnd,
        }
    }

    // Detection.

    /// What a detector needs to know at `now`; the peer holds an acknowledgement back for
    /// `ack_delay` at most.
    pub(crate) fn context(
        &self,
        now: Instant,
        rtt: &RttEstimator,
        ack_delay: Duration,
    ) -> DetectionContext {
        DetectionContext {
            now,
            min_rtt: rtt.min(),
            smoothed_rtt: rtt.smoothed(),
            ack_delay,
            in_recovery: self.phase != Phase::Open,
            echoed_departure: None,
        }
    }

    /// An acknowledgement delivered a segment.
    #[inline]
    pub(crate) fn on_delivered(&mut self, context: &DetectionContext, delivered: &Delivered) {
        self.detector.on_delivered(context, delivered);
    }

    /// The segment at `start` was delivered by an earlier transmission than its newest, which had
    /// this number.
    pub(crate) fn on_needless_retransmission(&mut self, number: PacketNumber, start: StreamOffset) {
        // A report that it arrived is not a second piece of evidence.
        self.retransmitted.take_number(number);
        self.evidence.on_duplicate(start);
    }

    /// The peer reports that the transmission with this number brought nothing new. Returns where
    /// it starts, if it was a retransmission and nothing told that it was needless. Unlike a DSACK,
    /// a copy that the network made does not cause such a report: it has the number of the other.
    pub(crate) fn on_repetition_report(&mut self, number: PacketNumber) -> Option<StreamOffset> {
        let start = self.retransmitted.take_number(number)?;
        self.evidence.on_duplicate(start);
        Some(start)
    }

    /// The peer reports that the segment at `start` arrived twice (DSACK). True when it had been
    /// retransmitted: the network duplicates too, which says nothing about retransmissions
    /// (RFC 3708 §2).
    pub(crate) fn on_duplicate_report(
        &mut self,
        start: StreamOffset,
        snd_una: StreamOffset,
        snd_nxt: StreamOffset,
    ) -> bool {
        let retransmitted = self.retransmitted.take(start);
        if retransmitted {
            self.detector.on_duplicate_report(snd_una, snd_nxt);
            self.evidence.on_duplicate(start);
        } else {
            self.evidence.on_network_duplicate();
        }
        retransmitted
    }

    /// An acknowledgement says what the receiver misses.
    pub(crate) fn on_report(&mut self, view: &LossView<'_>) {
        self.detector.on_report(view);
    }

    /// Marks what is lost in the scoreboard.
    pub(crate) fn detect(&mut self, context: &DetectionContext, log: &mut SentLog) -> Detection {
        let detection = self.detector.detect(context, log);
        self.total_lost += detection.lost;
        detection
    }

    /// So many bytes were marked lost for a reason of their own.
    pub(crate) fn on_marked_lost(&mut self, bytes: u64) {
        self.total_lost += bytes;
    }

    /// So many bytes that were marked lost are no sign of congestion.
    pub(crate) fn excuse(&mut self, bytes: u64) {
        self.total_lost -= bytes;
    }

    /// Loss detection for a peer without SACK (RFC 5681 §3.2, RFC 6582 §3.2).
    pub(crate) fn on_plain_ack(&mut self, ack: &PlainAck, log: &mut SentLog) -> PlainLoss {
        let loss = if ack.acked > 0 {
            let recovering = matches!(self.phase, Phase::Recovery { until } if ack.snd_una < until);
            self.dup_acks.on_advance(ack.acked, ack.mss, recovering);
            if recovering {
                // The next hole starts where the partial acknowledgement stopped, and is repaired
                // at once.
                PlainLoss::Partial(log.mark_front_lost(LossSign::PartialAck))
            } else {
                PlainLoss::Counted(0)
            }
        } else if ack.duplicate && self.dup_acks.on_duplicate() && self.phase == Phase::Open {
            PlainLoss::Counted(log.mark_front_lost(LossSign::DuplicateAcks))
        } else {
            PlainLoss::Counted(0)
        };
        let (PlainLoss::Counted(lost) | PlainLoss::Partial(lost)) = loss;
        self.total_lost += lost;
        loss
    }

    // Episodes.

    /// Something was lost: fast recovery begins, unless an episode is open already. `flight` is the
    /// flight size before. True when it begins.
    pub(crate) fn on_loss(&mut self, sending: &mut Sending<'_>, flight: u64) -> bool {
        if self.phase != Phase::Open {
            return false;
        }
        let window = sending.cc.cwnd();
        self.reduce(sending, flight);
        self.begin_evidence(sending, false);
        self.phase = Phase::Recovery {
            until: sending.snd_nxt,
        };
        self.tlp.cancel();
        if sending.cc.recovery_shaping() == RecoveryShaping::Prr {
            // RFC 9937 §6 leaves out what was reported selectively before: after a long recovery
            // that is windows of it.
            self.prr = Some(Prr::new(flight.min(window), sending.cc.cwnd()));
        }
        true
    }

    /// A tail loss probe repaired a loss: congestion control learns of it, nothing needs repair
    /// (RFC 8985 §7.4.2).
    pub(crate) fn on_repaired_loss(&mut self, sending: &mut Sending<'_>, flight: u64) {
        sending.log.count_loss(LossSign::Probe);
        self.reduce(sending, flight);
        sending.cc.on_recovered(sending.now);
    }

    fn reduce(&mut self, sending: &mut Sending<'_>, flight: u64) {
        self.cause = Cause::Loss;
        sending.cc.on_congestion(&Congestion {
            now: sending.now,
            cause: Cause::Loss,
            prior_in_flight: flight,
            cwnd_limited: sending.cwnd_limited,
            consecutive_timeouts: 0,
            snd_nxt: sending.snd_nxt,
        });
        // A controller with recovery of its own answers losses and marks apart.
        if sending.cc.recovery_shaping() == RecoveryShaping::Prr {
            sending.ecn.on_reduction(sending.snd_nxt);
        }
    }

    /// Evidence about an episode that begins is collected from here on.
    fn begin_evidence(&mut self, sending: &Sending<'_>, originals_count: bool) {
        let probe = self.tlp.repeated_at();
        let confused = sending.log.retransmitted_segments() > usize::from(probe.is_some());
        let sent = sending.snd_una..sending.snd_nxt;
        let lone = sending.log.segment_count() == 1;
        self.evidence
            .begin(sent, probe, lone, confused, originals_count);
    }

    /// The retransmission timer ran out (RFC 6298 §5.4 to 5.7, RFC 8985 §6.3). `in_flight` is what
    /// was in flight before.
    pub(crate) fn on_timeout(
        &mut self,
        context: &DetectionContext,
        sending: &mut Sending<'_>,
        in_flight: u64,
    ) {
        self.received_unsacked = 0;
        self.detector.on_timeout(context, sending.log);
        // Originals testify only for a timeout that no other retransmission precedes
        // (RFC 5682 §2.1).
        self.begin_evidence(sending, self.phase == Phase::Open);
        self.frto.on_timeout(self.evidence.originals_count());
        sending.cc.on_congestion(&Congestion {
            now: sending.now,
            cause: Cause::Timeout,
            prior_in_flight: in_flight,
            cwnd_limited: sending.cwnd_limited,
            consecutive_timeouts: self.consecutive_timeouts,
            snd_nxt: sending.snd_nxt,
        });
        self.cause = Cause::Timeout;
        self.phase = Phase::Timeout {
            until: sending.snd_nxt,
        };
        sending.ecn.on_reduction(sending.snd_nxt);
        self.prr = None;
        self.dup_acks.reset();
        self.tlp.cancel();
    }

    /// The retransmission timer ran out once more without progress.
    pub(crate) fn count_timeout(&mut self) {
        self.consecutive_timeouts += 1;
    }

    /// The cumulative acknowledgement advanced to `snd_una`.
    pub(crate) fn on_progress(&mut self, snd_una: StreamOffset) {
        self.evidence.on_progress(snd_una);
        self.consecutive_timeouts = 0;
        self.head_retransmissions = 0;
    }

    /// An acknowledgement while the flight of a timeout is not acknowledged (RFC 5682). `advanced`
    /// tells whether it moved SND.UNA, `new_data` whether unsent data could leave now.
    pub(crate) fn on_ack_after_timeout(&mut self, advanced: bool, new_data: bool, mss: u64) {
        if self.frto.on_ack(advanced, new_data, mss) == Verdict::Genuine {
            self.evidence.dismiss_originals();
        }
    }

    /// The episode ends when everything sent before it is acknowledged. True when it ends.
    pub(crate) fn try_end(&mut self, snd_una: StreamOffset, snd_nxt: StreamOffset) -> bool {
        if self.phase.until().is_none_or(|until| snd_una < until) {
            return false;
        }
        self.evidence
            .end_acknowledged(self.is_after_timeout(), snd_nxt);
        self.phase = Phase::Open;
        self.prr = None;
        self.frto.end();
        self.dup_acks.reset();
        self.detector.on_recovered();
        true
    }

    // What arrived.

    /// The peer holds `above` bytes above the cumulative acknowledgement. Of what it has and did
    /// not list, for want of room in its blocks, what is presumed lost is not in flight anyway.
    pub(crate) fn on_received_above(&mut self, above: u64, log: &SentLog) {
        self.received_unsacked = above.saturating_sub(log.sacked_bytes() + log.lost_bytes());
    }

    /// The cumulative acknowledgement advanced, and nothing tells how much the peer holds above it.
    pub(crate) fn on_received_above_unknown(&mut self) {
        self.received_unsacked = 0;
    }

    /// An acknowledgement delivered bytes during an episode that proportional rate reduction
    /// shapes.
    pub(crate) fn on_delivered_bytes(
        &mut self,
        delivered: u64,
        in_flight: u64,
        mss: u64,
        progress: bool,
    ) {
        if let Some(prr) = &mut self.prr {
            prr.on_ack(delivered, in_flight, mss, progress);
        }
    }

    /// A duplicate acknowledgement without SACK: a segment of `mss` bytes left the network.
    pub(crate) fn on_duplicate_ack(&mut self, log: &SentLog, mss: u64) {
        if self.prr.is_some() {
            let in_flight = self.bytes_in_flight(log, false, mss);
            self.on_delivered_bytes(mss, in_flight, mss, false);
        }
    }

    // Tail loss probe.

    /// True while a probe is unanswered.
    #[inline]
    pub(crate) fn is_probing(&self) -> bool {
        self.tlp.is_outstanding()
    }

    /// How long a probe waits from now; see [`TailLossProbe::timeout`].
    #[inline]
    pub(crate) fn probe_timeout(&self, smoothed: Option<Nanos>, held_back: HeldBack) -> Nanos {
        self.tlp.timeout(smoothed, held_back)
    }

    /// A report that was due told of data that had left up to `took` ago, and only once.
    #[inline]
    pub(crate) fn on_answer(&mut self, took: Nanos) {
        self.tlp.on_answer(took);
    }

    /// A probe may leave when its timer runs out (RFC 8985 §7.2).
    #[inline]
    pub(crate) fn may_probe(&self) -> bool {
        self.phase == Phase::Open && !self.tlp.is_outstanding()
    }

    /// A probe leaves under `number`, up to SND.NXT; `repeated_at` when it is not new data.
    pub(crate) fn on_probe(
        &mut self,
        number: PacketNumber,
        range: Range<StreamOffset>,
        repeated_at: Option<Instant>,
    ) {
        self.tlp.on_probe(number, range, repeated_at);
    }

    /// The probe did not leave, or its answer is known.
    pub(crate) fn cancel_probe(&mut self) {
        self.tlp.cancel();
    }

    /// An acknowledgement up to `ack` arrived (RFC 8985 §7.4.2); `duplicate` is where something
    /// starts that it reports to have arrived twice, `bare` tells that it is a duplicate
    /// acknowledgement without blocks, `largest` is the largest packet number that it reports. True
    /// when the probe repaired a loss outside of any episode.
    pub(crate) fn is_repaired_by_probe(
        &mut self,
        ack: StreamOffset,
        duplicate: Option<StreamOffset>,
        bare: bool,
        largest: Option<PacketNumber>,
    ) -> bool {
        self.tlp.on_ack(ack, duplicate, bare, largest) == ProbeOutcome::RepairedLoss
            && self.phase == Phase::Open
    }

    // What leaves.

    /// Bytes of new data to send before any further retransmission (F-RTO); `None` when no test
    /// holds them back.
    #[inline]
    pub(crate) fn new_data_allowance(&self) -> Option<u64> {
        self.frto.new_data_allowance()
    }

    /// New data of `len` bytes left.
    #[inline]
    pub(crate) fn on_new_data(&mut self, len: u64) {
        self.frto.on_send(len);
    }

    /// The segment at `start` left again, under `number`.
    pub(crate) fn on_retransmission(
        &mut self,
        now: Instant,
        number: PacketNumber,
        start: StreamOffset,
    ) {
        self.evidence.on_retransmit(now, start);
        self.retransmitted.note(number, start);
    }

    /// `len` bytes left, new or not.
    #[inline]
    pub(crate) fn on_send(&mut self, len: u64) {
        if let Some(prr) = &mut self.prr {
            prr.on_send(len);
        }
    }

    /// A retransmission of the oldest segment gets a timeout of its own, in fast recovery and a few
    /// times without progress.
    ///
    /// Deviation: RFC 6298 §5 restarts on progress alone. Where retransmissions get lost in what
    /// overflowed the queue, the timeout would run out while the repair is on its way (Linux
    /// restarts on each of them). The bound is ours: a receiver that names the same loss again and
    /// again puts the timeout off by these few round trips.
    pub(crate) fn grants_head_a_timeout(&mut self) -> bool {
        let grants = matches!(self.phase, Phase::Recovery { .. })
            && self.head_retransmissions < HEAD_RETRANSMISSIONS;
        self.head_retransmissions += u32::from(grants);
        grants
    }
}
