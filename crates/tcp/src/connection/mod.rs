//! One TCP connection: owns the rooms, exposes the verbs. The algorithms live in the rooms.

mod acking;
mod acknowledge;
mod application;
mod challenge;
mod close;
mod close_reason;
mod delivery;
mod due;
mod events;
mod expiry;
mod feedback;
mod handshake;
pub(crate) mod identity;
mod input;
mod keep_alive;
mod limits;
mod loss;
mod memory;
pub(crate) mod offer;
mod opening;
mod output;
mod path_error;
mod peer_fin;
mod peer_segments;
mod persist;
pub(crate) mod pressure;
mod pure_acks;
mod receiver;
mod repetitions;
mod send_sequence;
mod state;
mod telemetry;
pub(crate) mod time_wait;
mod timers;

use core::time::Duration;

use alloc::boxed::Box;

use tack_base::{Instant, StreamOffset};
use tack_wire::{Ecn, Segment, SeqNum};

use crate::ack::feedback::SackReader;
use crate::ack::policy::LossDetectedBy;
use crate::cc::{self, CongestionController};
use crate::config::{Config, WindowPacing};
use crate::ecn::EcnState;
use crate::mtu::{PathMtu, Told};
use crate::pacing::Pacer;
use crate::rate::estimator::RateEstimator;
use crate::recovery::episodes::LossRecovery;
use crate::recv::window::ReceiveWindow;
use crate::rtt::estimator::RttEstimator;
use crate::rtt::timestamps::TimestampClock;
use crate::send::audit::Audit;
use crate::send::numbering::Numbering;
use crate::send::queue::SendQueue;
use crate::send::sent::SentLog;
use crate::send::window::SendWindow;
use crate::stats::Stats;
use crate::trace::{TraceDetail, TraceEvent};

pub use application::{ReadError, WriteError};
pub use close_reason::CloseReason;
pub use events::Event;
pub use path_error::PathError;
pub use state::State;

use acking::Acking;
pub(crate) use challenge::ChallengeLimit;
use close_reason::Ending;
use due::{Due, DueSet};
use events::Events;
use feedback::PeerFeedback;
use handshake::Handshake;
use identity::Identity;
use keep_alive::KeepAlive;
use peer_segments::PeerSegments;
use persist::Persist;
use pressure::Memory;
use receiver::Receiver;
use send_sequence::SendSequence;
use telemetry::Telemetry;
use timers::{ConnectionTimers, Timer};

/// One TCP connection: a state machine without clock or socket.
///
/// Feed it with [`Connection::handle_segment`] and [`Connection::handle_timeout`], use it with
/// [`Connection::write`], [`Connection::read`] and [`Connection::finish`]; after each of them drain
/// [`Connection::poll_transmit`], then [`Connection::poll_event`], then arm a timer for
/// [`Connection::poll_timeout`].
///
/// Inside, streams are counted in 64-bit positions: SYN is position 0, the first byte position 1.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    identity: Identity,
    state: State,
    handshake: Handshake,

    // What we send.
    queue: SendQueue,
    log: SentLog,
    snd: SendSequence,
    window: SendWindow,
    mtu: PathMtu,
    cc: Box<dyn CongestionController>,
    pacer: Pacer,
    rate: RateEstimator,
    rtt: RttEstimator,
    timestamps: TimestampClock,
    ecn: EcnState,
    recovery: LossRecovery,
    persist: Persist,
    numbering: Numbering,
    audit: Audit,
    /// What the peer's acknowledgements say and promise.
    feedback: PeerFeedback,

    // What we receive.
    receiver: Receiver,
    peer_segments: PeerSegments,
    acking: Acking,

    // The connection as a whole.
    timers: ConnectionTimers,
    due: DueSet,
    events: Events,
    keep_alive: KeepAlive,
    /// The first segment after the peer was heard that this side's system had no route for.
    no_route_since: Option<Instant>,
    ending: Ending,
    memory: Memory,
    telemetry: Telemetry,
}

impl Connection {
    /// Opens a connection actively: a SYN will leave at the next [`Connection::poll_transmit`].
    ///
    /// `iss` is the initial sequence number (RFC 6528), `seed` feeds the connection's own random
    /// choices.
    pub fn connect(
        config: &Config,
        local_port: u16,
        remote_port: u16,
        iss: SeqNum,
        seed: u64,
        now: Instant,
    ) -> Self {
        let identity = Identity {
            local_port,
            remote_port,
            iss,
            seed,
        };
        let mut connection = Self::new(config, identity, now);
        connection.state = State::SynSent;
        connection.due.add(Due::Syn);
        connection
    }

    /// Answers a SYN that arrived for a listener, in a packet with codepoint `ecn`: a SYN-ACK will
    /// leave.
    pub fn accept(
        config: &Config,
        syn: &Segment<'_>,
        ecn: Ecn,
        iss: SeqNum,
        seed: u64,
        now: Instant,
    ) -> Self {
        let identity = Identity {
            local_port: syn.header.dst_port,
            remote_port: syn.header.src_port,
            iss,
            seed,
        };
        let mut connection = Self::new(config, identity, now);
        connection.state = State::SynReceived;
        connection.handshake.passive = true;
        connection.audit = Audit::new(config.audit.interval(true), seed);
        connection.due.add(Due::Syn);
        connection.learn_from_syn(now, syn, ecn);
        connection
            .window
            .update(syn.header.seq, StreamOffset::SYN, syn.header.window, true);
        connection
    }

