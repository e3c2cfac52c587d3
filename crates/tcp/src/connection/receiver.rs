//! The receiving side of a connection: the peer's stream, from its SYN to its FIN.

use tack_base::StreamOffset;
use tack_wire::SeqNum;

use super::peer_fin::PeerFin;
use crate::recv::reassembly::Reassembly;
use crate::recv::window::ReceiveWindow;

/// What was received of the peer's stream, and how much more it may send.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The peer's initial sequence number: that of position zero.
    pub(super) irs: SeqNum,
    pub(super) reassembly: Reassembly,
    pub(super) window: ReceiveWindow,
    pub(super) fin: PeerFin,
    /// The application still reads.
    pub(super) reading: bool,
}

impl Receiver {
    /// Before the peer's SYN.
    pub(super) fn new(window: ReceiveWindow) -> Self {
        Self {
            irs: SeqNum(0),
            reassembly: Reassembly::new(),
            window,
            fin: PeerFin::default(),
            reading: true,
        }
    }

    /// RCV.NXT, the FIN included once it was reached.
    #[inline]
    pub(super) fn next(&self) -> StreamOffset {
        self.reassembly.next() + u64::from(self.fin.is_received())
    }

    /// Position after the newest byte received, or after a FIN above a hole.
    pub(super) fn highest(&self) -> StreamOffset {
        let ahead = self.reassembly.ahead().last();
        ahead.map_or(self.reassembly.next(), |range| range.end)
    }

    /// Bytes that the peer may still send beyond the newest received.
    pub(super) fn window_left(&self) -> u64 {
        self.window.edge().saturating_since(self.highest())
    }

    /// The position that `seq` names, near RCV.NXT. `None` before the SYN.
    #[inline]
    pub(super) fn position(&self, seq: SeqNum) -> Option<StreamOffset> {
        seq.position(self.irs, self.next())
    }

    /// The sequence number of RCV.NXT.
    #[inline]
    pub(super) fn next_seq(&self) -> SeqNum {
        SeqNum::at(self.irs, self.next())
    }

    /// The window field for a segment that leaves now, and the promise that it makes. `syn` fields
    /// are not scaled.
    #[inline]
    pub(super) fn announce(&mut self, syn: bool) -> u16 {
        let (read, next) = (self.reassembly.read_position(), self.next());
        self.window.announce(read, next, syn)
    }

    /// A segment says that the stream ends at `position`.
    pub(super) fn note_fin(&mut self, position: StreamOffset) {
        let (next, highest) = (self.reassembly.next(), self.highest());
        self.fin.note(position, next, highest);
        if self.fin.limit() == position {
            self.reassembly.insert_fin(position);
        }
    }

    /// Everything that will ever come was read.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_received() && self.reassembly.readable() == 0
    }
}
