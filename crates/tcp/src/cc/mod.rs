//! Congestion control: one interface, built for BBR first; NewReno then fits for free.
//!
//! The sender detects, the controller decides: a controller owns no RTT estimator, pacer or
//! scoreboard, never sees the sender, and gets one congestion event per episode with its
//! cause. Everything is counted in bytes (RFC 3465), unless [`Counting`] says otherwise.

mod algorithm;
mod bbr;
mod compound;
mod cubic;
mod custom;
mod delay;
mod hystart;
mod new_reno;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod test_events;
mod undo;
mod unreported;
mod vegas;

pub use algorithm::{Algorithm, ParseAlgorithmError};
pub use bbr::{Bbr, BbrOptions, BbrProfile, ProbeRttKind};
pub use compound::Compound;
pub use cubic::{Cubic, CubicProfile};
pub use custom::ControllerFactory;
pub use new_reno::NewReno;
pub use vegas::Vegas;

use core::fmt;
use core::time::Duration;

use tack_base::{Instant, Rate, StreamOffset};

/// No window grows beyond this, bytes: four times what TCP can express (RFC 7323 §2.2), small
/// enough that no arithmetic on windows overflows.
const MAX_WINDOW: u64 = 1 << 32;

/// No segment is larger, bytes (RFC 9293 §3.7.1: the option has 16 bits).
const MAX_MSS: u64 = 65_535;

/// A window when segments of `old` bytes become such of `new`: what held two holds two, as the
/// first window does (RFC 6928 §2). The peer acknowledges two at once, and fewer only when its
/// timer expires.
fn for_segments(window: u64, old: u64, new: u64) -> u64 {
    let least = if window < 2 * old { new } else { 2 * new };
    window.max(least)
}

/// What makes a window grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Counting {
    /// The bytes delivered (RFC 3465), however few acknowledgements report them.
    #[default]
    Bytes,
    /// Acknowledgements, each of which counts for one segment at most (RFC 5681 §3.1), as in stacks
    /// before byte counting: what thins acknowledgements out then slows the growth. Only
    /// [`NewReno`] can.
    Acknowledgements,
}

/// What a controller is born with.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Init {
    /// When the connection begins.
    pub now: Instant,
    /// Sender maximum segment size, payload bytes.
    pub mss: u64,
    /// First congestion window, bytes.
    pub initial_window: u64,
    /// The window after idle time, bytes: RFC 5681 §4.1 has the initial one for it. A lost SYN
    /// makes the connection begin with a smaller one (§3.1), and says nothing of a path that has
    /// been in use since: after one it is the usual initial window, as in Linux.
    pub restart_window: u64,
    /// RTT of the handshake, if one was measured.
    pub rtt: Option<Duration>,
    /// Seed for controllers that draw (BBR's probing phase).
    pub seed: u64,
    /// What makes the window grow.
    pub counting: Counting,
}

impl Init {
    /// A connection that begins at `now` with segments of `mss` bytes and a first window of
    /// `initial_window` bytes, also after idle time, without a measured RTT: what tests of a
    /// controller start from. Set the public fields that differ.
    pub const fn new(now: Instant, mss: u64, initial_window: u64) -> Self {
        Self {
            now,
            mss,
            initial_window,
            restart_window: initial_window,
            rtt: None,
            seed: 0,
            counting: Counting::Bytes,
        }
    }
}

/// Opaque state a controller may attach to a transmission; handed back when that transmission is
/// delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendToken(pub u64);

/// A segment left.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sent {
    /// When.
    pub now: Instant,
    /// Payload bytes.
    pub bytes: u64,
    /// Bytes in flight before it left.
    pub prior_in_flight: u64,
    /// It carries bytes that were sent before.
    pub retransmission: bool,
    /// The application had nothing more to send when the last rate sample began.
    pub app_limited: bool,
}

/// How fast data was delivered, measured over one flight (draft-ietf-ccwg-bbr §4.1, delivery rate
/// estimation).
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// The longer of the send and the ACK interval. Never zero.
    pub interval: Duration,
    /// `delivered / interval`.
    pub delivery_rate: Rate,
    /// The total of delivered bytes when the newest delivered transmission was sent.
    pub prior_delivered: u64,
    /// Part of the interval had nothing to send: the sample may be lower than the path.
    pub app_limited: bool,
}

