//! What routers and hosts say of a segment of ours (ICMP), and what follows from it.

use tack_base::{Instant, StreamOffset};
use tack_wire::SeqNum;

use super::state::State;
use super::{CloseReason, Connection};

/// Why a segment did not arrive, as ICMP has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathError {
    /// No route, no such host, nothing that takes TCP, or a filter in between.
    Unreachable,
    /// The segment's packet was longer than a link takes, which takes `mtu` bytes.
    TooBig {
        /// Bytes of an IP packet, header included.
        mtu: u16,
    },
    /// The hop limit was too small.
    TimeExceeded,
}

impl Connection {
    /// A segment of ours that began with sequence number `seq` did not arrive. Returns whether the
    /// error is believed: it must name a segment that left and is not acknowledged yet (RFC 5927
    /// §4.1), which somebody who does not see the segments can only guess.
    ///
    /// A path that is too narrow gets smaller segments at once. Other errors end an attempt to
    /// connect, and nothing else: once there was an answer they may be passing (RFC 1122
    /// §4.2.3.9), and timers decide.
    ///
    /// Deviation: errors that RFC 1122 §4.2.3.9 calls hard do not end an established connection
    /// (RFC 5927 §5.2), and soft ones do end an attempt, as in the large stacks (RFC 5461 §4.1).
    pub fn handle_path_error(&mut self, now: Instant, seq: SeqNum, error: PathError) -> bool {
        if !self.is_outstanding(seq) {
            return false;
        }
        match error {
            PathError::TooBig { mtu } => self.handle_path_mtu(now, mtu),
            PathError::Unreachable | PathError::TimeExceeded => {
                if self.state == State::SynSent {
                    self.end(CloseReason::Unreachable);
                }
            }
        }
        true
    }

    /// True when a segment that begins there may be in the network.
    fn is_outstanding(&self, seq: SeqNum) -> bool {
        if self.state == State::Closed || self.handshake.transmissions == 0 {
            return false;
        }
        let una = SeqNum::at(self.identity.iss, self.snd.una);
        let outstanding = if self.state == State::SynSent {
            self.snd.nxt - StreamOffset::SYN
        } else {
            self.snd.outstanding()
        };
        u64::from(seq.0.wrapping_sub(una.0)) < outstanding
    }
}
