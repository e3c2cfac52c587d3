//! One TCP connection: owns the rooms, exposes the verbs. The algorithms live in the rooms.

mod acknowledge;
mod answers;
mod application;
mod close;
mod episodes;
mod events;
mod handshake;
mod input;
mod limits;
pub(crate) mod memory;
pub(crate) mod offer;
mod output;
mod peer_segments;
mod pure_acks;
mod state;
pub(crate) mod time_wait;
mod timers;

use core::time::Duration;

use alloc::boxed::Box;

use tack_base::Instant;
use tack_base::timers::Timers;
use tack_wire::{Ecn, Segment, SeqNum};

use crate::ack::feedback::{FeedbackReader, News, SackReader};
use crate::ack::policy::{AckContract, AckReason, FeedbackWriter};
use crate::cc::{self, Cause, CongestionController};
use crate::config::{Config, WindowPacing};
use crate::ecn::EcnState;
use crate::mtu::PathMtu;
use crate::pacing::Pacer;
use crate::rate::sender::RateEstimator;
use crate::recovery::dup_acks::DupAcks;
use crate::recovery::frto::Frto;
use crate::recovery::prr::Prr;
use crate::recovery::rack::Rack;
use crate::recovery::retransmitted::Retransmitted;
use crate::recovery::tlp::TailLossProbe;
use crate::recovery::undo::Undo;
use crate::recovery::{DetectionContext, LossDetector, Phase};
use crate::recv::duplicates::Reports;
use crate::recv::reassembly::Reassembly;
use crate::recv::round_trip::ReceiverRoundTrip;
use crate::recv::window::ReceiveWindow;
use crate::rtt::estimator::RttEstimator;
use crate::rtt::timestamps::TimestampClock;
use crate::send::audit::Audit;
use crate::send::numbering::Numbering;
use crate::send::queue::SendQueue;
use crate::send::sent::SentLog;
use crate::send::window::SendWindow;
use crate::stats::Stats;
use crate::trace::{Trace, TraceEvent};

pub use application::{ReadError, WriteError};
pub use close::CloseReason;
pub use events::Event;
pub use state::State;

