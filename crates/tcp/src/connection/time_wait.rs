//! What remains of a connection in TIME-WAIT: enough to answer the peer, and to tell a new SYN from
//! an old one.

use core::time::Duration;

use tack_base::Instant;
use tack_wire::options::TcpOptions;
use tack_wire::{Flags, Header, Segment, SeqNum, Timestamps};

use super::Connection;
use super::challenge::ChallengeLimit;
use super::state::State;
use super::timers::Timer;
use crate::rtt::timestamps::TimestampClock;

/// A connection in TIME-WAIT.
#[derive(Debug)]
pub(crate) struct TimeWait {
    snd_nxt: SeqNum,
    rcv_nxt: SeqNum,
    /// Sequence numbers above RCV.NXT that passed for the connection's own.
    rcv_wnd: u32,
    timestamps: TimestampClock,
    /// 2 MSL.
    length: Duration,
    pub(crate) end: Instant,
    replies: ChallengeLimit,
}

/// What a segment does to a connection in TIME-WAIT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Nothing.
    Ignore,
    /// It is answered.
    Answer(Header),
    /// It opens a new incarnation, whose initial sequence number must come after this one.
    Reopen(SeqNum),
}

impl Connection {
    /// What is to be kept of a connection in TIME-WAIT.
    pub(crate) fn time_wait(&self) -> Option<TimeWait> {
        if self.state != State::TimeWait {
            return None;
        }
        let rcv_nxt = self.rcv_nxt();
        let window = self.receiver.window.edge().saturating_since(rcv_nxt);
        Some(TimeWait {
            snd_nxt: SeqNum::at(self.identity.iss, self.snd.nxt),
            rcv_nxt: self.receiver.next_seq(),
            rcv_wnd: u32::try_from(window).unwrap_or(1 << 30).min(1 << 30),
            timestamps: self.timestamps.clone(),
            length: self.config.time_wait,
            end: self.timers.get(Timer::Lifetime)?,
            replies: ChallengeLimit::default(),
        })
    }

    /// Round trip as far as known: how soon the peer will have asked again for our last
    /// acknowledgement, if it did not come.
    pub(crate) fn round_trip(&self) -> Duration {
        self.rtt.smoothed().unwrap_or_default()
    }

    /// May this SYN open a new incarnation of the connection, which is in TIME-WAIT
    /// (RFC 9293 §3.10.7.4, RFC 6191)? If so, the initial sequence number of the new incarnation
    /// must come after the one returned.
    pub fn reopen(&self, syn: &Segment<'_>) -> Option<SeqNum> {
        self.time_wait()?.reopen(syn)
    }
}

impl TimeWait {
    /// A segment arrived for it (RFC 9293 §3.10.7.4, TIME-WAIT). `listening` says that a SYN may
    /// open a new incarnation.
    ///
    /// Deviation: resets are ignored, where RFC 9293 has them end TIME-WAIT. An old duplicate draws
    /// an acknowledgement, which the peer, having forgotten the connection, answers with a reset
    /// that fits: TIME-WAIT would be over as soon as it is needed (RFC 1337 §3, F1).
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        listening: bool,
    ) -> Verdict {
        let header = &segment.header;
        if header.flags.rst() {
            return Verdict::Ignore;
        }
        if listening && let Some(floor) = self.reopen(segment) {
            return Verdict::Reopen(floor);
        }
        let old = header.options.timestamps.is_some_and(|timestamps| {
            self.timestamps.is_agreed() && self.timestamps.is_old(now, timestamps)
        });
        let start = header.seq.distance(self.rcv_nxt);
        // The peer did not get the acknowledgement of its FIN: 2 MSL start over. Its FIN lies below
        // RCV.NXT.
        let again = header.flags.fin() && header.seq + segment.sequence_len() == self.rcv_nxt;
        if again && !old {
            self.end = now + self.length;
        }
        let in_window = !old && start >= 0 && start <= self.rcv_wnd as i32;
        // What is acceptable and neither SYN nor FIN was nothing but an acknowledgement, or data
        // beyond the stream's end.
        let silent =
            in_window && !header.flags.syn() && !header.flags.fin() && segment.payload.is_empty();
        if silent || !(header.flags.ack() || header.flags.syn()) || !self.replies.allow(now) {
            return Verdict::Ignore;
        }
        Verdict::Answer(Header {
            src_port: header.dst_port,
            dst_port: header.src_port,
            seq: self.snd_nxt,
            ack: self.rcv_nxt,
            flags: Flags::ACK,
            window: 0,
            urgent: 0,
            options: TcpOptions {
                timestamps: self.timestamps.option(now),
                ..TcpOptions::default()
            },
        })
    }

    /// The initial sequence number that a new incarnation must come after, if this SYN may open
    /// one.
    fn reopen(&self, syn: &Segment<'_>) -> Option<SeqNum> {
        let header = &syn.header;
        if !header.flags.syn() || header.flags.rst() || header.flags.ack() || header.flags.fin() {
            return None;
        }
        let later = |Timestamps { value, .. }| {
            self.timestamps.is_agreed() && self.timestamps.is_newer(Timestamps { value, echo: 0 })
        };
        let earlier = |timestamps: Timestamps| {
            self.timestamps.is_agreed()
                && timestamps.value != self.timestamps.recent()
                && !self.timestamps.is_newer(timestamps)
        };
        let newer_sequence = header.seq.after(self.rcv_nxt);
        let allowed = match header.options.timestamps {
            // RFC 6191 §2: a later timestamp is enough, an earlier one speaks of an old duplicate,
            // whatever its number.
            Some(timestamps) if later(timestamps) => true,
            Some(timestamps) if earlier(timestamps) => false,
            _ => newer_sequence,
        };
        allowed.then(|| self.snd_nxt + (1 << 16))
    }
}
