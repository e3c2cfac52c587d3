//! The lists of a report: which gaps and blocks it names, and how many (TACK §5.1).

use super::*;

impl TackPolicy {
    /// How many gaps a report should list (TACK §5.1): `Q` and `rho·rho'·bdp/MSS − Q` more where that pays.
    fn wanted_gaps(&self) -> u64 {
        if self.params.losses == LossesTold::Never {
            return 0;
        }
        if !self.params.rich {
            return 1;
        }
        let bdp = self.rate.map_or(0, |rate| rate.bytes_in(self.rtt_min)) as f64;
        let mss = self.peer_mss as f64;
        let losses = self.gaps.loss_rate() * self.ack_loss_rate;
        let lost_per_report = if bdp >= f64::from(self.params.beta) * self.threshold() as f64 {
            losses * bdp / mss
        } else {
            losses * self.segments() as f64
        };
        BASE_GAPS.max(lost_per_report as u64 + 1)
    }

    /// Fills the data field. Returns its length.
    pub(super) fn write_lists(&mut self, context: &ReportContext<'_>, out: &mut [u8]) -> usize {
        let Some(largest) = self.gaps.largest() else {
            return 0;
        };
        // Nothing has arrived since the last report: what it told did not help, or did not get through.
        let silent = context.reason == AckReason::Timer && self.pending == 0;
        let wanted = match self.params.losses {
            LossesTold::AtOnce if silent && self.params.rich => u64::MAX,
            _ => self.wanted_gaps(),
        };
        self.gaps.resolve_ahead(context.received_to, context.ahead);
        let max_blocks = if self.params.rich { MAX_BLOCKS } else { 1 };
        let mut writer = ListsWriter::new(out);
        for block in self.blocks.choose(context.ahead, max_blocks) {
            if !writer.block(block.start - context.received_to..block.end - context.received_to) {
                break;
            }
        }
        // The repair of what is told now can be here no sooner.
        let round = self.rtt_min + self.time_period();
        let mut named = false;
        self.gaps.tell(wanted, context.now, round, |numbers| {
            let fits = writer.gap(largest - numbers.start, numbers.end - numbers.start);
            named |= fits;
            fits
        });
        self.named_gaps = named;
        writer.finish()
    }
}
