//! What routers and hosts say of a segment of ours (ICMP), or this side's own system, and what
//! follows from it.

use core::time::Duration;

use tack_base::{Instant, StreamOffset};
use tack_wire::SeqNum;

use super::state::State;
use super::{CloseReason, Connection};

/// How long there must have been no route before a connection ends: one that comes and goes, as
/// with a new lease of an address, costs less than a new connection.
const NO_ROUTE: Duration = Duration::from_secs(1);

/// Why a segment did not arrive, as ICMP or this side's system has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathError {
    /// The host answered that nobody has the port.
    PortUnreachable,
    /// This side's system has no route to the peer: the segment did not leave.
    NoRoute,
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
    /// §4.2.3.9), and timers decide. With [`Config::hard_errors`](crate::Config::hard_errors) a
    /// closed port ends an established connection, too, and so does no route for a second in which
    /// the peer is not heard.
    ///
    /// Deviation: without it, errors that RFC 9293 §3.9.2.2 calls hard do not end an established
    /// connection (RFC 5927 §5.2), and soft ones do end an attempt, as in the large stacks (RFC
    /// 5461 §4.1).
    pub fn handle_path_error(&mut self, now: Instant, seq: SeqNum, error: PathError) -> bool {
        if !self.is_outstanding(seq) {
            return false;
        }
        match error {
            PathError::TooBig { mtu } => self.handle_path_mtu(now, mtu),
            PathError::NoRoute => {
                let is_lasting = self.has_no_route_for(now) >= NO_ROUTE && self.config.hard_errors;
                if self.state == State::SynSent || is_lasting && self.state != State::TimeWait {
                    self.end(CloseReason::NoRoute);
                }
            }
            PathError::PortUnreachable | PathError::Unreachable | PathError::TimeExceeded => {
                let is_hard = error == PathError::PortUnreachable && self.config.hard_errors;
                if self.state == State::SynSent || is_hard && self.state != State::TimeWait {
                    self.end(CloseReason::Unreachable);
                }
            }
        }
        true
    }

    /// True when an error of the path ended it, of which the peer knows nothing.
    pub(crate) fn is_cut_off(&self) -> bool {
        let reason = self.close_reason();
        matches!(
            reason,
            Some(CloseReason::Unreachable | CloseReason::NoRoute)
        )
    }

    /// Since when there has been no route; whatever was heard of the peer came over one.
    fn has_no_route_for(&mut self, now: Instant) -> Duration {
        let heard = self.keep_alive.last_heard();
        let since = self.no_route_since.filter(|since| *since >= heard);
        now.saturating_since(*self.no_route_since.insert(since.unwrap_or(now)))
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