/// An acknowledgement delivered data, or let losses be seen.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ack {
    /// When it is processed.
    pub now: Instant,
    /// Bytes by which the cumulative acknowledgement advanced.
    pub acked: u64,
    /// Bytes newly known to be delivered, cumulatively or selectively.
    pub delivered: u64,
    /// Bytes newly marked lost by this acknowledgement.
    pub lost: u64,
    /// Bytes in flight before it was processed.
    pub prior_in_flight: u64,
    /// Bytes in flight after it was processed.
    pub bytes_in_flight: u64,
    /// RTT sample of this acknowledgement (retransmission ambiguity excluded).
    pub rtt: Option<Duration>,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// Smallest RTT of the connection's filter window.
    pub min_rtt: Duration,
    /// Delivery-rate sample, if one could be taken.
    pub rate: Option<RateSample>,
    /// Total of bytes delivered on the connection.
    pub total_delivered: u64,
    /// Total of bytes marked lost on the connection.
    pub total_lost: u64,
    /// Cumulatively acknowledged stream position, bytes.
    pub snd_una: StreamOffset,
    /// Highest stream position sent, bytes.
    pub snd_nxt: StreamOffset,
    /// A loss episode is open (fast recovery or after a timeout).
    pub in_recovery: bool,
    /// The congestion window limited sending at some time within the flight that is being
    /// acknowledged (RFC 7661, RFC 9002 §7.8); in slow start, a window at least half in use
    /// counts too, as pacing spreads what it allows. Without it the window must not grow.
    pub cwnd_limited: bool,
    /// Slow start may widen the window by so many bytes at most. Where the window did not limit
    /// sending, a report of many segments must not widen it further than acknowledgements of
    /// single ones would: until no longer half of it is in use.
    pub slow_start_room: u64,
    /// Token of the newest transmission that it delivered.
    pub token: SendToken,
}

impl Ack {
    /// An acknowledgement at `now` of `acked` bytes in order that were all in flight, after a round
    /// trip of `rtt`, on a path that the window limits: what tests of a controller start from.
    /// Set the public fields that differ.
    pub const fn in_order(now: Instant, acked: u64, rtt: Duration) -> Self {
        Self {
            now,
            acked,
            delivered: acked,
            lost: 0,
            prior_in_flight: acked,
            bytes_in_flight: 0,
            rtt: Some(rtt),
            srtt: rtt,
            min_rtt: rtt,
            rate: None,
            total_delivered: acked,
            total_lost: 0,
            snd_una: StreamOffset(1 + acked),
            snd_nxt: StreamOffset(1 + acked),
            in_recovery: false,
            cwnd_limited: true,
            slow_start_room: u64::MAX,
            token: SendToken(0),
        }
    }
}

/// Why a congestion episode began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// Loss detected by acknowledgements: fast recovery begins.
    Loss,
    /// The peer echoed congestion experienced (RFC 3168).
    Ecn,
    /// The retransmission timer fired: everything in flight is presumed lost.
    Timeout,
}

/// A congestion episode begins. Told once per episode (and again when a timeout follows within it).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Congestion {
    /// When.
    pub now: Instant,
    /// Why.
    pub cause: Cause,
    /// FlightSize (RFC 5681 §2) before losses were taken off, bytes: all from SND.UNA to SND.NXT.
    /// In a long recovery that is many windows.
    pub prior_in_flight: u64,
    /// The congestion window limited sending at some time within the flight that shows the
    /// congestion.
    pub cwnd_limited: bool,
    /// Timeouts in a row without progress, this one included; zero for other causes.
    pub consecutive_timeouts: u32,
    /// Highest stream position sent: the episode ends when it is acknowledged.
    pub snd_nxt: StreamOffset,
}

impl Congestion {
    /// An episode that begins at `now` with `prior_in_flight` bytes in flight, on a path that the
    /// window limits: what tests of a controller start from. Set the public fields that differ.
    pub const fn new(now: Instant, cause: Cause, prior_in_flight: u64) -> Self {
        Self {
            now,
            cause,
            prior_in_flight,
            cwnd_limited: true,
            consecutive_timeouts: match cause {
                Cause::Timeout => 1,
                Cause::Loss | Cause::Ecn => 0,
            },
            snd_nxt: StreamOffset(1 + prior_in_flight),
        }
    }
}

/// Who shapes sending within a loss episode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryShaping {
    /// Proportional rate reduction (RFC 6937) down to `ssthresh`.
    Prr,
    /// The controller's own window.
    Own,
}

/// What a controller shows to traces and reports.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Name of the phase: `slow_start`, `startup`, `probe_bw`, …
    pub phase: &'static str,
    /// Bandwidth estimate, where there is one.
    pub bandwidth: Option<Rate>,
    /// The controller's own RTT floor, where there is one.
    pub min_rtt: Option<Duration>,
    /// Pacing gain in force, where there is one.
    pub pacing_gain: Option<f64>,
}

impl Metrics {
    /// What a controller shows that knows no more than its phase.
    pub const fn phase(phase: &'static str) -> Self {
        Self {
            phase,
            bandwidth: None,
            min_rtt: None,
            pacing_gain: None,
        }
    }
}

