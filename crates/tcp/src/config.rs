//! What a connection can be told. Every field has a default that is right for most.

use core::time::Duration;

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use tack_wire::TackOption;
use tack_wire::tack::TackSyn;

use crate::ack::policy::FeedbackWriter;
use crate::ack::{AckKind, AckPolicyFactory, Mechanism};
use crate::cc::{Algorithm, CongestionController, ControllerFactory, Counting, Init};

/// Settings of one connection.
///
/// Made from the default: `Config { nagle: true, ..Config::default() }`. A literal ends in
/// `..Config::default()`, because fields will be added.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Acknowledgement policy for what this side receives. Default: `tack`, which is `delayed:2`
    /// (RFC 9293 §3.8.6.3) towards peers that do not know it.
    pub ack: AckKind,
    /// A policy of the application's own, in place of `ack`. Default: none.
    pub ack_policy: Option<AckPolicyFactory>,
    /// Congestion controller of this side. Default: BBR.
    pub congestion: Algorithm,
    /// A controller of the application's own, in place of `congestion`. Default: none.
    pub controller: Option<ControllerFactory>,
    /// Largest payload of a segment, bytes, before options are counted (RFC 9293 MSS): announced
    /// to the peer and the cap of what we send. Default 1460 (1,500-byte IPv4 packets).
    pub mss: u16,
    /// Largest payload of a segment to begin with, bytes, where the path may not carry `mss`:
    /// larger ones are probed for (RFC 8899). Default: none, the connection begins with `mss`.
    pub base_mss: Option<u16>,
    /// How long a path MTU that the path named is believed before larger segments are probed for,
    /// and how long a search for it that is over stays so (PMTU_RAISE_TIMER, RFC 8899 §5.1.1).
    /// Default 10 minutes; RFC 8201 §4 wants 5 at least.
    pub mtu_raise: Duration,
    /// Offer timestamps (RFC 7323). Default true.
    pub timestamps: bool,
    /// Offer selective acknowledgements (RFC 2018). Default true.
    pub sack: bool,
    /// Offer window scaling (RFC 7323). Default true; without it windows stop at 64 KiB.
    pub window_scaling: bool,
    /// Offer explicit congestion notification (RFC 3168). Default true.
    pub ecn: bool,
    /// Accurate feedback of congestion marks (RFC 9768), if `ecn` is on. Default: for peers that
    /// ask for it.
    pub accurate_ecn: AccurateEcn,
    /// Nagle's algorithm (RFC 9293 §3.7.4). Default false: files and screens want their tails now.
    pub nagle: bool,
    /// Cap of the receive buffer, bytes; the window grows into it as the application keeps up.
    /// Default 6 MiB.
    pub receive_buffer: usize,
    /// Receive buffer to begin with, bytes. Default 64 KiB; as large as the cap, the window never
    /// changes (without `least_receive_buffer`).
    pub initial_receive_buffer: usize,
    /// The receive buffer shrinks, too, down to so many bytes: it is twice what the application
    /// took in one of the last 16 round trips and 16 segments, and has room for what waits above a
    /// hole. `receive_buffer` stays the cap. A process that dies loses what is on its way to it and
    /// what waits to be read; a smaller buffer makes that less. Default: none, the buffer only
    /// grows.
    pub least_receive_buffer: Option<usize>,
    /// Cap of the send buffer, bytes: how much may be written ahead of acknowledgement. Default 6
    /// MiB.
    pub send_buffer: usize,
    /// First congestion window in segments (RFC 6928). Default 10.
    pub initial_window_segments: u32,
    /// RTO before the first sample (RFC 6298 §2.1). Default 1 s.
    pub initial_rto: Duration,
    /// Floor of the RTO. Default 200 ms. Deviation: RFC 6298 §2.4 says 1 s; the large stacks run
    /// 200 ms.
    pub min_rto: Duration,
    /// Ceiling of the RTO (RFC 6298 §2.5: at least 60 s). Default 60 s.
    pub max_rto: Duration,
    /// How often a SYN or SYN-ACK is retransmitted before giving up. Default 7: with doubling from
    /// 1 s that is 183 s (RFC 9293 §3.8.3 wants three minutes).
    pub syn_retries: u32,
    /// How long data may stay unacknowledged before the connection ends (RFC 9293 §3.9.1 user
    /// timeout, RFC 5482). Default 5 minutes; `None` waits forever.
    pub user_timeout: Option<Duration>,
    /// Keep-alive probing (RFC 9293 §3.8.4). Default off.
    pub keep_alive: Option<KeepAlive>,
    /// An ICMP message that says that nobody has the peer's port ends an established connection at
    /// once, if it quotes a segment that is under way (RFC 9293 §3.9.2.2, RFC 5927 §4.1). For
    /// applications that connect again: who does not see the segments can forge it by guessing the
    /// ports and a sequence number within the window. So does this side's system, if it has no
    /// route to the peer for a second. Default false: timers decide (RFC 5927 §5.2). An attempt to
    /// connect ends at once either way.
    pub hard_errors: bool,
    /// Length of TIME-WAIT (2 MSL). Default 60 s; carriers with private port spaces may shorten
    /// it.
    pub time_wait: Duration,
    /// How long to wait in FIN-WAIT-2 for the peer's FIN once the application has let go. Default
    /// 60 s.
    pub fin_wait: Duration,
    /// Audits of a peer that reports packet numbers. Default: of who connects to a listener.
    pub audit: Audits,
    /// What makes the window of NewReno grow; the other controllers always count bytes. Default:
    /// bytes.
    pub counting: Counting,
    /// Whether controllers that have only a window are paced. Default on.
    pub window_pacing: WindowPacing,
    /// Facts about the carrier below.
    pub carrier: Carrier,
    /// Keeps literals from naming every field.
    #[doc(hidden)]
    pub more: More,
}