use answers::AnswerLimit;
pub(crate) use close::ReplyLimit;
use events::Events;
use handshake::Handshake;
use limits::Limits;
use memory::Pressure;
use timers::{TIMERS, Timer};

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
    local_port: u16,
    remote_port: u16,
    state: State,
    handshake: Handshake,
    /// Our initial sequence number: position zero of what we send.
    iss: SeqNum,
    /// The peer's: position zero of what we receive.
    irs: SeqNum,
    seed: u64,

    // What we send.
    queue: SendQueue,
    log: SentLog,
    snd_una: u64,
    snd_nxt: u64,
    /// A window probe went out with the octet below this position.
    probed: u64,
    window: SendWindow,
    mtu: PathMtu,
    cc: Box<dyn CongestionController>,
    pacer: Pacer,
    rate: RateEstimator,
    rtt: RttEstimator,
    timestamps: TimestampClock,
    ecn: EcnState,
    last_sent_at: Instant,
    /// The congestion window limits until this position is acknowledged.
    cwnd_limited_until: u64,

    // Loss recovery.
    phase: Phase,
    episode_cause: Cause,
    detector: Box<dyn LossDetector>,
    dup_acks: DupAcks,
    prr: Option<Prr>,
    tlp: TailLossProbe,
    undo: Undo,
    frto: Frto,
    total_lost: u64,
    /// The next retransmission leaves whatever the congestion window says.
    force_retransmission: bool,
    /// Bytes in flight for the log which the peer's newest report says it has.
    unnamed: u64,
    /// Retransmission timeouts since the last progress.
    timeouts_in_a_row: u32,
    /// Retransmissions of the oldest segment that restarted the timer, since the last progress.
    head_retransmissions: u32,
    retransmitted: Retransmitted,
    probe_due: bool,
    window_probe_due: bool,
    keep_alive_due: bool,
    persist_backoff: u32,
    /// When the peer's window began to hold everything back.
    persist_since: Instant,
    keep_alive_probes: u32,

    // What we receive.
    reassembly: Reassembly,
    receive_window: ReceiveWindow,
    reports: Reports,
    /// Position of the peer's FIN once known.
    peer_fin: Option<u64>,
    /// The FIN was reached in order.
    fin_received: bool,
    /// The application still reads.
    reading: bool,
    receiver_round_trip: ReceiverRoundTrip,
    peer_mss: u64,
    peer_short_run: u8,
    last_heard: Instant,

    // Acknowledging.
    policy: Box<dyn FeedbackWriter>,
    reader: Box<dyn FeedbackReader>,
    /// What the acknowledgement at hand says; kept so that reading allocates nothing.
    news: News,
    numbering: Numbering,
    audit: Audit,
    peer_contract: AckContract,
    /// What the peer has to know about our sending leaves with the next output.
    sync_due: Option<tack_wire::tack::Sync>,
    ack_pending: Option<AckReason>,
    /// Payload that arrived and that no lists of ours match yet in length, bytes.
    unanswered: usize,
    last_ack_sent: u64,

    // The connection as a whole.
    timers: Timers<Timer, TIMERS>,
    events: Events,
    write_blocked: bool,
    reply_limit: ReplyLimit,
    answer_limit: AnswerLimit,
    /// A reset has to leave, with this sequence number.
    reset_due: Option<SeqNum>,
    reset_acks: bool,
    close_reason: Option<CloseReason>,
    /// How scarce memory is.
    pressure: Pressure,
    /// What the connection held after it was trimmed last, bytes.
    trimmed_to: usize,
    counters: Stats,
    limits: Limits,
    trace: Trace,
}

impl Connection {
    /// Opens a connection actively: a SYN will leave at the next [`Connection::poll_transmit`].
    ///
    /// `iss` is the initial sequence number (RFC 6528), `seed` feeds the connection's own random choices.
    pub fn connect(
        config: &Config,
        local_port: u16,
        remote_port: u16,
        iss: SeqNum,
        seed: u64,
        now: Instant,
    ) -> Self {
        let mut connection = Self::new(config, local_port, remote_port, iss, seed, now);
        connection.state = State::SynSent;
        connection.handshake.pending = true;
        connection
    }

    /// Answers a SYN that arrived for a listener: a SYN-ACK will leave.
    pub fn accept(
        config: &Config,
        syn: &Segment<'_>,
        _ecn: Ecn,
        iss: SeqNum,
        seed: u64,
        now: Instant,
    ) -> Self {
        let mut connection = Self::new(
            config,
            syn.header.dst_port,
            syn.header.src_port,
            iss,
            seed,
            now,
        );
        connection.state = State::SynReceived;
        connection.handshake.passive = true;
        connection.audit = Audit::new(config.audit.interval(true), seed);
        connection.handshake.pending = true;
        connection.learn_from_syn(now, syn);
        connection
            .window
            .update(syn.header.seq, 0, syn.header.window, true);
        connection
    }

