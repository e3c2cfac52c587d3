//! Forward RTO recovery (RFC 5682): after a timeout, new data instead of further retransmissions
//! lets the next acknowledgement tell a lost flight from a late one.

/// Where the test stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Step {
    /// No test runs.
    #[default]
    Off,
    /// The timer fired, the first segment was retransmitted; its acknowledgement is awaited (step
    /// 2).
    FirstAck,
    /// Up to this many bytes of new data may leave instead of retransmissions (step 2b, 3).
    NewData(u64),
}

/// The F-RTO test of one timeout.
#[derive(Debug, Default)]
pub(crate) struct Frto(Step);

/// What an acknowledgement means for the test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The test goes on, or none runs.
    Open,
    /// The timeout was real, or cannot be shown to be false: recover in the usual way.
    Genuine,
}

impl Frto {
    /// The retransmission timer fired; `testable` unless other retransmissions confuse the matter.
    pub(crate) fn on_timeout(&mut self, testable: bool) {
        self.0 = if testable { Step::FirstAck } else { Step::Off };
    }

    /// An acknowledgement arrived that did not prove the timeout false. `advanced` tells whether it
    /// moved SND.UNA, `new_data` whether unsent data could leave now.
    pub(crate) fn on_ack(&mut self, advanced: bool, new_data: bool, mss: u64) -> Verdict {
        match self.0 {
            Step::Off => Verdict::Open,
            Step::FirstAck if advanced && new_data => {
                self.0 = Step::NewData(2 * mss);
                Verdict::Open
            }
            Step::FirstAck | Step::NewData(_) => {
                self.0 = Step::Off;
                Verdict::Genuine
            }
        }
    }

    /// No acknowledgement has arrived since the timer fired.
    pub(crate) fn awaits_first_ack(&self) -> bool {
        self.0 == Step::FirstAck
    }

    /// Bytes of new data to send before any further retransmission; `None` when no test holds them
    /// back.
    #[inline]
    pub(crate) fn new_data_allowance(&self) -> Option<u64> {
        match self.0 {
            Step::NewData(left) => Some(left),
            _ => None,
        }
    }

    /// New data of `len` bytes left.
    #[inline]
    pub(crate) fn on_send(&mut self, len: u64) {
        if let Step::NewData(left) = &mut self.0 {
            *left = left.saturating_sub(len);
        }
    }

    /// The episode is over.
    pub(crate) fn end(&mut self) {
        self.0 = Step::Off;
    }
}
