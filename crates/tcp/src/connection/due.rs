//! What has to leave with the next output, whatever the windows say.

/// One thing that has to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// A SYN or SYN-ACK.
    Syn,
    /// A retransmission that the congestion window does not hold back.
    Retransmission,
    /// A tail loss probe.
    LossProbe,
    /// A probe of the peer's closed window.
    WindowProbe,
    /// A keep-alive probe.
    KeepAlive,
}

/// All that has to leave: a flag each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct DueSet(u8);

impl DueSet {
    #[inline]
    const fn bit(due: Due) -> u8 {
        1 << due as u8
    }

    /// `due` has to leave.
    #[inline]
    pub(super) fn add(&mut self, due: Due) {
        self.0 |= Self::bit(due);
    }

    /// `due` has to leave if `is_due`, and otherwise has not.
    #[inline]
    pub(super) fn set(&mut self, due: Due, is_due: bool) {
        self.0 = self.0 & !Self::bit(due) | if is_due { Self::bit(due) } else { 0 };
    }

    /// `due` has to leave.
    #[inline]
    pub(super) fn has(self, due: Due) -> bool {
        self.0 & Self::bit(due) != 0
    }

    /// Nothing has to leave.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True when `due` had to leave; now it has not.
    #[inline]
    pub(super) fn take(&mut self, due: Due) -> bool {
        let had = self.has(due);
        if had {
            self.0 &= !Self::bit(due);
        }
        had
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Due; 5] = [
        Due::Syn,
        Due::Retransmission,
        Due::LossProbe,
        Due::WindowProbe,
        Due::KeepAlive,
    ];

    #[test]
    fn each_flag_is_its_own() {
        for one in ALL {
            let mut due = DueSet::default();
            due.add(one);
            for other in ALL {
                assert_eq!(due.has(other), one == other);
            }
            assert!(due.take(one) && !due.take(one));
            due.set(one, true);
            due.set(one, false);
            assert_eq!(due, DueSet::default());
        }
    }
}
