//! TACK at the sender of data: reads reports, counts those that were lost, and sends the receiver
//! what it needs to know.

use core::time::Duration;

use tack_base::{Instant, Rate};
use tack_wire::tack::{Lists, Sync, TackSyn, TimingEcho};
use tack_wire::{Segment, TackOption};

use super::super::feedback::{
    AckInfo, FeedbackReader, InvalidFeedback, ReadContext, RoundTrip, SackReader, SenderState,
};
use super::super::policy::{AckContract, LossDetectedBy};
use super::hearing::{Carrier, Hearing};
use super::one_way::round_trip;
use super::path::Run;
use crate::rate::Measured;
use crate::send::packet_number::PacketNumber;

/// Reports over which the loss rate of the ACK path is averaged: counts are halved beyond.
const REPORT_WINDOW: u64 = 512;
/// Longest period that a peer may claim: its acknowledgements would come too late to be of use.
const MAX_PERIOD: Duration = Duration::from_secs(1);
/// Longest wait of a remainder, as delayed acknowledgements have it.
const REMAINDER: Duration = Duration::from_millis(40);
/// Share of intervals that may pass without a report before more than one is reckoned with.
const SILENT_INTERVALS: f64 = 0.1;

/// The sender's reader.
#[derive(Debug)]
pub(crate) struct TackReader {
    peer: TackSyn,
    /// Number of the newest report.
    newest: Option<u32>,
    /// The largest number of a transmission that reports told of.
    largest: Option<PacketNumber>,
    /// The departures that timing echoes named, microseconds: the last one, and the latest.
    echoed: Option<(u32, u32)>,
    received: u64,
    lost: u64,
    /// Period of acknowledgements, as the peer last said.
    period: Option<Duration>,
    /// What was last sent, when, and under which number.
    last_sync: Option<SentSync>,
    /// A report that left after it should have arrived does not know it.
    sync_lost: bool,
    next_sync: u32,
    /// The longest round trip that the receiver may reckon with: those of the syncs since the last
    /// one that it is known to have.
    told_round_trip: Duration,
    /// The last round trip that was measured.
    measured: Duration,
    /// Whether reports get through.
    hearing: Hearing,
    /// Reports in a row that seem to be older than the newest one.
    stale: Run,
    /// Reads what comes without a report.
    sack: SackReader,
    /// What follows from the above: asked for with each segment, and seldom another.
    contract: AckContract,
    /// How often it was found anew, modulo 2^32.
    contract_version: u32,
}

#[derive(Clone, Copy, Debug)]
struct SentSync {
    at: Instant,
    min_rtt: Duration,
    round_trip: Duration,
    startup: bool,
    ack_loss_rate: f64,
}

impl TackReader {
    /// Reads what a peer with these parameters reports. `sack` says that SACK was agreed too, for a
    /// fallback.
    pub(crate) fn new(peer: TackSyn, sack: bool) -> Self {
        let mut reader = Self {
            peer,
            newest: None,
            echoed: None,
            largest: None,
            received: 0,
            lost: 0,
            period: None,
            last_sync: None,
            sync_lost: false,
            next_sync: 1,
            told_round_trip: Duration::ZERO,
            measured: Duration::ZERO,
            hearing: Hearing::new(),
            stale: Run::default(),
            sack: SackReader::new(sack),
            contract: AckContract::LEGACY,
            contract_version: 0,
        };
        reader.renew_contract();
        reader
    }

    fn renew_contract(&mut self) {
        self.contract = self.current_contract();
        self.contract_version = self.contract_version.wrapping_add(1);
    }

