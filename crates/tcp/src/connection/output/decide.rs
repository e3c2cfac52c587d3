//! Which data segment may leave now, and what holds it back otherwise.

use core::ops::Range;

use tack_base::{Instant, StreamOffset};

use super::plan::{Kind, Plan};
use crate::config::WindowPacing;
use crate::connection::Connection;
use crate::connection::due::Due;
use crate::connection::limits::Limit;
use crate::connection::state::State;
use crate::connection::timers::Timer;
use crate::send::window::Candidate;

impl Connection {
    /// The next data segment that may leave now, if there is one. Notes what holds it back
    /// otherwise.
    pub(super) fn decide(&mut self, now: Instant) -> Option<Plan> {
        if !self.state.may_send_data() {
            return None;
        }
        if self.due.take(Due::Retransmission)
            && let Some(range) = self.log.first_lost().or_else(|| self.log.front())
        {
            return Some(Plan {
                kind: Kind::Retransmission,
                range: self.fit(range),
                forced: true,
                probes: None,
            });
        }
        if self.due.take(Due::LossProbe)
            && let Some(plan) = self.decide_probe(now)
        {
            return Some(plan);
        }
        if let Some(plan) = self.decide_size_probe(now) {
            return Some(plan);
        }
        let held = self.recovery.new_data_allowance();
        let lost = if held.is_some() {
            None
        } else {
            self.log
                .first_lost()
                .filter(|range| !self.audit.keeps(range.start))
        };
        let (kind, range) = match lost {
            Some(range) => (Kind::Retransmission, self.fit(range)),
            None => {
                let range = if held == Some(0) {
                    None
                } else {
                    self.next_new_range(now)
                };
                let Some(range) = range else {
                    self.pacer.pause();
                    return None;
                };
                (Kind::New, range)
            }
        };
        let len = range.end - range.start;
        let in_flight = self.bytes_in_flight();
        if in_flight > 0 && in_flight + len > self.flight_limit() {
            self.telemetry.limits.on_cwnd_full(self.snd.nxt);
            self.telemetry.limits.set(now, Limit::Cwnd);
            self.pacer.pause();
            return None;
        }
        if let Some(until) = self.pacer.wait(now) {
            if self.is_paced_below_window(in_flight + len) {
                self.telemetry.limits.on_cwnd_full(self.snd.nxt);
            }
            self.timers.set(Timer::Pacing, until);
            self.telemetry.limits.set(now, Limit::Pacing);
            return None;
        }
        Some(Plan {
            kind,
            range,
            forced: false,
            probes: None,
        })
    }

    /// What [`Self::decide`] notes where nothing is queued and nothing outstanding.
    #[inline]
    pub(super) fn wait_for_data(&mut self, now: Instant) {
        if !self.state.may_send_data() {
            return;
        }
        if self.recovery.new_data_allowance() != Some(0) {
            self.on_nothing_to_send(now);
        }
        self.pacer.pause();
    }

    /// A segment longer than others, where the path may carry it (RFC 4821 §7.3 to 7.5): only while
    /// nothing is lost, and with enough behind it that its loss is found without a timeout. A
    /// message that ends sooner is a probe itself, when nothing else is in flight and as long a
    /// segment has come through before.
    ///
    /// Deviation: RFC 4821 §7.4 wants a window with room for the probe. A window that opens one
    /// segment at a time never has it. So the probe needs room for a segment only, and exceeds the
    /// window by the rest of its length.
    fn decide_size_probe(&mut self, now: Instant) -> Option<Plan> {
        let size = self.mtu.probe_due(now)?;
        // A probe shows that a packet of its length comes through. Without a stamp the packet is
        // shorter.
        let options = self.data_options_len() - self.numbering.room() + self.numbering.len();
        let longest = u64::from(size) - options;
        let (in_flight, usual) = (self.bytes_in_flight(), self.max_payload());
        let end = self.queue.end().min(self.window.edge());
        let ready = end.saturating_since(self.snd.nxt);
        let window = self.flight_limit();
        let behind = longest + 4 * usual;
        let len = if ready >= behind && window >= behind && window >= in_flight + usual {
            longest
        } else if in_flight == 0 && ready < behind && end == self.queue.end() {
            ready
                .min(window)
                .min(longest)
                .min(self.mtu.longest_delivered())
        } else {
            0
        };
        let is_calm = self.state == State::Established
            && self.hears_sack()
            && self.recovery.is_idle()
            && self.log.lost_bytes() == 0;
        if len <= usual || !is_calm || self.pacer.wait(now).is_some() {
            return None;
        }
        Some(Plan {
            kind: Kind::New,
            range: self.snd.nxt..self.snd.nxt + len,
            forced: false,
            probes: u16::try_from(len + options).ok(),
        })
    }

