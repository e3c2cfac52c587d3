//! Figures of TCP/HACK.

use serde::Serialize;
use tack_wlan::mac::hack::HackStats;

/// Counters of TCP/HACK. Acknowledgements count where they were made, unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HackReport {
    /// Acknowledgements that were sent as they are.
    pub native_acks: u64,
    /// Acknowledgements that were compressed.
    pub compressed_acks: u64,
    /// Bytes of them, as the codec made them.
    pub compressed_bytes: u64,
    /// Bytes of them before.
    pub original_bytes: u64,
    /// Bytes of a compressed one, on average.
    pub mean_compressed: f64,
    /// Compressed ones that were sent as they are in the end.
    pub flushed: u64,
    /// Compressed ones that a response carried, and that were cleared before it was confirmed.
    pub cleared: u64,
    /// Compressed ones in responses, each repetition counted.
    pub carried: u64,
    /// Responses that carried something.
    pub lengthened: u64,
    /// Those that AIFS of best effort (DIFS) protects.
    pub fitting: u64,
    /// Their share.
    pub fitting_share: f64,
    /// Most compressed ones retained for one radio at once.
    pub retained_max: u64,
    /// Master sequence numbers given, warm-up included; on the air they have eight bits.
    pub msn: u64,
    /// Acknowledgements rebuilt at this radio.
    pub rebuilt: u64,
    /// Those discarded at this radio because they had come before.
    pub duplicates: u64,
    /// Those that had a wrong CRC at this radio.
    pub crc_failures: u64,
    /// Those that had no context at this radio, or were malformed.
    pub decode_failures: u64,
    /// Those rebuilt at this radio that differ from what was compressed.
    pub differing: u64,
}

impl HackReport {
    pub(super) fn new(stats: &HackStats) -> Self {
        Self {
            native_acks: stats.native,
            compressed_acks: stats.compressed,
            compressed_bytes: stats.compressed_bytes,
            original_bytes: stats.original_bytes,
            flushed: stats.flushed,
            cleared: stats.cleared,
            carried: stats.carried,
            lengthened: stats.responses,
            fitting: stats.fitting,
            retained_max: stats.retained_max,
            msn: stats.msn,
            rebuilt: stats.rebuilt,
            duplicates: stats.duplicates,
            crc_failures: stats.crc_failures,
            decode_failures: stats.decode_failures,
            differing: stats.differing,
            mean_compressed: 0.0,
            fitting_share: 0.0,
        }
        .with_shares()
    }

    fn with_shares(self) -> Self {
        let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        Self {
            mean_compressed: share(self.compressed_bytes, self.compressed_acks),
            fitting_share: share(self.fitting, self.lengthened),
            ..self
        }
    }

    /// Both together.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            native_acks: self.native_acks + other.native_acks,
            compressed_acks: self.compressed_acks + other.compressed_acks,
            compressed_bytes: self.compressed_bytes + other.compressed_bytes,
            original_bytes: self.original_bytes + other.original_bytes,
            flushed: self.flushed + other.flushed,
            cleared: self.cleared + other.cleared,
            carried: self.carried + other.carried,
            lengthened: self.lengthened + other.lengthened,
            fitting: self.fitting + other.fitting,
            retained_max: self.retained_max.max(other.retained_max),
            msn: self.msn + other.msn,
            rebuilt: self.rebuilt + other.rebuilt,
            duplicates: self.duplicates + other.duplicates,
            crc_failures: self.crc_failures + other.crc_failures,
            decode_failures: self.decode_failures + other.decode_failures,
            differing: self.differing + other.differing,
            mean_compressed: 0.0,
            fitting_share: 0.0,
        }
        .with_shares()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each counter has its own number, so that none is reported as another one.
    #[test]
    fn each_counter_is_reported_as_itself_and_added() {
        let report = HackReport::new(&HackStats {
            native: 1,
            compressed: 2,
            compressed_bytes: 3,
            original_bytes: 4,
            flushed: 5,
            cleared: 6,
            carried: 7,
            responses: 8,
            fitting: 9,
            retained_max: 10,
            msn: 11,
            rebuilt: 12,
            duplicates: 13,
            crc_failures: 14,
            decode_failures: 15,
            differing: 16,
        });
        let numbers = |report: HackReport| {
            [
                report.native_acks,
                report.compressed_acks,
                report.compressed_bytes,
                report.original_bytes,
                report.flushed,
                report.cleared,
                report.carried,
                report.lengthened,
                report.fitting,
                report.retained_max,
                report.msn,
                report.rebuilt,
                report.duplicates,
                report.crc_failures,
                report.decode_failures,
                report.differing,
            ]
        };
        assert_eq!(numbers(report), std::array::from_fn(|at| at as u64 + 1));
        let other = HackReport::new(&HackStats {
            compressed: 1,
            responses: 28,
            ..HackStats::default()
        });
        let sum = numbers(report.plus(report).plus(other));
        let expected = |at: usize| match at {
            1 => 2 * 2 + 1,
            7 => 2 * 8 + 28,
            9 => 10,
            _ => 2 * (at as u64 + 1),
        };
        assert_eq!(sum, std::array::from_fn(expected));
        // Shares are those of the sums, not sums of shares.
        let sum = report.plus(report).plus(other);
        assert_eq!(
            (sum.mean_compressed, sum.fitting_share),
            (6.0 / 5.0, 18.0 / 44.0)
        );
    }
}