    fn new(
        config: &Config,
        local_port: u16,
        remote_port: u16,
        iss: SeqNum,
        seed: u64,
        now: Instant,
    ) -> Self {
        let mtu = PathMtu::new(config.mss, config.carrier.overhead);
        let mss = u64::from(mtu.mss());
        let init = cc::Init {
            now,
            mss,
            initial_window: mss * u64::from(config.initial_window_segments.max(1)),
            rtt: None,
            seed,
            counting: config.counting,
        };
        Self {
            local_port,
            remote_port,
            state: State::Closed,
            handshake: Handshake::default(),
            iss,
            irs: SeqNum(0),
            seed,
            queue: SendQueue::new(),
            log: SentLog::new(),
            snd_una: 0,
            snd_nxt: 1,
            probed: 1,
            window: SendWindow::new(),
            mtu,
            cc: config.build_controller(&init),
            pacer: Pacer::new(config.carrier),
            rate: RateEstimator::new(now),
            rtt: RttEstimator::new(config.initial_rto, config.min_rto, config.max_rto),
            timestamps: TimestampClock::new((seed >> 32) as u32),
            ecn: EcnState::default(),
            last_sent_at: now,
            cwnd_limited_until: 0,
            phase: Phase::Open,
            episode_cause: Cause::Loss,
            detector: Box::new(Rack::new()),
            dup_acks: DupAcks::default(),
            prr: None,
            tlp: TailLossProbe::default(),
            undo: Undo::default(),
            frto: Frto::default(),
            total_lost: 0,
            force_retransmission: false,
            unnamed: 0,
            timeouts_in_a_row: 0,
            head_retransmissions: 0,
            retransmitted: Retransmitted::default(),
            probe_due: false,
            window_probe_due: false,
            keep_alive_due: false,
            persist_backoff: 0,
            persist_since: now,
            keep_alive_probes: 0,
            reassembly: Reassembly::new(),
            receive_window: ReceiveWindow::new(
                config.initial_receive_buffer,
                config.receive_buffer,
                now,
            ),
            reports: Reports::default(),
            peer_fin: None,
            fin_received: false,
            reading: true,
            receiver_round_trip: ReceiverRoundTrip::default(),
            peer_mss: u64::from(config.mss).min(536),
            peer_short_run: 0,
            last_heard: now,
            policy: config.build_policy(),
            reader: Box::new(SackReader::new(false)),
            news: News::default(),
            numbering: Numbering::default(),
            audit: Audit::new(config.audit.interval(false), seed),
            peer_contract: AckContract::LEGACY,
            sync_due: None,
            ack_pending: None,
            unanswered: 0,
            last_ack_sent: 0,
            timers: Timers::default(),
            events: Events::default(),
            write_blocked: false,
            reply_limit: ReplyLimit::default(),
            answer_limit: AnswerLimit::new(),
            reset_due: None,
            reset_acks: false,
            close_reason: None,
            pressure: Pressure::None,
            trimmed_to: size_of::<Self>(),
            counters: Stats::default(),
            trace: Trace::default(),
            limits: Limits::new(now),
            config: config.clone(),
        }
    }

    /// The path reported (ICMP "packet too big") that IP packets longer than `mtu` bytes do not fit.
    pub fn handle_path_mtu(&mut self, _now: Instant, mtu: u16) {
        if self.mtu.on_path_mtu(mtu) {
            self.on_segment_size_changed();
            // What was too long is lost for certain, and not by congestion (RFC 1191 §6.5).
            self.total_lost += self.log.mark_lost_longer_than(self.max_payload());
            self.timers.stop(Timer::Probe);
        }
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.take()
    }