    /// A window that has room for what a sparse peer has not reported leaves more slowly than
    /// within a smoothed round trip. Where the reports come sooner than the room is for, that much
    /// is all that is ever in flight: it is the window that limits.
    fn is_paced_below_window(&self, in_flight: u64) -> bool {
        if self.config.window_pacing == WindowPacing::Off || self.cc.pacing_rate().is_some() {
            return false;
        }
        let gain = self.cc.pacing_gain();
        gain < 1.0 && in_flight as f64 >= gain * self.cc.cwnd() as f64
    }

    /// RFC 8985 §7.3: new data if there is any and the window allows it, else the last segment
    /// again.
    fn decide_probe(&mut self, now: Instant) -> Option<Plan> {
        let fresh = self.snd.nxt
            ..self
                .queue
                .end_with_fin()
                .min(self.window.edge())
                .min(self.snd.nxt + self.max_payload());
        if fresh.start < fresh.end {
            self.recovery
                .on_probe(self.log.next_number(), fresh.clone(), None);
            return Some(Plan {
                kind: Kind::New,
                range: fresh,
                forced: true,
                probes: None,
            });
        }
        // One that left before the path's MTU shrank does not fit; then it is the timeout's, which
        // cuts it.
        let longest = self.max_repeated_payload() + 1;
        let range = self
            .log
            .last_in_flight()
            .filter(|range| range.end - range.start <= longest)?;
        let number = self.log.next_number();
        self.recovery
            .on_probe(number, range.start..self.snd.nxt, Some(now));
        Some(Plan {
            kind: Kind::Retransmission,
            range,
            forced: true,
            probes: None,
        })
    }

    /// The range of the next new segment; `None` when there is nothing to send, or the peer's
    /// window or Nagle holds it back.
    fn next_new_range(&mut self, now: Instant) -> Option<Range<StreamOffset>> {
        let end = self.queue.end();
        let fin = self.queue.end_with_fin();
        if self.snd.nxt >= fin {
            self.on_nothing_to_send(now);
            return None;
        }
        let queued = end.saturating_since(self.snd.nxt);
        let usable = self.window.edge().saturating_since(self.snd.nxt);
        if queued == 0 {
            // The FIN alone. It takes a sequence number, but no buffer: a closed window does not
            // hold it.
            return Some(self.snd.nxt..fin);
        }
        let candidate = Candidate {
            queued,
            usable,
            mss: self.max_payload(),
            idle: self.log.is_empty(),
            nagle: self.config.nagle,
            finished: self.queue.is_finished(),
            largest_window: self.window.largest(),
        };
        let len = candidate.segment_len();
        if len > 0 {
            let stop = self.snd.nxt + len;
            // The FIN travels with the last byte.
            return Some(self.snd.nxt..if stop == end { fin } else { stop });
        }
        if usable > 0 && self.due.has(Due::WindowProbe) {
            // The override timer of RFC 9293 §3.8.6.2.1: what the window still takes leaves after
            // all, in one piece. One octet at a time would be taken and acknowledged each time, for
            // hundreds of round trips.
            return Some(self.snd.nxt..self.snd.nxt + usable.min(queued));
        }
        if usable < queued {
            self.telemetry.limits.set(now, Limit::Rwnd);
            if self.log.is_empty() && !self.timers.is_armed(Timer::Persist) {
                let mss = u64::from(self.mtu.mss());
                self.persist.begin(now, self.snd.una, mss);
                self.arm_persist(now);
            }
        } else {
            self.on_nothing_to_send(now);
        }
        None
    }

    fn on_nothing_to_send(&mut self, now: Instant) {
        self.telemetry.limits.set(now, Limit::App);
        let in_flight = self.bytes_in_flight();
        // A send buffer that is full of what is in flight is not an idle application: the
        // connection never has more than that, and a controller that waits for a sample the
        // application did not limit (BBR in startup) would wait forever.
        let buffer_is_full = self.queue.len() >= self.config.send_buffer / 4 * 3;
        // Draft-ietf-ccwg-bbr §4.1.2.4: idle although window and pacing would allow more.
        if in_flight < self.flight_limit()
            && !buffer_is_full
            && self.log.lost_bytes() == 0
            && self.state == State::Established
        {
            self.rate.on_app_limited(in_flight);
        }
    }

    /// How much may be in flight.
    #[inline]
    pub(super) fn flight_limit(&self) -> u64 {
        self.recovery.flight_limit(self.cc.cwnd())
    }

    /// So much of a segment that is to leave again as the path takes in one piece now.
    fn fit(&self, range: Range<StreamOffset>) -> Range<StreamOffset> {
        let payload = range.end.min(self.queue.end()) - range.start.min(self.queue.end());
        if payload <= self.max_repeated_payload() {
            return range;
        }
        range.start..range.start + self.max_payload()
    }
}
