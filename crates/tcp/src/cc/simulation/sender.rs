//! A flow: the sender around a controller.

use core::time::Duration;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use tack_base::{Instant, Rate, StreamOffset};

use super::super::{
    Ack, Cause, Congestion, CongestionController, RateSample, RecoveryShaping, SendToken, Sent,
};
use super::receiver::Receiver;
use super::{AckPacket, MSS};

const MIN_RTO: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    pub(super) segment: u64,
    sent_at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    token: SendToken,
    retransmission: bool,
}

/// A point of the trace.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Point {
    pub(in super::super) at: Instant,
    pub(in super::super) cwnd: u64,
    pub(in super::super) in_flight: u64,
    pub(in super::super) phase: &'static str,
    pub(in super::super) pacing_gain: f64,
    pub(in super::super) bandwidth: Rate,
    pub(in super::super) rtt: Duration,
}

#[derive(Debug, Default)]
struct Prr {
    delivered: u64,
    out: u64,
    recover_fs: u64,
    allowance: u64,
}

#[derive(Debug)]
pub(in super::super) struct Flow {
    pub(in super::super) controller: Box<dyn CongestionController>,
    pub(super) log: BTreeMap<u64, Transmission>,
    next_tx: u64,
    pub(super) next_segment: u64,
    una: u64,
    to_retransmit: BTreeSet<u64>,
    delivered_segments: BTreeSet<u64>,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    pub(in super::super) lost: u64,
    recovery_end: Option<u64>,
    cause: Cause,
    pub(in super::super) timeouts: u32,
    consecutive_timeouts: u32,
    prr: Prr,
    srtt: Duration,
    rttvar: Duration,
    min_rtt: Duration,
    /// The receiver acknowledges by the clock, and measures.
    sparse: bool,
    /// The window held back sending when this many segments had been sent.
    pub(super) cwnd_limited_until: u64,
    max_in_flight: u64,
    pub(super) next_departure: Instant,
    pub(super) pacing_armed: bool,
    pub(super) rto_at: Instant,
    pub(super) rto_armed: bool,
    pub(super) receiver: Receiver,
    pub(in super::super) trace: Vec<Point>,
}

impl Flow {
    pub(super) fn new(controller: Box<dyn CongestionController>, interval: Duration) -> Self {
        Self {
            controller,
            log: BTreeMap::new(),
            next_tx: 0,
            next_segment: 0,
            una: 0,
            to_retransmit: BTreeSet::new(),
            delivered_segments: BTreeSet::new(),
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            lost: 0,
            recovery_end: None,
            cause: Cause::Loss,
            timeouts: 0,
            consecutive_timeouts: 0,
            prr: Prr::default(),
            srtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            min_rtt: Duration::MAX,
            sparse: !interval.is_zero(),
            cwnd_limited_until: 0,
            max_in_flight: 0,
            next_departure: Instant::ZERO,
            pacing_armed: false,
            rto_at: Instant::FAR_FUTURE,
            rto_armed: false,
            receiver: Receiver::new(interval),
            trace: Vec::new(),
        }
    }

    fn in_flight(&self) -> u64 {
        self.log.len() as u64 * MSS
    }

    fn shaped_by_prr(&self) -> bool {
        self.recovery_end.is_some()
            && self.cause == Cause::Loss
            && self.controller.recovery_shaping() == RecoveryShaping::Prr
    }

    pub(super) fn window_allows(&self) -> bool {
        if self.shaped_by_prr() {
            self.prr.allowance >= MSS
        } else {
            self.in_flight() + MSS <= self.controller.cwnd()
        }
    }

    pub(super) fn pacing_rate(&self) -> Rate {
        self.controller.pacing_rate().unwrap_or_else(|| {
            if self.srtt.is_zero() {
                return Rate::MAX;
            }
            let gain = self.controller.pacing_gain();
            Rate::from_bytes_over(self.controller.cwnd(), self.srtt).scale(gain)
        })
    }

    pub(super) fn rto(&self) -> Duration {
        let rto = (self.srtt + 4 * self.rttvar).max(MIN_RTO);
        if self.srtt.is_zero() {
            Duration::from_secs(1)
        } else {
            rto * (1 << self.consecutive_timeouts.min(6))
        }
    }

