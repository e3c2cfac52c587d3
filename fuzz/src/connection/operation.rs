//! What a run of [`connection_ops`](super::connection_ops) consists of.

use arbitrary::Arbitrary;
use tack_tcp::config::Audits;
use tack_tcp::{AckKind, Algorithm, Config};
use tack_testkit::Side;

/// One run: how the two sides are set up, and what happens.
#[derive(Arbitrary, Debug, Clone)]
pub struct Run {
    pub(super) sides: [Setup; 2],
    /// Nobody forges, alters or gives up: operations that do are left out, and everything must
    /// arrive.
    pub(super) peaceful: bool,
    /// The handshake is done before anything else happens.
    pub(super) connected: bool,
    pub(super) operations: Vec<Operation>,
}

/// Configuration of one side.
#[derive(Arbitrary, Debug, Clone, Copy)]
pub(super) struct Setup {
    pub(super) congestion: u8,
    pub(super) ack: u8,
    pub(super) timestamps: bool,
    pub(super) sack: bool,
    pub(super) window_scaling: bool,
    pub(super) ecn: bool,
    pub(super) nagle: bool,
    pub(super) keep_alive: bool,
    pub(super) mss: u16,
    pub(super) batch: u8,
    pub(super) receive_buffer: u16,
    pub(super) send_buffer: u16,
}

impl Setup {
    fn ack(self) -> AckKind {
        let texts = [
            "every",
            "delayed:1",
            "delayed:2",
            "delayed:16",
            "tack",
            "tack:l=1,beta=2",
            "tack:rich=off",
            "tack:iack=off,timing=sampled",
            "tack:settle=0.25",
        ];
        texts[usize::from(self.ack) % texts.len()]
            .parse()
            .expect("a policy's text")
    }

    pub(super) fn config(self) -> Config {
        Config {
            congestion: Algorithm::ALL[usize::from(self.congestion) % Algorithm::ALL.len()],
            ack: self.ack(),
            timestamps: self.timestamps,
            sack: self.sack,
            window_scaling: self.window_scaling,
            ecn: self.ecn,
            nagle: self.nagle,
            keep_alive: self.keep_alive.then(Default::default),
            mss: self.mss.clamp(88, 9_000),
            receive_buffer: usize::from(self.receive_buffer).max(4) * 64,
            send_buffer: usize::from(self.send_buffer).max(4) * 64,
            user_timeout: None,
            audit: if self.batch >= 128 {
                Audits::Every(u32::from(self.batch % 64) + 1)
            } else {
                Audits::Never
            },
            ..Config::default()
        }
    }
}

/// Which of the two.
#[derive(Arbitrary, Debug, Clone, Copy)]
pub(super) enum Who {
    Client,
    Server,
}

impl From<Who> for Side {
    fn from(who: Who) -> Self {
        match who {
            Who::Client => Self::Client,
            Who::Server => Self::Server,
        }
    }
}

#[derive(Arbitrary, Debug, Clone)]
pub(super) enum Operation {
    Write(Who, u16),
    Read(Who, u16),
    Finish(Who),
    StopReading(Who),
    Abort(Who),
    Release(Who),
    /// The network hands over the packet at this place of its queue to the receiver, who had it
    /// lying around for some milliseconds.
    Deliver {
        to: Who,
        at: u8,
        late_ms: u8,
    },
    DeliverAll,
    Lose {
        to: Who,
        at: u8,
    },
    Repeat {
        to: Who,
        at: u8,
    },
    Mark {
        to: Who,
        at: u8,
    },
    /// Time passes and timers run.
    Wait {
        micros: u16,
    },
    /// Time passes, and the timers are looked at only later.
    Stall {
        millis: u16,
    },
    /// Time passes until the next deadline.
    WaitForTimer,
    PathMtu(Who, u16),
    /// One byte of a packet on its way becomes another one.
    Alter {
        to: Who,
        at: u8,
        byte: u8,
        xor: u8,
    },
    Forge {
        to: Who,
        forged: Forged,
    },
}

impl Operation {
    /// After it, not everything has to arrive, or not unchanged.
    pub(super) const fn is_violent(&self) -> bool {
        matches!(
            self,
            Self::StopReading(_)
                | Self::Abort(_)
                | Self::Release(_)
                | Self::Alter { .. }
                | Self::Forge { .. }
        )
    }
}

/// A segment nobody sent, near what the connection expects.
#[derive(Arbitrary, Debug, Clone)]
pub(super) struct Forged {
    pub(super) flags: u8,
    pub(super) seq_offset: i32,
    pub(super) ack_offset: i16,
    pub(super) window: u16,
    pub(super) urgent: u16,
    pub(super) len: u16,
    pub(super) mss: Option<u16>,
    pub(super) window_scale: Option<u8>,
    pub(super) sack_permitted: bool,
    pub(super) timestamps: Option<(i16, i16)>,
    pub(super) sack: Vec<(i32, u16)>,
    pub(super) tack: Option<ForgedTack>,
    pub(super) other_port: bool,
    pub(super) ecn: u8,
}

/// A TACK option near what the connection expects; lists come from the payload.
#[derive(Arbitrary, Debug, Clone, Copy)]
pub(super) struct ForgedTack {
    pub(super) shape: u8,
    pub(super) number: i16,
    pub(super) largest: i16,
    pub(super) delay: u32,
    pub(super) lists: bool,
    pub(super) timing: bool,
    pub(super) rate: Option<u64>,
    pub(super) above: u32,
    pub(super) gap: (i16, i16),
}
