//! The peer's receive window, and what silly-window avoidance and Nagle make of it.
//!
//! RFC 9293 §3.8.6.2.1 (sender's silly-window avoidance), §3.7.4 (Nagle), §3.10.7.4 (SND.WL1,
//! SND.WL2).

use tack_base::StreamOffset;
use tack_wire::SeqNum;

/// The send window as the peer announced it. Positions are sequence positions.
#[derive(Debug)]
pub(crate) struct SendWindow {
    /// Right edge: the first position not allowed.
    edge: StreamOffset,
    /// SND.WND of the newest update, bytes.
    size: u64,
    /// SND.WL1 and SND.WL2.
    updated_by: Option<(SeqNum, StreamOffset)>,
    /// Largest window ever announced (Max(SND.WND)).
    largest: u64,
    /// Shift of the peer's window field.
    scale: u8,
}

impl SendWindow {
    /// Before anything was announced.
    pub(crate) fn new() -> Self {
        Self {
            edge: StreamOffset::FIRST_BYTE,
            size: 0,
            updated_by: None,
            largest: 0,
            scale: 0,
        }
    }

    /// The shift that the handshake settled.
    pub(crate) fn set_scale(&mut self, scale: u8) {
        self.scale = scale;
    }

    /// Takes the window of an acceptable segment, unless an older segment carries it. `syn` windows
    /// are never scaled (RFC 7323 §2.2). Returns true when more may be sent than before, or the
    /// window changed.
    ///
    /// Deviation: what acknowledges more is newer, wherever it starts (RFC 9293 §3.10.7.4 asks for
    /// its sequence number first). A retransmission carries a window of today too, and one damaged
    /// sequence number does not keep all later windows out.
    pub(crate) fn update(&mut self, seq: SeqNum, ack: StreamOffset, field: u16, syn: bool) -> bool {
        if let Some((wl1, wl2)) = self.updated_by
            && !(seq.after(wl1) || ack > wl2 || (seq == wl1 && ack == wl2))
        {
            return false;
        }
        let size = u64::from(field) << if syn { 0 } else { self.scale };
        let changed = size != self.size || ack + size > self.edge;
        self.updated_by = Some((seq, ack));
        self.size = size;
        self.edge = ack + size;
        self.largest = self.largest.max(size);
        changed
    }

    /// The window field of a segment of unknown age that acknowledges up to `ack`: `field`, or what
    /// leaves the edge where it is.
    pub(crate) fn opening(&self, ack: StreamOffset, field: u16) -> u16 {
        let known = self.edge.saturating_since(ack) >> self.scale;
        field.max(u16::try_from(known).unwrap_or(u16::MAX))
    }

    /// Sequence number of the segment that last updated the window.
    pub(crate) fn newest_update(&self) -> Option<SeqNum> {
        self.updated_by.map(|(seq, _)| seq)
    }

    /// First position that may not be sent.
    #[inline]
    pub(crate) fn edge(&self) -> StreamOffset {
        self.edge
    }

    /// SND.WND, bytes.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Largest window ever announced, bytes.
    pub(crate) fn largest(&self) -> u64 {
        self.largest
    }
}

/// What there is to decide about a new segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Bytes queued and not sent (U and D of RFC 9293).
    pub(crate) queued: u64,
    /// Bytes that the peer's window still allows.
    pub(crate) usable: u64,
    /// Sender maximum segment size.
    pub(crate) mss: u64,
    /// Nothing is unacknowledged.
    pub(crate) idle: bool,
    /// Nagle's algorithm is on.
    pub(crate) nagle: bool,
    /// The stream ends with what is queued: the tail need not wait for company.
    pub(crate) finished: bool,
    /// Largest window the peer ever announced.
    pub(crate) largest_window: u64,
}

impl Candidate {
    /// Length of the segment to send now; zero to wait. (RFC 9293 §3.8.6.2.1, conditions 1 to 3;
    /// the override timer is the persist timer.)
    #[inline]
    pub(crate) fn segment_len(&self) -> u64 {
        let len = self.queued.min(self.usable);
        if len >= self.mss {
            return self.mss;
        }
        if len == 0 {
            return 0;
        }
        if len == self.queued {
            // Everything queued fits. Nagle holds a small tail while something is unacknowledged.
            return if self.nagle && !self.idle && !self.finished {
                0
            } else {
                len
            };
        }
        // The window cuts the segment short: worth it only for half of the largest window.
        if len >= self.largest_window / 2 {
            len
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate() -> Candidate {
        Candidate {
            queued: 5000,
            usable: 5000,
            mss: 1000,
            idle: false,
            nagle: true,
            finished: false,
            largest_window: 8000,
        }
    }

    #[test]
    fn full_segments_leave_at_once() {
        assert_eq!(candidate().segment_len(), 1000);
    }

    #[test]
    fn nagle_holds_small_tails_while_data_is_out() {
        let small = Candidate {
            queued: 10,
            ..candidate()
        };
        assert_eq!(small.segment_len(), 0);
        assert_eq!(
            Candidate {
                idle: true,
                ..small
            }
            .segment_len(),
            10
        );
        assert_eq!(
            Candidate {
                nagle: false,
                ..small
            }
            .segment_len(),
            10
        );
        assert_eq!(
            Candidate {
                finished: true,
                ..small
            }
            .segment_len(),
            10
        );
    }

    #[test]
    fn silly_windows_are_not_used() {
        assert_eq!(
            Candidate {
                usable: 999,
                ..candidate()
            }
            .segment_len(),
            0
        );
        assert_eq!(
            Candidate {
                usable: 500,
                largest_window: 1000,
                ..candidate()
            }
            .segment_len(),
            500
        );
        assert_eq!(
            Candidate {
                usable: 0,
                ..candidate()
            }
            .segment_len(),
            0
        );
    }

    #[test]
    fn old_segments_do_not_move_the_window() {
        let mut window = SendWindow::new();
        assert!(window.update(SeqNum(100), StreamOffset(1), 5000, false));
        assert!(!window.update(SeqNum(99), StreamOffset(1), 9000, false));
        assert_eq!(window.edge(), StreamOffset(5001));
        assert!(window.update(SeqNum(100), StreamOffset(2001), 5000, false));
        assert_eq!(window.edge(), StreamOffset(7001));
    }

    #[test]
    fn what_acknowledges_more_is_newer_wherever_it_starts() {
        let mut window = SendWindow::new();
        assert!(window.update(SeqNum(100), StreamOffset(1), 5000, false));
        assert!(
            window.update(SeqNum(40_000), StreamOffset(1), 0, false),
            "damaged"
        );
        assert!(!window.update(SeqNum(100), StreamOffset(1), 5000, false));
        assert!(window.update(SeqNum(100), StreamOffset(2), 5000, false));
        assert!(window.update(SeqNum(100), StreamOffset(2), 6000, false));
        assert_eq!(window.edge(), StreamOffset(6002));
    }
}
