//! Endings: how a connection is over, and resets.

use tack_base::Instant;
use tack_wire::SeqNum;

use super::close_reason::{CloseReason, PendingReset};
use super::due::DueSet;
use super::state::{State, Transition};
use super::timers::Timer;
use super::{Connection, Event};
use crate::ack::policy::AckReason;

impl Connection {
    /// The connection is over; nothing more leaves but what is already due.
    pub(super) fn end(&mut self, reason: CloseReason) {
        self.state = self.state.after(Transition::End);
        self.timers.stop_all();
        self.queue.clear();
        self.log = crate::send::sent::SentLog::new();
        self.receiver.reassembly.end();
        self.acking.end();
        self.due = DueSet::default();
        if self.ending.reason.is_none() {
            self.ending.reason = Some(reason);
            self.events.raise(Event::Readable);
            self.events.raise(Event::Writable);
            self.events.raise(Event::Closed(reason));
        }
    }

    /// The connection ends, and a reset tells the peer.
    pub(super) fn end_with_reset(&mut self, reason: CloseReason) {
        if self.state != State::SynSent {
            self.ending.reset = Some(PendingReset {
                seq: SeqNum::at(self.identity.iss, self.snd.nxt),
                acknowledges: true,
            });
        }
        self.end(reason);
    }

    /// Answers a segment of a half-open connection with a reset; this connection goes on.
    pub(super) fn reply_with_reset(&mut self, seq: SeqNum) {
        self.ending.reset = Some(PendingReset {
            seq,
            acknowledges: false,
        });
    }

    /// The peer's FIN was reached, with everything before it.
    pub(super) fn on_peer_fin(&mut self, now: Instant) {
        self.receiver.reassembly.end();
        let before = self.state;
        self.state = before.after(Transition::FinArrived);
        self.events.raise(Event::Readable);
        if self.state == State::TimeWait {
            self.enter_time_wait(now);
        }
    }

    /// Our FIN was acknowledged.
    pub(super) fn on_fin_acknowledged(&mut self, now: Instant) {
        self.events.raise(Event::Finished);
        self.free_sender();
        self.state = self.state.after(Transition::FinAcknowledged);
        match self.state {
            State::TimeWait => self.enter_time_wait(now),
            State::Closed => {
                self.end(CloseReason::Graceful);
            }
            State::FinWait2 if !self.receiver.reading => {
                self.timers.set(Timer::Lifetime, now + self.config.fin_wait)
            }
            _ => {}
        }
    }

    fn enter_time_wait(&mut self, now: Instant) {
        self.timers.stop_all();
        self.timers
            .set(Timer::Lifetime, now + self.config.time_wait);
        if self.ending.reason.is_none() {
            self.ending.reason = Some(CloseReason::Graceful);
            self.events.raise(Event::Closed(CloseReason::Graceful));
        }
    }

    /// Another FIN in TIME-WAIT: our last acknowledgement was lost; 2 MSL start over
    /// (RFC 9293 §3.10.7.4).
    pub(super) fn restart_time_wait(&mut self, now: Instant) {
        self.timers
            .set(Timer::Lifetime, now + self.config.time_wait);
        self.acking.request(AckReason::Event);
    }
}