    fn new(config: &Config, identity: Identity, now: Instant) -> Self {
        let seed = identity.seed;
        let mtu = PathMtu::new(config.mss, config.carrier.overhead, config.mtu_raise);
        let mss = u64::from(mtu.mss());
        let init = cc::Init {
            now,
            mss,
            initial_window: mss * u64::from(config.initial_window_segments.max(1)),
            restart_window: mss * u64::from(config.initial_window_segments.max(1)),
            rtt: None,
            seed,
            counting: config.counting,
        };
        Self {
            state: State::Closed,
            handshake: Handshake::default(),
            identity,
            queue: SendQueue::new(),
            log: SentLog::new(),
            snd: SendSequence::default(),
            window: SendWindow::new(),
            mtu,
            cc: config.build_controller(&init),
            pacer: Pacer::new(config.carrier),
            rate: RateEstimator::new(now),
            rtt: RttEstimator::new(config.initial_rto, config.min_rto, config.max_rto),
            timestamps: TimestampClock::new((seed >> 32) as u32),
            ecn: EcnState::default(),
            recovery: LossRecovery::new(),
            persist: Persist::new(now),
            numbering: Numbering::default(),
            audit: Audit::new(config.audit.interval(false), seed),
            feedback: PeerFeedback::new(Box::new(SackReader::new(false))),
            receiver: Receiver::new(
                ReceiveWindow::new(config.initial_receive_buffer, config.receive_buffer, now)
                    .shrinking_to(config.least_receive_buffer),
            ),
            peer_segments: PeerSegments::new(u64::from(config.mss).min(536)),
            acking: Acking::new(config.build_policy()),
            timers: ConnectionTimers::default(),
            due: DueSet::default(),
            events: Events::default(),
            keep_alive: KeepAlive::new(now),
            no_route_since: None,
            ending: Ending::default(),
            memory: Memory::new(size_of::<Self>()),
            telemetry: Telemetry::new(now),
            config: config.clone(),
        }
    }

    /// The path reported (ICMP "packet too big") that IP packets longer than `mtu` bytes do not
    /// fit.
    pub fn handle_path_mtu(&mut self, now: Instant, mtu: u16) {
        match self.mtu.on_path_mtu(now, mtu) {
            Told::Nothing => return,
            Told::Lower => self.on_segment_size_changed(),
            Told::ProbeRefused => {}
        }
        // What was too long is lost for certain, and not by congestion (RFC 1191 §6.5).
        let lost = self.log.mark_lost_longer_than(self.max_payload());
        self.recovery.on_marked_lost(lost);
        self.trace_losses(now);
        self.timers.stop(Timer::Probe);
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.take()
    }

    /// True when [`Connection::poll_event`] has something to say.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// When to call next: [`Connection::handle_timeout`], then [`Connection::poll_transmit`]
    /// (pacing counts too).
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// State of RFC 9293 §3.3.2.
    pub fn state(&self) -> State {
        self.state
    }

