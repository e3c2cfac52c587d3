//! The lists of a report: which gaps and blocks it names, and how many (TACK §5.1).

use super::TackPolicy;
use super::blocks::MAX_BLOCKS;
use super::report_order::Wanted;
use super::schedule::BASE_GAPS;
use crate::ack::kind::LossReporting;
use crate::ack::policy::{AckReason, ReportContext};
use tack_wire::tack::ListsWriter;

/// Blocks that a report lists where reports wait in a queue: more of them would wait for longer,
/// and the next report lists others.
const FEW_BLOCKS: usize = 8;

/// So long before a silence what was named may have been named in vain. Older losses may have been
/// repaired under numbers that do not show it.
const RECENT_ROUND_TRIPS: u32 = 4;

impl TackPolicy {
    /// Which gaps a report should list (TACK §5.1): `Q` of them, `rho·rho'·bdp/MSS − Q` more where
    /// that pays, and all that are new. Many losses share a report: gaps that it left out would
    /// wait for later reports, four in each, and the stream would wait too.
    fn wanted_gaps(&self, silent: bool, room: usize) -> Wanted {
        let few = |due| Wanted {
            due,
            all_new: false,
            room,
        };
        match self.schedule.params.losses {
            LossReporting::Never => return few(0),
            _ if !self.schedule.params.rich => return few(1),
            LossReporting::AtOnce if silent => return few(u64::MAX),
            _ => {}
        }
        let bdp = self.schedule.bdp() as f64;
        let mss = self.schedule.peer_mss as f64;
        let losses = self.gaps.loss_rate() * self.schedule.ack_loss_rate;
        let lost_per_report = if bdp
            >= f64::from(self.schedule.params.beta) * self.schedule.threshold(&self.gaps) as f64
        {
            losses * bdp / mss
        } else {
            losses * self.schedule.segments(&self.gaps) as f64
        };
        Wanted {
            due: BASE_GAPS.max(lost_per_report as u64 + 1),
            all_new: true,
            room,
        }
    }

    /// Fills the data field. Returns its length.
    pub(super) fn write_lists(&mut self, context: &ReportContext<'_>, out: &mut [u8]) -> usize {
        let Some(largest) = self.gaps.largest() else {
            return 0;
        };
        // Nothing has arrived since the last report: what it said did not help, or did not get
        // through.
        let silent = context.reason == AckReason::Timer && self.schedule.is_empty();
        let wanted = self.wanted_gaps(silent, out.len());
        self.gaps.resolve_ahead(context.received_to, context.ahead);
        let now = context.now;
        let round_trip = self.gaps.round_trip(self.schedule.rtt_min());
        let patience = 2 * (round_trip + self.schedule.time_period());
        let is_missing = |number| self.gaps.is_lost(number);
        let in_vain = self.report_size.gives_up(now, patience, is_missing);
        // After a silence of a round trip the sender did not hear for as long, as it seems: what
        // was named not long before is as good as never named, unless the next report names all
        // anyway.
        let last = if silent {
            None
        } else {
            self.last_arrivals.replace(now)
        };
        let silence = last.map(|last| now.saturating_since(last));
        let lost = self.gaps.lost();
        let anew = match silence {
            _ if in_vain => Some(None),
            Some(silence)
                if silence > round_trip + self.schedule.time_period()
                    && lost as u64 > wanted.due =>
            {
                Some(Some((now, silence + RECENT_ROUND_TRIPS * round_trip)))
            }
            _ => None,
        };
        if let Some(recent) = anew {
            let gaps = self.gaps.report_anew(recent, self.report_work.anew());
            self.report_work.spend_anew(gaps);
        }
        let room = self.report_size.room(now, lost);
        let max_blocks = if !self.schedule.params.rich {
            1
        } else if self.schedule.is_clogged(now) {
            FEW_BLOCKS
        } else {
            MAX_BLOCKS.min(room.blocks()).min(self.report_work.blocks())
        };
        let len = out.len().min(room.all);
        let mut writer = ListsWriter::new(&mut out[..len]);
        let mut blocks = 0;
        for block in self.blocks.choose(context.ahead, max_blocks) {
            let block = block.start - context.received_to..block.end - context.received_to;
            if !room.has_place_for_block(writer.written()) || !writer.block(block) {
                break;
            }
            blocks += 1;
        }
        // What a timer repeats is bounded by its growing intervals.
        let paid = match silent {
            true => u64::MAX,
            false => self.report_work.gaps(lost),
        };
        let wanted = Wanted {
            due: wanted.due.min(room.gaps(writer.written())).min(paid),
            ..wanted
        };
        // The repair of what is reported now can be here no sooner.
        let round = self.schedule.rtt_min() + self.schedule.time_period();
        let mut last = None;
        let repeated = self.gaps.report(wanted, now, round, |numbers| {
            let fits = writer.gap(largest - numbers.start, numbers.end - numbers.start);
            last = if fits { Some(numbers.start) } else { last };
            fits
        });
        let paid = if silent { 0 } else { repeated };
        self.report_work.spend(blocks, paid, lost);
        self.listed_gaps = last.is_some();
        let len = writer.finish();
        self.report_size.on_report(now, len, last);
        len
    }
}