    /// What the peer promises by what is known now.
    fn current_contract(&self) -> AckContract {
        if !self.hearing.is_on() {
            return AckContract::LEGACY;
        }
        let by_time = self.last_sync.map_or(Duration::ZERO, |last_sync| {
            last_sync.min_rtt / u32::from(self.peer.beta)
        });
        let interval = self.period.unwrap_or(by_time);
        AckContract {
            max_delay: interval.max(REMAINDER),
            max_segments: u32::MAX,
            least_segments: u16::from(self.peer.segments),
            interval: by_time,
            gap: by_time.mul_f64(self.intervals_to_hear()),
            // The peer's figure would let it put the timeout off.
            timeout_allowance: by_time.max(REMAINDER),
            loss_detected_by: LossDetectedBy::Receiver,
        }
    }

    /// RTTmin as the receiver was told.
    fn told_rtt_min(&self) -> Duration {
        self.last_sync
            .map_or(Duration::ZERO, |last_sync| last_sync.min_rtt)
    }

    /// An acknowledgement came without a report.
    fn on_no_report(&mut self, context: &ReadContext<'_>, carrier: Carrier) {
        let (due, told) = self.due_and_told(context);
        self.hearing.on_no_report(context, carrier, due, told);
    }

    /// Bytes after which a report is due, and RTTmin and the round trip that the receiver was told.
    fn due_and_told(&self, context: &ReadContext<'_>) -> (u64, (Duration, Duration)) {
        let due = u64::from(self.peer.segments) * u64::from(self.peer.beta) * context.mss;
        (due, (self.told_rtt_min(), self.told_round_trip))
    }

    /// Share of reports lost on the way, 0 to 1.
    fn ack_loss_rate(&self) -> f64 {
        match self.lost {
            0 => 0.0,
            lost => lost as f64 / (self.received + lost) as f64,
        }
    }

    /// Intervals until a report arrives nine times of ten, in quarters.
    fn intervals_to_hear(&self) -> f64 {
        let loss = self.ack_loss_rate();
        if loss <= SILENT_INTERVALS {
            return 1.0;
        }
        let intervals = libm::log(SILENT_INTERVALS) / libm::log(loss.min(0.9));
        libm::ceil(intervals * 4.0) / 4.0
    }

    /// Counts report `number`; `None` when it is not newer than what was read.
    fn count(&mut self, number: u32) -> Option<()> {
        let step = match self.newest {
            None => u64::from(number) + 1,
            Some(newest) => {
                let step = number.wrapping_sub(newest) as i32;
                u64::try_from(step).ok().filter(|step| *step > 0)?
            }
        };
        self.newest = Some(number);
        self.received += 1;
        // A jump beyond a window of reports cannot be true: it would only spoil the average.
        self.lost += (step - 1).min(REPORT_WINDOW);
        if self.received + self.lost > REPORT_WINDOW {
            self.received /= 2;
            self.lost /= 2;
        }
        Some(())
    }

    /// The 64-bit number behind a 32-bit one; only numbers that were sent can be meant.
    fn number(
        context: &ReadContext<'_>,
        low: u32,
    ) -> Result<Option<PacketNumber>, InvalidFeedback> {
        let next = context.log.next_number();
        let newest = next.back(1);
        let Some(newest) = newest.filter(|_| low != u32::MAX || next.0 >= u64::from(u32::MAX))
        else {
            // Nothing received yet.
            return if low == u32::MAX {
                Ok(None)
            } else {
                Err(InvalidFeedback)
            };
        };
        let back = newest.low().wrapping_sub(low);
        if back > u32::MAX / 2 {
            return Err(InvalidFeedback);
        }
        newest.back(back.into()).map(Some).ok_or(InvalidFeedback)
    }

    fn read_lists(
        context: &ReadContext<'_>,
        largest: Option<PacketNumber>,
        lists: &[u8],
        info: &mut AckInfo,
    ) -> Result<(), InvalidFeedback> {
        let lists = Lists::parse(lists).map_err(|_| InvalidFeedback)?;
        // Blocks come highest first.
        let mut delivered = context.log.sacked().descending();
        for offsets in lists.blocks() {
            let block = context.ack + offsets.start..context.ack + offsets.end;
            if block.end > context.snd_nxt {
                return Err(InvalidFeedback);
            }
            // Most of them repeat what earlier reports listed.
            if !delivered.contains(&block) {
                info.acked.push(block);
            }
        }
        for (distance, count) in lists.gaps() {
            let largest = largest.ok_or(InvalidFeedback)?;
            let start = largest.back(distance).ok_or(InvalidFeedback)?;
            info.lost.push(start.run(count));
        }
        Ok(())
    }

