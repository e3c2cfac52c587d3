//! The signs by which a sender tells that a segment was lost.

/// What told a sender that a segment was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LossSign {
    /// The receiver named the transmission in a report (TACK §4.1).
    Report,
    /// The receiver neither named it nor had it, long after it should have (TACK).
    Overdue,
    /// What left later was delivered, and its time was over (RACK, RFC 8985 §6.2).
    Rack,
    /// Duplicate acknowledgements (RFC 5681 §3.2).
    DuplicateAcks,
    /// A partial acknowledgement during recovery (RFC 6582 §3.2).
    PartialAck,
    /// A tail loss probe repaired it (RFC 8985 §7.4.2).
    Probe,
    /// The retransmission timer ran out (RFC 6298 §5).
    Timeout,
    /// The path reported that it is too long (RFC 1191 §6.5).
    PathMtu,
}

impl LossSign {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Report,
        Self::Overdue,
        Self::Rack,
        Self::DuplicateAcks,
        Self::PartialAck,
        Self::Probe,
        Self::Timeout,
        Self::PathMtu,
    ];

    /// Its name in traces and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Overdue => "overdue",
            Self::Rack => "rack",
            Self::DuplicateAcks => "duplicate_acks",
            Self::PartialAck => "partial_ack",
            Self::Probe => "probe",
            Self::Timeout => "timeout",
            Self::PathMtu => "path_mtu",
        }
    }
}

/// Segments that were taken for lost, by what told; those of false episodes included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LossCounts([u64; LossSign::ALL.len()]);

impl LossCounts {
    /// Those that `sign` told of.
    pub fn of(&self, sign: LossSign) -> u64 {
        self.0[sign as usize]
    }

    /// As [`Self::of`], to change.
    pub fn of_mut(&mut self, sign: LossSign) -> &mut u64 {
        &mut self.0[sign as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sign_has_a_place_and_a_name_of_its_own() {
        let mut counts = LossCounts::default();
        for sign in LossSign::ALL {
            *counts.of_mut(sign) += 1;
        }
        assert!(LossSign::ALL.iter().all(|sign| counts.of(*sign) == 1));
        let mut names = LossSign::ALL.map(LossSign::name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
