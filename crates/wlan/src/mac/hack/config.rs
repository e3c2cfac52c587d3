//! Settings of TCP/HACK.

use tack_base::Duration;

/// When an acknowledgement waits for a link acknowledgement that carries it (HACK, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Variant {
    /// Never: no HACK.
    #[default]
    Off,
    /// It does not wait. It is queued as it is and held compressed at the same time; what leaves
    /// first wins.
    Opportunistic,
    /// Always, for [`HackConfig::hold`] at most.
    Timer,
    /// While the MORE DATA bit of the peer's last frame promises another frame.
    MoreData,
    /// While the peer has not echoed the newest timestamp that it was sent (HACK, section 5). Flows
    /// without timestamps wait as with [`Variant::MoreData`].
    TimestampEcho,
}

impl Variant {
    /// How long a compressed acknowledgement waits at most, unless a scenario says otherwise.
    ///
    /// The paper has no limit where a promise is relied on. A promise can be broken, though: frames
    /// are given up, or taken out of the queue. 100 ms is longer than a round of twenty
    /// stations with full A-MPDUs at 150 Mbit/s, and shorter than any retransmission timeout
    /// (RFC 6298; 200 ms in Linux). What an echo that is to come promises is less: the last data of
    /// a burst draws none.
    pub const fn default_hold(self) -> Duration {
        match self {
            Self::Timer => Duration::from_millis(10),
            Self::TimestampEcho => Duration::from_millis(20),
            _ => Duration::from_millis(100),
        }
    }
}

/// Settings of TCP/HACK, the same for every radio of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HackConfig {
    /// When acknowledgements wait.
    pub variant: Variant,
    /// How long one waits at most; then it is sent as it is.
    pub hold: Duration,
}

impl HackConfig {
    /// `variant`, with its usual limit.
    pub const fn new(variant: Variant) -> Self {
        Self {
            variant,
            hold: variant.default_hold(),
        }
    }

    /// True unless HACK is off.
    pub const fn is_on(&self) -> bool {
        !matches!(self.variant, Variant::Off)
    }
}