    /// What is said to have arrived must have left under numbers up to the largest that is said to
    /// have arrived.
    fn check_received(
        context: &ReadContext<'_>,
        largest: Option<PacketNumber>,
        above: u32,
        info: &AckInfo,
    ) -> Result<(), InvalidFeedback> {
        let ends = info.acked.iter().map(|block| block.end);
        // What is above a hole reaches further up than it is long.
        let least = [context.ack, context.ack + u64::from(above)];
        let sound = ends.chain(least).all(|end| {
            let original = context.log.original_below(end);
            original.is_none_or(|number| Some(number) <= largest)
        });
        if sound { Ok(()) } else { Err(InvalidFeedback) }
    }

    /// The round trip of the segment that is echoed. A departure at which nothing left names none,
    /// nor does one that was named before, or that is a round trip before another that was: each
    /// report measures what came since the one before, and an old figure that is repeated would be
    /// a longer round trip each time.
    fn fastest(
        &mut self,
        context: &ReadContext<'_>,
        echo: Option<TimingEcho>,
        largest: Option<PacketNumber>,
    ) -> Option<Duration> {
        let echo = echo?;
        let measured = round_trip(context.arrived, echo)?;
        let left = context
            .log
            .left_at(context.arrived, echo.departure, largest);
        if left == Some(false) || !self.is_news(echo.departure, context.smoothed_rtt) {
            return None;
        }
        Some(measured)
    }

    /// Whether this departure was not named before. Reordering has some named after later ones.
    fn is_news(&mut self, departure: u32, round_trip: Duration) -> bool {
        let Some((last, latest)) = self.echoed else {
            self.echoed = Some((departure, departure));
            return true;
        };
        let before = latest.wrapping_sub(departure) as i32;
        let is_news = match u32::try_from(before) {
            Ok(0) => false,
            Ok(before) => departure != last && Duration::from_micros(before.into()) < round_trip,
            Err(_) => true,
        };
        if is_news {
            let latest = if before < 0 { departure } else { latest };
            self.echoed = Some((departure, latest));
        }
        is_news
    }