    /// True when [`Connection::poll_event`] has something to say.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// When to call next: [`Connection::handle_timeout`], then [`Connection::poll_transmit`] (pacing counts too).
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
        self.close_reason
    }

    /// TCP port of this side.
    pub fn local_port(&self) -> u16 {
        self.local_port
    }

    /// TCP port of the peer.
    pub fn remote_port(&self) -> u16 {
        self.remote_port
    }

    /// What this side's acknowledgement policy promises, as (longest delay, most full-sized segments).
    pub fn ack_contract(&self) -> (Duration, u32) {
        let contract = self.policy.contract();
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
    fn rcv_nxt(&self) -> u64 {
        self.reassembly.next() + u64::from(self.fin_received)
    }

    /// Bytes in flight, less what the peer is known to have without having named it.
    #[inline]
    fn bytes_in_flight(&self) -> u64 {
        let in_flight = self.log.in_flight();
        if self.hears_sack() {
            return in_flight.saturating_sub(self.unnamed);
        }
        in_flight - self.dup_acks.departed(self.mtu.mss().into(), in_flight)
    }

    /// The peer's selective acknowledgements can be relied upon.
    #[inline]
    fn hears_sack(&self) -> bool {
        self.handshake.sack && self.reader.is_intelligible()
    }

    fn detection_context(&self, now: Instant) -> DetectionContext {
        DetectionContext {
            now,
            min_rtt: self.rtt.min(),
            smoothed_rtt: self.rtt.smoothed(),
            ack_delay: self.peer_contract.timeout_allowance,
            in_recovery: self.phase != Phase::Open,
            echoed_departure: None,
        }
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

    fn on_segment_size_changed(&mut self) {
        let mss = self.max_payload();
        self.cc.on_mss(mss);
    }

    /// Takes pacing rate and window from the controller to the pacer.
    fn update_pacing(&mut self) {
        let by_window = self.config.window_pacing == WindowPacing::On;
        let rate = self.cc.pacing_rate().or_else(|| {
            let smoothed = self.rtt.smoothed().filter(|_| by_window)?;
            Some(
                tack_base::Rate::from_bytes_over(self.cc.cwnd(), smoothed)
                    .scale(self.cc.pacing_gain()),
            )
        });
        self.pacer.set_rate(rate);
    }

    /// An acknowledgement has to leave with the next output. The strongest reason stays.
    fn acknowledge_now(&mut self, reason: AckReason) {
        if self.ack_pending != Some(AckReason::Loss) {
            self.ack_pending = Some(reason);
        }
    }

    /// Counters and estimates.
    pub fn stats(&self, now: Instant) -> Stats {
        let mut stats = self.counters.clone();
        stats.min_rtt = self.rtt.min();
        stats.srtt = self.rtt.smoothed();
        stats.rttvar = self.rtt.variation();
        stats.rto = self.rtt.rto();
        stats.cwnd = self.cc.cwnd();
        stats.ssthresh = self.cc.ssthresh();
        stats.bytes_in_flight = self.bytes_in_flight();
        stats.snd_wnd = self.window.size();
        stats.receive_buffer = self.receive_window.buffer();
        stats.mss = self.max_payload() as u16;
        stats.bytes_acked = self.snd_una.min(self.queue.end()).saturating_sub(1);
        stats.bytes_read = self.reassembly.read_position() - 1;
        self.limits.report(now, &mut stats);
        stats
    }

    /// Keeps what happens from now on, and why, for [`Connection::poll_trace`].
    pub fn enable_trace(&mut self) {
        self.trace.switch_on();
    }

    /// The oldest traced event not polled yet. Poll often: a few thousand are kept.
    pub fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.trace.poll()
    }

    /// Traced events that were forgotten because nobody polled them in time.
    pub fn trace_forgotten(&self) -> u64 {
        self.trace.forgotten()
    }

    /// Bytes received above a hole: here, but not yet deliverable.
    pub fn blocked_bytes(&self) -> u64 {
        self.reassembly.blocked()
    }

    /// Bytes of heap that this connection's buffers hold.
    pub fn buffer_memory(&self) -> usize {
        self.queue.memory() + self.reassembly.memory()
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
        self.log.check()?;
        if self.snd_una > self.snd_nxt {
            return Err("SND.UNA is beyond SND.NXT");
        }
        if self.state.is_synchronized()
            && self.snd_nxt > self.snd_una + self.window.largest().max(1) + 1
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
        if self.snd_nxt > self.queue.end_with_fin() && self.state.is_synchronized() {
            return Err("more was sent than was queued");
        }
        // The bytes of a full window may begin and end within a page.
        if self.reassembly.memory() > self.config.receive_buffer + 3 * crate::ring::PAGE {
            return Err("the receive buffer outgrew its cap");
        }
        Ok(())
    }
}
