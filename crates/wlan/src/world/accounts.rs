//! Who used the air, and how long queues were.

use alloc::vec::Vec;

use tack_base::{Duration, Instant};

use crate::frame::{Class, Frame, Ppdu};

/// Time on the medium by use; the parts add up to the time that passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Airtime {
    /// Data frames with payload, preambles included.
    pub data: Duration,
    /// Data frames with acknowledgements of the transport layer.
    pub transport_ack: Duration,
    /// ACK, Block ACK, Block ACK request, ADDBA frames, RTS, CTS and beacons.
    pub control: Duration,
    /// Transmissions that spoil each other at a receiver.
    pub collision: Duration,
    /// Silence while some radio has something to send: interframe spaces, backoff, timeouts.
    pub access: Duration,
    /// Silence with nothing to send.
    pub idle: Duration,
    /// What of `data` and `control` was sent by radios of the neighbouring network. Not a part of
    /// the total.
    pub neighbour: Duration,
}

impl Airtime {
    /// All parts: the time that passed.
    pub fn total(&self) -> Duration {
        self.data + self.transport_ack + self.control + self.collision + self.access + self.idle
    }
}

/// Which network a radio belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Network {
    Own,
    Neighbour,
}

/// What is on the air now, and whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Moment {
    pub(super) state: AirState,
    /// Whose, where no more than one radio sends.
    pub(super) network: Network,
}

/// What is on the air now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AirState {
    /// Data frames, of which this many in 65,536 parts are acknowledgements.
    Data(u32),
    Control,
    Collision,
    /// Silence, with something to send.
    Access,
    Idle,
}

impl AirState {
    /// What the time of `ppdu` counts as when nothing spoils it.
    pub(super) fn of<M>(ppdu: &Ppdu<M>) -> Self {
        let Frame::Data(data) = &ppdu.frame else {
            return Self::Control;
        };
        let (mut acks, mut all) = (0_u64, 0_u64);
        for mpdu in &data.mpdus {
            let len = u64::from(mpdu.msdu.len);
            all += len;
            if mpdu.msdu.class == Class::TransportAck {
                acks += len;
            }
        }
        Self::Data((acks * 65_536 / all.max(1)) as u32)
    }
}

/// The running sums.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts {
    sums: Sums,
    counted_to: Instant,
}

/// The parts of [`Airtime`], nanoseconds: counted at each event, where a [`Duration`] takes longer
/// to add.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    data: u64,
    transport_ack: u64,
    control: u64,
    collision: u64,
    access: u64,
    idle: u64,
    neighbour: u64,
}

impl Accounts {
    /// Counts the time up to `now`, in which the air was as `moment` says.
    #[inline]
    pub(super) fn advance(&mut self, now: Instant, moment: &Moment) {
        let time = now.as_nanos() - self.counted_to.as_nanos();
        self.counted_to = now;
        if let (Network::Neighbour, AirState::Data(_) | AirState::Control) =
            (moment.network, moment.state)
        {
            self.sums.neighbour += time;
        }
        match moment.state {
            AirState::Data(acks) => {
                let share = (u128::from(time) * u128::from(acks) / 65_536) as u64;
                self.sums.transport_ack += share;
                self.sums.data += time - share;
            }
            AirState::Control => self.sums.control += time,
            AirState::Collision => self.sums.collision += time,
            AirState::Access => self.sums.access += time,
            AirState::Idle => self.sums.idle += time,
        }
    }

    pub(super) fn airtime(&self) -> Airtime {
        let sums = &self.sums;
        Airtime {
            data: Duration::from_nanos(sums.data),
            transport_ack: Duration::from_nanos(sums.transport_ack),
            control: Duration::from_nanos(sums.control),
            collision: Duration::from_nanos(sums.collision),
            access: Duration::from_nanos(sums.access),
            idle: Duration::from_nanos(sums.idle),
            neighbour: Duration::from_nanos(sums.neighbour),
        }
    }

    pub(super) fn reset(&mut self) {
        self.sums = Sums::default();
    }
}

/// Lengths of a queue, weighted by time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueStats {
    /// Half of the time the queue was not longer than this.
    pub p50: u64,
    /// 99 % of the time it was not longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// Time spent at each length, nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueMeter {
    time: Vec<u64>,
    len: usize,
    since: Instant,
}

impl QueueMeter {
    /// The queue has this length now. Says whether it became shorter.
    #[inline]
    pub(super) fn update(&mut self, now: Instant, len: usize) -> bool {
        if len == self.len {
            return false;
        }
        self.add(now);
        let is_shorter = len < self.len;
        self.len = len;
        is_shorter
    }

    fn add(&mut self, now: Instant) {
        if self.time.len() <= self.len {
            self.time.resize(self.len + 1, 0);
        }
        self.time[self.len] += now.as_nanos() - self.since.as_nanos();
        self.since = now;
    }

    pub(super) fn reset(&mut self, now: Instant, len: usize) {
        *self = Self {
            time: Vec::new(),
            len,
            since: now,
        };
    }

    pub(super) fn stats(&self, now: Instant) -> QueueStats {
        let mut meter = self.clone();
        meter.add(now);
        let total: u64 = meter.time.iter().sum();
        let quantile = |parts: u64| {
            let mut below = 0;
            let wanted = u128::from(total) * u128::from(parts);
            let at = meter.time.iter().position(|time| {
                below += time;
                u128::from(below) * 100 >= wanted
            });
            at.unwrap_or(0) as u64
        };
        QueueStats {
            p50: quantile(50),
            p99: quantile(99),
            max: meter.time.len().saturating_sub(1) as u64,
        }
    }
}