    /// Reads the option, or what comes without it.
    fn read_option(
        &mut self,
        context: &ReadContext<'_>,
        segment: &Segment<'_>,
        lists: &[u8],
        info: &mut AckInfo,
    ) -> Result<(), InvalidFeedback> {
        // A plain acknowledgement among reports does not say how long it was held back: it yields
        // no rate.
        if self.hearing.is_on() {
            info.rate = Measured::ByReceiver(None);
        }
        let (number, largest, largest_delay, above, has_lists, gap) =
            match segment.header.options.tack {
                Some(TackOption::Report(report)) => (
                    report.number,
                    report.largest,
                    report.largest_delay,
                    report.above,
                    report.lists,
                    None,
                ),
                Some(TackOption::Loss(loss)) => (
                    loss.number,
                    loss.largest,
                    loss.largest_delay,
                    loss.above,
                    loss.lists,
                    Some((loss.before_gap, loss.after_gap)),
                ),
                // A sync is not a report, and the peer's last segment of the handshake may be a
                // copy.
                Some(TackOption::Sync(_) | TackOption::Syn(_)) => return Ok(()),
                stamp @ (Some(TackOption::Data(_)) | None) => {
                    let carrier = if segment.sequence_len() == 0 {
                        self.sack.read(context, segment, lists, info)?;
                        let lists = !segment.header.options.sack.is_empty();
                        Carrier::Alone { lists }
                    } else {
                        let left = match stamp {
                            Some(TackOption::Data(stamp)) => Some(stamp.departure),
                            _ => None,
                        };
                        Carrier::Data { left }
                    };
                    self.on_no_report(context, carrier);
                    return Ok(());
                }
            };
        let largest = Self::number(context, largest)?;
        if has_lists {
            Self::read_lists(context, largest, lists, info)?;
        }
        Self::check_received(context, largest, above, info)?;
        if let Some((before, after)) = gap {
            let (Some(before), Some(after)) = (
                Self::number(context, before)?,
                Self::number(context, after)?,
            ) else {
                return Err(InvalidFeedback);
            };
            if before >= after || Some(after) > largest {
                return Err(InvalidFeedback);
            }
            info.lost.push(before.next()..after);
        }
        // The cumulative acknowledgement itself may be one octet beyond, that of a window probe.
        if above > 0 && context.ack + u64::from(above) > context.snd_nxt {
            return Err(InvalidFeedback);
        }
        // Everything is sound. From here on state moves; an old or repeated report moves none.
        self.hearing.on_report(context, largest);
        if self.count(number).is_none() {
            if !self.stale.add(context.arrived, context.smoothed_rtt) {
                info.lost.clear();
                info.old = true;
                return Ok(());
            }
            // Nothing is overtaken for so long: it is the newest number that was damaged.
            self.newest = Some(number);
        }
        self.stale.end();
        info.numbered = true;
        info.above = Some(above.into());
        info.largest = largest;
        info.largest_is_news = largest > self.largest;
        self.largest = self.largest.max(largest);
        info.largest_age = Duration::from_micros(largest_delay.into());
        info.largest_left = largest.and_then(|number| context.log.sent_at(number));
        let newest = info.largest_left.and_then(|sent_at| {
            let since = context.arrived.saturating_since(sent_at);
            since
                .checked_sub(info.largest_age)
                .filter(|rtt| !rtt.is_zero())
        });
        if let Some(TackOption::Report(report)) = segment.header.options.tack {
            info.largest_repeated = report.repeated;
            info.rate = Measured::ByReceiver(report.rate.map(Rate::from_bytes_per_sec));
            let fastest = self.fastest(context, report.timing, largest);
            // A repeated report does not measure what it repeats once more (RFC 9002 §5.1): copies
            // that waited together on their way would count for as many round trips.
            let news = newest.filter(|_| info.largest_is_news);
            if let Some(fastest) = fastest.or(news) {
                info.round_trip = Some(RoundTrip {
                    newest: newest.unwrap_or(fastest),
                    fastest,
                });
            }
            self.period = Some(Duration::from_micros(report.period.into()).min(MAX_PERIOD));
            let knows = report.sync_echo == self.next_sync.wrapping_sub(1) as u8 & 0xf;
            if let (true, Some(last_sync)) = (knows, &self.last_sync) {
                self.told_round_trip = last_sync.round_trip;
            }
            self.sync_lost = !knows
                && self
                    .last_sync
                    .is_some_and(|last_sync| context.arrived >= last_sync.at + last_sync.min_rtt);
        }
        Ok(())
    }
}

impl FeedbackReader for TackReader {
    fn read(
        &mut self,
        context: &ReadContext<'_>,
        segment: &Segment<'_>,
        lists: &[u8],
        info: &mut AckInfo,
    ) -> Result<(), InvalidFeedback> {
        let (was_on, stamped) = (self.hearing.is_on(), self.hearing.stamps());
        self.hearing.look_at_clock(context, self.told_rtt_min());
        let result = self.read_option(context, segment, lists, info);
        if result.is_err() {
            let (due, told) = self.due_and_told(context);
            self.hearing.on_refused(context, due, told);
        }
        if stamped && !self.hearing.stamps() {
            // What the receiver was told may be outdated when it is told something again.
            self.last_sync = None;
            self.sync_lost = false;
            self.told_round_trip = Duration::ZERO;
        }
        let option = &segment.header.options.tack;
        if self.hearing.is_on() != was_on || !matches!(option, None | Some(TackOption::Data(_))) {
            self.renew_contract();
        }
        result
    }