    fn on_rtt(&mut self, rtt: Duration) {
        self.min_rtt = self.min_rtt.min(rtt);
        if self.srtt.is_zero() {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            self.rttvar = (self.rttvar * 3 + self.srtt.abs_diff(rtt)) / 4;
            self.srtt = (self.srtt * 7 + rtt) / 8;
        }
    }

    /// Takes the next segment to send, which must be allowed.
    pub(super) fn transmit(&mut self, now: Instant) -> u64 {
        let prior_in_flight = self.in_flight();
        let (segment, retransmission) = match self.to_retransmit.pop_first() {
            Some(segment) => (segment, true),
            None => {
                self.next_segment += 1;
                (self.next_segment - 1, false)
            }
        };
        if prior_in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let token = self.controller.on_send(&Sent {
            now,
            bytes: MSS,
            prior_in_flight,
            retransmission,
            app_limited: false,
        });
        let transmission = Transmission {
            segment,
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            token,
            retransmission,
        };
        let tx = self.next_tx;
        self.log.insert(tx, transmission);
        self.next_tx += 1;
        self.max_in_flight = self.max_in_flight.max(prior_in_flight + MSS);
        self.prr.out += MSS;
        self.prr.allowance = self.prr.allowance.saturating_sub(MSS);
        tx
    }

    pub(super) fn receive_ack(&mut self, now: Instant, packet: &AckPacket) {
        let prior_in_flight = self.in_flight();
        let prior_una = self.una;
        let mut newest: Option<(u64, Transmission)> = None;
        let mut delivered = 0;
        let mut rtt: Option<Duration> = None;
        for &(tx, waited) in &packet.arrived {
            let Some(transmission) = self.log.remove(&tx) else {
                // It had been given up as lost: whoever repaired it counts.
                continue;
            };
            if transmission.segment >= self.una
                && self.delivered_segments.insert(transmission.segment)
            {
                delivered += MSS;
            }
            self.to_retransmit.remove(&transmission.segment);
            if !transmission.retransmission {
                let whole = now.saturating_since(transmission.sent_at);
                rtt = match rtt {
                    // Of an interval, the smallest.
                    Some(smallest) if self.sparse => Some(smallest.min(whole - waited)),
                    None if self.sparse => Some(whole - waited),
                    _ => Some(whole),
                };
            }
            if newest.is_none_or(|(newest, _)| tx > newest) {
                newest = Some((tx, transmission));
            }
        }
        self.una = self.una.max(packet.cumulative);
        self.delivered_segments = self.delivered_segments.split_off(&self.una);
        if self.una > prior_una {
            self.consecutive_timeouts = 0;
            // Transmissions of what is acknowledged by now are not waited for.
            let una = self.una;
            self.log
                .retain(|_, transmission| transmission.segment >= una);
            self.to_retransmit = self.to_retransmit.split_off(&una);
        }
        if let Some(rtt) = rtt {
            self.on_rtt(rtt);
        }
        let rate = self.rate_sample(
            now,
            delivered,
            newest.map(|(_, transmission)| transmission),
            packet.rate,
        );
        let lost = newest.map_or(0, |(tx, _)| self.detect_loss(tx));

        if self.recovery_end.is_some_and(|end| self.una >= end) {
            self.recovery_end = None;
            self.controller.on_recovered(now);
        }
        if lost > 0 && self.recovery_end.is_none() {
            self.enter_recovery(now, Cause::Loss, prior_in_flight);
            self.prr = Prr {
                recover_fs: prior_in_flight.max(1),
                ..Prr::default()
            };
        }
        let slow_start = self.controller.in_slow_start();
        let growing = slow_start && self.controller.cwnd() < 2 * self.max_in_flight;
        self.controller.on_ack(&Ack {
            now,
            acked: (self.una - prior_una) * MSS,
            delivered,
            lost,
            prior_in_flight,
            bytes_in_flight: self.in_flight(),
            rtt,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            rate,
            total_delivered: self.delivered,
            total_lost: self.lost,
            snd_una: StreamOffset(self.una * MSS),
            snd_nxt: StreamOffset(self.next_segment * MSS),
            in_recovery: self.recovery_end.is_some(),
            cwnd_limited: prior_una <= self.cwnd_limited_until || growing,
            token: newest.map_or(SendToken::default(), |(_, transmission)| transmission.token),
        });
        self.max_in_flight = self.in_flight();
        if self.shaped_by_prr() {
            self.update_prr(delivered);
        }
        self.rto_at = if self.in_flight() > 0 {
            now + self.rto()
        } else {
            Instant::FAR_FUTURE
        };
        let metrics = self.controller.metrics();
        self.trace.push(Point {
            at: now,
            cwnd: self.controller.cwnd(),
            in_flight: self.in_flight(),
            phase: metrics.phase,
            pacing_gain: metrics.pacing_gain.unwrap_or(1.0),
            bandwidth: metrics.bandwidth.unwrap_or(Rate::ZERO),
            rtt: rtt.unwrap_or(self.srtt),
        });
    }

