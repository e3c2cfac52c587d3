//! Loss episodes: one round of packet conservation, then growth again; the window from before comes
//! back.

use super::super::Ack;
use super::round::Round;
use super::startup::is_overflow;

/// The state of loss recovery, in the order of severity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Episode {
    Open,
    FastRecovery,
    Timeout,
}

/// What an episode demands of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Window {
    /// Exactly this, for now.
    Conserve(u64),
    /// This, and from there the usual growth.
    Grow(u64),
}

/// What is remembered across an episode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// What the sender says.
    episode: Episode,
    /// What the window already reflects.
    applied: Episode,
    /// In the first round of fast recovery what leaves is what was delivered.
    conserving: bool,
    /// That round ends with what leaves after so many bytes are delivered.
    conserving_to: u64,
    /// The last good window, bytes.
    prior_cwnd: u64,
    /// The peer acknowledges a few times a round trip. What such an acknowledgement delivers
    /// leaves again only by and by, paced: a loss told just after it finds little in flight,
    /// and to conserve that would take the window down to the trough between two
    /// acknowledgements, episode after episode. Pacing at the measured rate conserves enough.
    sparse: bool,
    /// Startup paces at a multiple of that rate, which conserves nothing: with sparse
    /// acknowledgements, losses of such an episode are watched.
    startup: bool,
    watched: Option<Watched>,
}

/// An episode of startup with sparse acknowledgements, bytes since it began.
#[derive(Clone, Copy, Default, Debug)]
struct Watched {
    lost: u64,
    delivered: u64,
}

impl Watched {
    fn add(&mut self, ack: &Ack) {
        self.lost = self.lost.saturating_add(ack.lost);
        self.delivered = self.delivered.saturating_add(ack.delivered);
    }

    /// So much is lost that a queue must have overflowed.
    fn shows_overflow(self, in_flight: u64, mss: u64) -> bool {
        let all = self
            .lost
            .saturating_add(self.delivered)
            .saturating_add(in_flight);
        is_overflow(self.lost, all, mss)
    }
}

impl Recovery {
    pub(super) const fn new() -> Self {
        Self {
            episode: Episode::Open,
            applied: Episode::Open,
            conserving: false,
            conserving_to: 0,
            prior_cwnd: 0,
            sparse: false,
            startup: false,
            watched: None,
        }
    }

    /// Whether acknowledgements come by the clock instead of with the data, and whether the pipe
    /// was never full.
    pub(super) fn set_feedback(&mut self, sparse: bool, startup: bool) {
        self.sparse = sparse;
        self.startup = startup;
    }

    /// The window from before the episode, or before ProbeRTT.
    pub(super) const fn prior_cwnd(&self) -> u64 {
        self.prior_cwnd
    }

    /// Notes the window before something temporary cuts it; `cut` says that something has cut it
    /// already.
    pub(super) fn save(&mut self, cwnd: u64, cut: bool) {
        self.prior_cwnd = if self.applied == Episode::Open && !cut {
            cwnd
        } else {
            self.prior_cwnd.max(cwnd)
        };
    }

    /// Fast recovery begins: the next acknowledgement changes the window.
    pub(super) fn enter_fast_recovery(&mut self) {
        self.episode = Episode::FastRecovery;
    }

    pub(super) fn enter_timeout(&mut self) {
        self.episode = Episode::Timeout;
        self.applied = Episode::Timeout;
    }

    pub(super) fn close(&mut self) {
        self.episode = Episode::Open;
    }

    /// Packet conservation lasts a round.
    pub(super) fn on_round(&mut self) {
        self.conserving = false;
    }

    /// Something was delivered that left when `prior_delivered` bytes had been. An acknowledgement
    /// without a rate begins no round; the one of packet conservation is over with it all the same.
    pub(super) fn on_delivered(&mut self, prior_delivered: u64) {
        self.conserving &= prior_delivered < self.conserving_to;
    }

    /// The window after the episode closed, if that was not seen to yet.
    pub(super) fn restore(&mut self, cwnd: u64) -> u64 {
        if self.episode != Episode::Open || self.applied == Episode::Open {
            return cwnd;
        }
        self.applied = Episode::Open;
        self.conserving = false;
        cwnd.max(self.prior_cwnd)
    }

    /// Applies to `cwnd` what the episode demands on an acknowledgement that delivered data.
    pub(super) fn window(&mut self, ack: &Ack, cwnd: u64, mss: u64, round: &mut Round) -> Window {
        // What is delivered may release twice as much: take off the losses here, grow back later.
        let mut cwnd = cwnd.saturating_sub(ack.lost).max(mss);
        let conserved = ack.bytes_in_flight.saturating_add(ack.delivered);
        let begins = self.episode == Episode::FastRecovery && self.applied != Episode::FastRecovery;
        if begins {
            self.watched = (self.sparse && self.startup).then(Watched::default);
        }
        let overflows = self.episode == Episode::FastRecovery
            && self.startup
            && self.watched.as_mut().is_some_and(|watched| {
                watched.add(ack);
                watched.shows_overflow(ack.bytes_in_flight, mss)
            });
        if overflows {
            self.watched = None;
        }
        if begins && !self.sparse || overflows {
            self.conserving = true;
            self.conserving_to = ack.total_delivered;
            round.restart(ack.total_delivered);
            // Window that was not in use does not come back in a burst.
            cwnd = conserved;
        } else {
            cwnd = self.restore(cwnd);
        }
        self.applied = self.episode;
        if self.conserving {
            Window::Conserve(cwnd.max(conserved))
        } else {
            Window::Grow(cwnd)
        }
    }
}
