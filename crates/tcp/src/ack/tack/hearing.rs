//! Whether reports get through to the sender, and how it finds out that they do again.
//!
//! Something on the path may take TACK's option off. Then segments carry no stamps, so that the
//! receiver acknowledges as to every other TCP. From time to time a probe follows: a few segments
//! with stamps. The receiver answers with reports, and as long as it reports it lists nothing by
//! SACK; if its reports are stripped the sender is blind meanwhile. So a probe is short, however
//! long the queues on the path are, and only its answer begins a trial.

use core::time::Duration;

use tack_base::Instant;

use super::path::{Absence, Run};
use crate::ack::feedback::ReadContext;
use crate::send::packet_number::PacketNumber;

/// Reports that should have come along with data before their absence counts.
const MISSING_REPORTS: u64 = 4;
/// Where only data acknowledges, so many reports are missing in a round trip, at most: as many as a
/// receiver sends in RTTmin by default.
const MISSING_IN_ROUND_TRIP: u32 = 4;
/// Of so many acknowledgements in a trial one must be a report: with fewer of them TACK is of no
/// use.
const TRIAL_SHARE: u32 = 8;
/// Longest pause of this host that may hold reports up. What the peer says about its clock counts
/// no longer than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// First time without stamps after reports stopped to come; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Longest time without them: a path that changed is found out within it.
const LONGEST_WAIT: Duration = Duration::from_secs(64);
/// A probe lasts so many RTTmin: the receiver believes in stamps after one, and reports during the
/// others.
const PROBE_ROUND_TRIPS: u32 = 2;
/// And so much longer: what radio links and hosts hold back and pass on at once shows no round
/// trip.
const PROBE_TIME: Duration = Duration::from_millis(40);
/// And at least so many segments: three until the receiver believes in stamps, and as many to
/// report.
const PROBE_SEGMENTS: u64 = 6;
/// A trial lasts so many round trips, as long as they were when it began: one until the receiver
/// believes in stamps, one until its reports are believed in, and as much again for what gets lost.
const TRIAL_ROUND_TRIPS: u32 = 6;
/// And so many acknowledgements.
const TRIAL_ACKS: u32 = 12;

/// The state of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hearing {
    mode: Mode,
    /// Acknowledgements without a report, while reports are expected.
    absence: Absence,
    /// Reports in a row that were refused.
    refused: Run,
    /// When the first of them in a row that carries data with a stamp left, on the peer's clock.
    row_left: Option<u32>,
    /// Bytes acknowledged since the last acknowledgement that counted, whether it was a report or
    /// not, and when that arrived.
    unreported: u64,
    counted_at: Option<Instant>,
    /// How long the next time without stamps lasts.
    wait: Duration,
}

/// What an acknowledgement without a report came with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Carrier {
    /// Nothing: there should have been a report. It may list what is above it by SACK.
    Alone { lists: bool },
    /// Data, which left at this time on the peer's clock, microseconds, if it has a stamp.
    Data { left: Option<u32> },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Reports get through.
    Reports,
    /// They do not.
    Plain {
        /// When stamps are tried again.
        until: Instant,
        /// The first number of the last probe, whose answer may be on its way.
        probed: Option<PacketNumber>,
        /// Data was acknowledged since, so that no timeout backs off: one that does sends too
        /// little to probe with, and needs an answer that it understands.
        progress: bool,
    },
    /// Stamps for a moment.
    Probe {
        /// The first number with a stamp.
        first: PacketNumber,
        /// When it left.
        since: Option<Instant>,
    },
    /// A probe was answered: stamps, to see whether reports come again and again.
    Trial {
        /// The first number with a stamp.
        first: PacketNumber,
        /// When the trial began, and the round trip then: queues may grow while it lasts.
        since: Instant,
        round_trip: Duration,
        /// Acknowledgements since then, as far as they count.
        heard: u32,
        /// Reports.
        reports: Run,
        /// Acknowledgements since the receiver reported what left in the trial.
        answered: Option<u32>,
    },
}