    fn rate_sample(
        &mut self,
        now: Instant,
        delivered: u64,
        newest: Option<Transmission>,
        measured: Option<Rate>,
    ) -> Option<RateSample> {
        let newest = newest.filter(|_| delivered > 0)?;
        self.delivered += delivered;
        self.delivered_at = now;
        self.first_sent_at = newest.sent_at;
        let send = newest.sent_at.saturating_since(newest.first_sent_at);
        let ack = now.saturating_since(newest.delivered_at);
        let interval = send.max(ack);
        if interval < self.min_rtt {
            return None;
        }
        let delivered = self.delivered - newest.delivered;
        let delivery_rate = if self.sparse {
            measured?.min(Rate::from_bytes_over(delivered, send))
        } else {
            Rate::from_bytes_over(delivered, interval)
        };
        Some(RateSample {
            delivered,
            interval,
            delivery_rate,
            prior_delivered: newest.delivered,
            app_limited: false,
        })
    }

    /// Marks lost what was sent three transmissions before `newest`, which arrived.
    fn detect_loss(&mut self, newest: u64) -> u64 {
        let kept = self.log.split_off(&newest.saturating_sub(2));
        let lost = core::mem::replace(&mut self.log, kept);
        self.give_up(lost)
    }

    fn give_up(&mut self, lost: BTreeMap<u64, Transmission>) -> u64 {
        let bytes = lost.len() as u64 * MSS;
        self.to_retransmit
            .extend(lost.values().map(|transmission| transmission.segment));
        self.lost += bytes;
        bytes
    }

    fn enter_recovery(&mut self, now: Instant, cause: Cause, prior_in_flight: u64) {
        self.cause = cause;
        self.recovery_end = Some(self.next_segment);
        self.controller.on_congestion(&Congestion {
            now,
            cause,
            prior_in_flight,
            cwnd_limited: self.una <= self.cwnd_limited_until,
            consecutive_timeouts: self.consecutive_timeouts,
            snd_nxt: StreamOffset(self.next_segment * MSS),
        });
    }

    /// RFC 6937 with slow-start reduction bound.
    fn update_prr(&mut self, delivered: u64) {
        let ssthresh = self.controller.cwnd();
        let pipe = self.in_flight();
        self.prr.delivered += delivered;
        let count = if pipe > ssthresh {
            (self.prr.delivered * ssthresh)
                .div_ceil(self.prr.recover_fs)
                .saturating_sub(self.prr.out)
        } else {
            let limit = self
                .prr
                .delivered
                .saturating_sub(self.prr.out)
                .max(delivered)
                + MSS;
            (ssthresh - pipe).min(limit)
        };
        self.prr.allowance = count;
        if self.prr.out == 0 {
            self.prr.allowance = self.prr.allowance.max(MSS);
        }
    }

    pub(super) fn on_retransmission_timeout(&mut self, now: Instant) {
        let prior_in_flight = self.in_flight();
        let lost = core::mem::take(&mut self.log);
        self.give_up(lost);
        self.timeouts += 1;
        self.consecutive_timeouts += 1;
        self.enter_recovery(now, Cause::Timeout, prior_in_flight);
        self.next_departure = now;
        self.rto_at = now + self.rto();
    }
}