    fn contract(&self) -> AckContract {
        debug_assert_eq!(self.contract, self.current_contract());
        self.contract
    }

    fn contract_version(&self) -> u32 {
        self.contract_version
    }

    fn is_intelligible(&self) -> bool {
        self.hearing.is_on() || self.sack.is_intelligible()
    }

    fn is_settled(&self) -> bool {
        // Without reports the clock decides what comes next.
        self.hearing.is_on()
    }

    fn stamps(&self) -> bool {
        self.hearing.stamps()
    }

    fn separates_lists(&self) -> bool {
        true
    }

    fn poll_sync(&mut self, state: &SenderState) -> Option<Sync> {
        if !self.hearing.stamps() {
            return None;
        }
        let ack_loss_rate = self.ack_loss_rate();
        let steady = state.round_trip.max(state.smoothed_rtt);
        // A queue of reports drains bit by bit. A long round trip that is short at the next
        // measurement was not one: a host slept, for instance, and SRTT may stay long for dozens of
        // round trips.
        let is_over = state.newest.is_some_and(|newest| {
            let before = core::mem::replace(&mut self.measured, newest);
            self.last_sync.as_ref().is_some_and(|last_sync| {
                before * 2 > last_sync.round_trip && state.round_trip * 4 < last_sync.round_trip
            })
        });
        let round_trip = if is_over { state.round_trip } else { steady };
        if let Some(last_sync) = &self.last_sync {
            // As for each segment to a side that only receives: nothing to compute.
            let same = last_sync.min_rtt == state.min_rtt
                && last_sync.round_trip == state.round_trip
                && last_sync.startup == state.startup
                && last_sync.ack_loss_rate == ack_loss_rate;
            if same && !self.sync_lost && !state.min_rtt.is_zero() {
                return None;
            }
            let since = state.now.saturating_since(last_sync.at);
            // So much is within what the period may be off by without harm; loss matters by its
            // order of magnitude.
            let rtt_moved = last_sync.min_rtt.abs_diff(state.min_rtt) > last_sync.min_rtt / 32;
            // The receiver's window follows the round trip, with room for it to double.
            let queue_grew =
                state.round_trip * 4 > last_sync.round_trip * 5 && since >= state.min_rtt;
            let queue_shrank = steady * 2 < last_sync.round_trip;
            let loss_moved = ack_loss_rate > 2.0 * last_sync.ack_loss_rate + 0.005
                || last_sync.ack_loss_rate > 2.0 * ack_loss_rate + 0.005;
            let phase_moved = last_sync.startup != state.startup;
            let unheard = self.sync_lost && since > state.smoothed_rtt * 3 / 2;
            let urgent = phase_moved || state.min_rtt * 2 <= last_sync.min_rtt;
            let changed = (rtt_moved || queue_shrank || loss_moved) && since >= state.smoothed_rtt;
            if !(urgent || queue_grew || is_over || changed || unheard) {
                return None;
            }
        }
        self.last_sync = Some(SentSync {
            at: state.now,
            min_rtt: state.min_rtt,
            round_trip,
            startup: state.startup,
            ack_loss_rate,
        });
        self.renew_contract();
        self.sync_lost = false;
        self.told_round_trip = self.told_round_trip.max(round_trip);
        let number = self.next_sync;
        self.next_sync = number.wrapping_add(1);
        Some(Sync {
            startup: state.startup,
            ack_loss_rate: (ack_loss_rate * 65_535.0) as u16,
            number,
            rtt_min: u32::try_from(state.min_rtt.as_micros()).unwrap_or(u32::MAX),
            rtt: u32::try_from(round_trip.as_micros()).unwrap_or(u32::MAX),
        })
    }
}