/// Nothing yet.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct More;

impl Config {
    /// What reports call the acknowledgement policy.
    pub fn ack_name(&self) -> String {
        match &self.ack_policy {
            Some(factory) => factory.name().to_string(),
            None => self.ack.to_string(),
        }
    }

    /// What reports call the congestion controller.
    pub fn congestion_name(&self) -> String {
        match &self.controller {
            Some(factory) => factory.name().to_string(),
            None => self.congestion.to_string(),
        }
    }

    /// The acknowledgement mechanism that both ends may agree on; a policy of the application's own
    /// stands alone.
    fn negotiable(&self) -> Option<AckKind> {
        self.ack_policy.is_none().then_some(self.ack)
    }

    /// The policy towards a peer that agreed on nothing.
    pub(crate) fn build_policy(&self) -> Box<dyn FeedbackWriter> {
        match &self.ack_policy {
            Some(factory) => factory.build(),
            None => self.ack.build(),
        }
    }

    /// What a SYN offers.
    pub(crate) fn offer(&self) -> Option<TackOption> {
        self.negotiable()?.offer()
    }

    /// The mechanism that both sides want, where the peer offered `peer`. `sack` says that SACK was
    /// agreed.
    pub(crate) fn agree(&self, peer: TackSyn, sack: bool) -> Option<Mechanism> {
        self.negotiable()?.agree(peer, sack)
    }

    /// A fresh controller.
    pub(crate) fn build_controller(&self, init: &Init) -> Box<dyn CongestionController> {
        match &self.controller {
            Some(factory) => factory.build(init),
            None => self.congestion.build(init),
        }
    }
}

/// When the peer's feedback of congestion marks is to be a count (RFC 9768), not one echo a round
/// trip (RFC 3168).
///
/// Where both ends agree on TACK the feedback is that of RFC 3168: the counter has three bits, and
/// goes around between two acknowledgements that are far apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum AccurateEcn {
    /// Never.
    Off,
    /// Where the peer's SYN asks for it. SYNs of this side do not: the path may drop what it does
    /// not know, and no controller here needs the count. Linux has the same default for classic
    /// feedback.
    #[default]
    Accept,
    /// SYNs of this side ask for it, too.
    Offer,
}

/// How often a peer that reports packet numbers is audited.
///
/// An audit keeps one segment back for a round trip; a peer that acknowledges it all the same
/// claims what it did not get, to be sent more than its path carries, and the connection is reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Audits {
    /// Each 4,096 data segments on average on connections that a listener accepted: whoever
    /// connects is a stranger, and may want more than its share. None on those that this side
    /// opened.
    #[default]
    Accepted,
    /// Each so many data segments, on average.
    Every(u32),
    /// Never.
    Never,
}

impl Audits {
    /// Segments between two audits where nothing else is said: some 6 MB, so that the round trip
    /// that the segment takes longer is not felt.
    const USUAL: u32 = 4096;

    /// Segments between two audits of a connection that was opened by the peer, or not; `None` for
    /// no audits.
    pub(crate) const fn interval(self, passive: bool) -> Option<u32> {
        match self {
            Self::Accepted if passive => Some(Self::USUAL),
            Self::Every(segments) => Some(segments),
            Self::Accepted | Self::Never => None,
        }
    }
}

/// Whether a controller without a pacing rate of its own (every one but BBR) is paced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum WindowPacing {
    /// At its gain times window over smoothed RTT.
    #[default]
    On,
    /// Segments leave as soon as the window lets them, clocked by acknowledgements: TCP as it was
    /// before pacing, and as most simulators have it.
    Off,
}

/// When and how often to probe an idle peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Idle time before the first probe. RFC 9293 wants a default of at least 2 h.
    pub idle: Duration,
    /// Time between unanswered probes.
    pub interval: Duration,
    /// Unanswered probes before the connection is given up.
    pub probes: u32,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(7200),
            interval: Duration::from_secs(75),
            probes: 9,
        }
    }
}

/// What the carrier can do; pacing adapts to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carrier {
    /// Shortest wait the carrier's timer keeps reliably. Segments due within it leave at once,
    /// together. Zero in the simulator, whose timers are exact.
    pub timer_granularity: Duration,
    /// Most segments that one transmission can take (64 for UDP GSO); 1 without offload.
    pub max_batch: usize,
    /// Bytes of IP and carrier headers below the TCP header: 20 (IPv4), 28 (IPv4 + UDP), 40, 48.
    /// Used to turn a path MTU into a segment size.
    pub overhead: u16,
}

impl Default for Carrier {
    fn default() -> Self {
        Self {
            timer_granularity: Duration::ZERO,
            max_batch: 1,
            overhead: 20,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ack: AckKind::default(),
            ack_policy: None,
            congestion: Algorithm::default(),
            controller: None,
            mss: 1460,
            base_mss: None,
            mtu_raise: Duration::from_secs(600),
            timestamps: true,
            sack: true,
            window_scaling: true,
            ecn: true,
            accurate_ecn: AccurateEcn::default(),
            nagle: false,
            receive_buffer: 6 << 20,
            initial_receive_buffer: 64 << 10,
            least_receive_buffer: None,
            send_buffer: 6 << 20,
            initial_window_segments: 10,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(60),
            syn_retries: 7,
            user_timeout: Some(Duration::from_secs(300)),
            keep_alive: None,
            hard_errors: false,
            time_wait: Duration::from_secs(60),
            fin_wait: Duration::from_secs(60),
            audit: Audits::default(),
            counting: Counting::default(),
            window_pacing: WindowPacing::default(),
            carrier: Carrier::default(),
            more: More,
        }
    }
}