    /// How the connection ended, once it has.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.ending.reason
    }

    /// TCP port of this side.
    pub fn local_port(&self) -> u16 {
        self.identity.local_port
    }

    /// TCP port of the peer.
    pub fn remote_port(&self) -> u16 {
        self.identity.remote_port
    }

    /// What this side's acknowledgement policy promises, as (longest delay, most full-sized
    /// segments).
    pub fn ack_contract(&self) -> (Duration, u32) {
        let contract = self.acking.contract();
        (contract.max_delay, contract.max_segments)
    }

    /// What the congestion controller shows to traces.
    pub fn congestion_metrics(&self) -> cc::Metrics {
        self.cc.metrics()
    }

    /// Pacing rate in force; `None` when nothing limits.
    pub fn pacing_rate(&self) -> Option<tack_base::Rate> {
        self.pacer.rate()
    }

    /// RCV.NXT as a position, the FIN included once it was reached.
    #[inline]
    fn rcv_nxt(&self) -> StreamOffset {
        self.receiver.next()
    }

    /// Bytes in flight, less what the peer is known to have without having named it.
    #[inline]
    fn bytes_in_flight(&self) -> u64 {
        let mss = self.mtu.mss().into();
        self.recovery
            .bytes_in_flight(&self.log, self.hears_sack(), mss)
    }

    /// The peer's selective acknowledgements can be relied upon.
    #[inline]
    fn hears_sack(&self) -> bool {
        self.handshake.sack && self.feedback.is_intelligible()
    }

    /// Options on every data segment, bytes: those that may be there included.
    #[inline]
    fn data_options_len(&self) -> u64 {
        let timestamps = if self.timestamps.is_agreed() { 12 } else { 0 };
        timestamps + self.numbering.room()
    }

    /// Largest payload of a data segment now.
    #[inline]
    fn max_payload(&self) -> u64 {
        u64::from(self.mtu.mss()) - self.data_options_len()
    }

    /// Largest payload of a segment that leaves again. What left before timestamps took the place
    /// of reports goes without a stamp, which nobody reads then: in one piece, and not in one of
    /// its full length and one of 12 bytes.
    #[inline]
    fn max_repeated_payload(&self) -> u64 {
        let unread = self.feedback.contract().loss_detected_by == LossDetectedBy::Sender;
        let room = if unread { self.numbering.room() } else { 0 };
        self.max_payload() + room
    }

    fn on_segment_size_changed(&mut self) {
        let mss = self.max_payload();
        self.cc.on_mss(mss);
    }

    /// Takes pacing rate and window from the controller to the pacer.
    fn update_pacing(&mut self) {
        let by_window = self.config.window_pacing == WindowPacing::On;
        let rate = self.cc.pacing_rate().or_else(|| {
            let time = self.rtt.window_time().filter(|_| by_window)?;
            Some(
                tack_base::Rate::from_bytes_over(self.cc.cwnd(), time).scale(self.cc.pacing_gain()),
            )
        });
        self.pacer.set_rate(rate);
    }

    /// Counters and estimates.
    pub fn stats(&self, now: Instant) -> Stats {
        let mut stats = self.telemetry.counters.clone();
        stats.losses = self.log.losses();
        stats.min_rtt = self.rtt.min();
        stats.cc_min_rtt = self.cc.metrics().min_rtt;
        stats.srtt = self.rtt.smoothed();
        stats.rttvar = self.rtt.variation();
        stats.rto = self.rtt.rto();
        stats.cwnd = self.cc.cwnd();
        stats.ssthresh = self.cc.ssthresh();
        stats.bytes_in_flight = self.bytes_in_flight();
        stats.snd_wnd = self.window.size();
        stats.receive_buffer = self.receiver.window.buffer();
        stats.mss = self.max_payload() as u16;
        stats.bytes_acked = self
            .snd
            .una
            .min(self.queue.end())
            .saturating_since(StreamOffset::FIRST_BYTE);
        stats.bytes_read = self.receiver.reassembly.read_position() - StreamOffset::FIRST_BYTE;
        self.telemetry.limits.report(now, &mut stats);
        stats
    }

    /// Keeps what happens from now on, and why, for [`Connection::poll_trace`].
    pub fn enable_trace(&mut self, detail: TraceDetail) {
        self.telemetry.trace.switch_on(detail);
        self.log.watch_losses();
    }

    /// The oldest traced event not polled yet. Poll often: a few thousand are kept.
    pub fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.telemetry.trace.poll()
    }

    /// Traced events that were forgotten because nobody polled them in time.
    pub fn trace_forgotten(&self) -> u64 {
        self.telemetry.trace.forgotten()
    }

    /// Bytes received above a hole: here, but not yet deliverable. A FIN counts as one.
    pub fn blocked_bytes(&self) -> u64 {
        self.receiver.reassembly.blocked()
    }

    /// Bytes of heap that this connection's buffers hold.
    pub fn buffer_memory(&self) -> usize {
        self.queue.memory() + self.receiver.reassembly.memory()
    }

    /// Smallest RTT seen.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.rtt.min()
    }

    /// What must hold between any two calls.
    ///
    /// # Errors
    /// Names the invariant that is broken.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        self.check_sums()?;
        self.check_state()
    }

    /// The part of [`Connection::check_invariants`] that adds up [`Connection::records`] anew.
    ///
    /// # Errors
    /// Names the sum that is wrong.
    pub fn check_sums(&self) -> Result<(), &'static str> {
        self.log.check()
    }

    /// Records of what was sent and is not acknowledged.
    pub fn records(&self) -> usize {
        self.log.records()
    }

    /// The part of [`Connection::check_invariants`] that takes the same time whatever is in flight.
    ///
    /// # Errors
    /// Names the invariant that is broken.
    pub fn check_state(&self) -> Result<(), &'static str> {
        if self.snd.una > self.snd.nxt {
            return Err("SND.UNA is beyond SND.NXT");
        }
        if self.state.is_synchronized()
            && self.snd.nxt > self.snd.una + self.window.largest().max(1) + 1
        {
            return Err("SND.NXT is beyond SND.UNA and the largest window");
        }
        if self.cc.cwnd() < self.max_payload().min(u64::from(self.mtu.mss()))
            && self.state.is_synchronized()
        {
            return Err("the congestion window is below one segment");
        }
        if !self.log.is_empty()
            && !self.timers.is_armed(Timer::Retransmit)
            && self.state != State::Closed
        {
            return Err("data is unacknowledged and no retransmission timer is armed");
        }
        if self.snd.nxt > self.queue.end_with_fin() && self.state.is_synchronized() {
            return Err("more was sent than was queued");
        }
        // The bytes of a full window may begin and end within a page.
        if self.receiver.reassembly.memory() > self.config.receive_buffer + 3 * crate::ring::PAGE {
            return Err("the receive buffer outgrew its cap");
        }
        Ok(())
    }
}