/// A congestion controller: how many bytes may be in flight, and how fast they leave.
///
/// Detection is not its business: the sender finds losses, measures round trips and rates, and
/// tells. All amounts are bytes of payload, all positions bytes of the stream from 1. Give a
/// connection a controller of your own by [`ControllerFactory`].
///
/// # Order of calls
/// One connection owns the controller and calls it from one thread at a time; `now` never goes
/// back. [`on_send`](Self::on_send) comes for each transmission, retransmissions included, before
/// the acknowledgement that delivers it. Where an acknowledgement begins an episode,
/// [`on_congestion`](Self::on_congestion) comes before the [`on_ack`](Self::on_ack) of the same
/// acknowledgement; where one ends it, [`on_recovered`](Self::on_recovered) does. An episode that
/// turns out false ends with [`on_spurious`](Self::on_spurious), and marks that do with
/// [`on_false_marks`](Self::on_false_marks). The getters are called often, at
/// any time, and should cost nothing.
///
/// # What a wrong controller breaks
/// A bold one fills queues, loses packets and starves its neighbours on the path; a timid one
/// leaves the path idle. It cannot break more than that. The sender keeps to the peer's window,
/// repairs losses and ends its timeouts whatever the controller says; a window outside of one
/// segment to 4 GiB, a rate below a segment a second and a gain outside of 0.1 to 10 are replaced
/// by the nearest bound. A controller that panics takes its endpoint with it.
pub trait CongestionController: fmt::Debug + Send {
    /// A segment left; the token comes back with [`Ack::token`].
    fn on_send(&mut self, sent: &Sent) -> SendToken {
        let _ = sent;
        SendToken::default()
    }

    /// An acknowledgement delivered data or revealed losses. Called in and outside recovery.
    fn on_ack(&mut self, ack: &Ack);

    /// An episode begins. After [`Cause::Loss`] and [`Cause::Ecn`] `cwnd` is already the target to
    /// come down to.
    fn on_congestion(&mut self, congestion: &Congestion);

    /// The loss episode ended: everything sent before it began is acknowledged.
    fn on_recovered(&mut self, now: Instant) {
        let _ = now;
    }

    /// The episode turned out to be false (Eifel, DSACK, F-RTO): take its reductions back.
    fn on_spurious(&mut self, now: Instant, cause: Cause) {
        let _ = (now, cause);
    }

    /// The marks reported since the window was `window` bytes meant nothing: the network had not
    /// set them. [`Cause::Ecn`] had reduced the window, and nothing else has.
    fn on_false_marks(&mut self, now: Instant, window: u64) {
        let _ = (now, window);
    }

    /// Sending resumes after an idle time of at least one RTO with nothing in flight.
    fn on_idle_restart(&mut self, now: Instant, idle: Duration) {
        let _ = (now, idle);
    }

    /// The segment size changed (path MTU).
    fn on_mss(&mut self, mss: u64);

    /// The peer acknowledges only this often: the longest regular interval between
    /// acknowledgements. Zero (never told): unknown, as of a legacy peer, whose ACKs follow the
    /// data. Told at the start and whenever it changes.
    fn on_feedback_interval(&mut self, interval: Duration) {
        let _ = interval;
    }

    /// However long the interval, the peer acknowledges only every so many full-sized segments.
    /// Where these take longer than the interval, segments are counted: acknowledgements follow
    /// the data, as a legacy peer's do.
    fn on_feedback_threshold(&mut self, segments: u16) {
        let _ = segments;
    }

    /// As some of the peer's acknowledgements get lost, the sender hears of what arrived only this
    /// often. Not shorter than the feedback interval, and told after it.
    fn on_feedback_gap(&mut self, gap: Duration) {
        let _ = gap;
    }

    /// Congestion window, bytes; at least one segment.
    fn cwnd(&self) -> u64;

    /// Slow-start threshold, bytes; `u64::MAX` before the first reduction or where there is none.
    fn ssthresh(&self) -> u64 {
        u64::MAX
    }

    /// It doubles what it sends each round trip, looking for the capacity of the path: the peer is
    /// asked for dense acknowledgements meanwhile.
    fn in_slow_start(&self) -> bool {
        self.cwnd() < self.ssthresh()
    }

    /// Pacing rate chosen by the controller; `None` lets the pacer derive it from window and RTT.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Gain over `cwnd / srtt` with which the pacer runs when [`CongestionController::pacing_rate`]
    /// is `None` (Linux: 2.0 in slow start, 1.2 after it).
    fn pacing_gain(&self) -> f64 {
        if self.in_slow_start() { 2.0 } else { 1.2 }
    }

    /// Who shapes sending within an episode.
    fn recovery_shaping(&self) -> RecoveryShaping {
        RecoveryShaping::Prr
    }

    /// It answers congestion marks: without that, packets must not say that they may be marked (RFC
    /// 3168 §6.1.2).
    fn responds_to_ecn(&self) -> bool {
        true
    }

    /// State for traces.
    fn metrics(&self) -> Metrics;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_two_segments_holds_two_longer_ones() {
        assert_eq!(for_segments(14_600, 1_460, 8_952), 17_904);
        assert_eq!(for_segments(100_000, 1_460, 8_952), 100_000);
        assert_eq!(for_segments(1_460, 1_460, 8_952), 8_952, "after a timeout");
        assert_eq!(for_segments(17_904, 8_952, 1_460), 17_904);
        let init = Init {
            now: Instant::ZERO,
            mss: 1_460,
            initial_window: 14_600,
            restart_window: 14_600,
            rtt: None,
            seed: 7,
            counting: Counting::Bytes,
        };
        for algorithm in Algorithm::ALL {
            let mut controller = algorithm.build(&init);
            controller.on_mss(8_952);
            assert!(controller.cwnd() >= 17_904, "{algorithm}");
        }
    }
}