impl Hearing {
    /// Reports are expected.
    pub(super) fn new() -> Self {
        Self {
            mode: Mode::Reports,
            absence: Absence::new(),
            refused: Run::default(),
            row_left: None,
            unreported: 0,
            counted_at: None,
            wait: FIRST_WAIT,
        }
    }

    /// Reports get through.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.mode == Mode::Reports
    }

    /// It is of use to stamp segments.
    #[inline]
    pub(super) fn stamps(&self) -> bool {
        !matches!(self.mode, Mode::Plain { .. })
    }

    /// Begins or ends a probe, or ends a trial, whose time it is. The receiver was told `rtt_min`.
    pub(super) fn look_at_clock(&mut self, context: &ReadContext<'_>, rtt_min: Duration) {
        let now = context.arrived;
        match self.mode {
            Mode::Plain {
                until,
                progress: true,
                ..
            } if now >= until => {
                self.mode = Mode::Probe {
                    first: context.log.next_number(),
                    since: None,
                };
            }
            Mode::Probe { .. } => self.end_probe(context, rtt_min, false),
            Mode::Trial {
                since,
                round_trip,
                heard,
                ..
            } if heard >= TRIAL_ACKS && now >= since + round_trip * TRIAL_ROUND_TRIPS => {
                self.fall_back(context, None);
            }
            _ => {}
        }
    }

    /// Ends a probe that was long enough. A sender that is `blind` may have no more to send until
    /// it hears what is missing.
    fn end_probe(&mut self, context: &ReadContext<'_>, rtt_min: Duration, blind: bool) {
        let now = context.arrived;
        let Mode::Probe { first, since } = &mut self.mode else {
            return;
        };
        let left = context.log.next_number() - *first;
        if left == 0 {
            return;
        }
        let since = *since.get_or_insert(context.log.sent_at(*first).unwrap_or(now));
        let is_over = now >= since + rtt_min * PROBE_ROUND_TRIPS + PROBE_TIME;
        if is_over && (blind || left >= PROBE_SEGMENTS) {
            let first = *first;
            self.fall_back(context, Some(first));
        }
    }

    /// No stamps for a while. The answer to a probe needs a round trip.
    fn fall_back(&mut self, context: &ReadContext<'_>, probed: Option<PacketNumber>) {
        let answer = probed.map_or(Duration::ZERO, |_| context.smoothed_rtt * 2);
        self.mode = Mode::Plain {
            until: context.arrived + self.wait.max(answer),
            probed,
            progress: false,
        };
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        self.row_left = None;
        self.refused.end();
        self.unreported = 0;
    }

    /// A report came through; the largest number that its sender received is `largest`.
    pub(super) fn on_report(&mut self, context: &ReadContext<'_>, largest: Option<PacketNumber>) {
        self.refused.end();
        match &mut self.mode {
            Mode::Reports => {
                self.unreported = 0;
                self.counted_at = Some(context.arrived);
                self.row_left = None;
                self.absence.on_option();
            }
            Mode::Probe { first, .. } if largest >= Some(*first) => {
                let first = *first;
                self.begin_trial(context, first, Some(1));
            }
            Mode::Plain {
                probed: Some(first),
                ..
            } if largest >= Some(*first) => {
                self.begin_trial(context, context.log.next_number(), None);
            }
            Mode::Plain { progress, .. } => *progress |= context.ack > context.snd_una,
            Mode::Probe { .. } => {}
            Mode::Trial {
                first,
                heard,
                reports,
                answered,
                ..
            } => {
                *heard += 1;
                if let Some(answered) = answered {
                    *answered += 1;
                } else if largest >= Some(*first) {
                    *answered = Some(1);
                }
                self.absence.on_option();
                let enough = reports.add(context.arrived, context.smoothed_rtt);
                let all = answered.unwrap_or(0);
                if enough && all <= TRIAL_SHARE * reports.count() {
                    self.mode = Mode::Reports;
                }
            }
        }
    }

    /// The first report of a trial came.
    fn begin_trial(
        &mut self,
        context: &ReadContext<'_>,
        first: PacketNumber,
        answered: Option<u32>,
    ) {
        self.absence.try_again();
        let mut reports = Run::default();
        reports.add(context.arrived, context.smoothed_rtt);
        self.mode = Mode::Trial {
            first,
            since: context.arrived,
            round_trip: context.smoothed_rtt,
            heard: 1,
            reports,
            answered,
        };
    }

    /// An acknowledgement came without a report. A report is due after `due` bytes, but where
    /// acknowledgements wait in a queue: there the receiver, which was `told` RTTmin and a round
    /// trip, sends several in that round trip.
    pub(super) fn on_no_report(
        &mut self,
        context: &ReadContext<'_>,
        carrier: Carrier,
        due: u64,
        told: (Duration, Duration),
    ) {
        let (rtt_min, round_trip) = told;
        let alone = matches!(carrier, Carrier::Alone { .. });
        if context.snd_una == context.snd_nxt {
            return;
        }
        match &mut self.mode {
            Mode::Reports => {
                let acked = context.ack.saturating_since(context.snd_una);
                self.unreported += acked;
                let span = context.smoothed_rtt.max(round_trip);
                // What acknowledges no more than the segment before it may have left together with
                // that: a report may follow both.
                let missing = alone
                    || acked > 0
                        && self.unreported > MISSING_REPORTS * due
                        && self
                            .counted_at
                            .is_none_or(|at| context.arrived >= at + span / MISSING_IN_ROUND_TRIP);
                if missing && self.is_row_over(context.arrived, carrier, span) {
                    self.fall_back(context, None);
                }
            }
            Mode::Trial {
                heard, answered, ..
            } if alone => {
                *heard += 1;
                if let Some(answered) = answered {
                    *answered += 1;
                    if self.absence.on_bare(context.arrived, Duration::ZERO) {
                        self.fall_back(context, None);
                    }
                }
            }
            Mode::Probe { .. }
                if carrier == Carrier::Alone { lists: false } && context.ack == context.snd_una =>
            {
                self.end_probe(context, rtt_min, true);
            }
            Mode::Plain { progress, .. } => *progress |= context.ack > context.snd_una,
            Mode::Probe { .. } | Mode::Trial { .. } => {}
        }
    }

    /// Counts an acknowledgement without a report. Returns whether so many came in a row, in at
    /// least `span`, that none come any more. A host that pauses in the middle of a burst reads the
    /// rest of it late, and so the report that follows. So segments with stamps must also have left
    /// that far apart, unless they arrived much further apart: a peer's clock may be wrong.
    fn is_row_over(&mut self, arrived: Instant, carrier: Carrier, span: Duration) -> bool {
        self.unreported = 0;
        self.counted_at = Some(arrived);
        let is_over = self.absence.on_bare(arrived, span);
        let Carrier::Data { left: Some(left) } = carrier else {
            return is_over;
        };
        let since = left.wrapping_sub(*self.row_left.get_or_insert(left)) as i32;
        let left_apart =
            u32::try_from(since).is_ok_and(|us| Duration::from_micros(us.into()) >= span);
        is_over && (left_apart || self.absence.age(arrived) >= span + LONGEST_PAUSE)
    }

    /// A report came that was refused, as each is of a receiver whose numbers are not ours since
    /// one was damaged on the way. It is of less use than an acknowledgement without a report, as
    /// not even what it acknowledges counts: three in a row over a round trip are enough, however
    /// many a path lets pass without the option. It ends a probe.
    pub(super) fn on_refused(
        &mut self,
        context: &ReadContext<'_>,
        due: u64,
        told: (Duration, Duration),
    ) {
        match self.mode {
            Mode::Probe { .. } => self.fall_back(context, None),
            Mode::Plain { .. } => {}
            Mode::Reports | Mode::Trial { .. } => {
                let span = context.smoothed_rtt.max(told.1);
                if context.snd_una < context.snd_nxt && self.refused.add(context.arrived, span) {
                    return self.fall_back(context, None);
                }
                self.on_no_report(context, Carrier::Alone { lists: true }, due, told);
            }
        }
    }
}

#[cfg(test)]
mod tests;
